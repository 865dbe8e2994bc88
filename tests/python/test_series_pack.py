"""Packing series: what is stored, how it is scaled, split and filled; by numpy, pandas, sklearn."""

import json

import numpy
import pytest
import stoker
from numpy.testing import assert_allclose, assert_array_equal
from series_making import drawn, matrix, tables, windows

pyarrow = pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")
preprocessing = pytest.importorskip("sklearn.preprocessing")

LENGTHS = (60, 25, 90)
KINDS = {
    "standard": preprocessing.StandardScaler,
    "minmax": preprocessing.MinMaxScaler,
    "robust": preprocessing.RobustScaler,
}


def metadata(folder):
    return json.loads((folder / "metadata.json").read_text())


def stored(folder, columns=3):
    """The array as numpy opens it."""
    return numpy.memmap(folder / "all_features.mmap", numpy.float32, "r").reshape(-1, columns)


@pytest.fixture
def sources():
    return tables(LENGTHS)


# What is stored


def test_raw_values_are_stored_in_order_and_numpy_opens_them(sources, tmp_path):
    packed = stoker.pack_series(sources, tmp_path / "out", time="day", scaler=None)
    rows = sum(LENGTHS)
    assert (packed.rows, packed.entities, packed.added_rows) == (rows, 3, rows)
    assert (packed.bytes, packed.missing, packed.sorted) == (rows * 12, 0, False)
    wanted = numpy.concatenate([matrix(table) for table in sources.values()])
    assert_array_equal(stored(tmp_path / "out"), wanted.astype(numpy.float32))
    words = metadata(tmp_path / "out")
    assert words["features"] == ["a", "b", "c"]
    assert [(e["name"], e["start"], e["end"]) for e in words["entities"]] == [
        ("e0", 0, 60),
        ("e1", 60, 85),
        ("e2", 85, 175),
    ]


@pytest.mark.parametrize("kind", list(KINDS))
def test_stored_values_and_the_scaler_are_those_of_scikit_learn(sources, tmp_path, kind):
    stoker.pack_series(sources, tmp_path / "out", time="day", scaler=kind)
    rows = numpy.concatenate([matrix(table) for table in sources.values()])
    assert_allclose(
        stored(tmp_path / "out"), KINDS[kind]().fit_transform(rows), rtol=1e-5, atol=1e-6
    )
    ds = stoker.open(tmp_path / "out", window=5)
    assert ds.scaler.kind == kind
    assert_allclose(ds.scaler.transform(rows), KINDS[kind]().fit_transform(rows), rtol=1e-6)


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("scale", ["stored", "late"])
def test_the_joblib_file_is_the_object_of_scikit_learn(sources, tmp_path, kind, scale):
    joblib = pytest.importorskip("joblib")
    stoker.pack_series(sources, tmp_path / "out", time="day", scaler=kind, scale=scale)
    loaded = joblib.load(tmp_path / "out" / "scaler.joblib")
    assert type(loaded) is KINDS[kind]
    rows = numpy.concatenate([matrix(table) for table in sources.values()])
    frame = pandas.DataFrame(rows, columns=["a", "b", "c"])
    fitted = KINDS[kind]().fit(frame)
    assert_allclose(loaded.transform(frame), fitted.transform(frame), rtol=1e-6, atol=1e-9)
    assert_allclose(loaded.inverse_transform(loaded.transform(frame)), rows, rtol=1e-6)
    assert loaded.get_params() == fitted.get_params()
    assert set(vars(loaded)) == set(vars(fitted))
    if hasattr(loaded, "partial_fit"):  # it goes on learning like the other
        loaded.partial_fit(frame[:20])
        fitted.partial_fit(frame[:20])
        assert_allclose(loaded.transform(frame), fitted.transform(frame), rtol=1e-6, atol=1e-9)


def test_no_scaler_leaves_no_joblib_file(sources, tmp_path):
    stoker.pack_series(sources, tmp_path / "out", time="day", scaler=None)
    assert not (tmp_path / "out" / "scaler.joblib").exists()


