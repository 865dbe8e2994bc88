"""`stoker pack`: what it writes, read by tarfile and webdataset, and what it refuses."""

import fcntl
import io
import os
import resource
import signal
import subprocess
import tarfile

import numpy
import pytest
import tars


def read_tars(folder, pattern="shard-*.tar"):
    """(name, bytes) of every member, by tarfile."""
    members = []
    for path in sorted(folder.glob(pattern)):
        with tarfile.open(path) as tar:
            for info in tar:
                assert info.isreg() and info.mtime == info.uid == info.gid == 0
                members.append((info.name, tar.extractfile(info).read()))
    return members


def write_files(folder, members):
    for name, data in members:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def by_sample(members):
    """WebDataset's view: fields of a key, whatever their order."""
    return sorted(members)


@pytest.fixture
def files(tmp_path):
    return write_files(tmp_path / "files", tars.sample_members(20, ("npy", "cls", "txt")))


def test_a_folder_becomes_shards_that_tarfile_reads(stoker, tmp_path, files):
    told = stoker.json("pack", files, "-o", tmp_path / "out", "--to", "tar")
    assert sorted(os.listdir(tmp_path / "out")) == ["shard-0000.tar"]
    members = read_tars(tmp_path / "out")
    assert by_sample(members) == by_sample(tars.sample_members(20, ("npy", "cls", "txt")))
    assert told["samples"] == 20 and told["shards"] == 1
    assert told["bytes"] == (tmp_path / "out/shard-0000.tar").stat().st_size


def test_webdataset_reads_the_shards(stoker, tmp_path, files):
    webdataset = pytest.importorskip("webdataset")
    stoker("pack", files, "-o", tmp_path / "out", "--to", "tar", "--shard-samples", 7)
    urls = [str(path) for path in sorted((tmp_path / "out").iterdir())]
    read = list(webdataset.WebDataset(urls, shardshuffle=False).decode())
    assert [sample["__key__"] for sample in read] == [f"{i:06d}" for i in range(20)]
    for i, sample in enumerate(read):
        numpy.testing.assert_array_equal(sample["npy"], numpy.full((2, 3), i, numpy.float32))
        assert sample["cls"] == i % 3 and sample["txt"] == f"sample {i}"


