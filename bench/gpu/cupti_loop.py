"""cupti_loop: what CUPTI's records cost a loop of tiny kernels, way by way, and what is left of it
once they are switched off.

A process for each way (bench/cupti_ways.c), all at once, of which one at a time works: some epochs
each, in turn, so that what else goes on in the machine meets all of them. Two run alone: how far
they differ says how far the rest can be trusted.
"""

import statistics
import tempfile
from pathlib import Path

from bench import limits, measure
from bench.watch import Paced, warm

ALONE = ["alone", "alone_too"]
WAYS = {
    "kernels": "kernels alone are recorded",
    "kernels_copies": "kernels, copies and clears",
    "kernels_syncs": "kernels and synchronisations",
    "syncs": "synchronisations alone",
    "all": "what `stoker run` records",
    "all_calls": "and calls that launch graphs",
    "all_stopped": "all was recorded from before the context on, and is not any more",
    "all_calls_stopped": "the same with calls that launch graphs",
    "all_late_stopped": "all was recorded from later on, and is not any more",
    "kernels_late_stopped": "the same of kernels alone",
    "all_turns": "all is recorded for a quarter of a second of three",
    "all_turns_finalized": "the same, CUPTI is shut down in between",
}
ROUNDS, EPOCHS = 8, 3
WARM_S = 5  # of epochs, until what comes late is there


def run(options):
    rounds = options.runs * ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        stop = Path(folder) / "stop"
        loops = {name: _start(name, stop) for name in [*ALONE, *WAYS]}
        warm(loops.values(), WARM_S)
        stop.touch()
        warm(loops.values(), WARM_S)
        seconds = {name: [] for name in loops}
        for _ in range(rounds):
            for name, loop in loops.items():
                seconds[name] += loop.turn(EPOCHS)
        for loop in loops.values():
            loop.close()
    alone = [statistics.fmean(both) for both in zip(*(seconds[n] for n in ALONE), strict=True)]
    limit = statistics.median(alone)
    rows = [_row(name, seconds[name]) for name in loops]
    return {
        "workload": {"loop": "tiny (bench/watch_loops.py)", "rounds": rounds, "epochs": EPOCHS},
        "limit": {"name": "the loop alone", "value": limit, "unit": "s", "runs": alone},
        "rows": rows,
        "ratios": {f"{row['name']}/limit": row["value"] / limit for row in rows},
    }


def _start(name, stop):
    more = {
        "CUDA_INJECTION64_PATH": str(limits.library("cupti_ways")),
        "STOKER_CUPTI_WAY": name,
        "STOKER_CUPTI_STOP": str(stop),
    }
    script = measure.python("bench.watch_loops", "tiny", "--device", "cuda")
    command = ["env", *(f"{key}={value}" for key, value in more.items())] if name in WAYS else []
    return Paced([*command, *script])


def _row(name, seconds):
    note = WAYS.get(name, "nothing is recorded")
    runs = [round(one, 6) for one in seconds]
    return {
        "name": name,
        "value": statistics.median(seconds),
        "unit": "s",
        "runs": runs,
        "note": note,
    }
