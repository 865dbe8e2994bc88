"""What opening costs and what it takes: round trips, the index beside the data, every format, a
series; and that Ctrl-C ends a wait in Python."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from store_runs import BATCH


def quiet(server):
    """Waits until the server is done with what processes before asked for."""
    known = -1
    while known != len(server.requests):
        known = len(server.requests)
        time.sleep(0.5)


def fresh(stoker):
    """The command on another machine: with nothing in its user's cache."""
    return stoker.with_environment(XDG_CACHE_HOME=str(stoker.home / "fresh"))


def first_batch(server, stoker, source):
    """The requests that come before the first read of data, each (method, what)."""
    quiet(server)
    server.forget()
    stoker("stream", source, *BATCH, "--stop-after", 1)
    before = []
    for request in sorted(server.requests, key=lambda request: request.began):
        if request.method == "GET" and request.path.endswith(".tar"):
            break
        before.append((request.method, "index" if ".stoker" in request.path else "look"))
    return before


def test_with_an_index_beside_it_a_first_batch_takes_three_round_trips(place):
    server, stoker, source = place("s3")
    source += "/"  # a folder for sure: there is no object of that name to be looked for
    stoker("index", source)
    assert any(".stoker" in name for name in server.objects.made)
    assert first_batch(server, fresh(stoker), source) == [("GET", "look"), ("GET", "index")]
    # and from the copy that is kept since
    assert first_batch(server, fresh(stoker), source) == [("GET", "look")]


def test_looks_at_objects_by_http_go_out_together(place):
    server, stoker, source = place("http")
    stoker("index", source)
    looks = [("HEAD", "look")] * 3
    assert first_batch(server, stoker, source) == looks
    # on another machine the index is asked for once, and is not there: plain HTTP takes no uploads
    asked = first_batch(server, fresh(stoker), source)
    assert asked[:4] == [*looks, ("GET", "index")]


def test_what_a_field_is_need_be_looked_at_once(place):
    server, stoker, source = place("s3")
    source += "/"
    fields = ("--fields", "npy")  # not all of them, so that nobody looks at the others
    stoker("stream", source, *BATCH, *fields)
    quiet(server)
    server.forget()
    stoker("ls", source, *fields)
    assert [request.path for request in server.requests if request.path.endswith(".tar")] == []


def test_an_index_beside_changed_data_is_made_anew(place, lake):
    server, stoker, source = place("s3")
    stoker("index", source)
    shard = lake / "bucket" / "train" / "shard-0000.tar"
    server.objects.put("bucket/train/shard-0002.tar", shard.read_bytes())
    done = fresh(stoker)("stream", source, *BATCH)
    assert "made anew" in done.stderr


def test_an_index_that_may_not_be_written_there_is_a_note(place, expected):
    server, stoker, source = place("s3")
    server.fault("status", "*.index", method="PUT", status=403, code="AccessDenied")
    server.fault("status", "*.index", method="POST", status=403, code="AccessDenied")
    done = stoker("index", source)
    assert "not beside the data" in done.stderr
    assert stoker.digest(source) == expected


def test_a_damaged_index_beside_the_data_is_not_used(place, expected):
    server, stoker, source = place("s3")
    stoker("index", source)
    name = next(name for name in server.objects.made if name.endswith(".index"))
    server.objects.put(name, b"STKINDEX" + bytes(5000))
    assert fresh(stoker).digest(source) == expected


def formats(folder):
    """Every kind of data that is not a tar of tensors: name -> how it is opened."""
    numpy = pytest.importorskip("numpy")
    values = numpy.arange(60 * 12, dtype="float32").reshape(60, 12)
    for place in ("rows", "grid", "loose/cat", "loose/dog", "packed"):
        (folder / place).mkdir(parents=True)
    numpy.save(folder / "rows" / "values.npy", values)
    numpy.savez(folder / "grid" / "values.npz", x=values, y=values[:, 0])
    values.tofile(folder / "raw.bin")
    for number in range(20):
        kind = ("cat", "dog")[number % 2]
        numpy.save(folder / "loose" / kind / f"{number:03}.npy", values[number])
    return {
        "rows/values.npy": (),
        "grid/values.npz": (),
        "raw.bin": ("--format", "raw", "--dtype", "float32", "--shape", "12"),
        "loose": (),
        "packed": (),
    }


