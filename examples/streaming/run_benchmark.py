#!/usr/bin/env python3
"""Phase 3, downstream: the naive loader, WebDataset and Stoker over the same samples.

    python run_benchmark.py --data data/streaming              each side runs long enough to measure
    python run_benchmark.py --data data/streaming --loops 500  the stress test: 500 epochs a side
    python run_benchmark.py --draw                             the pictures again, of the results

Each side warms up for one epoch and is then timed in rounds, the sides taking turns; the median
counts. All sides shuffle and hand over a whole batch as one tensor; on a GPU the batch is then
copied to it (Stoker's is there already), on a CPU one byte of every memory page is read.

With a GPU, the 3D-CNN of training.py then learns for a few seconds from the naive side and from
Stoker, and a second picture shows how busy the GPU is meanwhile.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import time
import warnings

import numpy
import torch
from data_engine import get_loader
from gpu_watch import Watch
from torch.utils.data import DataLoader, Dataset, default_collate
from training import make_model, train_epoch

WORKERS = (0, 2, 4)
warnings.filterwarnings("ignore", "This DataLoader will create")  # 4 workers on 2 cores: on purpose


class LooseFiles(Dataset):
    """The naive way: a file a sample, opened and closed each time."""

    def __init__(self, folder):
        self.paths = sorted(pathlib.Path(folder).glob("*.npy"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, number):
        path = self.paths[number]
        return torch.from_numpy(numpy.load(path)), int(path.with_suffix(".cls").read_text())


def naive(data, batch_size, workers):
    return DataLoader(
        LooseFiles(data / "loose"),
        batch_size=batch_size,
        shuffle=True,
        num_workers=workers,
        persistent_workers=workers > 0,
    )


def sharded(data, batch_size, workers):
    import webdataset

    shards = [str(path) for path in sorted((data / "shards").glob("*.tar"))]
    dataset = (
        webdataset.WebDataset(shards, shardshuffle=len(shards), empty_check=False)
        .shuffle(100)
        .decode()
        .to_tuple("npy", "cls")
        .batched(batch_size, collation_fn=default_collate)
    )
    return webdataset.WebLoader(
        dataset, batch_size=None, num_workers=workers, persistent_workers=workers > 0
    )


class Side:
    """One way to load: runs epochs and keeps samples per second."""

    def __init__(self, name, loader, device, workers=None):
        self.name, self.loader, self.device, self.workers = name, loader, device, workers
        self.rates, self.gigabytes = [], []

    def epoch(self):
        samples = size = 0
        for x, y in self.loader:
            if self.device.type == "cpu":
                x.view(torch.uint8).view(-1)[::4096].sum(dtype=torch.int64)
            else:
                x, y = x.to(self.device), y.to(self.device)
            samples += len(y)
            size += x.nbytes
        return samples, size

    def measure(self, seconds, loops=None):
        """Epochs for so many seconds, or exactly so many of them; returns samples per second."""
        samples = size = epochs = 0
        start = time.perf_counter()
        while epochs < loops if loops else time.perf_counter() - start < seconds:
            got = self.epoch()
            samples, size, epochs = samples + got[0], size + got[1], epochs + 1
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        took = time.perf_counter() - start
        self.rates.append(samples / took)
        self.gigabytes.append(size / took / 1e9)
        return samples / took


def best_workers(name, make, data, batch_size, device, seconds):
    """The side with the number of worker processes that suits it best on this machine."""
    best = None
    for workers in WORKERS:
        side = Side(name, make(data, batch_size, workers), device, workers)
        side.epoch()
        rate = side.measure(seconds)
        print(f"  {name}, {workers} workers: {rate:,.0f} samples/s", flush=True)
        side.rates.clear()
        side.gigabytes.clear()
        if best is None or rate > best[0]:
            best = (rate, side)
    return best[1]


def benchmark(data, batch_size=32, seconds=3.0, loops=None, rounds=3, device=None):
    """Measures the three sides; returns the result that is written as JSON."""
    data = pathlib.Path(data)
    device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    trial = min(1.0, seconds)
    stoker = Side("Stoker", get_loader(str(data / "shards"), batch_size, device=device), device)
    sides = [best_workers("naive", naive, data, batch_size, device, trial)]
    if importlib.util.find_spec("webdataset"):
        sides.append(best_workers("WebDataset", sharded, data, batch_size, device, trial))
    else:
        print("  WebDataset is not installed: it is left out")
    sides.append(stoker)
    stoker.epoch()
    for number in range(1 if loops else rounds):
        for side in sides:
            rate = side.measure(seconds / rounds, loops)
            print(f"  round {number + 1}, {side.name}: {rate:,.0f} samples/s", flush=True)
    rows = [
        {
            "name": side.name,
            "value": statistics.median(side.rates),
            "unit": "samples/s",
            "runs": side.rates,
            "gigabytes_per_s": statistics.median(side.gigabytes),
            "workers": side.workers,
        }
        for side in sides
    ]
    result = {
        "bench": "demo",
        "version": 1,
        "machine": {
            "cpu": cpu_name(),
            "cores": len(os.sched_getaffinity(0)),
            "device": str(device),
        },
        "workload": {"batch_size": batch_size, "loops": loops, "cache": "warm"},
        "rows": rows,
        "ratios": {f"Stoker/{row['name']}": rows[-1]["value"] / row["value"] for row in rows[:-1]},
    }
    if device.type == "cuda":
        result["training"] = [watch_training(side, seconds / rounds) for side in (sides[0], stoker)]
    return result


def batches_for(side, seconds):
    """Batches of epoch after epoch, on the side's device, until the time is over."""
    until = time.perf_counter() + seconds
    while True:
        for x, y in side.loader:
            if time.perf_counter() > until:
                return
            yield x.to(side.device, non_blocking=True), y.to(side.device, non_blocking=True)


