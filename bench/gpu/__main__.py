"""Runs the benchmarks of the GPU path and writes results/gpu/NAME.json.

python -m bench.gpu training
python -m bench.gpu all --quick
"""

import argparse
import datetime
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

from bench import machine
from bench.gpu import NAMES
from bench.measure import ROOT

ROOM = 24 << 30  # bytes of all data sets together
ROOM_QUICK = 4 << 30


def main():
    options = _arguments()
    why = _no_gpu()
    if why:
        print(f"bench.gpu: {why}; nothing was measured")
        return 0
    own_data = "STOKER_BENCH_DATA" not in os.environ
    if own_data:
        os.environ["STOKER_BENCH_DATA"] = str(_data_folder(options.quick))
    try:
        return run_all(options) if options.name == "all" else run_one(options.name, options)
    finally:
        if own_data:
            shutil.rmtree(os.environ["STOKER_BENCH_DATA"], ignore_errors=True)


def _arguments():
    parser = argparse.ArgumentParser(prog="bench.gpu", description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=[*NAMES, "all"])
    parser.add_argument("-o", "--out", type=pathlib.Path, default=ROOT / "results" / "gpu")
    parser.add_argument("--runs", type=int, metavar="N", help="runs of each side (default 3)")
    parser.add_argument("--quick", action="store_true", help="small data, one short run of each")
    options = parser.parse_args()
    if options.runs is None:
        options.runs = 1 if options.quick else 3
    if options.runs < 1:
        parser.error("--runs is 1 or more")
    return options


def _no_gpu():
    """Why nothing can be measured here; None: it can."""
    try:
        import torch
    except ImportError as error:
        return f"PyTorch does not load: {error}"
    return None if torch.cuda.is_available() else "PyTorch sees no GPU here"


def _data_folder(quick):
    """On a disk, read from the page cache, as data is; else in shared memory, which is read more
    slowly (page by page)."""
    wanted = ROOM_QUICK if quick else ROOM
    for folder in "/tmp", str(ROOT / "data"), "/dev/shm":
        if os.path.isdir(folder) and shutil.disk_usage(folder).free > wanted:
            break
    return pathlib.Path(folder) / f"stoker-bench-{os.getuid()}"


def run_all(options):
    """Each in a process of its own: one that dies takes nothing along."""
    failed = []
    for name in NAMES:
        command = [sys.executable, "-m", "bench.gpu", name, "-o", str(options.out.resolve())]
        command += ["--runs", str(options.runs), *(["--quick"] if options.quick else [])]
        if subprocess.run(command, cwd=ROOT).returncode:
            failed.append(name)
    if failed:
        print(f"bench.gpu: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def run_one(name, options):
    from bench.run import print_table

    begun = time.perf_counter()
    print(f"bench.gpu {name}", flush=True)
    load = machine.load()
    try:
        parts = importlib.import_module(f"bench.gpu.{name}").run(options)
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        print(f"bench.gpu {name}: {error}", file=sys.stderr)
        return 1
    result = {
        "bench": f"gpu/{name}",
        "version": 1,
        "machine": describe(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": f"python -m bench.gpu {name} --runs {options.runs}"
        + (" --quick" if options.quick else ""),
        "quick": options.quick,
        "load": load,
        **parts,
        "seconds": time.perf_counter() - begun,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"{name}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    print_table(result)
    print(f"written: {path} ({result['seconds']:.0f} s)\n", flush=True)
    return 0


def describe():
    """machine.describe() with what the GPU and its software are."""
    import torch

    facts = machine.describe()
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        facts.update(gpu=properties.name, gpu_memory=properties.total_memory)
        facts.update(driver=_driver(), cuda=torch.version.cuda)
    return {**facts, "torch": torch.__version__}


def _driver():
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        found = subprocess.run(query, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.split("\n")[0].strip() or None


if __name__ == "__main__":
    sys.exit(main())
