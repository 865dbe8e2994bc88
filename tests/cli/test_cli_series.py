"""Windows of a series through the command: what it lists, writes and streams, against numpy. The
folders are made by hand, as a user with numpy alone would make them."""

import json
from itertools import chain

import numpy
import pytest

COLUMNS = ["close", "volume", "spread"]
ENTITIES = [("AAA", 0, 40), ("BBB", 40, 100), ("tiny", 100, 103), ("CCC", 103, 150)]


def write_series(folder, **changes):
    """150 rows of 3 columns in 4 entities, one of them short; all values differ."""
    folder.mkdir(parents=True)
    rows = numpy.arange(150 * 3, dtype=numpy.float32).reshape(150, 3)
    rows.tofile(folder / "all_features.mmap")
    entities = [{"name": name, "start": start, "end": end} for name, start, end in ENTITIES]
    told = {"features": COLUMNS, "entities": entities, "sequence": {"window": 8}, **changes}
    (folder / "metadata.json").write_text(json.dumps(told))
    return rows


def windows(window=8, horizon=1, stride=1, gap=0):
    """(name, first row, row behind the window, first row of y) of every sample, one by one."""
    return [
        (name, t - window + 1, t + 1, t + 1 + gap)
        for name, start, end in ENTITIES
        for t in range(start + window - 1, end - (gap + horizon if horizon else 0), stride)
    ]


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    folder = tmp_path_factory.mktemp("series") / "hand"
    return folder, write_series(folder)


@pytest.mark.parametrize(
    "options",
    [{}, {"window": 5, "horizon": 3}, {"stride": 7, "gap": 4}, {"window": 40, "horizon": 0}],
)
def test_windows_lie_where_a_walk_over_the_rows_finds_them(stoker, series, options):
    folder, _ = series
    words = [word for name, number in options.items() for word in (f"--{name}", number)]
    wanted = windows(**options)
    horizon = options.get("horizon", 1)
    listed = stoker.lines("ls", folder, *words)
    assert [one["sample"] for one in listed] == list(range(len(wanted)))
    for one, (name, first, end, future) in zip(listed, wanted, strict=True):
        start = next(begin for other, begin, _ in ENTITIES if other == name)
        assert one["key"] == f"{name}:{first - start}"
        x = one["fields"]["x"]
        assert (x["offset"], x["length"]) == (first * 12, (end - first) * 12)
        assert x["object"] == str(folder / "all_features.mmap")
        if horizon:
            y = one["fields"]["y"]
            assert (y["offset"], y["length"]) == (future * 12, horizon * 12)
        else:
            assert "y" not in one["fields"]


def test_ls_tells_what_a_series_is_made_of(stoker, series):
    folder, _ = series
    done = stoker("ls", folder, "--limit", 3)
    for words in (
        r"entities     4", "rows         150", "features     close, volume, spread",
        "labels       close", f"windows      {len(windows())}", "short        1 of 4 entities",
        "window 8, horizon 1, stride 1, gap 0", "AAA:0",
    ):  # fmt: skip
        assert words in done.stdout
    assert f"{len(windows()) - 3} more" in done.stdout
    told = stoker.json("ls", folder, "--stat", "--window", 20, "--features", "spread,close")
    assert told["samples"] == told["series"]["windows"] == len(windows(20))
    assert told["series"]["features"] == ["spread", "close"]
    assert told["series"]["short_entities"] == 1 and told["series"]["entities"] == 4
    assert told["series"]["scale"] == "stored" and told["series"]["splits"] == []
    assert told["fields"]["x"]["kind"] == "float32 (20, 2)"


def test_cat_writes_a_window_by_number_and_by_key(stoker, series):
    folder, rows = series
    wanted = windows()
    name, first, end, _ = wanted[50]
    for sample in (50, f"{name}:{first - 40}"):
        x = stoker("cat", folder, sample, "x", text=False).stdout
        numpy.testing.assert_array_equal(
            numpy.frombuffer(x, numpy.float32).reshape(-1, 3), rows[first:end]
        )
    assert "no sample" in stoker("cat", folder, len(wanted), "x", status=1).stderr
    assert stoker("cat", folder, "AAA:99", "x", status=1).stderr.startswith("stoker: ")
    assert "--fields" in stoker("cat", folder, 0, "entity", status=1).stderr
    code = stoker("cat", folder, 50, "entity", "--fields", "entity", text=False).stdout
    assert ENTITIES[int(code)][0] == name


def test_padding_gives_short_histories_too(stoker, series):
    folder, _ = series
    listed = stoker.lines("ls", folder, "--pad", "--fields", "x,y,x_mask,entity,start")
    assert len(listed) == sum(end - start - 1 for _, start, end in ENTITIES)
    assert listed[0]["key"] == "AAA:-7" and listed[0]["fields"]["x"]["length"] == 12
    assert set(listed[0]["fields"]) == {"x", "y", "x_mask", "entity", "start"}
    few = stoker.lines("ls", folder, "--pad", "--min-history", 3)
    assert few[0]["key"] == "AAA:-5" and len(few) == len(listed) - 4 * 2
    late = stoker.lines("ls", folder, "--min-history", 12)
    assert late[0]["key"] == "AAA:4"


