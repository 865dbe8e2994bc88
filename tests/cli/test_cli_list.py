"""`stoker ls`, `cat` and `index` against Python's tarfile, GNU tar and webdataset."""

import gzip
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import tarfile

import numpy
import pytest
import tars

FORMATS = {
    "ustar": tarfile.USTAR_FORMAT,
    "pax": tarfile.PAX_FORMAT,
    "gnu": tarfile.GNU_FORMAT,
}


def expected(path):
    """What ls should print for a tar, by tarfile and WebDataset's rule."""
    samples = []
    with tarfile.open(path) as tar:
        for info in tar:
            if not info.isreg():
                continue
            folder, _, base = info.name.rpartition("/")
            stem, dot, field = base.partition(".")
            if not dot or not stem:
                continue
            key = f"{folder}/{stem}" if folder else stem
            if not samples or samples[-1]["key"] != key:
                samples.append({"sample": len(samples), "key": key, "fields": {}})
            place = {"object": str(path), "offset": info.offset_data, "length": info.size}
            samples[-1]["fields"][field] = place
    return samples


def assert_lists_as_tarfile(stoker, path):
    listed = stoker.lines("ls", path)
    assert listed == expected(path)
    with open(path, "rb") as file:
        for sample in listed[:3] + listed[-1:]:
            for field, place in sample["fields"].items():
                file.seek(place["offset"])
                got = stoker("cat", path, sample["sample"], field, text=False)
                assert got.stdout == file.read(place["length"])


@pytest.mark.parametrize("format", FORMATS)
def test_offsets_and_bytes_are_those_of_tarfile(stoker, tmp_path, format):
    members = tars.sample_members(20, ("npy", "cls", "txt"))
    members += [("deep/" * 30 + "name.txt", b"long path"), ("k" * 90 + ".seg.png", b"x" * 1000)]
    path = tars.write(tmp_path / "a.tar", members, FORMATS[format])
    assert_lists_as_tarfile(stoker, path)


@pytest.mark.parametrize("format", ["pax", "gnu"])
def test_long_and_foreign_names_are_read(stoker, tmp_path, format):
    members = [("d" * 120 + "/" + "e" * 120 + ".txt", b"1"), ("grüße/köln.jpg", b"2")]
    path = tars.write(tmp_path / "a.tar", members, FORMATS[format])
    assert_lists_as_tarfile(stoker, path)


@pytest.mark.parametrize("format", ["ustar", "pax", "gnu", "oldgnu", "v7"])
def test_shards_of_gnu_tar_are_read(stoker, tmp_path, format):
    if not shutil.which("tar"):
        pytest.skip("there is no tar")
    source = tmp_path / "files"
    source.mkdir()
    for name, data in tars.sample_members(10):
        (source / name).write_bytes(data)
    if format not in ("v7", "ustar"):
        (source / ("n" * 150 + ".txt")).write_bytes(b"long")
    path = tmp_path / "a.tar"
    names = sorted(os.listdir(source))
    subprocess.run(
        ["tar", "-c", f"--format={format}", "-f", path, "-C", source, *names], check=True
    )
    assert_lists_as_tarfile(stoker, path)


def test_shards_of_webdataset_are_read(stoker, tmp_path):
    webdataset = pytest.importorskip("webdataset")
    arrays = [numpy.full((3, 4), i, numpy.float16) for i in range(25)]
    with webdataset.ShardWriter(str(tmp_path / "w-%04d.tar"), maxcount=10, verbose=0) as sink:
        for i, array in enumerate(arrays):
            sink.write({"__key__": f"k{i}", "npy": array, "cls": i, "json": {"n": i}})
    listed = stoker.lines("ls", tmp_path / "w-{0000..0002}.tar")
    assert [sample["key"] for sample in listed] == [f"k{i}" for i in range(25)]
    for i in (0, 9, 10, 24):
        raw = stoker("cat", tmp_path / "w-*.tar", i, "npy", text=False).stdout
        numpy.testing.assert_array_equal(numpy.load(io.BytesIO(raw)), arrays[i])
        assert stoker("cat", tmp_path / "w-*.tar", i, "cls").stdout == str(i)
    for path in sorted(tmp_path.glob("w-*.tar")):
        assert_lists_as_tarfile(stoker, path)


