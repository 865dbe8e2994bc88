"""Stoker feeds the GPU: it reads training data and hands the loop finished batches, in order.

>>> import stoker
>>> ds = stoker.open("data/shard-{0000..0001}.tar")
>>> train, val = ds.split([0.9, 0.1], seed=0)
>>> for batch in stoker.Loader(train, batch_size=32, shuffle=True):
...     x, y = batch["npy"], batch["cls"]
"""

import sys as _sys
from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if "t" in getattr(_sys, "abiflags", ""):
    raise ImportError(
        "Stoker's binary is made for Python with its global lock (the stable ABI), and this is a "
        "free-threaded Python; use the ordinary build, such as python3.13 instead of python3.13t"
    )
if not _sys.platform.startswith("linux"):
    raise ImportError(f"Stoker runs on Linux only; this is {_sys.platform}")

from . import _core

if _TYPE_CHECKING:
    from ._public import *  # noqa: F403

__version__ = _core.version()


def __getattr__(name: str) -> _Any:
    """Loads the rest when some of it is first asked for. The command does without, and without
    numpy: it starts sooner, and what watches a training takes less memory."""
    if name == "__all__" or not name.startswith("_"):  # what imports our modules asks for those
        public = _import_module("._public", __name__)
        globals().update({known: getattr(public, known) for known in public.__all__})
        globals()["__all__"] = public.__all__
    if name not in globals():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
