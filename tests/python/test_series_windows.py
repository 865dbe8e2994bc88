"""Windows of a series: against numpy's own, in every order."""

import pickle

import numpy
import pytest
import stoker
from numpy.testing import assert_array_equal
from series_making import all_windows, drawn, padded, write_by_hand

LENGTHS = (50, 7, 33, 120)


@pytest.fixture
def series(tmp_path):
    """A folder made by hand, and the rows of its entities."""
    return tmp_path / "series", write_by_hand(tmp_path / "series", LENGTHS)


CUTS = [
    {"window": 10},
    {"window": 1, "horizon": 1},
    {"window": 10, "horizon": 4, "stride": 3, "gap": 2},
    {"window": 33, "horizon": 0},
    {"window": 5, "horizon": 7, "stride": 20},
]


@pytest.mark.parametrize("cut", CUTS)
def test_samples_are_the_windows_that_numpy_cuts(series, cut):
    folder, parts = series
    ds = stoker.open(folder, as_="numpy", **cut)
    x, y = all_windows(parts, **cut)
    assert len(ds) == len(x)
    assert_array_equal(numpy.stack([sample["x"] for sample in ds]), x)
    if cut.get("horizon", 1):
        assert_array_equal(numpy.stack([sample["y"] for sample in ds]), y)
    else:
        assert list(ds.fields) == ["x"]


@pytest.mark.parametrize("cut", CUTS[:3])
def test_batches_in_stored_order_are_the_same_windows(series, cut):
    folder, parts = series
    ds = stoker.open(folder, as_="numpy", **cut)
    with stoker.Loader(ds, 16) as loader:
        x, y = drawn(loader, "x", "y")
    wanted = all_windows(parts, **cut)
    assert_array_equal(x, wanted[0])
    assert_array_equal(y, wanted[1])


def test_features_and_labels_are_picked_in_the_order_asked_for(series):
    folder, parts = series
    ds = stoker.open(
        folder, as_="numpy", window=6, horizon=2, features=["c", "a"], labels=["d", "b"]
    )
    assert (ds.features, ds.labels) == (("c", "a"), ("d", "b"))
    x, y = all_windows(parts, window=6, horizon=2, labels=(3, 1))
    with stoker.Loader(ds, 32) as loader:
        got = drawn(loader, "x", "y")
    assert_array_equal(got[0], x[:, :, [2, 0]])
    assert_array_equal(got[1], y)
    assert_array_equal(ds[5]["x"], x[5][:, [2, 0]])


def test_entity_and_start_tell_where_a_window_lies(series):
    folder, parts = series
    ds = stoker.open(folder, as_="numpy", window=9, stride=2, fields=["x", "entity", "start"])
    with stoker.Loader(ds, 20, shuffle=True, seed=3) as loader:
        x, entity, start = drawn(loader, "x", "entity", "start")
    assert len(set(zip(entity.tolist(), start.tolist(), strict=True))) == len(ds)
    for one, number, first in zip(x, entity, start, strict=True):
        assert_array_equal(one, parts[number][first : first + 9])
    assert [ds.entities[number] for number in sorted(set(entity))] == ["e0", "e2", "e3"]
    assert ds.short_entities == 1
    assert ds.entities.rows("e2") == ds.entities.rows(2) == range(57, 90)


def test_a_shuffled_epoch_gives_every_window_once(series):
    folder, parts = series
    ds = stoker.open(folder, as_="numpy", window=8)
    x, y = all_windows(parts, window=8)
    with stoker.Loader(ds, 30, shuffle=True, seed=1) as loader:
        for _ in range(2):
            got_x, got_y, numbers = [], [], []
            for batch in loader:
                got_x.append(batch["x"].copy())
                got_y.append(batch["y"].copy())
                numbers.append(batch.samples)
            order = numpy.concatenate(numbers)
            assert sorted(order) == list(range(len(x)))
            assert not numpy.array_equal(order, numpy.arange(len(x)))
            assert_array_equal(numpy.concatenate(got_x), x[order])
            assert_array_equal(numpy.concatenate(got_y), y[order])


def test_a_loader_resumes_in_the_middle_of_an_epoch(series):
    folder, _ = series
    ds = stoker.open(folder, as_="numpy", window=8)
    with stoker.Loader(ds, 16, shuffle=True, seed=5) as loader:
        batches = [batch["x"].copy() for batch in loader]
    with stoker.Loader(ds, 16, shuffle=True, seed=5) as loader:
        iterator = iter(loader)
        for _ in range(3):
            next(iterator)
        state = loader.state_dict()
    with stoker.Loader(pickle.loads(pickle.dumps(ds)), 16, shuffle=True, seed=5) as loader:
        loader.load_state_dict(state)
        rest = [batch["x"].copy() for batch in loader]
    assert len(rest) == len(batches) - 3
    for one, other in zip(rest, batches[3:], strict=True):
        assert_array_equal(one, other)


