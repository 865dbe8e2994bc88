"""kernels: Stoker's kernels alone, bytes read and written over time, against a copy on the device.

The program gpu_kernels (bench/gpu_kernels.c, a target of the build) measures; it prints a JSON
object a line: name, value in bytes/s, bytes, seconds, note. The line "hbm" is the copy, "fused" the
kernel that crops, resizes, flips, normalises and lays out 256 images of 224 x 224.
"""

import json
import statistics
import subprocess

from bench.measure import ROOT

PLACES = ("dist/gpu_kernels", "build/bench/gpu_kernels", "build/gpu_kernels")


def run(options):
    program = find()
    if program is None:
        raise RuntimeError(
            f"there is no program gpu_kernels ({', '.join(PLACES)}): cmake --build build --target "
            "gpu_kernels makes it"
        )
    runs = [measure_once(program, options.quick) for _ in range(options.runs)]
    return result(runs)


def find():
    paths = (ROOT / place for place in PLACES)
    return next((path for path in paths if path.exists()), None)


def measure_once(program, quick):
    command = [str(program), *(["--quick"] if quick else [])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    if done.returncode:
        words = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise RuntimeError(f"{program.name}: {words}")
    return parse(done.stdout)


def parse(text):
    """The lines of one run, by name."""
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return {line["name"]: line for line in lines}


def result(runs):
    """The parts of the result file; each kernel's limit is the copy."""
    rows = []
    for name in runs[0]:
        lines = [run[name] for run in runs if run.get(name, {}).get("value")]
        row = dict(lines[0] if lines else runs[0][name])
        values = [line["value"] for line in lines]
        row.update(value=statistics.median(values) if values else None, runs=values)
        row.setdefault("unit", "bytes/s")
        row.setdefault("note", "")
        rows.append(row)
    values = {row["name"]: row["value"] for row in rows}
    copy = next((row for row in rows if row["name"] == "hbm"), None)
    value = copy["value"] if copy else None
    ratios = {f"{name}/hbm": got / value for name, got in values.items() if got and value}
    ratios.pop("hbm/hbm", None)
    return {
        "workload": {"what": "data on the device, each kernel alone in its stream"},
        "limit": {
            "name": "a copy within the device, bytes read and written",
            "value": value,
            "unit": "bytes/s",
            "runs": copy["runs"] if copy else [],
        },
        "rows": rows,
        "ratios": ratios,
    }