def test_a_stream_delivers_every_window_once(stoker, series):
    folder, _ = series
    count = len(windows())
    batches = stoker.order(folder, "--batch-size", 16, "--shuffle")
    assert sorted(chain.from_iterable(batches)) == list(range(count))
    told = stoker.json("stream", folder, "--batch-size", 16, "--shuffle")
    assert told["samples"] == count and told["bytes"] == count * (8 * 3 + 1) * 4
    plain = stoker.json("stream", folder, "--batch-size", 16)
    assert plain["digest"] == stoker.json("stream", folder, "--batch-size", 16)["digest"]
    other = stoker.json("stream", folder, "--batch-size", 16, "--features", "close")
    assert other["digest"] != plain["digest"] and other["bytes"] == count * 9 * 4


def test_order_by_time_walks_all_entities_forward(stoker, tmp_path):
    write_series(tmp_path / "timed", time={"column": "day", "unit": "d"})
    times = numpy.concatenate(
        [numpy.arange(end - start) * 2 + start % 7 for _, start, end in ENTITIES]
    ).astype(numpy.int64)
    times.tofile(tmp_path / "timed" / "time.mmap")
    last = [times[end - 1] for _, _, end, _ in windows()]
    wanted = sorted(range(len(last)), key=lambda sample: (last[sample], sample))
    batches = stoker.order(tmp_path / "timed", "--batch-size", 5, "--shuffle-order", "time")
    assert list(chain.from_iterable(batches)) == wanted


def test_a_series_leaves_no_index_behind(stoker, series):
    folder, _ = series
    before = sorted(folder.iterdir())
    told = stoker.json("index", folder)
    assert told["path"] is None and told["built"] is False and told["index_bytes"] == 0
    assert told["samples"] == len(windows())
    assert "no file is kept" in stoker("index", folder).stdout
    assert sorted(folder.iterdir()) == before


def test_verify_finds_nothing_in_a_good_series_and_a_cut_one_is_told(stoker, tmp_path):
    folder = tmp_path / "cut"
    write_series(folder)
    told = stoker.json("verify", folder)
    assert told["bad_count"] == 0 and told["samples"] == len(windows())
    with open(folder / "all_features.mmap", "r+b") as file:
        file.truncate(1000)
    done = stoker("verify", folder, status=1)
    assert "metadata.json" in done.stderr or "all_features.mmap" in done.stderr


def test_a_split_that_is_not_there_and_a_window_too_long_are_explained(stoker, series):
    folder, _ = series
    assert "val" in stoker("ls", folder, "--split", "val", status=1).stderr
    done = stoker("ls", folder, "--window", 60, status=1)
    assert "BBB, has 60" in done.stderr and "61 rows" in done.stderr
    assert "clos" in stoker("ls", folder, "--features", "clos", status=1).stderr


def test_windows_are_refused_where_there_is_no_series(stoker, tensors):
    done = stoker("ls", tensors / "shards", "--window", 3, status=2)
    assert "series" in done.stderr


def test_nonsense_in_the_metadata_names_the_key(stoker, tmp_path):
    folder = tmp_path / "bad"
    write_series(folder, entities=[{"name": "A", "start": 0, "end": 151}], rows=150)
    done = stoker("ls", folder, status=1)
    assert "entities: A ends at row 151 of 150" in done.stderr and "metadata.json" in done.stderr


def test_a_trillion_windows_are_told_at_once(stoker, tmp_path):
    folder, rows = tmp_path / "huge", 10**12 + 100
    folder.mkdir()
    try:
        with open(folder / "all_features.mmap", "wb") as file:
            file.truncate(rows * 2)  # a hole: it takes no room
    except OSError:
        pytest.skip("this file system has no files of two terabytes")
    told = {"features": ["a"], "dtype": "float16", "entities": {"e": [0, rows]}}
    (folder / "metadata.json").write_text(json.dumps(told))
    stat = stoker.json("ls", folder, "--stat")
    assert stat["samples"] == rows - 60
    assert stoker.lines("ls", folder, "--limit", 1)[0]["key"] == "e:0"
    x = stoker("cat", folder, rows - 61, "x", text=False).stdout
    assert x == bytes(120)
    assert len(stoker.order(folder, "--batch-size", 9, "--shuffle", "--stop-after", 2)) == 2


def test_the_plain_binary_says_who_can_read_tables(stoker, tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    done = stoker("pack", tmp_path / "a.csv", "-o", tmp_path / "out", "--to", "series", status=1)
    assert "pyarrow" in done.stderr and "pip install 'stoker[arrow]'" in done.stderr
    assert not (tmp_path / "out").exists()
