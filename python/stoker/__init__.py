"""Stoker feeds the GPU: it reads training data and hands the loop finished batches, in order.

>>> import stoker
>>> ds = stoker.open("data/shard-{0000..0001}.tar")
>>> train, val = ds.split([0.9, 0.1], seed=0)
>>> for batch in stoker.Loader(train, batch_size=32, shuffle=True):
...     x, y = batch["npy"], batch["cls"]
"""

import sys as _sys

if "t" in getattr(_sys, "abiflags", ""):
    raise ImportError(
        "Stoker's binary is made for Python with its global lock (the stable ABI), and this is a "
        "free-threaded Python; use the ordinary build, such as python3.13 instead of python3.13t"
    )
if not _sys.platform.startswith("linux"):
    raise ImportError(f"Stoker runs on Linux only; this is {_sys.platform}")

from . import _core
from ._batches import Batch, Field
from ._chain import Transform
from ._context import load_plugin
from .dataset import Dataset, open
from .errors import BadSampleError, MapError, StokerError
from .loader import Loader
from .pipeline import Pipeline, PipelineResult
from .profile import profile
from .scaler import Scaler
from .series import PackedSeries, pack_series, rescale
from .transforms import (
    Cast,
    CenterCrop,
    ColorJitter,
    CutMix,
    DecodeAudio,
    DecodeImage,
    DecodePoints,
    DecodeVideo,
    Drop,
    Gain,
    GaussianBlur,
    Grayscale,
    Jitter,
    Layout,
    LogMel,
    MixUp,
    Noise,
    Normalize,
    Pad,
    RandomCrop,
    RandomErasing,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomRotation,
    RandomVerticalFlip,
    Resample,
    Resize,
    Rotate,
    Scale,
    SpecAugment,
    TemporalCrop,
    TrivialAugment,
)

__version__ = _core.version()
__all__ = [
    "BadSampleError",
    "Batch",
    "Cast",
    "CenterCrop",
    "ColorJitter",
    "CutMix",
    "Dataset",
    "DecodeAudio",
    "DecodeImage",
    "DecodePoints",
    "DecodeVideo",
    "Drop",
    "Field",
    "Gain",
    "GaussianBlur",
    "Grayscale",
    "Jitter",
    "Layout",
    "Loader",
    "LogMel",
    "MapError",
    "MixUp",
    "Noise",
    "Normalize",
    "PackedSeries",
    "Pad",
    "Pipeline",
    "PipelineResult",
    "RandomCrop",
    "RandomErasing",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomVerticalFlip",
    "Resample",
    "Resize",
    "Rotate",
    "Scale",
    "Scaler",
    "SpecAugment",
    "StokerError",
    "TemporalCrop",
    "Transform",
    "TrivialAugment",
    "load_plugin",
    "open",
    "pack_series",
    "profile",
    "rescale",
]
