"""`python -m stoker` and the `stoker` script: the same command as the binary, with pyarrow behind
it."""

import json
import subprocess
import sys

import numpy
import pytest
import stoker
from stoker.__main__ import main


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "stoker", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


def test_it_tells_its_version():
    done = run("version")
    assert done.returncode == 0
    assert stoker.__version__ in done.stdout


def test_it_starts_without_numpy():
    """Half of its time and of its memory, while it watches a training, would be numpy's."""
    words = "import sys; from stoker.__main__ import main; main(['version'])"
    done = subprocess.run(
        [sys.executable, "-c", f"{words}; sys.exit('numpy' in sys.modules)"], timeout=60
    )
    assert done.returncode == 0


def test_the_package_offers_all_that_it_names():
    words = "import stoker; before = 'Loader' in vars(stoker); from stoker import *; "
    check = (
        "assert not before and Loader is stoker.Loader and set(stoker.__all__) < set(dir(stoker))"
    )
    subprocess.run([sys.executable, "-c", words + check], timeout=60, check=True)
    with pytest.raises(AttributeError, match="'stoker' has no attribute 'nothing'"):
        stoker.nothing  # noqa: B018


def test_it_lists_samples(shards):
    done = run("ls", shards, "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 100
    ds = stoker.open(shards)
    place = ds.place(7, "npy")
    assert lines[7]["key"] == "000007"
    assert lines[7]["fields"]["npy"] == dict(
        zip(("object", "offset", "length"), place, strict=True)
    )


def test_its_exit_status_says_what_happened(tmp_path):
    assert run("ls", tmp_path / "none").returncode == 1
    assert run("no-such-command").returncode == 2
    assert main(["version"]) == 0


def test_its_order_is_that_of_the_package(shards):
    done = run("stream", shards, "--batch-size", 8, "--shuffle", "--seed", 3, "--order")
    assert done.returncode == 0, done.stderr
    printed = [[int(n) for n in line.split()] for line in done.stdout.splitlines()]
    loader = stoker.Loader(shards, 8, shuffle=True, seed=3)
    assert printed == [batch.samples.tolist() for batch in loader]


def test_gen_writes_metadata_that_filter_reads(tmp_path):
    pytest.importorskip("pyarrow")
    done = run(
        "gen", "tensors", "-o", tmp_path / "gen", "--shards", 2, "--samples", 20,
        "--shape", "2,3", "--dtype", "f16", "--classes", 5, "--seed", 0,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(tmp_path / "gen" / "metadata.parquet")
    assert table.column_names == ["key", "shard", "label", "shape", "dtype", "bytes"]
    ds = stoker.open(tmp_path / "gen" / "shard-*.tar")
    assert len(ds) == table.num_rows == 20
    labels = numpy.array(table["label"])
    assert [one["cls"] for one in ds] == labels.tolist()
    chosen = ds.filter(lambda row: row["label"] == 3)
    assert chosen.samples.tolist() == numpy.flatnonzero(labels == 3).tolist()


def test_a_table_that_cannot_be_written_is_an_error_in_words(monkeypatch, capfd, tmp_path):
    def refuse(path, columns):
        raise OSError("no room for tables")

    monkeypatch.setattr("stoker._context.write_table", refuse)
    status = main(
        [
            "gen",
            "tensors",
            "-o",
            str(tmp_path / "gen"),
            "--shards",
            "1",
            "--samples",
            "2",
            "--shape",
            "2",
            "--dtype",
            "f16",
        ]
    )
    assert status == 1
    assert "no room for tables" in capfd.readouterr().err
