#!/usr/bin/env python3
"""Makes the pictures: one small file each, a folder a class, as data sets come.

python gen.py --data data/bottleneck                  20,000 files, 2.2 GB
python gen.py --data data/bottleneck --scale small    1,600 files, 177 MB
"""

import argparse
import json
import os
import pathlib
import shutil
from concurrent.futures import ProcessPoolExecutor

import numpy

SCALES = {"full": 20_000, "small": 1_600, "tiny": 96}
CLASSES = 10
SHAPE = (3, 192, 192)  # 110,592 bytes of pixels
BYTES = 3 * 192 * 192 + 128


def write_pictures(folder, numbers):
    """A class is a direction of stripes; noise hides them a little."""
    y, x = numpy.mgrid[: SHAPE[1], : SHAPE[2]]
    for number in numbers:
        label = number % CLASSES
        random = numpy.random.default_rng(number)
        angle = numpy.pi * label / CLASSES
        stripes = numpy.sin(
            (x * numpy.cos(angle) + y * numpy.sin(angle)) / 4 + random.uniform(0, 6)
        )
        noise = random.integers(0, 96, SHAPE, numpy.uint8)
        picture = (noise + (stripes * 60 + 70).astype(numpy.uint8)).astype(numpy.uint8)
        numpy.save(folder / f"class-{label}" / f"{number:06d}.npy", picture)


def generate(data, scale):
    """Writes the set, unless it is there already. Returns the folder of the pictures."""
    count, note = SCALES[scale], data / "made.json"
    wanted = {"files": count, "bytes": count * BYTES}
    if note.exists() and json.loads(note.read_text()) == wanted:
        return data / "pictures"
    folder = data / "pictures"
    shutil.rmtree(folder, ignore_errors=True)
    for label in range(CLASSES):
        (folder / f"class-{label}").mkdir(parents=True)
    free = shutil.disk_usage(data).free
    if free < 1.1 * wanted["bytes"]:
        raise SystemExit(f"{data}: {wanted['bytes']:,} bytes are needed, {free:,} are free")
    parts = [range(first, min(first + 100, count)) for first in range(0, count, 100)]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(write_pictures, [folder] * len(parts), parts))
    note.write_text(json.dumps(wanted))
    return folder


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=pathlib.Path, default="data/bottleneck")
    parser.add_argument("--scale", choices=SCALES, default="full")
    options = parser.parse_args()
    options.data.mkdir(parents=True, exist_ok=True)
    folder = generate(options.data, options.scale)
    count = SCALES[options.scale]
    print(f"{folder}: {count:,} files, {count * BYTES / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
