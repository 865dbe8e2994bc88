import pickle

import numpy
import pytest
import stoker
from shard_making import npy_bytes, write_shards, write_tar

pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.compute")
pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def described(tmp_path):
    """40 samples in two shards, with metadata.parquet whose rows lie in another order."""
    folder = write_shards(tmp_path, 40)
    numbers = list(range(40))[::-1]
    table = pyarrow.table(
        {
            "key": [f"{n:06d}" for n in numbers],
            "shard": [f"shard-{n // 20:04d}.tar" for n in numbers],
            "label": [n % 10 for n in numbers],
        }
    )
    pyarrow.parquet.write_table(table, folder / "metadata.parquet")
    return folder


def chosen(ds):
    return ds.samples.tolist()


def test_by_a_field(described):
    ds = stoker.open(described).filter(lambda cls: cls < 2, field="cls")
    assert chosen(ds) == [n for n in range(40) if n % 10 < 2]
    assert list(ds.fields) == ["npy", "cls"]


def test_a_field_is_read_as_the_dataset_reads_it(tmp_path):
    """With the kind that it was given, and missing where it may be missing."""
    samples = [(f"{n}", {"blob": npy_bytes(numpy.full(2, n)), "cls": n}) for n in range(6)]
    samples[4][1]["txt"] = "here"
    write_tar(tmp_path / "a.tar", samples)
    ds = stoker.open(tmp_path / "a.tar", fields={"blob": "tensor", "cls": None, "txt?": None})
    assert chosen(ds.filter(lambda blob: blob[0] > 2, field="blob")) == [3, 4, 5]
    assert chosen(ds.filter(lambda txt: txt is not None, field="txt")) == [4]
    assert chosen(ds.filter(lambda txt, cls: txt is None and cls, field=("txt", "cls"))) == [
        1,
        2,
        3,
        5,
    ]
    every = stoker.open(tmp_path / "a.tar")
    assert chosen(every.filter(lambda txt: txt == "here", field="txt")) == [4]


def test_by_several_fields(described):
    ds = stoker.open(described).filter(
        lambda npy, cls: cls == 3 and float(npy.sum()) > 0, field=("npy", "cls")
    )
    everything = stoker.open(described)
    expected = [n for n in range(40) if n % 10 == 3 and float(everything[n]["npy"].sum()) > 0]
    assert chosen(ds) == expected


@pytest.mark.parametrize(
    "arguments",
    [
        {"predicate": lambda row: row["label"] == 3},
        {"predicate": pyarrow.compute.field("label") == 3},
        {"predicate": lambda table: pyarrow.compute.equal(table["label"], 3), "by": "table"},
    ],
)
def test_by_a_row_an_expression_or_a_table(described, arguments):
    assert chosen(stoker.open(described).filter(**arguments)) == [3, 13, 23, 33]
    parts = described / "shard-{0000..0001}.tar"
    assert chosen(stoker.open(parts).filter(**arguments)) == [3, 13, 23, 33]


def test_of_a_subset(described):
    part = stoker.open(described)[10:30].filter(lambda row: row["label"] == 3)
    assert chosen(part) == [13, 23]
    assert chosen(pickle.loads(pickle.dumps(part))) == [13, 23]


def test_keys_that_repeat_are_told_apart_by_their_shard(tmp_path):
    from shard_making import write_tar

    for shard in (0, 1):
        write_tar(tmp_path / f"s{shard}.tar", [(f"{i}", {"cls": i}) for i in range(3)])
    table = pyarrow.table(
        {
            "key": ["0", "1", "2"] * 2,
            "shard": ["s1.tar"] * 3 + ["s0.tar"] * 3,
            "good": [False, False, True, True, False, False],
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "elsewhere.parquet")
    ds = stoker.open(tmp_path / "s*.tar")
    kept = ds.filter(lambda row: row["good"], metadata=tmp_path / "elsewhere.parquet")
    assert chosen(kept) == [0, 5]


def test_no_table_a_missing_row_and_a_wrong_answer_are_errors(described):
    with pytest.raises(FileNotFoundError, match=r"metadata\.parquet"):
        (described / "metadata.parquet").rename(described / "other.parquet")
        stoker.open(described).filter(lambda row: True)
    short = pyarrow.table({"key": ["000000"]})
    pyarrow.parquet.write_table(short, described / "metadata.parquet")
    with pytest.raises(stoker.StokerError, match="no row"):
        stoker.open(described).filter(lambda row: True)
    with pytest.raises(ValueError, match="rows"):
        stoker.open(described).filter(lambda table: [True] * 7, by="table")
    with pytest.raises(ValueError, match="by is"):
        stoker.open(described).filter(lambda row: True, by="cell")


def test_what_the_predicate_raises_is_raised(described):
    with pytest.raises(ZeroDivisionError):
        stoker.open(described).filter(lambda cls: 1 / 0, field="cls")