def watch_training(side, seconds):
    """The 3D-CNN learns from this side; how busy the GPU is meanwhile."""
    classes = 1 + max(int(y.max()) for _, y in side.loader)
    model = make_model(classes).to(side.device)
    optimizer = torch.optim.Adam(model.parameters())
    train_epoch(model, batches_for(side, min(1.0, seconds)), optimizer)
    with Watch(side.device) as watch:
        start = time.perf_counter()
        _, samples = train_epoch(model, batches_for(side, seconds), optimizer)
        took = time.perf_counter() - start
    busy = "" if watch.busy is None else f", GPU busy {watch.busy:.1%}"
    print(f"  training from {side.name}: {samples / took:,.0f} samples/s{busy}", flush=True)
    row = {"name": side.name, "samples_per_s": samples / took, "workers": side.workers}
    return {**row, "gpu_busy": watch.busy, "busy_by": watch.how, "curve": watch.curve}


def cpu_name():
    with open("/proc/cpuinfo") as lines:
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else os.uname().machine


def describe(row):
    """naive and WebDataset have workers; Stoker has none."""
    if row["workers"] is None:
        return "threads of its own"
    return f"{row['workers']} workers" if row["workers"] else "no workers"


def table(result):
    first = result["rows"][0]["value"]
    lines = [f"{'loader':<12}{'samples/s':>12}{'GB/s':>8}{'speed-up':>10}   best of 0/2/4 workers"]
    for row in result["rows"]:
        lines.append(
            f"{row['name']:<12}{row['value']:>12,.0f}{row['gigabytes_per_s']:>8.2f}"
            f"{row['value'] / first:>9.1f}x   {describe(row)}"
        )
    return "\n".join(lines)


def outcome(result):
    """The sentence that the numbers speak for."""
    rates = {row["name"]: row["value"] for row in result["rows"]}
    plain, stoker = rates["naive"], rates["Stoker"]
    machine = result["machine"]
    words = (
        f"By streaming sharded data through Stoker, I raised the data throughput of this machine "
        f"({machine['cpu']}, {machine['cores']} cores, {machine['device']}) from {plain:,.0f} "
        f"samples/sec to {stoker:,.0f} samples/sec. This is a {stoker / plain:.1f}x net increase "
        f"in data loading speed over one file a sample"
    )
    if "WebDataset" in rates:
        words += f", and {stoker / rates['WebDataset']:.1f}x over WebDataset"
    return words + "."


