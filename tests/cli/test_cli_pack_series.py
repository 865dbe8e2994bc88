"""`stoker pack --to series`, `gen series` and `rescale`, run by the Python package: what they
write, read back by numpy, and what they refuse."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import time

import numpy
import pytest

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

FEATURES = ["close", "volume"]


def make_table(rows, seed=0, start=0, **columns):
    random = numpy.random.default_rng(seed)
    return pyarrow.table(
        {
            "day": numpy.arange(start, start + rows).astype("datetime64[D]"),
            "close": random.normal(50, 3, rows).astype(numpy.float32),
            "volume": random.integers(0, 10_000, rows).astype(numpy.int16),
            **columns,
        }
    )


def stack(table):
    return numpy.stack([table[name].to_numpy() for name in FEATURES], 1).astype(numpy.float64)


def scaled(values, fitted=None):
    fitted = values if fitted is None else fitted
    return (values - fitted.mean(0)) / fitted.std(0)


def read(folder):
    told = json.loads((folder / "metadata.json").read_text())
    shape = told["rows"], len(told["columns"])
    return told, numpy.memmap(folder / "all_features.mmap", told["dtype"], "r", shape=shape)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Two Parquet files, an entity each."""
    folder = tmp_path_factory.mktemp("tables")
    parts = {"a": make_table(100, 1), "b": make_table(70, 2)}
    for name, table in parts.items():
        parquet.write_table(table, folder / f"{name}.parquet")
    return folder, numpy.concatenate([stack(table) for table in parts.values()])


def test_a_folder_of_tables_becomes_a_scaled_array(arrow_stoker, stoker, tables, tmp_path):
    folder, values = tables
    out = tmp_path / "out"
    told = arrow_stoker.json("pack", folder, "-o", out, "--to", "series", "--time", "day")
    assert told == {
        "out": str(out), "rows": 170, "entities": 2, "added_rows": 170, "dropped_rows": 0,
        "missing": 0, "bytes": 170 * 2 * 4, "sorted": False,
    }  # fmt: skip
    meta, array = read(out)
    assert meta["features"] == FEATURES
    assert [(one["name"], one["start"], one["end"]) for one in meta["entities"]] == [
        ("a", 0, 100),
        ("b", 100, 170),
    ]
    numpy.testing.assert_allclose(array, scaled(values), rtol=1e-5, atol=1e-6)
    assert stoker.json("ls", out, "--stat")["samples"] == (100 - 60) + (70 - 60)
    assert stoker.json("verify", out)["bad_count"] == 0
    assert sorted(os.listdir(tmp_path)) == ["out"]


