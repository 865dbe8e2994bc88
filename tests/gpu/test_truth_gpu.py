"""Scripts that plant one cause each, on a real GPU: the truth suite of tests/truth."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "truth"))

import truth


@pytest.mark.parametrize("name", truth.on("cuda"))
def test_the_planted_cause_is_named_first_with_its_share(name):
    outcome = truth.try_out(name, "cuda")
    assert not outcome.complaints, f"{outcome.complaints}\n{outcome.told}\n{outcome.words}"
