"""The plugin of examples/plugin, from Python: its transforms stand in chains beside our own."""

import pathlib
import shutil
import subprocess

import pytest

pytest.importorskip("PIL")

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("there is no C compiler")
    library = tmp_path_factory.mktemp("plugin") / "solarize.so"
    source = ROOT / "examples" / "plugin" / "solarize.c"
    flags = ["-std=c11", "-O2", "-shared", "-fPIC", f"-I{ROOT / 'include'}"]
    subprocess.run([COMPILER, *flags, str(source), "-o", str(library)], check=True)
    return library


# A plugin stays loaded: each test is a process of its own.
HEAD = """
import os, pickle, sys
sys.path.insert(0, sys.argv[2])
import numpy, stoker
from media_making import decode, jpeg, picture, write_images
stoker.load_plugin(sys.argv[1])
"""


def run(run_python, plugin, text):
    done = run_python(HEAD + text, plugin, pathlib.Path(__file__).parent)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_plugins_transform_runs_in_a_pipeline(run_python, plugin):
    text = """
image = picture(1)
result = stoker.Pipeline(stoker.Transform("Solarize(100)"))(image)
assert numpy.array_equal(result, numpy.where(image >= 100, 255 - image, image))
pipeline = stoker.Pipeline([stoker.CenterCrop(20), "Solarize(threshold=0)"])
assert numpy.array_equal(pipeline(image), 255 - image[20:40, 30:50])
assert numpy.array_equal(pickle.loads(pickle.dumps(pipeline))(image), pipeline(image))
half = stoker.Pipeline("Solarize(0, p=0.5)")
turned = [numpy.array_equal(half(image, sample=n), 255 - image) for n in range(400)]
assert 140 < sum(turned) < 260
assert turned == [numpy.array_equal(half(image, sample=n), 255 - image) for n in range(400)]
"""
    run(run_python, plugin, text)


def test_a_plugins_transform_runs_in_a_loader_and_in_a_forked_child(run_python, plugin, tmp_path):
    text = f"""
folder = write_images({str(tmp_path / "images")!r}, 16, 1)
chain = {{"jpg": "CenterCrop(20) | Solarize(100, p=0.5)"}}
def run(threads):
    loader = stoker.Loader(folder, 4, transforms=chain, threads=threads, as_="numpy")
    return numpy.concatenate([batch["jpg"] for batch in loader])
one = run(1)
assert numpy.array_equal(one, run(4))
pipeline = stoker.Pipeline(chain["jpg"])
for n in range(16):
    assert numpy.array_equal(one[n], pipeline(jpeg(n), sample=n))
child = os.fork()
if child == 0:
    os._exit(0 if numpy.array_equal(pipeline(jpeg(3), sample=3), one[3]) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    run(run_python, plugin, text)


def test_arguments_of_a_plugin_are_checked_and_its_name_is_suggested(run_python, plugin):
    text = """
for chain in ("Solarize(300)", "Solarize(level=3)", "Solarise(3)", "Solarize(a)"):
    try:
        stoker.Pipeline(chain)(picture(1))
    except stoker.StokerError as error:
        print(error)
stoker.load_plugin(sys.argv[1])  # once more changes nothing
"""
    words = run(run_python, plugin, text)
    assert words.count("Solarize") >= 3
    assert "threshold" in words
