"""cupti_loop: what CUPTI's records cost a loop of tiny kernels, way by way, and what is left of it
once they are switched off.

A process for each way (bench/cupti_ways.c), all at once, of which one at a time works: some epochs
each, in turn and on the same core, so that what else goes on in the machine meets all of them. A
round is compared with its own mean; the ratios are means over the rounds. Some run alone: how far
they differ says how far the rest can be trusted.
"""

import statistics
import tempfile
from pathlib import Path

from bench import limits, measure
from bench.watch import Paced, fastest_core, warm

ALONE = ["alone", "alone_2", "alone_3", "alone_4"]
WAYS = {
    "opened": "CUPTI is there and nothing is recorded",
    "kernels": "kernels alone are recorded",
    "kernels_copies": "kernels, copies and clears",
    "kernels_syncs": "kernels and synchronisations",
    "syncs": "synchronisations alone",
    "all": "what `stoker run` records",
    "all_calls": "and calls that launch graphs",
    "kernels_stopped": "kernels were recorded from before the context on, and are not any more",
    "syncs_stopped": "the same of synchronisations alone",
    "all_stopped": "all was recorded from before the context on, and is not any more",
    "all_calls_stopped": "the same with calls that launch graphs",
    "all_late_stopped": "all was recorded from later on, and is not any more",
    "kernels_late_stopped": "the same of kernels alone",
    "all_turns": "all is recorded for a quarter of a second of three",
    "all_turns_finalized": "the same, CUPTI is shut down in between",
}
ROUNDS, EPOCHS = 30, 3
WARM_S = 5  # of epochs, until what comes late is there


def run(options):
    rounds = options.runs * ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        stop = Path(folder) / "stop"
        loops = {name: _start(name, stop) for name in [*ALONE, *WAYS]}
        warm(loops.values(), WARM_S)
        stop.touch()
        warm(loops.values(), WARM_S)
        core = fastest_core()
        for loop in loops.values():
            loop.bind(core)
        seconds = {name: [] for name in loops}  # a mean of each round
        for _ in range(rounds):
            for name, loop in loops.items():
                seconds[name].append(statistics.fmean(loop.turn(EPOCHS)))
        for loop in loops.values():
            loop.close()
    rounds_seconds = [statistics.fmean(some) for some in zip(*seconds.values(), strict=True)]
    shares = {
        name: [mine / all_of_it for mine, all_of_it in zip(some, rounds_seconds, strict=True)]
        for name, some in seconds.items()
    }
    alone = statistics.fmean(share for name in ALONE for share in shares[name])
    limit = [second for name in ALONE for second in seconds[name]]
    return {
        "workload": {"loop": "tiny (bench/watch_loops.py)", "rounds": rounds, "epochs": EPOCHS},
        "limit": {
            "name": "the loop alone",
            "value": statistics.median(limit),
            "unit": "s",
            "runs": limit,
        },
        "rows": [_row(name, seconds[name], shares[name]) for name in loops],
        "ratios": {
            f"{name}/limit": statistics.fmean(some) / alone for name, some in shares.items()
        },
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


def _row(name, seconds, shares):
    note = WAYS.get(name, "nothing is recorded")
    runs = [round(one, 6) for one in seconds]
    return {
        "name": name,
        "value": statistics.median(seconds),
        "unit": "s",
        "runs": runs,
        "error": statistics.stdev(shares) / len(shares) ** 0.5,
        "note": note,
    }
