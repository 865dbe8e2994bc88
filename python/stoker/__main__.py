"""The `stoker` command: the same code as the plain binary, with pyarrow behind it."""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command with these arguments (default: the process's own); its exit status.

    >>> from stoker.__main__ import main
    >>> main(["version"])
    0
    """
    from . import _core
    from ._context import make_report, write_table
    from ._tables import open_tables

    if arguments is None:
        arguments = sys.argv[1:]
    if arguments[:1] in (["check"], ["stream"]):
        from ._device import add_folders

        add_folders()

    def open_here(*asked: Any) -> Any:
        return open_tables(*asked, context=context)  # Ctrl-C is the command's

    has_arrow = importlib.util.find_spec("pyarrow") is not None
    context = _core.Context(
        write_table=write_table if has_arrow else None,
        open_tables=open_here if has_arrow else None,
        make_report=make_report,
        command=True,
    )
    sys.stdout.flush()
    with _notices():
        status = _core.main(context, [b"stoker", *map(os.fsencode, arguments)])
    if status == 0 and arguments[:1] == ["pack"]:
        _add_scaler(_value_of(arguments, "-o", "--out"))
    elif status == 0 and arguments[:1] == ["rescale"]:
        for word in arguments[1:]:
            _add_scaler(word)
    return status


@contextmanager
def _notices() -> Iterator[None]:
    """While it lasts, what the package has to tell looks like what the command tells."""
    log, handler = logging.getLogger("stoker"), logging.StreamHandler()
    handler.setFormatter(logging.Formatter("stoker: %(message)s"))
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _value_of(arguments: Sequence[str], short: str, long: str) -> str | None:
    """What an option was given: -o OUT, -oOUT, --out OUT, --out=OUT."""
    for name, following in zip(arguments, [*arguments[1:], None], strict=True):
        if name in (short, long):
            return following
        if name.startswith(long + "="):
            return name[len(long) + 1 :]
        if name.startswith(short) and not name.startswith("--"):
            return name[len(short) :]
    return None


def _add_scaler(folder: str | None) -> None:
    """A series gets scaler.joblib, as from stoker.pack_series."""
    from . import _sklearn_file

    if folder is not None and os.path.isfile(os.path.join(folder, "scaler.json")):
        _sklearn_file.write(folder)


if __name__ == "__main__":
    sys.exit(main())
