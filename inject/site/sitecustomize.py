"""Runs at the start of each Python that `stoker run` watches, and starts the hook in it.

The folder of this file is in PYTHONPATH, so this hides a sitecustomize of the user's own: it is run
from here, as Python would have run it. A fault of ours is never the script's.
"""

import os
import sys


def _leave_path(folder):
    """The script sees the path that it would have had. Children need the environment variable."""
    sys.path[:] = [entry for entry in sys.path if entry != folder]


def _start(folder):
    watched = os.environ.get("STOKER_WATCH")
    if not watched:
        return
    try:
        import stoker_watch

        stoker_watch.start(watched)
    except Exception:
        pass


def _run_theirs():
    """The sitecustomize that comes next on the path. Its faults are told by site.py, as ever."""
    ours = sys.modules.pop("sitecustomize", None)
    try:
        __import__("sitecustomize")
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
        if ours is not None:
            sys.modules["sitecustomize"] = ours


_folder = os.path.dirname(os.path.abspath(__file__))
_start(_folder)
_leave_path(_folder)
_run_theirs()
