"""torch's DataLoader as the loop sees it: iter(), next(), how full its queues are."""

import os
import sys
from _thread import get_ident, get_native_id
from collections.abc import Mapping
from functools import partial

from . import files, moments, recording, replay, stacks
from . import ring as rings
from .importing import patch
from .recording import (
    UNASKED,
    clock,
    cpu_clock,
    mark,
    queue,
    share,
    span,
    state,
    write_mark,
    write_span,
)
from .torch_worker import collate_of

part = recording.Part("torch DataLoader")

NOTE = "_stoker_watch"  # in a loader: (pid, id, file, line); in its iterator: Iteration
KEY = "stoker_watch_loader"  # in the settings that a child process gets: the loader's id
LONG = 5000000  # ns of a next() after which the queues are looked at again
SHORT = 500000  # of one that had nothing to wait for
UNKNOWN = (UNASKED, UNASKED, UNASKED)
ALIKE = 16  # so many batches of one size, and only each of so many is asked for it

_count = 0
_places = {}  # id of a data set -> (file, line) of the loader that the script made over it
_unsized = {}  # loader without a length -> its description, until an epoch of it came to its end
_under = set()  # loaders whose iterator is being made: a class over a class is told once
_torch_folder = os.sep + "torch" + os.sep


class Iteration:
    """One epoch of one loader.

    begin() and got() run where nothing of ours is in the processor's caches: a function that is
    called there costs 2 us, the kernel's clock of the thread 10. So they are long, and leave to
    write() what can be done later. When a loop goes on as before, they do not run at all: see
    go_on()."""

    __slots__ = (
        "alike",  # so many batches, one after the other, have `samples`
        "batch_size",
        "begun",
        "collate",  # of a loop without workers, where the fetch is a part of next()
        "cpu",  # what the thread had run then; UNASKED
        "due",  # when it is asked again
        "epoch",
        "first",
        "has_queues",
        "inside",  # a class over a class, both ours: told once
        "last",  # the number of a batch that may be smaller
        "loader",
        "number",
        "over",
        "samples",
        "shares",
    )

    def __init__(self, loader, epoch, batch_size, batches, first):
        self.loader, self.epoch, self.batch_size, self.first = loader, epoch, batch_size, first
        self.last = (batches or 0) - 1
        self.number = self.begun = self.samples = self.alike = self.due = 0
        self.cpu, self.collate = UNASKED, None
        self.over = self.inside = False
        self.has_queues = True  # until it turns out that there are none
        self.shares = [recording.Shares() for _ in range(3)]

    def begin(self, iterator):
        self.inside = True
        try:
            moments.disarm_next()
            self.begun = state.next_begun = begun = clock()
            if self.has_queues:
                self.has_queues = look(iterator, self.loader, begun, 0)
            elif self.collate is not None:
                files.counting.on = True
            if state.loader != self.loader:
                state.loader, state.switched = self.loader, begun
                moments.disarm_steps()  # the next step notes whose batch it had
            if begun >= self.due:
                self.ask_cpu(begun)
        except Exception:
            part.failed()

    def ask_cpu(self, now):
        self.due = now + recording.ASK_EVERY
        self.cpu = cpu_clock()
        if self.collate is not None:
            self.collate.cpu = self.cpu

    def cpus(self):
        """What the thread ran in next(), in the fetch, in its collate."""
        used, self.cpu = cpu_clock() - self.cpu, UNASKED
        collate = self.collate
        if collate is None:
            return used, UNASKED, UNASKED
        collate.cpu = UNASKED
        return used, collate.read, collate.used

    def got(self, iterator, batch):
        try:
            end, begun, collate = clock(), self.begun, self.collate
            cpus = UNKNOWN if self.cpu == UNASKED else self.cpus()
            number, self.number = self.number, self.number + 1
            if self.alike < ALIKE or number >= self.last or not number % ALIKE:
                self.ask_samples(batch)
            collated = 0, 0
            if collate is not None:
                files.counting.on = False
                collated = collate.begun, collate.done
            thread = state.pid if get_ident() == state.main_thread else get_native_id()
            state.soon((self.write, begun, end, thread, cpus, collated, number, self.samples))
            state.handed = end
            state.next_begun = 0
            if self.has_queues and end - begun > LONG:
                look(iterator, self.loader, end, 1)
            if self.first is not None:
                first, self.first = self.first, None
                first["batch_bytes"] = bytes_of(batch)
                recording.record_json(rings.RECORD_LOADER, self.loader, first)
            if self.alike >= ALIKE and end < self.due and state.switched < begun:
                self.go_on(iterator, end - begun)
        except Exception:
            part.failed()
        self.inside = False

    def go_on(self, iterator, length):
        """Has next() timed without us, until it is time to ask anew or something else happens."""
        number = self.number
        left = min(-number % ALIKE, self.last - number)
        longest = SHORT if self.has_queues else LONG
        if left <= 0 or length > longest or (self.collate is not None and files.seen.opens):
            return
        moments.arm_next(
            self,
            iterator,
            self.due,
            longest,
            left,
            self.loader,
            number,
            self.samples,
            *[one.last for one in self.shares],
        )

    def took(self, batches, last):
        """So many were handed out without us, the last one then."""
        self.number += batches
        if batches:
            state.handed = last

    def ask_samples(self, batch):
        """Where their number does not change, not all batches are asked."""
        samples = samples_of(batch, self.batch_size)
        self.alike = self.alike + 1 if samples == self.samples else 0
        self.samples = samples

    def write(self, ring, begun, end, thread, cpus, collated, number, samples):
        stretches = [(rings.SPAN_NEXT, begun, end)]
        read, done = collated
        if begun <= read <= done <= end:
            stretches += (rings.SPAN_FETCH, begun, read), (rings.SPAN_COLLATE, read, done)
        for (what, start, over), shares, cpu in zip(stretches, self.shares, cpus, strict=False):
            flags = shares.of(cpu, over - start)
            write_span(ring, what, start, over, thread, self.loader, number, flags)
        write_mark(ring, rings.MARK_BATCH, end, thread, self.loader, samples)

    def ended(self):
        self.inside = files.counting.on = False
        try:
            end = clock()
            used = UNASKED if self.cpu == UNASKED else self.cpus()[0]
            flags = share(used, end - self.begun) | rings.ENDED_EPOCH
            span(rings.SPAN_NEXT, self.begun, end, self.loader, self.number, flags)
            state.next_begun = 0
            if not self.over:
                self.over = True
                state.epoch_end = end
                mark(rings.MARK_EPOCH_END, self.loader, self.epoch, end)
                described = _unsized.pop(self.loader, None)
                if described is not None:
                    described["batches"] = self.number
                    recording.record_json(rings.RECORD_LOADER, self.loader, described)
        except Exception:
            part.failed()

    def broke(self):
        self.inside = files.counting.on = False
        if self.cpu != UNASKED:
            self.cpus()
        state.next_begun = 0


