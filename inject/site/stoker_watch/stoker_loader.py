"""Stoker's own Loader, as the loop sees it."""

import os
from weakref import WeakSet

from . import moments, recording, replay, stacks
from . import ring as rings
from .importing import patch
from .recording import clock, mark, span, state
from .torch_loader import NOTE, Iteration, name_of, note_of

part = recording.Part("Stoker's Loader")
_traced = 0
_open = WeakSet()
state.on_fork.append(_open.clear)


def describe(loader, note):
    return {
        "id": note[1],
        "kind": "stoker",
        "class": "Loader",
        "dataset": name_of(loader.dataset),
        "collate": None,
        "batch_size": loader.batch_size or None,
        "workers": 0,
        "prefetch_factor": None,
        "pin_memory": loader.device != "cpu",
        "persistent_workers": True,
        "in_order": True,
        "samples": len(loader.dataset),
        "batches": len(loader),
        "context": None,
        "file": note[2],
        "line": note[3],
    }


def begin(loader):
    note = note_of(loader)
    number = note[1]
    epoch = state.epochs[number] = state.epochs.get(number, -1) + 1
    first = None
    if epoch == 0:
        first = describe(loader, note)
        recording.record_json(rings.RECORD_LOADER, number, first)
    moments.forget()
    stacks.start_loop()
    start = clock()
    mark(rings.MARK_EPOCH, number, epoch, start)
    return start, Iteration(number, epoch, loader.batch_size or 0, len(loader), first)


def timed_iter(original):
    def __iter__(self):
        if not (part.on and state.on) or state.worker is not None:
            return original(self)
        try:
            start, iteration = begin(self)
        except Exception:
            part.failed()
            return original(self)
        iterator = replay.iterate_stoker(self, iteration.loader, original)
        iterator.__dict__[NOTE] = iteration
        span(rings.SPAN_ITER, start, clock(), iteration.loader, 0)
        return iterator

    return __iter__


def stage_file(options):
    """Where a loader without a trace of its own writes its stages, for the run's trace."""
    global _traced
    recording.get()
    if not state.options.get("stages") or options.get("trace") is not None:
        return None
    _traced += 1
    return os.path.join(state.folder, f"stages.{os.getpid()}.{_traced}.json")


def close_traced():
    """Closing writes the file. Only as the process ends: until then the loader is the script's."""
    for loader in list(_open):
        loader.close()


def noted_init(original):
    def __init__(self, *arguments, **options):
        file = stage_file(options) if part.on and state.on else None
        if file is not None:
            options["trace"] = file
        original(self, *arguments, **options)
        if file is not None:
            _open.add(self)
            if close_traced not in state.on_exit:
                state.on_exit.append(close_traced)
        if part.on and state.on:
            try:
                note_of(self)
            except Exception:
                part.failed()

    return __init__


def patch_stoker(module):
    from .torch_loader import over_next, timed_next

    patch(module.Loader, "__init__", noted_init)
    patch(module.Loader, "__iter__", timed_iter)
    patch(module.LoaderIterator, "__next__", timed_next, over_next)
    replay.stoker_base = module.LoaderIterator
