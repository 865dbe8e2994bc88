"""tiny: samples of 32 bytes, shuffled, batches of 1,024: what a sample costs.

python -m bench.tiny SIDE DATA --workers N --seconds S
"""

import argparse
import glob
import json

from bench import limits, machine, measure, peers, shards

BATCH = 1024


def run(options):
    seconds = 0.3 if options.quick else 2.0
    records, facts = shards.records(1 << 17 if options.quick else 1 << 22)
    tar, tar_facts = shards.tiny_tar("tiny", 40, 250 if options.quick else 10_000, True)
    sides = [
        _side("stoker_raw", records, seconds, "raw array, global shuffle"),
        _side("numpy", records, seconds, "array[order[i:i+1024]] of a memmap, one thread"),
        _side("stoker_tar", tar, seconds, "npy + cls in tar, global shuffle"),
        _webdataset(tar, options, seconds),
    ]
    limit_side = limits.side(
        "limit_gather",
        records / "records.raw",
        32,
        1,
        BATCH,
        3 * BATCH * 32,
        machine.cores(),
        seconds,
        note="copy out of a map, random order",
    )
    measure.alternate([*sides, limit_side], options.runs)

    rows = [measure.row(side, "samples/s") for side in sides]
    limit = limits.section(
        measure.row(limit_side, "samples/s"),
        f"32 B copied from a map in random order, {machine.cores()} threads",
    )
    pairs = [
        ("stoker_raw", "limit"),
        ("stoker_raw", "numpy"),
        ("stoker_tar", "limit"),
        ("stoker_tar", "webdataset"),
    ]
    workload = {
        "samples": facts["samples"],
        "bytes": facts["bytes"],
        "batch_size": BATCH,
        "tar_samples": tar_facts["shards"] * tar_facts["per_shard"],
        "shuffle": True,
        "cache": "warm",
        "consumer": "one byte of each 4 KiB page of the batch is read",
    }
    return {
        "workload": workload,
        "limit": limit,
        "rows": rows,
        "ratios": measure.ratios(rows, pairs, limit["value"]),
    }


def _side(name, data, seconds, note):
    return measure.Side(name, measure.python("bench.tiny", name, data, "--seconds", seconds), note)


def _webdataset(tar, options, seconds):
    note = "shards shuffled, buffer of 1,000 samples; 4 of the shards, for it is slow"
    why = peers.missing("webdataset")
    if why:
        return measure.Side("webdataset", [], note, missing=why)
    variants = []
    for workers in (0,) if options.quick else (0, 2, 4):
        command = measure.python(
            "bench.tiny",
            "webdataset",
            tar,
            "--workers",
            workers,
            "--seconds",
            seconds / 2,
            interpreter=peers.PYTHON,
        )
        words = f"{peers.version('webdataset')}, {workers} workers: {note}"
        variants.append(measure.Side("webdataset", command, words))
    return measure.best_of(variants)


def stoker_raw(data, workers):
    import stoker

    dataset = stoker.open(f"{data}/records.raw", format="raw", dtype="float32", shape=[8])
    (field,) = dataset.fields
    loader = stoker.Loader(dataset, batch_size=BATCH, shuffle=True, seed=0)
    return lambda: (batch[field] for batch in loader)


def stoker_tar(data, workers):
    import stoker

    dataset = stoker.open(f"{data}/shard-*.tar")
    loader = stoker.Loader(dataset, batch_size=BATCH, shuffle=True, seed=0)
    return lambda: (batch["npy"] for batch in loader)


def numpy(data, workers):
    import numpy as np
    import torch

    records = np.memmap(f"{data}/records.raw", np.float32, "r").reshape(-1, 8)
    random = np.random.default_rng(0)

    def epoch():
        order = random.permutation(len(records))
        for first in range(0, len(records), BATCH):
            yield torch.from_numpy(records[order[first : first + BATCH]])

    return epoch


def webdataset(data, workers):
    import torch
    import webdataset as wds

    urls = sorted(glob.glob(f"{data}/shard-*.tar"))[:4]
    dataset = (
        wds.WebDataset(urls, shardshuffle=len(urls))
        .shuffle(1000)
        .decode()
        .to_tuple("npy", "cls")
        .batched(BATCH, collation_fn=torch.utils.data.default_collate)
    )
    loader = wds.WebLoader(
        dataset, batch_size=None, num_workers=workers, persistent_workers=workers > 0
    )
    return lambda: (tensor for tensor, label in loader)


SIDES = {side.__name__: side for side in (stoker_raw, stoker_tar, numpy, webdataset)}


def consume(batches):
    import torch

    samples = size = 0
    for tensor in batches:
        tensor.view(torch.uint8).view(-1)[::4096].sum(dtype=torch.int64)
        samples += len(tensor)
        size += tensor.nbytes
    return samples, size


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("side", choices=SIDES)
    parser.add_argument("data")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=2.0)
    arguments = parser.parse_args()
    epoch = SIDES[arguments.side](arguments.data, arguments.workers)
    result = measure.timed_epochs(lambda: consume(epoch()), arguments.seconds)
    result.update(value=result["samples_per_s"], threads=machine.cores(), workers=arguments.workers)
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
