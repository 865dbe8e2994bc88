"""Makes run files for tests: what `stoker run --json` writes, without running anything."""

import copy
import json
import math
import random

WORDS = {
    "input/fetch": "reading the data",
    "input/transform": "decoding and transforming",
    "input/collate": "collating batches and handing them between processes",
    "input/workers": "too few workers",
    "input/start": "starting the loader and its epochs",
    "copy": "copying to the device",
    "launch": "Python launching kernels",
    "sync": "synchronising and logging",
    "rank": "waiting for another rank",
    "other": "something else",
}


def causes(idle, shares, function="blur", file="data/filters.py"):
    """Sorted causes that add up to the idle time; the first one has functions."""
    made = []
    for place, (cause, share) in enumerate(sorted(shares.items(), key=lambda one: -one[1])):
        seconds = round(idle * share, 6)
        functions = [
            {"function": function, "file": file, "line": 31, "seconds": round(seconds * 0.9, 6)},
            {"function": "load", "file": file, "line": 12, "seconds": round(seconds * 0.05, 6)},
        ]
        made.append(
            {
                "cause": cause,
                "words": WORDS[cause],
                "seconds": seconds,
                "share": share,
                "functions": functions if place == 0 else [],
            }
        )
    return made


def rank(number=None, busy=0.412, start=3.2, epoch=17.76, epochs=5, samples=6400, shares=None):
    """One row of "ranks"."""
    end = round(start + epoch * epochs, 6)
    compute = round((end - start) * busy, 6)
    idle = round(end - start - compute, 6)
    steps, step = epochs * samples // 32, epoch * 32 / samples
    spans = [(start + epoch * i, start + epoch * (i + 1)) for i in range(epochs)]
    return {
        "rank": number,
        "pid": 4711 + (number or 0),
        "device": number or 0,
        "start_s": start,
        "end_s": end,
        "excluded_s": 0.0,
        "recorded": 1.0,
        "busy": {"compute": busy, "communication": 0.0 if number is None else 0.11, "copy": 0.031},
        "compute_s": compute,
        "idle_s": idle,
        "causes": causes(idle, shares or {"other": 1.0}),
        "steps": steps,
        "samples": epochs * samples,
        "samples_s": round(samples / epoch, 6),
        "step_s": {"median": round(step, 6), "p95": round(1.4 * step, 6)},
        "next_s": round(0.9 * idle, 6),
        "epoch_s": epoch,
        "epochs": [
            {
                "start_s": round(from_s, 6),
                "end_s": round(to_s, 6),
                "steps": steps // epochs,
                "samples": samples,
            }
            for from_s, to_s in spans
        ],
        "kernels": 48000,
        "copies": 2000,
        "copied_bytes": 19267584000,
        "pageable_bytes": 19267584000,
        "graph_kernels": 0,
    }  # fmt: skip


def node(function, file, line, seconds, *children):
    return {
        "function": function,
        "file": file,
        "line": line,
        "seconds": seconds,
        "cpu_s": round(seconds * 0.9, 6),
        "children": list(children),
    }


TORCH = "site-packages/torch/"
DATA = TORCH + "utils/data/"


