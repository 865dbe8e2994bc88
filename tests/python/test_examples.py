"""The scripts of examples, run as a user runs them, with tiny data."""

import json
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("webdataset")
pytest.importorskip("matplotlib")

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "streaming"
SCRIPTS = ("prep_data.py", "data_engine.py", "run_benchmark.py", "training.py", "demo.py")


def run(folder, script, *arguments):
    """From a folder that is not the script's own."""
    command = [sys.executable, str(EXAMPLES / script), *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    wanted = ("--samples", 120, "--shards", 3, "--shape", "4,16,16,3", "--classes", 2)
    run(folder, "prep_data.py", "--out", "set", *wanted)
    return folder


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_explains_itself(tmp_path, script):
    assert "--help" in run(tmp_path, script, "--help")


def test_prep_data_writes_shards_loose_twins_and_a_table(data):
    parquet = pytest.importorskip("pyarrow.parquet")
    shards = sorted(path.name for path in (data / "set" / "shards").glob("*.tar"))
    assert shards == ["shard-0000.tar", "shard-0001.tar", "shard-0002.tar"]
    assert len(list((data / "set" / "loose").glob("*.npy"))) == 120
    assert parquet.read_table(data / "set" / "shards" / "metadata.parquet").num_rows == 120


def test_prep_data_says_when_the_disk_is_too_small(data):
    command = [sys.executable, str(EXAMPLES / "prep_data.py"), "--samples", str(10**12)]
    done = subprocess.run(command, cwd=data, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "are free" in done.stderr


def test_the_engine_hands_over_batches_of_a_uri(data):
    out = run(data, "data_engine.py", "--data", (data / "set" / "shards").as_uri())
    assert "x (32, 4, 16, 16, 3) torch.float16, y (32,) torch.int64" in out
    assert "epoch: 120 samples" in out


def test_the_race_measures_all_three_and_draws_them(data):
    out = run(data, "run_benchmark.py", "--data", "set", "--loops", 2, "--results", "out")
    result = json.loads((data / "out" / "demo-benchmark.json").read_text())
    rates = {row["name"]: row["value"] for row in result["rows"]}
    assert list(rates) == ["naive", "WebDataset", "Stoker"]
    ratio = rates["Stoker"] / rates["naive"]
    assert result["ratios"]["Stoker/naive"] == pytest.approx(ratio)
    assert f"{ratio:.1f}x net increase" in out
    assert (data / "out" / "demo-benchmark.png").read_bytes().startswith(b"\x89PNG")


def test_how_busy_a_gpu_was_is_drawn_of_the_results_alone(data):
    """On a machine without a GPU and without the data: from what another one measured."""
    row = {"workers": None, "gigabytes_per_s": 1.0}
    training = {"samples_per_s": 9.0, "gpu_busy": 0.5, "busy_by": "kernels", "workers": 4}
    result = {
        "rows": [{"name": "naive", "value": 1.0, **row}, {"name": "Stoker", "value": 9.0, **row}],
        "machine": {"cpu": "a CPU", "cores": 16, "device": "cuda"},
        "workload": {"batch_size": 32},
        "training": [{"name": name, "curve": [[0, 0.4], [0.02, 0.6]], **training} for name in "ab"],
    }
    folder = data / "drawn"
    folder.mkdir()
    (folder / "demo-benchmark.json").write_text(json.dumps(result))
    run(data, "run_benchmark.py", "--draw", "--results", folder)
    for name in ("demo-benchmark.png", "demo-gpu-busy.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")


def test_training_learns_what_it_was_not_shown(data):
    run(
        data,
        "training.py",
        "--data",
        "set/shards",
        "--classes",
        2,
        "--epochs",
        6,
        "--results",
        "out",
    )
    log = json.loads((data / "out" / "demo-training.json").read_text())
    assert len(log["epochs"]) == 6
    assert log["epochs"][-1]["loss"] < log["epochs"][0]["loss"]
    assert log["epochs"][-1]["held_out_accuracy"] >= 0.7


def test_the_forecast_beats_the_last_value(tmp_path):
    out = run(tmp_path, "../forecast.py", "--data", tmp_path / "forecast", "--quick")
    found = re.search(r"test: MAE ([\d.]+), naive ([\d.]+)", out)
    assert float(found[1]) < 0.9 * float(found[2]), out
    assert len(re.findall(r"^\d{4}-\d\d.*\d$", out, re.MULTILINE)) >= 2  # periods walked through
