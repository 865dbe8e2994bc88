"""Lists (fault 74): paged, sorted, each name once, bounded."""

import io
import resource
import time

import numpy
import pytest
from servers.objects import Sequence
from store_runs import ACCOUNT

CLOUDS = pytest.mark.parametrize("kind", ["s3", "az", "gs"])
SHORT = ("--timeout", "2")


def npy(value):
    buf = io.BytesIO()
    numpy.save(buf, value)
    return buf.getvalue()


def folder_of(kind):
    """Where the list of a test lies."""
    return {"s3": "s3://many/", "az": f"az://{ACCOUNT}/many/", "gs": "gs://many/"}[kind]


@CLOUDS
def test_a_list_in_pages_is_read_to_its_end(place, expected, kind):
    server, stoker, source = place(kind, page=2)
    assert stoker.digest(source) == expected
    lists = [request for request in server.requests if "prefix=" in request.target]
    assert len(lists) >= 2


@CLOUDS
@pytest.mark.parametrize("fault", ["list is unsorted", "list repeats"])
def test_fault_74_a_list_without_order_or_with_repeats_is_sorted(place, expected, kind, fault):
    server, stoker, source = place(kind)
    server.fault(fault)
    assert stoker.digest(source) == expected


@CLOUDS
@pytest.mark.parametrize("fault", ["list loops", "list is endless"])
def test_fault_74_a_list_that_never_ends_is_an_error(place, kind, fault):
    server, stoker, source = place(kind)
    server.fault(fault)
    begun = time.monotonic()
    words = stoker.fails(source, "--timeout", "10")
    assert "bucket" in words and time.monotonic() - begun < 40


def test_fault_74_a_slow_list_ends_in_its_time(place):
    server, stoker, source = place("s3")
    server.fault("delay", query="list-type", seconds=30)
    begun = time.monotonic()
    stoker.fails(source, "--timeout", "3")
    assert time.monotonic() - begun < 20


def test_fault_74_a_million_names_are_bounded(place):
    """They are listed, or refused in words: in bounded memory either way."""
    server, stoker, _ = place("s3")
    server.keys = {}
    server.objects.sequences.append(Sequence("many/", 1_000_000, ".txt"))

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

    done = stoker(
        *("ls", "s3://many/none-{0..3}*.txt", "--timeout", "60"),
        status=None,
        preexec_fn=limit,
    )
    assert done.returncode == 1 and done.stderr.startswith("stoker: ")


@CLOUDS
def test_ten_thousand_objects_are_listed_in_as_many_pages_as_it_takes(place, kind):
    server, stoker, _ = place(kind)
    body = npy(numpy.arange(4, dtype=numpy.float32))
    server.objects.sequences.append(Sequence("many/", 10_000, ".npy", body))
    told = stoker.json("index", folder_of(kind))
    assert told["samples"] == 10_000
    lists = [r for r in server.requests if r.method == "GET" and "prefix=" in r.target]
    assert len(lists) <= 12


@CLOUDS
def test_a_glob_takes_what_fits(place, kind, lake, expected):
    _server, stoker, source = place(kind)
    assert stoker.digest(f"{source}/shard-*.tar") == expected
    assert stoker.digest(f"{source}/shard-{{0000..0002}}.tar") == expected
    assert stoker.digest(f"{source}/shard-000[0-2].tar") == expected
    words = stoker.fails(f"{source}/none-*.tar", *SHORT)
    assert "none-" in words


def test_a_plain_web_server_cannot_list_and_says_what_to_do(place):
    server, stoker, _source = place()
    words = stoker.fails(f"{server.url}/bucket/train/", *SHORT)
    assert "{" in words or "brace" in words


def test_markers_of_folders_are_no_samples(place, expected):
    server, stoker, source = place("s3")
    server.objects.put("bucket/train/", b"")
    assert stoker.digest(source) == expected


def test_names_that_need_escapes_are_read(serve, place, expected, lake):
    server, stoker, _ = place("s3")
    names = ["a b+c.tar", "ä&=?#%41.tar", "x'(y)!*.tar"]
    for name, shard in zip(names, sorted((lake / "bucket" / "train").glob("*.tar")), strict=True):
        server.objects.put(f"odd/path with/{name}", shard.read_bytes())
    told = stoker.stream("s3://odd/path with/")
    assert told["samples"] == 48
