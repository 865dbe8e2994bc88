"""Faults 80 to 84 of the cache: it helps where it can, and nothing wrong ever comes from it."""

import json
import os
import shutil
import signal
import subprocess
import time

import pytest
from store_runs import BATCH, BINARY, environment_of

DATA = 48 * 65536  # bytes of the samples' values
BLOCK = 1 << 20


@pytest.fixture
def cached(place, tmp_path):
    """(server, command, source, options) with an index made and the requests forgotten."""
    server, stoker, source = place("s3")
    stoker("index", source)
    server.forget()
    return server, stoker, source, ("--cache", tmp_path / "cache", "--cache-size", "64MiB")


def bytes_read(server):
    return sum(request.sent for request in server.reads(".tar"))


def files_of(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_the_second_epoch_comes_from_the_cache(cached, expected):
    server, stoker, source, options = cached
    assert stoker.digest(source, *options) == expected
    first = bytes_read(server)
    assert first >= DATA
    server.forget()
    assert stoker.digest(source, *options) == expected
    assert bytes_read(server) == 0


def test_the_variable_names_a_cache_too(cached, expected, tmp_path):
    server, stoker, source, _ = cached
    command = stoker.with_environment(STOKER_CACHE=str(tmp_path / "other"))
    assert command.digest(source) == expected
    assert files_of(tmp_path / "other")
    server.forget()
    assert command.digest(source) == expected
    assert bytes_read(server) == 0


def test_warming_fills_it_ahead(cached, expected):
    server, stoker, source, options = cached
    stoker("warm", source, *options)
    server.forget()
    assert stoker.digest(source, *options) == expected
    assert bytes_read(server) == 0


def test_the_cache_can_be_looked_at_verified_and_cleared(cached, expected, tmp_path):
    server, stoker, source, options = cached
    folder = ("--cache", tmp_path / "cache")
    assert stoker.digest(source, *options) == expected
    assert stoker("cache", "ls", *folder).stdout
    assert stoker.json("cache", "stat", *folder)
    stoker("cache", "verify", *folder)
    stoker("cache", "clear", *folder)
    server.forget()
    assert stoker.digest(source, *options) == expected
    assert bytes_read(server) >= DATA


def test_a_changed_object_is_fetched_anew(cached, expected):
    server, stoker, source, options = cached
    assert stoker.digest(source, *options) == expected
    server.objects.change("bucket/train/shard-0001.tar")
    server.forget()
    assert stoker.digest(source, *options) == expected
    assert sum(request.sent for request in server.reads("shard-0001.tar")) >= DATA // 3


def can_mount():
    words = ["unshare", "--mount", "--map-root-user", "mount", "-t", "tmpfs", "none", "/mnt"]
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(words, capture_output=True).returncode == 0


def test_fault_80_a_full_disk_is_passed_by_and_counted(cached, expected, tmp_path):
    """On a file system of its own that has room for a part of the data only."""
    if not can_mount():
        pytest.skip("this process may not mount a small file system")
    _server, stoker, source, _ = cached
    small = tmp_path / "small"
    small.mkdir()
    script = (
        f"mount -t tmpfs -o size=2m none {small} && {BINARY} stream '{source}' --batch-size 8"
        f" --epochs 2 --json --cache {small}/cache --cache-size 64MiB"
    )
    done = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", script],
        capture_output=True, text=True, timeout=90, env=stoker.environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["digest"] == stoker.digest(source, "--epochs", 2)


def test_fault_81_a_process_that_is_killed_leaves_a_cache_that_works(cached, expected, tmp_path):
    server, stoker, source, options = cached
    server.fault("delay", "*.tar", seconds=0.02)
    for moment in (0.05, 0.15, 0.3, 0.5):
        run = stoker.start("stream", source, *BATCH, *options, "--epochs", 100)
        begun = time.monotonic()
        while run.poll() is None and time.monotonic() - begun < moment:
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
        run.communicate()
        # one that was killed at once has not made a cache yet
        done = stoker("cache", "verify", "--cache", tmp_path / "cache", status=None)
        assert "damaged: " not in done.stdout
        assert stoker.digest(source, *options) == expected
    server.forget()
    assert stoker.digest(source, *options) == expected
    assert bytes_read(server) == 0


def test_fault_82_processes_that_share_a_cache_fetch_each_byte_once(cached, expected):
    server, stoker, source, options = cached
    server.fault("delay", "*.tar", seconds=0.2)
    runs = [stoker.start("stream", source, *BATCH, *options, "--json") for _ in range(3)]
    for run in runs:
        printed, errors = run.communicate(timeout=90)
        assert run.returncode == 0, errors
        assert json.loads(printed)["digest"] == expected
    whole = sum(server.objects.get(f"bucket/train/shard-{n:04d}.tar").size for n in range(3))
    assert bytes_read(server) <= whole + BLOCK  # a block may be fetched twice by a race


def test_fault_82_a_cache_of_another_user_is_no_failure(cached, expected, tmp_path):
    """What cannot be written or read there is read past it."""
    _server, stoker, source, options = cached
    assert stoker.digest(source, *options) == expected
    if os.getuid() != 0:
        pytest.skip("only root can be another user")
    if shutil.which("setpriv") is None:
        pytest.skip("there is no setpriv")
    home = tmp_path / "other-home"
    home.mkdir()
    os.chown(home, 65534, 65534)
    words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    for probe in (["test", "-x", BINARY], ["ls", tmp_path]):
        if subprocess.run([*words, *probe], capture_output=True).returncode:
            pytest.skip("another user cannot reach these files here")
    other = stoker.with_environment(HOME=str(home), XDG_CACHE_HOME=str(home))
    done = subprocess.run(
        [*words, BINARY, "stream", source, *BATCH, *map(str, options), "--json"],
        capture_output=True, text=True, env=other.environment, timeout=90,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["digest"] == expected


@pytest.mark.parametrize("size", ["4MiB", "6MiB"])
def test_fault_83_a_cache_smaller_than_the_data_evicts_nothing_in_use(
    stoker, serve, tmp_path, size
):
    """12 MiB in a cache of a third and of half of that, several epochs, several threads."""
    folder = tmp_path / "lake" / "bucket" / "train"
    stoker(
        *("gen", "tensors", "-o", folder, "--shards", 4, "--samples", 96),
        *("--shape", "64,64,8", "--dtype", "f32", "--seed", 2),
    )
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*.tar")}
    server = serve("s3", root=tmp_path / "lake")
    command = stoker.with_environment(**environment_of("s3", server))
    options = ("--cache", tmp_path / "cache", "--cache-size", size)
    wanted = stoker.digest(folder, "--epochs", 4, "--shuffle")
    source = "s3://bucket/train"
    assert command.digest(source, "--epochs", 4, "--shuffle", *options) == wanted
    assert command.digest(source, "--epochs", 4, "--shuffle", "--threads", 4, *options) == wanted
    on_disk = sum(path.stat().st_blocks * 512 for path in files_of(tmp_path / "cache"))
    assert on_disk <= int(size[0]) * BLOCK + BLOCK
    assert {path: path.stat().st_mtime_ns for path in folder.glob("*.tar")} == before


def let_rot(folder):
    """Changes a bit of each 50,000th byte of the files that hold blocks."""
    rotten = [path for path in files_of(folder) if path.stat().st_size >= 65536]
    for path in rotten:
        data = bytearray(path.read_bytes())
        for at in range(10_000, len(data), 50_000):
            data[at] ^= 0x10
        path.write_bytes(data)
    assert rotten


def test_fault_84_what_rotted_in_the_cache_is_fetched_again(cached, expected, tmp_path):
    server, stoker, source, options = cached
    assert stoker.digest(source, *options) == expected
    let_rot(tmp_path / "cache")
    server.forget()
    assert stoker.digest(source, *options) == expected
    assert bytes_read(server) > 0
    server.forget()
    assert stoker.digest(source, *options) == expected
    assert bytes_read(server) == 0


def test_fault_84_verify_finds_what_rotted(cached, expected, tmp_path):
    _server, stoker, source, options = cached
    assert stoker.digest(source, *options) == expected
    let_rot(tmp_path / "cache")
    done = stoker("cache", "verify", "--cache", tmp_path / "cache", status=1)
    assert "damaged" in done.stdout and "shard-" in done.stdout
    assert stoker.digest(source, *options) == expected


def test_files_cut_short_or_emptied_are_no_failure(cached, expected, tmp_path):
    _server, stoker, source, options = cached
    assert stoker.digest(source, *options) == expected
    for number, path in enumerate(sorted(files_of(tmp_path / "cache"))):
        os.truncate(path, path.stat().st_size // 2 if number % 2 else 0)
    assert stoker.digest(source, *options) == expected


@pytest.mark.alone
def test_no_lock_or_shared_memory_is_left_behind(cached, expected):
    _server, stoker, source, options = cached
    before = set(os.listdir("/dev/shm"))
    assert stoker.digest(source, *options) == expected
    new = {name for name in set(os.listdir("/dev/shm")) - before if "stoker" in name.lower()}
    assert not new
