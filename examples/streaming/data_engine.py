#!/usr/bin/env python3
"""Phase 2, midstream: the engine. Shards in, finished PyTorch batches out.

from data_engine import get_loader
for x, y in get_loader("data/streaming/shards", batch_size=32): ...

python data_engine.py --data data/streaming/shards          one epoch, and what it cost
"""

import argparse

import stoker


def open_data(data):
    """A dataset of (tensor, label). data: a folder, a glob, shard-{0000..0009}.tar, or a URI."""
    return stoker.open(data, fields=("npy", "cls"))


def get_loader(data, batch_size=32, shuffle=True, seed=0, **options):
    """Batches (x, y) of the data, or of a part of it such as open_data(data).split([0.8, 0.2])[0].

    Every sample once an epoch, in a new order each time. No worker processes to tune: reading goes
    on in threads while you train, and a batch is one tensor that is filled in place.
    """
    if not isinstance(data, stoker.Dataset):
        data = open_data(data)
    return stoker.Loader(data, batch_size, shuffle=shuffle, seed=seed, **options)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="data/streaming/shards", help="path, glob or URI")
    parser.add_argument("--batch-size", type=int, default=32)
    arguments = parser.parse_args()
    loader = get_loader(arguments.data, arguments.batch_size)
    for number, (x, y) in enumerate(loader):
        if number == 0:
            print(f"batch: x {tuple(x.shape)} {x.dtype}, y {tuple(y.shape)} {y.dtype}")
    stats = loader.stats()
    print(
        f"epoch: {stats['samples']} samples, {stats['bytes_per_second'] / 1e9:.2f} GB/s, "
        f"{stats['peak_bytes'] / 1e6:.0f} MB held at most"
    )


if __name__ == "__main__":
    main()
