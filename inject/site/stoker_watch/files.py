"""Which files a loader opens: how many, how large, of which kind. Counted by an audit hook, which
sees what Python code opens; a library in C that opens files by itself is not seen."""

import os
import sys
from zlib import crc32

from . import recording
from . import ring as rings
from .recording import state

part = recording.Part("opened files")

SEEN_BITS = 1 << 17  # a bitmap of hashes: some 3 % off at 300,000 files
EVERY = 64  # so many opens a look at a size, after the first ones
NOT_DATA = (".py", ".pyc", ".so", ".pth", ".json.lock")
NOT_FOLDERS = ("/proc/", "/sys/", sys.prefix + os.sep, sys.base_prefix + os.sep)


class Counting:
    on = False


counting = Counting()


class Seen:
    """Sums since the start."""

    def __init__(self, loader):
        self.loader, self.pid = loader, os.getpid()
        self.opens = 0
        self.told = 0
        self.sizes = self.sized = 0
        self.folder = None
        self.extensions = {}
        self.bits = None
        self.set_bits = 0

    def distinct(self):
        """From how full the bitmap is."""
        empty = SEEN_BITS - self.set_bits
        if empty == 0:
            return self.opens
        from math import log

        return min(self.opens, round(SEEN_BITS * log(SEEN_BITS / empty)))


seen = Seen(0)
_hooked = False


def begin(loader):
    """Counts in this process from now on."""
    global _hooked, seen
    if seen.loader != loader or seen.pid != os.getpid():
        tell()
        seen = Seen(loader)
    counting.on = False
    if not part.on:
        return
    if not _hooked:
        _hooked = True
        sys.addaudithook(_hook)
    if tell not in state.on_second:
        state.on_second.append(tell)


def _hook(event, arguments):
    if counting.on and event == "open":
        try:
            _opened(*arguments)
        except Exception:
            counting.on = False
            part.on = False


def _opened(path, mode, flags):
    if type(path) is int or not part.on:
        return
    if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR):
        return
    path = os.fsdecode(path)
    if path.endswith(NOT_DATA) or path.startswith(NOT_FOLDERS):
        return
    if path.startswith("/dev/") and not path.startswith("/dev/shm/"):
        return
    seen.opens += 1
    if seen.bits is None:
        seen.bits = bytearray(SEEN_BITS // 8)
    at = crc32(path.encode("utf-8", "surrogateescape")) & (SEEN_BITS - 1)
    if not seen.bits[at >> 3] & (1 << (at & 7)):
        seen.bits[at >> 3] |= 1 << (at & 7)
        seen.set_bits += 1
    if seen.opens <= 16 or seen.opens % EVERY == 0:
        _look(path)


def _look(path):
    """At a few of them."""
    try:
        seen.sizes += os.stat(path).st_size
        seen.sized += 1
    except OSError:
        return
    folder = os.path.dirname(os.path.abspath(path))
    seen.folder = folder if seen.folder is None else os.path.commonpath([seen.folder, folder])
    extension = os.path.splitext(path)[1].lower()[:15]
    if extension in seen.extensions or len(seen.extensions) < 64:
        seen.extensions[extension] = seen.extensions.get(extension, 0) + 1


def tell():
    """Once a second, when there is something new."""
    if seen.opens == seen.told or seen.pid != os.getpid() or not part.on:
        return
    seen.told = seen.opens
    extensions = seen.extensions
    recording.record_json(
        rings.RECORD_FILES,
        seen.loader,
        {
            "opens": seen.opens,
            "distinct": seen.distinct(),
            "bytes": seen.opens * seen.sizes // seen.sized if seen.sized else 0,
            "folder": seen.folder or "",
            "extension": max(extensions, key=extensions.get) if extensions else "",
        },
    )
