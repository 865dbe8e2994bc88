"""What entities are called: digits of a CSV file are names, whole numbers elsewhere are numbers."""

import gzip

import pytest
import stoker

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

CODES = ["007", "7", "07"]


@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_entities_of_a_csv_are_named_as_they_are_written(tmp_path, suffix):
    def write(name, first):
        path = tmp_path / f"{name}.{suffix}"
        rows = [f"{code},{first + day},{day + 0.5}" for day in range(2) for code in CODES]
        text = "\n".join(["code,day,a", *rows, ""]).encode()
        path.write_bytes(gzip.compress(text) if suffix == "csv.gz" else text)
        return path

    out = tmp_path / "out"
    stoker.pack_series(write("first", 0), out, entity="code", time="day")
    assert list(stoker.open(out, window=1).entities) == CODES
    stoker.pack_series(write("second", 2), out, entity="code", time="day", append=True)
    stoker.pack_series(write("third", 4), out, append=True)  # the series knows the columns
    ds = stoker.open(out, window=1)
    assert list(ds.entities) == CODES
    assert [len(ds.entities.rows(code)) for code in CODES] == [6] * len(CODES)


def test_entities_that_are_whole_numbers_elsewhere_meet_those_of_a_csv(tmp_path):
    table = pyarrow.table({"code": [7, 8], "day": [0, 0], "a": [1.5, 2.5]})
    parquet.write_table(table, tmp_path / "first.parquet")
    (tmp_path / "more.csv").write_text("code,day,a\n7,1,3.5\n007,1,4.5\n")
    out = tmp_path / "out"
    stoker.pack_series(tmp_path / "first.parquet", out, entity="code", time="day")
    stoker.pack_series(tmp_path / "more.csv", out, time="day", append=True)
    ds = stoker.open(out, window=1)
    assert [(name, len(ds.entities.rows(name))) for name in ds.entities] == [
        ("7", 2),
        ("8", 1),
        ("007", 1),
    ]
