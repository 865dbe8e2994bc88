"""Where batches are handed over: on the CPU, or in the memory of a GPU."""

from __future__ import annotations

import functools
import operator
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from . import _arrays, _core
from ._context import log
from ._options import parse_size
from .errors import UnsupportedError, UsageError

_RESIDENT = {False: "no", True: "yes", "auto": "auto"}


class Device(NamedTuple):
    """What the library is asked for."""

    kind: str  # "cpu", "cuda" or "auto"
    number: int = 0
    memory: int = 0
    resident: str = "no"
    decode: str = "auto"


def read_device(device: Any, memory: int | str | None, resident: Any, decode: str) -> Device:
    """The options of a loader that are about its device, looked at together."""
    kind, number = _read_name(device)
    if resident not in _RESIDENT:
        raise ValueError(f"resident is {resident!r}; it may be False, True or 'auto'")
    if decode not in ("auto", "cpu", "gpu"):
        raise ValueError(f"decode is {decode!r}; it may be 'auto', 'cpu' or 'gpu'")
    size = 0 if memory is None else parse_size(memory)
    if memory is not None and size == 0:
        raise ValueError("device_memory is 0; leave it out for the default")
    if kind == "cpu":
        given = {"device_memory": memory is not None, "resident": bool(resident)}
        for name, is_given in {**given, "decode": decode == "gpu"}.items():
            if is_given:
                raise UsageError(
                    f"{name} is given, and batches stay in the memory of the CPU",
                    remedy='give device="cuda" as well',
                )
        return Device("cpu")
    add_folders()
    if number is None:
        number = _own_number()
    return Device(kind, number, size, _RESIDENT[resident], decode)


def _read_name(device: Any) -> tuple[str, int | None]:
    """ "cuda", "cuda:1", a torch.device or 1 -> its kind, and its number where there is one."""
    if device is None:
        return "cpu", None
    if not isinstance(device, (str, bool)) and hasattr(device, "__index__"):
        number = operator.index(device)
        if number >= 0:
            return "cuda", number
    elif isinstance(device, str) or type(device).__module__ == "torch":
        name = str(device)
        if name in ("cpu", "auto", "cuda"):
            return name, None
        if found := re.fullmatch(r"cuda:(\d{1,4})", name):
            return "cuda", int(found[1])
    raise ValueError(f"device is {device!r}; it may be 'cpu', 'cuda', 'cuda:1' or 'auto'")


def _own_number() -> int:
    """The GPU of this process: that of its local rank under torchrun, else torch's current one,
    else the first. A rank that is shown one GPU alone counts from 0 whatever its number is."""
    rank = os.environ.get("LOCAL_RANK", "")
    if rank.isdecimal() and int(rank) < _core.device_count():
        return int(rank)
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        return int(torch.cuda.current_device())
    return 0


@functools.cache
def add_folders() -> None:
    """Tells the library where PyTorch's packages keep CUDA's (NVRTC, nvJPEG, CUPTI, cuFFT):
    nvidia/cu13/lib, or nvidia/NAME/lib, one a library."""
    folders = []
    for entry in map(Path, sys.path):
        folders += sorted(entry.glob("nvidia/*/lib"))
        folders += [entry / "torch" / "lib"] if (entry / "torch" / "lib").is_dir() else []
    _core.device_folders(b":".join(map(os.fsencode, folders)))


def array_kind(as_: str | None, of_dataset: str, device: Device) -> str:
    """What batches are made of. Without torch, batches on a device are the library's tensors."""
    if as_ is None and of_dataset == "numpy" and device.kind == "cuda" and not _arrays.has_torch():
        return "dlpack"
    return _arrays.resolve(as_ or of_dataset)


def settle(device: Device, as_: str, has_sample_map: bool) -> Device:
    """The device again, when batches of this kind can be there; else an error, or with "auto" the
    CPU. Where there is no GPU at all, the library says so, and why."""
    if device.kind == "cpu" or _core.device_count() == 0:
        return device
    if as_ == "numpy":
        why = "numpy's arrays are in the memory of the CPU"
        remedy = 'leave as_ out, or say as_="dlpack"'
    elif as_ == "torch" and not _torch_has_cuda():
        why = "this PyTorch cannot use a GPU"
        remedy = 'install PyTorch with CUDA, or say as_="dlpack" and use CuPy, JAX or Numba'
    elif has_sample_map:
        why = "sample_map works on samples in the memory of the CPU"
        remedy = "use transforms=, or map=, which gets the whole batch on the device"
    else:
        return device
    if device.kind == "cuda":
        raise UnsupportedError(f"device is a GPU, and {why}", remedy=remedy)
    log.warning("there is a GPU, but %s: batches are not handed over on it", why)
    return Device("cpu")


def _torch_has_cuda() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def tensors_in(value: Any) -> Iterator[Any]:
    """All tensors in a batch: of torch, CuPy or the library, in dicts, tuples and lists."""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)
    elif hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] == 2:
        yield value


def address_of(tensor: Any) -> int:
    """Of its first value in the device's memory."""
    if isinstance(tensor, _core.Tensor):
        return tensor.address
    if hasattr(tensor, "data_ptr"):
        return int(tensor.data_ptr())
    return int(tensor.__cuda_array_interface__["data"][0])


def handle_of(stream: Any) -> int:
    """The CUstream of a stream of torch, CuPy or Numba, or of a number."""
    for name in ("cuda_stream", "ptr", "handle"):
        if hasattr(stream, name):
            return operator.index(getattr(stream, name))
    if hasattr(stream, "__cuda_stream__"):
        return operator.index(stream.__cuda_stream__()[1])
    return operator.index(stream)


class Staged(NamedTuple):
    """What a map made, and the event after which it is there."""

    result: Any
    event: Any


class MapStreams:
    """Each thread of the map works in a stream of its own: the caller's stream waits for what it
    made, not for what the others do."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._local = threading.local()

    def run(self, work: Callable[[], Any]) -> Staged:
        """In a thread of the map."""
        import torch

        stream = getattr(self._local, "stream", None)
        if stream is None:
            stream = self._local.stream = torch.cuda.Stream(self._number)
        with torch.cuda.stream(stream):
            result = work()
            return Staged(result, stream.record_event())

    def take(self, staged: Staged, use: Callable[[int, int], bool]) -> Any:
        """In the caller's thread: its current stream may use the result from now on."""
        import torch

        current = torch.cuda.current_stream(self._number)
        current.wait_event(staged.event)
        for tensor in tensors_in(staged.result):
            record(tensor, current, use)
        return staged.result


def record(tensor: Any, stream: Any, use: Callable[[int, int], bool]) -> bool:
    """The stream works on the tensor too: told to the loader that it is of, else to torch. Whether
    one of them knows it."""
    address = address_of(tensor)
    if not address or use(address, handle_of(stream)):
        return True
    is_torch = hasattr(tensor, "record_stream") and hasattr(stream, "cuda_stream")
    if is_torch:
        tensor.record_stream(stream)
    return is_torch