def test_groups_are_those_of_webdataset(stoker, tmp_path):
    webdataset = pytest.importorskip("webdataset")
    members = [
        ("a/b.c.d", b"1"), ("a/b.jpg", b"2"), ("a/x.JPG", b"3"), ("plain.txt", b"4"),
        ("v1.0/x.npy.gz", b"5"), ("b.c.d", b"6"), (".hidden.txt", b"7"), ("none", b"8"),
        ("a/b.jpg", b"9"),
    ]  # fmt: skip
    path = tars.write(tmp_path / "a.tar", members)
    read = webdataset.WebDataset(str(path), shardshuffle=False, empty_check=False)
    groups = []
    for sample in read:
        fields = {k: v for k, v in sample.items() if not k.startswith("__")}
        groups.append((sample["__key__"], fields))
    listed = []
    for sample in stoker.lines("ls", path):
        fields = {}
        for field, place in sample["fields"].items():
            end = place["offset"] + place["length"]
            fields[field.lower()] = path.read_bytes()[place["offset"] : end]
        listed.append((sample["key"], fields))
    assert listed == groups


def test_the_case_of_a_field_is_kept(stoker, tmp_path):
    path = tars.write(tmp_path / "a.tar", [("a.JPG", b"1"), ("b.JPG", b"2")])
    assert list(stoker.lines("ls", path)[0]["fields"]) == ["JPG"]


def test_a_compressed_shard_has_bytes_but_no_places(stoker, tmp_path):
    plain = tars.write(tmp_path / "a.tar", tars.sample_members(5))
    packed = tmp_path / "p.tar.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    listed = stoker.lines("ls", packed)
    assert [sample["key"] for sample in listed] == [f"{i:06d}" for i in range(5)]
    for sample in listed:
        for place in sample["fields"].values():
            assert place == {"object": str(packed), "offset": None, "length": None}
    for field in ("npy", "cls"):
        same = stoker("cat", plain, 3, field, text=False).stdout
        assert stoker("cat", packed, 3, field, text=False).stdout == same


def test_paths_are_told_as_they_were_given(stoker, tmp_path):
    tars.write(tmp_path / "a.tar", tars.sample_members(1))
    given = stoker.lines("ls", "a.tar", cwd=tmp_path)[0]["fields"]["npy"]["object"]
    whole = stoker.lines("ls", tmp_path / "a.tar")[0]["fields"]["npy"]["object"]
    assert (given, whole) == ("a.tar", str(tmp_path / "a.tar"))
    uri = stoker.lines("ls", f"file://{tmp_path}/a.tar")[0]["fields"]["npy"]["object"]
    assert uri == str(tmp_path / "a.tar")


def test_the_table_has_a_line_a_sample(stoker, tensors):
    printed = stoker("ls", tensors / "shards").stdout.splitlines()
    assert len(printed) == 38 and printed[0].split() == ["SAMPLE", "KEY", "FIELDS"]
    assert printed[1].split()[:2] == ["0", "000000"] and "npy 416 B" in printed[1]


def test_stat_counts_fields_and_bytes(stoker, tmp_path):
    members = [("a.txt", b"12345"), ("a.cls", b"1"), ("b.txt", b"123"), ("c.cls", b"2")]
    told = stoker.json("ls", tars.write(tmp_path / "a.tar", members), "--stat")
    assert told["samples"] == 3 and told["objects"] == 1 and told["skipped"] == 0
    assert told["fields"]["txt"] == {"kind": "text", "samples": 2, "bytes": 8, "longest": 5}
    assert told["fields"]["cls"]["samples"] == 2
    assert "txt" in stoker("ls", tmp_path / "a.tar", "--stat").stdout


def test_class_folders_are_told(stoker, tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / "set" / name).mkdir(parents=True)
        for i in range(3):
            (tmp_path / "set" / name / f"{i}.txt").write_text(f"{name}{i}")
    told = stoker.json("ls", tmp_path / "set", "--stat")
    assert told["classes"] == ["cat", "dog"] and told["samples"] == 6
    assert stoker("cat", tmp_path / "set", 4, "cls").stdout == "1"
    last = stoker.lines("ls", tmp_path / "set")[5]["fields"]
    assert last["cls"] == {"object": None, "offset": None, "length": None}
    assert last["txt"]["object"] == str(tmp_path / "set/dog/2.txt")


def test_cat_takes_numbers_and_keys(stoker, tmp_path):
    members = [(f"{key}.txt", key.encode()) for key in ("5", "0", "007", "x", "99")]
    path = tars.write(tmp_path / "a.tar", members)
    assert stoker("cat", path, "0", "txt").stdout == "5"  # a plain number is a sample's
    assert stoker("cat", path, "0", "txt", "--key").stdout == "0"
    assert stoker("cat", path, "007", "txt").stdout == "007"  # no plain number: a key
    assert stoker("cat", path, "x", "txt").stdout == "x"
    assert stoker("cat", path, "99", "txt").stdout == "99"  # no such sample: a key
    assert "5 samples" in stoker("cat", path, "6", "txt", status=1).stderr
    assert "00" in stoker("cat", path, "00", "txt", status=1).stderr
    assert "the fields are: txt" in stoker("cat", path, "0", "jpg", status=1).stderr


