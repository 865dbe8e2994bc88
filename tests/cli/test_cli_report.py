"""`stoker report` of the plain binary, which cannot draw, and says who can."""

import json


def test_the_plain_binary_says_who_draws(stoker, tmp_path):
    run = tmp_path / "run.json"
    run.write_text('{"stoker_run": 1}')
    done = stoker("report", run, "-o", tmp_path / "r.html", status=1)
    assert "the Python package does" in done.stderr
    assert "pip install 'stoker[report]'" in done.stderr
    assert list(tmp_path.iterdir()) == [run]


def test_a_run_and_an_output_are_asked_for(stoker, tmp_path):
    assert "-o OUT is missing" in stoker("report", "run.json", status=2).stderr
    assert "RUN" in stoker("report", "-o", tmp_path / "r.html", status=2).stderr


def test_its_help_tells_what_can_be_written(stoker):
    words = stoker("report", "--help").stdout
    assert "R.html" in words and "R.md" in words and "R.png" in words
    (command,) = json.loads(stoker("help", "report", "--json").stdout)["commands"]
    assert command["options"][0]["name"] == "out"


def test_a_report_that_cannot_be_drawn_is_told_before_the_command_starts(stoker, tmp_path):
    mark = tmp_path / "started"
    done = stoker("run", "--report", tmp_path / "r.html", "--", "touch", mark, status=1)
    assert "the Python package does" in done.stderr
    assert not mark.exists()
