"""h2d: f16 tensors from tar shards to the device, batches of 32, by a consumer that only draws."""

import time

import torch

from bench import limits, machine, measure
from bench.gpu import data, loop
from bench.gpu.models import BATCH

BATCH_BYTES = BATCH * data.SAMPLE_BYTES


def run(options):
    samples, seconds = (640, 0.3) if options.quick else (4000, 2.0)
    path, facts = data.tensors(samples)
    stoker = loop.Side("stoker", lambda s: _stoker(path, s), seconds, "tar shards, global shuffle")
    ring = int(stoker.run().get("pool_bytes") or 4 * BATCH_BYTES)
    sides = [
        stoker,
        loop.Side(
            "pinned_copy", _pinned_copy, seconds / 2, "cudaMemcpyAsync of a batch, pinned memory"
        ),
        _page_cache(path, ring, seconds / 2),
    ]
    measure.alternate(sides, options.runs)
    rows = [measure.row(side, "bytes/s") for side in sides]
    limit = lower_limit(rows)
    workload = {
        "samples": samples,
        "bytes": facts["bytes"],
        "dtype": "float16",
        "shape": facts["shape"],
        "shards": data.SHARDS,
        "batch_size": BATCH,
        "shuffle": True,
        "cache": "warm",
        "consumer": "draws batches and does nothing with them",
    }
    return {
        "workload": workload,
        "limit": limit,
        "rows": rows,
        "ratios": measure.ratios(
            rows,
            [("stoker", "limit"), ("stoker", "pinned_copy"), ("stoker", "page_cache")],
            limit["value"],
        ),
    }


def lower_limit(rows):
    """Bytes cannot come faster than out of the page cache, nor than over the bus."""
    known = [row for row in rows if row["name"] != "stoker" and row["value"]]
    if not known:
        return {"name": "not measured", "value": None, "unit": "bytes/s", "runs": []}
    lower = min(known, key=lambda row: row["value"])
    return limits.section(lower, f"{lower['name']}: {lower['note']}")


def _stoker(path, seconds):
    import stoker

    with stoker.Loader(
        f"{path}/shards/*.tar", batch_size=BATCH, shuffle=True, seed=0, device=loop.DEVICE
    ) as loader:
        answer = loop.timed(loop.endless(lambda: iter(loader)), loop.only_draw("npy"), seconds)
        answer.update(loop.stoker_facts(loader))
    answer.update(value=answer["bytes_per_s"], bytes_in=answer["bytes_out"])
    return answer


def _pinned_copy(seconds):
    """Two pinned batches to two places on the device, in turn."""
    pinned = loop.DEVICE == "cuda"
    hosts = [torch.ones(BATCH_BYTES, dtype=torch.uint8, pin_memory=pinned) for _ in range(2)]
    devices = [torch.empty_like(host, device=loop.DEVICE) for host in hosts]
    for host, device in zip(hosts, devices, strict=True):
        device.copy_(host, non_blocking=True)
    loop.synchronize()
    begun, copies, took = time.perf_counter(), 0, 0.0
    while took < seconds:
        for turn in range(16):  # a few in flight
            devices[turn % 2].copy_(hosts[turn % 2], non_blocking=True)
        loop.synchronize()
        copies, took = copies + 16, time.perf_counter() - begun
    size = copies * BATCH_BYTES
    return {"value": size / took, "bytes_per_s": size / took, "seconds": took, "threads": 1}


def _page_cache(path, ring, seconds):
    """Into a ring as large as the loader's own memory: a small one would stay in the caches."""
    side = limits.side(
        "limit_pread",
        path / "extents.txt",
        ring,
        machine.cores(),
        seconds,
        note=f"pread, random order, ring of {ring / 1e6:.0f} MB, {machine.cores()} threads",
    )
    side.name = "page_cache"
    return side
