"""Objects of stores as files that pyarrow reads: by ranges, some of them ahead of who asks."""

from __future__ import annotations

import io
import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from . import _core
from ._context import context as own_context

Range = tuple[int, int]  # of bytes: the first, and the one behind the last

NEAR = 1 << 16  # a gap that is read, not jumped: less than a round trip
LEAST_WINDOW = 1 << 16
MOST_WINDOW = 1 << 20
AHEAD = 3  # windows of a stream that are on their way at first; with each, one more is


def local_path(source: str) -> str | None:
    """The path that a source means on this machine; None: it is a URI of a store."""
    path = source.removeprefix("file://")
    return None if "://" in path else path


def shown(uri: str) -> str:
    """A URI that was written by hand, as messages may show it: no query, and nobody before the host
    of a web server."""
    scheme, mark, rest = uri.partition("?")[0].partition("://")
    if scheme.lower() in ("http", "https"):
        host, slash, path = rest.partition("/")
        rest = host.rpartition("@")[2] + slash + path
    return scheme + mark + rest


def name_of(uri: str) -> str:
    """The name of an object that was found; only for web servers a question mark ends it."""
    return shown(uri) if uri.lower().startswith(("http:", "https:")) else uri


class Store:
    """What URIs name in stores.

    Attributes:
        files: (URI, size, the folder that it was found in or None) of each.
    """

    def __init__(self, uris: Sequence[str], context: _core.Context | None = None) -> None:
        names = [os.fsencode(uri) for uri in uris]
        self._handle = _core.remote_open(context or own_context(), names)
        self.files = _core.remote_list(self._handle)

    def read(self, number: int, offset: int, length: int) -> bytes:
        return _core.remote_read(self._handle, number, offset, length)

    def stop(self) -> None:
        """Reads end, those that wait and those to come."""
        _core.remote_stop(self._handle)

    def close(self) -> None:
        """Gives back what it holds; nobody reads any more."""
        self._handle = None


class Lane:
    """Ranges that will be read one step after the other, each step of one or more. While one step
    is used, the next ones are on their way: `ahead` at first, up to `most` when it goes on. What
    was used is forgotten, but for `keep` steps."""

    def __init__(
        self, steps: Sequence[Sequence[Range]], ahead: int = 1, most: int = 1, keep: int = 0
    ) -> None:
        self.steps = steps
        self._ahead, self._most, self._keep = ahead, most, keep
        self._held: dict[int, list[Future[bytes]]] = {}  # by step; what was used last is last

    def take(self, step: int, fetch: Callable[[Range], Future[bytes]]) -> list[Future[bytes]]:
        if step - 1 in self._held:
            self._ahead = min(self._ahead + 1, self._most)
        end = min(step + self._ahead + 1, len(self.steps))
        for one in range(step, end):
            if one not in self._held:
                self._held[one] = [fetch(part) for part in self.steps[one]]
        used = self._held[step] = self._held.pop(step)
        others = [one for one in self._held if not step <= one < end]
        for one in others[: max(0, len(others) - self._keep)]:
            futures = self._held.pop(one)
            if one > step:  # jumped back: it is not wanted soon. What lies before may be waited for
                _cancel(futures)
        return used

    def forget(self) -> None:
        for futures in self._held.values():
            _cancel(futures)
        self._held.clear()


def _cancel(futures: Sequence[Future[bytes]]) -> None:
    for future in futures:
        future.cancel()


