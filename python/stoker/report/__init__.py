"""Reports of runs that ``stoker run --json`` wrote, and of benchmark results.

>>> import stoker.report
>>> stoker.report.make(["before.json", "after.json"], "report.html")

One run is described, several are compared with the first. The ending of the output says what is
made: ``.html`` one page that needs no network, ``.md`` Markdown with pictures beside it, ``.png``
one picture, none a folder with a picture a chart. Pages need plotly, pictures matplotlib:
``pip install 'stoker[report]'``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from . import _write
from ._build import build
from ._read import read_all

__all__ = ["check", "make"]


def make(
    runs: Iterable[str | os.PathLike[str]], out: str | os.PathLike[str], *, note: str | None = None
) -> None:
    """Writes the report of these run files, or results of benchmarks, to `out`.

    `note` is shown first: what a reader must know that no file tells.
    What was at `out` is replaced when the new report is whole, and stays when something fails.
    """
    path = os.fspath(out)
    _write.check(path)
    _write.write(build(read_all(os.fspath(run) for run in runs), note), path)


def check(out: str | os.PathLike[str]) -> None:
    """Raises what :func:`make` would raise for `out`, before there is anything to draw."""
    _write.check(os.fspath(out))
