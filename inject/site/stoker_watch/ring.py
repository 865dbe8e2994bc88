"""The ring that this process tells `stoker run` through: src/watch/record.h, spelled out.

One file a process. Records that find no room are counted, never waited for.
"""

import mmap
import os
import struct
from _thread import allocate_lock
from collections import deque
from time import monotonic_ns

MAGIC = 0x31474E49524B5453
VERSION = 1
HEADER = 4096
RING_PYTHON = 2
RING_OPEN, RING_CLOSED = 1, 2

RECORD_FILLER = 0
RECORD_NAME = 1
RECORD_KERNEL = 2
RECORD_COPY = 3
RECORD_REACHED = 8
RECORD_PROCESS = 32
RECORD_LOADER = 33
RECORD_FRAME = 34
RECORD_SAMPLE = 35
RECORD_SPAN = 36
RECORD_MARK = 37
RECORD_QUEUE = 38
RECORD_FILES = 39
RECORD_NOTICE = 40

COPY_TO_DEVICE, COPY_TO_HOST, COPY_ON_DEVICE, COPY_CLEAR, COPY_OTHER = 1, 2, 8, 100, 101
COPY_UNKNOWN, COPY_PAGEABLE, COPY_PINNED, COPY_DEVICE, COPY_MANAGED = 0, 1, 2, 3, 5
FRAME_IS_SOURCE = 1
SAMPLE_MAIN, SAMPLE_PIN, SAMPLE_OTHER, SAMPLE_OURS = 1, 2, 3, 4

SPAN_ITER = 1
SPAN_NEXT = 2
SPAN_FETCH = 3
SPAN_COLLATE = 4
SPAN_SEND = 5
SPAN_IDLE = 6
SPAN_PIN = 7
SPAN_CHECKPOINT = 8
SPAN_VALIDATION = 9
SPAN_COLLECTIVE = 10
SPAN_BACKWARD = 11
SPAN_OPTIMIZER = 12
SPAN_PROFILER = 13
SPAN_COMPILE = 15
ENDED_EPOCH = 1  # a flag of SPAN_NEXT

MARK_STEP = 1
MARK_EPOCH = 2
MARK_EPOCH_END = 3
MARK_BATCH = 4
MARK_END = 5
MARK_SAMPLED = 6
MARK_CUDA = 7
MARK_MODULE = 8

UNKNOWN = (1 << 64) - 1

# Native sizes and alignment: these are the C structs, and a word is stored in one piece.
SPAN = struct.Struct("HHIQQIIQQ")
MARK = struct.Struct("HHIQIIQQ")
QUEUE = struct.Struct("HHIQIiiiii")
SAMPLE = struct.Struct("HHIQQQIIII")
KERNEL = struct.Struct("HHIQQIIII")
COPY = struct.Struct("HHIQQQIIBBB5x")
REACHED = struct.Struct("HHIQ")
TEXT = struct.Struct("HHIII")
FRAME = struct.Struct("HHIIIIHH")
FILLER = struct.Struct("HHI")
HEAD = struct.Struct("QIIQIIQ")

WAITING_MOST = 1 << 16  # entries for a flush: the oldest make room

_HEAD_WORD, _LOST_WORD, _STATE_WORD, _TAIL_WORD = 8, 9, 10, 16
_kept = []  # a map that is freed would close its descriptor, which may be another file's by then


def _copy(buffer, at, _kind, _flags, size, records):
    buffer[at : at + size] = records


