"""watch: what `stoker run` costs the script that it watches.

The bar: no more than 2 % of the time of an epoch, and 64 MiB of memory.

Each loop (bench/watch_loops.py) runs in pairs of processes, one alone and one watched, of which one
at a time works: some epochs alone, then some watched, then some alone again, so that what else goes
on in the machine meets both. Epochs are short, for a thread's speed changes within a second on some
machines; the first one of a turn does not count, for caches are the other's then. Both of a pair
work on the same core, the fastest at that moment, for cores of one machine may differ by half: the
threads that work are bound to it, those of the watcher are not. (Stoker's loader begins threads
with each epoch, and they would all be bound: in loops with it, nothing is.) Both have the same hash
seed, each pair its own, and an allocator that keeps its memory. A pair is the mean of its watched
epochs against that of its epochs alone; the figure is the mean over the pairs, the quartiles are
those of rounds, each against the epochs alone before and after it. There are several pairs, because
two processes that both run alone differ for as long as they live: the error is told from how far
pairs differ. A watched process that waits half of the time, as here, may be sampled more often than
one that never does.

The first seconds, in which all is recorded, do not count: what they cost does not grow with the run
(inject/inject_allowance.h). Rows "every" tell what they cost.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import timeit
from pathlib import Path

from bench import measure, watch_loops

MEMORY = 64 << 20
PAIRS = {"slow": 6, "stoker": 3, "training": 5, "cnn3d": 10, "tiny": 14}
ROUNDS = {"slow": 4, "stoker": 1, "training": 8, "cnn3d": 8, "tiny": 12}  # of a pair in a run
EPOCHS = 2  # of a turn that count
SETTLE_S = 3  # of epochs: after a wait, stacks are sampled more often for a while
# Seconds of epochs before they count, on the GPU. The 3D-CNN is recorded for 13 s at first, and
# stacks are sampled more often for 20 s.
WARM_S = {"slow": 1, "stoker": 3, "training": 25, "cnn3d": 25, "tiny": 25}
BOUND = {"slow", "cnn3d", "tiny"}  # to a core

NOTES = {
    "slow": "the bottleneck example as it is first",
    "stoker": "the bottleneck example at its end",
    "training": "the 3D-CNN of the training benchmark, fed by Stoker",
    "cnn3d": "a smaller 3D-CNN, by a DataLoader that copies 19 MB a step in the loop itself",
    "tiny": "a loop of tiny kernels",
}
# How a loop is watched: options of `stoker run`.
WAYS = {"watched": [], "every": ["--every-kernel"]}
WORDS = {"watched": "watched", "every": "watched, every kernel recorded"}


def run(options, loops=("slow", "stoker", "cnn3d", "tiny")):
    device = _device()
    watch_loops.example_data()
    if "training" in loops:
        watch_loops.training_data(device)
    rows, ratios = [], {}
    for name in loops:
        for way in WAYS if device == "cuda" and name in ("cnn3d", "tiny") else ["watched"]:
            more, ratio = _loop(name, way, device, options)
            rows += more[1:] if way != "watched" else more
            ratios[f"{name}_{way}/{name}"] = ratio["mean"]
            rows[-1].update(rounds=ratio)
    memory = max(row.get("watcher_rss", 0) for row in rows)
    return {
        "command": f"python -m bench.run watch --runs {options.runs}",
        "workload": {"device": device},
        "limit": {"name": "1.02 times the time alone; 64 MiB", "value": None, "unit": ""},
        "rows": rows,
        "ratios": ratios,
        "memory": memory,
        "within": {"memory": memory <= MEMORY},
    }


class Paced:
    """A process that runs an epoch when it is told to."""

    def __init__(self, command, seed=None):
        self._child = _start(command, seed)
        self._peak = measure.PeakWatch(self._child.pid, is_alone=True)

    def begin(self):
        self._child.stdin.write("\n")
        self._child.stdin.flush()

    def end(self):
        """The seconds of the epoch that was begun."""
        line = self._child.stdout.readline()
        if not line:
            raise RuntimeError(self._child.stderr.read()[-500:])
        return float(line)

    def turn(self, epochs):
        """Seconds of each; one before them does not count."""
        seconds = []
        for _ in range(1 + epochs):
            self.begin()
            seconds.append(self.end())
        return seconds[1:]

    def bind(self, core):
        """The main thread, and that of PyTorch's backward pass."""
        pid = measure.descendants(self._child.pid)[-1]
        for task in Path(f"/proc/{pid}/task").iterdir():
            is_backward = (task / "comm").read_text().startswith("pt_autograd")
            if int(task.name) == pid or is_backward:
                os.sched_setaffinity(int(task.name), {core})

    def close(self):
        """The largest resident size that the process had; not of those that it started."""
        self._child.stdin.close()
        self._child.wait()
        return self._peak.stop()


