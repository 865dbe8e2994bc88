"""Reads the rings of the injected library (src/watch/record.h) while they are written. Needs the
standard library alone, so that it also runs on a machine where Stoker is not built."""

import mmap
import os
import struct
import threading
import time
from collections import namedtuple
from pathlib import Path

HEADER = 4096
MAGIC = 0x31474E49524B5453
HEAD, TAIL = 64, 128

Kernel = namedtuple("Kernel", "start end device stream name graph")
Copy = namedtuple("Copy", "start end bytes device stream way source target")
Sync = namedtuple("Sync", "start end what stream")
Cost = namedtuple("Cost", "start end what")
State = namedtuple("State", "time state text")
Lost = namedtuple("Lost", "time count why")
Reached = namedtuple("Reached", "time")

RECORDS, YIELDS, ENDS, ABSENT, RESTS = 1, 2, 3, 4, 5
OPEN, CLOSED = 1, 2


class Ring:
    """One ring, read from its beginning on."""

    def __init__(self, path):
        with open(path, "r+b") as file:
            self.data = mmap.mmap(file.fileno(), 0)
        magic, version, kind, capacity, pid = struct.unpack_from("<QIIQI", self.data, 0)
        assert (magic, version, kind) == (MAGIC, 1, 1), "this is no ring of a GPU"
        self.capacity, self.pid = capacity, pid
        self.names, self.records = {}, []

    def _number(self, at):
        return struct.unpack_from("<Q", self.data, at)[0]

    @property
    def lost(self):
        return self._number(72)

    @property
    def state(self):
        return self._number(80)

    def drain(self):
        """Takes what is there and tells the writer so."""
        head, tail = self._number(HEAD), self._number(TAIL)
        while tail < head:
            at = HEADER + (tail & (self.capacity - 1))
            kind, _, size = struct.unpack_from("<HHI", self.data, at)
            assert size >= 8 and size % 8 == 0 and tail + size <= head, "a record is torn"
            self._take(kind, at + 8)
            tail += size
        struct.pack_into("<Q", self.data, TAIL, tail)

    def _take(self, kind, at):
        data = self.data
        if kind == 1:
            number, length = struct.unpack_from("<II", data, at)
            self.names[number] = data[at + 8 : at + 8 + length].decode(errors="replace")
        elif kind == 2:
            *times, device, stream, name, graph = struct.unpack_from("<QQIIII", data, at)
            self.records.append(Kernel(*times, device, stream, self.names[name], graph))
        elif kind == 3:
            self.records.append(Copy(*struct.unpack_from("<QQQIIBBB", data, at)))
        elif kind == 4:
            self.records.append(Sync(*struct.unpack_from("<QQII", data, at)))
        elif kind == 5:
            self.records.append(Cost(*struct.unpack_from("<QQI", data, at)))
        elif kind == 6:
            when, state, length = struct.unpack_from("<QII", data, at)
            text = data[at + 16 : at + 16 + length].decode(errors="replace")
            self.records.append(State(when, state, text))
        elif kind == 7:
            self.records.append(Lost(*struct.unpack_from("<QQI", data, at)))
        elif kind == 8:
            self.records.append(Reached(*struct.unpack_from("<Q", data, at)))
        else:
            assert kind == 0, f"a record of kind {kind}"

    def of(self, form):
        return [record for record in self.records if isinstance(record, form)]


class Follower:
    """Reads all rings of a folder from a thread, as `stoker run` does."""

    def __init__(self, folder):
        self.folder, self.rings = Path(folder), {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        self._look()

    def _look(self):
        for path in self.folder.glob("ring.*.gpu"):
            number = path.stat().st_ino  # a process that starts again makes another of its name
            if number not in self.rings:
                self.rings[number] = Ring(path)
        for ring in self.rings.values():
            ring.drain()

    def _follow(self):
        while not self._stop.wait(0.02):
            self._look()


def covered(spans, start, end):
    """How much of [start, end) is covered by spans, each counted once."""
    total, upto = 0, start
    for first, last in sorted(spans):
        first, last = max(first, upto), min(last, end)
        if last > first:
            total, upto = total + last - first, last
    return total


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def only_ring(follower):
    rings = list(follower.rings.values())
    assert len(rings) == 1, f"{len(rings)} rings in {os.listdir(follower.folder)}"
    return rings[0]
