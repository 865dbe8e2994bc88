"""`stoker pack -o s3://...`: there whole, or not at all; and an index beside the data."""

import base64
import hashlib

import pytest
from store_runs import ACCOUNT

TARGETS = pytest.mark.parametrize(
    ("kind", "target"),
    [("s3", "s3://out/packed"), ("az", f"az://{ACCOUNT}/out/packed")],
)


def names(server):
    return sorted(name for name in server.objects.made if name.endswith(".tar"))


@TARGETS
def test_packing_to_a_store_gives_the_same_data_set(place, lake, kind, target):
    server, stoker, _ = place(kind)
    local = lake / "bucket" / "train"
    stoker("pack", local, "-o", target, "--to", "tar", "--shard-size", "1MiB")
    assert names(server)
    assert stoker.digest(target) == stoker.digest(local)


@TARGETS
def test_packing_goes_through_faults(place, lake, kind, target):
    server, stoker, _ = place(kind)
    server.fault("status", "*", method="PUT", status=500, chance=0.3, times=6)
    server.fault("reset", "*", method="PUT", chance=0.2, times=3)
    local = lake / "bucket" / "train"
    stoker("pack", local, "-o", target, "--to", "tar", "--shard-size", "1MiB")
    assert stoker.digest(target) == stoker.digest(local)


@TARGETS
def test_an_upload_that_fails_leaves_no_object_there(place, lake, kind, target):
    server, stoker, _ = place(kind)
    server.fault("status", "*.tar", method="PUT", status=403, code="AccessDenied")
    server.fault("status", "*.tar", method="POST", status=403, code="AccessDenied")
    done = stoker(
        *("pack", lake / "bucket" / "train", "-o", target, "--to", "tar", "--timeout", 5), status=1
    )
    assert done.stderr.startswith("stoker: ") and names(server) == []


@TARGETS
def test_a_large_shard_goes_up_in_parts(place, tmp_path, kind, target):
    server, stoker, _ = place(kind)
    stoker(
        *("gen", "tensors", "-o", tmp_path / "large", "--shards", 1, "--samples", 24),
        *("--shape", "1000000", "--dtype", "u8"),
    )
    stoker("pack", tmp_path / "large", "-o", target, "--to", "tar", "--shard-size", "1GiB")
    (name,) = names(server)
    parts = [
        r for r in server.requests
        if r.method == "PUT" and ("partNumber=" in r.target or "comp=block" in r.target)
    ]  # fmt: skip
    assert len(parts) > 1 and server.objects.made[name].size > 24_000_000
    assert stoker.digest(target) == stoker.digest(tmp_path / "large")


LOCKED = pytest.mark.parametrize(
    ("kind", "target"), [("s3", "s3://out/packed"), ("gs", "gs://out/packed")]
)


def large(stoker, tmp_path, shape=1_000_000):
    """A data set whose one shard goes up in two parts, unless its tensors are small."""
    stoker(
        *("gen", "tensors", "-o", tmp_path / "large", "--shards", 1, "--samples", 9),
        *("--shape", shape, "--dtype", "u8"),
    )
    return tmp_path / "large", ("--to", "tar", "--shard-size", "1GiB")


@LOCKED
def test_a_bucket_with_object_lock_takes_uploads(place, tmp_path, kind, target):
    server, stoker, _ = place(kind, object_lock=True)
    local, how = large(stoker, tmp_path)
    stoker("pack", local, "-o", target, *how)
    puts = [r for r in server.requests if r.method == "PUT"]
    for request in puts:
        right = base64.b64encode(hashlib.md5(request.body).digest()).decode()
        assert request.header("Content-MD5") == right
    assert sum("partNumber=" in r.target for r in puts) == 2
    assert any("partNumber=" not in r.target for r in puts)  # the notes
    assert stoker.digest(target) == stoker.digest(local)


@LOCKED
def test_what_is_damaged_on_its_way_there_is_sent_again(place, tmp_path, kind, target):
    server, stoker, _ = place(kind)
    server.keys = {}  # a signature's own hash would find it too
    local, how = large(stoker, tmp_path)
    told = []

    def damage(request):
        told.append(request.header("Content-MD5"))
        request.body = request.body[:-1] + bytes([request.body[-1] ^ 1])

    server.fault("call", "*.tar", method="PUT", query="partNumber=2", call=damage, times=2)
    stoker("pack", local, "-o", target, *how)
    again = [r for r in server.requests if r.method == "PUT" and "partNumber=2" in r.target]
    assert [r.header("Content-MD5") for r in again] == [told[0]] * 3
    assert stoker.digest(target) == stoker.digest(local)


@LOCKED
def test_what_is_always_damaged_on_its_way_is_told_and_not_there(place, tmp_path, kind, target):
    server, stoker, _ = place(kind)
    server.keys = {}
    local, how = large(stoker, tmp_path, shape=10)

    def damage(request):
        request.body = b"?" + request.body[1:]

    server.fault("call", "*.tar", method="PUT", call=damage)
    done = stoker("pack", local, "-o", target, *how, "--timeout", 2, status=1)
    assert "BadDigest" in done.stderr and names(server) == []


def test_moto_takes_uploads(moto, stoker, lake):
    command = stoker.with_environment(**moto.environment())
    moto.client().create_bucket(Bucket="out")
    command("pack", lake / "bucket" / "train", "-o", "s3://out/packed", "--to", "tar")
    assert command.digest("s3://out/packed") == command.digest(lake / "bucket" / "train")


def test_azurite_takes_uploads(azurite, stoker, lake):
    command = stoker.with_environment(**azurite.environment())
    azurite.client().create_container("out")
    target = f"az://{ACCOUNT}/out/packed"
    command("pack", lake / "bucket" / "train", "-o", target, "--to", "tar")
    assert command.digest(target) == command.digest(lake / "bucket" / "train")


@TARGETS
def test_an_index_is_written_beside_the_data(place, lake, kind, target):
    server, stoker, source = place(kind)
    stoker("index", source)
    assert any(".stoker" in name or name.endswith(".index") for name in server.objects.made)
    server.forget()
    other = stoker.with_environment(XDG_CACHE_HOME=str(stoker.home / "fresh"))
    other("stream", source, "--batch-size", 8, "--stop-after", 1)
    firsts = {request.header("Range") for request in server.reads(".tar")}
    assert server.reads(".index") and not any("bytes=0-" in first for first in firsts)
