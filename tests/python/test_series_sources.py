"""Where series come from: files of every kind, data frames, streams, generators; and bad ones."""

import gzip
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from decimal import Decimal

import numpy
import pytest
import stoker
from numpy.testing import assert_allclose, assert_array_equal
from series_making import matrix, tables

pyarrow = pytest.importorskip("pyarrow")
csv = pytest.importorskip("pyarrow.csv")
feather = pytest.importorskip("pyarrow.feather")
orc = pytest.importorskip("pyarrow.orc")
parquet = pytest.importorskip("pyarrow.parquet")

LENGTHS = (60, 25, 90)


def write_ipc(table, path):
    with pyarrow.OSFile(str(path), "wb") as file, pyarrow.ipc.new_file(file, table.schema) as to:
        to.write_table(table, max_chunksize=20)


def write_stream(table, path):
    with pyarrow.OSFile(str(path), "wb") as file, pyarrow.ipc.new_stream(file, table.schema) as to:
        to.write_table(table, max_chunksize=20)


def write_csv_gz(table, path):
    sink = pyarrow.BufferOutputStream()
    csv.write_csv(table, sink)
    path.write_bytes(gzip.compress(sink.getvalue().to_pybytes()))


WRITERS = {
    "parquet": lambda table, path: parquet.write_table(table, path, row_group_size=17),
    "pq": parquet.write_table,
    "csv": csv.write_csv,
    "csv.gz": write_csv_gz,
    "orc": orc.write_table,
    "feather": feather.write_feather,
    "arrow": write_ipc,
    "arrows": write_stream,
}


@pytest.fixture
def sources():
    return tables(LENGTHS)


def write_all(sources, folder, suffix):
    folder.mkdir(exist_ok=True)
    for name, table in sources.items():
        WRITERS[suffix](table, folder / f"{name}.{suffix}")
    return folder


def check(folder, sources, columns=None):
    """The series holds the rows of these tables, one entity each, unscaled."""
    ds = stoker.open(folder, window=2)
    assert list(ds.entities) == list(sources)
    rows = numpy.fromfile(folder / "all_features.mmap", numpy.float32).reshape(-1, len(ds.features))
    wanted = numpy.concatenate([matrix(table, columns) for table in sources.values()])
    assert_array_equal(rows, wanted.astype(numpy.float32))


# Files


@pytest.mark.parametrize("suffix", list(WRITERS))
@pytest.mark.parametrize("memory", ["256MiB", "1MiB"])
def test_a_folder_of_files_is_an_entity_a_file(sources, tmp_path, suffix, memory):
    folder = write_all(sources, tmp_path / "in", suffix)
    (folder / ".hidden").write_text("no table")
    (folder / "_SUCCESS").write_text("")
    out = tmp_path / "out"
    packed = stoker.pack_series(folder, out, time="day", scaler=None, memory=memory)
    assert (packed.rows, packed.entities) == (sum(LENGTHS), 3)
    check(out, sources)


