"""examples/augment_*.py and examples/classify.py, run as a user runs them."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
LIBRARIES = {"albumentations": "albumentations", "opencv": "cv2", "torchvision": "torchvision"}


def run(folder, script, *arguments):
    command = [sys.executable, str(EXAMPLES / script), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240)


@pytest.mark.parametrize("name", sorted(LIBRARIES))
def test_an_example_augments_batches_or_says_what_is_missing(tmp_path, name):
    done = run(tmp_path, f"augment_with_{name}.py")
    assert done.returncode == 0, done.stdout + done.stderr
    if importlib.util.find_spec(LIBRARIES[name]) is None:
        assert done.stdout == ""
        assert done.stderr.startswith("skipped, ")
        assert "pip install" in done.stderr
        pytest.skip(done.stderr.strip())
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["0", "1", "2", "3"]
    assert all("64, 64" in line for line in lines)


def test_the_same_seed_gives_the_same_run_with_a_users_function(tmp_path):
    pytest.importorskip("cv2")
    sys.path.insert(0, str(EXAMPLES))
    try:
        import augment_with_opencv as example
    finally:
        sys.path.remove(str(EXAMPLES))
    import numpy
    import stoker

    path = example.make_images(tmp_path)

    def batches(threads):
        loader = stoker.Loader(
            path,
            16,
            shuffle=True,
            as_="numpy",
            transforms={"png": [stoker.RandomResizedCrop(64, scale=(0.5, 1))]},
            sample_map=example.Shear("png"),
            map_threads=threads,
        )
        return [batch["image"].copy() for batch in loader]

    for one, two in zip(batches(1), batches(4), strict=True):
        assert one.shape == (16, 64, 64, 4)
        assert numpy.array_equal(one, two)


@pytest.mark.parametrize("kind", ["images", "audio", "points"])
def test_a_network_learns_classes_that_it_was_not_shown(tmp_path, kind):
    pytest.importorskip("torch")
    done = run(tmp_path, "classify.py", kind, "--samples", "600", "--epochs", "5")
    assert done.returncode == 0, done.stdout + done.stderr
    accuracy = float(done.stdout.split("accuracy ")[-1].split("%")[0])
    assert accuracy > 70, done.stdout  # chance is 25


def test_what_has_not_learned_is_an_error(tmp_path):
    pytest.importorskip("torch")
    settings = ("--samples", "64", "--epochs", "1", "--rate", "0", "--classes", "8")
    done = run(tmp_path, "classify.py", "images", *settings)
    assert done.returncode == 1
    assert "it has not learned" in done.stderr