@pytest.mark.parametrize("kind", ["standard", "minmax"])
def test_a_column_with_a_huge_mean_keeps_its_variance(tmp_path, kind):
    random = numpy.random.default_rng(0)
    rows = numpy.column_stack([1e9 + random.standard_normal(50_000), random.random(50_000)])
    table = pyarrow.table({"a": rows[:, 0], "b": rows[:, 1]})
    stoker.pack_series({"one": table}, tmp_path / "out", scaler=kind, scale="late")
    fitted = KINDS[kind]().fit(rows)
    scaler = stoker.open(tmp_path / "out", window=5).scaler
    center, scale = (
        (fitted.mean_, fitted.scale_)
        if kind == "standard"
        else (fitted.data_min_, fitted.data_range_)
    )
    assert_allclose(scaler.center, center, rtol=1e-6)
    assert_allclose(scaler.scale, scale, rtol=1e-6)


def test_robust_quantiles_are_within_the_stated_rank_error(tmp_path):
    random = numpy.random.default_rng(0)
    rows = random.lognormal(size=200_000)
    stoker.pack_series({"one": pyarrow.table({"a": rows})}, tmp_path / "out", scaler="robust")
    words = json.loads((tmp_path / "out" / "scaler.json").read_text())
    error = words["quantile_rank_error"]
    assert 0 < error <= 0.01
    scaler = stoker.open(tmp_path / "out", window=5).scaler
    rank = (rows < scaler.center[0]).mean()
    assert abs(rank - 0.5) <= error
    low, high = numpy.quantile(rows, [0.25 - error, 0.75 + error])
    inner = numpy.quantile(rows, [0.25 + error, 0.75 - error])
    assert inner[1] - inner[0] <= scaler.scale[0] <= high - low


def test_any_number_of_threads_writes_the_same_bytes(sources, tmp_path):
    for threads in (1, 2, 3):
        out = tmp_path / str(threads)
        stoker.pack_series(sources, out, time="day", threads=threads, split=(0.8, 0.2))
    for name in ("all_features.mmap", "metadata.json", "scaler.json", "time.mmap"):
        assert len({(tmp_path / str(n) / name).read_bytes() for n in (1, 2, 3)}) == 1, name


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "f16"])
def test_narrow_types_are_rounded_from_the_scaled_values(sources, tmp_path, dtype):
    torch = pytest.importorskip("torch")
    stoker.pack_series(sources, tmp_path / "out", time="day", dtype=dtype)
    rows = numpy.concatenate([matrix(table) for table in sources.values()])
    wanted = preprocessing.StandardScaler().fit_transform(rows)
    ds = stoker.open(tmp_path / "out", window=4, as_="torch")
    assert ds[0]["x"].dtype == (torch.bfloat16 if dtype == "bfloat16" else torch.float16)
    digits = 2**-8 if dtype == "bfloat16" else 2**-11
    assert_allclose(ds[0]["x"].float(), wanted[:4], rtol=digits * 1.01, atol=1e-6)


def test_labels_need_not_be_features(sources, tmp_path):
    stoker.pack_series(sources, tmp_path / "out", time="day", features=["b", "a"], labels="c")
    ds = stoker.open(tmp_path / "out", as_="numpy", window=4, horizon=2)
    rows = matrix(sources["e0"])
    assert (ds.features, ds.labels, ds.scaler.columns) == (("b", "a"), ("c",), ("b", "a", "c"))
    assert_allclose(
        ds.scaler.inverse(ds[3]["x"], columns=ds.features), rows[3:7][:, [1, 0]], rtol=1e-5
    )
    assert_allclose(ds.scaler.inverse(ds[3]["y"]), rows[7:9, 2], rtol=1e-5)


# Late scaling


