"""Faults 1 to 22 of tar shards: the command says what and where, and ends with status 1."""

import gzip
import io
import json
import os
import tarfile

import numpy
import pytest
import tars
from tars import END, GOOD, header, member, padded, pax, record

BIG = 1 << 61


def base256(value):
    """A size in GNU's binary form."""
    return (value & ((1 << 95) - 1) | (1 << 95)).to_bytes(12, "big")


# name of the fault -> the bytes of the shard
BROKEN = {
    "1 truncated in the header": GOOD + header()[:300],
    "2 truncated in the body": GOOD + header(b"b.bin", size=5000) + bytes(1000),
    "4 bad checksum": GOOD + header(b"b.cls", checksum=b"000001\0 ") + padded(b"1") + END,
    "5 size of octal garbage": GOOD + header(b"b.cls", size=b"12x45678901\0") + END,
    "6 negative size in base 256": GOOD + header(b"b.cls", size=b"\xff" * 12) + END,
    "7 size larger than the file": GOOD + header(b"b.cls", size=0o77777777777) + END,
    "7 size over 2^60": GOOD + header(b"b.cls", size=base256(BIG)) + END,
    "8 size of 2^63 by pax": GOOD + pax(record(b"size", b"9223372036854775808"))
    + member(b"b.cls", b"1") + END,
    "8 size of INT64_MAX by pax": GOOD + pax(record(b"size", b"9223372036854775807"))
    + member(b"b.cls", b"1") + END,
    "9 pax length overflows": GOOD + pax(b"99999999999999999999999 path=x\n")
    + member(b"b.cls", b"1") + END,
    "9 pax length past the block": GOOD + pax(b"999 path=x\n") + member(b"b.cls", b"1") + END,
    "9 pax length of zero": GOOD + pax(b"0 path=x\n") + member(b"b.cls", b"1") + END,
    "9 pax without a length": GOOD + pax(b" path=x\n") + member(b"b.cls", b"1") + END,
    "10 pax block of 4 GiB": GOOD + header(b"././@PaxHeader", size=1 << 32, type=b"x") + END,
    "11 pax without a newline": GOOD + pax(b"9 path=xx") + member(b"b.cls", b"1") + END,
    "11 pax without an equals sign": GOOD + pax(b"8 pathx\n") + member(b"b.cls", b"1") + END,
    "13 huge global header": GOOD + header(b"g", size=1 << 30, type=b"g") + END,
    "14 volume header of negative size": GOOD + header(b"v", size=b"\xff" * 12, type=b"V") + END,
    "15 old GNU sparse": GOOD + header(b"b.cls", size=1, type=b"S") + padded(b"1") + END,
    "15 GNU sparse 1.0": GOOD + pax(record(b"GNU.sparse.major", b"1")
    + record(b"GNU.sparse.minor", b"0") + record(b"GNU.sparse.name", b"b.cls")
    + record(b"GNU.sparse.realsize", b"100")) + member(b"b.cls", b"1\n0\n1\n") + END,
    "19 a field twice in a sample": GOOD + member(b"000000.cls", b"8") + END,
    "22 random bytes": bytes(numpy.random.default_rng(0).integers(0, 256, 4096, numpy.uint8)),
    "22 an error page": b"<!DOCTYPE html><html><body>404 Not Found</body></html>" * 30,
    "22 nothing": b"",
    "22 only zeros": END,
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN)
@pytest.mark.parametrize("command", ["verify", "ls"])
def test_a_broken_shard_is_an_error_that_names_it(stoker, tmp_path, fault, command):
    path = tmp_path / "broken.tar"
    path.write_bytes(BROKEN[fault])
    done = stoker(command, path, status=1)
    assert done.stderr.startswith("stoker: ") and str(path) in done.stderr
    assert "Sanitizer" not in done.stderr
    left = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert all(name == "broken.tar" or name.endswith(".index") for name in left)


def test_a_broken_shard_is_listed_as_bad_for_scripts(stoker, tmp_path):
    tars.write(tmp_path / "a.tar", tars.sample_members(3))
    (tmp_path / "b.tar").write_bytes(BROKEN["2 truncated in the body"])
    told = stoker.json("verify", tmp_path, status=1)
    assert told["bad_count"] == 1
    (bad,) = told["bad"]
    assert bad["object"] == str(tmp_path / "b.tar") and bad["offset"] == 1024 and bad["reason"]
    assert stoker("verify", tmp_path / "none.tar", "--json", status=1).stdout == ""


