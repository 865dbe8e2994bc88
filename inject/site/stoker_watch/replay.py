"""`--what-if`: the first batches of each loader are kept and served again and again, so that input
costs nothing and what remains is what the rest of the loop takes."""

import copy
import sys
from collections.abc import Mapping

from . import process, recording
from .recording import state

part = recording.Part("the replay")

base = object  # torch's class of iterators, once it is there
stoker_base = object  # Stoker's
_kept = {}  # loader -> Kept


class Kept:
    """Batches of one loader. Containers are served as copies, for loops pop from them; a tensor
    that the loop changed in place is restored from a copy that nobody else has."""

    def __init__(self):
        self.batches = []
        self.whole = False  # there are as many as there will be

    def keep(self, batch):
        pristine = _pristine(batch)
        self.batches.append((_renew(batch, pristine), pristine))

    def serve(self, number):
        batch, pristine = self.batches[number % len(self.batches)]
        return _renew(batch, pristine)


def _own(batch):
    """A copy that needs nothing of the loader's memory."""
    if _tensor(batch):
        copied = batch.detach().clone()
        return copied.pin_memory() if batch.is_pinned() else copied
    if isinstance(batch, Mapping):
        served = copy.copy(batch)
        for key in list(batch):
            served[key] = _own(batch[key])
        return served
    if isinstance(batch, tuple):
        values = list(map(_own, batch))
        return type(batch)(*values) if hasattr(batch, "_fields") else type(batch)(values)
    if isinstance(batch, list):
        return list(map(_own, batch))
    return batch.copy() if type(batch).__module__ == "numpy" else batch


def _tensor(value):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _pristine(batch):
    """The same shape of containers, with (version, copy) for each tensor."""
    if _tensor(batch):
        saved = batch.detach().clone()
        return batch._version, saved.pin_memory() if batch.is_pinned() else saved
    if isinstance(batch, Mapping):
        return {key: _pristine(value) for key, value in batch.items()}
    if isinstance(batch, (tuple, list)):
        return [_pristine(value) for value in batch]
    return None


def _renew(batch, pristine):
    if _tensor(batch):
        version, saved = pristine
        if batch._version != version:
            fresh = saved.clone()
            return fresh.pin_memory() if saved.is_pinned() else fresh
        return batch
    if isinstance(batch, Mapping):
        served = copy.copy(batch)
        for key, value in pristine.items():
            served[key] = _renew(batch[key], value)
        return served
    if isinstance(batch, tuple):
        values = list(map(_renew, batch, pristine))
        return type(batch)(*values) if hasattr(batch, "_fields") else type(batch)(values)
    if isinstance(batch, list):
        return list(map(_renew, batch, pristine))
    return batch


def wanted():
    """The settings of the replay, or None."""
    if not part.on or state.worker is not None:
        return None
    recording.get()
    return state.options.get("replay") or None


def known_batches(number, note):
    """How many batches an epoch of this loader had in the first run. No end, where the script never
    drew until the end: it will leave by itself again. A run that was watched for a part does not
    say."""
    rank = process.ranks()[0]
    loaders = [
        one
        for one in (wanted() or {}).get("loaders") or []
        if rank is None or one.get("rank") in (None, -1, rank)
    ]
    found = [one for one in loaders if one.get("id") == number]
    if not found and note is not None:
        found = [one for one in loaders if (one.get("file"), one.get("line")) == tuple(note[2:4])]
    for one in found:
        count = one.get("batches")
        if isinstance(count, (int, float)) and count > 0:
            return int(count)
        if (one.get("batches_per_epoch") or 0) > 0 and state.options.get("until_s") is None:
            return sys.maxsize
    return None


def epoch_length(loader, number):
    """Batches an epoch: by the sampler, else as counted in the first run; None: nobody knows."""
    try:
        if loader._dataset_kind == 0:
            return len(loader._index_sampler)
    except (TypeError, NotImplementedError, AttributeError):
        pass
    return known_batches(number, loader.__dict__.get("_stoker_watch"))