def functions(idle, compute):
    """Two trees: the loop and its workers."""
    whole = idle + compute
    main = node("all", None, None, whole,
        node("<module>", "train.py", 90, whole,
            node("train", "train.py", 61, whole,
                node("__next__", DATA + "dataloader.py", 708, 0.86 * idle,
                    node("_next_data", DATA + "dataloader.py", 1458, 0.86 * idle,
                        node("_get_data", DATA + "dataloader.py", 1410, 0.85 * idle,
                            node("get", "python3.11/queues.py", 113, 0.8 * idle)))),
                node("forward", "model.py", 22, 0.4 * compute,
                    node("_call_impl", TORCH + "nn/modules/module.py", 1780, 0.38 * compute)),
                node("backward", TORCH + "_tensor.py", 625, 0.45 * compute),
                node("step", TORCH + "optim/sgd.py", 120, 0.12 * compute),
                node("item", "train.py", 70, 0.08 * idle))))  # fmt: skip
    work = 3.4 * idle
    workers = node("all", None, None, work,
        node("_worker_loop", DATA + "_utils/worker.py", 349, work,
            node("fetch", DATA + "_utils/fetch.py", 52, 0.95 * work,
                node("__getitem__", "data/photos.py", 40, 0.93 * work,
                    node("blur", "data/filters.py", 31, 0.72 * work,
                        node("convolve", "site-packages/scipy.py", 88, 0.6 * work)),
                    node("open", "site-packages/PIL/Image.py", 3465, 0.14 * work),
                    node("to_tensor", "data/photos.py", 48, 0.06 * work))),
            node("default_collate", DATA + "_utils/collate.py", 398, 0.04 * work)))  # fmt: skip
    return {"main": main, "workers": workers}


def series(wall, busy, seed=0):
    dice = random.Random(seed)
    count = int(wall)
    wave = [busy + 0.06 * math.sin(i / 3) + 0.05 * (dice.random() - 0.5) for i in range(count)]
    active = [
        0.0 if i < 3 or i > count - 2 else min(1.0, max(0.0, one)) for i, one in enumerate(wave)
    ]
    return {
        "bin_s": 1.0,
        "compute": [round(one, 4) for one in active],
        "copy": [round(0.03 if one else 0.0, 4) for one in active],
        "waiting": [round(0.85 * (1 - one) if one else 0.0, 4) for one in active],
        "samples_s": [round(880 * one, 2) for one in active],
        "cpu": [round(1.1 + 2.7 * (one > 0) + 0.3 * dice.random(), 3) for one in active],
        "machine_cpu": [round(1.3 + 2.7 * (one > 0) + 0.3 * dice.random(), 3) for one in active],
        "iowait": [round(0.1 * dice.random(), 3) for _ in active],
        "rss_bytes": [None, *(round(1.2e9 + 3.1e9 * min(1.0, i / 8)) for i in range(1, count))],
        "read_bytes_s": [round(48e6 * dice.random()) if one else 0 for one in active],
        "written_bytes_s": [round(9e6) if i % 18 == 17 else 0 for i in range(count)],
        "gpu_memory_bytes": [round(8.5e9) if one else round(0.6e9) for one in active],
        "gpu_power_w": [round(120 + 420 * one, 1) for one in active],
        "gpu_clock_mhz": [1980.0 if one else 345.0 for one in active],
        "gpu_pcie_received_bytes_s": [round(2e9 * one) for one in active],
        "gpu_pcie_sent_bytes_s": [round(1e7 * one) for one in active],
    }  # fmt: skip


def timeline(start=20.0, steps=24, compute=0.033, wait=0.047, cause="input/transform", workers=4):
    """Some steps: the GPU, its copies, the loop, the idle pieces, the workers."""
    gpu, copies, loop, idle = [], [], [], []
    now = start
    for _ in range(steps):
        loop.append([now, now + wait, "next()"])
        idle.append([now, now + wait - 0.004, cause])
        idle.append([now + wait - 0.004, now + wait, "copy"])
        copies.append([now + wait - 0.004, now + wait, "to the device"])
        at = now + wait
        for name, share in (("forward", 0.4), ("backward", 0.5), ("optimizer", 0.1)):
            loop.append([at, at + share * compute, name])
            at += share * compute
        gpu += [
            [now + wait + i * compute / 12, now + wait + (i + 0.97) * compute / 12, f"kernel<{i}>"]
            for i in range(12)
        ]
        now += wait + compute
    lanes = [
        {"name": "GPU, stream 7", "slices": gpu},
        {"name": "copies", "slices": copies},
        {"name": "idle", "slices": idle},
        {"name": "main thread", "slices": loop},
    ]
    length = (now - start) / 8
    for worker in range(workers):
        slices = []
        for i in range(8):
            at = start + length * (i + worker / workers / 2)
            slices.append([at, at + 0.9 * length, "fetch"])
            slices.append([at + 0.9 * length, at + 0.94 * length, "collate"])
        lanes.append({"name": f"worker {worker}", "slices": slices})
    for lane in lanes:
        lane["slices"] = [[round(a, 6), round(b, 6), name] for a, b, name in lane["slices"]]
    return {"start_s": start, "end_s": round(now, 6), "lanes": lanes}