def test_cat_of_a_field_that_a_sample_lacks_fails(stoker, tmp_path):
    path = tars.write(tmp_path / "a.tar", [("a.txt", b"1"), ("b.cls", b"2")])
    assert "has no field cls" in stoker("cat", path, 0, "cls", status=1).stderr


def test_cat_of_several_sources_counts_through(stoker, tmp_path):
    for name in "ab":
        tars.write(tmp_path / f"{name}.tar", [(f"{name}{i}.txt", b"%d" % i) for i in range(3)])
    sources = [tmp_path / "a.tar", tmp_path / "b.tar"]
    assert stoker("cat", *sources, 4, "txt").stdout == "1"
    assert stoker("cat", *sources, "b2", "txt").stdout == "2"


def test_index_tells_what_it_built(stoker, tmp_path):
    path = tars.write(tmp_path / "a.tar", tars.sample_members(50))
    told = stoker.json("index", path)
    assert told["built"] is True and told["samples"] == 50 and told["members"] == 100
    assert told["fields"] == 2 and told["objects"] == 1 and told["skipped"] == 0
    assert os.path.getsize(told["path"]) == told["index_bytes"]
    assert told["bytes_per_field"] == pytest.approx(told["index_bytes"] / 100)
    assert told["members_per_s"] > 0 and len(told["fingerprint"]) == 32
    again = stoker.json("index", path)
    assert again["built"] is False and again["fingerprint"] == told["fingerprint"]
    assert stoker.json("index", path, "--reindex")["built"] is True
    assert "up to date" in stoker("index", path).stdout


def test_the_index_lies_where_it_was_asked_for(stoker, tmp_path):
    path = tars.write(tmp_path / "a.tar", tars.sample_members(3))
    told = stoker.json("index", path, "--index", tmp_path / "my.index")
    assert told["path"] == str(tmp_path / "my.index") and (tmp_path / "my.index").exists()


def unwritable(tmp_path):
    """An environment in which the data folder and the cache take no index, for root too."""
    (tmp_path / ".stoker").write_text("in the way")
    (tmp_path / "cache").write_text("in the way")
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


def test_an_index_that_can_be_kept_nowhere_was_built(stoker, tmp_path):
    path = tars.write(tmp_path / "a.tar", tars.sample_members(3))
    environment, stoker.environment = (
        stoker.environment,
        {**stoker.environment, **unwritable(tmp_path)},
    )
    try:
        done = stoker("index", path, "--json")
    finally:
        stoker.environment = environment
    told = json.loads(done.stdout)
    assert told["built"] is True and told["members_per_s"] > 0
    assert "kept nowhere" in done.stderr and not os.path.exists(told["path"])


def test_a_full_disk_under_the_index_is_named_by_its_folder(stoker, tmp_path):
    """A limit on the length of files stands in for the disk."""
    tars.write(tmp_path / "a.tar", [(f"{i:05d}.txt", b"x") for i in range(20_000)])
    (tmp_path / "indexes").mkdir()

    def before():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = stoker(
        *("index", "a.tar", "--index", "indexes/my.index"),
        status=1,
        cwd=tmp_path,
        preexec_fn=before,
    )
    assert "File too large (object indexes)" in done.stderr
    assert list((tmp_path / "indexes").iterdir()) == []


