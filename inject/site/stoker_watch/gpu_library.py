"""The injected library, as the hook calls it; and the graphs that the script launches, of which it
hears from here: to have CUPTI tell of calls would slow all of them down."""

import ctypes
import os

from . import recording
from .importing import patch
from .recording import clock, state

part = recording.Part("CUDA graphs")

SECOND = 1000000000


def path():
    return os.path.join(state.folder, "libstoker_inject.so")


def loaded():
    """The library, if CUDA has loaded it into this process; it is not loaded for this."""
    try:
        return ctypes.CDLL(path(), mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None


def injected():
    """The library of this run; None where there is none, or the GPU is another's."""
    if not os.environ.get("CUDA_INJECTION64_PATH", "").startswith(state.folder):
        return loaded()
    try:
        return ctypes.CDLL(path())
    except OSError:
        return None


class Graphs:
    library = None
    look_time = 0


def told_replay(original):
    def replay(self, *arguments, **options):
        if part.on and state.on and state.worker is None:
            try:
                tell_launch()
            except Exception:
                part.failed()
        return original(self, *arguments, **options)

    return replay


def tell_launch():
    library, now = Graphs.library, clock()
    if library is None and now >= Graphs.look_time:
        Graphs.look_time = now + SECOND
        library = Graphs.library = loaded()
    if library is not None:
        library.stoker_inject_graph()


def patch_graphs(module):
    patch(module.CUDAGraph, "replay", told_replay)


def _forked():
    """CUPTI is the parent's."""
    Graphs.library = None


state.on_fork.append(_forked)