@pytest.mark.parametrize("kind", ["s3", "az"])
def test_every_format_is_read_from_a_store(serve, place, stoker, lake, tmp_path, kind):
    root = tmp_path / "lake"
    wanted = formats(root / "bucket" / "train")
    for shard in (lake / "bucket" / "train").glob("*.tar"):
        packed = root / "bucket" / "train" / "packed" / f"{shard.name}.gz"
        packed.write_bytes(gzip.compress(shard.read_bytes(), 1))
    _server, command, source = place(kind, root=root)
    for name, options in wanted.items():
        local = stoker.digest(root / "bucket" / "train" / name, "--shuffle", *options)
        assert command.digest(f"{source}/{name}", "--shuffle", *options) == local, name
    for path in (root / "bucket" / "train").rglob(".stoker"):
        shutil.rmtree(path)


def make_series(folder):
    numpy = pytest.importorskip("numpy")
    folder.mkdir(parents=True)
    numpy.arange(500 * 3, dtype="float32").tofile(folder / "all_features.mmap")
    entities = [{"name": f"e{i}", "start": i * 100, "end": i * 100 + 100} for i in range(5)]
    told = {"features": ["a", "b", "c"], "labels": ["a"], "entities": entities}
    (folder / "metadata.json").write_text(json.dumps(told))


@pytest.mark.parametrize("kind", ["http", "s3", "abfss"])
def test_a_series_is_read_from_a_store(place, stoker, tmp_path, kind):
    root = tmp_path / "lake"
    make_series(root / "bucket" / "train")
    server, command, source = place(kind, root=root)
    options = ("--window", 8, "--horizon", 2, "--shuffle")
    expected = stoker.digest(root / "bucket" / "train", *options)
    folder = f"{server.url}/bucket/train" if kind == "http" else source
    assert command.digest(f"{folder}/metadata.json", *options) == expected
    assert command.digest(folder, "--format", "series", *options) == expected
    if kind != "http":
        assert command.digest(folder, *options) == expected


def test_a_look_at_a_store_tells_each_step_and_the_curve(place):
    _server, stoker, source = place("s3")
    told = stoker.json("check", source)["probes"][0]
    steps = {row["step"]: row["state"] for row in told["rows"]}
    assert list(steps) == ["resolve", "connect", "tls", "auth", "list", "range", "latency"]
    assert steps["tls"] == "absent" and steps["auth"] == "good" and told["works"]
    assert [point["at_once"] for point in told["curve"]] == [1, 2, 4, 8, 16, 32, 64]
    assert all(point["bytes_per_s"] > 0 for point in told["curve"])
    assert "secret-key-of-the-test" not in json.dumps(told)


def test_a_look_ends_at_the_step_that_fails(place):
    server, stoker, source = place("s3")
    server.keys = {"ANOTHER": "key"}
    done = stoker("check", source, "--json", "--timeout", 5, status=1)
    rows = json.loads(done.stdout)["probes"][0]["rows"]
    assert rows[-1]["step"] == "list" and rows[-1]["state"] == "bad" and rows[-1]["remedy"]
    assert "environment" in rows[-1]["value"]  # whose credentials were refused


@pytest.mark.parametrize("trusted", [True, False])
def test_a_look_tells_whether_the_certificate_is_trusted(serve, certificates, stoker, trusted):
    server = serve(tls=certificates.pair("good"))
    more = ("--ca", certificates.ca) if trusted else ()
    source = f"{server.url}/bucket/train/shard-0000.tar"
    done = stoker("check", source, "--json", "--timeout", 10, *more, status=0 if trusted else 1)
    rows = {row["step"]: row for row in json.loads(done.stdout)["probes"][0]["rows"]}
    assert rows["tls"]["state"] == ("good" if trusted else "bad")
    assert trusted == ("latency" in rows)
    assert trusted or "--ca" in rows["tls"]["remedy"]


WAITING = """
import sys, time, signal, threading, os
import stoker
begun = time.monotonic()
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    stoker.open(sys.argv[1])
except KeyboardInterrupt:
    print(time.monotonic() - begun)
"""


@pytest.mark.alone
def test_an_interrupt_ends_the_wait_of_python(serve, stoker):
    stoker_package = pytest.importorskip("stoker")
    server = serve("http")
    server.fault("delay", seconds=20)
    done = subprocess.run(
        [sys.executable, "-c", WAITING, f"{server.url}/bucket/train/shard-0000.tar"],
        capture_output=True, text=True, timeout=60,
        env={**stoker.environment, "PYTHONPATH": os.path.dirname(stoker_package.__path__[0])},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout, done.stderr
    assert float(done.stdout) < 1.0 + 1.0 + 2.0  # a busy machine may need the last part