class RemoteFile(io.RawIOBase):
    """An object of a store. What no lane has is fetched when it is asked for. One thread at a time:
    pyarrow sees to that. What reading raises is given to failed, too: not all of pyarrow passes it
    on."""

    def __init__(
        self,
        read: Callable[[int, int], bytes],
        size: int,
        pool: ThreadPoolExecutor,
        failed: Callable[[BaseException], Any],
    ) -> None:
        self._read, self._size, self._pool, self._failed = read, size, pool, failed
        self._at = 0
        self._lanes: Sequence[Lane] = ()
        self._starts: list[int] = []
        self._places: list[tuple[int, Lane, int, int]] = []  # end, lane, step, number in the step
        self._window = 0
        self._has_begun = False

    def expect(self, lanes: Sequence[Lane]) -> None:
        """It will be read along these lanes, all of them side by side."""
        found = [
            (start, end, number, step, place)
            for number, lane in enumerate(lanes)
            for step, parts in enumerate(lane.steps)
            for place, (start, end) in enumerate(parts)
        ]
        found.sort()
        self._lanes = [lane for lane in lanes if lane.steps]
        self._starts = [start for start, *_ in found]
        self._places = [(end, lanes[number], *rest) for _, end, number, *rest in found]

    def expect_stream(self, window: int, room: int) -> None:
        """It will be read from its begin to its end, in about so many bytes of memory."""
        most = max(AHEAD, room // window - 1)
        self._lanes = (Lane(_Windows(self._size, window), AHEAD, most),)
        self._window = window

    def expect_jumps(self, window: int, room: int) -> None:
        """It will be read here and there, a little each time."""
        self._lanes = (Lane(_Windows(self._size, window), 0, 0, room // window),)
        self._window = window

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        wanted = max(0, min(len(view), self._size - self._at))
        try:
            pieces = []
            begun = done = 0
            while begun < wanted:  # all are on their way before one is waited for
                pieces.append(self._begin(self._at + begun, wanted - begun))
                begun += pieces[-1][2]
            for future, within, count in pieces:
                view[done : done + count] = memoryview(future.result())[within : within + count]
                done += count
        except BaseException as error:
            self._failed(error)
            raise
        self._at += wanted
        return wanted

    def close(self) -> None:
        for lane in self._lanes:
            lane.forget()
        super().close()

    def _fetch(self, part: Range) -> Future[bytes]:
        return self._pool.submit(self._read, part[0], part[1] - part[0])

    def _begin(self, offset: int, length: int) -> tuple[Future[bytes], int, int]:
        """Some of the bytes from there on, at most so many: what will hold them, where in it they
        begin, and how many there are."""
        if self._window:
            step, within = divmod(offset, self._window)
            (future,) = self._lanes[0].take(step, self._fetch)
            return future, within, min(length, self._window - within)
        i = bisect_right(self._starts, offset)
        if i and offset < self._places[i - 1][0]:
            end, lane, step, place = self._places[i - 1]
            if not self._has_begun:  # all together
                self._has_begun = True
                for each in self._lanes:
                    each.take(0, self._fetch)
            future = lane.take(step, self._fetch)[place]
            return future, offset - self._starts[i - 1], min(length, end - offset)
        stop = self._starts[i] if i < len(self._starts) else self._size
        length = min(length, stop - offset)
        return self._fetch((offset, offset + length)), 0, length


class _Windows(Sequence[Sequence[Range]]):
    """A file in windows of one size, a step each."""

    def __init__(self, size: int, window: int) -> None:
        self._size, self._window = size, window

    def __len__(self) -> int:
        return -(-self._size // self._window)

    def __getitem__(self, step: Any) -> Any:
        start = step * self._window
        return [(start, min(start + self._window, self._size))]


def parquet_lanes(
    metadata: Any, names: Sequence[str] | None, size: int, room: int, batch: int
) -> list[Lane]:
    """How columns of a Parquet file are read, in about so many bytes of memory. Row groups of which
    four fit come whole, small ones together; one column may be a batch, so many bytes, ahead of
    another. Of larger ones each column is a lane."""
    paths = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
    wanted = [
        i
        for i, path in enumerate(paths)
        if names is None or path in names or path.partition(".")[0] in names
    ]
    groups = [
        [_chunk(metadata.row_group(i).column(column), size) for column in wanted]
        for i in range(metadata.num_row_groups)
    ]
    most = max(1, room // 4)
    if max((_size(group) for group in groups), default=0) <= most:
        return [Lane(_gathered(groups, most), keep=2 + batch // most)]
    window = max(LEAST_WINDOW, room // (2 * max(1, len(wanted))))
    return [
        Lane([[cut] for group in groups for cut in _cut(group[column], window)])
        for column in range(len(wanted))
    ]


def _chunk(column: Any, size: int) -> Range:
    """Where a column lies; what a damaged footer says stays within the file."""
    start = column.data_page_offset
    if column.dictionary_page_offset:
        start = min(start, column.dictionary_page_offset)
    start = min(max(start, 0), size)
    return start, max(start, min(start + column.total_compressed_size, size))


def _size(parts: Sequence[Range]) -> int:
    return sum(end - start for start, end in parts)


def _cut(part: Range, window: int) -> list[Range]:
    start, end = part
    return [(at, min(at + window, end)) for at in range(start, end, window)]


def _gathered(groups: Sequence[Sequence[Range]], most: int) -> list[list[Range]]:
    """Row groups as steps; small ones that follow one another are one."""
    steps: list[list[Range]] = []
    for group in groups:
        if steps and _size(steps[-1]) + _size(group) <= most:
            steps[-1] = _joined([*steps[-1], *group])
        else:
            steps.append(_joined(group))
    return steps


def _joined(parts: Sequence[Range]) -> list[Range]:
    """The same in order, as few ranges; those that lie close together with what is between."""
    joined: list[Range] = []
    for start, end in sorted(parts):
        if joined and start - joined[-1][1] <= NEAR:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined
