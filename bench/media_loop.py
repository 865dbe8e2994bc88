"""What the sides of the media benchmarks share: options, the consumer, the checks, the clock.

A side is a function (data, options) that returns a callable, which begins an epoch and yields
batches, each one contiguous torch tensor in host memory, and a callable that tells more, or None.
All are consumed by the same loop, which reads one byte of every 4 KiB page of a batch. The warm-up
epoch checks shapes, types, counts, and that no sample is flat.
"""

import argparse
import json
import pathlib

from bench import machine, measure


def main(sides, expected, bytes_in="bytes"):
    """Measures one side and prints its answer.

    expected(side, facts): dtype and shape of a sample. bytes_in: the fact that says what is read;
    or a function of the side.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("side", choices=sides)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--variant", default="")
    parser.add_argument("--threads", type=int, default=machine.cores())
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    facts = json.loads((options.data / "facts.json").read_text())
    epoch, more = sides[options.side](options.data, options)
    samples, _ = consume(epoch(), lambda tensor: check(tensor, *expected(options.side, facts)))
    if samples != facts["samples"]:
        raise SystemExit(f"an epoch has {samples} samples, not {facts['samples']}")
    result = measure.timed_epochs(lambda: consume(epoch()), options.seconds)
    result.update(value=result["samples_per_s"], threads=options.threads)
    result.update(bytes_in=facts[bytes_in(options.side) if callable(bytes_in) else bytes_in])
    if options.side.endswith("_dataloader"):
        result.update(workers=int(options.variant or 0))
    if more:
        result.update(more())
    print(json.dumps(result), flush=True)


def consume(batches, look=None):
    """Takes every batch of an epoch; returns samples and bytes."""
    import torch

    samples = size = 0
    for tensor in batches:
        if look is not None:
            look(tensor)
        tensor.view(torch.uint8).view(-1)[::4096].sum(dtype=torch.int64)
        samples += len(tensor)
        size += tensor.nbytes
    return samples, size


def check(tensor, dtype, shape):
    import torch

    if not torch.is_tensor(tensor) or not tensor.is_contiguous():
        raise SystemExit("a batch is not one contiguous tensor")
    if tensor.dtype != getattr(torch, dtype) or tuple(tensor.shape[1:]) != tuple(shape):
        raise SystemExit(f"a batch is {tensor.dtype} {tuple(tensor.shape)}, not {dtype} {shape}")
    if (tensor.reshape(len(tensor), -1).to(torch.float32).std(dim=1) < 1e-4).any():
        raise SystemExit("a sample is flat")


def stoker_side(dataset, field, batch_size, options, chain):
    """Shuffled batches of one field through a chain."""
    import stoker

    loader = stoker.Loader(
        dataset,
        batch_size=batch_size,
        shuffle=True,
        seed=0,
        threads=options.threads,
        transforms={field: chain},
    )

    def tell():
        stats = loader.stats()
        return {"threads": stats["threads"], "pool_bytes": stats["peak_bytes"]}

    return lambda: (batch[field] for batch in loader), tell


def dataloader_side(dataset, batch_size, options):
    """PyTorch's DataLoader with its default collate; the variant is the number of workers."""
    from torch.utils.data import DataLoader

    workers = int(options.variant or 0)
    loader = DataLoader(
        dataset,
        batch_size=batch_size,
        shuffle=True,
        num_workers=workers,
        persistent_workers=workers > 0,
    )
    return lambda: (values for values, labels in loader), None


def pool_side(files, batch_size, options, empty, sample):
    """A pool of threads: sample(file, place) fills a place of the batch that empty(count) made;
    the next two batches are made meanwhile."""
    import random
    from concurrent.futures import ThreadPoolExecutor

    import torch

    pool = ThreadPoolExecutor(options.threads)

    def begin(names):
        batch = empty(len(names))
        return batch, [pool.submit(sample, *pair) for pair in zip(names, batch, strict=True)]

    def epoch():
        order = random.sample(files, len(files))
        parts = [order[at : at + batch_size] for at in range(0, len(order), batch_size)]
        under_way = [begin(names) for names in parts[:2]]
        for number in range(len(parts)):
            batch, futures = under_way.pop(0)
            for future in futures:
                future.result()
            if number + 2 < len(parts):
                under_way.append(begin(parts[number + 2]))
            yield torch.from_numpy(batch)

    return epoch, None
