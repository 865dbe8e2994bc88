"""Small samples over the network: they come in stretches of half a megabyte, each byte once an
epoch, and no epoch is fetched that nobody draws."""

import os
import subprocess
import sys
import time

import pytest
from store_runs import Command

SAMPLES = 3000  # of 4 KiB and a number: with the tar's headers 6 kB each, 18 MB in all
RUNS = 18e6 / (512 << 10)


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """A folder whose bucket/train has 3,000 tensors of 4 KiB in 3 shards."""
    root = tmp_path_factory.mktemp("small")
    Command(tmp_path_factory.mktemp("home"))(
        *("gen", "tensors", "-o", root / "bucket" / "train", "--shards", 3, "--samples", SAMPLES),
        *("--shape", "1024", "--dtype", "f32", "--classes", 5, "--seed", 1),
    )
    return root


@pytest.fixture
def far(small, place):
    """far(kind): (server, command, source, bytes of the data), with an index."""

    def make(kind="http", **options):
        server, stoker, source = place(kind, root=small, **options)
        stoker("index", source)
        server.forget()
        return (
            server,
            stoker,
            source,
            sum(path.stat().st_size for path in (small / "bucket" / "train").glob("*.tar")),
        )

    return make


def fetched(server):
    """(requests, bytes) of the shards, once nothing more comes."""
    known = None
    while known != (known := [request.sent for request in server.reads(".tar")]):
        time.sleep(0.3)
    return len(known), sum(known)


def stream(stoker, source, *arguments):
    told = stoker.json("stream", source, "--batch-size", 16, *arguments)
    return told["digest"]


def local(stoker, small, *arguments):
    return stream(stoker, small / "bucket" / "train", *arguments)


ORDERS = {
    "sequential": (),
    "global": ("--shuffle",),
    "local": ("--shuffle-order", "local"),
    "many groups": ("--shuffle-order", "local", "--reach", 1),
}


@pytest.mark.parametrize("order", ORDERS)
def test_small_samples_come_in_stretches_and_each_byte_once(far, small, order):
    server, stoker, source, size = far()
    digest = stream(stoker, source, *ORDERS[order])
    requests, got = fetched(server)
    # a stretch ends at the end of a lane or of a shard, too; a slow one is asked for twice
    assert requests < 3 * (RUNS + 16 + 3)
    assert 0.6 * size < got < 1.1 * size
    assert digest == local(stoker, small, *ORDERS[order])


def test_ranks_fetch_their_own_parts(far, small):
    server, stoker, source, size = far()
    for rank in range(4):
        share = ("--shuffle-order", "local", "--world-size", 4, "--rank", rank)
        assert stream(stoker, source, *share) == local(stoker, small, *share)
    requests, got = fetched(server)
    assert requests < 3 * (RUNS + 16 + 3)
    assert got < 1.1 * size


def test_little_memory_costs_requests_and_no_bytes(far, small):
    server, stoker, source, size = far()
    digest = stream(stoker, source, "--shuffle-order", "local", "--memory", "24MiB")
    requests, got = fetched(server)
    assert requests > 3 * (RUNS + 16 + 3)
    assert got < 1.1 * size
    assert digest == local(stoker, small, "--shuffle-order", "local")


def test_fields_that_are_a_small_part_are_fetched_alone(far, small):
    server, stoker, source, size = far()
    digest = stream(stoker, source, "--fields", "cls", "--shuffle-order", "local")
    assert fetched(server)[1] < size / 10
    assert digest == local(stoker, small, "--fields", "cls", "--shuffle-order", "local")


def test_faults_of_the_network_do_not_change_what_comes(far, small):
    server, stoker, source, _ = far()
    server.fault("status", "*.tar", method="GET", status=503, chance=0.05)
    server.fault("cut", "*.tar", method="GET", at=0.5, chance=0.05)
    order = ("--shuffle-order", "local", "--reach", 2, "--epochs", 2)
    assert stream(stoker, source, *order) == local(stoker, small, *order)


def test_a_resumed_run_is_the_same(far, small, tmp_path):
    _, stoker, source, _ = far()
    order = ("--batch-size", 16, "--shuffle-order", "local", "--reach", 1)
    state = tmp_path / "state"
    stoker("stream", source, *order, "--stop-after", 60, "--save-state", state)
    told = stoker.json("stream", source, *order, "--resume", state)
    assert told["run_digest"] == local(stoker, small, *order[2:])


# --- a network that is gone is no bad sample ------------------------------------------------------


@pytest.mark.alone
@pytest.mark.parametrize("data", ["small", "lake"])
@pytest.mark.parametrize("bad", ["raise", "replace"])
def test_a_network_that_goes_away_ends_a_run_within_its_time_limit(request, place, data, bad):
    server, stoker, source = place("http", root=request.getfixturevalue(data))
    stoker("index", source)
    server.forget()
    server.fault("status", "*.tar", method="GET", status=503, after=2)
    begin = time.monotonic()
    words = stoker.fails(source, "--bad", bad, "--shuffle-order", "local", "--timeout", 3)
    assert time.monotonic() - begin < 9
    assert "503" in words and ".tar" in words
    assert "substitutes" not in words


def test_a_shard_that_is_gone_is_no_bad_sample(place):
    server, stoker, source = place("http")
    stoker("index", source)
    server.forget()
    server.fault("status", "*shard-0001.tar", method="GET", status=404)
    words = stoker.fails(source, "--bad", "replace")
    assert "404" in words and "shard-0001.tar" in words


# --- epochs that nobody draws ---------------------------------------------------------------------


def test_a_stream_of_one_epoch_fetches_one_epoch(place, lake, expected):
    """Samples of 64 KiB, which are read one by one, and far less data than the loader's memory."""
    server, stoker, source = place("http")
    stoker("index", source)
    server.forget()
    assert stoker.digest(source) == expected
    size = sum(path.stat().st_size for path in (lake / "bucket" / "train").glob("*.tar"))
    assert fetched(server)[1] < 1.1 * size
    server.forget()
    stoker.digest(source, "--epochs", 3)
    assert 2.7 * size < fetched(server)[1] < 3.3 * size


LOOP = """
import sys
import stoker
dataset = stoker.open(sys.argv[1])
with stoker.Loader(dataset, batch_size=8, shuffle=True, seed=1) as loader:
    for _ in range(int(sys.argv[2])):
        print(sum(len(batch.samples) for batch in loader), flush=True)
    input()
"""


@pytest.mark.parametrize("epochs", [1, 2])
def test_a_loop_over_one_epoch_fetches_one_epoch(place, lake, epochs):
    """Who begins a second one is taken to want a third."""
    pytest.importorskip("stoker")
    server, stoker, source = place("http")
    stoker("index", source)
    server.forget()
    loop = subprocess.Popen(
        [sys.executable, "-c", LOOP, source, str(epochs)],
        env={**os.environ, **stoker.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert [loop.stdout.readline() for _ in range(epochs)] == ["48\n"] * epochs
        size = sum(path.stat().st_size for path in (lake / "bucket" / "train").glob("*.tar"))
        got = fetched(server)[1]
        assert got < 1.1 * size if epochs == 1 else got > 2.1 * size
    finally:
        loop.communicate("\n", timeout=60)
    assert loop.returncode == 0