SNIPPET = """import stoker

loader = stoker.Loader("photos/", batch_size=32, shuffle=True, seed=0)
for batch in loader:
    x, y = batch["jpg"], batch["cls"]
"""


def verdict(gain=2.2):
    return {
        "bound": "input",
        "cause": "input/transform",
        "words": "The GPU waits for its input 52 % of the time, mostly for blur() in filters.py.",
        "why": "Four workers need 3.1 s of CPU for what the GPU computes in 1 s",
        "sure": "high",
        "sure_why": "every kernel was recorded, and 2 % of the idle time has no cause",
        "gain_bound": gain,
        "gain_is": "estimated",
        "advice": [
            {
                "rule": "move-function",
                "do": "Move blur() of data/filters.py to the GPU, or vectorise it",
                "why": "It takes 72 % of the workers' time",
                "snippet": None,
                "gain": 1.9,
                "gain_is": "estimated",
            },
            {
                "rule": "use-stoker",
                "do": "Load with Stoker",
                "why": "40,000 small files are opened one by one, once an epoch",
                "snippet": SNIPPET,
                "gain": 1.7,
                "gain_is": "estimated",
            },
            {
                "rule": "pin-memory",
                "do": "Set pin_memory=True and copy with non_blocking=True",
                "why": "19 GB were copied from pageable memory while the GPU waited",
                "snippet": "DataLoader(..., pin_memory=True)\nx = x.to(device, non_blocking=True)",
                "gain": 1.04,
                "gain_is": "estimated",
            },
        ],
        "against": [
            {"rule": "more-workers", "do": "More workers", "why": "All 4 CPUs are in use already"}
        ],
    }  # fmt: skip


LOADER = {
    "id": 1, "rank": None, "kind": "torch", "class": "DataLoader", "dataset": "Photos",
    "collate": "default_collate", "file": "train.py", "line": 44, "batch_size": 32, "workers": 4,
    "prefetch_factor": 2, "pin_memory": False, "persistent_workers": False, "in_order": True,
    "samples": 6400, "batches": 200, "epochs": 5, "handed_out": 1000, "starts": 5, "next_s": 47.2,
    "start_s": 1.9, "fetch_s": 168.2, "fetch_cpu_s": 150.1, "collate_s": 6.2, "send_s": 1.1,
    "idle_s": 0.4, "pin_s": 0.0, "fetch_max_s": 0.41, "fetch_median_s": 0.166,
    "batch_bytes": 19267584,
    "files": {"opens": 32000, "distinct": 6400, "bytes": 2831155200, "folder": "photos",
              "extension": ".jpg"},
}  # fmt: skip


def processes(workers=4):
    made = [("main", None, 60.2, 1.1, 41943040)]
    made += [("worker", number, 44.1 - number, 3.2, 566231040) for number in range(workers)]
    return [
        {
            "pid": 4711 + place,
            "role": role,
            "name": "python train.py",
            "rank": None,
            "worker": worker,
            "cpu_s": cpu,
            "run_delay_s": delay,
            "io_wait_s": 2.4 if role == "worker" else None,
            "read_bytes": read,
            "written_bytes": 4096,
            "read_calls_bytes": 3 * read,
            "write_calls_bytes": 81920,
            "minor_faults": 231400,
            "major_faults": 12,
            "max_rss_bytes": 891289600,
        }
        for place, (role, worker, cpu, delay, read) in enumerate(made)
    ]