def look(iterator, loader, when, flags):
    """Reads how full the queues are, and touches nothing. False: there are none."""
    tasks = getattr(iterator, "_task_info", None)
    if tasks is None:
        return False
    wanted = iterator._rcvd_idx
    there = {number for number, info in tasks.items() if len(info) > 1}
    unpinned = -1
    results = iterator._data_queue
    if getattr(iterator, "_pin_memory", False):
        unpinned = waiting_in(iterator._worker_result_queue)
        try:
            there.update(item[0] for item in tuple(results.queue))
        except (RuntimeError, TypeError, IndexError, AttributeError):
            pass  # the pin thread changed it meanwhile
        arrived = 0
    else:
        arrived = max(waiting_in(results), 0)  # their numbers are inside the pipe
    ready = 0
    while wanted + ready in there:
        ready += 1
    early = len(there) - ready
    if flags:  # after a wait: what came meanwhile came before its turn
        ready, early = arrived, len(there)
    else:
        ready += arrived
    queue(when, loader, ready, early, unpinned, len(tasks), flags)
    return True


def waiting_in(results):
    """Batches in a queue between processes: one system call, no lock."""
    try:
        return results._maxsize - results._sem._semlock._get_value()
    except (AttributeError, OSError, NotImplementedError):
        return -1


def is_array(value):
    """Asks the class: a property of an object may do anything."""
    return hasattr(type(value), "shape")


