"""A GPU that is not there, for scripts under `stoker run` on machines without one: work is queued
and takes its time by the clock, and the simulated CUPTI (sim_cupti.c) hands out records of it as
the real one would. The caller's thread waits where it would wait for a real device.

STOKER_TEST_CUPTI names the simulated libcupti.so; CUDA_INJECTION64_PATH is honoured as CUDA's
driver honours it.
"""

import ctypes
import os
import struct
import time

KERNEL, COPY, SYNC = 10, 1, 38
TO_DEVICE, PAGEABLE, PINNED, DEVICE = 1, 1, 2, 3
STREAM = 7


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def until(moment):
    """Waits as the driver does: asleep, then awake for the last bit."""
    while (left := moment - now()) > 0:
        if left > 200_000:
            time.sleep((left - 100_000) / 1e9)


class SimGpu:
    """One device with one stream and a queue."""

    def __init__(self):
        self._cupti = ctypes.CDLL(os.environ["STOKER_TEST_CUPTI"])
        self._cupti.sim_cupti_add.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
        self._cupti.sim_cupti_add.restype = None
        self._names, self._free, self._launches = {}, 0, 0
        self.busy = 0  # nanoseconds of kernels
        self._injected = None
        if path := os.environ.get("CUDA_INJECTION64_PATH"):
            self._injected = ctypes.CDLL(path)
            self._injected.InitializeInjection()

    def _add(self, record):
        self._cupti.sim_cupti_add(record, len(record), 1)

    def _queue(self, seconds):
        start = max(now(), self._free)
        self._free = start + round(seconds * 1e9)
        return start, self._free

    def _kernel(self, seconds, name, correlation, graph):
        if name not in self._names:
            self._names[name] = ctypes.create_string_buffer(name.encode())
        start, end = self._queue(seconds)
        self.busy += end - start
        record = bytearray(160)
        struct.pack_into("<I", record, 0, KERNEL)
        struct.pack_into("<QQQIII", record, 16, start, end, end, 0, 1, STREAM)
        struct.pack_into("<I", record, 92, correlation)
        struct.pack_into("<Q", record, 104, ctypes.addressof(self._names[name]))
        struct.pack_into("<QII", record, 144, 11 if graph else 0, 0, graph)
        self._add(bytes(record))

    def launch(self, seconds, name="kernel"):
        """Queues a kernel; at most half a second of work is queued, as a real queue has an end."""
        until(self._free - 500_000_000)
        self._launches += 1
        self._kernel(seconds, name, self._launches, 0)

    def launch_graph(self, kernels, is_seen=True, is_told=True):
        """Queues kernels (a list of seconds) as one graph. is_seen: CUPTI records them; is_told: as
        the hook does when PyTorch launches one."""
        until(self._free - 500_000_000)
        self._launches += 1
        if self._injected and is_told:
            self._injected.stoker_inject_graph()
        for seconds in kernels:
            if is_seen:
                self._kernel(seconds, "node", self._launches, 4)
            else:
                self.busy += round(seconds * 1e9)
                self._queue(seconds)

    def copy(self, seconds, size, is_pinned=False):
        """A copy to the device. From pageable memory the caller waits for it."""
        start, end = self._queue(seconds)
        source = PINNED if is_pinned else PAGEABLE
        kind = struct.pack("<IBBBB", COPY, TO_DEVICE, source, DEVICE, 0)
        self._add(kind + struct.pack("<QQQIIIIQQQ", size, start, end, 0, 1, STREAM, 0, 0, 0, 0))
        if not is_pinned:
            until(end)

    def synchronize(self):
        """As .item() does."""
        start = now()
        until(self._free)
        self._add(struct.pack("<IIQQIIIIQQ", SYNC, 3, start, now(), 0, 1, STREAM, 0, 0, 0))
