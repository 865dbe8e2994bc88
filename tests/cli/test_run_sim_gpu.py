"""`stoker run` with a GPU, on machines without one: the injected library with a simulated CUPTI and
a device that takes its time by the clock (tests/sim_cuda/sim_gpu.py)."""

import fcntl
import json
import os
import pty
import re
import statistics
import struct
import subprocess
import sys
import termios
import textwrap

import pytest
from places import BINARY, ROOT

CUPTI = BINARY.parent / "sim_cupti_13" / "libcupti.so.13"

pytest.importorskip("torch")
if not CUPTI.exists():
    pytest.skip("the simulated CUPTI is not built", allow_module_level=True)

pytestmark = pytest.mark.alone  # what took how long is measured

PRELUDE = f"""
import json, sys, time
sys.path.insert(0, {str(ROOT / "tests" / "sim_cuda")!r})
from sim_gpu import SimGpu
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
gpu = SimGpu()
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.randn(6400, 4)), batch_size=32)


def burn(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def train(step, steps=150):
    begun = time.perf_counter()
    for number, (batch,) in enumerate(loader):
        if number == 20:
            begun, gpu.busy = time.perf_counter(), 0
        step(batch)
        optimizer.step()
        if number == steps:
            break
    gpu.synchronize()
    print(json.dumps({{"busy": gpu.busy / 1e9 / (time.perf_counter() - begun)}}))
"""


def watch(tmp_path, text, *options, prelude=PRELUDE, **environment):
    """The run file; under "told", what the script printed, and what the command did."""
    script = tmp_path / "script.py"
    script.write_text(prelude + textwrap.dedent(text))
    out = tmp_path / "run.json"
    done = subprocess.run(
        [BINARY, "run", "--json", out, *options, "--", sys.executable, script],
        capture_output=True,
        text=True,
        timeout=60,
        env=dict(os.environ, STOKER_TEST_CUPTI=str(CUPTI), **environment),
    )
    assert done.returncode == 0, done.stderr
    run = json.loads(out.read_text())
    print(done.stderr, json.dumps(run["ranks"][0]["busy"]), done.stdout)
    return run | {"told": json.loads(done.stdout.splitlines()[-1]), "words": done.stderr}


def first(run):
    return run["causes"][0]["cause"], run["causes"][0]["share"]


def test_a_gpu_that_always_has_work_binds_by_compute(tmp_path):
    run = watch(tmp_path, "train(lambda batch: gpu.launch(0.01))\n")
    rank = run["ranks"][0]
    assert run["mode"] == "gpu" and run["reliable"], run["unreliable"]
    assert rank["kernels"] >= 140 and rank["busy"]["compute"] > 0.9
    assert run["verdict"]["bound"] == "compute"
    assert run["machine"]["cupti"] == "13.0"


def test_a_wait_at_every_step_is_named(tmp_path):
    step = """
    def step(batch):
        gpu.launch(0.004)
        gpu.synchronize()
        burn(0.004)
    train(step)
    """
    run = watch(tmp_path, step)
    assert run["mode"] == "gpu" and run["reliable"]
    assert run["ranks"][0]["busy"]["compute"] == pytest.approx(run["told"]["busy"], abs=0.1)
    cause, share = first(run)
    assert cause == run["verdict"]["cause"] == "sync" and share > 0.5, run["causes"]
    assert run["verdict"]["bound"] == "host"


def test_tiny_kernels_all_arrive(tmp_path):
    step = """
    def step(batch):
        for _ in range(200):
            gpu.launch(0.000005)
            burn(0.00004)
    train(step, 100)
    """
    run = watch(tmp_path, step)
    assert run["reliable"] and run["watching"]["lost"] == 0
    assert run["ranks"][0]["kernels"] >= 19000
    assert run["ranks"][0]["busy"]["compute"] == pytest.approx(run["told"]["busy"], abs=0.02)


MUCH = """
class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 10**6

    def __getitem__(self, number):
        time.sleep(0.004 if number < 500 else 0.009)  # slower after recording ended
        return torch.zeros(4)

loader = DataLoader(Slow(), batch_size=1)
launched, begun = 0, time.perf_counter()
for number, batch in enumerate(loader):
    for _ in range(300):
        gpu.launch(0.00001)
    launched += 300
    optimizer.step()
    if time.perf_counter() - begun > SECONDS:
        break
gpu.synchronize()
busy = gpu.busy / 1e9 / (time.perf_counter() - begun)
print(json.dumps({"busy": busy, "launched": launched, "steps": number + 1}))
"""


