"""The venv of the peers. Made on first use; a peer that will not install is told, not fatal."""

import functools
import re
import subprocess
import sys

from bench.measure import ROOT

VENV = ROOT / ".venv-bench"
PYTHON = VENV / "bin" / "python"
TORCH = "torch==2.13.0"

# package -> names to try, in order: the first that installs and imports is kept
# boto3 and s3fs share a botocore: asked for together, they get one that suits both.
PACKAGES = {
    "webdataset": ["webdataset"],
    "streaming": ["mosaicml-streaming"],
    "litdata": ["litdata"],
    "nvidia.dali": ["nvidia-dali-cuda130", "nvidia-dali-cuda120"],
    "pyarrow": ["pyarrow"],
    "pandas": ["pandas"],
    "sklearn": ["scikit-learn"],
    "h5py": ["h5py"],
    "PIL": ["pillow"],
    "cv2": ["opencv-python-headless"],
    "ffcv": ["ffcv"],
    "spdl.io": ["spdl"],
    "soundfile": ["soundfile"],
    "av": ["av"],
    "decord": ["decord"],
    "torchcodec": ["torchcodec", "torchcodec==0.11.1"],
    "s3fs": ["s3fs boto3"],
    "boto3": ["boto3 s3fs"],
    "azure.storage.blob": ["azure-storage-blob"],
}

# mosaicml-streaming imports torchvision for its image sets. PyPI's torchvision is built for CUDA
# and does not load beside a CPU build of torch; bench.loaders then puts an empty one in its place.
# The newest torchcodec wants CUDA libraries; an older one is built for the CPU.
IMPORT = {
    "streaming": "import bench.loaders; bench.loaders.import_streaming()",
    "torchcodec": "from torchcodec.decoders import VideoDecoder",
}

# what pip cannot install: a peer that does not build says so
NEEDS = {"ffcv": "libopencv-dev, libturbojpeg0-dev and pkg-config"}


@functools.cache
def missing(module):
    """None when the peer can be used, else why not."""
    error = _make_venv()
    if error:
        return error
    if _imports(module):
        return None
    for package in PACKAGES[module]:
        print(f"  installing {package} into {VENV.name}", flush=True)
        error = _pip(package) or (None if _imports(module) else f"{package} does not import")
        if error is None:
            return None
    needs = NEEDS.get(module)
    return f"{error}; it needs the system's {needs}" if needs else error


def version(module):
    names = [re.split("[= ]", package)[0] for package in PACKAGES.get(module, [module])]
    code = (
        f"import importlib.metadata as m; print(next((p + ' ' + m.version(p) for p in {names!r} "
        f"if any(d.metadata['Name'] == p for d in m.distributions())), ''))"
    )
    return _run([PYTHON, "-c", code])[1].strip()


@functools.cache
def _make_venv():
    """torch comes first and alone, so that no peer chooses another build of it."""
    if not PYTHON.exists():
        print(f"  making {VENV.name}", flush=True)
        status, words = _run([sys.executable, "-m", "venv", VENV])
        if status:
            return f"no venv: {words}"
    if _imports("torch") and _imports("numpy"):
        return None
    print(f"  installing {TORCH} into {VENV.name}", flush=True)
    return _pip(TORCH) or _pip("numpy")


def _imports(module):
    return _run([PYTHON, "-c", IMPORT.get(module, f"import {module}")])[0] == 0


def _pip(package):
    """Installs a package with torch held where it is. None, or the reason."""
    arguments = [package] if package == TORCH else [TORCH, *package.split()]
    status, words = _run([PYTHON, "-m", "pip", "install", "--quiet", *arguments])
    return f"pip install {package}: {words.splitlines()[-1][:200]}" if status else None


def _run(command):
    done = subprocess.run([str(part) for part in command], cwd=ROOT, text=True, capture_output=True)
    return done.returncode, (done.stdout if done.returncode == 0 else done.stderr).strip() or "?"
