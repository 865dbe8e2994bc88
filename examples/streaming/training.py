#!/usr/bin/env python3
"""Phase 4, integration: a 3D-CNN learns from the stream, and is judged on samples it never saw.

python training.py --data data/streaming/shards
python training.py --data 'data/streaming/shards/shard-{0000..0009}.tar' --epochs 10
python training.py --data s3://bucket/shards/
python training.py --data abfss://container@account.dfs.core.windows.net/shards/

Only --data changes when the data moves; the batches stay the same ones (--digest shows it).
Where there is a GPU, batches come out of the loader in its memory. Then the same loop runs once
more over batches that are there already: nothing can be faster, and the stream is measured against
it.
"""

import argparse
import copy
import hashlib
import itertools
import json
import pathlib
import time

import torch
from data_engine import get_loader, open_data
from gpu_watch import Watch
from torch import nn

KEPT = 8  # batches that the bound goes round and round over


def make_model(classes):
    return nn.Sequential(
        nn.Conv3d(3, 16, kernel_size=3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv3d(16, 32, kernel_size=3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv3d(32, 64, kernel_size=3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool3d(1),
        nn.Flatten(),
        nn.Linear(64, classes),
    )


def to_model(x):
    """(Batch, Time, H, W, Channel) half -> (Batch, Channel, Time, H, W) float."""
    return x.permute(0, 4, 1, 2, 3).float()


def train_epoch(model, batches, optimizer):
    """The mean loss, and the number of samples. The GPU is not waited for until the end."""
    model.train()
    total = samples = 0
    for x, y in batches:
        loss = nn.functional.cross_entropy(model(to_model(x)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach() * len(y)
        samples += len(y)
    return total.item() / samples, samples


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    right = samples = 0
    for x, y in loader:
        right += (model(to_model(x)).argmax(1) == y).sum()
        samples += len(y)
    return right.item() / samples


def measure_bound(model, rate, loader, steps):
    """Samples per second, and how busy the GPU is, when batches are on the device already."""
    twin = copy.deepcopy(model)
    optimizer = torch.optim.Adam(twin.parameters(), lr=rate)
    batches = list(itertools.islice(loader, KEPT))
    train_epoch(twin, batches, optimizer)
    with Watch(loader.device) as watch:
        start = time.perf_counter()
        _, samples = train_epoch(twin, itertools.islice(itertools.cycle(batches), steps), optimizer)
        took = time.perf_counter() - start
    return {"samples_per_s": samples / took, "gpu_busy": watch.busy}


def digest_of(loader):
    """A hash of one epoch: every batch, in order."""
    total = hashlib.sha256()
    for x, y in loader:
        total.update(x.cpu().numpy().tobytes())
        total.update(y.cpu().numpy().tobytes())
    return total.hexdigest()


def describe(entry, epochs):
    words = (
        f"epoch {entry['epoch']}/{epochs}  loss {entry['loss']:.3f}  held-out accuracy "
        f"{entry['held_out_accuracy']:.1%}  {entry['seconds']:.1f} s  "
        f"{entry['samples_per_s']:,.0f} samples/s"
    )
    return words if entry["gpu_busy"] is None else f"{words}  GPU busy {entry['gpu_busy']:.1%}"


def train(
    data, epochs=5, batch_size=32, classes=10, rate=3e-3, seed=0, device="auto", digest=False
):
    """Trains on 80 % of the data and returns the log: one entry an epoch."""
    torch.manual_seed(seed)
    training, held_out = open_data(data).split([0.8, 0.2], seed=seed)
    # A global shuffle, so that large data is in the same order wherever it lies: see docs/stores.md
    loader = get_loader(training, batch_size, seed=seed, device=device, order="global")
    device = loader.device
    judge = get_loader(held_out, batch_size, shuffle=False, device=device)
    model = make_model(classes).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    print(f"{len(training)} samples to learn from, {len(held_out)} held out, on {device}")
    log = []
    for epoch in range(epochs):
        with Watch(device) as watch:
            start = time.perf_counter()
            loss, samples = train_epoch(model, loader, optimizer)
            took = time.perf_counter() - start
        entry = {
            "epoch": epoch + 1,
            "loss": loss,
            "held_out_accuracy": accuracy(model, judge),
            "seconds": took,
            "samples_per_s": samples / took,
            "gpu_busy": watch.busy,
        }
        log.append(entry)
        print(describe(entry, epochs), flush=True)
    result = {"device": device, "classes": classes, "epochs": log}
    if digest:
        result["digest"] = digest_of(get_loader(training, batch_size, seed=seed, order="global"))
        print(f"digest of the first epoch: {result['digest']}")
    if device != "cpu":
        result["bound"] = bound = measure_bound(model, rate, loader, len(loader))
        best = max(entry["samples_per_s"] for entry in log)
        result["share_of_bound"] = best / bound["samples_per_s"]
        print(
            f"bound: {bound['samples_per_s']:,.0f} samples/s with batches already on the GPU; "
            f"the stream reaches {result['share_of_bound']:.1%} of it"
        )
    return result


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="data/streaming/shards", help="path, glob or URI")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--rate", type=float, default=3e-3, help="learning rate (0.003)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto", help="cpu, cuda, or a GPU where there is one")
    parser.add_argument("--digest", action="store_true", help="hash the first epoch's batches")
    parser.add_argument("--results", type=pathlib.Path, default="results", help="folder (results)")
    options = vars(parser.parse_args())
    results = options.pop("results")
    log = train(**options)
    results.mkdir(parents=True, exist_ok=True)
    (results / "demo-training.json").write_text(json.dumps(log, indent=1) + "\n")
    print(f"written: {results}/demo-training.json")


if __name__ == "__main__":
    main()