def test_a_state_of_other_windows_is_refused(series):
    folder, _ = series
    with stoker.Loader(stoker.open(folder, window=8), 16) as loader:
        state = loader.state_dict()
    with stoker.Loader(stoker.open(folder, window=9), 16) as loader:
        with pytest.raises(stoker.errors.MismatchError):
            loader.load_state_dict(state)


def test_ranks_share_the_windows_and_none_comes_twice(series):
    folder, _ = series
    ds = stoker.open(folder, as_="numpy", window=8)
    seen = []
    for rank in range(3):
        with stoker.Loader(ds, 16, shuffle=True, rank=rank, world_size=3) as loader:
            for batch in loader:
                seen += batch.samples[batch.samples >= 0].tolist()
    assert sorted(seen) == list(range(len(ds)))


@pytest.mark.parametrize("least", [1, 4, 12])
def test_short_histories_are_padded_on_the_left_and_masked(series, least):
    folder, parts = series
    ds = stoker.open(folder, as_="numpy", window=12, pad=True, min_history=least)
    made = [padded(rows, 12, least) for rows in parts if len(rows) > least]
    wanted = [numpy.concatenate(column) for column in zip(*made, strict=True)]
    with stoker.Loader(ds, 25) as loader:
        x, mask, y = drawn(loader, "x", "x_mask", "y")
    assert mask.dtype == bool
    assert_array_equal(mask, wanted[1])
    assert_array_equal(x, wanted[0])
    assert_array_equal(y, wanted[2])
    assert_array_equal(ds[2]["x_mask"], wanted[1][2])


def test_padding_needs_one_row_of_history_unless_told(series):
    folder, _ = series
    ds = stoker.open(folder, window=12, pad=True)
    assert ds.min_history == 1
    assert len(ds) == sum(rows - 1 for rows in LENGTHS)


def test_a_longer_history_than_the_window_can_be_demanded(series):
    folder, parts = series
    ds = stoker.open(folder, as_="numpy", window=4, min_history=30)
    x, _ = all_windows([rows[26:] for rows in parts if len(rows) > 30], window=4)
    assert_array_equal(numpy.stack([sample["x"] for sample in ds]), x)


def test_a_dataset_tells_how_it_was_cut_also_after_pickling(series):
    folder, _ = series
    ds = stoker.open(folder, window=5, horizon=2, stride=3, gap=1, labels="b", features=["b", "c"])
    for one in (ds, pickle.loads(pickle.dumps(ds)), ds[10:20], ds.with_fields("y")):
        assert (one.window, one.horizon, one.stride, one.gap) == (5, 2, 3, 1)
        assert (one.features, one.labels) == (("b", "c"), ("b",))
    assert ds.fields["x"].shape == (5, 2)
    assert len(pickle.loads(pickle.dumps(ds))) == len(ds)


def test_a_dataset_that_is_no_series_has_nothing_of_one(shards):
    ds = stoker.open(shards)
    assert ds.scaler is ds.window is ds.horizon is ds.stride is ds.gap is ds.time_unit is None
    assert (ds.features, ds.labels, ds.statics, ds.splits) == ((), (), (), ())
    assert len(ds.entities) == ds.short_entities == 0
    with pytest.raises(stoker.errors.UsageError):
        stoker.open(shards, window=5)


def test_a_series_works_in_the_workers_of_a_dataloader(series):
    torch = pytest.importorskip("torch")
    folder, parts = series
    ds = stoker.open(folder, as_="torch", window=6, horizon=2)
    loader = torch.utils.data.DataLoader(ds, 40, num_workers=1)
    x = torch.cat([batch["x"] for batch in loader])
    assert_array_equal(x, all_windows(parts, window=6, horizon=2)[0])


@pytest.mark.parametrize(
    "entities",
    [
        {"p": [0, 40], "q": [40, 90]},
        {"p": {"start": 0, "end": 40}, "q": {"start": 40, "end": 90}},
        [{"name": "p", "start": 0, "end": 40}, {"name": "q", "start": 40, "end": 90}],
    ],
)
@pytest.mark.parametrize("named", ["features", "feature_cols", "feature_columns"])
@pytest.mark.parametrize("length", ["sequence_length", "seq_len", "window"])
def test_folders_of_the_seeds_recipe_open(tmp_path, entities, named, length):
    from json import dumps

    rows = numpy.random.default_rng(0).random((90, 3), numpy.float32)
    rows.tofile(tmp_path / "all_features.mmap")
    words = {named: ["u", "v", "w"], "entities": entities, length: 7, "target": "v"}
    (tmp_path / "metadata.json").write_text(dumps(words))
    ds = stoker.open(tmp_path, as_="numpy")
    x, y = all_windows([rows[:40], rows[40:]], window=7, labels=(1,))
    assert (ds.window, list(ds.entities)) == (7, ["p", "q"])
    assert_array_equal(numpy.stack([sample["x"] for sample in ds]), x)
    assert_array_equal(numpy.stack([sample["y"] for sample in ds]), y)


