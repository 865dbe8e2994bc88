"""Runs a script of the truth suite under `stoker run` and compares the verdict with the planted.

python tests/truth/truth.py --device cuda           all that make sense on a GPU, as a table
python tests/truth/truth.py slow_read too_few_workers
"""

import argparse
import datetime
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
BINARY = Path(os.environ.get("STOKER_BIN", HERE.parents[1] / "build" / "stoker"))
FREE = 0.15  # foreign programs that use no more of the CPUs do not change a verdict
SHARE = 0.05  # shares are so near to the planted
STOLEN = 0.03  # of the time that a loop should have had: more, and the machine is not its own

CUPTI = BINARY.parent / "sim_cupti_13" / "libcupti.so.13"  # of the GPU that is not there

# What each script needs: "both" runs on a CPU and on a GPU.
SCRIPTS = {
    "slow_read": "both",
    "slow_read_iterable": "cpu",
    "own_generator": "both",
    "own_thread": "both",
    "own_pool": "both",
    "slow_transform_workers": "both",
    "slow_transform_main": "both",
    "slow_transform_lightning": "cpu",
    "slow_stoker_map": "both",
    "too_few_workers": "both",
    "huge_collate": "both",
    "huge_send": "both",
    "slow_sample": "both",
    "worker_start": "both",
    "checkpoints": "both",
    "slow_validation": "both",
    "noisy_neighbour": "both",
    "busy_child": "both",
    "slow_rank": "cpu",
    "healthy": "both",
    "pageable_copy": "cuda",
    "item_every_step": "cuda",
    "slow_logging": "cuda",
    "tiny_kernels": "cuda",
    "cuda_graphs": "cuda",
    "busy_gil": "cuda",
}
NOISY = {"noisy_neighbour", "busy_child"}  # other programs disturb them on purpose
NEEDS = {"slow_read_iterable": "accelerate", "slow_transform_lightning": "lightning"}


def on(device):
    """Scripts that make sense on this device."""
    device = "cuda" if device == "sim" else device
    return [name for name, where in SCRIPTS.items() if where in (device, "both")]


@dataclass
class Outcome:
    told: dict  # by the script
    run: dict  # the run file
    status: int
    words: str  # on standard error
    complaints: list = field(default_factory=list)


def watch(name, device="cpu", end="return"):
    """Runs one script under `stoker run`, on two CPUs wherever it is."""
    with tempfile.TemporaryDirectory(prefix="stoker-truth-") as folder:
        script = [str(HERE / "scripts" / f"{name}.py"), "--device", device, "--end", end]
        hogs = []
        if name == "noisy_neighbour":
            script += ["--ready", f"{folder}/ready"]
            hogs = _start_hogs(f"{folder}/ready")
        try:
            done = subprocess.run(
                [*_stoker(), "run", "--json", f"{folder}/run.json", "--", *_python(name), *script],
                capture_output=True,
                text=True,
                timeout=120,
                env=_environment(),
                preexec_fn=_two_cpus,
            )
        finally:
            for hog in hogs:
                hog.kill()
                hog.wait()
        told = _last_line(done.stdout)
        file = Path(folder) / "run.json"
        run = json.loads(file.read_text()) if file.exists() else None
    return Outcome(told, run, done.returncode, done.stderr)


def _environment():
    more = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "STOKER_TEST_CUPTI": str(CUPTI)}
    return {**os.environ, **more}


def _stoker():
    return [str(BINARY)] if BINARY.exists() else [sys.executable, "-m", "stoker"]


def _python(name):
    if name != "slow_rank":
        return [sys.executable]
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = str(one.getsockname()[1])
    words = ["--nproc-per-node", "2", "--master-addr", "127.0.0.1", "--master-port", port]
    return [sys.executable, "-m", "torch.distributed.run", *words]


def _cpus():
    return sorted(os.sched_getaffinity(0))[:2]


def _two_cpus():
    os.sched_setaffinity(0, _cpus())


HOG = """
import os, sys, time
os.sched_setaffinity(0, [int(sys.argv[2])])
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
end = time.monotonic() + 60
while time.monotonic() < end:
    pass
"""


def _start_hogs(ready):
    """Other programs, one on each CPU, that begin when training does."""
    return [subprocess.Popen([sys.executable, "-c", HOG, ready, str(cpu)]) for cpu in _cpus()]


def _last_line(text):
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    return None


ENDS = {"return": (0,), "exit": (3,), "raise": (1,), "kill": (137, -signal.SIGKILL)}


def judge(outcome, end="return"):
    """What is wrong with a verdict; an empty list: nothing."""
    told, run, wrong = outcome.told, outcome.run, []
    if outcome.status not in ENDS[end]:
        wrong.append(f"exit status {outcome.status}, not {ENDS[end][0]}")
    if told is None or run is None:
        return [*wrong, f"no {'run file' if told else 'word of the script'}: {outcome.words}"]
    shares = {one["cause"]: one["share"] for one in run["causes"]}
    if abs(sum(shares.values()) - 1) > 0.001:
        wrong.append(f"shares add up to {sum(shares.values()):.4f}")
    if not run["reliable"]:
        if not told.get("graphs"):
            wrong.append(f"unreliable: {run['unreliable']}")
        return wrong
    if told["busy"] is not None:
        wrong += _compare_busy(told, run)
    if told["cause"] is None:
        bound = run["verdict"]["bound"]
        return wrong + ([f"bound by {bound}, not compute"] if bound != "compute" else [])
    if shares.get("other", 0) > 0.10:
        wrong.append(f"other {shares['other']:.1%}")
    return wrong + _compare_causes(told, run, shares)