@pytest.mark.parametrize("save", [numpy.savez, numpy.savez_compressed])
def test_fault_33_a_changed_byte_in_an_npz_is_found_by_its_checksum(stoker, tmp_path, save):
    values = numpy.random.default_rng(0).random((50, 40), numpy.float32)
    for name in ("a.npz", "b.npz"):
        save(tmp_path / name, x=values)
    assert stoker.json("verify", tmp_path / "a.npz")["bad"] == []
    assert stoker.json("verify", tmp_path)["bad"] == []
    data = bytearray((tmp_path / "b.npz").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "b.npz").write_bytes(data)
    for source in (tmp_path / "b.npz", tmp_path):
        told = stoker.json("verify", source, status=1)
        assert told["bad_count"] > 0
        for bad in told["bad"]:
            assert bad["object"] == str(tmp_path / "b.npz") and "checksum" in bad["reason"]
    if save is numpy.savez_compressed:  # decoded whole, so nothing wrong is ever delivered
        done = stoker("stream", tmp_path / "b.npz", "--batch-size", 8, status=1)
        assert "checksum" in done.stderr


def test_what_is_broken_behind_is_found_at_its_place(stoker, tmp_path):
    good = b"".join(member(b"%06d.cls" % i, b"1") for i in range(10))
    (tmp_path / "a.tar").write_bytes(good + header(b"x.cls", checksum=b"000001\0 ") + END)
    done = stoker("verify", tmp_path / "a.tar", status=1)
    assert f"offset {len(good)}" in done.stderr


def test_fault_2_a_partial_sample_is_never_listed(stoker, tmp_path):
    whole = tars.write(tmp_path / "a.tar", tars.sample_members(10)).read_bytes()
    for cut in range(0, 20 * 1024, 700):
        path = tmp_path / "cut.tar"
        path.write_bytes(whole[:cut])
        done = stoker("ls", path, "--json", status=None)
        assert done.returncode in (0, 1)
        for line in done.stdout.splitlines():
            for place in json.loads(line)["fields"].values():
                assert place["offset"] + place["length"] <= cut
        if cut % 512:
            assert done.returncode == 1


def test_fault_3_a_clean_cut_is_read_and_told(stoker, tmp_path):
    (tmp_path / "a.tar").write_bytes(GOOD + member(b"000001.cls", b"8"))
    done = stoker("ls", tmp_path / "a.tar", "--json")
    assert len(done.stdout.splitlines()) == 2
    assert "stoker: note:" in done.stderr


def test_fault_12_the_last_extended_header_wins(stoker, tmp_path):
    (tmp_path / "a.tar").write_bytes(
        pax(record(b"path", b"first.txt")) + pax(record(b"path", b"second.txt"))
        + member(b"x.txt", b"1")
        + member(b"././@LongLink", b"third.txt\0", type=b"L")
        + member(b"././@LongLink", b"fourth.txt\0", type=b"L")
        + member(b"y.txt", b"2") + END
    )  # fmt: skip
    assert [line["key"] for line in stoker.lines("ls", tmp_path / "a.tar")] == ["second", "fourth"]


def test_fault_16_what_is_no_plain_file_is_skipped_and_counted(stoker, tmp_path):
    data = b"".join(header(b"l.txt", size=0, type=kind) for kind in (b"1", b"2", b"3", b"4", b"6"))
    (tmp_path / "a.tar").write_bytes(data + GOOD + END)
    told = stoker.json("index", tmp_path / "a.tar")
    assert (told["samples"], told["skipped"]) == (1, 5)


@pytest.mark.parametrize(
    "name", ["../../x.txt", "/etc/x.txt", "a/../../x.txt", "n" * (1 << 20) + ".txt"]
)
def test_fault_17_a_name_is_a_key_and_never_a_path(stoker, tmp_path, name):
    path = tars.write(tmp_path / "a.tar", [(name, b"inside")], tarfile.PAX_FORMAT)
    done = stoker("ls", path, "--json", status=None)
    if done.returncode == 0:
        assert json.loads(done.stdout)["key"] == name.removesuffix(".txt")
        assert stoker("cat", path, 0, "txt").stdout == "inside"
    else:
        assert str(path) in done.stderr
    assert set(os.listdir(tmp_path)) <= {"a.tar", ".stoker"}


def test_fault_18_empty_files_are_samples(stoker, tmp_path):
    path = tars.write(tmp_path / "a.tar", [("a.bin", b""), ("b.bin", b"x")])
    listed = stoker.lines("ls", path)
    assert [line["fields"]["bin"]["length"] for line in listed] == [0, 1]
    assert stoker("cat", path, 0, "bin").stdout == ""
    assert stoker.json("verify", path)["bad_count"] == 0


def test_fault_18_a_name_of_nothing_is_defined(stoker, tmp_path):
    (tmp_path / "a.tar").write_bytes(member(b"", b"1") + GOOD + END)
    done = stoker("ls", tmp_path / "a.tar", "--json", status=None)
    assert done.returncode in (0, 1)
    if done.returncode == 0:
        assert [json.loads(line)["key"] for line in done.stdout.splitlines()] == ["000000"]