@pytest.mark.parametrize("suffix", list(WRITERS))
def test_large_files_are_streamed_and_give_the_same(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr("stoker._tables.BATCH_ROWS", 1000)
    sources = tables((30_000, 50_000))
    folder = write_all(sources, tmp_path / "in", suffix)
    streamed = []
    real = stoker._tables.FileTables._stream
    monkeypatch.setattr(
        stoker._tables.FileTables,
        "_stream",
        lambda self, path, *rest: streamed.append(path) or real(self, path, *rest),
    )
    monkeypatch.setattr("stoker._tables.AHEAD", 60)  # what counts as small is a share of memory
    out = tmp_path / "out"
    stoker.pack_series(folder, out, time="day", scaler=None, memory="1MiB", features=["c", "a"])
    check(out, sources, ["c", "a"])
    assert len(streamed) == 2


@pytest.mark.parametrize("how", ["one", "list", "glob", "bytes", "uri", "nested"])
def test_files_are_named_in_many_ways(sources, tmp_path, how):
    folder = write_all(sources, tmp_path / "in", "parquet")
    named = {
        "one": lambda: str(folder),
        "list": lambda: [folder / f"{name}.parquet" for name in sources],
        "glob": lambda: str(folder / "e*.parquet"),
        "bytes": lambda: os.fsencode(folder),
        "uri": lambda: f"file://{folder}",
        "nested": lambda: tmp_path / "in",
    }[how]()
    if how == "nested":
        (folder / "f").mkdir()
        (folder / "e2.parquet").rename(folder / "f" / "e2.parquet")
    stoker.pack_series(named, tmp_path / "out", time="day", scaler=None)
    check(tmp_path / "out", sources)


def test_only_the_columns_that_are_needed_are_read(tmp_path, monkeypatch):
    table = tables((50,))["e0"]
    table = table.append_column("note", pyarrow.array(["text"] * 50))
    parquet.write_table(table, tmp_path / "e0.parquet")
    read = []
    real = parquet.ParquetFile.read

    def reading(self, columns=None, **options):
        read.append(columns)
        return real(self, columns=columns, **options)

    monkeypatch.setattr(parquet.ParquetFile, "read", reading)
    source = tmp_path / "e0.parquet"
    stoker.pack_series(source, tmp_path / "some", time="day", features=["c"], labels="b")
    stoker.pack_series(source, tmp_path / "all", time="day")
    assert [set(columns) for columns in read] == [{"day", "b", "c"}, {"day", "a", "b", "c"}]


def test_csv_columns_of_whole_numbers_in_one_file_may_have_fractions_in_another(tmp_path):
    (tmp_path / "p.csv").write_text("day,a,b\n1,1,\n2,2,\n")
    (tmp_path / "q.csv").write_text("day,a,b\n1,1.5,2.5\n2,,3.5\n")
    stoker.pack_series(
        [tmp_path / "p.csv", tmp_path / "q.csv"],
        tmp_path / "out",
        time="day",
        nan="zero",
        scaler=None,
    )
    rows = numpy.fromfile(tmp_path / "out" / "all_features.mmap", numpy.float32).reshape(-1, 2)
    assert_array_equal(rows, [[1, 0], [2, 0], [1.5, 2.5], [0, 3.5]])
    assert_array_equal(numpy.fromfile(tmp_path / "out" / "time.mmap", "i8"), [1, 2, 1, 2])


def test_a_source_is_opened_once_only(sources, tmp_path):
    opened = []

    class Counted:
        def __init__(self, name, table):
            self.name, self.table = name, table

        def __arrow_c_stream__(self, requested_schema=None):
            opened.append(self.name)
            return self.table.__arrow_c_stream__(requested_schema)

    counted = {name: Counted(name, table) for name, table in sources.items()}
    stoker.pack_series(counted, tmp_path / "out", time="day", split=(0.8, 0.2), scaler="robust")
    assert opened == list(sources)


def test_files_are_read_once_only(sources, tmp_path, monkeypatch):
    folder = write_all(sources, tmp_path / "in", "parquet")
    opened = []
    real = parquet.ParquetFile.__init__

    def counted(self, source, **options):
        if "pre_buffer" in options:  # reads pages; the others look at footers only
            opened.append(os.path.basename(source))
        real(self, source, **options)

    monkeypatch.setattr(parquet.ParquetFile, "__init__", counted)
    stoker.pack_series(folder, tmp_path / "out", time="day", split=(0.8, 0.2))
    assert sorted(opened) == ["e0.parquet", "e1.parquet", "e2.parquet"]


# Objects


def with_names(sources):
    return pyarrow.concat_tables(
        [
            table.append_column("entity", pyarrow.array([name] * len(table)))
            for name, table in sources.items()
        ]
    )


def from_pandas(table):
    pytest.importorskip("pandas")
    return table.to_pandas()


def from_polars(table):
    return pytest.importorskip("polars").from_arrow(table)


def from_duckdb(table):
    return pytest.importorskip("duckdb").connect().from_arrow(table).order("entity, day")


OBJECTS = {
    "table": lambda table: table,
    "pandas": from_pandas,
    "polars": from_polars,
    "duckdb": from_duckdb,
    "reader": lambda table: table.to_reader(max_chunksize=13),
    "batches": lambda table: iter(table.to_batches(max_chunksize=13)),
    "generator": lambda table: (batch for batch in table.to_batches(max_chunksize=13)),
    "list": lambda table: table.to_batches(max_chunksize=13),
    "frames": lambda table: (table.slice(first, 35) for first in range(0, len(table), 35)),
}


@pytest.mark.parametrize("kind", list(OBJECTS))
def test_anything_that_arrow_can_stream_is_a_source(sources, tmp_path, kind):
    source = OBJECTS[kind](with_names(sources))
    stoker.pack_series(source, tmp_path / "out", entity="entity", time="day", scaler=None)
    check(tmp_path / "out", sources)


def test_pairs_name_their_entities(sources, tmp_path):
    stoker.pack_series(iter(sources.items()), tmp_path / "out", time="day", scaler=None)
    check(tmp_path / "out", sources)


def test_a_name_with_a_nul_is_refused(sources, tmp_path):
    with pytest.raises(ValueError, match="null"):
        stoker.pack_series({"a\0b": sources["e0"]}, tmp_path / "out", time="day")


def test_a_folder_may_be_named_in_bytes(sources, tmp_path):
    packed = stoker.pack_series(sources, os.fsencode(tmp_path / "out"), time="day", scale="late")
    assert packed.folder == str(tmp_path / "out")
    stoker.rescale(os.fsencode(tmp_path / "out"), "minmax")
    assert (tmp_path / "out" / "scaler.joblib").exists()


def test_names_of_a_dict_are_the_entities_names_whatever_they_hold(tmp_path):
    made = dict(
        zip(["EUR/USD", "GBP/USD", "BRK.B", "x.csv"], tables((9,) * 4).values(), strict=True)
    )
    stoker.pack_series(made, tmp_path / "out", time="day", scaler=None)
    check(tmp_path / "out", made)


def test_a_dict_of_files_names_their_entities(sources, tmp_path):
    folder = write_all(sources, tmp_path / "in", "parquet")
    named = {f"the {name}": folder / f"{name}.parquet" for name in sources}
    stoker.pack_series(named, tmp_path / "out", time="day", scaler=None)
    check(tmp_path / "out", {f"the {name}": table for name, table in sources.items()})
    with pytest.raises(ValueError, match="more than one file"):
        stoker.pack_series({"all": folder}, tmp_path / "two", time="day")


def test_what_a_generator_raises_comes_back_as_it_is(sources, tmp_path):
    class Odd(Exception):
        pass

    def breaks():
        yield from sources["e0"].to_batches()
        raise Odd("here")

    def breaks_between():
        yield sources["e0"]
        raise Odd("there")

    for source, words in ((breaks(), "here"), (breaks_between(), "there")):
        with pytest.raises(Odd, match=words):
            stoker.pack_series(source, tmp_path / "out", time="day")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("source", [3, [], [3], {"a": 3}, iter([3]), None])
def test_what_is_no_table_is_refused(tmp_path, source):
    with pytest.raises((TypeError, ValueError)):
        stoker.pack_series(source, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_batches_of_another_schema_are_refused_with_both(sources, tmp_path):
    batches = [sources["e0"].to_batches()[0], sources["e1"].select(["day", "a"]).to_batches()[0]]
    with pytest.raises(stoker.StokerError, match=r"day timestamp.*a float; before: .*b float"):
        stoker.pack_series(iter(batches), tmp_path / "out", time="day")


def test_a_stream_that_was_used_up_is_refused(sources, tmp_path):
    reader = sources["e0"].to_reader()
    stoker.pack_series(reader, tmp_path / "out", time="day")
    with pytest.raises((ValueError, pyarrow.ArrowInvalid, stoker.StokerError)):
        stoker.pack_series(reader, tmp_path / "again", time="day")
    assert not (tmp_path / "again").exists()


# Bad files


def broken(kind, good):
    if kind == "empty":
        return b""
    if kind == "cut":
        return good[: len(good) // 2]
    if kind == "magic":
        return b"nope" + good[4:-4] + b"nope"
    return b"\x00" * 100


@pytest.mark.parametrize("suffix", ["parquet", "orc", "feather", "csv.gz"])
@pytest.mark.parametrize("kind", ["empty", "cut", "magic", "zeros"])
@pytest.mark.parametrize("place", [0, 2])
def test_a_broken_file_is_named_and_nothing_is_left(sources, tmp_path, suffix, kind, place):
    folder = write_all(sources, tmp_path / "in", suffix)
    path = folder / f"e{place}.{suffix}"
    path.write_bytes(broken(kind, path.read_bytes()))
    with pytest.raises(stoker.StokerError) as caught:
        stoker.pack_series(folder, tmp_path / "out", time="day")
    assert path.name in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert [thread.name for thread in threading.enumerate() if "stoker" in thread.name] == []


def test_a_parquet_footer_longer_than_the_file_is_an_error(tmp_path):
    path = tmp_path / "bad.parquet"
    path.write_bytes(b"PAR1" + b"\xff\xff\xff\x7f" + b"PAR1")
    with pytest.raises(stoker.errors.CorruptError, match=r"bad\.parquet"):
        stoker.pack_series(path, tmp_path / "out")


def renamed(table):
    return table.rename_columns(["day", "a", "other", "c"])


def retyped(table):
    return table.set_column(1, "a", table["a"].cast(pyarrow.float64()))


@pytest.mark.parametrize("change", [lambda table: table.drop_columns("b"), renamed, retyped])
@pytest.mark.parametrize("features", [None, ["a", "b", "c"]])
def test_a_file_with_other_columns_is_named_with_both_schemas(sources, tmp_path, change, features):
    folder = write_all(sources, tmp_path / "in", "parquet")
    parquet.write_table(change(sources["e1"]), folder / "e1.parquet")
    with pytest.raises(stoker.StokerError) as caught:
        stoker.pack_series(folder, tmp_path / "out", time="day", features=features)
    words = str(caught.value)
    assert "e1.parquet" in words
    assert "e0.parquet: a: float, b: float" in words
    assert "here: day: timestamp" in words
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def falling_offsets():
    offsets = pyarrow.py_buffer(numpy.array([0, 5, 3, 6], numpy.int32))
    return pyarrow.Array.from_buffers(
        pyarrow.string(), 3, [None, offsets, pyarrow.py_buffer(b"abcdef")]
    )


def index_outside():
    indices = pyarrow.array([0, 9, 0], pyarrow.int8())
    return pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array(["a"]), safe=False)


def bytes_that_are_no_text():
    offsets = pyarrow.py_buffer(numpy.array([0, 1, 2, 3], numpy.int32))
    return pyarrow.Array.from_buffers(
        pyarrow.string(), 3, [None, offsets, pyarrow.py_buffer(b"\xff\xfe\xfd")]
    )


@pytest.mark.parametrize("lie", [falling_offsets, index_outside, bytes_that_are_no_text])
def test_arrow_memory_that_lies_is_an_error(tmp_path, lie):
    table = pyarrow.table({"name": lie(), "a": [1.0, 2.0, 3.0]})
    with pytest.raises(stoker.StokerError, match="name"):
        stoker.pack_series(table, tmp_path / "out", entity="name")
    assert list(tmp_path.iterdir()) == []


def test_an_extension_type_is_its_storage(tmp_path):
    class Metres(pyarrow.ExtensionType):
        def __init__(self):
            super().__init__(pyarrow.float32(), "test.metres")

        def __arrow_ext_serialize__(self):
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, storage, serialized):
            return cls()

    numbers = pyarrow.array([1.0, 2.0, 3.0], pyarrow.float32())
    table = pyarrow.table({"a": pyarrow.ExtensionArray.from_storage(Metres(), numbers)})
    stoker.pack_series({"one": table}, tmp_path / "out", scaler=None)
    check(tmp_path / "out", {"one": pyarrow.table({"a": numbers})})


@pytest.mark.parametrize(
    "made",
    [
        [True, False, True],
        numpy.array([1, 2, 3], "i1"),
        numpy.array([1, 2, 3], "u2"),
        numpy.array([1, 2, 1 << 40], "i8"),
        numpy.array([1, 2, 3], "u8"),
        numpy.array([1.5, 2, 3], "f2"),
        numpy.array([1.5, 2, 1e30], "f8"),
    ],
)
def test_numbers_of_every_type_are_features(tmp_path, made):
    table = pyarrow.table({"a": made})
    stoker.pack_series({"one": table}, tmp_path / "out", scale="late", scaler=None, dtype="f32")
    rows = numpy.fromfile(tmp_path / "out" / "all_features.mmap", numpy.float32)
    assert_array_equal(rows, numpy.asarray(made).astype(numpy.float32))


@pytest.mark.parametrize(
    ("kind", "places"),
    [("decimal32", 3), ("decimal64", 0), ("decimal64", 18), ("decimal128", 3), ("decimal128", 18)],
)
def test_decimals_are_features(tmp_path, kind, places):
    digits = {"decimal32": 9, "decimal64": 18, "decimal128": 38}[kind]
    whole = numpy.array([0, 1, -1, 123456789, -987654321, 5])
    made = [None if i == 5 else Decimal(int(n)).scaleb(-places) for i, n in enumerate(whole)]
    column = pyarrow.array(made, getattr(pyarrow, kind)(digits, places))
    table = pyarrow.table({"a": numpy.arange(6.0), "price": column}).slice(1)
    options = {"scale": "late", "scaler": None, "nan": "zero"}
    stoker.pack_series({"one": table}, tmp_path / "table", **options)
    parquet.write_table(table, tmp_path / "one.parquet")
    stoker.pack_series(tmp_path / "one.parquet", tmp_path / "file", **options)
    wanted = numpy.array([float(n or 0) for n in made[1:]], "f4")
    for out in ("table", "file"):
        rows = numpy.fromfile(tmp_path / out / "all_features.mmap", "f4").reshape(-1, 2)
        assert_array_equal(rows[:, 1], wanted)


def test_a_decimal_may_have_fewer_than_no_places(tmp_path):
    column = pyarrow.array([Decimal("12E+2"), Decimal("-7E+3")], pyarrow.decimal128(10, -2))
    stoker.pack_series(pyarrow.table({"a": column}), tmp_path / "out", scaler=None)
    rows = numpy.fromfile(tmp_path / "out" / "all_features.mmap", "f4")
    assert_array_equal(rows, [1200, -7000])


def test_a_number_that_the_stored_type_cannot_hold_is_an_error(tmp_path):
    table = pyarrow.table({"a": [1.0, 1e300, 2.0]})
    with pytest.raises(stoker.StokerError, match=r"one.*row 1.*a.*1e\+300"):
        stoker.pack_series({"one": table}, tmp_path / "out", scale="late", scaler=None)
    assert list(tmp_path.iterdir()) == []


def test_a_number_that_is_text_in_another_file_is_named_as_such(tmp_path):
    parquet.write_table(pyarrow.table({"a": [1.0], "b": [2.0]}), tmp_path / "one.parquet")
    parquet.write_table(pyarrow.table({"a": [1.0], "b": ["x"]}), tmp_path / "two.parquet")
    with pytest.raises(stoker.StokerError, match="column b is string and was double"):
        stoker.pack_series(tmp_path, tmp_path / "out")


@pytest.mark.parametrize("in_file", [False, True])
def test_columns_that_are_no_numbers_are_told(tmp_path, caplog, in_file):
    table = pyarrow.table({"a": [1.0, 2.0], "note": ["x", "y"], "took": [b"", b""]})
    parquet.write_table(table, tmp_path / "one.parquet")
    stoker.pack_series(tmp_path / "one.parquet" if in_file else table, tmp_path / "out")
    assert "left out of the features: note (string), took (binary)" in caplog.text


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_the_index_of_a_data_frame_is_no_feature(tmp_path, caplog, suffix):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0]}, index=[7, 8, 9])
    path = tmp_path / f"one.{suffix}"
    frame.to_parquet(path) if suffix == "parquet" else frame.to_csv(path)
    stoker.pack_series(path, tmp_path / "out")
    assert stoker.open(tmp_path / "out", window=1).scaler.features == ("a",)
    assert "left out of the features" in caplog.text


