"""The checks of `make lint` find what they are for."""

import shutil
import subprocess
import sys

import pytest

from .conftest import ROOT


@pytest.fixture
def check(tmp_path):
    """Returns a function that writes one file into an empty tree and checks its includes."""

    def run_check(name, text):
        (tmp_path / "tools").mkdir()
        shutil.copy(ROOT / "tools" / "include_law.txt", tmp_path / "tools")
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
        command = [sys.executable, ROOT / "tools" / "check_includes.py", tmp_path]
        return subprocess.run(command, capture_output=True, text=True)

    return run_check


@pytest.mark.parametrize(
    "name, include",
    [
        ("src/base/x.c", '"store/store.h"'),
        ("src/store/x.c", '"index/index.h"'),
        ("src/format/x.c", '"store/store.h"'),
        ("src/base/x.h", '"stoker/loader.h"'),
        ("src/pack/x.c", '"loader/plan.h"'),
        ("cli/x.c", '"base/fail.h"'),
        ("python/x.c", '"base/fail.h"'),
        ("python/x.c", '"options.h"'),
        ("src/loader/x.c", "<jansson.h>"),
        ("src/api/x.c", "<stdio.h>"),
    ],
)
def test_an_include_against_the_law_is_found(check, name, include):
    done = check(name, f"#include {include}\n")
    assert done.returncode == 1
    assert name.rsplit("/", 1)[0] in done.stdout


@pytest.mark.parametrize(
    "name, include",
    [
        ("src/format/x.c", '"store/scan.h"'),
        ("src/base/json.c", "<jansson.h>"),
        ("src/loader/x.c", '"codec/codec.h"'),
        ("cli/x.c", '"stoker/loader.h"'),
        ("python/x.c", '"stoker_main.h"'),
    ],
)
def test_an_include_within_the_law_passes(check, name, include):
    done = check(name, f"#include {include}\n")
    assert done.returncode == 0, done.stdout
