"""watch: what `stoker run` costs the script that it watches: epochs with and without it, in turn.

The bar: no more than 2 % of the time of an epoch, and 64 MiB of memory. Each script warms itself
up: its first epochs do not count.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import threading
from pathlib import Path

from bench import limits, measure

EXAMPLE = measure.ROOT / "examples" / "bottleneck"
SLOWER, MEMORY = 0.02, 64 << 20


class Watched(measure.Side):
    """One script, alone or under `stoker run`. The value is the time of one epoch.

    parts: what watches it: "hook", in its Python; "library", on the GPU; none: it runs alone.
    """

    def __init__(self, name, script, parts, note):
        super().__init__(name, script, note)
        self._parts = parts

    def run(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "run.json"
            before = [sys.executable, "-m", "stoker", "run", "--json", str(file), "--"]
            python, *words = self.command
            more = {}
            if self._parts == {"library"}:  # Python does not look for the hook
                words = ["-S", *words]
                more["PYTHONPATH"] = sysconfig.get_path("purelib")
            if self._parts == {"hook"}:  # the place of the library is taken
                more["CUDA_INJECTION64_PATH"] = str(limits.library("no_injection"))
            command = [*before, python, *words] if self._parts else self.command
            out, rss = _run(command, more)
            seconds = _epochs(out)
            answer = {"value": statistics.median(seconds), "epochs": seconds}
            if self._parts:
                answer.update(_watching(json.loads(file.read_text())), watcher_rss=rss)
        return answer


def _run(command, more):
    """What it printed, and the largest resident size of the process itself."""
    paths = os.environ.get("PYTHONPATH"), more.get("PYTHONPATH")
    places = [str(measure.ROOT), *filter(None, paths)]
    env = {**os.environ, **more, "PYTHONPATH": os.pathsep.join(places), "OMP_NUM_THREADS": "1"}
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    )
    peak, over = [0], threading.Event()

    def look():
        while not over.wait(0.1):
            peak[0] = max(peak[0], measure.peak_of(child.pid))

    thread = threading.Thread(target=look)
    thread.start()
    out, err = child.communicate()
    over.set()
    thread.join()
    if child.returncode:
        raise RuntimeError(f"{' '.join(command)}: {err[-500:]}")
    return out, peak[0]


def _epochs(out):
    """Times of epochs, as the script printed them; the first one warms up."""
    last = out.strip().splitlines()[-1]
    if last.startswith("{"):
        return json.loads(last)["epochs"]
    return [float(seconds) for seconds in re.findall(r"^epoch .*: ([\d.]+) s,", out, re.M)][1:]


def _watching(run):
    return {
        "watcher_cpu_s": run["watching"]["cpu_s"],
        "records": run["watching"]["records"],
        "lost": run["watching"]["lost"],
        "stacks_hz": run["watching"]["stacks_hz"],
        "overhead_share": sum(one["share"] for one in run["causes"] if one["cause"] == "overhead"),
    }


def run(options):
    device = _device()
    data = _pictures(options.quick)
    epochs = 2 if options.quick else 6 if device == "cpu" else 12
    scripts = {
        "slow": _example(data, "slow", device, 3 if device == "cpu" and not options.quick else 2),
        "stoker": _example(data, "stoker", device, epochs),
        "cnn3d": measure.python("bench.watch_loops", "cnn3d", "--device", device),
        "tiny": measure.python("bench.watch_loops", "tiny", "--device", device),
    }
    sides = [
        Watched(f"{name}{end}", script, parts, NOTES[name] + words)
        for name, script in scripts.items()
        for end, parts, words in WAYS
        if len(parts) != 1 or (device == "cuda" and name in SPLIT)
    ]
    measure.alternate(sides, options.runs, warm_up=False)
    rows = [measure.row(side, "s") for side in sides]
    pairs = [(side.name, side.name.partition("_")[0]) for side in sides if "_" in side.name]
    memory = max(row.get("watcher_rss", 0) for row in rows)
    return {
        "command": f"python -m bench.run watch --runs {options.runs}",
        "workload": {"device": device, "pictures": len(list(data.glob("*/*.npy")))},
        "limit": {"name": "1.02 times the time alone; 64 MiB", "value": None, "unit": ""},
        "rows": rows,
        "ratios": measure.ratios(rows, pairs),
        "best_ratios": _best_ratios(sides),
        "memory": memory,
        "within": {"memory": memory <= MEMORY},
    }


WAYS = (
    ("", frozenset(), ""),
    ("_watched", frozenset({"hook", "library"}), ", watched"),
    ("_hook", frozenset({"hook"}), ", watched by the hook in its Python alone"),
    ("_library", frozenset({"library"}), ", watched by the library on the GPU alone"),
)
SPLIT = ("cnn3d", "tiny")  # whose time under watch is told by its parts, where there is a GPU
NOTES = {
    "slow": "the bottleneck example as it is first",
    "stoker": "the bottleneck example at its end",
    "cnn3d": "a 3D-CNN",
    "tiny": "a loop of tiny kernels",
}


def _best_ratios(sides):
    """Of the shortest epochs: what is left when other programs disturb none of them."""
    best = {
        side.name: min(min(answer["epochs"]) for answer in side.answers)
        for side in sides
        if side.answers
    }
    return {
        f"{name}/{name.partition('_')[0]}": value / best[name.partition("_")[0]]
        for name, value in best.items()
        if "_" in name
    }


def _device():
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _pictures(quick):
    sys.path.insert(0, str(EXAMPLE))
    from gen import generate

    scale = "tiny" if quick else "small"
    data = Path(os.environ.get("STOKER_BENCH_DATA", measure.ROOT / "data")) / f"bottleneck-{scale}"
    data.mkdir(parents=True, exist_ok=True)
    return generate(data, scale)


def _example(data, pipeline, device, epochs):
    words = ["--data", data, "--pipeline", pipeline, "--device", device, "--epochs", epochs]
    return [sys.executable, EXAMPLE / "train.py", *words]
