"""Reports of runs: what is refused and in which words, what is written and how, and that nothing in
a file can do more than be shown."""

import copy
import importlib.resources
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
import run_making
import stoker
import stoker.report
from stoker.__main__ import main
from stoker.report import _colours, _format, _html, _markdown
from stoker.report._build import build
from stoker.report._read import Source, read_all
from stoker.report._schema import RUN, Wrong, shaped

pytest.importorskip("plotly", reason="plotly draws reports")
ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def run_file(tmp_path):
    return run_making.write_run(tmp_path / "run.json", run_making.gpu_run())


def document(run):
    return build([Source("run", "run", 0, shaped(RUN, run), run)])


# --- what is refused ------------------------------------------------------------------------------


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(stoker.errors.NotFoundError) as caught:
        stoker.report.make([tmp_path / "none.json"], tmp_path / "r.html")
    assert caught.value.object.endswith("none.json")
    assert "stoker run --json" in caught.value.remedy


def test_a_folder_is_no_run_file(tmp_path):
    with pytest.raises(stoker.errors.UsageError, match="folder"):
        stoker.report.make([tmp_path], tmp_path / "r.html")


@pytest.mark.parametrize("left", [0, 1, 10, 0.2, 0.5, 0.9, -2, -1])
def test_a_file_cut_short_is_told_as_such(tmp_path, left):
    whole = json.dumps(run_making.gpu_run())
    cut = whole[: int(left * len(whole))] if isinstance(left, float) else whole[:left]
    path = tmp_path / "cut.json"
    path.write_text(cut)
    with pytest.raises(stoker.errors.TruncatedError, match=r"cut short|empty"):
        stoker.report.make([path], tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize("version", [0, 2, "1", None, True, 1.5])
def test_another_version_is_refused_by_its_number(tmp_path, version):
    run = {**run_making.gpu_run(), "stoker_run": version}
    path = run_making.write_run(tmp_path / "run.json", run)
    with pytest.raises(stoker.errors.UnsupportedError, match="version"):
        stoker.report.make([path], tmp_path / "r.html")


@pytest.mark.parametrize(
    "text",
    [
        "hello", "[1, 2]", "3", '{"a": 1}', '{"stoker_run": 1, "wall_s": NaN}', "\x89PNG\r\n",
        '{"stoker_run": 1, "wall_s": 1e999}', "[" * 100000, '{"bench": 3, "rows": []}',
        '{"epochs": [3]}',
    ],
)  # fmt: skip
def test_what_is_no_run_file_is_refused(tmp_path, text):
    path = tmp_path / "run.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(stoker.errors.CorruptError):
        stoker.report.make([path], tmp_path / "r.html")


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "run.json"
    path.write_bytes(b'{"stoker_run": "\xff\xfe"}')
    with pytest.raises(stoker.errors.CorruptError, match="no text"):
        stoker.report.make([path], tmp_path / "r.html")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told(run_file, tmp_path):
    run_file.chmod(0)
    with pytest.raises(stoker.errors.DeniedError):
        stoker.report.make([run_file], tmp_path / "r.html")


def leaves(value, path=()):
    """Every place of a file, of lists the first two."""
    yield path
    if isinstance(value, dict):
        for name, one in value.items():
            yield from leaves(one, (*path, name))
    elif isinstance(value, list):
        for place, one in enumerate(value[:2]):
            yield from leaves(one, (*path, place))


def small_run():
    """With everything in it, but not much of it."""
    run = run_making.two_ranks()
    run["series"] = {
        name: values[:4] if isinstance(values, list) else values
        for name, values in run["series"].items()
    }
    for lane in run["timeline"]["lanes"]:
        lane["slices"] = lane["slices"][:3]
    run["what_if"] = run_making.after_run()["what_if"]
    return run


def inner_of(run, place):
    for step in place[:-1]:
        run = run[step]
    return run


@pytest.mark.parametrize("wrong", [None, "text", -1e18, [], {}, True], ids=repr)
def test_a_value_of_the_wrong_kind_is_named_or_does_no_harm(wrong):
    run = small_run()
    places = list(leaves(run))[1:]
    assert len(places) > 300
    for place in places:
        inner = inner_of(run, place)
        right, inner[place[-1]] = inner[place[-1]], copy.copy(wrong)
        try:
            made = document(run)
        except Wrong as error:
            assert any(str(step) in str(error) for step in place)
        else:
            _html.page(made, "")
        inner[place[-1]] = right


def test_a_value_that_is_missing_is_no_failure():
    run = small_run()
    for place in list(leaves(run))[1:]:
        if isinstance(place[-1], str):
            inner = inner_of(run, place)
            right = inner.pop(place[-1])
            _html.page(document(run), "")
            inner[place[-1]] = right


def test_a_deep_tree_of_functions_is_drawn():
    run = run_making.gpu_run()
    tree = run_making.node("leaf", "a.py", 1, 1.0)
    for depth in range(20000):
        tree = run_making.node(f"f{depth}", "a.py", 1, 1.0 + depth * 1e-5, tree)
    run["functions"]["main"] = tree
    charts = {chart.id: chart for chart in document(run).charts()}
    assert charts["functions-main-0"].depth <= 24


# --- where it is written --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["r.pdf", "r.txt", "r.json"])
def test_an_ending_that_is_not_known_is_refused(run_file, tmp_path, name):
    with pytest.raises(stoker.errors.UsageError, match=r"R\.html"):
        stoker.report.make([run_file], tmp_path / name)


def test_a_folder_that_is_not_there_is_named(run_file, tmp_path):
    with pytest.raises(stoker.errors.NotFoundError, match="folder"):
        stoker.report.make([run_file], tmp_path / "none" / "r.html")
    with pytest.raises(stoker.errors.NotFoundError, match="folder"):
        stoker.report.check(tmp_path / "none" / "r.html")


def test_no_permission_is_told_before_anything_is_drawn(run_file, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(stoker.errors.DeniedError, match="permission"):
        stoker.report.check(tmp_path / "r.html")


def test_a_report_that_fails_leaves_the_old_one(run_file, tmp_path, monkeypatch):
    out = tmp_path / "r.html"
    out.write_text("old")

    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(stoker.errors.ReadError, match="No space left"):
        stoker.report.make([run_file], out)
    assert out.read_text() == "old"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["r.html", "run.json"]


def test_a_report_goes_where_its_name_links_to(run_file, tmp_path):
    (tmp_path / "other").mkdir()
    for name, target in ("r.html", "other/page.html"), ("null.html", "/dev/null"):
        (tmp_path / name).symlink_to(target)
        stoker.report.make([run_file], tmp_path / name)
        assert os.readlink(tmp_path / name) == target
    assert pathlib.Path("/dev/null").is_char_device()
    assert os.listdir(tmp_path / "other") == ["page.html"]


@pytest.mark.parametrize("name", ["r.html", "r.md"])
@pytest.mark.parametrize("source", ["run.json", "bench.json"])
def test_a_note_is_shown_before_all_else(run_file, tmp_path, name, source):
    bench = {"bench": "jpeg", "rows": [{"side": "a", "samples_s": 1.0}]}
    (tmp_path / "bench.json").write_text(json.dumps(bench))
    stoker.report.make([tmp_path / source], tmp_path / name, note="A <b>clock</b> stood in.")
    before, after = (tmp_path / name).read_text().split("stood in.", 1)
    assert "clock" in before and "<b>clock" not in before
    assert "<section" not in before and "## " not in before and len(after) > 100


@pytest.mark.parametrize(("library", "name"), [("plotly", "r.html"), ("matplotlib", "r.md")])
def test_a_missing_library_is_told_with_the_remedy(run_file, tmp_path, monkeypatch, library, name):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(stoker.errors.UnsupportedError, match=library) as caught:
        stoker.report.check(tmp_path / name)
    assert caught.value.remedy == "pip install 'stoker[report]'"


# --- the command ----------------------------------------------------------------------------------


def test_the_command_writes_a_page_and_names_it(run_file, tmp_path):
    out = tmp_path / "r.html"
    done = subprocess.run(
        [sys.executable, "-m", "stoker", "report", str(run_file), "-o", str(out), "--json"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"out": str(out), "runs": 1}
    assert out.read_text().startswith("<!DOCTYPE html>")


def test_the_command_tells_what_is_wrong(run_file, tmp_path, capfd):
    assert main(["report", str(run_file)]) == 2
    assert main(["report", "-o", str(tmp_path / "r.html")]) == 2
    assert main(["report", str(tmp_path / "no.json"), "-o", str(tmp_path / "r.html")]) == 1
    words = capfd.readouterr().err
    assert "-o OUT is missing" in words and "RUN" in words
    assert "no such run file" in words and "no.json" in words
    run_file.write_text("{")
    assert main(["report", str(run_file), "-o", str(tmp_path / "r.html")]) == 1
    assert "cut short" in capfd.readouterr().err
    assert main(["report", str(run_file), "-o", str(tmp_path / "r.doc")]) == 1
    assert "R.html" in capfd.readouterr().err


# --- what is written ------------------------------------------------------------------------------


def test_a_page_holds_no_address_that_a_browser_would_load(run_file, tmp_path):
    stoker.report.make([run_file], tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    own = re.sub(r"<script>.*?</script>", "", text, flags=re.S)
    assert not re.search(r"(?:src|href)=(?!\"#)", own)
    assert "http" not in own.replace('http-equiv="', "")
    assert "default-src 'none'" in own


def test_text_of_a_file_is_only_ever_shown(tmp_path):
    page = _html.page(document(run_making.nasty_run()), "")
    assert page.count("</script>") == 3  # two scripts and the charts
    assert run_making.NASTY not in page
    assert "<b>&amp;$x$" not in page.split("<script")[0]
    charts = json.loads(re.search(r'id="charts">(.*?)</script>', page, re.S)[1])
    for chart in charts:
        for note in chart["layout"].get("annotations", []):
            assert "<" not in note["text"]


def test_control_characters_and_halves_of_pairs_are_no_failure(tmp_path):
    run = run_making.gpu_run()
    run["command"] = ["python\x00\x1b[31m", "\ud800train.py"]
    path = tmp_path / "run.json"
    path.write_text(json.dumps(run))
    for name in ("r.html", "r.md"):
        stoker.report.make([path], tmp_path / name)
        assert "\x1b" not in (tmp_path / name).read_text()


def test_markdown_has_its_pictures_beside_it(run_file, tmp_path):
    pytest.importorskip("matplotlib")
    image = pytest.importorskip("PIL.Image")
    stoker.report.make([run_file], tmp_path / "r.md")
    text = (tmp_path / "r.md").read_text()
    pictures = re.findall(r"!\[[^\]]*\]\(<([^>]+)>\)", text)
    assert len(pictures) >= 8
    for name in pictures:
        with image.open(tmp_path / name) as picture:
            assert picture.size[0] > 600 and len(picture.getcolors(1 << 20) or [0] * 99) > 8
    assert "## Problem and goal" in text and "41.2 %" in text
    assert sorted(tmp_path.glob("*.tmp")) == []


def test_markdown_means_nothing_that_a_file_says():
    text = _markdown.escape("a|b <script> `x` [l](u) *b*")
    assert text == r"a\|b \<script\> \`x\` \[l\](u) \*b\*"
    assert _markdown.words([_markdown.doc.Code("a`b")]) == "`` a`b ``"


def test_pictures_go_to_a_file_or_to_a_folder(run_file, tmp_path):
    pytest.importorskip("matplotlib")
    stoker.report.make([run_file], tmp_path / "r.png")
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")
    stoker.report.make([run_file], tmp_path / "charts")
    names = {one.name for one in (tmp_path / "charts").iterdir()}
    assert {"causes.png", "timeline-0.png", "busy-0.png", "functions-main-0.png"} <= names


@pytest.mark.parametrize("name", sorted(run_making.EXAMPLES))
def test_every_kind_of_run_has_its_sections(name):
    run = run_making.EXAMPLES[name]()
    found = [section.id for section in document(run).sections]
    assert found[0] == "problem" and found[-2:] == ["machine", "method"]
    assert ("ranks" in found) == (len(run["ranks"]) > 1)
    assert ("causes" in found) == bool(run["causes"])
    assert ("gpu" in found) == (run["mode"] in ("gpu", "sampled"))
    assert document(run).answer[0]


@pytest.mark.parametrize(
    ("mode", "words"),
    [("gpu", "recorded by CUPTI"), ("sampled", "NVML"), ("cpu", "No GPU was seen")],
)
def test_the_method_says_how_the_run_was_watched(mode, words):
    text = _markdown.markdown(
        made := document({**run_making.gpu_run(), "mode": mode}),
        {chart.id: "x.png" for chart in made.charts()},
    )
    assert words in text.split("## Method and its limits")[1]


def test_what_processes_threads_disks_and_pcie_did_is_shown():
    page = _html.page(document(run_making.gpu_run()), "")
    shown = set(re.findall(r'data-key="0/([^"]+)"', page))
    assert shown >= {
        *(f"processes/1/{name}" for name in ("io_wait_s", "minor_faults", "max_rss_bytes")),
        *(f"threads/1/{name}" for name in ("cpu_s", "run_delay_s")),
        *(f"machine_io/{name}" for name in run_making.gpu_run()["machine_io"]),
        *(f"devices/0/pcie_received_bytes_s/{name}" for name in ("mean", "peak")),
    }
    assert not shown & {"processes/0/io_wait_s", "devices/0/pcie_sent_bytes_s/mean"}  # null
    assert "gpu-pcie-0" in {chart.id for chart in document(run_making.gpu_run()).charts()}
    tables = _markdown.markdown(
        made := document(run_making.gpu_run()), {chart.id: "x.png" for chart in made.charts()}
    )
    for row in ("| `python` | main, its main thread |", "| `pt_data_pin` | main |"):
        assert row in tables
    assert "| `late` | process |" in tables and "| `pt_data_worker` | worker 0, its" in tables


def test_the_method_says_where_only_the_beginning_was_recorded():
    run = run_making.gpu_run()
    run["ranks"][0]["recorded"] = 0.2
    made = document(run)
    text = _markdown.markdown(made, {chart.id: "x.png" for chart in made.charts()})
    method = text.split("## Method and its limits")[1]
    assert "in the first part of the run" in method and "Every kernel" not in method


def test_runs_of_different_machines_are_told_apart(tmp_path):
    paths = [
        run_making.write_run(tmp_path / "a.json", run_making.gpu_run()),
        run_making.write_run(tmp_path / "b.json", run_making.cpu_run()),
    ]
    titles = [notice.title for notice in build(read_all(map(str, paths))).notices]
    assert "The runs differ in more than their code" in titles


def test_files_of_the_same_name_get_names_of_their_own(tmp_path):
    paths = []
    for folder in ("before", "after"):
        (tmp_path / folder).mkdir()
        run = run_making.gpu_run()
        paths.append(str(run_making.write_run(tmp_path / folder / "run.json", run)))
    labels = [source.label for source in read_all(paths)]
    assert len(set(labels)) == 2 and labels[0].endswith("before/run")


def test_a_timeline_ends_where_a_lane_was_full():
    run = run_making.gpu_run()
    idle = next(lane for lane in run["timeline"]["lanes"] if lane["name"] == "idle")
    idle["slices"] = [*idle["slices"][:6], [20.3, run["timeline"]["end_s"], "several"]]
    chart = next(one for one in document(run).charts() if one.id == "timeline-0")
    assert chart.end == 20.3
    assert max(piece.end for _, pieces in chart.lanes for piece in pieces) <= 20.3


def test_stalls_are_drawn_in_the_colour_of_their_cause():
    chart = next(one for one in document(run_making.gpu_run()).charts() if one.id == "timeline-0")
    pieces = dict(chart.lanes)["idle, by cause"]
    wanted = {_colours.of_cause("input/transform"), _colours.of_cause("copy")}
    assert {piece.colour for piece in pieces} == wanted
    assert {band.colour for band in chart.bands} <= wanted and len(chart.bands) >= 24


def test_causes_are_those_of_the_library():
    header = ROOT / "src" / "watch" / "causes.h"
    if not header.exists():
        pytest.skip("there is no source tree here")
    rows = re.findall(r'X\(\w+, "([^"]+)", "([^"]+)"\)', header.read_text())
    assert dict(rows) == _colours.WORDS
    assert _colours.WORDS.keys() == _colours.CAUSES.keys()
    assert len(set(_colours.CAUSES.values())) == len(rows)


@pytest.mark.parametrize("path", sorted((ROOT / "results").rglob("*.json")), ids=lambda p: p.stem)
def test_every_result_of_the_project_is_drawn(path, tmp_path):
    made = build(read_all([str(path)]))
    assert made.charts()
    _html.page(made, "")


@pytest.mark.parametrize(
    ("value", "words"),
    [(0, "0 s"), (1.5e-6, "1.50 µs"), (0.0801, "80.1 ms"), (17.76, "17.8 s"), (119.6, "120 s"),
     (125, "2.08 min"), (7300, "2.03 h")],
)  # fmt: skip
def test_seconds_are_told_in_the_unit_that_fits(value, words):
    assert _format.seconds(value) == words


def test_the_package_carries_its_page():
    folder = importlib.resources.files("stoker.report")
    assert folder.joinpath("page.css").is_file() and folder.joinpath("page.js").is_file()
