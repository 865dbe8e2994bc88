"""cupti: what CUPTI's records cost a launch, part by part: the least that watching a GPU costs.

The program bench/limit_cupti.c measures, each way in a process of its own: the CPU's time of a
launch while the device keeps up (value), and the time of an empty kernel when they follow each
other (device_ns).
"""

import json
import statistics
import subprocess

from bench import limits, measure


def run(options):
    program = limits.program("limit_cupti")
    names = _call(program).split()
    runs = {name: [] for name in names}
    for _ in range(options.runs):
        for name in names:  # in turn, so that what else goes on meets all of them
            runs[name].append(json.loads(_call(program, name)))
    rows = [_row(answers) for answers in runs.values()]
    alone = rows[0]
    return {
        "workload": {"what": "launches of an empty kernel by one thread of C, in one stream"},
        "limit": {
            "name": "the same without CUPTI",
            "value": alone["value"],
            "unit": "ns",
            "runs": alone["runs"],
        },
        "rows": rows,
        "ratios": measure.ratios(rows, [(name, "alone") for name in names[1:]]),
    }


def _call(program, *words):
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr else "limit_cupti")
    return done.stdout


def _row(answers):
    values = [answer["value"] for answer in answers]
    device = statistics.median(answer["device_ns"] for answer in answers)
    middle = {**answers[0], "value": statistics.median(values), "device_ns": device}
    return {**middle, "runs": values}
