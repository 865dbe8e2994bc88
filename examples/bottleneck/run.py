#!/usr/bin/env python3
"""The whole example: makes the data, watches the slow and the fast training, writes the report.

python run.py                                 data/bottleneck, build/bottleneck
python run.py --data DIR --out DIR --all      with the steps in between
"""

import argparse
import importlib.util
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

import stoker.report
import torch
from gen import BYTES, SCALES, generate

HERE = pathlib.Path(__file__).resolve().parent
PIPELINES = ("slow", "workers", "filter", "stoker")
EMULATED = (
    "The accelerator was emulated: a step of known length, in which nothing is computed, stands "
    "for what a GPU would do."
)


def watch(pipeline, pictures, options):
    """Trains under `stoker run`; returns the run file."""
    run, trace = (options.out / f"{pipeline}{end}.json" for end in ("", "-trace"))
    _call(
        *(sys.executable, "-m", "stoker", "run", "--json", run, "--trace", trace, "--"),
        *_train(pipeline, pictures, options, "--epochs", options.epochs),
    )
    return run


def profile(pipeline, pictures, options):
    """A few steps more under torch.profiler, so that its trace can be laid beside ours."""
    trace = options.out / f"{pipeline}-torch-trace.json"
    _call(*_train(pipeline, pictures, options, "--torch-trace", trace))


def _train(pipeline, pictures, options, *more):
    words = ["--data", pictures, "--pipeline", pipeline, "--device", options.device]
    return [sys.executable, HERE / "train.py", *words, *more]


def _call(*words):
    words = [str(word) for word in words]
    print(f"\n$ {' '.join(words)}", flush=True)
    if subprocess.run(words).returncode:
        raise SystemExit(f"failed: {' '.join(words)}")


def draw(runs, options):
    """The report, as a page and as Markdown. Pictures need plotly and matplotlib; where they are
    missing, the run files can be drawn on another machine."""
    for name, library in ("report.html", "plotly"), ("report.md", "matplotlib"):
        if importlib.util.find_spec(library):
            note = None if options.device == "cuda" else EMULATED
            stoker.report.make(runs, options.out / name, note=note)
        else:
            print(f"{name}: {library} is not installed; elsewhere: stoker report {_names(runs)}")


def _names(runs):
    return " ".join(run.name for run in runs) + " -o report.html"


def read_row(pipeline, run):
    """What one run was like, from its run file."""
    rank = run["ranks"][0]
    epochs = [epoch["end_s"] - epoch["start_s"] for epoch in rank["epochs"]]
    first = run["causes"][0] if run["causes"] else None
    return {
        "pipeline": pipeline,
        "mode": run["mode"],
        "epoch_s": statistics.mean(epochs),
        "busy": rank["busy"]["compute"],
        "samples_s": rank["samples_s"],
        "waits_for": f"{first['words']} ({first['share']:.0%} of idle)" if first else "nothing",
    }


def print_table(rows, options):
    kind = "GPU" if options.device == "cuda" else "emulated accelerator"
    print(
        f"\n{'pipeline':<10}{'epoch':>9}{'busy':>8}{'samples/s':>11}{'shorter by':>12}  waits for"
    )
    for row in rows:
        less = 1 - row["epoch_s"] / rows[0]["epoch_s"]
        print(
            f"{row['pipeline']:<10}{row['epoch_s']:>7.2f} s{row['busy']:>8.1%}"
            f"{row['samples_s']:>11,.0f}{less:>12.0%}  {row['waits_for']}"
        )
    print(f"busy: how much of the time the {kind} computed")


def main():
    options = _arguments()
    begun = time.perf_counter()
    for folder in options.data, options.out:
        folder.mkdir(parents=True, exist_ok=True)
    count = SCALES[options.scale]
    print(f"{count:,} files, {count * BYTES / 1e9:.2f} GB, in {options.data}")
    pictures = generate(options.data, options.scale)
    pipelines = PIPELINES if options.all else ("slow", "stoker")
    runs = [watch(pipeline, pictures, options) for pipeline in pipelines]
    for pipeline in pipelines:
        profile(pipeline, pictures, options)
    draw(runs, options)
    rows = [
        read_row(name, json.loads(run.read_text()))
        for name, run in zip(pipelines, runs, strict=True)
    ]
    print_table(rows, options)
    (options.out / "table.json").write_text(json.dumps(rows, indent=1) + "\n")
    print(
        f"in {options.out}: report, run files, traces; {time.perf_counter() - begun:.0f} s in all"
    )


def _arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=pathlib.Path, default="data/bottleneck")
    parser.add_argument("--out", type=pathlib.Path, default="build/bottleneck")
    parser.add_argument(
        "--scale",
        choices=["auto", *SCALES],
        default="auto",
        help="how many files: 20,000 (full), 1,600 (small), 96 (tiny); auto: full with a GPU",
    )
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--all", action="store_true", help="the steps in between, too")
    options = parser.parse_args()
    if options.device == "auto":
        options.device = "cuda" if torch.cuda.is_available() else "cpu"
    if options.scale == "auto":
        options.scale = _scale(options)
    return options


def _scale(options):
    """All of it where it pays: with a GPU, some CPUs, and room for the files."""
    folder = options.data.resolve()
    while not folder.exists():
        folder = folder.parent
    room = shutil.disk_usage(folder).free
    is_large = options.device == "cuda" and len(os.sched_getaffinity(0)) >= 8
    return "full" if is_large and room > 8 << 30 else "small"


if __name__ == "__main__":
    main()