def samples_of(batch, otherwise, depth=0):
    """The first dimension of the first tensor that is found."""
    # Most batches are a list that begins with one. To ask whether something is a Mapping takes 15
    # us where nothing of it is in the caches, a third of what the hook costs a next().
    if type(batch) is list and batch and is_array(batch[0]):
        batch = batch[0]
    if is_array(batch):
        try:
            shape = batch.shape
            return int(shape[0]) if len(shape) else 1
        except Exception:
            return (
                otherwise  # a nested tensor has no shape; an object of the script's may do anything
            )
    if depth < 4:
        if isinstance(batch, (tuple, list)):
            if batch and (isinstance(batch[0], (tuple, list, Mapping)) or is_array(batch[0])):
                return samples_of(batch[0], otherwise, depth + 1)
            return len(batch) or otherwise
        if isinstance(batch, Mapping):
            for value in batch.values():
                return samples_of(value, otherwise, depth + 1)
    return otherwise


def bytes_of(batch, depth=0):
    """Of the tensors in a batch."""
    if is_array(batch):
        try:
            size = batch.nbytes
        except Exception:
            return 0  # as above
        return size if isinstance(size, int) else 0
    if depth < 4:
        if isinstance(batch, Mapping):
            batch = list(batch.values())
        if isinstance(batch, (tuple, list)):
            return sum(bytes_of(value, depth + 1) for value in batch[:256])
    return 0


def caller(made):
    """(file, line, is it the very caller) of the innermost frame that is the script's."""
    frame, near = sys._getframe(2), True
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        inner = code.co_name == "__init__" and frame.f_locals.get("self") is made
        theirs = not (
            "/site-packages/" in file
            or "/dist-packages/" in file
            or file.startswith(("<", stacks._OURS))
            or (_torch_folder + "utils" + os.sep) in file
            or file.endswith("/contextlib.py")
        )
        if theirs and not inner:
            return short(file), frame.f_lineno, near
        near = near and (inner or file.startswith(stacks._OURS))
        frame = frame.f_back
    return "", 0, False


def short(file):
    """As in the stacks."""
    global _files
    if _files is None:
        _files = stacks.Files()
    return _files.short(file)


_files = None


def note_of(loader, otherwise_caller=True):
    """(pid, id, file, line) of a loader, given to it when it is first seen here."""
    global _count
    note = loader.__dict__.get(NOTE)
    if note is not None and note[0] == os.getpid():
        return note
    _count += 1
    if note is not None:
        file, line = note[2], note[3]  # it came here by fork or pickle
    else:
        file, line = place_of(loader)
    note = (os.getpid(), _count, file, line)
    loader.__dict__[NOTE] = note
    return note


def place_of(loader):
    """Where the script made it. A framework that makes a loader anew over the same data set is
    not the place."""
    file, line, near = caller(loader)
    data = id(getattr(loader, "dataset", None))
    if not near and data in _places:
        return _places[data]
    if file:
        _places[data] = (file, line)
    return file, line


def name_of(value):
    """A function or class by name; an object by its class."""
    if value is None:
        return None
    if isinstance(value, partial):
        value = value.func
    kind = value if hasattr(value, "__qualname__") else type(value)
    return f"{getattr(kind, '__module__', '')}.{getattr(kind, '__qualname__', '?')}"


def length(of):
    try:
        return len(of)
    except Exception:
        return None


def is_mapped(loader):
    """Its data set has numbers for its samples."""
    return getattr(loader, "_dataset_kind", 0) == 0


def describe(loader, note):
    data = loader.dataset
    mapped = is_mapped(loader)
    context = getattr(loader, "multiprocessing_context", None)
    return {
        "id": note[1],
        "kind": "torch",
        "class": type(loader).__name__,
        "dataset": name_of(data),
        "collate": name_of(loader.collate_fn),
        "batch_size": loader.batch_size
        if loader.batch_size is not None
        else getattr(loader.batch_sampler, "batch_size", None),
        "workers": loader.num_workers,
        "prefetch_factor": loader.prefetch_factor,
        "pin_memory": bool(loader.pin_memory),
        "persistent_workers": bool(loader.persistent_workers),
        "in_order": bool(getattr(loader, "in_order", True)),
        "samples": length(data) if mapped else None,
        "batches": length(loader._index_sampler) if mapped else None,
        "context": getattr(context, "_name", None),
        "file": note[2],
        "line": note[3],
    }


def settings():
    """What a child of this process is given along, whichever way it is started."""
    process = sys.modules.get("multiprocessing.process")
    return None if process is None else process.current_process()._config