def test_a_loop_that_launches_much_is_recorded_at_first_and_told_whole(tmp_path):
    run = watch(tmp_path, MUCH.replace("SECONDS", "9"))
    rank, told = run["ranks"][0], run["told"]
    assert run["reliable"] and run["watching"]["lost"] == 0, run["unreliable"]
    assert rank["recorded"] < 0.9, "it did not rest"
    assert run["watching"]["records"] < told["launched"]
    assert any("recorded for the first" in sentence for sentence in run["notices"])
    assert rank["busy"]["compute"] == pytest.approx(told["busy"], abs=0.04)
    assert rank["kernels"] == pytest.approx(told["launched"], rel=0.1)
    assert rank["steps"] == told["steps"]
    assert first(run)[0].startswith("input/")
    judged = rank["end_s"] - rank["start_s"] - rank["excluded_s"]
    assert rank["compute_s"] + rank["idle_s"] == pytest.approx(judged, rel=1e-6)


def test_every_kernel_is_recorded_where_that_is_asked_for(tmp_path):
    run = watch(tmp_path, MUCH.replace("SECONDS", "5"), "--every-kernel")
    assert run["ranks"][0]["recorded"] == 1
    assert run["ranks"][0]["kernels"] == run["told"]["launched"] > 120_000
    assert not any("recorded for the first" in sentence for sentence in run["notices"])


def test_a_pageable_copy_is_named(tmp_path):
    step = """
    def step(batch):
        gpu.copy(0.008, 1 << 24)
        gpu.launch(0.004)
    train(step)
    """
    run = watch(tmp_path, step)
    assert run["ranks"][0]["pageable_bytes"] >= 100 << 24
    assert first(run)[0] == "copy"


def test_graphs_with_records_are_fine_and_without_are_not(tmp_path):
    text = """
    def step(batch):
        gpu.launch_graph([0.002] * 5, is_seen={})
    time.sleep(1.2)  # what is launched late is seen as well
    train(step)
    """
    run = watch(tmp_path, text.format(True))
    assert run["reliable"] and run["verdict"]["bound"] == "compute"
    assert run["ranks"][0]["graph_kernels"] >= 500
    run = watch(tmp_path, text.format(False))
    assert not run["reliable"] and run["verdict"]["bound"] == "unknown"
    assert any("graph" in sentence for sentence in run["unreliable"]), run["unreliable"]


def test_graphs_that_pytorch_launches_are_counted(tmp_path):
    """By the hook; kernels of which nothing is recorded make the run unreliable."""
    step = """
    import torch.cuda.graphs
    from stoker_watch.gpu_library import told_replay

    assert "stoker_watch" in torch.cuda.graphs.CUDAGraph.replay.__code__.co_filename
    replay = told_replay(lambda graph: gpu.launch_graph([0.004], graph, is_told=False))
    train(lambda batch: replay(IS_SEEN))
    """
    (tmp_path / "seen").mkdir()
    run = watch(tmp_path / "seen", step.replace("IS_SEEN", "True"))
    assert run["reliable"] and run["ranks"][0]["kernels"] >= 140, run["unreliable"]
    run = watch(tmp_path, step.replace("IS_SEEN", "False"))
    assert not run["reliable"] and "graph" in run["unreliable"][0], run["unreliable"]


def test_a_profile_that_begins_in_a_capture_is_not_waited_for(tmp_path):
    script = """
    from stoker_watch import torch_profiler

    class Profile:
        kineto_activities = ("CUDA",)

    train(lambda batch: gpu.launch(0.004), 30)
    torch.cuda.is_initialized = lambda: True
    yielded = []
    for captures in (True, False):
        torch.cuda.is_current_stream_capturing = lambda: captures
        profile = Profile()
        torch_profiler.begin(profile)
        yielded.append(torch_profiler.Yielded.library is not None)
        torch_profiler.Yielded.by = None
    print(json.dumps({"yielded": yielded}))
    """
    assert watch(tmp_path, script)["told"]["yielded"] == [False, True]


def test_a_thread_that_runs_is_sampled_less_often_than_one_that_waits(tmp_path):
    """A sample takes the interpreter from the one; the other does not feel it."""
    rates = {}
    for what in ("burn", "time.sleep"):
        (tmp_path / what).mkdir()
        step = f"train(lambda batch: {what}(0.03), 190)\n"
        rates[what] = watch(tmp_path / what, step)["watching"]["stacks_hz"]
    assert rates["burn"] <= 50 < 80 < rates["time.sleep"], rates


NOT_RECORDED = """
import json, os, sys, time
import torch
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
users = open(os.environ["FAKE_NVML_PROCESSES"], "a")
time.sleep(1)  # until it has a device
for number, (batch,) in enumerate(DataLoader(TensorDataset(torch.randn(3200, 4)), batch_size=32)):
    if number == 0:
        print(USER, file=users, flush=True)
    time.sleep(0.03)
    optimizer.step()
assert os.environ["CUDA_INJECTION64_PATH"] == "/opt/other.so"
print(json.dumps({}))
"""