def _loop(name, way, device, options):
    """The rows alone and watched, and how they compare: mean and quartiles over the rounds."""
    count = PAIRS[name] if way == "watched" and not options.quick else 1
    with contextlib.ExitStack() as stack:
        pairs = [Pair(name, way, device, seed, stack) for seed in range(count)]
        warm(
            [one for pair in pairs for one in pair.both],
            WARM_S[name] if device == "cuda" and way == "watched" else 1,
        )
        for pair in pairs:
            pair.run(2 if options.quick else ROUNDS[name] * options.runs)
    ratios = [one for pair in pairs for one in pair.ratios()]
    low, _, high = statistics.quantiles(ratios, n=4)
    each = [pair.ratio() for pair in pairs]
    mean, error = statistics.fmean(each), None
    if count > 1:
        error = statistics.stdev(each) / count**0.5
    print(f"  {name:<8} {way:<8} {mean:.4f} ({low:.3f} to {high:.3f})", flush=True)
    alone = [statistics.fmean(some) for pair in pairs for some in pair.alone]
    watched = [statistics.fmean(some) for pair in pairs for some in pair.watched]
    rows = [
        _row(name, alone, NOTES[name]),
        {**_row(f"{name}_{way}", watched, f"{NOTES[name]}, {WORDS[way]}"), **pairs[-1].told},
    ]
    rows[1]["watcher_rss"] = max(pair.rss for pair in pairs)
    return rows, {"mean": mean, "low": low, "high": high, "error": error, "pairs": each}


def warm(loops, seconds):
    """Paced ones, all at once, until each has worked for so long. The first epoch loads
    libraries."""
    spent = None
    while spent is None or spent < seconds:
        for loop in loops:
            loop.begin()
        least = min([loop.end() for loop in loops])
        spent = 0 if spent is None else spent + least


def fastest_core():
    """By what a loop takes on each of those that we may use."""
    cores, seconds = os.sched_getaffinity(0), {}
    for core in cores:
        os.sched_setaffinity(0, {core})
        seconds[core] = min(timeit.repeat("sum(range(100000))", number=1, repeat=5))
    os.sched_setaffinity(0, cores)
    return min(cores, key=seconds.get)


class Pair:
    """A loop alone, and the same loop watched."""

    def __init__(self, name, way, device, seed, stack):
        self._is_bound = name in BOUND
        script = measure.python("bench.watch_loops", name, "--device", device)
        self._file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "run.json"
        self._ours = Paced(script, seed)
        self._theirs = Paced([*watching_command(self._file, *WAYS[way]), *script], seed)
        self.alone, self.watched = [], []  # seconds, a list for each turn
        self.both = self._ours, self._theirs

    def run(self, rounds):
        core = fastest_core()
        for one in self.both if self._is_bound else ():
            one.bind(core)
        warm([self._theirs], SETTLE_S)
        self.alone.append(self._ours.turn(EPOCHS))
        for _ in range(rounds):
            self.watched.append(self._theirs.turn(EPOCHS))
            self.alone.append(self._ours.turn(EPOCHS))
        self._ours.close()
        self.rss = self._theirs.close()
        self.told = _told(json.loads(self._file.read_text()))

    def ratio(self):
        """Sums against sums: what is dear and rare counts, too, and noise cancels out."""
        watched = statistics.fmean(one for some in self.watched for one in some)
        return watched / statistics.fmean(one for some in self.alone for one in some)

    def ratios(self):
        alone = [statistics.fmean(some) for some in self.alone]
        return [
            statistics.fmean(some) / ((before + after) / 2)
            for before, some, after in zip(alone, self.watched, alone[1:], strict=False)
        ]


def _row(name, seconds, note):
    return {
        "name": name,
        "value": statistics.median(seconds),
        "unit": "s",
        "runs": [round(one, 6) for one in seconds],
        "note": note,
    }


def watching_command(file, *options):
    return [sys.executable, "-m", "stoker", "run", "--json", str(file), *options, "--"]


def loop_environment():
    """Of a process that runs a loop.

    The allocator keeps what it has. By default it may give a batch of the 3D-CNN back to the system
    and ask for it again, or not: 3,500 page faults a step in one process, 400 in another, and twice
    the time, whoever watches."""
    paths = [str(measure.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "OMP_NUM_THREADS": "1",
        "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
        "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    }


def _start(command, seed):
    env = loop_environment()
    if seed is not None:
        env["PYTHONHASHSEED"] = str(seed)
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=env)


def _told(run):
    return {
        "watcher_cpu_s": run["watching"]["cpu_s"],
        "records": run["watching"]["records"],
        "lost": run["watching"]["lost"],
        "stacks_hz": run["watching"]["stacks_hz"],
        "recorded": run["ranks"][0]["recorded"] if run["ranks"] else None,
        "overhead_share": sum(one["share"] for one in run["causes"] if one["cause"] == "overhead"),
    }


def _device():
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