def _compare_busy(told, run):
    seconds = sum(rank["end_s"] - rank["start_s"] for rank in run["ranks"])
    busy = sum(rank["compute_s"] for rank in run["ranks"]) / max(seconds, 1e-9)
    if abs(busy - told["busy"]) > SHARE:
        return [f"busy {busy:.1%}, planted {told['busy']:.1%}"]
    return []


def _compare_causes(told, run, shares):
    wrong = []
    first = run["causes"][0]["cause"] if run["causes"] else None
    if first != told["cause"]:
        wrong.append(f"first is {first}, not {told['cause']}")
    found = shares.get(told["cause"], 0.0)
    if told["share"] is not None and abs(found - told["share"]) > SHARE:
        wrong.append(f"{told['cause']} {found:.1%}, planted {told['share']:.1%}")
    if run["verdict"]["cause"] != told["cause"]:
        wrong.append(f"the verdict names {run['verdict']['cause']}")
    slowest = run["slowest_rank"]
    if "slowest_rank" in told and (slowest or {}).get("rank") != told["slowest_rank"]:
        wrong.append(f"slowest rank {slowest}")
    return wrong


def try_out(name, device="cpu", end="return", tries=3):
    """Once; again while other programs disturb it, for the truth is another one then."""
    for _ in range(tries):
        outcome = watch(name, device, end)
        outcome.complaints = judge(outcome, end)
        if not outcome.complaints or foreign(outcome) <= FREE or name in NOISY:
            break
    return outcome


def stolen(seconds=0.3):
    """Which part of the time a busy process a CPU does not get: other programs, or other machines
    on the same processor, which no figure of /proc tells."""
    code = f"""
import time
start, cpu = time.perf_counter(), time.process_time()
while time.perf_counter() - start < {seconds}:
    pass
print(1 - (time.process_time() - cpu) / (time.perf_counter() - start))
"""
    busy = [
        subprocess.Popen(
            ["taskset", "-c", str(cpu), sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            text=True,
        )
        for cpu in _cpus()
    ]
    return max(float(one.communicate()[0] or 1) for one in busy)


def foreign(outcome):
    """Which part of the CPUs other programs used."""
    return outcome.run["cpu"]["foreign"] if outcome.run else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="scripts; none: all")
    parser.add_argument("--device", choices=("cpu", "cuda", "sim"), default="cpu")
    parser.add_argument("--end", choices=ENDS, default="return")
    parser.add_argument("--keep", type=Path, help="a folder for the run files")
    parser.add_argument("--json", type=Path, help="a file for what was planted and what was told")
    options = parser.parse_args()
    outcomes = {}
    for name in options.names or on(options.device):
        outcome = outcomes[name] = try_out(name, options.device, options.end)
        print(_row(name, outcome), flush=True)
        if options.keep and outcome.run:
            options.keep.mkdir(parents=True, exist_ok=True)
            (options.keep / f"{name}.json").write_text(json.dumps(outcome.run, indent=1))
    if options.json:
        write_outcomes(options, outcomes)
    failed = sum(bool(outcome.complaints) for outcome in outcomes.values())
    print(f"{failed} failed")
    return 1 if failed else 0


def write_outcomes(options, outcomes):
    """In the form of the benchmarks' results."""
    words = " ".join([*options.names, "--device", options.device, "--json", options.json.name])
    runs = [outcome.run for outcome in outcomes.values() if outcome.run]
    machine = runs[0]["machine"] if runs else {}
    kept = ("gpu", "driver", "cupti", "python", "torch", "cpus", "kernel")
    facts = {
        "bench": f"truth on {options.device}",
        "version": 1,
        "command": f"python tests/truth/truth.py {words}",
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {key: machine[key] for key in kept if machine.get(key) is not None},
        "rows": [_outcome_row(name, outcome) for name, outcome in outcomes.items()],
        "ratios": {},
    }
    options.json.write_text(json.dumps(facts, indent=1) + "\n")


def _outcome_row(name, outcome):
    told, causes = outcome.told or {}, outcome.run["causes"] if outcome.run else []
    shares = {one["cause"]: one["share"] for one in causes}
    return {
        "name": name,
        "value": shares.get(told.get("cause")),
        "unit": "of the idle time",
        "planted": {key: told.get(key) for key in ("cause", "share")},
        "causes": shares,
        "complaints": outcome.complaints,
        "note": f"planted: {told.get('cause') or 'nothing'}",
    }


def _row(name, outcome):
    told = outcome.told or {}
    planted = f"{told.get('cause')} {told.get('share') or 0:.0%}"
    found = "nothing"
    if outcome.run:
        found = ", ".join(f"{one['cause']} {one['share']:.1%}" for one in outcome.run["causes"][:4])
    words = "; ".join(outcome.complaints) or "ok"
    return f"{name:<26}{planted:<24}{found:<70} foreign {foreign(outcome):.0%}  {words}"


if __name__ == "__main__":
    sys.exit(main())