def watch_samples(tmp_path, text, busy="0,90,40", prelude=""):
    """Devices are as busy as a simulated NVML says. Another profiler's library is in the place of
    ours."""
    run = watch(
        tmp_path,
        text,
        prelude=prelude,
        LD_LIBRARY_PATH=str(BINARY.parent / "sim_cuda"),
        FAKE_NVML_BUSY=busy,
        FAKE_NVML_PROCESSES=str(tmp_path / "users"),
        CUDA_INJECTION64_PATH="/opt/other.so",
    )
    assert any("/opt/other.so" in sentence for sentence in run["notices"]), run["notices"]
    return run


def test_nvml_stands_in_where_another_library_is_injected(tmp_path):
    run = watch_samples(tmp_path, NOT_RECORDED.replace("USER", "2, os.getpid()"))
    assert run["mode"] == "sampled" and run["ranks"][0]["device"] == 2
    assert run["ranks"][0]["busy"]["compute"] == pytest.approx(0.4, abs=0.001)
    assert run["verdict"]["words"].startswith("GPU busy 40 %, by NVML's samples.")
    assert any("NVML" in sentence for sentence in run["notices"]), run["notices"]


def test_a_training_on_the_cpu_is_none_of_the_gpu_that_others_use(tmp_path):
    run = watch_samples(tmp_path, NOT_RECORDED.replace("USER", "1, 1"))
    assert run["mode"] == "cpu" and run["ranks"][0]["busy"]["compute"] > 0.9
    assert "GPU busy" not in run["words"]


OTHER_FRAMEWORK = f"""
import json, os, sys, time
sys.path.insert(0, {str(ROOT / "tests" / "sim_cuda")!r})
import tensorflow
"""


def assert_only_the_gpu_is_told(run):
    assert {cause["cause"] for cause in run["causes"]} <= {"other", "contention", "overhead"}
    assert "The script's loop was not seen" in run["verdict"]["words"], run["verdict"]
    assert "torch.compile" not in run["words"]
    assert any(sentence.startswith("TensorFlow is not") for sentence in run["notices"])


def test_of_another_framework_the_gpu_alone_is_told(tmp_path):
    (tmp_path / "tensorflow.py").touch()
    script = """
    from sim_gpu import SimGpu, until, now

    gpu = SimGpu()
    for _ in range(200):
        gpu.launch(0.004)
        until(now() + 10_000_000)
    gpu.synchronize()
    print(json.dumps({}))
    """
    run = watch(tmp_path, script, prelude=OTHER_FRAMEWORK)
    assert run["mode"] == "gpu" and run["reliable"], run["unreliable"]
    assert run["ranks"][0]["busy"]["compute"] == pytest.approx(0.4, abs=0.1)
    assert_only_the_gpu_is_told(run)


def test_of_another_framework_nvml_tells_how_busy_the_gpu_was(tmp_path):
    (tmp_path / "tensorflow.py").touch()
    script = """
    time.sleep(1)
    with open(os.environ["FAKE_NVML_PROCESSES"], "a") as users:
        print(0, os.getpid(), file=users)
    time.sleep(3)
    print(json.dumps({}))
    """
    run = watch_samples(tmp_path, script, busy="40", prelude=OTHER_FRAMEWORK)
    assert run["mode"] == "sampled"
    assert run["ranks"][0]["busy"]["compute"] == pytest.approx(0.4, abs=0.001)
    assert run["ranks"][0]["start_s"] > 0.9
    assert_only_the_gpu_is_told(run)


LIVE = """
class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 10**6

    def __getitem__(self, number):
        time.sleep(0.009)
        return torch.zeros(4)

begun = time.perf_counter()
for number, batch in enumerate(DataLoader(Slow(), batch_size=4)):
    gpu.launch(0.024)
    gpu.synchronize()
    optimizer.step()
    took = time.perf_counter() - begun
    if took > 7:
        break
print(json.dumps({"busy": gpu.busy / 1e9 / took, "samples_s": 4 * (number + 1) / took}))
"""


def test_a_line_on_the_terminal_tells_how_busy_what_is_waited_for_and_how_fast(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(PRELUDE + LIVE)
    words = [str(BINARY), "run", "--live", "--", sys.executable, str(script)]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(words[0], words, dict(os.environ, STOKER_TEST_CUPTI=str(CUPTI)))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 24, 200, 0, 0))
    seen = b""
    try:
        while some := os.read(terminal, 4096):
            seen += some
    except OSError:
        pass
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    told = json.loads(re.search(r"\{.*\}", seen.decode())[0])
    pattern = r"\r0:\d\d  busy (\d+) %  waits for reading the data  ([\d.]+) samples/s  memory \d"
    lines = re.findall(pattern, seen.decode())
    assert len(lines) >= 10, seen.decode()
    busy, rate = (statistics.median(map(float, values)) for values in zip(*lines, strict=True))
    assert busy == pytest.approx(100 * told["busy"], abs=5), told
    assert rate == pytest.approx(told["samples_s"], rel=0.1), told
