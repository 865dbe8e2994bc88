"""The `stoker` command: the same code as the plain binary, with pyarrow behind it."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command with these arguments (default: the process's own); its exit status.

    >>> from stoker.__main__ import main
    >>> main(["version"])
    0
    """
    from . import _core
    from ._context import write_table

    if arguments is None:
        arguments = sys.argv[1:]
    has_arrow = importlib.util.find_spec("pyarrow") is not None
    context = _core.Context(write_table=write_table if has_arrow else None, command=True)
    sys.stdout.flush()
    return _core.main(context, [b"stoker", *map(os.fsencode, arguments)])


if __name__ == "__main__":
    sys.exit(main())
