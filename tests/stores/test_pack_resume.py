"""`stoker pack -o URI` again: what is there is not sent twice, and nothing is left behind."""

import json
import signal
import time

import pytest
from store_runs import ACCOUNT

TARGETS = pytest.mark.parametrize(
    ("kind", "target"),
    [("s3", "s3://out/packed"), ("az", f"az://{ACCOUNT}/out/packed")],
)
NOTES = "out/packed/.stoker/shard.pack.json"
PACK = ("--to", "tar", "--shard-size", "1MiB")


def shards(server):
    return sorted(name for name in server.objects.made if name.endswith(".tar"))


def sent(server):
    """The names of shards that were sent, whole or in parts."""
    return {r.path.rsplit("/", 1)[1] for r in server.requests
            if r.method == "PUT" and r.path.endswith(".tar")}  # fmt: skip


def noted(server):
    found = server.objects.made.get(NOTES)
    return json.loads(bytes(found.body)) if found else {"shards": [], "complete": False}


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


@TARGETS
def test_a_run_that_was_killed_is_gone_on_with(place, lake, tmp_path, kind, target):
    server, stoker, _ = place(kind)
    stoker = stoker.with_environment(TMPDIR=str(tmp_path))
    local = lake / "bucket" / "train"
    server.fault("status", "*shard-0002.tar", method="PUT", status=500)
    run = stoker.start("pack", local, "-o", target, *PACK, "--timeout", 120)
    wait_for(lambda: noted(server)["shards"])
    run.send_signal(signal.SIGKILL)
    run.communicate()
    there = {note["name"] for note in noted(server)["shards"]}
    assert there and not noted(server)["complete"]
    # nothing is left but a folder without files
    assert [
        path for path in tmp_path.rglob("*") if path.is_file() and "home" not in path.parts
    ] == []
    server.forget()
    done = stoker("pack", local, "-o", target, *PACK)
    assert "gone on with" in done.stderr
    assert not there & sent(server)
    assert noted(server)["complete"]
    assert stoker.digest(target) == stoker.digest(local)


@TARGETS
def test_a_whole_run_is_not_written_over(place, lake, tmp_path, kind, target):
    server, stoker, _ = place(kind)
    stoker = stoker.with_environment(TMPDIR=str(tmp_path))
    local = lake / "bucket" / "train"
    stoker("pack", local, "-o", target, *PACK)
    before = shards(server)
    assert before and not list(tmp_path.glob("stoker-pack-*"))
    refused = stoker("pack", local, "-o", target, *PACK, status=1)
    assert "--force" in refused.stderr
    server.forget()
    stoker("pack", local, "-o", target, *PACK, "--force")
    assert sent(server) == set()  # they are the same
    # fewer and larger ones: the others go
    stoker("pack", local, "-o", target, "--to", "tar", "--shard-size", "1GiB", "--force")
    assert len(shards(server)) == 1 < len(before)
    assert stoker.digest(target) == stoker.digest(local)


def test_a_shard_that_somebody_changed_is_sent_again(place, lake):
    server, stoker, _ = place("s3")
    local = lake / "bucket" / "train"
    stoker("pack", local, "-o", "s3://out/packed", *PACK)
    first = shards(server)[0]
    server.objects.put(first, bytes(server.objects.made[first].size))
    server.forget()
    stoker("pack", local, "-o", "s3://out/packed", *PACK, "--force")
    assert sent(server) == {first.rsplit("/", 1)[1]}
    assert stoker.digest("s3://out/packed") == stoker.digest(local)


def test_ctrl_c_ends_an_upload_that_stalls(place, lake, tmp_path):
    server, stoker, _ = place("s3")
    stoker = stoker.with_environment(TMPDIR=str(tmp_path))
    server.fault("status", "*.tar", method="PUT", status=503)
    run = stoker.start("pack", lake / "bucket" / "train", "-o", "s3://out/packed", *PACK)
    wait_for(lambda: sent(server))
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=30)
    assert run.returncode != 0 and shards(server) == []
    assert not list(tmp_path.glob("stoker-pack-*"))


@pytest.mark.parametrize("target", ["http://127.0.0.1:1/x", "https://127.0.0.1:1/x"])
def test_plain_http_is_not_written_to(stoker, lake, target):
    done = stoker("pack", lake / "bucket" / "train", "-o", target, "--to", "tar", status=1)
    assert "cannot be written to" in done.stderr


def test_synthetic_data_is_not_written_to_a_folder_named_like_a_uri(stoker, tmp_path):
    done = stoker("gen", "tensors", "-o", "s3://out/x", "--shards", 1, "--samples", 4,
                  "--shape", "4", status=1, cwd=tmp_path)  # fmt: skip
    assert "folder of this machine" in done.stderr
    assert not (tmp_path / "s3:").exists()


def test_a_source_is_not_packed_into_itself(place):
    _, stoker, source = place("s3")
    done = stoker("pack", source, "-o", "s3://bucket/train", "--to", "tar", status=1)
    assert "lies in the folder to write to" in done.stderr


def parts(server):
    puts = [r for r in server.requests if r.method == "PUT"]
    return [r for r in puts if "partNumber=" in r.target or "comp=block&" in r.target + "&"]


@TARGETS
def test_parts_of_a_shard_are_not_sent_again(place, tmp_path, kind, target):
    server, stoker, _ = place(kind)
    large = tmp_path / "large"
    stoker("gen", "tensors", "-o", large, "--shards", 1, "--samples", 24,
           "--shape", "1000000", "--dtype", "u8")  # fmt: skip
    finish = {"s3": ("POST", "uploadId="), "az": ("PUT", "comp=blocklist")}[kind]
    fault = server.fault("status", "*.tar", method=finish[0], query=finish[1], status=500)
    run = stoker.start("pack", large, "-o", target, "--to", "tar", "--timeout", 120)
    wait_for(lambda: fault.count)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    assert len(parts(server)) > 1 and shards(server) == []
    server.forget()
    stoker("pack", large, "-o", target, "--to", "tar")
    assert parts(server) == []
    assert stoker.digest(target) == stoker.digest(large)