def test_without_a_number_the_columns_are_listed(tmp_path):
    (tmp_path / "one.csv").write_text("day;price\n1;2\n")
    with pytest.raises(stoker.StokerError, match="there are day;price: string"):
        stoker.pack_series(tmp_path / "one.csv", tmp_path / "out")
    (tmp_path / "one.csv").write_text("day,price\n1,'2'\n")
    with pytest.raises(stoker.StokerError, match="price: string"):
        stoker.pack_series(tmp_path / "one.csv", tmp_path / "out", time="day")


def test_a_series_among_the_sources_is_refused(sources, tmp_path):
    write_all(sources, tmp_path, "parquet")
    stoker.pack_series(str(tmp_path), tmp_path / "out", time="day")
    with pytest.raises(stoker.StokerError, match="this is a series") as caught:
        stoker.pack_series(str(tmp_path), tmp_path / "out", time="day", force=True)
    assert caught.value.object == str(tmp_path / "out")


def test_the_command_names_a_broken_file_once(tmp_path, capfd):
    from stoker.__main__ import main

    (tmp_path / "one.parquet").write_bytes(b"nonsense")
    out = str(tmp_path / "out")
    assert main(["pack", str(tmp_path / "one.parquet"), "-o", out, "--to", "series"]) == 1
    assert capfd.readouterr().err.count("one.parquet") == 1


