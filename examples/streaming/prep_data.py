#!/usr/bin/env python3
"""Phase 1, upstream: synthetic float16 tensors in tar shards, their loose twins, metadata.parquet.

python prep_data.py --out data/streaming
ls data/streaming/shards data/streaming/loose
"""

import argparse
import math
import pathlib
import shutil
import subprocess
import sys


def prepare(out, shards=10, samples=1000, shape=(16, 112, 112, 3), classes=10, seed=0):
    """Writes the data set; returns the folders of the shards and of the loose files."""
    out = pathlib.Path(out)
    shard_folder, loose_folder = out / "shards", out / "loose"
    check_disk(out, 2 * samples * (math.prod(shape) * 2 + 2048))
    for folder in shard_folder, loose_folder:
        shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "stoker", "gen", "tensors", "-o", shard_folder]
    command += ["--loose", loose_folder, "--shards", shards, "--samples", samples]
    command += ["--shape", ",".join(map(str, shape)), "--dtype", "f16"]
    command += ["--classes", classes, "--seed", seed]
    subprocess.run([str(word) for word in command], check=True)
    return shard_folder, loose_folder


def check_disk(folder, needed):
    """Stops when the disk is too small; says how much is needed."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < needed * 1.1:
        raise SystemExit(
            f"{folder}: {needed / 1e9:.1f} GB are needed and {free / 1e9:.1f} GB are free; "
            "choose another --out, or fewer --samples"
        )


def parse_shape(text):
    return tuple(int(size) for size in text.split(","))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", default="data/streaming", help="folder (data/streaming)")
    parser.add_argument("--shards", type=int, default=10)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument(
        "--shape", type=parse_shape, default=(16, 112, 112, 3), help="T,H,W,C (16,112,112,3)"
    )
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    prepare(**vars(arguments))


if __name__ == "__main__":
    main()
