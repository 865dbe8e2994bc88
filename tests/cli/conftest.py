"""What the tests of the command share: the binary, and small sets that it has made."""

import importlib.util
import json
import os
import signal
import subprocess
import sys

import pytest
from places import BINARY

# A shell that starts a job in the background has it ignore Ctrl-C, and so would every command that
# a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Command:
    """Runs the command in a folder of its own cache, and reads what it prints."""

    def __init__(self, cache, *words):
        self.binary = str(BINARY)
        self.words = words or (self.binary,)
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "LC_ALL": "C.UTF-8"}

    def __call__(self, *arguments, status=0, text=True, **options):
        done = subprocess.run(
            [*self.words, *map(str, arguments)],
            capture_output=True,
            text=text,
            timeout=60,
            env=self.environment,
            **options,
        )
        if status is not None:
            assert done.returncode == status, f"{arguments}: {done.stdout!r} {done.stderr!r}"
        return done

    def json(self, *arguments, **options):
        """The one object that it prints."""
        return json.loads(self(*arguments, "--json", **options).stdout)

    def lines(self, *arguments, **options):
        """The objects that it prints, one a line."""
        printed = self(*arguments, "--json", **options).stdout
        return [json.loads(line) for line in printed.splitlines()]

    def order(self, *arguments, **options):
        """The sample numbers that it prints, a list a batch."""
        printed = self("stream", *arguments, "--order", **options).stdout
        return [[int(word) for word in line.split()] for line in printed.splitlines()]

    def start(self, *arguments, **options):
        return subprocess.Popen(
            [*self.words, *map(str, arguments)], env=self.environment, **options
        )


@pytest.fixture(scope="session")
def stoker(tmp_path_factory):
    if not BINARY.exists():
        pytest.fail(f"{BINARY} is not there: run make first")
    return Command(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def arrow_stoker(tmp_path_factory):
    """The same command run by the Python package, where pyarrow reads and writes tables."""
    if not all(map(importlib.util.find_spec, ("stoker", "pyarrow"))):
        pytest.skip("the Python package or pyarrow is not installed")
    return Command(tmp_path_factory.mktemp("arrow_cache"), sys.executable, "-m", "stoker")


@pytest.fixture(scope="session")
def tensors(stoker, tmp_path_factory):
    """37 tensors in 3 shards, and the same as loose files."""
    folder = tmp_path_factory.mktemp("tensors")
    stoker(
        *("gen", "tensors", "-o", folder / "shards", "--shards", 3, "--samples", 37),
        *("--shape", "4,6,3", "--dtype", "f32", "--classes", 5, "--seed", 1),
        *("--loose", folder / "loose"),
    )
    return folder
