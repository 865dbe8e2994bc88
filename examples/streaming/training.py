#!/usr/bin/env python3
"""Phase 4, integration: a 3D-CNN learns from the stream, and is judged on samples it never saw.

python training.py --data data/streaming/shards
python training.py --data 'data/streaming/shards/shard-{0000..0009}.tar' --epochs 10
"""

import argparse
import json
import pathlib
import time

import torch
from data_engine import get_loader, open_data
from torch import nn


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


def to_model(x, y, device):
    """(Batch, Time, H, W, Channel) half -> (Batch, Channel, Time, H, W) float on the device."""
    return x.to(device).permute(0, 4, 1, 2, 3).float(), y.to(device)


def train_epoch(model, loader, optimizer, device):
    model.train()
    total = samples = 0
    for x, y in loader:
        x, y = to_model(x, y, device)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
        samples += len(y)
    return total / samples, samples


@torch.no_grad()
def accuracy(model, loader, device):
    model.eval()
    right = samples = 0
    for x, y in loader:
        x, y = to_model(x, y, device)
        right += (model(x).argmax(1) == y).sum().item()
        samples += len(y)
    return right / samples


def train(data, epochs=5, batch_size=32, classes=10, rate=3e-3, seed=0, device=None):
    """Trains on 80 % of the data and returns the log: one entry an epoch."""
    device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    torch.manual_seed(seed)
    training, held_out = open_data(data).split([0.8, 0.2], seed=seed)
    loader = get_loader(training, batch_size, seed=seed)
    judge = get_loader(held_out, batch_size, shuffle=False)
    model = make_model(classes).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    print(f"{len(training)} samples to learn from, {len(held_out)} held out, on {device}")
    log = []
    for epoch in range(epochs):
        start = time.perf_counter()
        loss, samples = train_epoch(model, loader, optimizer, device)
        took = time.perf_counter() - start
        entry = {
            "epoch": epoch + 1,
            "loss": loss,
            "held_out_accuracy": accuracy(model, judge, device),
            "seconds": took,
            "samples_per_s": samples / took,
        }
        log.append(entry)
        print(
            f"epoch {epoch + 1}/{epochs}  loss {loss:.3f}  held-out accuracy "
            f"{entry['held_out_accuracy']:.1%}  {took:.1f} s  {samples / took:,.0f} samples/s",
            flush=True,
        )
    return {"device": str(device), "classes": classes, "epochs": log}


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
    parser.add_argument("--device", help="cuda where torch has it, else cpu")
    parser.add_argument("--results", type=pathlib.Path, default="results", help="folder (results)")
    options = vars(parser.parse_args())
    results = options.pop("results")
    log = train(**options)
    results.mkdir(parents=True, exist_ok=True)
    (results / "demo-training.json").write_text(json.dumps(log, indent=1) + "\n")
    print(f"written: {results}/demo-training.json")


if __name__ == "__main__":
    main()
