"""Trains a small network on generated images, recordings or point clouds, and shows it learned.

    python examples/classify.py images
    python examples/classify.py audio
    python examples/classify.py points --epochs 8 --device cuda

1. `stoker gen` writes tar shards of JPEGs, WAVs or point clouds in a few classes.
2. `stoker.Loader` decodes and augments them in C; the training loop gets finished tensors. With a
   GPU they are in its memory already, and JPEGs are decoded and augmented there.
3. After each epoch the network is measured on samples it has never seen, without augmentation.

Accuracy on them must be well above chance, or the script fails.
"""

import argparse
import pathlib
import subprocess
import sys
import time

import stoker
import torch
from torch import nn


class Images:
    """JPEGs of 96 x 96; random crops for training, the middle for testing."""

    made = ("images", "--size", "96x96", "--quality", "90")
    field = "jpg"
    finish = "Normalize(0.5, 0.25) | Layout(CHW)"
    train = f"RandomResizedCrop(64, scale=(0.5, 1)) | RandomHorizontalFlip | {finish}"
    test = f"Resize(72) | CenterCrop(64) | {finish}"

    @staticmethod
    def network(classes):
        blocks, channels = [], 3
        for wide in (16, 32, 64):
            blocks += [nn.Conv2d(channels, wide, 3, 2, 1), nn.BatchNorm2d(wide), nn.ReLU()]
            channels = wide
        return nn.Sequential(
            *blocks, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(256, classes)
        )

    @staticmethod
    def read(batch):
        return batch["jpg"]


class Audio:
    """A second of sound each; the network sees its mel spectrogram."""

    made = ("audio", "--seconds", "1", "--rate", "16000")
    field = "wav"
    decode = "DecodeAudio(rate=16000, mono=True, seconds=1, crop=random)"
    mel = "LogMel(n_fft=512, hop_length=256, n_mels=40)"
    masks = "SpecAugment(freq_masks=1, freq_width=4, time_masks=1, time_width=8)"
    train = f"{decode} | Gain((-6, 6)) | {mel} | {masks}"
    test = f"{decode} | {mel}"

    @staticmethod
    def network(classes):
        return nn.Sequential(
            *(nn.Conv2d(1, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU()),
            *(nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU()),
            *(nn.AdaptiveAvgPool2d((5, 4)), nn.Flatten(), nn.Linear(640, classes)),
        )

    @staticmethod
    def read(batch):
        return batch["wav"] / 40 + 1


class Points:
    """1,024 points of a cloud, turned and jittered: each by itself, then the largest of all."""

    made = ("points", "--points", "2048", "--format", "bin")
    field = "bin=points"
    test = "DecodePoints(columns=3, count=1024)"
    train = f"{test} | Rotate((-180, 180)) | Scale((0.9, 1.1)) | Jitter(0.01)"

    @staticmethod
    def network(classes):
        return PointNetwork(classes)

    @staticmethod
    def read(batch):
        return batch["bin"]


class PointNetwork(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.each = nn.Sequential(
            *(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128)),
        )
        self.head = nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, classes))

    def forward(self, points):
        features = self.each(points)
        return self.head(torch.cat([features.amax(1), features.mean(1)], 1))


KINDS = {"images": Images, "audio": Audio, "points": Points}


def main():
    options = arguments()
    kind = KINDS[options.kind]
    torch.manual_seed(options.seed)
    torch.set_num_threads(max(1, torch.get_num_threads() - 1))  # one core is the loader's
    shards = generate(kind, options)

    dataset = stoker.open(shards, fields=[kind.field, "cls"])
    train, held_out = dataset.split([0.8, 0.2], seed=options.seed)
    model = kind.network(options.classes).to(options.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.rate)
    name = kind.field.split("=")[0]
    settings = {"batch_size": options.batch_size, "seed": options.seed, "device": options.device}
    learning = stoker.Loader(train, shuffle=True, transforms={name: kind.train}, **settings)
    testing = stoker.Loader(held_out, transforms={name: kind.test}, **settings)

    accuracy, begin = 0.0, time.perf_counter()
    for epoch in range(options.epochs):
        loss = learn(model, optimizer, learning, kind)
        accuracy = measure(model, testing, kind)
        print(f"epoch {epoch + 1}: loss {loss:.3f}, held out {accuracy:.1%}")
    samples = learning.stats()["samples"]
    print(f"{samples:,} samples in {time.perf_counter() - begin:.1f} s")
    wanted = 2.5 / options.classes
    print(f"accuracy {accuracy:.1%}, chance {1 / options.classes:.1%}")
    if accuracy < wanted:
        sys.exit(f"it has not learned: {accuracy:.1%} of held-out samples, {wanted:.1%} wanted")


def generate(kind, options):
    """Made once, and used again."""
    name = f"{options.kind}-{options.samples}-{options.classes}-{options.seed}"
    out = options.data / name
    if not out.exists():
        numbers = ("--samples", options.samples, "--classes", options.classes)
        command = ["gen", *kind.made, "-o", out, *numbers, "--seed", options.seed]
        subprocess.run([sys.executable, "-m", "stoker", *map(str, command)], check=True)
    return out


def learn(model, optimizer, loader, kind):
    """One epoch; the mean loss. Batches are where the model is."""
    total = 0.0
    model.train()
    for batch in loader:
        answers = model(kind.read(batch))
        loss = nn.functional.cross_entropy(answers, batch["cls"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return total.item() / len(loader)


@torch.no_grad()
def measure(model, loader, kind):
    """The share of samples whose class is told right."""
    right = seen = 0
    model.eval()
    for batch in loader:
        told = model(kind.read(batch)).argmax(1)
        right += (told == batch["cls"]).sum()
        seen += len(told)
    return right.item() / seen


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("data"))
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--classes", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto", help="a GPU where there is one (auto)")
    options = parser.parse_args()
    if options.device == "auto":
        options.device = "cuda" if torch.cuda.is_available() else "cpu"
    return options


if __name__ == "__main__":
    main()
