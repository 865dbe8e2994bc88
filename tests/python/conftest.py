import gc
import os
import signal
import subprocess
import sys
import textwrap

import pytest
import stoker
from shard_making import write_shards
from watching import Watched

# A shell's background job ignores Ctrl-C, and so would all that is started from it.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish():
    """What modules hold is looked at no more: a collection is as quick as in a small program."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shards(tmp_path_factory):
    """100 samples (npy, cls) in two shards."""
    return write_shards(tmp_path_factory.mktemp("shards"), 100)


@pytest.fixture(scope="session")
def rich(tmp_path_factory):
    """60 samples with npy, cls, txt and json in three shards."""
    folder = tmp_path_factory.mktemp("rich")
    return write_shards(folder, 60, shards=3, fields=("npy", "cls", "txt", "json"))


@pytest.fixture
def dataset(shards):
    return stoker.open(shards)


@pytest.fixture
def run_python(tmp_path):
    """Runs a script in a process of its own: run_python(text, *arguments) -> CompletedProcess."""

    def run(text, *arguments, **options):
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(text))
        options.setdefault("timeout", 120)
        env = dict(os.environ, PYTHONFAULTHANDLER="1", **options.pop("env", {}))
        return subprocess.run(
            [sys.executable, str(script), *map(str, arguments)],
            capture_output=True,
            text=True,
            env=env,
            **options,
        )

    return run


@pytest.fixture
def watched(tmp_path):
    return Watched(tmp_path)


def open_descriptors():
    return len(os.listdir("/proc/self/fd"))


def running_threads():
    return len(os.listdir("/proc/self/task"))


@pytest.fixture
def baseline():
    """Descriptors and threads before the test, to be compared after it."""
    return {"fds": open_descriptors(), "threads": running_threads()}