@pytest.mark.parametrize("kind", list(KINDS))
def test_late_and_stored_scaling_give_the_same_windows(sources, tmp_path, kind):
    for scale in ("stored", "late"):
        stoker.pack_series(sources, tmp_path / scale, time="day", scaler=kind, scale=scale)
    for how in ({}, {"features": ["c", "a"]}, {"pad": True}, {"labels": ["b", "c"], "horizon": 2}):
        got = {}
        for scale in ("stored", "late"):
            ds = stoker.open(tmp_path / scale, as_="numpy", window=7, **how)
            with stoker.Loader(ds, 32, shuffle=True, seed=2) as loader:
                got[scale] = drawn(loader, "x", "y")
        for stored_, late in zip(got["stored"], got["late"], strict=True):
            assert_allclose(late, stored_, rtol=1e-5, atol=1e-6)
    raw = numpy.concatenate([matrix(table) for table in sources.values()])
    assert_array_equal(stored(tmp_path / "late"), raw.astype(numpy.float32))


def test_rescale_fits_another_scaler_and_leaves_the_array(sources, tmp_path):
    joblib = pytest.importorskip("joblib")
    out = tmp_path / "out"
    stoker.pack_series(sources, out, time="day", scale="late", split=(0.6, 0.4))
    before = (out / "all_features.mmap").read_bytes()
    raw = numpy.concatenate([matrix(table) for table in sources.values()])
    stoker.rescale(out, "minmax", fit_on="all")
    fitted = preprocessing.MinMaxScaler().fit(raw)
    ds = stoker.open(out, as_="numpy", window=3)
    assert_allclose(ds[0]["x"], fitted.transform(raw[:3]), rtol=1e-5, atol=1e-6)
    assert type(joblib.load(out / "scaler.joblib")) is preprocessing.MinMaxScaler
    stoker.rescale(out, None)
    assert not (out / "scaler.joblib").exists()
    assert_array_equal(stoker.open(out, as_="numpy", window=3)[0]["x"], raw[:3].astype("f4"))
    stoker.rescale(out, fit_on=["e1"])
    only = preprocessing.StandardScaler().fit(matrix(sources["e1"]))
    assert_allclose(stoker.open(out, window=3).scaler.center, only.mean_, rtol=1e-6)
    assert (out / "all_features.mmap").read_bytes() == before


def test_rescale_refuses_scaled_values(sources, tmp_path):
    stoker.pack_series(sources, tmp_path / "out", time="day")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    with pytest.raises(stoker.StokerError, match="late"):
        stoker.rescale(tmp_path / "out", "minmax")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    with pytest.raises(ValueError, match="nope"):
        stoker.rescale(tmp_path / "out", "nope")


# Order


@pytest.mark.parametrize("scale", ["stored", "late"])
def test_rows_in_disorder_are_sorted_by_entity_and_time(tmp_path, scale):
    made = tables((400, 300, 500))
    parts = [
        table.append_column("entity", pyarrow.array([name] * len(table)))
        for name, table in made.items()
    ]
    whole = pyarrow.concat_tables(parts)
    order = numpy.random.default_rng(0).permutation(len(whole))
    mixed = whole.take(pyarrow.array(order))
    packed = stoker.pack_series(
        iter(mixed.to_batches(100)),
        tmp_path / "out",
        entity="entity",
        time="day",
        scale=scale,
        memory="1MiB",
    )
    assert packed.sorted
    frame = whole.to_pandas().sort_values(["entity", "day"])
    names = list(stoker.open(tmp_path / "out", window=3).entities)
    assert sorted(names) == ["e0", "e1", "e2"]
    rows = numpy.concatenate([matrix(made[name]) for name in names])
    if scale == "stored":
        rows = preprocessing.StandardScaler().fit_transform(rows)
    assert_allclose(stored(tmp_path / "out"), rows, rtol=1e-5, atol=1e-5)
    times = numpy.fromfile(tmp_path / "out" / "time.mmap", numpy.int64)
    for name in names:
        span = stoker.open(tmp_path / "out", window=3).entities.rows(name)
        wanted = frame[frame.entity == name].day.to_numpy().astype("datetime64[s]")
        assert_array_equal(times[span.start : span.stop], wanted.astype(numpy.int64))


