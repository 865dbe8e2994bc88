"""Loops that bench.watch runs alone and under `stoker run`: an epoch for each line that is read.

yes | head -4 | python -m bench.watch_loops tiny --device cpu

After each epoch its seconds are printed.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import torch
from torch import nn

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples" / "bottleneck"
SOME = 32  # pictures of the slow pipeline: one batch, a tenth of a second


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
    return _epoch(model, loader, device)


def tiny(device):
    """Many small layers: all the time goes into launching them."""
    layers = [nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16), nn.GELU()) for _ in range(24)]
    model = nn.Sequential(*layers, nn.Linear(16, 10)).to(device)
    batches = [
        (torch.randn(32, 16, device=device), torch.zeros(32, dtype=torch.long, device=device))
    ]
    return _epoch(model, batches * 4, device)


def training(device):
    """The 3D-CNN of the training benchmark, fed by Stoker."""
    from stoker import Loader

    from bench.gpu import models

    model = models.cnn(device, eager=True)
    loader = Loader(
        f"{training_data(device)}/shards/*.tar",
        batch_size=models.BATCH,
        shuffle=True,
        seed=0,
        device=device,
    )

    def run():
        for batch in loader:
            model.step((batch["npy"].to(model.dtype), batch["cls"]))
        if device == "cuda":
            torch.cuda.synchronize()

    return run


def _epoch(model, batches, device):
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)

    def run():
        for x, y in batches:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()

    return run


def slow(device):
    """The bottleneck example as it is first."""
    return _example("slow", device, SOME, SOME)


def stoker(device):
    """The bottleneck example at its end."""
    return _example("stoker", device, 128 if device == "cuda" else 32)


def _example(pipeline, device, batch_size, pictures=None):
    sys.path.insert(0, str(EXAMPLE))
    import train

    options = argparse.Namespace(data=example_data(), device=device, batch_size=batch_size)
    accelerator = train.Gpu() if device == "cuda" else train.Emulated()
    loader, prepare = train.PIPELINES[pipeline](options)
    if pictures is not None:
        del loader.dataset.paths[pictures:]
    return lambda: train.train_epoch(loader, prepare, accelerator)


def example_data():
    """The pictures of the example, generated when they are not there yet."""
    sys.path.insert(0, str(EXAMPLE))
    from gen import generate

    data = Path(os.environ.get("STOKER_BENCH_DATA", ROOT / "data")) / "bottleneck-small"
    data.mkdir(parents=True, exist_ok=True)
    return generate(data, "small")


def training_data(device):
    """The shards of the training benchmark; on a CPU two batches of them."""
    from bench.gpu import data, models

    return data.tensors(1000 if device == "cuda" else 2 * models.BATCH)[0]


LOOPS = {loop.__name__: loop for loop in (slow, stoker, training, cnn3d, tiny)}


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
