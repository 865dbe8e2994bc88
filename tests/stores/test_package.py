"""The Python package over remote data: the same calls, only the path is another."""

import io
import os
import subprocess
import sys
import tarfile
import textwrap

import numpy
import pytest
from store_runs import environment_of

stoker = pytest.importorskip("stoker")


def values(data, **options):
    """All batches of the field npy, copied."""
    return [
        numpy.from_dlpack(b["npy"]).copy() for b in stoker.Loader(data, batch_size=8, **options)
    ]


@pytest.fixture
def remote(place, monkeypatch):
    """remote(kind): (server, source) with this process's own environment set."""

    def make(kind, **options):
        server, command, source = place(kind, **options)
        monkeypatch.setenv("XDG_CACHE_HOME", str(command.home / ".cache"))
        monkeypatch.setenv("HOME", str(command.home))
        for name, value in environment_of(kind, server).items():
            monkeypatch.setenv(name, value)
        return server, source

    return make


@pytest.mark.parametrize("kind", ["http", "s3", "abfss", "gs"])
def test_samples_and_batches_are_those_of_the_files(remote, lake, kind):
    _, source = remote(kind)
    there, here = stoker.open(source), stoker.open(lake / "bucket" / "train")
    assert len(there) == len(here) == 48 and there.fields == here.fields
    for number in (0, 17, 47):
        assert numpy.array_equal(numpy.asarray(there[number]["npy"]), here[number]["npy"])
    batches = [values(data, shuffle=True) for data in (there, here)]
    assert len(batches[0]) == 6 and all(map(numpy.array_equal, *batches))


def test_a_cache_can_be_given_to_open(remote, tmp_path):
    server, source = remote("s3")
    data = stoker.open(source, cache=tmp_path / "cache", cache_size="64MiB")
    first = values(data)
    del data
    server.forget()
    data = stoker.open(source, cache=str(tmp_path / "cache"), cache_size=64 << 20)
    second = values(data)
    assert all(map(numpy.array_equal, first, second))
    assert sum(request.sent for request in server.reads(".tar")) == 0


def test_data_sets_of_the_same_objects_need_room_for_them_once(remote, tmp_path):
    server, source = remote("s3")
    folder = tmp_path / "cache"
    several = [stoker.open(source, cache=folder, cache_size="8MiB") for _ in range(5)]
    values(several[0], fields=["npy"])
    server.forget()
    values(several[1], fields=["npy"])
    assert sum(request.sent for request in server.reads(".tar")) == 0


def test_a_run_goes_on_where_it_was(remote):
    _, source = remote("http")
    data = stoker.open(source)
    whole = values(data, shuffle=True)
    loader = stoker.Loader(data, batch_size=8, shuffle=True)
    batches = iter(loader)
    next(batches), next(batches)
    state = loader.state_dict()
    del batches
    other = stoker.Loader(data, batch_size=8, shuffle=True)
    other.load_state_dict(state)
    rest = [numpy.from_dlpack(b["npy"]).copy() for b in other]
    assert all(map(numpy.array_equal, rest, whole[2:])) and len(rest) == 4


def test_a_missing_object_is_an_error_of_its_kind(remote):
    _, source = remote("http")
    with pytest.raises(stoker.StokerError, match="nowhere"):
        stoker.open(source.replace("train", "nowhere"))


def test_an_iteration_that_is_left_ends_what_is_in_flight(remote):
    server, source = remote("http")
    data = stoker.open(source)
    server.fault("delay", "*.tar", seconds=0.1)
    for _ in stoker.Loader(data, batch_size=4, shuffle=True):
        break


def test_a_child_of_fork_reads_too(place):
    """The web's thread stays behind in the parent: the child makes its own."""
    _, command, source = place("s3")
    script = f"""
        import os, sys
        import numpy, stoker
        first = stoker.open({source!r})
        before = numpy.array(first[3]["npy"])
        child = os.fork()
        if child == 0:
            again = stoker.open({source!r})
            os._exit(0 if numpy.array_equal(again[3]["npy"], before) else 3)
        _, status = os.waitpid(child, 0)
        assert numpy.array_equal(first[4]["npy"], stoker.open({source!r})[4]["npy"])
        sys.exit(os.waitstatus_to_exitcode(status))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True, text=True, timeout=60,
        env={**os.environ, **command.environment, "PYTHONFAULTHANDLER": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def with_table(root):
    """A lake whose bucket/train has two shards, and metadata.parquet that tells odd from even."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = root / "bucket" / "train"
    folder.mkdir(parents=True)
    for shard in range(2):
        with tarfile.open(folder / f"shard-000{shard}.tar", "w") as file:
            for number in range(5 * shard, 5 * shard + 5):
                member = tarfile.TarInfo(f"{number}.cls")
                member.size = 1
                file.addfile(member, io.BytesIO(b"%d" % number))
    keys = [str(number) for number in range(10)]
    table = pyarrow.table({"key": keys, "odd": [number % 2 == 1 for number in range(10)]})
    parquet.write_table(table, folder / "metadata.parquet")


@pytest.mark.parametrize("kind", ["http", "s3", "abfss", "gs"])
def test_a_filter_finds_the_table_beside_the_data(remote, tmp_path, kind):
    with_table(tmp_path / "lake")
    server, source = remote(kind, root=tmp_path / "lake")
    if kind == "http":
        sources = [source.replace("{0000..0002}", "{0000..0001}")]
    else:
        sources = [source, f"{source}/", f"{source}/*.tar", f"{source}/shard-{{0000..0001}}.tar"]
    for name in sources:
        data = stoker.open(name)
        assert data.filter(lambda row: row["odd"]).keys() == ["1", "3", "5", "7", "9"], name
    table = f"{server.url}/bucket/train" if kind == "http" else source
    kept = data.filter(lambda row: row["odd"], metadata=f"{table}/metadata.parquet")
    assert len(kept) == 5


def test_a_filter_without_a_table_says_where_it_looked(remote):
    _, source = remote("s3")
    with pytest.raises(FileNotFoundError, match=f"{source}/metadata.parquet"):
        stoker.open(source).filter(lambda row: True)
