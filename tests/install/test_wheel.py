"""The wheel, where neither the build tree nor any development package is in reach."""

import re
import sys
import zipfile

import pytest

from .conftest import clean_environment, run

FIRST_BATCH = """
import sys
import stoker
loader = stoker.Loader(stoker.open(sys.argv[1]), batch_size=4, shuffle=False)
batch = next(iter(loader))
print(type(batch["npy"]).__module__, batch["npy"].shape, batch["npy"][:, 0, 0].tolist())
print(batch["cls"].tolist(), "torch" in sys.modules, stoker.__file__)
loader.close()
"""


@pytest.fixture(scope="module")
def clean_venv(wheel, tmp_path_factory):
    """A new environment that holds the wheel and numpy, and nothing else."""
    folder = tmp_path_factory.mktemp("clean") / "venv"
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", wheel, cwd="/", env=clean_environment())
    return folder


def test_the_tag_is_abi3_and_as_old_as_debian_12_allows(wheel):
    assert re.fullmatch(
        r"stoker-[\d.]+-cp311-abi3-manylinux_2_3[456]_(x86_64|aarch64)\.whl", wheel.name
    )


def test_the_wheel_bundles_what_no_linux_promises_to_have(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    bundled = ("libjansson", "libzstd", "liburing", "libcurl", "libcrypto", "libjpeg", "libpng16",
               "libwebp", "libsndfile")  # fmt: skip
    for library in bundled:
        assert any(re.match(rf"stoker\.libs/{library}-", name) for name in names), names
    assert "stoker/py.typed" in names


def test_the_wheel_carries_the_video_plugin_and_nothing_of_ffmpeg(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "stoker/libstoker_video.so" in names
    assert not [name for name in names if re.search(r"lib(av|sw)\w+[-.]", name)]


def test_the_wheel_decodes_and_augments_images(clean_venv, tmp_path):
    output = run(
        clean_venv / "bin" / "stoker", "gen", "images", "-o", tmp_path / "set", "--samples", "8",
        "--shards", "1", "--size", "64x48", cwd="/", env=clean_environment(),
    )  # fmt: skip
    assert "8 samples" in output
    output = run(
        clean_venv / "bin" / "stoker", "stream", tmp_path / "set", "--batch-size", "4", "--json",
        "--transform", "jpg: RandomResizedCrop(32) | Normalize(imagenet) | Layout(CHW)",
        cwd="/", env=clean_environment(),
    )  # fmt: skip
    assert f'"bytes": {8 * (3 * 32 * 32 * 4 + 8)}' in output


def test_the_wheel_loads_a_batch_in_a_clean_environment(clean_venv, shards):
    output = run(
        clean_venv / "bin" / "python", "-I", "-c", FIRST_BATCH, f"{shards}/shard-*.tar",
        cwd="/", env=clean_environment(),
    )  # fmt: skip
    assert output.splitlines()[0] == "numpy (4, 2, 3) [0.0, 1.0, 2.0, 3.0]"
    assert output.splitlines()[1].startswith(f"[0, 1, 2, 0] False {clean_venv}")


def test_the_wheel_brings_the_command(clean_venv, shards):
    output = run(
        clean_venv / "bin" / "stoker", "stream", f"{shards}/shard-*.tar", "--batch-size", "4",
        "--json", cwd="/", env=clean_environment(),
    )  # fmt: skip
    assert '"samples": 8' in output
