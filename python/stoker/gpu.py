"""How busy a GPU is: measured by the device itself, kernel by kernel.

>>> with stoker.gpu.Activity() as activity:
...     train()
>>> print(f"GPU busy {activity.busy:.1%}, {activity.kernels} kernels")
"""

import sys
from types import TracebackType
from typing import Any

import numpy

from . import _core
from ._device import add_folders
from .errors import BusyError, UsageError


class Activity:
    """Records every kernel, copy and clear of this process on one GPU, while the ``with`` lasts.

    The times are the device's own (CUPTI), so that the sums are exact; a launch takes a microsecond
    or so longer. One at a time in a process, and not beside PyTorch's profiler, which needs CUPTI
    for itself. At the end the device is waited for, where PyTorch has one; where other libraries
    launch work, wait for it yourself.

    Args:
        device: its number, ``"cuda:1"``, or torch's device.
        bin: the length of the timeline's steps, in seconds.
    """

    def __init__(self, device: Any = 0, bin: float = 0.01) -> None:
        self._device = _number_of(device)
        self._bin_ns = round(bin * 1e9)
        self._recording: Any = None
        self._sums: dict[str, Any] | None = None

    def __enter__(self) -> "Activity":
        _refuse_profiler()
        add_folders()
        self._sums = None
        self._recording = _core.activity_start(self._device, self._bin_ns)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        recording, self._recording = self._recording, None
        try:
            if error is None:
                _wait_for(self._device)
                _refuse_profiler()
                self._sums = _core.activity_read(recording)
        finally:
            _core.activity_stop(recording)

    def _get(self) -> dict[str, Any]:
        if self._recording is not None:
            self._sums = _core.activity_read(self._recording)
        if self._sums is None:
            raise UsageError("nothing was recorded: use it as `with stoker.gpu.Activity() as a:`")
        return self._sums

    @property
    def seconds(self) -> float:
        """How long was recorded."""
        return self._get()["wall_ns"] * 1e-9

    @property
    def busy(self) -> float:
        """The share of the time in which at least one kernel ran: 0 to 1."""
        sums = self._get()
        return sums["kernel_ns"] / max(1, sums["wall_ns"])

    @property
    def kernel_seconds(self) -> float:
        """The time in which at least one kernel ran."""
        return self._get()["kernel_ns"] * 1e-9

    @property
    def copy_seconds(self) -> float:
        """The time in which at least one copy or clear ran, beside kernels or not."""
        return self._get()["copy_ns"] * 1e-9

    @property
    def kernels(self) -> int:
        """How many kernels ran."""
        return self._get()["kernels"]

    @property
    def copies(self) -> int:
        """How many copies and clears ran."""
        return self._get()["copies"]

    @property
    def copied_bytes(self) -> int:
        """What the copies moved."""
        return self._get()["copied_bytes"]

    @property
    def lost(self) -> int:
        """Records that are missing: not 0 means that the sums are too small."""
        return self._get()["lost"]

    def timeline(self) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
        """Seconds since the start at which each bin begins, and the shares of it in which kernels
        and copies ran: three arrays of one length."""
        sums = self._get()
        kernels = numpy.frombuffer(sums["kernel_bins"], numpy.uint64).astype(numpy.float64)
        copies = numpy.frombuffer(sums["copy_bins"], numpy.uint64).astype(numpy.float64)
        starts = numpy.arange(len(kernels)) * (sums["bin_ns"] * 1e-9)
        lengths = numpy.full(len(kernels), float(sums["bin_ns"]))
        if len(lengths):  # the last one has only begun
            lengths[-1] = max(1.0, sums["wall_ns"] - (len(lengths) - 1) * sums["bin_ns"])
        return starts, numpy.minimum(1, kernels / lengths), numpy.minimum(1, copies / lengths)


def nvml_utilization(device: Any = 0) -> float | None:
    """What nvidia-smi shows: the share of its last sampling period, up to a second long, in which
    any kernel of any process ran: 0 to 1. None where the device does not tell."""
    share: float | None = _core.device_sample(_number_of(device))["utilization"]
    return share


def _number_of(device: Any) -> int:
    """0, "cuda", "cuda:1" or torch.device("cuda", 1)."""
    if isinstance(device, int):
        return device
    kind, _, number = str(device).partition(":")
    if kind != "cuda" or not (number.isdigit() or number == ""):
        raise ValueError(f"device is {device!r}: a number, 'cuda' or 'cuda:1' is meant")
    return int(number or 0)


def _wait_for(device: int) -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize(device)


def _refuse_profiler() -> None:
    """CUPTI hands its records to whoever asked last."""
    torch = sys.modules.get("torch")
    enabled = getattr(getattr(torch, "_C", None), "_autograd", None)
    enabled = getattr(enabled, "_profiler_enabled", None)
    if enabled is not None and enabled():
        raise BusyError("PyTorch's profiler is recording, and only one of the two can: end it")
