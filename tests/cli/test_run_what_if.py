"""`stoker run --what-if`: a second run with batches from memory, and what is kept of the first."""

import json
import os
import pty
import re
import signal
import subprocess
import sys

import pytest
from places import BINARY

pytest.importorskip("torch")

pytestmark = pytest.mark.alone  # what took how long is measured

# A batch takes 50 ms to be made, and a step 25 ms: without input it would be 3 times as fast.
SCRIPT = """
import json, os, sys, time
second = os.path.exists("begun")
open("begun", "w").close()
if second and os.path.exists("run.json"):
    with open("run.json") as file:
        print("before:", json.load(file)["verdict"]["gain_is"], file=sys.stderr)
print("begins", file=sys.stderr, flush=True)

import torch
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


class Slow(Dataset):
    def __len__(self):
        return 4 * STEPS

    def __getitem__(self, number):
        time.sleep(0.0125)
        return torch.zeros(4), 0


model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
begun, computed = time.perf_counter(), 0
for number, (x, y) in enumerate(DataLoader(Slow(), batch_size=4)):
    start = time.perf_counter()
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    time.sleep(0.025)
    optimizer.step()
    computed += time.perf_counter() - start
    if second and number == 5:
        THEN
print((time.perf_counter() - begun) / computed)
"""


def words_of(tmp_path, *options, then="pass", steps=60):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.replace("STEPS", str(steps)).replace("THEN", then))
    return [str(BINARY), "run", "--what-if", *options, "--", sys.executable, "train.py"]


def what_if(tmp_path, *options, status=0, **rest):
    words = words_of(tmp_path, *options, **rest)
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    print(done.stderr)
    assert done.returncode == status
    return done


def is_estimated(run):
    return run["what_if"] is None and run["verdict"]["gain_is"] == "estimated"


def test_the_gain_is_measured_and_near_the_true_one(tmp_path):
    done = what_if(tmp_path, "--json", "run.json")
    run = json.loads((tmp_path / "run.json").read_text())
    assert run["verdict"]["bound"] == "input" and run["verdict"]["gain_is"] == "measured"
    true, without_input = map(float, done.stdout.splitlines())
    assert true > 2.5 and without_input < 1.2
    assert run["verdict"]["gain_bound"] == run["what_if"]["gain"] == pytest.approx(true, rel=0.2)
    told = done.stderr
    twice, again = told.index("runs the command twice"), told.index("the command runs again now")
    first, second = (found.start() for found in re.finditer("begins\n", told))
    assert twice < first < again < second
    assert "before: estimated" in told, "the run file was not there before the second run"
    assert told.count("If input were free") == 1 and "Measured: " in told[second:]
    assert (
        told.count("What to do") == 1 and first < told.index("The training step computes") < again
    )


def test_a_run_that_is_killed_in_its_second_part_leaves_the_first(tmp_path):
    then = f"os.kill(os.getppid(), {int(signal.SIGKILL)})"
    what_if(tmp_path, "--json", "run.json", "--trace", "t.json", then=then, status=-9)
    assert is_estimated(json.loads((tmp_path / "run.json").read_text()))
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]


def test_ctrl_c_in_the_second_run_tells_what_the_first_one_found(tmp_path):
    words = words_of(
        tmp_path, "--json", "run.json", then="print('now', flush=True); time.sleep(60)"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execv(words[0], words)
    seen = b""
    while b"\nnow" not in seen:
        seen += os.read(terminal, 4096)
    assert b"What to do" not in seen and b"The training step computes" in seen
    os.write(terminal, b"\x03")
    rest = b""
    try:
        while some := os.read(terminal, 4096):
            rest += some
    except OSError:
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGINT
    assert b"KeyboardInterrupt" in rest and rest.count(b"What to do") == 1
    assert is_estimated(json.loads((tmp_path / "run.json").read_text()))
    os.close(terminal)


def test_a_second_run_that_fails_leaves_the_first_and_its_status(tmp_path):
    done = what_if(tmp_path, "--json", "-", then="sys.exit(3)")
    _, run = done.stdout.splitlines()  # one, behind what the script printed
    assert is_estimated(json.loads(run))
    assert "the second run did not end well" in done.stderr
    assert done.stderr.count("What to do") == 1


def test_a_command_without_a_loader_is_not_run_again(tmp_path):
    words = [str(BINARY), "run", "--what-if", "--", "sh", "-c", "echo ran"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.stdout == "ran\n" and "no loader was seen" in done.stderr
    assert "runs again now" not in done.stderr and done.stderr.count("No verdict") == 1


def test_it_goes_with_a_live_line_a_trace_and_an_end_of_watching(tmp_path):
    options = ("--live", "--seconds", "8", "--trace", "t.json", "--json", "run.json")
    done = what_if(tmp_path, *options, steps=140)
    run = json.loads((tmp_path / "run.json").read_text())
    assert run["verdict"]["gain_is"] == "measured"
    assert run["verdict"]["gain_bound"] == pytest.approx(3, rel=0.3)
    assert any("first 8 seconds" in notice for notice in run["notices"])
    assert run["wall_s"] > 10 and run["ranks"][0]["end_s"] < 8.5
    for part in done.stderr.split("the command runs again now"):
        assert "stoker: 0:00" in part, "a line of how it goes"
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    pids = {event["pid"] for event in events if "pid" in event}
    assert {process["pid"] for process in run["processes"]} & pids
    assert max(event.get("ts", 0) for event in events) < 11e6, "the trace is of the first run"
