"""From the library's tensors to those of torch or numpy, without a copy; and back into batches."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from . import _core
from .errors import ShapeError


def has_torch() -> bool:
    """Whether torch can be imported (it is not, until it is needed)."""
    return importlib.util.find_spec("torch") is not None


def resolve(as_: str | None) -> str:
    """ "torch" or "numpy"; None: torch where there is one."""
    if as_ is None:
        return "torch" if has_torch() else "numpy"
    if as_ not in ("torch", "numpy"):
        raise ValueError(f"as_ is {as_!r}; it may be 'torch' or 'numpy'")
    return as_


def to_numpy(tensor: _core.Tensor) -> numpy.ndarray:
    """A writable array over the tensor's memory; bfloat16 shows its bits, as uint16."""
    return numpy.asarray(tensor)


def to_torch(tensor: _core.Tensor) -> Any:
    """A torch tensor over the tensor's memory. Torch is imported here, with the first."""
    from torch.utils.dlpack import from_dlpack

    return from_dlpack(tensor.capsule())


def converter(as_: str) -> Callable[[_core.Tensor], Any]:
    """The function that turns the library's tensor into an array of this kind."""
    return to_numpy if as_ == "numpy" else to_torch


def is_array(value: Any) -> bool:
    """Whether it is a numpy array or a torch tensor."""
    return isinstance(value, numpy.ndarray) or type(value).__module__.partition(".")[0] == "torch"


def stack(values: Sequence[Any], places: int, as_: str, name: str, samples: Sequence[int]) -> Any:
    """Values of one sample each -> one of the batch: arrays and numbers are stacked, with zeros in
    the places that have no sample; anything else becomes a list, with None there."""
    first = values[0]
    if is_array(first):
        return _stack_arrays(values, places, as_, name, samples)
    if all(isinstance(value, (bool, int, float, numpy.generic)) for value in values):
        array = numpy.zeros(places, numpy.asarray(list(values)).dtype)
        array[: len(values)] = values
        return _from_numpy(array) if as_ == "torch" else array
    return [*values, *[None] * (places - len(values))]


def _from_numpy(array: numpy.ndarray) -> Any:
    import torch

    return torch.from_numpy(array)


def _stack_arrays(
    values: Sequence[Any], places: int, as_: str, name: str, samples: Sequence[int]
) -> Any:
    first = values[0]
    for value, sample in zip(values, samples, strict=False):
        if not is_array(value) or value.shape != first.shape or value.dtype != first.dtype:
            raise ShapeError(
                f"sample_map gives {name} of unequal shape: {describe(first)} for sample "
                f"{samples[0]} and {describe(value)} for sample {sample}",
                sample=int(sample),
                remedy="return the same shape and type for each sample",
            )
    if as_ == "numpy":
        batch = numpy.zeros((places, *first.shape), first.dtype)
        for i, value in enumerate(values):
            batch[i] = value
        return batch
    import torch

    tensors = [torch.as_tensor(value) for value in values]
    if len(tensors) == places:
        return torch.stack(tensors)
    padding = torch.zeros((places - len(tensors), *first.shape), dtype=tensors[0].dtype)
    return torch.cat([torch.stack(tensors), padding])


def describe(value: Any) -> str:
    """Shape and type in words."""
    if is_array(value):
        return f"{tuple(value.shape)} {str(value.dtype).removeprefix('torch.')}"
    return type(value).__name__
