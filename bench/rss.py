"""Memory over time of packing and of streaming, watched from outside.

    python -m bench.rss pack|sort|stream SOURCE OUT BUDGET SECONDS

What is counted is anonymous and shared memory (RssAnon and RssShmem of /proc/PID/status), less what
the process had when the work began: the interpreter and the modules. Pages of files are the page
cache's, which the kernel takes back when it needs them.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

from bench import measure

PERIOD = 0.005
POINTS = 100


def watched(what, source, out, budget, seconds):
    """Runs one piece of work; {"value": peak over the baseline, "curve": [[seconds, bytes]...]}."""
    command = measure.python("bench.rss", what, source, out, budget, seconds)
    child = subprocess.Popen(
        [str(part) for part in command],
        cwd=measure.ROOT,
        env=dict(os.environ, PYTHONPATH=str(measure.ROOT)),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    watch = _Watch(child.pid)
    text, errors = child.communicate()
    samples = watch.stop()
    lines = text.strip().splitlines()
    if child.returncode or not lines:
        return {"error": (errors.strip().splitlines() or [f"status {child.returncode}"])[-1][:300]}
    answer = json.loads(lines[-1])
    begun, ended, baseline = (answer.pop(key) for key in ("begun", "ended", "baseline"))
    during = [(at - begun, size - baseline) for at, size in samples if begun <= at <= ended]
    answer.update(
        value=max([answer.pop("grown"), *(size for _, size in during)]),
        seconds=ended - begun,
        baseline=baseline,
        curve=thinned(during),
    )
    return answer


def thinned(samples):
    """At most POINTS points: of those that fall together, the highest."""
    step = max(1, -(-len(samples) // POINTS))
    groups = [samples[at : at + step] for at in range(0, len(samples), step)]
    highest = (max(group, key=lambda sample: sample[1]) for group in groups)
    return [[round(at, 3), size] for at, size in highest]


class _Watch:
    """The memory of a process, 200 times a second, until stop()."""

    def __init__(self, pid):
        self._pid, self._samples, self._end = pid, [], threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self):
        self._end.set()
        self._thread.join()
        return self._samples

    def _watch(self):
        while not self._end.wait(PERIOD):
            size = own_bytes(self._pid)
            if size:
                self._samples.append((time.monotonic(), size))


def own_bytes(pid="self"):
    """Anonymous and shared memory that is resident; 0 when the process is gone."""
    try:
        with open(f"/proc/{pid}/status") as lines:
            found = dict(line.split(":", 1) for line in lines)
        return sum(int(found[key].split()[0]) * 1024 for key in ("RssAnon", "RssShmem"))
    except (OSError, KeyError):
        return 0


# --- the work ----------------------------------------------------------------------------------


def pack(source, out, budget, seconds, **more):
    import pyarrow.dataset  # noqa: F401
    import stoker

    files = sorted(source.glob("*.parquet"))

    def work():
        stoker.pack_series(files, out, memory=budget, progress=False, **more)
        return {"bytes": os.path.getsize(out / "all_features.mmap")}

    return work


def sort(source, out, budget, seconds):
    """Rows of all entities mixed: spooled, sorted on disk, then packed."""
    return pack(source, out, budget, seconds, entity="entity", time="time")


def stream(source, out, budget, seconds):
    import stoker
    import torch  # noqa: F401

    def work():
        dataset = stoker.open(source, window=60, horizon=1)
        loader = stoker.Loader(dataset, batch_size=1024, shuffle=True, seed=0, memory=budget)
        end, windows = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            for batch in loader:
                windows += len(batch["x"])
                if time.monotonic() >= end:
                    break
        return {
            "bytes": os.path.getsize(source / "all_features.mmap"),
            "windows": windows,
            "held_by_its_own_count": loader.stats()["peak_bytes"],
        }

    return work


WORK = {"pack": pack, "sort": sort, "stream": stream}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=WORK)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("budget", type=int)
    parser.add_argument("seconds", type=float)
    arguments = parser.parse_args()
    work = WORK[arguments.what](
        arguments.source, arguments.out, arguments.budget, arguments.seconds
    )
    begun, baseline = time.monotonic(), own_bytes()
    answer = work()
    ended, grown = time.monotonic(), own_bytes() - baseline
    answer.update(begun=begun, ended=ended, baseline=baseline, grown=grown)
    print(json.dumps(answer), flush=True)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