def threads():
    made = [(4711, 4711, "python"), (4711, 4790, "pt_data_pin"), (4712, 4712, "pt_data_worker")]
    made.append((4999, 5000, "late"))  # of a process that is told no more
    return [
        {"pid": pid, "thread": thread, "name": name, "cpu_s": 44.5 - place, "run_delay_s": 0.75}
        for place, (pid, thread, name) in enumerate(made)
    ]


def gpu_run(busy=0.412, epoch=17.76, shares=None):
    """A run on a GPU that waits for its input."""
    shares = shares or {"input/transform": 0.76, "input/fetch": 0.12, "copy": 0.08, "sync": 0.04}
    row = rank(busy=busy, epoch=epoch, shares=shares)
    wall = round(row["end_s"] + 1.1, 6)
    return {
        "stoker_run": 1,
        "stoker": "0.1.0",
        "command": ["python", "train.py", "--epochs", "5", "--api-key", "***"],
        "started": "2026-11-15T18:00:00Z",
        "wall_s": wall,
        "exit": {"status": 0, "signal": None},
        "machine": {
            "cpus": 4, "memory_bytes": 25769803776, "kernel": "6.1.0", "gpu": "NVIDIA H200",
            "driver": "580.159.04", "cupti": "13.0", "python": "3.11.7", "torch": "2.13.0",
        },
        "mode": "gpu",
        "reliable": True,
        "unreliable": [],
        "notices": [],
        "ranks": [row],
        "causes": copy.deepcopy(row["causes"]),
        "slowest_rank": None,
        "gaps": {
            "count": 12345,
            "longest": [
                {"start_s": 3.21, "seconds": 1.31, "cause": "input/transform", "rank": None},
                {"start_s": 20.96, "seconds": 0.44, "cause": "input/fetch", "rank": None},
            ],
            "sizes": [
                {"upto_s": 0.001, "count": 9000, "seconds": 2.1},
                {"upto_s": None, "count": 3345, "seconds": 50.1},
            ],
        },
        "functions": functions(row["idle_s"], row["compute_s"]),
        "loaders": [copy.deepcopy(LOADER)],
        "series": series(wall, busy),
        "timeline": timeline(compute=0.08 * busy, wait=0.08 * (1 - busy)),
        "processes": processes(),
        "threads": threads(),
        "devices": [
            {
                "device": 0,
                "pcie_received_bytes_s": {"mean": 1.21e9, "peak": 5.4e9},
                "pcie_sent_bytes_s": {"mean": None, "peak": None},
            }
        ],
        "machine_io": {
            "disk_read_bytes": 3221225472, "disk_written_bytes": 41943040,
            "network_received_bytes": 734003, "network_sent_bytes": 91750,
        },
        "watching": {
            "records": 1203441, "lost": 0, "stacks_hz": 99.2, "cpu_s": 0.81, "rss_bytes": 41943040,
        },
        "cpu": {"own": 0.93, "foreign": 0.02},
        "throttle": [],
        "what_if": None,
        "verdict": verdict(),
    }  # fmt: skip


def after_run():
    """The same, put right."""
    run = gpu_run(
        busy=0.931, epoch=7.86, shares={"launch": 0.55, "input/transform": 0.3, "other": 0.15}
    )
    run["verdict"] |= {
        "bound": "compute", "cause": None, "advice": [], "against": [], "gain_bound": 1.07,
        "words": "The GPU is busy 93 % of the time: the input keeps up.",
        "why": "The GPU computes nearly all of the time",
    }  # fmt: skip
    run["what_if"] = {
        "wall_s": 38.1, "steps": 1000, "step_median_s": 0.0372, "samples_s": 858.0, "busy": 0.97,
        "gain": 1.05,
    }  # fmt: skip
    return run


