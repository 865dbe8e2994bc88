"""The commands of the cache: warm, and cache ls, stat, verify and clear."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from servers.fault_server import FaultServer

BLOCK = 1 << 20


@pytest.fixture(scope="module")
def shards(stoker, tmp_path_factory):
    """Three shards of 2.4 MB: of three blocks each."""
    folder = tmp_path_factory.mktemp("remote")
    stoker(
        *("gen", "tensors", "-o", folder / "shards", "--shards", 3, "--samples", 48),
        *("--shape", "100,125,3", "--dtype", "f32", "--seed", 1),
    )
    return folder


@pytest.fixture
def remote(shards):
    server = FaultServer(shards, kind="http")
    yield f"{server.url}/shards/shard-000{{0..2}}.tar"
    server.stop()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


def segments(folder):
    return sorted(folder.glob("stoker-blocks-*/s-*"))


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["cache"], "what to do"),
        (["cache", "drop"], "there is no cache drop"),
        (["cache", "ls"], "--cache FOLDER is missing"),
        (["cache", "ls", "more", "--cache", "x"], "too many"),
        (["warm"], "SRC is missing"),
    ],
)
def test_bad_usage_has_words(stoker, arguments, words):
    assert words in stoker(*arguments, status=2).stderr


@pytest.mark.parametrize("kind", ["ls", "stat", "verify", "clear"])
def test_a_folder_without_a_cache_is_told(stoker, tmp_path, kind):
    done = stoker("cache", kind, "--cache", tmp_path, status=1)
    assert "there is no cache in this folder" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_data_of_this_machine_needs_no_cache(stoker, tensors, folder):
    done = stoker("warm", tensors / "shards", "--cache", folder, status=2)
    assert "on this machine already" in done.stderr


def test_warming_without_a_cache_is_refused(stoker, remote):
    done = stoker("warm", remote, status=2)
    assert "no cache to fill" in done.stderr and "--cache" in done.stderr


def test_warm_fetches_what_is_not_there(stoker, remote, folder):
    options = ("--cache", folder, "--cache-size", "64MiB")
    told = stoker.json("warm", remote, *options)
    assert told["blocks"] == 9 and told["left_blocks"] == 0
    assert told["here_blocks"] + told["fetched_blocks"] == 9
    again = stoker.json("warm", remote, *options)
    assert again["here_blocks"] == 9 and again["fetched_bytes"] == 0
    assert "9 were there, 0 fetched" in stoker("warm", remote, *options).stdout


def test_warm_fetches_what_will_be_kept(stoker, remote, folder):
    told = stoker.json("warm", remote, "--cache", folder, "--cache-size", "5MiB")
    assert 0 < told["left_blocks"] < 9
    stat = stoker.json("cache", "stat", "--cache", folder)
    assert stat["disk_bytes"] <= stat["limit"] == 5 * BLOCK
    assert stat["blocks"] == 9 - told["left_blocks"]


def test_ls_and_stat_tell_what_is_there(stoker, remote, shards, folder):
    stoker("warm", remote, "--cache", folder, "--cache-size", "64MiB")
    lines = stoker.lines("cache", "ls", "--cache", folder)
    sizes = [path.stat().st_size for path in sorted((shards / "shards").glob("*.tar"))]
    assert [line["size"] for line in lines] == sizes
    assert [line["cached_bytes"] for line in lines] == sizes
    assert [line["uri"].rsplit("/", 1)[1] for line in lines] == [
        f"shard-000{number}.tar" for number in range(3)
    ]
    stat = stoker.json("cache", "stat", "--cache", folder)
    assert stat["objects"] == 3 and stat["blocks"] == 9 and stat["cached_bytes"] == sum(sizes)
    assert stat["limit"] == 64 * BLOCK and stat["hidden_files"] == 0
    text = stoker("cache", "ls", "--cache", folder).stdout
    assert text.count("100 %") == 3
    assert "9 blocks" in stoker("cache", "stat", "--cache", folder).stdout


def test_the_variable_names_the_cache(stoker, remote, folder, monkeypatch):
    monkeypatch.setitem(stoker.environment, "STOKER_CACHE", str(folder))
    monkeypatch.setitem(stoker.environment, "STOKER_CACHE_SIZE", "32MiB")
    stoker("warm", remote)
    assert stoker.json("cache", "stat")["limit"] == 32 * BLOCK


def test_a_stream_tells_what_the_cache_did(stoker, remote, folder):
    stream = ("stream", remote, "--batch-size", 8, "--cache", folder, "--cache-size", "64MiB")
    first = stoker.json(*stream)["cache"]
    assert first["misses"] >= 9 - first["hits"] and first["dropped"] == 0
    again = stoker.json(*stream)["cache"]
    assert again["misses"] == 0 and again["hits"] >= 9 and not again["disk_full"]
    assert "0 misses, 0 read past it" in stoker(*stream).stdout
    assert stoker.json("stream", remote, "--batch-size", 8)["cache"] is None


def test_verify_drops_what_is_damaged(stoker, remote, folder):
    options = ("--cache", folder)
    stoker("warm", remote, *options, "--cache-size", "64MiB")
    assert "9 blocks compared, 0 damaged" in stoker("cache", "verify", *options).stdout
    digest = stoker.json("stream", remote, "--batch-size", 8, *options)["digest"]
    for path in segments(folder):
        data = bytearray(path.read_bytes())
        for at in range(32768, len(data), 65536):  # behind the directory
            data[at] ^= 1
        path.write_bytes(data)
    found = stoker.json("cache", "verify", *options, status=1)
    assert found["bad_count"] == 9 and len(found["bad"]) == 9
    assert {bad["offset"] for bad in found["bad"]} == {0, BLOCK, 2 * BLOCK}
    assert stoker.json("cache", "verify", *options)["bad_count"] == 0
    assert stoker.json("cache", "stat", *options)["blocks"] == 0
    assert stoker.json("stream", remote, "--batch-size", 8, *options)["digest"] == digest


def test_clear_removes_everything_but_what_is_not_ours(stoker, remote, folder):
    options = ("--cache", folder)
    stoker("warm", remote, *options, "--cache-size", "64MiB")
    old = folder / "stoker-blocks-0"
    old.mkdir()
    (old / "anything").write_bytes(b"x" * 5000)
    (folder / "mine.txt").write_text("kept")
    assert stoker.json("cache", "stat", *options)["old_layouts"] == 1
    told = stoker.json("cache", "clear", *options)
    assert told["files"] > 1 and told["kept_files"] == 0 and told["bytes"] > 7_000_000
    assert not segments(folder) and not old.exists()
    assert (folder / "mine.txt").read_text() == "kept"
    assert stoker.json("cache", "stat", *options)["blocks"] == 0
    assert stoker.json("cache", "stat", *options)["limit"] == 64 * BLOCK