class Ring:
    """The writer's side. Any thread may write; a fork makes a ring of its own.

    To write a record costs a training loop 5 to 10 us, for nothing of what it needs is in the
    processor's caches; to append what is known to a list costs one. So it waits there, as (write,
    arguments...), while a thread of ours comes to write records, many at a time (flush).
    """

    __slots__ = (
        "_fence",
        "_flushing",
        "_full",
        "_head",
        "_lock",
        "_map",
        "_mask",
        "_words",
        "capacity",
        "waiting",
    )

    def __init__(self, folder, pid, capacity):
        made = os.path.join(folder, f"new.{pid}.py")
        fd = os.open(made, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            # A hole that cannot be filled later would be a SIGBUS in the script.
            os.posix_fallocate(fd, 0, HEADER + capacity)
            try:
                self._map = mmap.mmap(fd, HEADER + capacity, trackfd=False)
            except TypeError:
                self._map = mmap.mmap(fd, HEADER + capacity)
        except BaseException:
            os.unlink(made)
            raise
        finally:
            os.close(fd)
        _kept.append(self._map)
        self.capacity = capacity
        self._mask = capacity - 1
        self._words = memoryview(self._map).cast("Q")
        self._head = 0
        self._full = capacity  # the head cannot pass it: the tail that was read last, and a round
        self._lock = allocate_lock()
        self.waiting, self._flushing = deque(maxlen=WAITING_MOST), allocate_lock()
        self._fence = None
        if os.uname().machine not in ("x86_64", "i686"):
            self._fence = allocate_lock()
            self._fence.acquire()
        HEAD.pack_into(
            self._map, 0, MAGIC, VERSION, RING_PYTHON, capacity, pid, os.getppid(), monotonic_ns()
        )
        self._words[_STATE_WORD] = RING_OPEN
        os.rename(made, os.path.join(folder, f"ring.{pid}.py"))

    def flush(self):
        """Writes what waits, in its order. False: another thread is still at it."""
        flushing = self._flushing
        if not flushing.acquire(False) and not flushing.acquire(True, 0.01):  # as in put
            return False
        try:
            waiting = self.waiting
            if len(waiting) == WAITING_MOST:
                self._words[_LOST_WORD] += 1  # at least
            while waiting:
                write, *arguments = waiting.popleft()
                write(self, *arguments)
            return True
        finally:
            flushing.release()

    def put(self, pack_into, size, kind, flags, *fields):
        """Writes one record of a fixed form. False: there was no room."""
        lock = self._lock
        # A signal handler of the script may come here while its thread writes: no wait for ever.
        if not lock.acquire(False) and not lock.acquire(True, 0.01):
            self._words[_LOST_WORD] += 1
            return False
        try:
            head = self._head
            at = head & self._mask
            end = head + size
            if end > self._full or at + size > self.capacity:
                at, end = self._make_room(size)
                if at < 0:
                    return False
            pack_into(self._map, HEADER + at, kind, flags, size, *fields)
            if self._fence is not None:
                self._order()
            self._head = self._words[_HEAD_WORD] = end
            return True
        finally:
            lock.release()

    def put_text(self, pack_into, fixed, kind, fields, text, flags=0):
        """Writes one record that ends in text."""
        size = (fixed + len(text) + 7) & ~7

        def pack(buffer, at, *values):
            pack_into(buffer, at, *values)
            buffer[at + fixed : at + size] = text.ljust(size - fixed, b"\0")

        return self.put(pack, size, kind, flags, *fields)

    def put_whole(self, records):
        """Writes records that were made elsewhere, as they are."""
        if self.room() > 2 * len(records):
            self.put(_copy, len(records), 0, 0, records)
            return
        at = 0
        while at < len(records):
            _, _, size = FILLER.unpack_from(records, at)
            record = records[at : at + size]
            self.put(_copy, size, 0, 0, record)
            at += size

    def _make_room(self, size):
        """Where the record goes, and the head after it; -1 where it does not fit."""
        head = self._head
        at = head & self._mask
        left = self.capacity - at
        need = size if size <= left else left + size
        self._full = self._words[_TAIL_WORD] + self.capacity
        if head + need > self._full:
            self._words[_LOST_WORD] += 1
            return -1, head
        if need != size:
            FILLER.pack_into(self._map, HEADER + at, RECORD_FILLER, 0, left)
            at = 0
        return at, head + need

    def _order(self):
        """The record is seen before the head that covers it. x86 stores in order; elsewhere a
        release followed by an acquire of one lock keeps the two apart."""
        self._fence.release()
        self._fence.acquire()

    def room(self):
        """Bytes that are free now."""
        return self.capacity - (self._head - self._words[_TAIL_WORD])

    def lost(self):
        return self._words[_LOST_WORD]

    def close(self):
        """Nothing comes any more. The file stays for its reader."""
        self._words[_STATE_WORD] = RING_CLOSED