def cpu_run():
    """A run without a GPU."""
    run = gpu_run(busy=0.55)
    run["mode"] = "cpu"
    run["machine"] |= {"gpu": None, "driver": None, "cupti": None}
    for name in [name for name in run["series"] if name == "copy" or name.startswith("gpu_")]:
        del run["series"][name]
    run["devices"] = []
    run["timeline"]["lanes"] = run["timeline"]["lanes"][2:]
    run["ranks"][0]["device"] = None
    return run


def two_ranks():
    run = gpu_run()
    shares = {"rank": 0.7, "input/transform": 0.3}
    run["ranks"] = [
        rank(0, busy=0.5, shares=shares),
        rank(1, busy=0.61, shares={"input/transform": 0.8, "sync": 0.2}),
    ]
    run["causes"] = causes(
        run["ranks"][0]["idle_s"] + run["ranks"][1]["idle_s"],
        {"input/transform": 0.52, "rank": 0.4, "sync": 0.08},
    )
    run["slowest_rank"] = {"rank": 1, "words": "Rank 1 is the slowest: the other one waits for it."}
    return run


def unreliable_run():
    run = gpu_run()
    run["reliable"] = False
    run["unreliable"] = [
        "CUPTI dropped 12,000 records",
        "CUDA graphs were launched 4,000 times without records of their kernels",
    ]
    run["verdict"] = {**verdict(), "bound": "unknown", "cause": None, "words": "", "advice": []}
    run["exit"] = {"status": None, "signal": 9}
    return run


def sampled_run():
    run = gpu_run()
    run["mode"] = "sampled"
    run["notices"] = ["CUPTI was not found: NVML's samples stand in for it"]
    run["series"]["gpu_nvml"] = run["series"].pop("compute")
    run["timeline"] = None
    return run


def nothing_seen():
    """`stoker run -- true`"""
    return {
        "stoker_run": 1, "stoker": "0.1.0", "command": ["true"], "wall_s": 0.01,
        "started": "2026-11-15T18:00:00Z", "exit": {"status": 0, "signal": None},
        "machine": {"cpus": 2, "memory_bytes": 1 << 33, "kernel": "6.1.0", "gpu": None},
        "mode": "nothing", "reliable": True, "unreliable": [], "notices": [], "ranks": [],
        "causes": [], "slowest_rank": None, "gaps": {"count": 0, "longest": [], "sizes": []},
        "functions": {"main": None, "workers": None}, "loaders": [], "series": {"bin_s": 1.0},
        "timeline": {"start_s": 0.0, "end_s": 0.0, "lanes": []}, "processes": [],
        "watching": {"records": 0, "lost": 0, "stacks_hz": 0, "cpu_s": 0.0, "rss_bytes": 0},
        "cpu": {"own": 0.0, "foreign": 0.0}, "throttle": [], "what_if": None,
        "verdict": {
            "bound": "unknown", "cause": None, "words": "", "why": "", "sure": "low",
            "sure_why": "", "gain_bound": 1.0, "gain_is": "estimated", "advice": [], "against": [],
        },
    }  # fmt: skip


NASTY = "</script><script>document.documentElement.dataset.stolen=1</script>\"'`${1}<b>&amp;$x$%{y}"


def nasty_run():
    """Text that would like to be something else, wherever there is text."""
    run = gpu_run()

    def spoil(value, key=""):
        if isinstance(value, dict):
            return {name: spoil(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [spoil(one, key) for one in value]
        kept = ("mode", "stoker", "cause", "bound", "rule")
        return value + NASTY if isinstance(value, str) and key not in kept else value

    return spoil(run)


EXAMPLES = {
    "gpu": gpu_run,
    "after": after_run,
    "cpu": cpu_run,
    "two_ranks": two_ranks,
    "unreliable": unreliable_run,
    "sampled": sampled_run,
    "nothing": nothing_seen,
    "nasty": nasty_run,
}


def write_run(path, run):
    path.write_text(json.dumps(run))
    return path
