"""stoker.profile(): a block of code is watched in its own process."""

import json
import os
import subprocess
import sys
import time
import warnings
from multiprocessing import forkserver
from pathlib import Path

import numpy
import pytest
import stoker

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, Dataset  # noqa: E402

pytestmark = pytest.mark.alone  # what took how long is measured


class Slow(Dataset):
    """Samples that take `seconds` of a CPU to make."""

    def __init__(self, seconds=0.002, count=96):
        self.seconds, self.count = seconds, count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        spin(self.seconds)
        return torch.full((8,), float(i)), i % 2


class Files(Dataset):
    def __init__(self, folder):
        self.paths = sorted(Path(folder).glob("*.npy"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return torch.from_numpy(self.read(i)), 0

    def read(self, i):
        for _ in range(20):
            x = numpy.load(self.paths[i])
        return x


def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def train(dataset=None, epochs=2, **options):
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loader = DataLoader(dataset or Slow(), batch_size=8, **options)
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            time.sleep(0.002)


def events(path, name=None):
    found = json.loads(Path(path).read_text())["traceEvents"]
    return [one for one in found if name is None or one["name"] == name]


def row_names(path):
    return {
        one["args"]["name"] for one in events(path) if one["ph"] == "M" and "name" in one["args"]
    }


def test_a_block_is_watched_and_judged(tmp_path):
    with stoker.profile(trace=tmp_path / "T.json", run=tmp_path / "run.json") as p:
        train()
    assert p.summary["stoker_run"] == 1
    assert json.loads((tmp_path / "run.json").read_text()) == p.summary
    [rank] = p.summary["ranks"]
    assert rank["steps"] == 24 and rank["samples"] == 192
    assert p.summary["mode"] == "cpu"
    shares = {one["cause"]: one["share"] for one in p.summary["causes"]}
    assert shares["input/transform"] > 0.1  # other tests may have the CPU
    assert p.summary["verdict"]["bound"] != "unknown"
    assert p.verdict.startswith("The training step computes ")
    assert len(events(tmp_path / "T.json", "wait for a batch")) >= 24
    assert len(events(tmp_path / "T.json", "step 3")) == 1


def test_workers_of_the_block_are_seen(tmp_path):
    with stoker.profile(trace=tmp_path / "T.json") as p:
        train(num_workers=1)
    assert "worker" in {one["role"] for one in p.summary["processes"]}
    assert len(events(tmp_path / "T.json", "fetch")) >= 24
    assert any(name.startswith("worker 0") for name in row_names(tmp_path / "T.json"))


def test_workers_of_a_fork_server_are_seen_whenever_it_was_started(tmp_path):
    options = {"epochs": 1, "num_workers": 1, "multiprocessing_context": "forkserver"}
    train(**options)  # by the process's own server, which knows of no block
    connect = forkserver.connect_to_new_process
    for _ in range(2):
        with stoker.profile() as p:
            train(**options)
        assert "worker" in {one["role"] for one in p.summary["processes"]}
        assert len(p.summary["ranks"]) == 1
    assert forkserver.connect_to_new_process == connect
    train(**options)


def test_it_can_be_used_again_and_again():
    counted = []
    for epochs in (1, 2, 1):
        with stoker.profile() as p:
            train(epochs=epochs)
        counted.append(p.summary["ranks"][0]["steps"])
    assert counted == [12, 24, 12]


def test_one_object_can_be_entered_again_and_is_a_decorator(tmp_path):
    watched = stoker.profile(run=tmp_path / "run.json")

    @watched
    def work():
        train(epochs=1)
        return 7

    assert work() == 7
    first = watched.summary
    assert work() == 7
    assert first["ranks"][0]["steps"] == watched.summary["ranks"][0]["steps"] == 12


def test_a_block_in_a_block_is_refused():
    with stoker.profile() as outer:
        with pytest.raises(RuntimeError, match="one block at a time") as caught:
            with stoker.profile():
                pass
        assert "test_profile.py" in str(caught.value)
        train(epochs=1)
    assert outer.summary["ranks"][0]["steps"] == 12


def test_what_the_block_raises_passes_and_what_was_seen_is_told(tmp_path):
    p = stoker.profile(trace=tmp_path / "T.json")
    with pytest.raises(KeyError, match="mine"), p:
        train(epochs=1)
        raise KeyError("mine")
    assert p.summary["ranks"][0]["steps"] == 12
    assert events(tmp_path / "T.json", "step 3")


def test_nothing_is_left_behind(tmp_path):
    following = DataLoader.__iter__, torch.profiler.profile.stop, list(sys.path), dict(os.environ)
    optimizer_step = torch.optim.SGD.step
    with stoker.profile(trace=tmp_path / "T.json") as p:
        folder = os.environ["STOKER_WATCH"]
        train(epochs=1, num_workers=1)
    assert p.summary
    assert (DataLoader.__iter__, torch.profiler.profile.stop, sys.path, os.environ) == following
    assert torch.optim.SGD.step is optimizer_step
    assert not any(name.startswith("stoker_watch") for name in sys.modules)
    assert not Path(folder).exists()
    assert [one.name for one in tmp_path.iterdir()] == ["T.json"]


def test_a_loader_goes_on_across_the_edges_of_a_block():
    loader = DataLoader(Slow(), batch_size=8, num_workers=1, persistent_workers=True)
    batches = iter(loader)
    next(batches)
    with stoker.profile():
        for _ in range(4):
            next(batches)
    assert len(list(batches)) == 7
    assert len(list(loader)) == 12


def test_a_forked_child_that_leaves_the_block_does_no_harm(tmp_path):
    script = """
import os, sys, stoker
with stoker.profile() as p:
    folder = os.environ["STOKER_WATCH"]
    child = os.fork()
    if not child:
        sys.exit(5)
    assert os.waitpid(child, 0)[1] == 5 << 8
    assert os.path.isdir(folder)
assert p.summary["stoker_run"] == 1 and not os.path.isdir(folder)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_under_stoker_run_it_leaves_the_watching_to_it(monkeypatch, tmp_path):
    monkeypatch.setenv("STOKER_WATCH", str(tmp_path))
    with pytest.warns(UserWarning, match="stoker run"), stoker.profile() as p:
        pass
    assert p.summary == {} and p.verdict == ""


def test_a_report_is_drawn_of_the_block(tmp_path):
    pytest.importorskip("plotly")
    with stoker.profile(report=tmp_path / "R.html"):
        train(epochs=1)
    assert "<html" in (tmp_path / "R.html").read_text()[:2000]
    with pytest.raises(stoker.StokerError), stoker.profile(report=tmp_path / "R.doc"):
        raise AssertionError("it was entered")


def test_a_trace_that_cannot_be_written_is_refused_before_the_block(tmp_path):
    entered = False
    with pytest.raises(stoker.StokerError) as caught:
        with stoker.profile(trace=tmp_path / "nowhere" / "T.json"):
            entered = True
    assert not entered and "nowhere" in str(caught.value)
    with stoker.profile() as p:  # and nothing of it is left
        pass
    assert p.summary["verdict"]["bound"] == "unknown"


# torch.profiler


def profiled(**options):
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options)


def check_merged(path):
    """Its operators lie within our steps, on our clock."""
    found = [one for one in events(path) if one.get("cat") == "torch.profiler"]
    linear = [one for one in found if one["name"] == "aten::linear"]
    assert len(linear) == 12
    steps = [one for one in events(path) if one["name"].startswith("step ") and one["ph"] == "X"]
    inside = [
        one
        for one in linear
        if any(s["ts"] <= one["ts"] and one["ts"] + one["dur"] <= s["ts"] + s["dur"] for s in steps)
    ]
    assert len(inside) >= 11  # the first comes before the first step has ended
    assert "torch.profiler" in row_names(path)


def test_a_profiler_within_the_block_is_merged(tmp_path):
    with stoker.profile(trace=tmp_path / "T.json"), profiled() as prof:
        train(epochs=1)
    check_merged(tmp_path / "T.json")
    prof.export_chrome_trace(str(tmp_path / "theirs.json"))  # theirs to export still


def test_a_profiler_around_the_block_is_merged_when_it_stops(tmp_path):
    with profiled() as prof, stoker.profile(trace=tmp_path / "T.json"):
        train(epochs=1)
    check_merged(tmp_path / "T.json")
    assert "stop" not in vars(prof)


def test_a_profiler_that_is_given_and_done_is_merged(tmp_path):
    prof = profiled()
    with stoker.profile(trace=tmp_path / "T.json", prof=prof), prof:
        train(epochs=1)
    check_merged(tmp_path / "T.json")


def test_a_file_that_a_profiler_exported_is_merged(tmp_path):
    path = tmp_path / "theirs.json"
    with stoker.profile(trace=tmp_path / "T.json", prof=path):
        with profiled() as prof:
            train(epochs=1)
        prof.export_chrome_trace(str(path))
    linear = [one for one in events(tmp_path / "T.json") if one["name"] == "aten::linear"]
    step = events(tmp_path / "T.json", "step 6")[0]
    assert any(step["ts"] <= one["ts"] <= step["ts"] + step["dur"] for one in linear)


# a GPU that is not there

ROOT = Path(__file__).resolve().parents[2]
CUPTI = Path(os.environ.get("STOKER_TEST_CUPTI", ROOT / "build/sim_cupti_13/libcupti.so.13"))
GPU_SCRIPT = """
import sys, torch, stoker
from torch.utils.data import DataLoader, TensorDataset
sys.path.insert(0, sys.argv[1])
from sim_gpu import SimGpu

optimizer = torch.optim.SGD(torch.nn.Linear(4, 1).parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.randn(640, 4)), batch_size=32)
for kernels in (1, 2):
    with stoker.profile() as p:
        gpu = SimGpu()
        for _ in loader:
            for _ in range(kernels):
                gpu.launch(0.005)
            optimizer.step()
        gpu.synchronize()
    [rank] = p.summary["ranks"]
    busy = rank["busy"]["compute"] > 0.5
    print(p.summary["mode"], rank["kernels"], busy, p.summary["unreliable"])
"""


@pytest.mark.skipif(not CUPTI.exists(), reason="the simulated CUPTI is not built")
def test_the_work_of_a_gpu_is_recorded_in_each_block(tmp_path):
    (tmp_path / "script.py").write_text(GPU_SCRIPT)
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py", ROOT / "tests" / "sim_cuda"],
        capture_output=True,
        text=True,
        timeout=120,
        env=dict(os.environ, STOKER_TEST_CUPTI=str(CUPTI)),
    )
    assert done.stdout.splitlines() == ["gpu 20 True []", "gpu 40 True []"], done.stderr


# what is advised


def test_the_snippet_that_is_advised_runs(tmp_path):
    folder = tmp_path / 'it\'s "here"'
    folder.mkdir()
    for i in range(64):
        numpy.save(folder / f"{i:03}.npy", numpy.full(8, i, numpy.float32))
    with stoker.profile() as p:
        train(Files(folder), epochs=2)
    advice = {one["rule"]: one for one in p.summary["verdict"]["advice"]}
    if "use-stoker" not in advice and p.summary["cpu"]["foreign"] > 0.3:
        pytest.skip("other programs had the CPU")
    assert "use-stoker" in advice, p.verdict
    snippet = advice["use-stoker"]["snippet"]
    assert "batch_size=8" in snippet
    seen = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(snippet, seen)
    assert tuple(seen["x"].shape) == (8, 8)
