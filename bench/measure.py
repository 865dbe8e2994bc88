"""Runs one side of a benchmark in a process of its own, and keeps what it said.

A side is a command that prints one JSON object as its last line. While it runs, the peak memory of
its process tree is watched from outside (VmHWM of each process, read ten times a second), so that
worker processes are counted and the side is not disturbed.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Side:
    """One row: a name and the command that measures it once."""

    def __init__(self, name, command, note="", missing=None):
        self.name = name
        self.command = [str(part) for part in command]
        self.note = note
        self.missing = missing  # why it cannot run; None: it can
        self.answers = []

    def run(self):
        """Runs once; the answer has at least "value"."""
        answer = _run_child(self.command)
        if "error" in answer:
            self.missing = answer["error"]
        return answer


def python(module, *arguments, interpreter=sys.executable):
    """The command of a side that is a module of this package."""
    return [interpreter, "-m", module, *arguments]


def alternate(sides, runs, say=print, warm_up=True):
    """One warm-up of each side, then `runs` rounds in which every side runs once."""
    for number in range(0 if warm_up else 1, runs + 1):
        for side in sides:
            if side.missing:
                continue
            answer = side.run()
            what = "warm-up" if number == 0 else f"run {number}/{runs}"
            if side.missing:
                say(f"  {side.name:<16} cannot run: {side.missing}")
                continue
            say(f"  {side.name:<16} {what}: {answer['value']:.4g}")
            if number > 0:
                side.answers.append(answer)


def best_of(sides, say=print):
    """Runs each variant of one peer once and returns the best: its workers 0, 2 and 4."""
    best, best_value = sides[0], -1.0
    for side in sides:
        answer = side.run()
        if side.missing:
            continue
        say(f"  {side.name:<16} {side.note}: {answer['value']:.4g}")
        if answer["value"] > best_value:
            best, best_value = side, answer["value"]
    return best


def row(side, unit):
    """The row of a result file: medians over the runs. A side that did not run says why."""
    if not side.answers:
        return {
            "name": side.name,
            "value": None,
            "unit": unit,
            "runs": [],
            "note": f"not measured: {side.missing}",
        }
    values = [answer["value"] for answer in side.answers]
    middle = min(side.answers, key=lambda a: abs(a["value"] - statistics.median(values)))
    result = {"name": side.name, "value": statistics.median(values), "unit": unit, "runs": values}
    for key, value in middle.items():
        result.setdefault(key, value)
    notes = [note for note in (side.note, middle.get("note", "")) if note]
    result["note"] = "; ".join(notes)
    return result


def ratios(rows, pairs, limit=None):
    """{"a/b": value of a over value of b} for the pairs of which both were measured."""
    values = {entry["name"]: entry["value"] for entry in rows}
    values["limit"] = limit
    return {f"{a}/{b}": values[a] / values[b] for a, b in pairs if values.get(a) and values.get(b)}


def _run_child(command):
    environment = dict(os.environ, PYTHONPATH=str(ROOT))
    child = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    watch = PeakWatch(child.pid)
    out, err = child.communicate()
    peak = watch.stop()
    lines = out.strip().splitlines()
    if child.returncode != 0 or not lines:
        return {"error": _last_line(err) or f"exit status {child.returncode}"}
    answer = json.loads(lines[-1])
    answer.setdefault("peak_rss", peak)
    return answer


def _last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


class PeakWatch:
    """The largest sum of the peak resident sizes of a process and its living descendants; is_alone:
    of the process itself."""

    def __init__(self, pid, is_alone=False):
        self._pid, self._peak, self._end = pid, 0, threading.Event()
        self._is_alone = is_alone
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self):
        self._end.set()
        self._thread.join()
        return self._peak

    def _watch(self):
        while not self._end.wait(0.1):
            pids = [self._pid] if self._is_alone else descendants(self._pid)
            self._peak = max(self._peak, sum(map(peak_of, pids)))


def descendants(pid):
    """pid and all below it."""
    found, left = [], [pid]
    while left:
        current = left.pop()
        found.append(current)
        try:
            for task in os.listdir(f"/proc/{current}/task"):
                with open(f"/proc/{current}/task/{task}/children") as children:
                    left += map(int, children.read().split())
        except OSError:
            pass
    return found


def peak_of(pid):
    """The largest resident size a process had: VmHWM."""
    try:
        with open(f"/proc/{pid}/status") as lines:
            for line in lines:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def cpu_seconds():
    """CPU time of this process, of the children it has reaped and of those that still run."""
    ticks = os.sysconf("SC_CLK_TCK")
    times = os.times()
    total = times.user + times.system + times.children_user + times.children_system
    for pid in descendants(os.getpid())[1:]:
        try:
            with open(f"/proc/{pid}/stat") as line:
                fields = line.read().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15])) / ticks
        except OSError:
            pass
    return total


def timed_epochs(epoch, seconds):
    """Runs epoch() once to warm up, then until `seconds` have passed.

    epoch() reads the whole set once and returns (samples, bytes).
    """
    epoch()
    cpu, start = cpu_seconds(), time.perf_counter()
    epochs = samples = size = 0
    while True:
        got = epoch()
        epochs, samples, size = epochs + 1, samples + got[0], size + got[1]
        took = time.perf_counter() - start
        if took >= seconds:
            break
    cpu = cpu_seconds() - cpu
    return {
        "seconds": took,
        "epochs": epochs,
        "samples": samples,
        "bytes_out": size // epochs,
        "samples_per_s": samples / took,
        "bytes_per_s": size / took,
        "cpu_s": cpu / epochs,
    }
