"""The library's context of this process: progress bars, notices, tables, reports."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from . import _core

log = logging.getLogger("stoker")

# What a user may give as progress=: called with (what, unit, done, total, bytes); total 0: unknown.
Progress = Callable[[str, str, int, int, int], Any]

_local = threading.local()  # .progress: who is told of the job that this thread does
_plugins: list[str] = []  # paths: a forked child's context loads them anew
_made: tuple[int, _core.Context] | None = None  # the process it was made in, and the context


def _tell_progress(what: str, unit: str, done: int, total: int, size: int) -> None:
    progress = getattr(_local, "progress", None)
    if progress is not None:
        progress(what, unit, done, total, size)


def _tell_notice(text: str) -> None:
    log.warning("%s", text)


def context() -> _core.Context:
    """The context of this process; a forked child makes its own."""
    global _made
    if _made is None or _made[0] != os.getpid():
        _made = os.getpid(), _core.Context(progress=_tell_progress, notice=_tell_notice)
        for path in _plugins:
            _made[1].load_plugin(os.fsencode(path))
    return _made[1]


def load_plugin(path: str | os.PathLike[str]) -> None:
    """Loads a plugin: a shared library with transforms of your own, or the decoder of videos.

    From then on its transforms can be named in chains: ``stoker.Transform("Solarize(0.5)")``, or as
    text. Load plugins first, before datasets and loaders are opened. ``examples/plugin`` holds one.
    """
    name = os.path.abspath(os.fspath(path))
    if name not in _plugins:
        context().load_plugin(os.fsencode(name))
        _plugins.append(name)


class Bar:
    """One line on standard error, drawn over and over, and taken away at the end."""

    def __init__(self, delay: float = 0.3) -> None:
        self.shows_from = time.monotonic() + delay
        self.width = 0
        self.job = ""  # what the rate below is of
        self.first, self.begun = 0, 0.0

    def __call__(self, what: str, unit: str, done: int, total: int, size: int) -> None:
        if what != self.job:
            self.job, self.first, self.begun = what, done, time.monotonic()
        if time.monotonic() < self.shows_from:
            return
        if total:
            filled = 30 * min(done, total) // total
            line = f"{what} [{'=' * filled:<30}] {done:,}/{total:,} {unit}"
        else:
            line = f"{what} {done:,} {unit}"
        if size:
            line += f", {size / 1e6:,.0f} MB"
        line += self._pace(unit, done, total)
        sys.stderr.write("\r" + line.ljust(self.width))
        sys.stderr.flush()
        self.width = len(line)

    def _pace(self, unit: str, done: int, total: int) -> str:
        """How fast it goes, and how long it will take."""
        passed = time.monotonic() - self.begun
        if passed < 0.5 or done <= self.first:
            return ""
        rate = (done - self.first) / passed
        words = f", {rate:,.0f} {unit}/s"
        if total > done:
            minutes, seconds = divmod(round((total - done) / rate), 60)
            words += f", {minutes} min {seconds:02d} s left" if minutes else f", {seconds} s left"
        return words

    def clear(self) -> None:
        if self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
            sys.stderr.flush()


@contextmanager
def progress_shown(progress: Progress | bool | None) -> Iterator[None]:
    """While it lasts, jobs of this thread tell `progress`: a callable, True (a bar), False
    (nobody) or None (a bar on a terminal)."""
    bar = None
    if progress is True or (progress is None and sys.stderr is not None and sys.stderr.isatty()):
        bar = progress = Bar()
    before = getattr(_local, "progress", None)
    _local.progress = progress if callable(progress) else None
    try:
        yield
    finally:
        _local.progress = before
        if bar is not None:
            bar.clear()


def write_table(path: str, columns: dict[str, Any]) -> None:
    """Writes a Parquet file: columns are lists of str, or (int64, float32 or timestamp, bytes)."""
    import numpy
    import pyarrow
    import pyarrow.parquet

    def array(values: Any) -> Any:
        if isinstance(values, list):
            return pyarrow.array(values, pyarrow.string())
        kind, data = values
        if kind == "timestamp":  # seconds since 1970
            return pyarrow.array(numpy.frombuffer(data, numpy.int64), pyarrow.timestamp("s"))
        return pyarrow.array(numpy.frombuffer(data, kind))

    arrays = {name: array(values) for name, values in columns.items()}
    pyarrow.parquet.write_table(pyarrow.table(arrays), path)


def make_report(runs: list[str], out: str) -> None:
    """Draws run files; without any, says whether it could."""
    from . import report

    if runs:
        report.make(runs, out)
    else:
        report.check(out)
