#!/usr/bin/env python3
"""The same training with four input pipelines, from slow to fast.

slow     reads a file and filters it in __getitem__, in the loop's own thread
workers  the same in worker processes, with pinned memory
filter   the filter vectorised, and on the GPU where there is one
stoker   Stoker reads; batches come out in the memory of the GPU

python train.py --data data/bottleneck/pictures --pipeline slow
stoker run -- python train.py --data data/bottleneck/pictures --pipeline slow

Without a GPU the accelerator is emulated: a step of known length, in which nothing is computed.
"""

import argparse
import itertools
import os
import pathlib
import time

import numpy
import torch
from sharpen import sharpen, sharpen_slowly
from torch import nn
from torch.utils.data import DataLoader, Dataset

EMULATED_S = 0.00125  # a sample: 40 ms a batch of 32


class Pictures(Dataset):
    """Reads one file a sample, when it is asked for."""

    def __init__(self, folder, transform=None):
        self.paths = sorted(pathlib.Path(folder).glob("class-*/*.npy"))
        self.transform = transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        path = self.paths[index]
        picture = numpy.load(path)
        label = int(path.parent.name.removeprefix("class-"))
        return (self.transform or torch.from_numpy)(picture), label


def slow(options):
    """What many first versions look like."""
    pictures = Pictures(options.data, sharpen_slowly)
    loader = DataLoader(pictures, options.batch_size, shuffle=True, drop_last=True)
    return loader, lambda x, y: (x.to(options.device), y.to(options.device))


def in_workers(dataset, options):
    return DataLoader(
        dataset,
        options.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=options.workers,
        pin_memory=options.device == "cuda",
        persistent_workers=True,
        prefetch_factor=4,
    )


def to_device(x, y, options):
    return x.to(options.device, non_blocking=True), y.to(options.device, non_blocking=True)


def workers(options):
    """The same work, in processes of its own."""
    loader = in_workers(Pictures(options.data, sharpen_slowly), options)
    return loader, lambda x, y: to_device(x, y, options)


def filter_moved(options):
    """Workers only read; the filter runs on the GPU. Without one it is vectorised, in workers."""
    if options.device == "cpu":
        return in_workers(Pictures(options.data, vectorised), options), lambda x, y: (x, y)

    def prepare(x, y):
        x, y = to_device(x, y, options)
        return sharpen(x), y

    return in_workers(Pictures(options.data), options), prepare


def vectorised(picture):
    return sharpen(torch.from_numpy(picture))


def with_stoker(options):
    """No worker processes: threads in C read the files straight into batches."""
    import stoker

    pictures = stoker.open(str(options.data), fields=("npy", "cls"))
    how = {"shuffle": True, "drop_last": True}
    if options.device == "cpu":
        loader = stoker.Loader(pictures, options.batch_size, sample_map=sharpen_one, **how)
        return loader, lambda x, y: (x, y)
    loader = stoker.Loader(pictures, options.batch_size, device=options.device, **how)
    return loader, lambda x, y: (sharpen(x), y)


def sharpen_one(sample):
    picture, label = sample
    return sharpen(picture), label


PIPELINES = {"slow": slow, "workers": workers, "filter": filter_moved, "stoker": with_stoker}


class Block(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, padding=1, bias=False)
        self.second = nn.Conv2d(outside, outside, 3, padding=1, bias=False)
        self.first_norm, self.second_norm = nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)
        self.past = nn.Conv2d(inside, outside, 1, stride, bias=False)

    def forward(self, x):
        y = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.second_norm(self.second(y)) + self.past(x))


def make_model(classes=10):
    return nn.Sequential(
        nn.Conv2d(3, 64, 7, stride=2, padding=3),
        nn.ReLU(),
        *(Block(64, 64, 1), Block(64, 64, 1)),
        *(Block(64, 128, 2), Block(128, 128, 1)),
        *(Block(128, 256, 2), Block(256, 256, 1)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(256, classes),
    )


class Gpu:
    """Trains a residual network."""

    name = "GPU"

    def __init__(self):
        torch.backends.cudnn.benchmark = True  # for one size of batch: a last, short one is dropped
        self.model = make_model().cuda().train()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.02, momentum=0.9)

    def step(self, x, y):
        loss = nn.functional.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def finish(self):
        torch.cuda.synchronize()


class Emulated:
    """Takes as long as an accelerator would, and leaves the CPU alone meanwhile."""

    name = "emulated accelerator"

    def step(self, x, y):
        time.sleep(EMULATED_S * len(y))

    def finish(self):
        pass


def train_epoch(loader, prepare, accelerator):
    samples = 0
    for batch in loader:
        x, y = prepare(*batch)
        accelerator.step(x, y)
        samples += len(y)
    accelerator.finish()
    return samples


def profile(loader, prepare, accelerator, path):
    """A few steps under torch.profiler; its trace is left at `path`."""
    from torch.profiler import ProfilerActivity, schedule
    from torch.profiler import profile as torch_profile

    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    with torch_profile(
        activities=activities,
        schedule=schedule(wait=1, warmup=1, active=6),
        on_trace_ready=lambda done: done.export_chrome_trace(str(path)),
    ) as profiler:
        for batch in itertools.islice(loader, 8):
            x, y = prepare(*batch)
            accelerator.step(x, y)
            profiler.step()
    accelerator.finish()


def main():
    options = _arguments()
    accelerator = Gpu() if options.device == "cuda" else Emulated()
    loader, prepare = PIPELINES[options.pipeline](options)
    print(f"pipeline {options.pipeline}, batches of {options.batch_size}, {accelerator.name}")
    if options.torch_trace:
        profile(loader, prepare, accelerator, options.torch_trace)
        return
    for epoch in range(options.epochs):
        start = time.perf_counter()
        samples = train_epoch(loader, prepare, accelerator)
        took = time.perf_counter() - start
        print(
            f"epoch {epoch + 1}/{options.epochs}: {took:.2f} s, {samples / took:,.0f} samples/s",
            flush=True,
        )


def _arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=pathlib.Path, required=True, help="the folder of pictures")
    parser.add_argument("--pipeline", choices=PIPELINES, required=True)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, help="128 on a GPU, else 32")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument(
        "--torch-trace", type=pathlib.Path, help="profile a few steps only; write the trace here"
    )
    options = parser.parse_args()
    if options.device == "auto":
        options.device = "cuda" if torch.cuda.is_available() else "cpu"
    if options.batch_size is None:
        options.batch_size = 128 if options.device == "cuda" else 32
    return options


if __name__ == "__main__":
    main()