def test_the_order_of_time_walks_forward(tmp_path):
    made = tables((40, 25, 60)) | {"late": tables((30,), start=20)["e0"]}
    stoker.pack_series(made, tmp_path / "out", time="day")
    ds = stoker.open(
        tmp_path / "out", as_="numpy", window=5, fields=["x", "y", "time", "entity", "y_time"]
    )
    with stoker.Loader(ds, 16, order="time") as loader:
        time, entity, ahead = drawn(loader, "time", "entity", "y_time")
    keys = list(zip(time.tolist(), entity.tolist(), strict=True))
    assert len(keys) == len(ds)
    assert keys == sorted(keys)
    assert ds.time_unit == "s"
    assert_array_equal(ahead[:, 0], time + 86400)


def test_the_order_of_time_resumes_and_is_shared_by_ranks(tmp_path):
    stoker.pack_series(tables((40, 25, 60)), tmp_path / "out", time="day")
    ds = stoker.open(tmp_path / "out", as_="numpy", window=5)
    with stoker.Loader(ds, 8, order="time") as loader:
        whole = [batch.samples.tolist() for batch in loader]
    with stoker.Loader(ds, 8, order="time") as loader:
        iterator = iter(loader)
        for _ in range(4):
            next(iterator)
        state = loader.state_dict()
    with stoker.Loader(ds, 8, order="time") as loader:
        loader.load_state_dict(state)
        assert [batch.samples.tolist() for batch in loader] == whole[4:]
    seen = []
    for rank in range(2):
        with stoker.Loader(ds, 8, order="time", rank=rank, world_size=2) as loader:
            for batch in loader:
                seen += batch.samples[batch.samples >= 0].tolist()
    assert sorted(seen) == list(range(len(ds)))


# Statics and categories


def test_statics_come_with_every_window(tmp_path):
    made = {
        name: table.append_column("size", pyarrow.array(numpy.full(len(table), number * 1.5)))
        for number, (name, table) in enumerate(tables(LENGTHS).items())
    }
    stoker.pack_series(made, tmp_path / "out", time="day", statics="size")
    ds = stoker.open(tmp_path / "out", as_="numpy", window=4, fields=["static", "entity"])
    assert ds.statics == ("size",)
    assert "size" not in ds.features
    with stoker.Loader(ds, 20, shuffle=True) as loader:
        static, entity = drawn(loader, "static", "entity")
    assert_array_equal(static, entity[:, None] * numpy.float32(1.5))


def test_a_static_that_changes_within_an_entity_is_an_error(tmp_path):
    table = pyarrow.table({"a": [1.0, 2.0, 3.0], "size": [5, 5, 6]})
    with pytest.raises(stoker.StokerError, match="size"):
        stoker.pack_series({"one": table}, tmp_path / "out", statics=["size"])
    assert not (tmp_path / "out").exists()


def test_a_static_that_no_row_says_is_nan_and_told(tmp_path, caplog):
    table = pyarrow.table({"of": ["p", "p", "q"], "a": [1.0, 2.0, 3.0], "size": [None, 5, None]})
    options = {"entity": "of", "features": "a", "statics": "size"}
    with pytest.raises(stoker.StokerError, match="size"):
        stoker.pack_series(table, tmp_path / "out", **options)
    stoker.pack_series(table, tmp_path / "out", nan="zero", **options)
    assert "'size' has no value for 1 of the entities" in caplog.text
    assert_array_equal(numpy.fromfile(tmp_path / "out" / "static.mmap", "f4"), [5, numpy.nan])


@pytest.mark.parametrize("encoded", [False, True])
def test_categories_become_codes_and_are_not_scaled(tmp_path, encoded):
    kinds = pyarrow.array(["up", "down", "up", "flat", "down", "up"])
    table = pyarrow.table(
        {"a": numpy.arange(6.0), "kind": kinds.dictionary_encode() if encoded else kinds}
    )
    stoker.pack_series({"one": table}, tmp_path / "out", features=["a", "kind"])
    words = metadata(tmp_path / "out")
    assert words["categories"] == {"kind": ["up", "down", "flat"]}
    assert_array_equal(stored(tmp_path / "out", 2)[:, 1], [0, 1, 0, 2, 1, 0])


