"""tensors: what the way to the device costs: the same loader with and without it, and the time to
the first batch."""

import time

import torch

from bench import measure
from bench.gpu import data, loop
from bench.gpu.models import BATCH


def run(options):
    samples, seconds = (640, 0.3) if options.quick else (4000, 1.5)
    path, facts = data.tensors(samples)
    check(path)
    sides = [
        loop.Side("device", lambda s: _draw(path, s, loop.DEVICE), seconds, "batches on the GPU"),
        loop.Side("cpu", lambda s: _draw(path, s, "cpu"), seconds, "batches in host memory"),
    ]
    first = loop.Side(
        "first_batch",
        lambda s: _first_batch(path),
        seconds,
        "from stoker.open to a batch on the device, which its stream has waited for; index and "
        "context are there",
    )
    measure.alternate([*sides, first], options.runs)
    rows = [measure.row(side, "bytes/s") for side in sides]
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
    cpu = rows[1]
    return {
        "workload": workload,
        "limit": {
            "name": "the same loader without a device",
            "value": cpu["value"],
            "unit": "bytes/s",
            "runs": cpu["runs"],
        },
        "rows": [*rows, measure.row(first, "s")],
        "ratios": measure.ratios(rows, [("device", "cpu")]),
    }


def _open(path, device):
    import stoker

    return stoker.Loader(
        stoker.open(f"{path}/shards/*.tar"), batch_size=BATCH, shuffle=True, seed=0, device=device
    )


def check(path):
    """The device is handed what the CPU is handed."""
    with _open(path, loop.DEVICE) as there, _open(path, "cpu") as here:
        for number, (one, other) in enumerate(zip(there, here, strict=True)):
            if not torch.equal(one["npy"].cpu(), other["npy"]):
                raise RuntimeError(f"batch {number} on the device is not the batch of the CPU")
            if not torch.equal(one["cls"].cpu(), other["cls"]):
                raise RuntimeError(f"the labels of batch {number} differ")
            if number == 7:
                return


def _draw(path, seconds, device):
    with _open(path, device) as loader:
        answer = loop.timed(loop.endless(lambda: iter(loader)), loop.only_draw("npy"), seconds)
        answer.update(loop.stoker_facts(loader))
    answer.update(value=answer["bytes_per_s"], bytes_in=answer["bytes_out"])
    return answer


def _first_batch(path):
    loop.synchronize()
    begun = time.perf_counter()
    loader = _open(path, loop.DEVICE)
    opened = time.perf_counter()
    batch = next(iter(loader))
    loop.synchronize()
    end = time.perf_counter()
    del batch
    loader.close()
    return {"value": end - begun, "open_s": opened - begun, "after_open_s": end - opened}
