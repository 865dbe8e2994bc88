"""torch's DataLoader where batches are made: in its workers, in the loop without workers, and in
the thread that pins them."""

import sys
from collections import deque

from . import files, recording, stacks
from . import ring as rings
from .importing import patch
from .recording import UNASKED, clock, cpu_clock, making, share, span, state

part = recording.Part("DataLoader workers")

KEY = "stoker_watch_loader"
NEEDED = ("worker_id", "index_queue", "data_queue")  # of a worker's arguments


class Collate:
    """The moments of one fetch: until `begun` samples were read, until `done` put together. Wraps
    the function in the fetcher alone, which nobody pickles."""

    __slots__ = ("begun", "cpu", "done", "original", "read", "used")

    def __init__(self, original):
        self.original = original
        self.begun = self.done = 0
        self.cpu = UNASKED  # what the thread had run as the fetch began
        self.read = self.used = UNASKED  # what it ran in the two parts

    def __call__(self, data):
        if self.cpu != UNASKED:
            return self._asked(data)
        self.begun = clock()
        batch = self.original(data)
        self.done = clock()
        return batch

    def _asked(self, data):
        cpu, self.begun = cpu_clock(), clock()
        self.read = cpu - self.cpu
        batch = self.original(data)
        self.done = clock()
        self.used = cpu_clock() - cpu
        return batch

    def __getattr__(self, name):
        return getattr(self.original, name)


def collate_of(fetcher):
    """The one of a fetcher; None: it has none, or does not let us."""
    collate = getattr(fetcher, "collate_fn", None)
    if collate is not None and type(collate) is not Collate:
        collate = fetcher.collate_fn = Collate(collate)
    return collate


def timed_fetch(original):
    def fetch(self, index):
        if state.worker is None or not (part.on and state.on):
            return original(self, index)
        collate = collate_of(self)
        if collate is None:
            return original(self, index)
        collate.begun = collate.done = 0
        files.counting.on = True
        state.open["fetch"] = start = clock()
        collate.cpu = cpu_clock()
        try:
            return original(self, index)
        finally:
            files.counting.on = False
            fetched(start, collate)

    return fetch


def fetched(start, collate):
    try:
        begun, done, batch = collate.begun, collate.done, (making.loader, making.number)
        end, used = (begun, collate.read) if begun else (clock(), cpu_clock() - collate.cpu)
        span(rings.SPAN_FETCH, start, end, *batch, share(used, end - start))
        if done:
            span(rings.SPAN_COLLATE, begun, done, *batch, share(collate.used, done - begun))
        state.open.pop("fetch", None)
    except Exception:
        part.failed()


def patch_fetch():
    """In a worker alone: without workers it is a part of next(), see torch_loader.Iteration."""
    from torch.utils.data._utils import fetch

    for kind in fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher:
        if kind not in _fetchers:
            _fetchers.append(kind)
            patch(kind, "fetch", timed_fetch)


_fetchers = []  # that are patched: a worker may start workers


# A worker


def timed_get(index_queue):
    """A worker's way to its next task. Set on the queue that the worker holds."""
    original = index_queue.get

    def get(*arguments, **options):
        start = clock()
        try:
            task = original(*arguments, **options)
        except BaseException:
            waited(start)
            raise
        waited(start)
        if type(task) is tuple and task and type(task[0]) is int:
            making.number = task[0]
        return task

    index_queue.get = get


def waited(start):
    try:
        if part.on and state.on:
            span(rings.SPAN_IDLE, start, clock(), making.loader, making.number)
    except Exception:
        part.failed()


def timed_put(data_queue):
    """A batch leaves through a thread of the queue, which pickles and writes it: from put() to the
    end of that write."""
    leaving = deque()
    put, send = data_queue.put, getattr(data_queue, "_send_bytes", None)

    def timed_send(*arguments, **options):
        cpu = cpu_clock()
        try:
            return send(*arguments, **options)
        finally:
            sent(leaving, cpu_clock() - cpu)

    def noted_put(item, *arguments, **options):
        leaving.append((clock(), making.number))
        return put(item, *arguments, **options)

    def timed_put(item, *arguments, **options):
        leaving.append((clock(), making.number))
        cpu = cpu_clock()
        try:
            return put(item, *arguments, **options)
        finally:
            sent(leaving, cpu_clock() - cpu)

    if send is not None and getattr(data_queue, "_thread", None) is None:
        data_queue._send_bytes = timed_send
        data_queue.put = noted_put
    else:
        data_queue.put = timed_put


def sent(leaving, used):
    try:
        if leaving and part.on and state.on:
            start, number = leaving.popleft()
            end = clock()
            span(rings.SPAN_SEND, start, end, making.loader, number, share(used, end - start))
    except Exception:
        part.failed()


def begin_worker(number, index_queue, data_queue):
    """This process turns out to be a worker."""
    process = sys.modules["multiprocessing.process"]
    making.loader = process.current_process()._config.get(KEY, 0)
    making.number = 0
    told = state.ring is not None
    state.role, state.worker = "worker", number
    if told:
        recording.tell_process()
    recording.get()
    files.begin(making.loader)
    patch_fetch()
    stacks.start()
    timed_get(index_queue)
    timed_put(data_queue)


def end_worker():
    try:
        files.tell()
    except Exception:
        part.failed()


def watched_worker(original):
    names = original.__code__.co_varnames[: original.__code__.co_argcount]

    def pick(name, arguments, options):
        return options[name] if name in options else arguments[names.index(name)]

    def _worker_loop(*arguments, **options):
        if state.on and part.on:
            try:
                begin_worker(*(pick(name, arguments, options) for name in NEEDED))
            except Exception:
                part.failed()
        try:
            return original(*arguments, **options)
        finally:
            end_worker()

    return _worker_loop


def patch_worker(module):
    patch(module, "_worker_loop", watched_worker)


# The pin thread


class PinSource:
    """Where the pin thread takes batches from."""

    def __init__(self, source):
        self._source = source
        self.taken = 0

    def get(self, *arguments, **options):
        item = self._source.get(*arguments, **options)
        self.taken = clock()
        return item

    def __getattr__(self, name):
        return getattr(self._source, name)


class PinTarget:
    """Where it puts them."""

    def __init__(self, target, source, loader):
        self._target, self._from, self._loader = target, source, loader

    def put(self, item, *arguments, **options):
        self._target.put(item, *arguments, **options)
        try:
            taken, self._from.taken = self._from.taken, 0
            number = item[0] if type(item[0]) is int else 0
            if taken and part.on and state.on:
                span(rings.SPAN_PIN, taken, clock(), self._loader, number)
        except Exception:
            part.failed()

    def __getattr__(self, name):
        return getattr(self._target, name)


def watched_pin(original):
    def _pin_memory_loop(in_queue, out_queue, *arguments, **options):
        if state.on and part.on:
            source = PinSource(in_queue)
            in_queue, out_queue = source, PinTarget(out_queue, source, state.opened)
        return original(in_queue, out_queue, *arguments, **options)

    return _pin_memory_loop


def patch_pin(module):
    patch(module, "_pin_memory_loop", watched_pin)