def test_gnu_tar_reads_the_shards(stoker, tmp_path, files):
    write_files(files, [("d" * 120 + "/" + "e" * 130 + ".txt", b"long")])
    stoker("pack", files, "-o", tmp_path / "out", "--to", "tar")
    shard = tmp_path / "out/shard-0000.tar"
    done = subprocess.run(["tar", "-tf", shard], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.split() == [name for name, _ in read_tars(tmp_path / "out")]


def test_the_same_input_gives_the_same_bytes(stoker, tmp_path, files):
    for name in ("a", "b"):
        stoker("pack", files, "-o", tmp_path / name, "--to", "tar")
        os.utime(files / "000000.txt", (1, 1))
    assert (tmp_path / "a/shard-0000.tar").read_bytes() == (
        tmp_path / "b/shard-0000.tar"
    ).read_bytes()


def test_loose_tensors_packed_are_the_generated_shards(stoker, tensors, tmp_path):
    stoker("pack", tensors / "loose", "-o", tmp_path, "--to", "tar", "--shard-samples", 37)
    whole = read_tars(tensors / "shards")
    assert by_sample(read_tars(tmp_path)) == by_sample(whole)


def test_shards_stay_within_the_size(stoker, tmp_path):
    members = [(f"{i:03d}.bin", bytes([i]) * (1000 * i)) for i in range(40)]
    files = write_files(tmp_path / "files", members)
    stoker("pack", files, "-o", tmp_path / "out", "--to", "tar", "--shard-size", "100KiB")
    paths = sorted((tmp_path / "out").iterdir())
    assert len(paths) > 5 and all(path.stat().st_size <= 100 * 1024 for path in paths)
    assert read_tars(tmp_path / "out") == members


def test_a_sample_larger_than_a_shard_gets_one_of_its_own(stoker, tmp_path):
    members = [("a.bin", b"1" * 100), ("b.bin", b"2" * 50000), ("c.bin", b"3" * 100)]
    files = write_files(tmp_path / "files", members)
    stoker("pack", files, "-o", tmp_path / "out", "--to", "tar", "--shard-size", "10KiB")
    assert len(os.listdir(tmp_path / "out")) == 3
    assert read_tars(tmp_path / "out") == members


def test_shards_hold_so_many_samples(stoker, tmp_path, files):
    stoker(
        *("pack", files, "-o", tmp_path / "out", "--to", "tar", "--shard-samples", 6),
        *("--prefix", "train"),
    )
    names = [f"train-{i:04d}.tar" for i in range(4)]
    assert sorted(os.listdir(tmp_path / "out")) == names
    counts = [len(read_tars(tmp_path / "out", name)) // 3 for name in names]
    assert counts == [6, 6, 6, 2]


def test_class_folders_get_a_cls_member(stoker, tmp_path):
    members = [(f"{name}/{i}.txt", f"{name}{i}".encode()) for name in ("cat", "dog") for i in "01"]
    files = write_files(tmp_path / "files", members)
    stoker("pack", files, "-o", tmp_path / "out", "--to", "tar")
    packed = dict(read_tars(tmp_path / "out"))
    assert packed["cat/0.cls"] == b"0" and packed["dog/1.cls"] == b"1"
    assert packed["dog/1.txt"] == b"dog1" and len(packed) == 8
    stoker("pack", files, "-o", tmp_path / "some", "--to", "tar", "--fields", "txt")
    assert dict(read_tars(tmp_path / "some")) == packed


def test_rows_of_an_array_become_npy_files(stoker, tmp_path):
    rows = numpy.arange(24, dtype=">i4").reshape(4, 2, 3)
    numpy.save(tmp_path / "rows.npy", rows)
    stoker("pack", tmp_path / "rows.npy", "-o", tmp_path / "out", "--to", "tar")
    packed = read_tars(tmp_path / "out")
    assert len(packed) == 4 and all(name.endswith(".npy") for name, _ in packed)
    for row, (_, data) in zip(rows, packed, strict=True):
        numpy.testing.assert_array_equal(numpy.load(io.BytesIO(data)), row)
    assert stoker.json("verify", tmp_path / "out")["samples"] == 4


def test_arrays_of_an_npz_keep_their_names(stoker, tmp_path):
    x, y = numpy.random.default_rng(0).random((5, 2)), numpy.arange(5)
    numpy.savez(tmp_path / "a.npz", x=x, y=y)
    stoker("pack", tmp_path / "a.npz", "-o", tmp_path / "out", "--to", "tar")
    packed = read_tars(tmp_path / "out")
    assert [name.split(".", 1)[1] for name, _ in packed[:2]] == ["x.npy", "y.npy"]
    got = [numpy.load(io.BytesIO(data)) for _, data in packed]
    numpy.testing.assert_array_equal(numpy.stack(got[0::2]), x)
    numpy.testing.assert_array_equal(numpy.stack(got[1::2]), y)


def test_only_the_first_alternative_is_packed_under_its_own_name(stoker, tmp_path):
    members = [("a.jpg", b"1"), ("a.png", b"2"), ("b.png", b"3"), ("c.jpg", b"4")]
    files = write_files(tmp_path / "files", members)
    stoker("pack", files, "-o", tmp_path / "out", "--to", "tar", "--fields", "jpg;png")
    assert read_tars(tmp_path / "out") == [("a.jpg", b"1"), ("b.png", b"3"), ("c.jpg", b"4")]


def test_compressed_shards_are_packed_plain(stoker, tmp_path):
    members = tars.sample_members(9)
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    stoker("pack", tmp_path / "a.tar.gz", "-o", tmp_path / "out", "--to", "tar")
    assert read_tars(tmp_path / "out") == members


def test_neighbours_of_one_key_do_not_become_one_sample(stoker, tmp_path):
    for name in "ab":
        tars.write(tmp_path / f"{name}.tar", [("same.txt", name.encode())])
    stoker("pack", tmp_path / "a.tar", tmp_path / "b.tar", "-o", tmp_path / "out", "--to", "tar")
    assert [data for _, data in read_tars(tmp_path / "out")] == [b"a", b"b"]
    assert len(stoker.lines("ls", tmp_path / "out")) == 2


@pytest.mark.parametrize("length", [99, 100, 101, 150, 155, 156, 200, 255, 256, 257, 1000, 9000])
def test_names_of_any_length_come_through(stoker, tmp_path, length):
    key = "/".join(["k" * 60] * (length // 61 + 1))[: length - 4]
    key = key[:-1] + "z" if key.endswith("/") else key
    source = tars.write(tmp_path / "a.tar", [(key + ".txt", b"1")], tarfile.PAX_FORMAT)
    stoker("pack", source, "-o", tmp_path / "out", "--to", "tar")
    assert read_tars(tmp_path / "out") == [(key + ".txt", b"1")]
    assert stoker.lines("ls", tmp_path / "out")[0]["key"] == key


@pytest.mark.parametrize("length", [90, 99, 100, 101, 120, 300])
def test_names_without_a_place_to_cut_come_through(stoker, tmp_path, length):
    key = "ö" * (length // 2 - 2)
    source = tars.write(tmp_path / "a.tar", [(key + ".txt", b"1")], tarfile.PAX_FORMAT)
    stoker("pack", source, "-o", tmp_path / "out", "--to", "tar")
    assert read_tars(tmp_path / "out") == [(key + ".txt", b"1")]


def test_shards_that_are_there_are_not_replaced_without_force(stoker, tmp_path, files):
    pack = ["pack", files, "-o", tmp_path / "out", "--to", "tar"]
    stoker(*pack, "--shard-samples", 2)
    before = sorted(os.listdir(tmp_path / "out"))
    assert "--force" in stoker(*pack, status=1).stderr
    assert sorted(os.listdir(tmp_path / "out")) == before
    stoker(*pack, "--prefix", "other")
    stoker(*pack, "--force")
    assert sorted(os.listdir(tmp_path / "out")) == ["other-0000.tar", "shard-0000.tar"]


def test_a_folder_that_holds_the_source_is_refused(stoker, tmp_path, files):
    for out in (files, tmp_path, files / ".." / "files"):
        done = stoker("pack", files, "-o", out, "--to", "tar", status=1)
        assert "lies in the folder" in done.stderr
    stoker("pack", files, "-o", files / "shards", "--to", "tar")
    assert sorted(path.name for path in tmp_path.rglob("*.tar")) == ["shard-0000.tar"]


@pytest.mark.parametrize("prefix", ["a/b", ".hidden", "../up"])
def test_a_prefix_that_is_no_name_is_refused(stoker, tmp_path, files, prefix):
    stoker("pack", files, "-o", tmp_path / "out", "--to", "tar", "--prefix", prefix, status=2)
    assert not (tmp_path / "out").exists()


def test_a_full_disk_leaves_nothing_behind(stoker, tmp_path):
    """A limit on the length of files stands in for the disk."""
    files = write_files(tmp_path / "files", [(f"{i}.bin", bytes(100_000)) for i in range(20)])
    stoker("index", files)

    def before():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))

    done = stoker("pack", files, "-o", tmp_path / "out", "--to", "tar", status=1, preexec_fn=before)
    assert "File too large" in done.stderr and f"{tmp_path}/out/shard-0000.tar" in done.stderr
    assert not (tmp_path / "out").exists()
    done = stoker(
        *("gen", "tensors", "-o", tmp_path / "gen", "--samples", 20, "--shards", 1),
        *("--shape", "100000", "--dtype", "u8"),
        status=1,
        preexec_fn=before,
    )
    assert "File too large" in done.stderr and f"{tmp_path}/gen/shard-0000.tar" in done.stderr
    assert not (tmp_path / "gen").exists()


def test_a_bad_sample_ends_it_and_leaves_nothing_behind(stoker, tmp_path):
    path = tmp_path / "c.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        info = tarfile.TarInfo("a.bin")
        info.size = 100_000
        tar.addfile(info, io.BytesIO(os.urandom(100_000)))
    stoker("index", path)
    times = path.stat()
    data = bytearray(path.read_bytes())
    data[50_000] ^= 0xFF
    with open(path, "r+b") as file:
        file.write(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    done = stoker("pack", path, "-o", tmp_path / "out", "--to", "tar", status=1)
    assert str(path) in done.stderr
    assert not (tmp_path / "out").exists()


def test_what_a_killed_run_left_is_no_hindrance(stoker, tmp_path, files):
    hidden = tmp_path / "out" / ".shard.part"
    hidden.mkdir(parents=True)
    (hidden / "0").write_bytes(b"half a shard")
    stoker("pack", files, "-o", tmp_path / "out", "--to", "tar")
    assert sorted(os.listdir(tmp_path / "out")) == ["shard-0000.tar"]


def test_two_at_once_do_not_mix(stoker, tmp_path, files):
    hidden = tmp_path / "out" / ".shard.part"
    hidden.mkdir(parents=True)
    held = os.open(hidden, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    done = stoker("pack", files, "-o", tmp_path / "out", "--to", "tar", status=1)
    assert "another process" in done.stderr and hidden.exists()
    os.close(held)
    stoker("pack", files, "-o", tmp_path / "out", "--to", "tar")
