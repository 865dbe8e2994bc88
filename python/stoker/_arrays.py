"""From the library's tensors to those of torch or numpy, without a copy; and back into batches."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from . import _core
from .errors import ShapeError


def has_torch() -> bool:
    """Whether torch can be imported (it is not, until it is needed)."""
    return importlib.util.find_spec("torch") is not None


def resolve(as_: str | None, plain: str = "numpy") -> str:
    """ "torch", "numpy" or "dlpack"; None: torch where there is one, else the plain kind."""
    if as_ is None:
        return "torch" if has_torch() else plain
    if as_ not in ("torch", "numpy", "dlpack"):
        raise ValueError(f"as_ is {as_!r}; it may be 'torch', 'numpy' or 'dlpack'")
    return as_


def to_numpy(tensor: _core.Tensor) -> numpy.ndarray:
    """A writable array over the tensor's memory; bfloat16 shows its bits, as uint16."""
    return numpy.asarray(tensor)


def to_torch(tensor: _core.Tensor) -> Any:
    """A torch tensor over the tensor's memory. Torch is imported with the first."""
    return _torch_door()(tensor.capsule())


def _to_torch_on(number: int) -> Callable[[_core.Tensor], Any]:
    """As to_torch, in the memory of a GPU: torch's current stream waits until the tensor is there.
    What torch.from_dlpack does, without its detours: this runs once for every tensor of a batch."""
    import torch

    door = _torch_door()
    # The number alone, where torch has a way to it: a Stream object takes longer than the rest.
    current = getattr(torch._C, "_cuda_getCurrentRawStream", None) or (
        lambda number: torch.cuda.current_stream(number).cuda_stream
    )

    def to_torch_there(tensor: _core.Tensor) -> Any:
        stream = current(number)  # 0: the default stream, which DLPack calls 1
        return door(tensor.__dlpack__(stream=stream or 1))

    return to_torch_there


def as_it_is(tensor: _core.Tensor) -> _core.Tensor:
    """The library's own tensor, which others take through DLPack."""
    return tensor


@functools.cache
def _torch_door() -> Callable[[Any], Any]:
    from torch.utils.dlpack import from_dlpack

    return from_dlpack


def load(as_: str) -> None:
    """Imports what arrays of this kind need, now and in this thread: torch half imported, by a
    Ctrl-C or in a thread at the interpreter's exit, is broken."""
    if as_ == "torch":
        _torch_door()


def converter(as_: str, device: int | None = None) -> Callable[[_core.Tensor], Any]:
    """The function that turns the library's tensor into an array of this kind."""
    if as_ == "torch":
        return to_torch if device is None else _to_torch_on(device)
    return to_numpy if as_ == "numpy" else as_it_is


def mask_of(lengths: Any, size: int) -> Any:
    """(B, size) of bool: the first so many of each row are True. Row by row in numpy: comparing
    with a range takes ten times as long, and torch's way wakes threads that then spin on the
    cores that decode. On a GPU torch compares: nothing waits for the lengths."""
    is_torch = not isinstance(lengths, numpy.ndarray)
    if is_torch and lengths.device.type != "cpu":
        import torch

        return torch.arange(size, device=lengths.device) < lengths[:, None]
    mask = numpy.zeros((len(lengths), size), numpy.bool_)
    for row, length in zip(mask, lengths.tolist(), strict=True):
        row[:length] = True
    return _from_numpy(mask) if is_torch else mask


def zeros(shape: tuple[int, ...], like: Any) -> Any:
    """Of the kind and type of another array."""
    if isinstance(like, numpy.ndarray):
        return numpy.zeros(shape, like.dtype)
    return like.new_zeros(shape)


def has_nan(value: Any) -> bool:
    """Whether a number, or an array in the memory of the CPU, is or holds NaN."""
    if isinstance(value, (float, numpy.floating)):
        return bool(value != value)
    if isinstance(value, numpy.ndarray):
        return value.dtype.kind == "f" and value.size > 0 and bool(numpy.isnan(value.min()))
    if not is_array(value) or value.numel() == 0 or value.device.type != "cpu":
        return False
    import torch

    plain = value.dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    return plain and value.layout == torch.strided and bool(value.min().isnan())


def is_array(value: Any) -> bool:
    """Whether it is a numpy array or a torch tensor."""
    if isinstance(value, numpy.ndarray):
        return True
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)  # no torch, no tensors
    return tensor is not None and isinstance(value, tensor)


def stack(values: Sequence[Any], places: int, as_: str, name: str, samples: Sequence[int]) -> Any:
    """Values of one sample each -> one of the batch: arrays and numbers are stacked, with zeros in
    the places that have no sample; anything else becomes a list, with None there."""
    if any(is_array(value) for value in values):
        return _stack_arrays(values, places, as_, name, samples)
    if all(isinstance(value, (bool, int, float, complex, numpy.generic)) for value in values):
        numbers = numpy.asarray(values)
        if numbers.dtype.kind in "biufc":
            array = numpy.zeros(places, numbers.dtype)
            array[: len(values)] = numbers
            return _from_numpy(array) if as_ == "torch" else array
    return [*values, *[None] * (places - len(values))]


def _from_numpy(array: numpy.ndarray) -> Any:
    import torch

    return torch.from_numpy(array)


def _stack_arrays(
    values: Sequence[Any], places: int, as_: str, name: str, samples: Sequence[int]
) -> Any:
    first = values[0]
    form = _form(first)
    for value, sample in zip(values, samples, strict=False):
        if _form(value) != form:
            raise ShapeError(
                f"sample_map gives {name} of unequal shape: {describe(first)} for sample "
                f"{samples[0]} and {describe(value)} for sample {sample}",
                sample=int(sample),
                remedy="return the same shape and type for each sample",
            )
    if as_ == "numpy" or isinstance(first, numpy.ndarray):
        arrays = [numpy.asarray(value) for value in values]
        batch = numpy.zeros((places, *first.shape), arrays[0].dtype.newbyteorder("="))
        for i, array in enumerate(arrays):
            batch[i] = array
        return batch if as_ == "numpy" else _from_numpy(batch)
    import torch

    tensors = [torch.as_tensor(value) for value in values]
    if len(tensors) == places:
        return torch.stack(tensors)
    padding = torch.zeros((places - len(tensors), *first.shape), dtype=tensors[0].dtype)
    return torch.cat([torch.stack(tensors), padding])


def _form(value: Any) -> Any:
    """What values of one batch have in common."""
    return (value.shape, value.dtype) if is_array(value) else type(value)


def describe(value: Any) -> str:
    """Shape and type in words."""
    if is_array(value):
        return f"{tuple(value.shape)} {str(value.dtype).removeprefix('torch.')}"
    return type(value).__name__
