"""Runs scripts under the Python hook, as `stoker run` does, without `stoker run`."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

from ring_reader import Run

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "inject" / "site"
MODULE = ROOT / "build" / "inject" / "_moments.abi3.so"  # `make all` makes it

TRAIN = """
import sys, time
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset


class Numbers(Dataset):
    def __init__(self, count=32, seconds=0.0):
        self.count, self.seconds = count, seconds

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if self.seconds:
            time.sleep(self.seconds)
        return torch.full((4,), float(i)), i % 2


class Stream(IterableDataset):
    def __iter__(self):
        for i in range(32):
            yield torch.full((4,), float(i)), i % 2


def new_model():
    model = torch.nn.Linear(4, 2)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def train(model, optimizer, loader):
    seen = 0
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        seen += 1
    return seen
"""


class Watched:
    """A folder for a run, and the ways to run something into it; with the hook's module in C, as
    `stoker run` unpacks it, or without."""

    def __init__(self, folder, has_module=True):
        self.site = folder / "site"
        shutil.copytree(SITE, self.site)
        if has_module:
            shutil.copy(MODULE, self.site / "stoker_watch")
        self.folder = folder / "run"
        self.work = folder / "work"
        self.work.mkdir()
        self.begin({"stack_hz": 100, "replay": None, "until_s": None})

    def begin(self, options):
        if self.folder.exists():
            for path in self.folder.iterdir():
                path.unlink()
        self.folder.mkdir(exist_ok=True)
        (self.folder / "options.json").write_text(json.dumps(options))

    def environment(self, **more):
        env = dict(os.environ, STOKER_WATCH=str(self.folder), PYTHONDONTWRITEBYTECODE="1")
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(self.site), env.get("PYTHONPATH")]))
        env.update(more)
        return env

    def write(self, text, name="train.py"):
        script = self.work / name
        script.write_text(textwrap.dedent(text))
        return script

    def python(self, *arguments, python=sys.executable, check=True, **more):
        done = subprocess.run(
            [python, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=self.work,
            env=self.environment(**more),
            timeout=200,
        )
        if check:
            assert done.returncode == 0, done.stderr
        return done

    def train(self, body, *arguments, top="", **options):
        """Runs TRAIN and this, guarded as a script with spawned workers must be; what the workers
        need of it goes to the top."""
        body = textwrap.indent(textwrap.dedent(body), "    ")
        top = textwrap.dedent(top)
        script = self.write(TRAIN + top + '\n\nif __name__ == "__main__":\n' + body)
        return self.python(script, *arguments, **options)

    def read(self):
        return Run(self.folder)