# Missing values


def with_holes():
    """A frame of two entities whose columns lack values, and its tables."""
    random = numpy.random.default_rng(0)
    frames = {}
    for name in ("p", "q"):
        frame = pandas.DataFrame(random.random((40, 2)), columns=["a", "b"])
        frame.loc[random.choice(40, 8, replace=False), "a"] = numpy.nan
        frame.loc[[0, 1, 20], "b"] = numpy.nan
        frames[name] = frame
    sources = {
        name: pyarrow.table({c: pyarrow.array(frame[c], from_pandas=True) for c in frame})
        for name, frame in frames.items()
    }
    return frames, sources


@pytest.mark.parametrize("policy", ["drop", "ffill", "mean", "zero"])
@pytest.mark.parametrize("scale", ["stored", "late"])
def test_missing_values_are_filled_as_pandas_fills_them(tmp_path, policy, scale):
    frames, sources = with_holes()
    packed = stoker.pack_series(
        sources, tmp_path / "out", nan=policy, scaler="standard", scale=scale, split=None
    )
    whole = pandas.concat(frames.values())
    filled = {
        "drop": lambda frame: frame.dropna(),
        "ffill": lambda frame: frame.ffill().fillna(whole.mean()),
        "mean": lambda frame: frame.fillna(whole.mean()),
        "zero": lambda frame: frame.fillna(0.0),
    }[policy]
    wanted = pandas.concat([filled(frame) for frame in frames.values()]).to_numpy()
    observed = whole.dropna() if policy == "drop" else whole
    scaler = stoker.open(tmp_path / "out", window=2).scaler
    assert_allclose(scaler.center, observed.mean(), rtol=1e-6)
    assert_allclose(scaler.scale, observed.std(ddof=0), rtol=1e-6)
    if scale == "stored":
        wanted = (wanted - scaler.center) / scaler.scale
    assert_allclose(stored(tmp_path / "out", 2), wanted, rtol=1e-5, atol=1e-6)
    assert packed.missing == int(whole.isna().to_numpy().sum())
    assert packed.dropped_rows == (len(whole) - len(whole.dropna()) if policy == "drop" else 0)
    counts = metadata(tmp_path / "out")["missing"]
    assert counts["policy"] == policy
    assert counts["counts"]["b"] == 6


def test_a_missing_value_is_an_error_that_names_table_row_and_column(tmp_path):
    _, sources = with_holes()
    with pytest.raises(stoker.StokerError) as caught:
        stoker.pack_series(sources, tmp_path / "out")
    words = str(caught.value)
    assert "p" in words and "b" in words and "row 0" in words and "nan" in words.lower()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("policy", ["error", "zero"])
def test_infinity_is_an_error_that_names_table_row_and_column(tmp_path, policy):
    rows = numpy.arange(100.0)
    rows[57] = numpy.inf
    table = pyarrow.table({"a": numpy.arange(100.0), "b": rows})
    with pytest.raises(stoker.StokerError) as caught:
        stoker.pack_series({"lone": table}, tmp_path / "out", nan=policy)
    words = str(caught.value)
    assert "lone" in words and "57" in words and "b" in words
    assert not (tmp_path / "out").exists()


def test_constant_and_empty_columns_have_scale_one_and_a_warning(tmp_path, caplog):
    table = pyarrow.table(
        {
            "a": numpy.arange(50.0),
            "same": numpy.full(50, 7.0),
            "none": pyarrow.array([None] * 50, pyarrow.float64()),
        }
    )
    with caplog.at_level("WARNING", "stoker"):
        stoker.pack_series({"one": table}, tmp_path / "out", nan="zero")
    assert "same" in caplog.text and "none" in caplog.text
    scaler = stoker.open(tmp_path / "out", window=5).scaler
    assert_array_equal(scaler.scale[1:], [1, 1])
    assert_array_equal(stored(tmp_path / "out")[:, 1:], numpy.zeros((50, 2)))