def test_options_reach_the_series(arrow_stoker, stoker, tmp_path):
    rows = 150
    table = make_table(rows, 3)
    table = table.append_column("ticker", pyarrow.array(["x", "y", "z"] * (rows // 3)))
    table = table.append_column("sector", pyarrow.array([1.0, 2.0, 3.0] * (rows // 3)))
    parquet.write_table(table, tmp_path / "all.parquet")
    out = tmp_path / "out"
    told = arrow_stoker.json(
        *("pack", tmp_path / "all.parquet", "-o", out, "--to", "series"),
        *("--entity", "ticker", "--time", "day", "--features", "volume,close", "--label", "close"),
        *("--static", "sector", "--dtype", "f16", "--scaler", "minmax", "--fit-on", "all"),
        *("--split", "0.6,0.2,0.2", "--window", 4, "--horizon", 2, "--stride", 1, "--gap", 1),
        *("--threads", 1, "--memory", "64MiB"),
    )
    assert told["sorted"] and told["entities"] == 3 and told["bytes"] == rows * 2 * 2
    meta, array = read(out)
    assert meta["features"] == ["volume", "close"] and meta["dtype"] == "float16"
    assert meta["labels"] == ["close"] and meta["statics"] == ["sector"]
    assert meta["sequence"] == {"window": 4, "horizon": 2, "stride": 1, "gap": 1}
    values = stack(table)[:, ::-1]
    wanted = (values - values.min(0)) / (values.max(0) - values.min(0))
    for number, entity in enumerate(meta["entities"]):
        own = wanted[number::3]
        numpy.testing.assert_allclose(array[entity["start"] : entity["end"]], own, atol=1e-3)
    listed = stoker.json("ls", out, "--stat", "--split", "val")
    assert listed["series"]["splits"] == ["train", "val", "test"]
    assert listed["samples"] == 3 * (10 - 6) and listed["series"]["split"] == "val"
    shown = stoker("ls", out).stdout
    assert "splits       train, val, test" in shown and "scaler       minmax" in shown
    assert "statics      sector" in shown


def test_leading_zeros_of_a_csv_tell_entities_apart(arrow_stoker, tmp_path):
    codes = ["007", "7", "07"]
    out = tmp_path / "out"
    named = "--entity", "code"
    for day, options in enumerate([named, (*named, "--append"), ["--append"]]):
        path = tmp_path / f"{day}.csv"
        path.write_text("code,day,a\n" + "".join(f"{code},{day},{day}.5\n" for code in codes))
        arrow_stoker("pack", path, "-o", out, "--to", "series", "--time", "day", *options)
    entities = read(out)[0]["entities"]
    assert [(one["name"], one["end"] - one["start"]) for one in entities] == [
        (code, 3) for code in codes
    ]


def test_words_tell_what_happened_to_the_rows(arrow_stoker, tmp_path):
    close = pyarrow.array([1.0, None, 3.0, 4.0, 9.0, None])
    table = pyarrow.table({"t": [5, 4, 3, 2, 1, 0], "close": close})
    parquet.write_table(table, tmp_path / "a.parquet")
    source = ("pack", tmp_path / "a.parquet", "--to", "series", "--time", "t")
    done = arrow_stoker(*source, "-o", tmp_path / "out", "--nan", "drop")
    assert "4 rows of 1 entities" in done.stdout and "were sorted" in done.stdout
    assert "2 rows were left out" in done.stdout and "2 values were missing" in done.stdout
    done = arrow_stoker(*source, "-o", tmp_path / "no", status=1)
    for words in ("a.parquet", "close", "row 1"):
        assert words in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["a.parquet", "out"]


def test_a_series_is_replaced_only_by_force(arrow_stoker, tables, tmp_path):
    folder, _ = tables
    source = ("pack", folder / "a.parquet", "-o", tmp_path / "out", "--to", "series")
    arrow_stoker(*source)
    before = (tmp_path / "out/metadata.json").read_bytes()
    assert "--force" in arrow_stoker(*source, "--scaler", "none", status=1).stderr
    assert (tmp_path / "out/metadata.json").read_bytes() == before
    arrow_stoker(*source, "--scaler", "none", "--force")
    assert json.loads((tmp_path / "out/metadata.json").read_text())["scaler"]["kind"] == "none"


def test_rows_are_added_without_touching_the_scaler(arrow_stoker, stoker, tmp_path):
    first, more = make_table(80, 4), make_table(30, 5, start=80)
    parquet.write_table(first, tmp_path / "a.parquet")
    out = tmp_path / "out"
    options = ("-o", out, "--to", "series", "--time", "day")
    arrow_stoker("pack", tmp_path / "a.parquet", *options)
    (tmp_path / "later").mkdir()
    parquet.write_table(more, tmp_path / "later" / "a.parquet")
    told = arrow_stoker.json("pack", tmp_path / "later" / "a.parquet", *options, "--append")
    assert told["rows"] >= 110 and told["added_rows"] == 30 and told["entities"] == 1
    meta, array = read(out)
    entity = meta["entities"][0]
    wanted = scaled(numpy.concatenate([stack(first), stack(more)]), stack(first))
    numpy.testing.assert_allclose(
        array[entity["start"] : entity["end"]], wanted, rtol=1e-5, atol=1e-6
    )
    assert stoker.json("verify", out)["bad_count"] == 0


def test_a_late_series_takes_another_scaler(arrow_stoker, stoker, tables, tmp_path):
    folder, values = tables
    out = tmp_path / "out"
    arrow_stoker("pack", folder, "-o", out, "--to", "series", "--scale", "late")
    array = (out / "all_features.mmap").read_bytes()
    numpy.testing.assert_array_equal(read(out)[1], values.astype(numpy.float32))
    told = stoker.json("rescale", out, "--scaler", "minmax", "--fit-on", "all")
    assert told == {"folder": str(out), "scaler": "minmax", "fit_on": "all"}
    meta = json.loads((out / "metadata.json").read_text())
    assert meta["scaler"]["kind"] == "minmax" and meta["scale"] == "late"
    numpy.testing.assert_allclose(meta["scaler"]["center"], values.min(0))
    assert (out / "all_features.mmap").read_bytes() == array
    assert "scaler robust now" in stoker("rescale", out, "--scaler", "robust").stdout
    arrow_stoker("pack", folder, "-o", tmp_path / "stored", "--to", "series")
    done = stoker("rescale", tmp_path / "stored", "--scaler", "minmax", status=1)
    assert "late" in done.stderr


@pytest.mark.parametrize("csv", [True, False])
def test_generated_tables_are_packed(arrow_stoker, stoker, tmp_path, csv):
    command = stoker if csv else arrow_stoker
    made = tmp_path / "made"
    told = command.json(
        *("gen", "series", "-o", made, "--entities", 3, "--rows", 200, "--features", 2),
        *("--seed", 7, *(["--csv"] if csv else [])),
    )
    assert told["files"] == 3 and told["rows"] == 600
    suffixes = {path.suffix for path in made.iterdir()}
    assert suffixes == {".csv" if csv else ".parquet"}
    assert told["bytes"] == sum(path.stat().st_size for path in made.iterdir())
    packed = arrow_stoker.json("pack", made, "-o", tmp_path / "out", "--to", "series")
    assert packed["rows"] == 600 and packed["entities"] == 3
    assert command("gen", "series", "-o", made, "--entities", 3, status=1).stderr
    command("gen", "series", "-o", made, "--entities", 2, "--rows", 5, "--force")


@pytest.mark.parametrize(
    "options, words",
    [
        (["--entity", "nobody"], ["nobody"]),
        (["--time", "when"], ["when"]),
        (["--features", "close,open"], ["open"]),
        (["--label", "open"], ["open"]),
        (["--split", "0.5,0.6"], ["0.5,0.6"]),
        (["--split", "time:2024-01-01"], ["time"]),
        (["--fit-on", "1.5"], ["1.5"]),
        (["--dtype", "i8"], ["i8"]),
        (["--append"], []),
    ],
)
def test_what_cannot_be_packed_leaves_nothing(arrow_stoker, tables, tmp_path, options, words):
    folder, _ = tables
    done = arrow_stoker(
        *("pack", folder, "-o", tmp_path / "out", "--to", "series", *options), status=None
    )
    assert done.returncode in (1, 2) and done.stderr.startswith("stoker: ")
    assert all(word in done.stderr for word in words)
    assert os.listdir(tmp_path) == []


def test_a_bar_tells_of_rows_and_is_taken_away(arrow_stoker, tables, tmp_path):
    leader, follower = pty.openpty()
    process = arrow_stoker.start(
        *("pack", tables[0], "-o", tmp_path / "out", "--to", "series"),
        stdout=subprocess.DEVNULL,
        stderr=follower,
    )
    os.close(follower)
    printed = b""
    with contextlib.suppress(OSError):  # the other side is closed
        while some := os.read(leader, 4096):
            printed += some
    os.close(leader)
    assert process.wait(timeout=30) == 0
    assert b"packing" in printed and b"rows" in printed
    assert printed.endswith(b"\r\x1b[K")


def test_columns_of_text_become_codes_when_they_are_named(arrow_stoker, tmp_path):
    table = pyarrow.table(
        {
            "day": numpy.arange(9),
            "mood": ["up", "down", "up", "flat", "down", "up", "up", "flat", "up"],
            "close": numpy.arange(9, dtype=numpy.float32),
        }
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    source = ("pack", tmp_path / "a.parquet", "--to", "series", "--time", "day")
    arrow_stoker(*source, "-o", tmp_path / "all")
    assert read(tmp_path / "all")[0]["features"] == ["close"]
    arrow_stoker(*source, "-o", tmp_path / "named", "--features", "mood,close", "--label", "close")
    meta, array = read(tmp_path / "named")
    assert meta["categories"] == {"mood": ["up", "down", "flat"]}
    assert array[:, 0].tolist() == [0, 1, 0, 2, 1, 0, 0, 2, 0]


def test_ctrl_c_leaves_nothing_behind(arrow_stoker, tmp_path):
    rows = 400_000
    folder = tmp_path / "tables"
    folder.mkdir()
    table = pyarrow.table({f"c{i}": numpy.arange(rows, dtype=numpy.float32) for i in range(8)})
    for i in range(4):
        parquet.write_table(table, folder / f"{i:02d}.parquet", row_group_size=10_000)
    for i in range(4, 60):
        os.link(folder / f"{i % 4:02d}.parquet", folder / f"{i:02d}.parquet")
    process = arrow_stoker.start(
        *("pack", folder, "-o", tmp_path / "out", "--to", "series", "--threads", 1),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 30
    begun = False
    while not begun and process.poll() is None and time.monotonic() < deadline:
        begun = any(
            path.is_file() and path.stat().st_size
            for path in tmp_path.rglob("*")
            if folder not in path.parents
        )
        time.sleep(0.002)
    assert begun and process.poll() is None
    process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=30)[1]
    assert process.returncode == 130 and errors == b""
    assert os.listdir(tmp_path) == ["tables"]
