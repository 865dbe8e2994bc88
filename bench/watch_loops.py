"""Loops that bench.watch runs alone and under `stoker run`: an epoch for each line that is read.

yes | head -4 | python -m bench.watch_loops tiny --device cpu

After each epoch its seconds are printed.
"""

import argparse
import sys
import time

import torch
from torch import nn


def cnn3d(device):
    """A 3D-CNN over clips that lie in memory, by a DataLoader without workers."""
    clips = torch.zeros(64, 3, 16, 32 if device == "cpu" else 112, 32 if device == "cpu" else 112)
    labels = torch.arange(64) % 10
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(clips, labels), batch_size=8, pin_memory=device == "cuda"
    )
    model = nn.Sequential(
        nn.Conv3d(3, 16, kernel_size=3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv3d(16, 32, kernel_size=3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool3d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    ).to(device)
    return _epoch(model, loader, device, rounds=2)


def tiny(device):
    """Many small layers: all the time goes into launching them."""
    layers = [nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16), nn.GELU()) for _ in range(24)]
    model = nn.Sequential(*layers, nn.Linear(16, 10)).to(device)
    batches = [
        (torch.randn(32, 16, device=device), torch.zeros(32, dtype=torch.long, device=device))
    ]
    return _epoch(model, batches * 8, device, rounds=1)


def _epoch(model, batches, device, rounds):
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)

    def run():
        for _ in range(rounds):
            for x, y in batches:
                x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
                loss = nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()

    return run


LOOPS = {loop.__name__: loop for loop in (cnn3d, tiny)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("loop", choices=LOOPS)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(1)
    epoch = LOOPS[options.loop](options.device)
    for _ in sys.stdin:
        start = time.perf_counter()
        epoch()
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main()
