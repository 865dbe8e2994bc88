"""cupti: what CUPTI's records cost a launch, way by way: the least that watching a GPU costs.

The program bench/limit_cupti.c measures the CPU's time of a launch while the device keeps up
(value), and the time of an empty kernel when they follow each other (device_ns). Each way is a
process of its own. All are there at once, and one at a time works, for some milliseconds, on the
same core: cores of one machine differ by more than what is looked for, and so does a core from one
second to the next. A turn is compared with the median of its round; the ratios are medians over
the rounds.
"""

import contextlib
import json
import os
import random
import statistics
import subprocess
import tempfile
import time

from bench import limits, measure
from bench.watch import fastest_core, watching_command

ROUNDS = 150
ALONE = ["alone", "alone_2", "alone_3"]  # how far they differ says how far the rest can be trusted
RESTED = ["rested", "rested_2", "rested_3"]
RESTED_NOTE = "`stoker run` watches it, and has ended recording"
RESTED_TURNS = 400  # by then it has


def run(options):
    program = limits.program("limit_cupti")
    names = subprocess.check_output([program], text=True).split()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        alone = [Way(name, [program, "alone"], stack) for name in ALONE]
        ways = [Way(name, [program, name], stack) for name in names if name != "alone"]
        watching = watching_command(os.path.join(folder, "run.json"))
        rested = [Way(name, [*watching, program, "alone"], stack) for name in RESTED]
        every = [*alone, *ways, *rested]
        for way in every:
            way.turn()
        for way in rested:
            for _ in range(RESTED_TURNS):
                way.turn()
        time.sleep(1)
        core = fastest_core()
        for way in every:
            way.bind(core)
            way.turn()
        runs = [_round(every) for _ in range(ROUNDS * options.runs)]
        rows = [way.row([one[way.name] for one in runs]) for way in every]
    middles = [statistics.median(one.values()) for one in runs]
    shares = {
        way.name: [one[way.name] / middle for one, middle in zip(runs, middles, strict=True)]
        for way in every
    }
    unit = statistics.median(share for name in ALONE for share in shares[name])
    limit = by_tens([one[name] for one in runs for name in ALONE])
    return {
        "workload": {
            "what": "launches of an empty kernel by one thread of C, in one stream, on one core",
            "rounds": len(runs),
        },
        "limit": {
            "name": "the same without CUPTI",
            "value": statistics.median(one[name] for one in runs for name in ALONE),
            "unit": "ns",
            "runs": limit,
        },
        "rows": rows,
        "ratios": {
            f"{name}/limit": statistics.median(some) / unit for name, some in shares.items()
        },
    }


class Way:
    """A process that measures launches whenever it is told to."""

    def __init__(self, name, command, stack):
        self.name = name
        self._error = stack.enter_context(tempfile.TemporaryFile("w+"))
        pipe = subprocess.PIPE
        self._child = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=self._error, text=True
        )
        stack.callback(self._end)

    def turn(self):
        """ns of a launch."""
        with contextlib.suppress(BrokenPipeError):  # it says why
            self._child.stdin.write("\n")
            self._child.stdin.flush()
        return float(self._answer())

    def bind(self, core):
        """The thread that launches, no other."""
        os.sched_setaffinity(measure.descendants(self._child.pid)[-1], {core})

    def row(self, values):
        self._child.stdin.close()
        told = json.loads(self._answer())
        if self.name in RESTED:
            told["note"] = RESTED_NOTE
        value = statistics.median(values)
        runs = by_tens(values)
        return {**told, "name": self.name, "value": value, "unit": "ns", "runs": runs}

    def _end(self):
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.close()
        self._child.wait()
        self._child.stdout.close()

    def _answer(self):
        line = self._child.stdout.readline()
        if not line:
            self._error.seek(0)
            words = self._error.read().strip().splitlines()
            raise RuntimeError(f"{self.name}: {words[-1] if words else 'it ended'}")
        return line


def by_tens(values):
    """The median of each ten: so many numbers are for nobody to read."""
    return [statistics.median(values[i : i + 10]) for i in range(0, len(values), 10)]


def _round(ways):
    """{name: ns of a launch}, in an order that is another each time."""
    return {way.name: way.turn() for way in random.sample(ways, len(ways))}