class Opening:
    """An iterator is being made, or reset."""

    def __init__(self, loader):
        moments.forget()
        note = note_of(loader)
        self.loader, self.id = loader, note[1]
        self.epoch = state.epochs[self.id] = state.epochs.get(self.id, -1) + 1
        self.description = None
        if self.epoch == 0:
            self.description = describe(loader, note)
            if self.description["batches"] is None:
                _unsized[self.id] = self.description
            recording.record_json(rings.RECORD_LOADER, self.id, self.description)
        stacks.start_loop()
        if not loader.num_workers:
            files.begin(self.id)
        again = loader.persistent_workers and getattr(loader, "_iterator", None) is not None
        self.starts = 0 if again else loader.num_workers
        self.start = state.open["iter"] = clock()
        mark(rings.MARK_EPOCH, self.id, self.epoch, self.start)
        config = settings()
        if config is not None:
            config[KEY] = self.id
        state.opened = self.id

    def done(self, iterator):
        state.open.pop("iter", None)
        config = settings()
        if config is not None:
            config.pop(KEY, None)
        if iterator is None:
            return
        span(rings.SPAN_ITER, self.start, clock(), self.id, self.starts)
        size = self.loader.batch_size or 0
        # An iterator that is reset is the same object: its epoch begins here. One that a class of
        # the script's makes need not be torch's.
        if hasattr(iterator, "__dict__"):
            batches = length(self.loader._index_sampler) if is_mapped(self.loader) else None
            iteration = Iteration(self.id, self.epoch, size, batches, self.description)
            if not self.loader.num_workers:
                fetcher = getattr(iterator, "_dataset_fetcher", None)
                iteration.collate = collate = collate_of(fetcher)
                iteration.has_queues = collate is None
                if collate is not None:
                    fetcher.collate_fn = moments.over("COLLATE", collate, collate.original)
            iterator.__dict__[NOTE] = iteration


def opening(loader):
    if not (part.on and state.on) or state.worker is not None:
        return None
    try:
        return Opening(loader)
    except Exception:
        part.failed()
        return None


def opened(begun, iterator):
    try:
        begun.done(iterator)
    except Exception:
        part.failed()


def timed_iter(original):
    def __iter__(self):
        begun = None if id(self) in _under else opening(self)
        if begun is None:
            return original(self)
        iterator = None
        _under.add(id(self))
        try:
            iterator = replay.iterate(self, begun.id, original)
        finally:
            _under.discard(id(self))
            opened(begun, iterator)
        return iterator

    return __iter__


def late(iterator, how, begun, read, done, batch):
    """A next() that was timed without us was no common one."""
    iteration = iterator.__dict__.get(NOTE)
    if iteration is None:
        return
    try:
        moments.disarm_next()
    except Exception:
        part.failed()
    iteration.begun, iteration.cpu, iteration.inside = begun, UNASKED, True
    if iteration.collate is not None and done:
        iteration.collate.begun, iteration.collate.done = read, done
    if how == moments.ENDED:
        iteration.ended()
    elif how == moments.BROKE:
        iteration.broke()
    else:
        iteration.got(iterator, batch)


def over_next(careful, original):
    return moments.over("NEXT", careful, original, late)


def timed_next(original):
    def __next__(self):
        iteration = self.__dict__.get(NOTE)
        if iteration is None or iteration.inside or not (part.on and state.on):
            return original(self)
        iteration.begin(self)
        try:
            batch = original(self)
        except StopIteration:
            iteration.ended()
            raise
        except BaseException:
            iteration.broke()
            raise
        iteration.got(self, batch)
        return batch

    return __next__


def noted_init(original):
    def __init__(self, *arguments, **options):
        original(self, *arguments, **options)
        if part.on and state.on:
            try:
                note_of(self)
            except Exception:
                part.failed()

    return __init__


def patch_loader(module):
    patch(module.DataLoader, "__init__", noted_init)
    patch(module.DataLoader, "__iter__", timed_iter)
    patch(module._BaseDataLoaderIter, "__next__", timed_next, over_next)
    replay.base = module._BaseDataLoaderIter


def patch_stateful(module):
    """torchdata's loader with a state: classes of its own, beside torch's."""
    patch(module.StatefulDataLoader, "__init__", noted_init)
    patch(module.StatefulDataLoader, "__iter__", timed_iter)
    for kind in vars(module).values():
        if isinstance(kind, type) and kind.__module__ == module.__name__:
            patch(kind, "__next__", timed_next, over_next)
