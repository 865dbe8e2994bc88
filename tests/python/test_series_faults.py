"""Damaged and hostile tables, by their numbers in the list of faults: an error that names the file,
and nothing is left behind. What pyarrow finds, it finds; what it passes on is checked again."""

import json
import random
import subprocess
import sys

import numpy
import pyarrow
import pytest
import stoker
from pyarrow import parquet


def table(rows=3000, seed=0):
    values = numpy.random.default_rng(seed).standard_normal((rows, 3)).astype("float32")
    return pyarrow.table({name: values[:, i] for i, name in enumerate("abc")})


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.parquet"
    parquet.write_table(table(), path, row_group_size=500, compression="zstd")
    return path


def refused(path, out, words=""):
    with pytest.raises(stoker.StokerError) as caught:
        stoker.pack_series(path, out)
    assert path.name in str(caught.value)
    assert words in str(caught.value)
    assert sorted(out.parent.glob("*out*")) == []
    return caught.value


def test_35_a_file_without_the_magic_is_refused(good, tmp_path):
    data = bytearray(good.read_bytes())
    data[-4:] = b"NOPE"
    good.write_bytes(data)
    refused(good, tmp_path / "out")


@pytest.mark.parametrize("length", [0, 1, 1 << 20, 0x7FFFFFFF, 0xFFFFFFFF])
def test_35_a_footer_of_another_length_is_refused(good, tmp_path, length):
    data = bytearray(good.read_bytes())
    data[-8:-4] = length.to_bytes(4, "little")
    good.write_bytes(data)
    refused(good, tmp_path / "out")


@pytest.mark.parametrize("seed", range(12))
def test_36_to_39_a_damaged_footer_is_an_error_or_the_same_rows(good, tmp_path, seed):
    """Lists of any length, offsets anywhere: bytes of the footer are changed at random."""
    wanted = numpy.stack([column.to_numpy() for column in table().columns], axis=1)
    data, draw = bytearray(good.read_bytes()), random.Random(seed)
    footer = int.from_bytes(data[-8:-4], "little")
    for _ in range(draw.randint(1, 8)):
        data[draw.randrange(len(data) - 8 - footer, len(data) - 8)] = draw.randrange(256)
    good.write_bytes(data)
    out = tmp_path / "out"
    try:
        stoker.pack_series(good, out, scaler="none", features=["a", "b", "c"])
    except stoker.StokerError as error:
        assert good.name in str(error)
        assert not out.exists()
        return
    rows = numpy.fromfile(out / "all_features.mmap", "float32").reshape(-1, 3)
    assert len(rows) == 0 or numpy.isfinite(rows).all()
    assert numpy.isin(rows, wanted).all()


@pytest.mark.parametrize("seed", range(12))
def test_37_38_43_damaged_pages_are_an_error_of_the_file(tmp_path, seed):
    """Pages have checksums here: no damage passes for data."""
    path, draw = tmp_path / "pages.parquet", random.Random(seed)
    parquet.write_table(table(), path, compression="zstd", write_page_checksum=True)
    data = bytearray(path.read_bytes())
    footer = int.from_bytes(data[-8:-4], "little")
    at = draw.randrange(64, len(data) - 8 - footer)
    data[at] ^= 1 << draw.randrange(8)
    path.write_bytes(data)
    out = tmp_path / "out"
    try:
        stoker.pack_series(path, out, scaler="none")
    except stoker.StokerError as error:
        assert path.name in str(error)
        assert not out.exists()
        return
    rows = numpy.fromfile(out / "all_features.mmap", "float32").reshape(-1, 3)
    wanted = numpy.stack([column.to_numpy() for column in table().columns], axis=1)
    numpy.testing.assert_array_equal(rows, wanted)  # the bit lay in a header that says nothing


def test_40_nullable_and_required_columns_go_together(tmp_path):
    (tmp_path / "tables").mkdir()
    for name, nullable in (("a", True), ("b", False)):
        field = pyarrow.field("x", pyarrow.float32(), nullable=nullable)
        array = pyarrow.array(numpy.ones(5, "float32"))
        made = pyarrow.Table.from_arrays([array], schema=pyarrow.schema([field]))
        parquet.write_table(made, tmp_path / "tables" / f"{name}.parquet")
    assert stoker.pack_series(tmp_path / "tables", tmp_path / "out").rows == 10


def test_40_a_retyped_column_is_refused_with_both_schemas(tmp_path):
    (tmp_path / "tables").mkdir()
    for name, dtype in (("a", "float32"), ("b", "int64")):
        made = pyarrow.table({"x": numpy.ones(5, dtype)})
        parquet.write_table(made, tmp_path / "tables" / f"{name}.parquet")
    with pytest.raises(stoker.StokerError) as caught:
        stoker.pack_series(tmp_path / "tables", tmp_path / "out")
    words = str(caught.value)
    assert "a.parquet" in words and "b.parquet" in words
    assert "float" in words and "int64" in words
    assert not (tmp_path / "out").exists()


def test_41_offsets_that_fall_are_refused(tmp_path):
    """An array of texts whose offsets go back: pyarrow hands it on as it is."""
    offsets = pyarrow.py_buffer(numpy.array([0, 4, 2, 6], "int32"))
    texts = pyarrow.Array.from_buffers(
        pyarrow.utf8(), 3, [None, offsets, pyarrow.py_buffer(b"abcdef")]
    )
    made = pyarrow.table({"name": texts, "x": numpy.ones(3, "float32")})
    with pytest.raises(stoker.StokerError, match="name"):
        stoker.pack_series(made, tmp_path / "out", entity="name", features=["x"])
    assert not (tmp_path / "out").exists()


def test_41_a_code_outside_its_dictionary_is_refused(tmp_path):
    codes = pyarrow.array([0, 1, 7], pyarrow.int8())
    names = pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(["a", "b"]), safe=False)
    made = pyarrow.table({"name": names, "x": numpy.ones(3, "float32")})
    with pytest.raises(stoker.StokerError, match="name"):
        stoker.pack_series(made, tmp_path / "out", entity="name", features=["x"])
    assert not (tmp_path / "out").exists()


def test_34_values_that_are_not_finite_come_out_as_they_are_stored(tmp_path):
    """A folder made by hand may hold them: windows pass them on, verify tells."""
    rows = numpy.arange(60, dtype="float32").reshape(30, 2)
    rows[7] = [numpy.nan, numpy.inf]
    rows.tofile(tmp_path / "all_features.mmap")
    metadata = {"features": ["a", "b"], "entities": [{"name": "e", "start": 0, "end": 30}]}
    (tmp_path / "metadata.json").write_text(json.dumps(metadata))
    ds = stoker.open(tmp_path, window=4, horizon=1, as_="numpy")
    assert ds[5]["x"].tobytes() == rows[5:9].tobytes()
    command = [sys.executable, "-m", "stoker", "verify", str(tmp_path), "--window", "4"]
    told = subprocess.run(command, capture_output=True, text=True)
    assert told.returncode == 1
    assert "all_features.mmap" in told.stdout + told.stderr
