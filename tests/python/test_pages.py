"""The documentation is true: examples run, files that it names are there, messages are the code's.

A page is run from top to bottom in a folder of its own. Its python blocks share their names; sh
blocks whose lines all begin with `stoker ` are run by the shell; an output block is what the block
before it prints, to the letter. Code of other libraries is fenced as `python theirs`: it is
compiled, not run.
"""

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("pyarrow")

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "docs/decisions/*.md")
    for path in ROOT.glob(pattern)
    if path.name != "api.md"  # made from docstrings: test_docs.py
)
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(stoker |#|$)")


@dataclass
class Block:
    info: str
    code: str
    line: int  # lines before it in the page

    def runs(self):
        if self.info == "sh":
            lines = self.code.replace("\\\n", " ").splitlines()
            return any(lines) and all(COMMAND.match(line) for line in lines)
        return self.info == "python"


def read_blocks(text):
    return [
        Block(found["info"].strip(), found["code"], text.count("\n", 0, found.start("code")))
        for found in FENCE.finditer(text)
    ]


def without_blocks(page):
    return FENCE.sub("", page.read_text())


def name_of(page):
    return str(page.relative_to(ROOT))


def runnable():
    return [page for page in PAGES if any(block.runs() for block in read_blocks(page.read_text()))]


# What runs a page: in a process of its own, so that pages do not meet.
RUNNER = r"""
import contextlib, io, json, subprocess, sys


def main():
    page, blocks = json.load(open(sys.argv[1]))
    names = {"__name__": "__main__"}
    printed = ""
    for kind, line, code in blocks:
        where = f"{page}:{line + 1}"
        if kind == "output":
            if printed != code:
                sys.exit(f"{where}: the block before it prints\n{printed}and the page says\n{code}")
        elif kind == "sh":
            done = subprocess.run(["bash", "-euc", code], text=True, stdout=subprocess.PIPE)
            printed = done.stdout
            if done.returncode:
                sys.exit(f"{where}: exit status {done.returncode}")
        else:
            shown = io.StringIO()
            with contextlib.redirect_stdout(shown):
                exec(compile("\n" * line + code, page, "exec"), names)
            printed = shown.getvalue()


if __name__ == "__main__":  # workers that are not forked import this file
    main()
"""


def run_blocks(page, blocks, folder):
    """Runs the blocks of one page in a folder of its own; the finished process."""
    todo = [
        (block.info, block.line, block.code)
        for block in blocks
        if block.runs() or block.info == "output"
    ]
    programs = folder / "bin"
    programs.mkdir()
    for name, words in (("stoker", " -m stoker"), ("python", "")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}"{words} "$@"\n')
        program.chmod(0o755)
    (folder / "page.json").write_text(json.dumps([page, todo]))
    (folder / "runner.py").write_text(RUNNER)
    work = folder / "work"
    work.mkdir()
    return subprocess.run(
        [sys.executable, str(folder / "runner.py"), str(folder / "page.json")],
        cwd=work,
        env=dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}"),
        capture_output=True,
        text=True,
        timeout=240,
    )


@pytest.mark.parametrize("page", runnable(), ids=name_of)
def test_the_examples_of_a_page_run(page, tmp_path):
    done = run_blocks(name_of(page), read_blocks(page.read_text()), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "```python\nimport stoker\nstoker.open('no-such-folder')\n```\n",
        "```sh\nstoker ls no-such-folder\n```\n",
        "```sh\nstoker version --no-such-option\n```\n",
        "```python\nprint(1)\n```\n\n```output\n2\n```\n",
    ],
)
def test_a_broken_example_is_noticed(text, tmp_path):
    done = run_blocks("broken.md", read_blocks(text), tmp_path)
    assert done.returncode != 0
    assert "broken.md" in done.stderr


@pytest.mark.parametrize("name", ["README.md", "docs/migrate.md", "docs/order.md"])
def test_the_pages_that_teach_have_examples(name):
    assert ROOT / name in runnable()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_are_closed_and_of_a_known_kind(page):
    text = page.read_text()
    blocks = read_blocks(text)
    assert len(re.findall(r"^```", text, re.MULTILINE)) == 2 * len(blocks)
    known = {"python", "python theirs", "sh", "output", "text", "c"}
    assert {block.info for block in blocks} <= known


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_code_of_other_libraries_is_python(page):
    for block in read_blocks(page.read_text()):
        if block.info == "python theirs":
            ast.parse(block.code, filename=f"{name_of(page)}:{block.line + 1}")