class Served:
    """The state of one epoch. `draw` fetches a batch for real; `close` ends that."""

    def __init__(self, kept, length, count, draw, close):
        self.kept, self.length, self.count = kept, length, count
        self.draw, self.close = draw, close
        self.number = 0

    def next(self):
        if self.number >= self.length:
            self.finish()
            raise StopIteration
        if self.draw is not None and len(self.kept.batches) >= self.count:
            self.finish()
        if self.draw is not None:
            return self.really()
        batch = self.kept.serve(self.number)
        self.number += 1
        return batch

    def really(self):
        try:
            batch = self.draw()
        except StopIteration:  # a short epoch: what there is is served from now on
            self.finish()
            self.length = self.number
            raise
        self.kept.keep(batch)
        self.number += 1
        return batch

    def finish(self):
        if self.draw is not None:
            self.kept.whole = bool(self.kept.batches)
            self.draw = None
            self.close()


def torch_iterator(loader, served):
    """An iterator of torch's kind, as code that looks at classes expects."""

    class ReplayedDataLoaderIter(base):
        def __init__(self):
            self._loader_length = served.length
            self._num_yielded = 0

        def _next_data(self):
            return served.next()

        def __next__(self):
            batch = self._next_data()
            self._num_yielded += 1
            return batch

        def __len__(self):
            return served.length

        def __del__(self):
            try:
                served.finish()
            except Exception:
                pass  # Python shuts down

    # The class's own next() is told like any other's.
    from .torch_loader import timed_next

    ReplayedDataLoaderIter.__next__ = timed_next(ReplayedDataLoaderIter.__next__)
    return ReplayedDataLoaderIter()


def iterate(loader, number, original):
    """An iterator over a loader: the real one, or one that serves from memory."""
    settings = wanted()
    if settings is None:
        return original(loader)
    try:
        length = epoch_length(loader, number)
    except Exception:
        part.failed()
        length = None
    if length is None:
        recording.notice(
            "A loader without a length was not replayed: how long its epoch is, is not known."
        )
        return original(loader)
    kept = _kept.setdefault(number, Kept())
    count = max(1, int(settings.get("batches", 4)))
    if kept.whole:
        return torch_iterator(loader, Served(kept, length, count, None, None))
    kept.batches.clear()
    real = original(loader)

    def close():
        if getattr(loader, "_iterator", None) is real:
            loader._iterator = None
        shut = getattr(real, "_shutdown_workers", None)
        if shut is not None:
            shut()

    draw = type(real).__next__
    draw = getattr(draw, "__wrapped__", draw)
    return torch_iterator(loader, Served(kept, length, count, lambda: draw(real), close))


def iterate_stoker(loader, number, original):
    """The same for Stoker's Loader. Its threads rest once nobody draws."""
    settings = wanted()
    if settings is None:
        return original(loader)
    kept = _kept.setdefault(number, Kept())
    count = max(1, int(settings.get("batches", 4)))
    if kept.whole:
        return stoker_iterator(Served(kept, len(loader), count, None, None))
    kept.batches.clear()
    real = original(loader)
    draw = type(real).__next__
    draw = getattr(draw, "__wrapped__", draw)
    # The loader's memory is used again: what is kept must not hold it.
    served = Served(kept, len(loader), count, lambda: _own(draw(real)), real._end)
    return stoker_iterator(served)


def stoker_iterator(served):
    class ReplayedLoaderIterator(stoker_base):
        def __init__(self):
            self._over = True

        def __next__(self):
            return served.next()

        def __del__(self):
            try:
                served.finish()
            except Exception:
                pass  # Python shuts down

    from .torch_loader import timed_next

    ReplayedLoaderIterator.__next__ = timed_next(ReplayedLoaderIterator.__next__)
    return ReplayedLoaderIterator()
