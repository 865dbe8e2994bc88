"""`stoker run` with scripts of PyTorch: many workers, and a disk that is full."""

import json
import resource
import subprocess
import sys
import textwrap
import time

import pytest
from places import BINARY

pytest.importorskip("torch")

pytestmark = pytest.mark.alone  # shares of time

PRELUDE = """
import sys, time, torch
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


class Numbers(Dataset):
    def __init__(self, count, seconds):
        self.count, self.seconds = count, seconds

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        time.sleep(self.seconds)
        return torch.full((4,), float(i)), i % 2


def train(loader, seconds=0.0):
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        time.sleep(seconds)
        optimizer.step()
"""


def start(tmp_path, text, *options):
    script = tmp_path / "script.py"
    script.write_text(PRELUDE + textwrap.dedent(text))
    return subprocess.Popen(
        [str(BINARY), "run", *options, "--", sys.executable, str(script)],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_hundred_workers_of_a_loader_are_told(tmp_path):
    text = "train(DataLoader(Numbers(3000, 0.002), batch_size=5, num_workers=100), 0.002)\n"
    process = start(tmp_path, text, "--json", "run.json")
    _, told = process.communicate(timeout=60)
    assert process.returncode == 0, told
    run = json.loads((tmp_path / "run.json").read_text())
    print(told, run["wall_s"], run["watching"], run["processes"][:3])
    assert run["reliable"] and run["watching"]["lost"] == 0 and run["wall_s"] < 30
    assert run["notices"] == []
    (rank,), (loader,) = run["ranks"], run["loaders"]
    assert rank["steps"] == 600 and rank["samples"] == 3000
    assert loader["workers"] == 100 and loader["starts"] == 1 and loader["handed_out"] == 600
    assert loader["fetch_s"] > 0.98 * 3000 * 0.002  # those that were lost would lack
    workers = [process for process in run["processes"] if process["role"] == "worker"]
    assert sorted(worker["worker"] for worker in workers) == list(range(100))
    assert run["verdict"]["cause"] == "input/start", run["causes"]
    assert "input" in told and "100" in told


MANY = """
loader = DataLoader(Numbers(20_000, 0), batch_size=5)
print("ready", flush=True)
train(loader)
print("trained", flush=True)
sys.exit(3)
"""


def test_a_trace_on_a_disk_that_fills_up_harms_neither_the_script_nor_its_status(tmp_path):
    process = start(tmp_path, MANY, "--trace", "t.json")
    assert process.stdout.readline() == "ready\n"
    # Of stoker alone: no file of it grows further.
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    out, told = process.communicate(timeout=60)
    assert (out, process.returncode) == ("trained\n", 3), told
    assert "The trace is not complete" in told and "can be opened" in told
    assert "training step" in told, "the verdict is told all the same"
    assert (tmp_path / "t.json").stat().st_size <= 200_000
    assert len(json.loads((tmp_path / "t.json").read_text())["traceEvents"]) > 300


def test_a_trace_that_finds_no_room_at_all_is_told(tmp_path):
    begun = time.monotonic()
    process = start(tmp_path, MANY, "--trace", "/dev/full")
    out, told = process.communicate(timeout=60)
    assert (out, process.returncode) == ("ready\ntrained\n", 3), told
    assert "trace" in told and "training step" in told and time.monotonic() - begun < 50
