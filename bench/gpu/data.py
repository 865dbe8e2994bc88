"""The data sets of the GPU benchmarks. Each is made once and kept as long as its folder."""

import io
import json
import os
import pathlib
import tarfile
from concurrent.futures import ProcessPoolExecutor

import numpy

from bench import machine, media_data, series_data, shards

CTHW, THWC = (3, 16, 112, 112), (16, 112, 112, 3)
SAMPLE_BYTES = 2 * 3 * 16 * 112 * 112
SHARDS = 20


def tensors(samples, shape=CTHW):
    """Shards of f16 tensors and their classes by `stoker gen`; of CTHW also loose files."""
    loose = shape == CTHW

    def make(path):
        from stoker.__main__ import main

        words = ["gen", "tensors", "-o", str(path / "shards"), "--shards", str(SHARDS), "--force"]
        words += ["--samples", str(samples), "--shape", ",".join(map(str, shape)), "--dtype", "f16"]
        words += ["--loose", str(path / "loose")] if loose else []
        if main(words):
            raise RuntimeError("stoker gen failed")
        _write_extents(path)
        os.sync()  # else it is written to the disk while we measure
        return {"bytes": samples * SAMPLE_BYTES}

    name = f"gpu-{samples}-" + "x".join(map(str, shape))
    return shards.folder(name, make, samples=samples, shape=list(shape))


def _write_extents(path):
    """Where the samples' bytes lie in the shards: for bench/limit_pread.c."""
    with open(path / "extents.txt", "w") as out:
        for shard in sorted((path / "shards").glob("*.tar")):
            with tarfile.open(shard, "r:") as tar:
                for member in tar:
                    if member.name.endswith(".npy"):
                        skip = member.size - SAMPLE_BYTES
                        where = member.offset_data + skip
                        out.write(f"{where} {SAMPLE_BYTES} shards/{shard.name}\n")


def series(entities, rows):
    """The array of bench/windows.py; its folder has `series` below it."""
    return series_data.array(entities, rows)


def images(samples, distinct, width=500, height=375):
    """Shards of JPEGs and their classes, in which `distinct` images take turns; those as files."""

    def make(path):
        encoded = _encode(distinct, width, height)
        (path / "files").mkdir()
        for number, data in enumerate(encoded):
            (path / "files" / f"{number:06d}.jpg").write_bytes(data)
        for shard in range(SHARDS):
            name = path / f"jpg-{shard:04d}.tar"
            with tarfile.open(name, "w", format=tarfile.USTAR_FORMAT) as tar:
                for number in range(shard * samples // SHARDS, (shard + 1) * samples // SHARDS):
                    data, label = encoded[number % distinct], str(number % 10).encode()
                    for suffix, value in ("jpg", data), ("cls", label):
                        member = tarfile.TarInfo(f"{number:06d}.{suffix}")
                        member.size = len(value)
                        tar.addfile(member, io.BytesIO(value))
        size = sum(len(encoded[number % distinct]) for number in range(samples))
        return {"bytes": size, "quality": media_data.QUALITY}

    what = {"samples": samples, "distinct": distinct, "width": width, "height": height}
    return shards.folder(f"gpu-images-{samples}", make, **what)


def _encode(count, width, height):
    """Pictures as bench/media_data.py draws them, as JPEG, by one process a core."""
    parts = machine.cores()
    jobs = [(part, count * part // parts, count * (part + 1) // parts) for part in range(parts)]
    with ProcessPoolExecutor(parts) as pool:
        found = pool.map(_encode_part, [(*job, width, height) for job in jobs])
        return [data for part in found for data in part]


def _encode_part(job):
    part, first, end, width, height = job
    if first == end:
        return []
    scenes = media_data.Scenes(numpy.random.default_rng(part), 1024, 0.95)
    return [media_data.jpeg_bytes(scenes.draw(width, height, 6.0)) for _ in range(first, end)]


class LooseImages:
    """The loose files as often as the shards hold them: a torch map-style dataset of paths."""

    def __init__(self, path):
        path = pathlib.Path(path)
        self.files = sorted(map(str, (path / "files").glob("*.jpg")))
        self.count = json.loads((path / "facts.json").read_text())["samples"]

    def __len__(self):
        return self.count

    def path(self, number):
        return self.files[number % len(self.files)]


def remove(path):
    """Frees the memory that a data set takes."""
    import shutil

    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