# Splits


def test_no_window_straddles_two_splits(tmp_path):
    made = tables((200, 150, 90))
    stoker.pack_series(made, tmp_path / "out", time="day", split=(0.7, 0.15, 0.15))
    ds = stoker.open(tmp_path / "out")
    assert ds.splits == ("train", "val", "test")
    seen = {}
    for name in ds.splits:
        part = stoker.open(
            tmp_path / "out",
            as_="numpy",
            window=6,
            horizon=2,
            gap=1,
            split=name,
            fields=["entity", "start"],
        )
        with stoker.Loader(part, 50) as loader:
            entity, start = drawn(loader, "entity", "start")
        seen[name] = {
            (int(number), row)
            for number, first in zip(entity, start, strict=True)
            for row in range(first, first + 9)
        }
    assert seen["train"] and seen["val"]
    for one, other in (("train", "val"), ("train", "test"), ("val", "test")):
        assert not seen[one] & seen[other]
    last = {name: max((row for _, row in rows), default=0) for name, rows in seen.items()}
    assert last["train"] < last["val"]  # one moment for all entities, and time goes forward


def test_a_split_by_shares_of_time_is_where_that_share_of_rows_lies(tmp_path):
    made = tables((200, 100))
    stoker.pack_series(made, tmp_path / "out", time="day", split=(0.8, 0.2), scaler="standard")
    days = numpy.sort(numpy.concatenate([table["day"].to_numpy() for table in made.values()]))
    cut = metadata(tmp_path / "out")["splits"]["cuts"][0]
    before = (days.astype("datetime64[s]").astype(numpy.int64) < cut).mean()
    assert before >= 0.8
    assert before < 0.8 + 2 / len(days)
    train = numpy.concatenate(
        [
            matrix(table)[table["day"].to_numpy().astype("datetime64[s]").astype(numpy.int64) < cut]
            for table in made.values()
        ]
    )
    fitted = preprocessing.StandardScaler().fit(train)
    scaler = stoker.open(tmp_path / "out", window=5).scaler
    assert_allclose(scaler.center, fitted.mean_, rtol=1e-6)
    assert_allclose(scaler.scale, fitted.scale_, rtol=1e-6)


@pytest.mark.parametrize(
    ("fit_on", "rows"),
    [
        (("2020-01-10", "2020-02-10"), slice(9, 40)),
        ((None, "2020-02-10"), slice(0, 40)),
        ("time:2020-01-10..2020-02-10", slice(9, 40)),
        ("all", slice(None)),
    ],
)
def test_only_the_named_rows_shape_the_scaler(tmp_path, fit_on, rows):
    made = tables((60, 60))
    stoker.pack_series(made, tmp_path / "out", time="day", fit_on=fit_on, split=(0.5, 0.5))
    chosen = numpy.concatenate([matrix(table)[rows] for table in made.values()])
    fitted = preprocessing.StandardScaler().fit(chosen)
    scaler = stoker.open(tmp_path / "out", window=5).scaler
    assert_allclose(scaler.center, fitted.mean_, rtol=1e-6)
    assert_allclose(scaler.scale, fitted.scale_, rtol=1e-6)


def test_the_scaler_can_be_fitted_on_some_entities(sources, tmp_path):
    stoker.pack_series(sources, tmp_path / "out", time="day", fit_on=["e0", "e2"])
    rows = numpy.concatenate([matrix(sources[name]) for name in ("e0", "e2")])
    fitted = preprocessing.StandardScaler().fit(rows)
    assert_allclose(stoker.open(tmp_path / "out", window=5).scaler.center, fitted.mean_, rtol=1e-6)


