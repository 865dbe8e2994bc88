"""One value through a chain of transforms: what the loader does with each sample."""

from __future__ import annotations

import os
import threading
from typing import Any, NamedTuple

import numpy

from . import _arrays, _core
from ._chain import Chain, chain_text
from ._context import context


class PipelineResult(NamedTuple):
    """What came out of a :class:`Pipeline`, and what is known of it.

    Attributes:
        value: the array.
        media: ``"image"``, ``"audio"``, ``"video"``, ``"points"`` or ``"tensor"``.
        rate: recordings and videos: frames a second; None where it is not known.
        length: recordings and point clouds: frames or points that are not padding; None: all.
    """

    value: Any
    media: str
    rate: float | None
    length: int | None


class Pipeline:
    """Runs a chain of transforms on one value, with the code that the loader runs: what a model
    sees when it is used is what it saw when it was trained.

    Results are yours. The same seed, epoch and sample give the same random choices as a
    :class:`Loader` makes for that sample. Threads may share a pipeline: they take turns. It
    pickles.

    Args:
        chain: transforms, text, or a list of both; see `docs/transforms.md`.
        media: what encoded bytes are: ``"image"``, ``"audio"``, ``"video"`` or ``"points"``.
            Default: found out by their content.
        as_: ``"numpy"`` or ``"torch"``.

    >>> pipeline = stoker.Pipeline([stoker.Resize(256), stoker.CenterCrop(224)])
    >>> pipeline(numpy.zeros((300, 400, 3), numpy.uint8)).shape
    (224, 224, 3)
    """

    def __init__(self, chain: Chain, media: str | None = None, *, as_: str = "numpy") -> None:
        self._chain = chain_text(chain)
        self._media = media or "tensor"
        self._as = _arrays.resolve(as_)
        self._open()

    def _open(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._core = _core.Pipeline(context(), self._chain.encode(), self._media)

    def run(self, data: Any, seed: int = 0, epoch: int = 0, sample: int = 0) -> PipelineResult:
        """As calling it, with what else is known of the result."""
        if self._process != os.getpid():
            self._open()  # a forked child may have a lock that a thread of the parent held
        dtype, shape = None, ()
        if not isinstance(data, (bytes, bytearray, memoryview)):
            data, dtype, shape = _read_array(data)
        with self._lock:
            value, media, rate, real = self._core.run(data, dtype, shape, seed, epoch, sample)
        array = _arrays.converter(self._as)(value)
        return PipelineResult(array, media, rate or None, None if real < 0 else real)

    def __call__(self, data: Any, seed: int = 0, epoch: int = 0, sample: int = 0) -> Any:
        """The chain's result for one value.

        Args:
            data: encoded bytes, or an array: pixels (H, W, C), or any tensor.
            seed, epoch, sample: choose the random numbers, as in a loader.
        """
        return self.run(data, seed, epoch, sample).value

    @property
    def text(self) -> str:
        """The chain in its shortest form."""
        return self._core.text()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._chain, self._media, self._as)

    def __repr__(self) -> str:
        return f"stoker.Pipeline({self._chain!r})"


def _restore(chain: str, media: str, as_: str) -> Pipeline:
    """What a pickle calls."""
    return Pipeline(chain, media, as_=as_)


def _read_array(data: Any) -> tuple[Any, str, tuple[int, ...]]:
    """An array as (buffer, dtype, shape)."""
    if _arrays.is_array(data) and not isinstance(data, numpy.ndarray):  # torch's
        data = data.detach().cpu().contiguous()
        name = str(data.dtype).removeprefix("torch.")
        if name == "bfloat16":  # numpy has none: its bits
            import torch

            return data.view(torch.int16).numpy(), name, tuple(data.shape)
        data = data.numpy()
    array = numpy.require(data, requirements=["C_CONTIGUOUS", "ALIGNED"])
    if array.dtype.kind not in "biufc":
        raise TypeError(
            f"a pipeline takes encoded bytes or an array of numbers, not {type(data).__name__}"
        )
    shape = tuple(numpy.shape(data))  # of a single number too
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return array, array.dtype.name, shape
