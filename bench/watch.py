"""watch: what `stoker run` costs the script that it watches.

The bar: no more than 2 % of the time of an epoch, and 64 MiB of memory.

The bottleneck example runs alone and watched, in turn. Two loops of which an epoch is short run in
pairs of processes, of which one at a time works: epochs alone, then watched, then alone again, so
that what else goes on in the machine meets both. The first epoch of a turn does not count: caches
are the other's then. A round is the mean of the watched epochs against that of the epochs alone
before and after it; the figure is the mean over all rounds, so what is dear and rare counts, too.
There are several pairs: two processes that both run alone differ by some hundredths for as long as
they live. The watched process has longer turns than the other: while it waits, it earns recording
that a script which never waits does not have. The first seconds, in which all is recorded, do not
count: what they cost does not grow with the run (inject/inject_allowance.h).
"""

import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import measure

EXAMPLE = measure.ROOT / "examples" / "bottleneck"
MEMORY = 64 << 20
PAIRS, ROUNDS = 3, 22  # of processes; of each pair
ROUNDS_BESIDE = 8
WARM_S = 12  # of epochs, before they count: all is recorded at first
ALONE, WATCHED = 2, 6  # epochs of a turn that count

NOTES = {
    "slow": "the bottleneck example as it is first",
    "stoker": "the bottleneck example at its end",
    "cnn3d": "a 3D-CNN",
    "tiny": "a loop of tiny kernels",
}
# How a loop is watched: options of `stoker run`.
WAYS = {"watched": [], "every": ["--every-kernel"]}
WORDS = {"watched": "watched", "every": "watched, every kernel recorded"}


class Watched(measure.Side):
    """The example, alone or under `stoker run`. The value is the time of one epoch."""

    def __init__(self, name, script, is_watched, note):
        super().__init__(name, script, note)
        self._is_watched = is_watched

    def run(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "run.json"
            command = (
                [*_watching_command(file), *self.command] if self._is_watched else self.command
            )
            child = _start([str(word) for word in command])
            peak = measure.PeakWatch(child.pid, is_alone=True)
            out, err = child.communicate()
            rss = peak.stop()
            if child.returncode:
                raise RuntimeError(f"{' '.join(map(str, command))}: {err[-500:]}")
            seconds = [float(got) for got in re.findall(r"^epoch .*: ([\d.]+) s,", out, re.M)][1:]
            answer = {"value": statistics.median(seconds), "epochs": seconds}
            if self._is_watched:
                answer.update(_told(json.loads(file.read_text())), watcher_rss=rss)
        return answer


def run(options):
    device = _device()
    sides = _examples(device, options.quick)
    measure.alternate(sides, options.runs, warm_up=False)
    rows = [measure.row(side, "s") for side in sides]
    ratios = measure.ratios(
        rows, [(side.name, side.name.partition("_")[0]) for side in sides[1::2]]
    )
    for name in "cnn3d", "tiny":
        ways = WAYS if device == "cuda" else ["watched"]
        for way in ways:
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


# --- the example ---------------------------------------------------------------------------------


def _examples(device, quick):
    """Each alone, then watched."""
    data = _pictures(quick)
    epochs = 2 if quick else 6 if device == "cpu" else 12
    slow = _example(data, "slow", device, 3 if device == "cpu" and not quick else 2)
    scripts = {"slow": slow, "stoker": _example(data, "stoker", device, epochs)}
    return [
        Watched(f"{name}{'_watched' * is_watched}", script, is_watched, NOTES[name])
        for name, script in scripts.items()
        for is_watched in (False, True)
    ]


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


# --- loops in turn -------------------------------------------------------------------------------


class Paced:
    """A process that runs an epoch when it is told to."""

    def __init__(self, command):
        self._child = _start(command)
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

    def epoch(self):
        self.begin()
        return self.end()

    def turn(self, epochs):
        self.epoch()
        return [self.epoch() for _ in range(epochs)]

    def close(self):
        """The largest resident size that the process had; not of those that it started."""
        self._child.stdin.close()
        self._child.wait()
        return self._peak.stop()


def _loop(name, way, device, options):
    """The rows alone and watched, and how they compare: mean and quartiles over the rounds."""
    is_main = way == "watched" and not options.quick
    rounds = ROUNDS if is_main else ROUNDS_BESIDE
    with contextlib.ExitStack() as stack:
        pairs = [Pair(name, way, device, stack) for _ in range(PAIRS if is_main else 1)]
        both = [one for pair in pairs for one in pair.both]
        warm(both, WARM_S if device == "cuda" and way == "watched" else 2)
        for pair in pairs:
            pair.run(rounds)
    ratios = [one for pair in pairs for one in pair.ratios()]
    low, _, high = statistics.quantiles(ratios, n=4)
    mean = statistics.fmean(ratios)
    print(f"  {name:<8} {way:<8} {mean:.4f} ({low:.3f} to {high:.3f})", flush=True)
    alone = [one for pair in pairs for one in pair.alone]
    watched = [one for pair in pairs for some in pair.watched for one in some]
    rows = [
        _row(name, alone, NOTES[name]),
        {**_row(f"{name}_{way}", watched, f"{NOTES[name]}, {WORDS[way]}"), **pairs[-1].told},
    ]
    rows[1]["watcher_rss"] = max(pair.rss for pair in pairs)
    each = [statistics.fmean(pair.ratios()) for pair in pairs]
    spread = statistics.stdev(ratios) / len(ratios) ** 0.5
    return rows, {"mean": mean, "low": low, "high": high, "error": spread, "pairs": each}


def warm(loops, seconds):
    """Paced ones, all at once, until each has worked for so long. The first epoch loads
    libraries."""
    spent = None
    while spent is None or spent < seconds:
        for loop in loops:
            loop.begin()
        least = min([loop.end() for loop in loops])
        spent = 0 if spent is None else spent + least


class Pair:
    """A loop alone, and the same loop watched."""

    def __init__(self, name, way, device, stack):
        script = measure.python("bench.watch_loops", name, "--device", device)
        self._file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "run.json"
        self._ours = Paced(script)
        self._theirs = Paced([*_watching_command(self._file, *WAYS[way]), *script])
        self.alone, self.watched = [], []  # means of turns; seconds, a list for each turn
        self.both = self._ours, self._theirs

    def run(self, rounds):
        self.alone.append(statistics.fmean(self._ours.turn(ALONE)))
        for _ in range(rounds):
            self.watched.append(self._theirs.turn(WATCHED))
            self.alone.append(statistics.fmean(self._ours.turn(ALONE)))
        self._ours.close()
        self.rss = self._theirs.close()
        self.told = _told(json.loads(self._file.read_text()))

    def ratios(self):
        return [
            statistics.fmean(some) / ((before + after) / 2)
            for before, some, after in zip(self.alone, self.watched, self.alone[1:], strict=False)
        ]


def _row(name, seconds, note):
    return {
        "name": name,
        "value": statistics.median(seconds),
        "unit": "s",
        "runs": [round(one, 6) for one in seconds],
        "note": note,
    }


# --- processes -----------------------------------------------------------------------------------


def _watching_command(file, *options):
    return [sys.executable, "-m", "stoker", "run", "--json", str(file), *options, "--"]


def _start(command):
    paths = [str(measure.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
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
