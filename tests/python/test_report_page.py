"""Reports in a real browser: they load without errors or network, the charts are drawn, and the
numbers that are shown are those of the files."""

import html.parser
import json
import re
import subprocess
import sys

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


def check_numbers(browser, files):  # noqa: F811
    """That each number of the page is the files'; their keys."""
    shown = Shown(browser.run("document.querySelector('body').outerHTML.split('<script')[0]"))
    found = [(key, text) for key, text in shown.found if not key.startswith("made/")]
    for key, text in found:
        value = value_at(files, key)
        assert agrees(text, value), f"{key}: {text} is shown for {value}"
    return [key for key, _ in found]


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
    assert len(check_numbers(browser, files)) >= (5 if names == ("nothing",) else 50)


TRAIN = """
import os, time, torch
print(os.path.exists("r.html"))
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, i):
        time.sleep(0.005)
        return torch.full((4,), float(i)), i % 2


model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(Slow(), batch_size=4):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        time.sleep(0.01)
        optimizer.step()
"""


def test_a_run_draws_what_it_saw_and_again_what_it_measured(browser, tmp_path):  # noqa: F811
    pytest.importorskip("torch")
    script, page, run_file = (tmp_path / name for name in ("train.py", "r.html", "run.json"))
    script.write_text(TRAIN)
    watching = ["run", "--what-if", "--report", page.name, "--json", run_file.name]
    words = [sys.executable, "-m", "stoker", *watching, "--", sys.executable, script.name]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stderr.count("The report: r.html") == 1, done.stderr
    assert done.stdout == "False\nTrue\n", "it was there before the second run"
    run = json.loads(run_file.read_text())
    assert run["ranks"][0]["steps"] == 48 and run["ranks"][0]["samples"] == 192
    check_loaded(browser, browser.open(page))
    checked = check_numbers(browser, [run])
    assert len(checked) >= 40
    for key in ("busy/compute", "epoch_s", "samples_s", "step_s/median", "idle_s"):
        assert f"0/ranks/0/{key}" in checked
    assert "0/what_if/gain" in checked
    answer = browser.run("document.querySelector('.answer').textContent").replace("\xa0", " ")
    assert answer.rstrip(".") == run["verdict"]["words"].rstrip(".")


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