def test_entities_can_be_split_and_a_new_one_moves_none(tmp_path):
    many = tables([20] * 40)
    split = "entity:0.6,0.2,0.2"
    stoker.pack_series(many, tmp_path / "all", time="day", split=split)
    few = {name: many[name] for name in list(many)[:25]}
    stoker.pack_series(few, tmp_path / "few", time="day", split=split)

    def dealt(folder):
        found = {}
        for part in ("train", "val", "test"):
            ds = stoker.open(folder, as_="numpy", window=5, split=part, fields=["entity"])
            with stoker.Loader(ds, 64) as loader:
                (numbers,) = drawn(loader, "entity")
            found |= {ds.entities[int(number)]: part for number in set(numbers)}
        return found

    whole, part = dealt(tmp_path / "all"), dealt(tmp_path / "few")
    assert len(whole) == 40
    assert part == {name: whole[name] for name in few}


# Adding


@pytest.mark.parametrize("scale", ["stored", "late"])
def test_appending_adds_entities_and_newer_rows_and_keeps_the_scaler(tmp_path, scale):
    first = tables((50, 40))
    out = tmp_path / "out"
    stoker.pack_series(first, out, time="day", scale=scale)
    fitted = stoker.open(out, window=5).scaler
    new = {"e1": tables((0, 20), start=40)["e1"], "fresh": tables((30,), seed=9)["e0"]}
    packed = stoker.pack_series(new, out, time="day", append=True)
    assert (packed.added_rows, packed.rows, packed.entities) == (50, 140, 3)
    ds = stoker.open(out, as_="numpy", window=5, stride=1, fields=["x", "y", "entity"])
    scaler = ds.scaler
    assert_array_equal(scaler.center, fitted.center)
    wanted = {
        "e0": matrix(first["e0"]),
        "e1": numpy.concatenate([matrix(first["e1"]), matrix(new["e1"])]),
        "fresh": matrix(new["fresh"]),
    }
    with stoker.Loader(ds, 64) as loader:
        x, y, entity = drawn(loader, "x", "y", "entity")
    for number, name in enumerate(ds.entities):
        rows = scaler.transform(wanted[name])
        want_x, want_y = windows(rows, 5)
        assert_allclose(x[entity == number], want_x, rtol=1e-4, atol=1e-5)
        assert_allclose(y[entity == number], want_y, rtol=1e-4, atol=1e-5)


def test_appending_older_rows_is_refused_and_changes_nothing(tmp_path):
    out = tmp_path / "out"
    stoker.pack_series(tables((50, 40)), out, time="day")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(stoker.StokerError):
        stoker.pack_series(tables((20,)), out, time="day", append=True)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_series_that_is_there_is_replaced_only_with_force(tmp_path):
    out = tmp_path / "out"
    stoker.pack_series(tables((50,)), out, time="day")
    with pytest.raises(stoker.StokerError, match="force"):
        stoker.pack_series(tables((60,)), out, time="day")
    assert len(stoker.open(out, window=5)) == 45
    stoker.pack_series(tables((60,)), out, time="day", force=True)
    assert len(stoker.open(out, window=5)) == 55
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_kill_at_any_moment_leaves_the_old_series_or_the_new_one(run_python, tmp_path):
    script = """
    import os, signal, sys, threading, time
    import numpy, pyarrow, stoker

    table = pyarrow.table({f"f{i}": numpy.full(300_000, float(sys.argv[2])) for i in range(8)})
    threading.Timer(float(sys.argv[3]), os.kill, (os.getpid(), signal.SIGKILL)).start()
    while True:
        stoker.pack_series({"one": table}, sys.argv[1], scaler=None, force=True)
    """
    out = tmp_path / "out"
    table = pyarrow.table({f"f{i}": numpy.zeros(100) for i in range(8)})
    stoker.pack_series({"one": table}, out, scaler=None)
    for number, delay in enumerate((0.004, 0.02, 0.05, 0.11), 1):
        assert run_python(script, out, number, delay).returncode == -9
        rows = numpy.fromfile(out / "all_features.mmap", numpy.float32)
        assert len(set(rows.tolist())) == 1
        ds = stoker.open(out, as_="numpy", window=5)
        assert len(rows) == 8 * (len(ds) + 5) == 8 * metadata(out)["rows"]
        assert ds[len(ds) - 1]["x"][0, 0] == rows[0]
    stoker.pack_series({"one": table}, out, scaler=None, force=True)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["out"]


