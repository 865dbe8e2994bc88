"""hook: what the Python hook of `stoker run` costs a training loop, and what its samples of stacks
cost, each switched on and off in one process (bench/hook_loop.py)."""

import json
import statistics
import subprocess
import sys

from bench import measure
from bench.watch import loop_environment

LOOPS = {"tiny": "a loop of tiny kernels", "cnn3d": "a 3D-CNN"}
PARTS = {"hook": "the hook's own work", "samples": "100 samples of stacks a second"}
SECONDS = 20


def run(options):
    answers = {
        loop: [_measure(loop, 2 if options.quick else SECONDS) for _ in range(options.runs)]
        for loop in LOOPS
    }
    rows = [
        _row(loop, part, [answer[part] for answer in some])
        for loop, some in answers.items()
        for part in PARTS
    ]
    return {
        "workload": {"loops": "bench/watch_loops.py", "seconds": SECONDS},
        "limit": {"name": "the same loop without that part", "value": None, "unit": ""},
        "rows": rows,
        "ratios": {},
    }


def _measure(loop, seconds):
    script = measure.python("bench.hook_loop", loop, "--device", "cuda", "--seconds", str(seconds))
    done = subprocess.run(
        [sys.executable, "-m", "stoker", "run", "--", *script],
        capture_output=True,
        text=True,
        env=loop_environment(),
        timeout=300,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-500:])
    return json.loads(done.stdout.strip().splitlines()[-1])


def _row(loop, part, answers):
    """A process is a run; the error is that within processes, taken together."""
    shares = [one["share"] for one in answers]
    errors = [one["error"] ** 2 for one in answers]
    return {
        "name": f"{loop}_{part}",
        "value": statistics.fmean(shares),
        "unit": "of an epoch",
        "runs": shares,
        "error": sum(errors) ** 0.5 / len(errors),
        "epoch_s": statistics.fmean(one["epoch_s"] for one in answers),
        "note": f"{LOOPS[loop]}: {PARTS[part]}",
    }