def test_an_arrow_file_that_shrinks_meanwhile_is_an_error(tmp_path):
    path = tmp_path / "one.arrow"
    batch = pyarrow.record_batch({"a": numpy.arange(20000.0)})
    with pyarrow.OSFile(str(path), "wb") as file, pyarrow.ipc.new_file(file, batch.schema) as to:
        for _ in range(60):
            to.write_batch(batch)
    program = f"""
        import os, stoker
        from stoker import _tables
        tables, _ = _tables.open_tables([{str(path)!r}], memory=32 << 20)
        os.truncate({str(path)!r}, 1 << 20)
        try:
            stoker.pack_series([("one", table) for _, table in tables], {str(tmp_path / "out")!r})
        except Exception as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.returncode
    assert "one.arrow" in done.stdout


def test_names_that_lead_nowhere_are_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("no table")
    for name in ("nope", "no*pe", "empty", "other"):
        with pytest.raises(stoker.StokerError, match=name.replace("*", r"\*")):
            stoker.pack_series(tmp_path / name, tmp_path / "out")
    with pytest.raises(stoker.errors.UnsupportedError, match=r"notes\.txt"):
        stoker.pack_series(tmp_path / "other", tmp_path / "out")


def test_without_pyarrow_files_are_refused_with_a_remedy(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(stoker.errors.UnsupportedError, match="pip install"):
        stoker.pack_series(tmp_path / "a.parquet", tmp_path / "out")


# Progress and Ctrl-C


def test_progress_counts_rows_and_knows_their_total(tmp_path):
    told = []
    batches = tables((400_000,), columns=8)["e0"].to_batches(max_chunksize=1000)

    def slow():
        for number, batch in enumerate(batches):
            if number % 100 == 0:
                time.sleep(0.12)
            yield batch

    stoker.pack_series(
        slow(), tmp_path / "out", time="day", progress=lambda *words: told.append(words)
    )
    assert told
    assert all(unit == "rows" for what, unit, *_ in told if what == "packing")
    with pytest.raises(ZeroDivisionError):
        stoker.pack_series(slow(), tmp_path / "two", time="day", progress=lambda *words: 1 / 0)
    assert not (tmp_path / "two").exists()


@pytest.mark.parametrize("where", ["generator", "library"])
def test_ctrl_c_leaves_nothing_behind(tmp_path, where):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys, time
            import numpy, pyarrow, stoker

            table = pyarrow.table({f"f{i}": numpy.random.random(100_000) for i in range(8)})

            def endless():
                while True:
                    print("more", flush=True)
                    if sys.argv[2] == "generator":
                        time.sleep(0.05)
                    yield from table.to_batches()

            try:
                stoker.pack_series(endless(), sys.argv[1])
            except KeyboardInterrupt:
                print("interrupted")
            """
        )
    )
    out = tmp_path / "work"
    out.mkdir()
    process = subprocess.Popen(
        [sys.executable, script, out / "series", where], stdout=subprocess.PIPE, text=True
    )
    for _ in range(5):
        process.stdout.readline()
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    assert "interrupted" in rest
    assert list(out.iterdir()) == []