def anchors(page):
    """The anchors of a page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", without_blocks(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", without_blocks(page)):
        path, _, anchor = "".join(link).partition("#")
        if "://" in path:
            continue
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), path
        assert not anchor or anchor in anchors(file), f"{path}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_are_named_are_there(page):
    folders = r"(?:src|include|python|cli|tests|tools|bench|examples|cmake|\.ci)"
    for path in re.findall(rf"`({folders}/[\w./-]+)`", without_blocks(page)):
        assert "NAME" in path or (ROOT / path).exists(), path


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_functions_and_options_that_are_named_are_there(page):
    if page.name == "migrate.md":  # names those of other libraries too
        return
    code = strings_of_the_code() + "".join(
        path.read_text() for path in sorted((ROOT / "include").rglob("*.h"))
    )
    for name in re.findall(
        r"`(?:struct |enum )?([a-z]+_[a-z_]+)=?(?:\(\))?`", without_blocks(page)
    ):
        assert re.search(rf"\b{name}\b", code), name


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_make_targets_that_are_named_are_there(page):
    targets = set(re.findall(r"^([a-z%-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for target in re.findall(r"(?:`|^)make ([a-z][a-z-]*)", page.read_text(), re.MULTILINE):
        assert target in targets or re.sub(r"-.*", "-%", target) in targets, target


# Messages that docs/troubleshooting.md quotes


def strings_of_the_code():
    """All of the code with adjacent strings joined and escaped quotes undone."""
    files = [
        path
        for folder in ("src", "cli", "python")
        for pattern in ("*.[ch]", "*.py")
        for path in sorted((ROOT / folder).rglob(pattern))
    ]
    code = "\n".join(path.read_text() for path in files)
    return re.sub(r'"\s*\n\s*f?"', "", code).replace('\\"', '"')


def fixed_words(message):
    """A message without what varies: words in capitals, three dots, quotes and brackets."""
    parts = re.split(r"\b[A-Z][A-Z_]*\b|\.\.\.|[\"'()]", message)
    return [part.strip(" :,") for part in parts if len(part.strip(" :,")) > 3]


def quoted_messages():
    lines = (ROOT / "docs/troubleshooting.md").read_text().splitlines()
    cells = [line.split("|")[1] for line in lines if line.startswith("| `")]
    return [message for cell in cells for message in re.findall(r"`([^`]+)`", cell)]


def test_quoted_messages_are_the_codes_own():
    code = strings_of_the_code()
    messages = quoted_messages()
    assert len(messages) > 30
    for message in messages:
        for words in fixed_words(message):
            assert words in code, message


# The tables of README.md and docs/series.md


@pytest.fixture
def table():
    path = ROOT / "tools" / "readme_table.py"
    spec = importlib.util.spec_from_file_location("readme_table", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def is_own(path):
    """Measured here and not kept by git: the pages need not show it."""
    command = ["git", "status", "--porcelain", "--", path]
    return subprocess.run(command, cwd=ROOT, capture_output=True).stdout != b""


def test_the_tables_are_the_measured_ones(table):
    measured = {name: table.result_of(name) for _, name, _ in table.TABLES}
    kept = {name for name, path in measured.items() if path.exists() and not is_own(path)}
    for page, name, render in table.TABLES:
        if name in kept:
            result = json.loads(measured[name].read_text())
            assert table.between_marks(page.read_text(), name) == render(result), page
    if not kept:
        pytest.skip("results/*.json are your own: tools/readme_table.py shows them in the pages")


def test_a_table_shows_what_was_measured_and_what_was_not(table):
    row = {"unit": "bytes/s", "runs": [8e9, 1e10], "samples_per_s": 7500.0, "peak_rss": 2**30}
    result = {
        "machine": {"cpu": "a CPU", "cores": 2},
        "workload": {"samples": 1000, "bytes": 1204224000},
        "limit": {"name": "pread", "value": 1e10, "unit": "bytes/s"},
        "rows": [
            {"name": "stoker", "value": 9e9, **row},
            {"name": "webdataset", "value": 0.9e9, **row},
            {"name": "mosaic", "value": None, "unit": "bytes/s", "runs": [], "note": "absent"},
        ],
        "ratios": {"stoker/webdataset": 10.0, "stoker/limit": 0.9},
    }
    words = table.render(result)
    for expected in ("9.00 GB/s", "10.0x", "90 %", "not measured", "1,000 samples"):
        assert expected in words


MACHINE = {"machine": {"cpu": "a CPU", "cores": 2}}


def test_the_table_of_windows_tells_what_was_computed(table):
    row = {"unit": "samples/s", "runs": [1e6], "batches_per_s": 976.5, "start_s": 0.02}
    row.update(peak_rss=2**28, disk_bytes=640e6)
    result = {
        **MACHINE,
        "workload": {
            **dict.fromkeys(("entities", "rows_of_each", "features", "window"), 10),
            "batch_size": 1024,
            "start": {"bytes": 10 * 2**30, "entities": 10000},
        },
        "limit": {"name": "memcpy", "value": 4e6, "unit": "samples/s"},
        "rows": [
            {"name": "stoker", "value": 3e6, **row},
            {"name": "sequence_files", "value": 1e4, **row, "disk_bytes_of_all_computed": 39e9},
            {"name": "hdf5_workers", "value": None, "unit": "samples/s", "runs": []},
            {"name": "start", "value": 0.0312, "unit": "s", "runs": [0.0312]},
        ],
        "ratios": {"stoker/limit": 0.75, "stoker/sequence_files": 300.0},
    }
    words = table.render_windows(result)
    for expected in ("3,000,000", "300x", "75 %", "not measured", "39.00 GB (2)", "31 ms"):
        assert expected in words


def test_the_table_of_packing_tells_fsync_apart(table):
    row = {"unit": "rows/s", "runs": [1e7], "seconds": 1.25, "peak_rss": 2**28}
    result = {
        **MACHINE,
        "workload": {"files": 400, "samples": 9e6, "features": 16, "scaler": "standard"},
        "rows": [
            {"name": "stoker_synced", "value": 7.2e6, **row, "sync_s": 0.25},
            {"name": "stoker", "value": 9e6, **row},
            {"name": "pandas_sklearn", "value": 1.5e6, **row},
        ],
        "ratios": {"time/(read+write)": 1.4, "time_synced/(read+write)": 1.6},
    }
    words = table.render_pack(result)
    for expected in ("9.00 M", "7.20 M", "1.25 s, 0.25 s of it", "6.0x", "1.40 times", "(1.60"):
        assert expected in words


MEDIA_ROW = {"unit": "samples/s", "runs": [900.0, 1100.0], "cpu_s": 2.0, "peak_rss": 2**28}


def media_result(rows, ratios, **workload):
    workload = {"samples": 2000, "bytes": 166e6, "batch_size": 64, **workload}
    limit = {"name": "a full decode", "value": 1500.0, "unit": "samples/s"}
    rows = [
        {**MEDIA_ROW, "name": name, "value": value, "runs": [value] if value else []}
        for name, value in rows.items()
    ]
    return {**MACHINE, "workload": workload, "limit": limit, "rows": rows, "ratios": ratios}


def test_the_table_of_images_tells_rates_ratios_and_what_is_missing(table):
    rows = {"stoker": 1650.0, "dali_cpu": 660.0, "ffcv_jpg": None, "large": 300.0, "raw": 4000.0}
    ratios = {
        "stoker/dali_cpu": 2.5,
        "stoker/limit": 1.1,
        "large/full_decode_large": 1.6,
        "raw/ffcv_raw": 2.2,
    }
    words = table.render_jpeg(media_result(rows, ratios, width=500, height=375))
    for expected in (
        "| **Stoker**, tar shards | 1,650 |",
        "2.5x",
        "1 ms",
        "FFCV, JPEGs in its own file | not measured",
        "110 %",
        "300 images/s, 1.60 times",
        "4,000 images/s, 2.2 times",
        "83 KB",
    ):
        assert expected in words, expected
    assert "Whole images resized" not in words


def test_the_table_of_recordings_compares_each_kind_with_its_own(table):
    rows = {"stoker": 40000.0, "soundfile_dataloader": 4000.0, "flac": 6000.0}
    rows["flac_dataloader"] = 1000.0
    ratios = {"stoker/soundfile_dataloader": 10.0, "flac/flac_dataloader": 6.0}
    words = table.render_audio(media_result(rows, ratios, rate=16000, seconds=1))
    for expected in ("40,000", "10.0x", "6.0x", "16 kHz", "make bench-audio"):
        assert expected in words, expected
    assert "Limit" not in words


def test_the_table_of_videos_names_the_clip(table):
    rows = {"stoker": 80.0, "pyav": 64.0, "torchcodec": None}
    more = {"codec": "libx264", "width": 320, "height": 240, "frames": 100, "key_every": 25}
    more["clip"] = {"frames": 16, "stride": 2, "start": "center"}
    words = table.render_video(media_result(rows, {"stoker/pyav": 1.25}, **more))
    for expected in ("| 80 |", "1.2x", "TorchCodec | not measured", "16 frames from the middle"):
        assert expected in words, expected


def test_the_picture_of_memory_draws_every_curve():
    spec = importlib.util.spec_from_file_location("picture", ROOT / "tools/memory_picture.py")
    picture = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(picture)
    curves = [
        {"what": what, "factor": 4, "seconds": 2.0, "bytes": 2**28, "curve": [[1.0, 2**25]]}
        for what in ("pack", "stream", "sort")
    ]
    drawn = picture.draw({"budget": 2**26, "margin": 2**26, "curves": curves})
    assert drawn.count('class="curve x4" d="M') == 3  # two curves and the key
    assert drawn.count('class="curve x4 sort" d="M') == 2
    if picture.RESULT.exists() and not is_own(picture.RESULT):
        memory = json.loads(picture.RESULT.read_text())["memory"]
        assert picture.PICTURE.read_text() == picture.draw(memory), "run tools/memory_picture.py"
