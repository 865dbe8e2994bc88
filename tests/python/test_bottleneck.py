"""examples/bottleneck: its filter, its pipelines, and the whole of it with tiny data."""

import json
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

torch = pytest.importorskip("torch")

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "bottleneck"


def run(script, *words):
    command = [sys.executable, str(EXAMPLE / script), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bottleneck")
    run("gen.py", "--data", folder, "--scale", "tiny")
    return folder


@pytest.fixture(scope="module")
def sharpen():
    sys.path.insert(0, str(EXAMPLE))
    try:
        import sharpen
    finally:
        sys.path.remove(str(EXAMPLE))
    return sharpen


def test_the_data_is_one_file_a_picture_in_class_folders(data):
    files = sorted((data / "pictures").glob("class-*/*.npy"))
    assert len(files) == 96
    assert {path.parent.name for path in files} == {f"class-{n}" for n in range(10)}
    picture = numpy.load(files[0])
    assert picture.shape == (3, 192, 192) and picture.dtype == numpy.uint8


def test_data_that_is_there_is_not_made_again(data):
    before = (data / "pictures" / "class-0" / "000000.npy").stat().st_mtime_ns
    run("gen.py", "--data", data, "--scale", "tiny")
    assert (data / "pictures" / "class-0" / "000000.npy").stat().st_mtime_ns == before


def test_the_fast_filter_gives_what_the_slow_one_gives(sharpen):
    picture = numpy.random.default_rng(0).integers(0, 256, (3, 40, 32), numpy.uint8)
    expected = sharpen.sharpen_slowly(picture)
    found = sharpen.sharpen(torch.from_numpy(picture))
    assert torch.allclose(found, expected, atol=1e-5)
    batch = torch.from_numpy(picture).repeat(3, 1, 1, 1)
    assert torch.allclose(sharpen.sharpen(batch)[2], expected, atol=1e-5)


@pytest.mark.parametrize("pipeline", ["slow", "workers", "filter", "stoker"])
def test_every_pipeline_sees_all_samples(data, pipeline):
    done = run(
        "train.py",
        *("--data", data / "pictures", "--pipeline", pipeline),
        *("--epochs", 1, "--device", "cpu", "--workers", 2),
    )
    assert "pipeline" in done.stdout and "epoch 1/1" in done.stdout
    assert "emulated accelerator" in done.stdout


def test_the_whole_of_it_writes_a_report_and_traces(data, tmp_path):
    words = ("--data", data, "--out", tmp_path, "--scale", "tiny", "--device", "cpu")
    done = run("run.py", *words, "--epochs", 2)
    rows = json.loads((tmp_path / "table.json").read_text())
    assert [row["pipeline"] for row in rows] == ["slow", "stoker"]
    assert all(row["epoch_s"] > 0 for row in rows)  # which is faster, so small a set cannot tell
    assert "emulated accelerator computed" in done.stdout
    for name in ("slow", "stoker"):
        assert json.loads((tmp_path / f"{name}.json").read_text())["stoker_run"] == 1
        for trace in (f"{name}-trace.json", f"{name}-torch-trace.json"):
            assert json.loads((tmp_path / trace).read_text())["traceEvents"]
    for name in ("report.html", "report.md"):
        text = (tmp_path / name).read_text()
        assert "Before and after" in text and "The accelerator was emulated" in text