# The command


def test_the_command_packs_what_the_package_packs(sources, tmp_path):
    folder = write_all(sources, tmp_path / "in", "parquet")
    arguments = [folder, "-o", tmp_path / "cli", "--to", "series", "--time", "day"]
    done = subprocess.run(
        [sys.executable, "-m", "stoker", "pack", *map(str, arguments)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    stoker.pack_series(folder, tmp_path / "api", time="day")
    for name in ("all_features.mmap", "time.mmap", "scaler.json", "scaler.joblib"):
        assert (tmp_path / "cli" / name).read_bytes() == (tmp_path / "api" / name).read_bytes()
    raw = [*map(str, arguments), "--scale", "late", "--force"]
    subprocess.run([sys.executable, "-m", "stoker", "pack", *raw], check=True)
    rescale = ["rescale", str(tmp_path / "cli"), "--scaler", "minmax"]
    subprocess.run([sys.executable, "-m", "stoker", *rescale], check=True)
    assert b"MinMaxScaler" in (tmp_path / "cli" / "scaler.joblib").read_bytes()
    rows = numpy.concatenate([matrix(table) for table in sources.values()])
    scaler = stoker.open(tmp_path / "cli", window=5).scaler
    assert_allclose(scaler.transform(rows).max(axis=0), [1, 1, 1])
    (folder / "e1.parquet").write_bytes(b"nope")
    done = subprocess.run(
        [sys.executable, "-m", "stoker", "pack", *map(str, arguments), "--force"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "e1.parquet" in done.stderr
    assert "Traceback" not in done.stderr


def test_generated_tables_are_parquet_files_that_pack(tmp_path):
    made = tmp_path / "made"
    arguments = ["gen", "series", "-o", str(made), "--entities", "3", "--rows", "200"]
    done = subprocess.run(
        [sys.executable, "-m", "stoker", *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    table = parquet.read_table(sorted(made.glob("*.parquet"))[0])
    assert len(table) == 200
    assert pyarrow.types.is_timestamp(table.schema.field("time").type)
    assert table.schema.field("value").type == pyarrow.float32()
    packed = stoker.pack_series(made, tmp_path / "out", time="time")
    assert packed.entities == 3
    assert_allclose(
        stoker.open(tmp_path / "out", window=5).scaler.center[0],
        numpy.mean(
            [parquet.read_table(path)["value"].to_numpy() for path in made.glob("*.parquet")],
            dtype=numpy.float64,
        ),
        rtol=1e-6,
    )