def test_fault_19_a_sample_split_over_shards_is_two_that_lack_fields(stoker, tmp_path):
    tars.write(tmp_path / "a.tar", [("k.txt", b"1")])
    tars.write(tmp_path / "b.tar", [("k.cls", b"1")])
    told = stoker.json("verify", tmp_path / "{a,b}.tar", "--fields", "txt,cls", status=1)
    assert told["samples"] == 2 and [bad["sample"] for bad in told["bad"]] == [0, 1]
    assert told["bad"][0]["key"] == "k" and "cls" in told["bad"][0]["reason"]
    told = stoker.json("verify", tmp_path / "{a,b}.tar", "--fields", "txt?,cls?")
    assert told["bad"] == []


def test_fault_20_concatenated_tars_are_read_to_the_end(stoker, tmp_path):
    (tmp_path / "a.tar").write_bytes(GOOD + END + member(b"000001.cls", b"2") + END)
    assert len(stoker.lines("ls", tmp_path / "a.tar")) == 2


def test_fault_20_garbage_behind_the_end_is_told_or_passed(stoker, tmp_path):
    (tmp_path / "a.tar").write_bytes(GOOD + END + b"garbage" * 100)
    done = stoker("ls", tmp_path / "a.tar", "--json", status=None)
    assert done.returncode in (0, 1)
    assert done.stderr != ""


@pytest.mark.parametrize("ratio", ["many bytes", "a bomb"])
def test_fault_21_a_bomb_is_stopped_at_the_cap(stoker, tmp_path, ratio):
    size = (80 << 20) if ratio == "a bomb" else (4 << 20)
    data = bytes(size) if ratio == "a bomb" else os.urandom(size)
    path = tmp_path / "a.tar.gz"
    with gzip.open(path, "wb", compresslevel=1 if ratio == "many bytes" else 9) as file:
        file.write(header(b"a.bin", size=size) + data + END)
    more = [] if ratio == "a bomb" else ["--chunk-limit", "1MiB"]
    done = stoker("verify", path, *more, status=1)
    assert str(path) in done.stderr


def test_a_bad_value_is_listed_with_its_place(stoker, tmp_path):
    good = tars.npy(numpy.zeros((2, 3), numpy.float32))
    members = [
        ("a.npy", good), ("a.cls", b"1"), ("b.npy", good[:-5]), ("b.cls", b"1"),
        ("c.npy", good), ("c.cls", b"seven"), ("d.npy", b"\x93NUMBY" + good[6:]), ("d.cls", b"1"),
        ("e.npy", tars.npy(numpy.zeros(4, numpy.int8))), ("e.cls", b"2"),
    ]  # fmt: skip
    path = tars.write(tmp_path / "a.tar", members)
    with tarfile.open(path) as tar:
        offsets = {info.name: info.offset_data for info in tar}
    told = stoker.json("verify", path, status=1)
    assert told["samples"] == 5 and told["bad_count"] == 4
    assert [(bad["sample"], bad["key"], bad["field"]) for bad in told["bad"]] == [
        (1, "b", "npy"), (2, "c", "cls"), (3, "d", "npy"), (4, "e", "npy"),
    ]  # fmt: skip
    for bad in told["bad"]:
        assert set(bad) == {"object", "offset", "sample", "key", "field", "reason"}
        assert bad["object"] == str(path) and bad["reason"]
        assert bad["offset"] == offsets[f"{bad['key']}.{bad['field']}"]
    printed = stoker("verify", path, status=1).stdout
    assert printed.count("bad: ") == 4 and "5 samples" in printed


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_bad_samples_come_in_order_from_any_number_of_threads(stoker, tmp_path, threads):
    members = [(f"{i:04d}.cls", b"x" if i % 7 == 3 else b"1") for i in range(500)]
    path = tars.write(tmp_path / "a.tar", members)
    told = stoker.json("verify", path, "--threads", threads, status=1)
    assert [bad["sample"] for bad in told["bad"]] == list(range(3, 500, 7))


def test_a_good_set_has_no_bad_sample(stoker, tensors):
    told = stoker.json("verify", tensors / "shards")
    assert told["samples"] == 37 and told["bad"] == [] and told["bad_count"] == 0
    assert "37 samples" in stoker("verify", tensors / "shards").stdout


def test_a_corrupt_gzip_is_told(stoker, tmp_path):
    buf = io.BytesIO()
    with tarfile.open(fileobj=buf, mode="w") as tar:
        info = tarfile.TarInfo("a.bin")
        info.size = 100_000
        tar.addfile(info, io.BytesIO(os.urandom(100_000)))
    data = bytearray(gzip.compress(buf.getvalue()))
    data[len(data) // 2] ^= 0xFF
    (tmp_path / "a.tar.gz").write_bytes(data)
    done = stoker("verify", tmp_path / "a.tar.gz", status=1)
    assert str(tmp_path / "a.tar.gz") in done.stderr + done.stdout
