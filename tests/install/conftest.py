"""What the tests of the installed tree share: the tree itself, a small dataset, the wheel."""

import io
import os
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*command, **options):
    """Runs a command and returns its standard output; a failure shows both streams."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def clean_environment(**more):
    """This environment without what could lead into the build tree."""
    strange = ("LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "PKG_CONFIG_PATH", "MAKEFLAGS")
    return {k: v for k, v in os.environ.items() if k not in strange} | more


@pytest.fixture(scope="session")
def prefix(tmp_path_factory):
    """`make install`, into a folder of its own."""
    prefix = tmp_path_factory.mktemp("prefix")
    run("make", "install", f"PREFIX={prefix}", cwd=ROOT, env=clean_environment())
    return prefix


@pytest.fixture(scope="session")
def shards(tmp_path_factory):
    """Two tar shards with eight samples, npy and cls."""
    folder = tmp_path_factory.mktemp("shards")
    for shard in range(2):
        with tarfile.open(folder / f"shard-{shard:04d}.tar", "w") as tar:
            for sample in range(shard * 4, shard * 4 + 4):
                array = io.BytesIO()
                np.save(array, np.full((2, 3), sample, np.float32))
                for field, data in (("npy", array.getvalue()), ("cls", str(sample % 3).encode())):
                    member = tarfile.TarInfo(f"{sample:06d}.{field}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
    return folder


@pytest.fixture(scope="session")
def wheel():
    """`make wheel`."""
    run("tools/wheel.sh", cwd=ROOT, env=clean_environment())
    (path,) = (ROOT / "dist").glob("stoker-*.whl")
    return path
