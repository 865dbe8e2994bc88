"""Tests on a real GPU, with PyTorch. Elsewhere they are skipped, with the reason."""

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy
import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))  # what makes data is shared

import series_making  # noqa: E402
import shard_making  # noqa: E402


def why_not():
    """Why these tests cannot run here; None: they can."""
    try:
        import torch
    except ImportError:
        return "PyTorch is not installed"
    if not torch.cuda.is_available():
        return "PyTorch sees no GPU"
    from stoker import _core

    return None if _core.device_count() else "Stoker sees no GPU: see stoker check"


REASON = why_not()


def pytest_collection_modifyitems(items):
    if REASON is None:
        return
    for item in items:
        if HERE in Path(item.path).parents:
            item.add_marker(pytest.mark.skip(reason=REASON))


@pytest.fixture(autouse=True)
def tidy():
    """Each test begins and ends with a GPU that has nothing to do."""
    yield
    if REASON is None:
        import torch

        torch.cuda.synchronize()


def half_sample(number):
    random = numpy.random.default_rng(number)
    array = random.standard_normal((4, 32, 32, 3)).astype(numpy.float16)
    return {"npy": array, "cls": number % 10, "txt": f"caption {number}"}


@pytest.fixture(scope="session")
def tensors(tmp_path_factory):
    """600 samples (npy float16 (4, 32, 32, 3), cls, txt) in four shards."""
    folder = tmp_path_factory.mktemp("tensors")
    return shard_making.write_shards(
        folder, 600, shards=4, fields=("npy", "cls", "txt"), make=half_sample
    )


@pytest.fixture(scope="session")
def ragged(tmp_path_factory):
    """Rows of unequal number, and a tensor that two samples of three lack."""

    def make(number):
        rows = number % 7
        array = numpy.arange(rows * 3, dtype=numpy.float32).reshape(rows, 3) + number
        made = {"npy": array, "cls": number}
        return made | ({"extra.npy": numpy.full(2, number, numpy.int16)} if number % 3 else {})

    folder = tmp_path_factory.mktemp("ragged")
    return shard_making.write_shards(folder, 90, fields=("npy", "cls", "extra.npy"), make=make)


@pytest.fixture(scope="session")
def series(tmp_path_factory):
    """Three entities of 5 features."""
    folder = tmp_path_factory.mktemp("series") / "made"
    series_making.write_by_hand(folder, [4000, 900, 2500], columns=5)
    return folder


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    """256 JPEGs of 160 x 120."""
    folder = tmp_path_factory.mktemp("images") / "made"
    words = ["gen", "images", "-o", folder, "--samples", 256, "--size", "160x120", "--classes", 4]
    subprocess.run([sys.executable, "-m", "stoker", *map(str, words)], check=True)
    return folder


@pytest.fixture
def run_python(tmp_path):
    """Runs a script in a process of its own: run_python(text, *arguments) -> CompletedProcess."""

    def run(text, *arguments, **options):
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(text))
        return subprocess.run(
            [sys.executable, "-X", "faulthandler", str(script), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=180,
            **options,
        )

    return run
