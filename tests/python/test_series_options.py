"""Options of packing: what they may be, and what is refused before or while rows come."""

import json

import numpy
import pytest
import stoker
from series_making import tables

pyarrow = pytest.importorskip("pyarrow")


def metadata(folder):
    return json.loads((folder / "metadata.json").read_text())


@pytest.mark.parametrize(("dtype", "most"), [("float16", 2049), ("bfloat16", 257)])
def test_codes_that_a_narrow_type_does_not_hold_are_refused(tmp_path, dtype, most):
    def made(count):
        names = [f"kind {i}" for i in range(count)]
        table = pyarrow.table({"a": numpy.arange(float(count)), "kind": names, "of": names})
        options = {"features": ["a", "kind"], "entity": "of", "statics": None, "dtype": dtype}
        return table, options

    table, options = made(most)
    stoker.pack_series(table, tmp_path / "most", **options)
    codes = numpy.fromfile(tmp_path / "most" / "all_features.mmap", numpy.uint16)[1::2]
    assert len(set(codes.tolist())) == most
    table, options = made(most + 1)
    with pytest.raises(stoker.StokerError, match=f"more than {most} different texts") as caught:
        stoker.pack_series(table, tmp_path / "more", **options)
    assert caught.value.field == "kind"
    assert "f32" in caught.value.remedy
    options |= {"features": ["a"], "statics": ["kind"]}  # these are float32 in any case
    stoker.pack_series(table, tmp_path / "static", **options)


@pytest.mark.parametrize(
    ("split", "text"),
    [
        ((1 / 3, 1 / 3, 1 / 3), "0.333333333,0.333333333,0.333333333"),
        ((0.7, 1 - 0.7), "0.7,0.3"),
        (0.8, "0.8,0.2"),
        ([numpy.float32(0.5), numpy.float64(0.5)], "0.5,0.5"),
        (numpy.datetime64("1970-01-25"), "time:1970-01-25"),
    ],
)
def test_shares_and_times_may_be_any_numbers_that_python_has(tmp_path, split, text):
    days = numpy.arange(50).astype("datetime64[D]")
    table = pyarrow.table({"day": days, "a": numpy.arange(50.0)})
    stoker.pack_series({"one": table}, tmp_path / "out", time="day", split=split, fit_on=0.1 + 0.2)
    words = metadata(tmp_path / "out")
    assert (words["splits"]["text"], words["fit_on"]) == (text, "0.3")
    assert words["scaler"]["mean"] == [7]


def test_a_column_too_large_to_be_scaled_is_named(tmp_path):
    table = pyarrow.table({"a": [1.0, 2.0], "volume": [1e308, -1e308]})
    for fit_on in (None, "entities:one"):
        with pytest.raises(stoker.StokerError, match="column volume") as caught:
            stoker.pack_series({"one": table}, tmp_path / "out", fit_on=fit_on)
        assert caught.value.field == "volume"


def test_appending_to_a_narrow_type_needs_not_say_it(tmp_path):
    old, new = tables((40, 30)).items()
    stoker.pack_series(dict([old]), tmp_path / "out", time="day", dtype="float16")
    stoker.pack_series(dict([new]), tmp_path / "out", append=True)
    assert metadata(tmp_path / "out")["dtype"] == "float16"
    with pytest.raises(stoker.StokerError, match="float16"):
        stoker.pack_series(dict([new]), tmp_path / "out", append=True, dtype="float32")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"features": ["nope"]}, "nope"),
        ({"labels": ["nope"]}, "nope"),
        ({"entity": "nope"}, "nope"),
        ({"time": "nope"}, "nope"),
        ({"statics": "nope"}, "nope"),
        ({"nan": "nope"}, "nan"),
        ({"scaler": "nope"}, "scaler"),
        ({"scale": "nope"}, "scale"),
        ({"split": "nope"}, "split"),
        ({"split": (0.8, 0.4)}, "0.8"),
        ({"fit_on": "nope"}, "fit"),
        ({"fit_on": ["e0", "a,b"]}, "comma"),
        ({"dtype": "int8"}, "int8"),
        ({"features": []}, "features"),
        ({"window": 0}, "window"),
        ({"gap": -1}, "gap"),
        ({"memory": "lots"}, "size"),
    ],
)
def test_options_that_make_no_sense_are_refused_and_leave_nothing(tmp_path, options, words):
    with pytest.raises((stoker.StokerError, ValueError), match=words):
        stoker.pack_series(tables((50,)), tmp_path / "out", **({"time": "day"} | options))
    assert list(tmp_path.iterdir()) == []