def test_a_million_million_windows_open_at_once(tmp_path):
    rows = 2**40
    with open(tmp_path / "all_features.mmap", "wb") as file:
        file.truncate(rows)
    (tmp_path / "metadata.json").write_text(
        f'{{"features": ["a"], "dtype": "float16", "entities": {{"one": [0, {rows // 2}]}}}}'
    )
    ds = stoker.open(tmp_path, as_="numpy", window=3)
    assert len(ds) == rows // 2 - 3
    assert ds[len(ds) - 1]["x"].shape == (3, 1)
    with stoker.Loader(ds, 100, shuffle=True) as loader:
        assert len({*next(iter(loader)).samples.tolist()}) == 100
    half = pickle.loads(pickle.dumps(ds[len(ds) // 2 :]))
    assert len(half) == len(ds) - len(ds) // 2 and half.key(0) == ds.key(len(ds) // 2)
    with stoker.Loader(half, 100, shuffle=True) as loader:
        assert min(next(iter(loader)).samples) >= len(ds) // 2


BAD = [
    ({"window": 0}, "window"),
    ({"stride": 0}, "stride"),
    ({"window": 121, "horizon": 0}, "e3"),
    ({"features": ["nope"]}, "nope"),
    ({"labels": ["nope"]}, "nope"),
    ({"split": "train"}, "split"),
    ({"fields": ["x", "time"]}, "time"),
    ({"fields": ["nope"]}, "nope"),
]


@pytest.mark.parametrize(("cut", "words"), BAD)
def test_windows_that_cannot_be_are_refused_in_words(series, cut, words):
    with pytest.raises(stoker.StokerError, match=words):
        stoker.open(series[0], **cut)


@pytest.mark.parametrize("cut", [{"window": -1}, {"gap": -2}, {"min_history": -1}])
def test_negative_sizes_are_refused(series, cut):
    with pytest.raises(ValueError, match="below 0"):
        stoker.open(series[0], **cut)


@pytest.mark.parametrize(
    ("cut", "kind", "words"),
    [
        ({"window": "60"}, TypeError, "window is '60'"),
        ({"horizon": 1.0}, TypeError, "horizon is 1.0"),
        ({"window": False}, TypeError, "window is False"),
        ({"split": 3}, TypeError, "split is 3"),
        ({"window": 2**64 - 1}, ValueError, "more rows"),
        ({"stride": 2**70}, ValueError, "more rows"),
    ],
)
def test_what_is_no_number_of_rows_is_refused_by_name(series, cut, kind, words):
    with pytest.raises(kind, match=words):
        stoker.open(series[0], **cut)


def test_a_scale_whose_inverse_is_infinite_makes_no_windows_of_nan(tmp_path):
    scaler = {"kind": "standard", "center": [0, 0], "scale": [1e-41, 2.0]}
    parts = write_by_hand(tmp_path / "s", [30], columns=2, scale="late", scaler=scaler)
    with pytest.raises(stoker.errors.UnsupportedError, match='column "a" has scale 1e-41'):
        stoker.open(tmp_path / "s", window=5)
    ds = stoker.open(tmp_path / "s", window=5, features="b", labels="b", as_="numpy")
    assert_array_equal(ds[0]["x"][:, 0], parts[0][:5, 1] / 2)


def test_a_field_in_the_wrong_case_is_guessed(series):
    with pytest.raises(stoker.errors.NotFoundError, match='did you mean "y"'):
        stoker.open(series[0], fields=["x", "Y"])


def test_entities_pickle_and_a_name_that_is_none_is_told(series):
    entities = stoker.open(series[0], window=5).entities
    assert list(pickle.loads(pickle.dumps(entities))) == list(entities)
    assert entities.rows("e1") == range(50, 57)
    with pytest.raises(KeyError, match="no entity 'e9'"):
        entities.rows("e9")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"features": []}',
        '{"features": ["a", "a"], "entities": []}',
        '{"features": ["a"], "entities": {"p": [5, 2]}}',
        '{"features": ["a"], "entities": {"p": [0, 9223372036854775807]}}',
        '{"features": ["a"], "entities": {"p": [-1, 2]}}',
        '{"features": ["a"], "entities": {"p": [0, 9], "q": [4, 20]}}',
        '{"features": ["a"], "dtype": "float99", "entities": {"p": [0, 9]}}',
        '{"features": ["a"], "entities": {"p": [0, 9]}, "version": 99, "format": "stoker series"}',
    ],
)
def test_metadata_edited_into_nonsense_is_refused(series, text):
    folder, _ = series
    (folder / "metadata.json").write_text(text)
    with pytest.raises(stoker.StokerError) as caught:
        stoker.open(folder, format="series")
    assert "metadata.json" in str(caught.value)


@pytest.mark.parametrize("change", [-4, 4, -1])
def test_an_array_of_another_size_than_the_metadata_says_is_refused(series, change):
    folder, parts = series
    path = folder / "all_features.mmap"
    rows = sum(len(part) for part in parts)
    text = (folder / "metadata.json").read_text()
    (folder / "metadata.json").write_text(text[:-1] + f', "rows": {rows}}}')
    with open(path, "rb+") as file:
        file.truncate(path.stat().st_size + change)
    with pytest.raises(stoker.StokerError, match=r"all_features\.mmap"):
        stoker.open(folder)
