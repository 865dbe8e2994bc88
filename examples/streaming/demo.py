#!/usr/bin/env python3
"""The four phases, one after the other: make data, look at a batch, race the loaders, train.

python demo.py                       needs no GPU and no network; 2.5 GB of disk
python demo.py --samples 200 --seconds 2
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


def phase(title, script, *arguments):
    """Runs one script as a user would, and shows the line to type."""
    words = [str(word) for word in arguments]
    print(f"\n== {title}\n$ python {script} {' '.join(words)}", flush=True)
    done = subprocess.run([sys.executable, str(HERE / script), *words])
    if done.returncode:
        raise SystemExit(f"{script} failed")


def judge(training):
    """Held-out accuracy must be far above guessing; returns it."""
    reached = training["epochs"][-1]["held_out_accuracy"]
    chance = 1 / training["classes"]
    if reached < chance + (1 - chance) / 3:
        raise SystemExit(f"held-out accuracy is {reached:.1%}, and guessing gives {chance:.1%}")
    return reached, chance


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", default="data/streaming", help="folder for data (data/streaming)")
    parser.add_argument("--results", default="results", help="folder for results (results)")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--shape", default="16,112,112,3", help="T,H,W,C (16,112,112,3)")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=9.0, help="to measure each loader for (9)")
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()
    start = time.perf_counter()
    shards = f"{options.work}/shards"
    to = ("--results", options.results)
    classes = ("--classes", options.classes)
    wanted = ("--samples", options.samples, "--shape", options.shape, *classes)
    phase("1. upstream: shards", "prep_data.py", "--out", options.work, *wanted)
    phase("2. midstream: the engine", "data_engine.py", "--data", shards)
    seconds = ("--seconds", options.seconds)
    phase("3. downstream: the race", "run_benchmark.py", "--data", options.work, *seconds, *to)
    epochs = ("--epochs", options.epochs)
    phase("4. integration: training", "training.py", "--data", shards, *classes, *epochs, *to)

    results = pathlib.Path(options.results)
    race = json.loads((results / "demo-benchmark.json").read_text())
    training = json.loads((results / "demo-training.json").read_text())
    reached, chance = judge(training)
    print(f"\n== Summary, after {time.perf_counter() - start:.0f} s")
    for row in race["rows"]:
        print(f"{row['name']:<12}{row['value']:>10,.0f} samples/s")
    for name, ratio in race["ratios"].items():
        print(f"{name:<20}{ratio:>6.1f}x")
    print(f"3D-CNN: held-out accuracy {reached:.1%} (guessing: {chance:.1%})")
    for row in race.get("training", ()):
        busy = "" if row["gpu_busy"] is None else f", GPU busy {row['gpu_busy']:.0%}"
        print(f"trained from {row['name']}: {row['samples_per_s']:,.0f} samples/s{busy}")
    if "share_of_bound" in training:
        print(f"3D-CNN: {training['share_of_bound']:.0%} of what batches on the GPU would give")
    for picture in sorted(results.glob("demo-*.png")):
        print(f"chart: {picture}")


if __name__ == "__main__":
    main()