def test_a_full_disk_under_the_data_leaves_the_cache_for_the_index(stoker, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(small)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no right to mount")
    try:
        tars.write(small / "a.tar", [(f"{i:05d}.txt", b"x") for i in range(20_000)])
        room = os.statvfs(small)
        (small / "full.tmp").write_bytes(bytes(room.f_bavail * room.f_frsize - 65536))
        told = stoker.json("index", small / "a.tar")
        assert told["samples"] == 20_000
        assert told["path"].startswith(stoker.environment["XDG_CACHE_HOME"])
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_entries_of_a_folder_that_are_left_out_are_counted_and_told(stoker, tmp_path):
    tars.write(tmp_path / "a.tar", tars.sample_members(3))
    (tmp_path / "b.tar").symlink_to("nowhere.tar")
    os.mkfifo(tmp_path / "c.tar")
    done = stoker("index", tmp_path, "--json")
    assert json.loads(done.stdout)["skipped"] == 2
    assert "2 entries are left out" in done.stderr


def test_a_shard_without_samples_tells_what_was_passed_over(stoker, tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name in ("a", "b"):
            info = tarfile.TarInfo(name)
            info.type = tarfile.DIRTYPE
            tar.addfile(info)
    done = stoker("ls", tmp_path / "a.tar", status=1)
    assert "holds no samples" in done.stderr and "2 entries were passed over" in done.stderr
    numpy.savez(tmp_path / "none.npz")
    assert "holds no samples" in stoker("ls", tmp_path / "none.npz", status=1).stderr


def test_links_and_folders_are_skipped_and_counted(stoker, tmp_path):
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        for name, kind in (
            ("folder", tarfile.DIRTYPE),
            ("soft.txt", tarfile.SYMTYPE),
            ("hard.txt", tarfile.LNKTYPE),
            ("pipe.txt", tarfile.FIFOTYPE),
            ("disk.txt", tarfile.BLKTYPE),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "elsewhere"
            tar.addfile(info)
        info = tarfile.TarInfo("a.txt")
        info.size = 1
        tar.addfile(info, io.BytesIO(b"x"))
    told = stoker.json("index", path)
    assert told["samples"] == 1 and told["skipped"] == 5


def test_a_changed_shard_is_indexed_anew(stoker, tmp_path):
    path = tars.write(tmp_path / "a.tar", tars.sample_members(3))
    assert len(stoker.lines("ls", path)) == 3
    tars.write(tmp_path / "a.tar", tars.sample_members(5))
    assert len(stoker.lines("ls", path)) == 5


def test_only_the_fields_asked_for_are_listed(stoker, tensors):
    listed = stoker.lines("ls", tensors / "shards", "--fields", "cls", "--limit", 1)
    assert list(listed[0]["fields"]) == ["cls"]
    done = stoker("ls", tensors / "shards", "--fields", "jpg", status=1)
    assert "jpg" in done.stderr


def test_raw_arrays_need_their_type_and_shape(stoker, tmp_path):
    values = numpy.arange(24, dtype=numpy.int16)
    (tmp_path / "a.raw").write_bytes(values.tobytes())
    assert "dtype and shape" in stoker("ls", tmp_path / "a.raw", status=1).stderr
    listed = stoker.lines("ls", tmp_path / "a.raw", "--dtype", "i16", "--shape", "2,3")
    assert len(listed) == 4
    place = next(iter(listed[2]["fields"].values()))
    assert (place["offset"], place["length"]) == (24, 12)
    shape = ["--dtype", "i16", "--shape", "4294967296,4294967296"]
    assert "more bytes" in stoker("ls", tmp_path / "a.raw", *shape, status=2).stderr


def test_a_limit_of_nothing_lists_nothing(stoker, tensors):
    assert stoker.lines("ls", tensors / "shards", "--limit", 0) == []


def test_text_that_is_no_utf8_is_still_json(stoker, tmp_path):
    path = tmp_path / "a.tar"
    path.write_bytes(tars.member(b'k\xff\xfe"\\\n.txt', b"1") + tars.END)
    line = stoker("ls", path, "--json", text=False).stdout
    assert json.loads(line.decode())["key"] == 'k\ufffd\ufffd"\\\n'


@pytest.mark.parametrize("what", ["missing", "folder", "text", "denied"])
def test_a_source_that_is_none_fails_with_the_reason(stoker, tmp_path, what):
    path = tmp_path / f"{what}.tar"
    if what == "folder":
        path.mkdir()
    elif what != "missing":
        path.write_text("hello")
    if what == "denied":
        path.chmod(0)
        if os.access(path, os.R_OK):
            pytest.skip("root may read everything")
    done = stoker("ls", path, status=1)
    assert done.stdout == "" and str(path) in done.stderr and done.stderr.startswith("stoker: ")


def test_members_that_samples_lack_are_not_counted(stoker, tmp_path):
    path = tars.write(tmp_path / "a.tar", [("a.txt", b"1"), ("a.cls", b"1"), ("b.txt", b"1")])
    assert stoker.json("index", path)["members"] == 3
    assert stoker.json("index", path, "--fields", "cls")["members"] == 1


def test_names_cannot_play_tricks_on_a_terminal(stoker, tmp_path):
    (tmp_path / "a.tar").write_bytes(tars.member(b"k\x1b[2J\r.t\x07xt", b"1") + tars.END)
    for arguments in (["ls"], ["ls", "--stat"], ["cat", 0, "none"], ["check"]):
        done = stoker(arguments[0], tmp_path / "a.tar", *arguments[1:], status=None)
        assert not set(done.stdout + done.stderr) & set("\x1b\r\x07")
