"""Reports in a real browser: they load without errors or network, the charts are drawn, and the
numbers that are shown are those of the files."""

import html.parser
import json
import re

import pytest
import run_making
import stoker.report
from browser import browser  # noqa: F401

pytest.importorskip("plotly", reason="plotly draws reports")

UNITS = {
    "": 1, "%": 0.01, "h": 3600, "min": 60, "s": 1, "ms": 1e-3, "µs": 1e-6, "Hz": 1, "times": 1,
    "TiB": 2**40, "GiB": 2**30, "MiB": 2**20, "KiB": 2**10, "B": 1, "TB/s": 1e12, "GB/s": 1e9,
    "MB/s": 1e6, "kB/s": 1e3, "B/s": 1, "/s": 1, "samples/s": 1,
}  # fmt: skip


class Shown(html.parser.HTMLParser):
    """(key, text) of every number of a page."""

    def __init__(self, text):
        super().__init__()
        self.found, self.key = [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.key = dict(attributes).get("data-key")

    def handle_data(self, data):
        if self.key:
            self.found.append((self.key, data.replace("\xa0", " ")))
            self.key = None


def value_at(files, key):
    """By a reading of its own: the key is a path into the files."""
    value = files
    for step in key.split("/"):
        step = step.replace("~1", "/")
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def agrees(text, value):
    """Whether a text shows this value, rounded to the digits that it has."""
    match = re.fullmatch(r"(-?[\d,]+(?:\.(\d+))?)(.*)", text)
    assert match, text
    unit = UNITS[match[3].strip()]
    shown = float(match[1].replace(",", "")) * unit
    half = 0.5 * 10.0 ** -len(match[2] or "") * unit
    return abs(shown - value) <= half * 1.000001 + 1e-12


def write(tmp_path, *names):
    """Writes the examples and their report; the files as they were written, and the page."""
    files = [run_making.EXAMPLES[name]() for name in names]
    paths = [
        run_making.write_run(tmp_path / f"{name}.json", run)
        for name, run in zip(names, files, strict=True)
    ]
    page = tmp_path / "report.html"
    stoker.report.make(paths, page)
    return files, page


def check_loaded(browser, state):  # noqa: F811
    assert state.get("done") == "1", state
    assert state["errors"] == "0" and state["refused"] == "0", browser.complaints()
    assert state["drawn"] == state["charts"]
    assert browser.requests() == []
    assert browser.complaints() == []


SETS = [(name,) for name in run_making.EXAMPLES] + [("gpu", "after"), ("cpu", "two_ranks", "gpu")]


@pytest.mark.parametrize("names", SETS, ids="+".join)
def test_it_loads_draws_and_shows_the_numbers_of_the_files(browser, tmp_path, names):  # noqa: F811
    files, page = write(tmp_path, *names)
    browser.look_at()
    state = browser.open(page)
    check_loaded(browser, state)
    drawn = browser.run(
        "[...document.querySelectorAll('.chart')].every(c => c.querySelector('.main-svg'))"
    )
    assert drawn
    assert "stolen" not in state
    shown = Shown(browser.run("document.querySelector('body').outerHTML.split('<script')[0]"))
    checked = 0
    for key, text in shown.found:
        if not key.startswith("made/"):
            value = value_at(files, key)
            assert agrees(text, value), f"{key}: {text} is shown for {value}"
            checked += 1
    assert checked >= (5 if names == ("nothing",) else 50)


def test_before_and_after_are_compared(browser, tmp_path):  # noqa: F811
    (before, after), page = write(tmp_path, "gpu", "after")
    check_loaded(browser, browser.open(page))
    shown = dict(Shown(page.read_text()).found)
    reduction = 1 - after["ranks"][0]["epoch_s"] / before["ranks"][0]["epoch_s"]
    assert agrees(shown["made/reduction"], reduction)
    answer = browser.run("document.querySelector('.answer').textContent").replace("\xa0", " ")
    assert answer == (
        "An epoch takes 7.86 s instead of 17.8 s: 55.7 % less. "
        "The GPU is busy 93.1 % of the time instead of 41.2 %."
    )


def test_an_unreliable_run_says_so_first(browser, tmp_path):  # noqa: F811
    run, page = write(tmp_path, "unreliable")
    check_loaded(browser, browser.open(page))
    answer = browser.run("document.querySelector('.answer').textContent")
    assert "unreliable" in answer and "no verdict" in answer
    notice = browser.run("document.querySelector('header .notice.bad').textContent")
    for reason in run[0]["unreliable"]:
        assert reason in notice
    assert "signal 9" in browser.run("document.querySelector('header').textContent")


WIDEST = "Math.max(...[...document.querySelectorAll('.main-svg')].map(s => s.clientWidth))"
INK = "getComputedStyle(document.querySelector('.xtick text')).fill"
SETTLE = "new Promise(found => setTimeout(found, 500))"  # charts follow a window after a moment


@pytest.mark.parametrize("names", [("gpu", "after"), ("nasty",)], ids="+".join)
def test_it_fits_a_phone_and_a_desk_in_any_light(browser, tmp_path, names):  # noqa: F811
    _, page = write(tmp_path, *names)
    browser.look_at(390, 844, phone=True)
    check_loaded(browser, browser.open(page))
    for width, phone, dark in ((390, True, False), (390, True, True), (1280, False, False)):
        browser.look_at(width, 844, dark=dark, phone=phone)
        browser.run(SETTLE)
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert 0.6 * min(width, 960) < browser.run(WIDEST) <= width
        light = sum(map(int, re.findall(r"\d+", browser.run(INK))[:3])) > 3 * 128
        assert light == dark


def test_it_prints_to_a_few_pages_in_any_light(browser, tmp_path):  # noqa: F811
    _, page = write(tmp_path, "gpu", "after")
    browser.look_at(1280, 900)
    check_loaded(browser, browser.open(page))
    for dark in (False, True):
        browser.look_at(1280, 900, dark=dark)
        pdf = browser.print()
        assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 9
    check_loaded(browser, browser.run("({...document.documentElement.dataset})"))


def test_results_of_benchmarks_are_drawn(browser, tmp_path):  # noqa: F811
    runs = [912.4, 564.99, 640.76]
    result = {
        "bench": "jpeg </script>", "version": 1, "date": "2026-11-15T13:19:33+00:00",
        "machine": {"cpu": "A CPU", "cores": 2, "memory": 25276518400, "gpu": None},
        "command": "make bench-jpeg", "quick": False, "workload": {"samples": 2000},
        "limit": {"name": "decodes alone", "value": 2066.1, "unit": "samples/s", "runs": []},
        "rows": [
            {"name": "stoker", "value": 2371.5, "unit": "samples/s", "runs": [2281.0, 2407.0],
             "peak_rss": 490733568},
            {"name": "a <b>peer</b>", "value": 640.76, "unit": "samples/s", "runs": runs},
            {"name": "absent", "value": None, "unit": None, "note": "not installed"},
            {"name": "memory", "value": 1931888, "unit": "bytes", "runs": []},
        ],
        "ratios": {"stoker/limit": 1.1478},
    }  # fmt: skip
    path = tmp_path / "bench-jpeg.json"
    path.write_text(json.dumps(result))
    page = tmp_path / "bench.html"
    stoker.report.make([path], page)
    browser.look_at()
    state = browser.open(page)
    check_loaded(browser, state)
    assert state["charts"] == "2"
    shown = Shown(page.read_text()).found
    assert ("0/ratios/stoker~1limit", "1.15") in shown
    for key, text in shown:
        if not key.startswith("made/"):
            assert agrees(text, value_at([result], key)), (key, text)
    assert "make bench-jpeg" in browser.run("document.body.innerText")