def pictures(result, folder):
    """Draws what there is to draw, where matplotlib is installed; the files that it wrote."""
    if not importlib.util.find_spec("matplotlib"):
        print("matplotlib is not installed: draw the pictures elsewhere, with --draw")
        return []
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plot

    drawn = [folder / "demo-benchmark.png"]
    chart(plot, result, drawn[0])
    if any(row["curve"] for row in result.get("training", ())):
        drawn.append(folder / "demo-gpu-busy.png")
        busy_chart(plot, result, drawn[1])
    return drawn


def busy_chart(plot, result, path):
    """How busy the GPU is over time: the naive side above, Stoker below."""
    rows = [row for row in result["training"] if row["curve"]]
    size = (9, 1.6 + 1.6 * len(rows))
    figure, panels = plot.subplots(
        len(rows), sharex=True, squeeze=False, figsize=size, layout="constrained"
    )
    for axes, row, color in zip(panels[:, 0], rows, ("#8d96a3", "#d1495b"), strict=False):
        times, shares = zip(*row["curve"], strict=True)
        axes.fill_between(times, [100 * share for share in shares], color=color, step="post")
        axes.set_title(
            f"{row['name']} ({describe(row)}): GPU busy {row['gpu_busy']:.0%}, "
            f"{row['samples_per_s']:,.0f} samples/s",
            loc="left",
            fontsize=11,
        )
        axes.set_ylim(0, 100)
        axes.set_ylabel("busy %")
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1, 0].set_xlabel("seconds of training the 3D-CNN")
    figure.savefig(path, dpi=150)
    plot.close(figure)


def chart(plot, result, path):
    """A bar for each loader."""
    rows = result["rows"][::-1]
    names = [f"{row['name']}\n({describe(row)})" for row in rows]
    rates = [row["value"] for row in rows]
    figure, axes = plot.subplots(figsize=(9, 3.6), layout="constrained")
    colors = ["#d1495b", "#8d96a3", "#c3c9d1"][: len(rows)]
    bars = axes.barh(names, rates, color=colors, height=0.6)
    plain = result["rows"][0]["value"]
    labels = [f"{rate:,.0f} samples/s   {rate / plain:.1f}x" for rate in rates]
    axes.bar_label(bars, labels, padding=6, fontsize=11)
    axes.set_xlim(0, max(rates) * 1.32)
    axes.set_xlabel("samples per second (more is better)")
    machine = result["machine"]
    axes.set_title(
        f"Loading shuffled batches of {result['workload']['batch_size']}, page cache warm\n"
        f"{machine['cpu']}, {machine['cores']} cores, to {machine['device']}",
        loc="left",
        fontsize=11,
    )
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    figure.savefig(path, dpi=150)
    plot.close(figure)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="data/streaming", help="folder made by prep_data.py")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=9.0, help="a side, in 3 rounds (9)")
    parser.add_argument("--loops", type=int, help="epochs a side instead, such as 500")
    parser.add_argument("--device", help="cuda where torch has it, else cpu")
    parser.add_argument("--results", type=pathlib.Path, default="results", help="folder (results)")
    parser.add_argument("--draw", action="store_true", help="only draw what was measured before")
    arguments = parser.parse_args()
    kept = arguments.results / "demo-benchmark.json"
    if arguments.draw:
        print("written:", *pictures(json.loads(kept.read_text()), arguments.results))
        return
    if not (pathlib.Path(arguments.data) / "loose").is_dir():
        raise SystemExit(
            f"{arguments.data}: nothing there; run prep_data.py --out {arguments.data}"
        )
    result = benchmark(
        arguments.data,
        arguments.batch_size,
        arguments.seconds,
        arguments.loops,
        device=arguments.device,
    )
    arguments.results.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(result, indent=1) + "\n")
    drawn = pictures(result, arguments.results)
    print(f"\n{table(result)}\n\n{outcome(result)}\n")
    print("written:", kept, *drawn)


if __name__ == "__main__":
    main()