# The scaler that a user sees


def test_predictions_go_back_to_the_units_of_the_data(sources, tmp_path):
    torch = pytest.importorskip("torch")
    stoker.pack_series(sources, tmp_path / "out", time="day", labels=["b", "c"])
    ds = stoker.open(tmp_path / "out", window=6, horizon=3, as_="torch")
    rows = matrix(sources["e0"])
    y = ds[2]["y"]
    assert y.shape == (3, 2)
    back = ds.scaler.inverse(y)
    assert (back.dtype, back.device) == (y.dtype, y.device)
    assert_allclose(back, rows[8:11][:, [1, 2]], rtol=1e-5)
    assert_allclose(ds.scaler.inverse(y.numpy()), rows[8:11][:, [1, 2]], rtol=1e-5)
    batch = torch.stack([ds[0]["y"], ds[1]["y"]]).requires_grad_()
    ds.scaler.inverse(batch).sum().backward()
    assert batch.grad is not None
    x = ds.scaler.inverse(ds[2]["x"], columns=ds.scaler.features)
    assert_allclose(x, rows[2:8], rtol=1e-5, atol=1e-5)
    assert_allclose(ds.scaler.transform(rows[2:8]), ds[2]["x"], rtol=1e-5, atol=1e-6)
    assert_allclose(ds.scaler.inverse(y[:, 1], columns="c"), rows[8:11][:, 2], rtol=1e-5)
    one = stoker.open(tmp_path / "out", window=6, horizon=3, labels="a")
    assert_allclose(one.scaler.inverse(one[2]["y"]), rows[8:11][:, 0], rtol=1e-5)
    with pytest.raises(ValueError, match="2 columns b, c"):
        ds.scaler.inverse(numpy.zeros((4, 3)))
    with pytest.raises(KeyError, match="nope"):
        ds.scaler.inverse(numpy.zeros(3), columns="nope")
    assert "standard" in repr(ds.scaler) and "b: center" in repr(ds.scaler)


# Bad input


def test_an_entity_shorter_than_a_window_is_skipped_and_counted(tmp_path):
    stoker.pack_series(tables((50, 3)), tmp_path / "out", time="day")
    ds = stoker.open(tmp_path / "out", window=10)
    assert ds.short_entities == 1
    assert len(ds) == 40
    assert len(stoker.open(tmp_path / "out", window=10, pad=True)) == 49 + 2


def test_a_table_without_rows_is_an_error_that_names_it(tmp_path):
    with pytest.raises(stoker.StokerError, match="e1"):
        stoker.pack_series(tables((50, 0)), tmp_path / "out", time="day")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("days", [[1, 2, 2, 3], [1, 3, 2, 4]])
def test_times_that_repeat_are_refused_and_those_that_fall_are_sorted(tmp_path, days):
    table = pyarrow.table({"day": days, "a": [1.0, 2.0, 3.0, 4.0]})
    if len(set(days)) == 4:
        assert stoker.pack_series({"one": table}, tmp_path / "out", time="day").sorted
        assert_array_equal(numpy.fromfile(tmp_path / "out" / "time.mmap", "i8"), sorted(days))
        return
    with pytest.raises(stoker.StokerError, match="one"):
        stoker.pack_series({"one": table}, tmp_path / "out", time="day")
    assert not (tmp_path / "out").exists()


def test_a_failed_pack_leaves_the_old_series_whole(tmp_path):
    out = tmp_path / "out"
    stoker.pack_series(tables((50,)), out, time="day")
    before = {path.name: path.read_bytes() for path in out.iterdir()}

    def breaks():
        yield tables((30,))["e0"].to_batches()[0]
        raise RuntimeError("the source is gone")

    with pytest.raises(RuntimeError, match="the source is gone"):
        stoker.pack_series(breaks(), out, time="day", force=True)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
