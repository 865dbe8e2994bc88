"""What this process tells: the ring, made at the first event worth telling, and its records.

Parts of the hook that fail are switched off, each by itself, and say so once.
"""

import json
import os
import sys
import time
from _thread import allocate_lock, get_ident, get_native_id

from . import moments, process
from . import ring as rings

clock = time.monotonic_ns
cpu_clock = time.thread_time_ns

MAIN_CAPACITY = 1 << 20
WORKER_CAPACITY = 1 << 18

_span, _mark, _queue = rings.SPAN.pack_into, rings.MARK.pack_into, rings.QUEUE.pack_into


def now(entry):
    """state.soon while nobody comes to flush."""
    ring = state.ring or get()
    if ring is not None:
        write, *arguments = entry
        write(ring, *arguments)


class State:
    """Of this process; a fork begins it anew."""

    def __init__(self):
        self.on = False
        self.folder = ""
        self.options = {}
        # Takes (write, arguments...) and has write(ring, arguments...) write its records: now, or
        # with the ring's next flush.
        self.soon = now
        self.ring = None
        self.opening = allocate_lock()
        self.pid = 0
        self.main_thread = 0  # ident of the thread that runs the loop
        self.role = "main"
        self.worker = None
        self.said = set()
        self.open = {}  # spans under way: key -> start
        self.next_begun = 0  # a next() is under way since
        self.at_fork = False
        self.end_asked = False
        self.epochs = {}  # loader -> the epoch that it began last
        self.epoch_end = 0  # when a loader of this process last came to its end
        self.loader = 0  # that the loop draws from
        self.switched = 0  # when it began to
        self.opened = 0  # whose iterator was made last
        self.handed = 0  # when it last had a batch
        self.on_open = []  # called when the ring is made
        self.on_fork = []  # called in a forked child
        self.on_second = []  # called by the sampler
        self.on_end = []  # called when the script is over, or watching is
        self.on_exit = []  # called when the script is over


state = State()


class Making:
    """The batch that is made in this process now."""

    __slots__ = ("loader", "number")

    def __init__(self):
        self.loader = self.number = 0


making = Making()


_parts = []


class Part:
    """A part of the hook: on until it fails."""

    def __init__(self, name):
        self.name = name
        self.on = True
        _parts.append(self)

    def failed(self):
        """To be called while the exception is handled."""
        self.on = False
        moments.forbid()
        state.open.clear()
        state.next_begun = 0
        kind, _, trace = sys.exc_info()
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = ""
        if trace is not None:
            code = trace.tb_frame.f_code
            where = f" ({os.path.basename(code.co_filename)}:{trace.tb_lineno})"
        try:
            notice(
                f"Watching of {self.name} stopped at a fault of Stoker's own: "
                f"{getattr(kind, '__name__', 'unknown')}{where}; the script is unharmed."
            )
        except Exception:
            state.on = False


def begin(folder):
    """Watching is on; nothing is made yet."""
    state.folder = folder
    state.said = set()
    state.ring, state.soon = None, now
    state.end_asked = False
    state.role, state.worker = "main", None
    state.options = {}
    state.epochs = {}
    for part in _parts:
        part.on = True
    state.on = not os.path.exists(os.path.join(folder, "stop"))
    return state.on


def read_options():
    try:
        with open(os.path.join(state.folder, "options.json"), encoding="utf-8") as file:
            state.options = json.load(file)
    except (OSError, ValueError):
        state.options = {}


def get():
    """The ring, made when first asked for; None: watching is off."""
    if state.ring is None and state.on:
        _open()
    return state.ring


def _open():
    with state.opening:
        if state.ring is not None or not state.on:
            return
        state.pid = os.getpid()
        state.main_thread = process.main_ident()
        if not state.options:
            read_options()
        until = state.options.get("until_s")
        if until is not None and time.monotonic() > until:
            state.on = False
            return
        capacity = WORKER_CAPACITY if state.worker is not None else MAIN_CAPACITY
        try:
            state.ring = rings.Ring(state.folder, state.pid, capacity)
        except (OSError, ValueError):
            state.on = False  # no room, or the run is over: there is nobody to tell
            return
        moments.begin(state.main_thread, state.pid)
        _register()
    tell_process()
    for call in list(state.on_open):
        call()


def _register():
    if not state.at_fork:
        state.at_fork = True
        os.register_at_fork(after_in_child=_after_fork)
    if not state.end_asked:
        state.end_asked = True
        process.at_end(exit)


def _after_fork():
    """The child has the parent's memory, but neither its threads nor its ring."""
    state.ring, state.soon = None, now
    moments.begin(0, 0)
    state.opening = allocate_lock()
    state.pid = os.getpid()
    state.main_thread = get_ident()
    state.role, state.worker = "main", None
    state.open = {}
    state.next_begun = 0
    state.said = set()
    state.end_asked = False
    state.on_exit = []
    for call in state.on_fork:
        try:
            call()
        except Exception:
            state.on = False


def exit():
    """The script is over."""
    for call in state.on_exit:
        try:
            call()
        except Exception:
            pass  # what it would have written is missed
    end()


def end():
    """The script is over, or watching is."""
    ring = state.ring
    if ring is None or state.pid != os.getpid():
        return
    try:
        moments.forbid()
        for call in state.on_second + state.on_end:
            call()
        if state.worker is None:
            mark(rings.MARK_END)
        reached(True)
    except Exception:
        pass
    state.on = False
    state.ring, state.soon = None, now
    ring.close()


UNASKED = -1
# So often does a loop ask what its thread ran (ns). The kernel's clock costs 10 us there: what the
# kernel needs for it is in no cache either. Spans that take LIKE or longer and were not asked are
# not taken to be as the last one that was.
ASK_EVERY, LIKE = 50000000, 20000000


def share(cpu, length):
    """The on-CPU part of a span, as its flags carry it; 0: not known."""
    if length <= 0 or cpu == UNASKED:
        return 0
    return (1 + 4000 * min(cpu, length) // length) << 4


class Shares:
    """Of spans that follow one another, of which not all are asked what their thread ran."""

    __slots__ = ("last",)

    def __init__(self):
        self.last = 0

    def of(self, cpu, length):
        """One that was not asked is taken to be as the last one that was; but if it turned out to
        be long it is unlike it, and the kernel's own account of the thread says more."""
        if cpu != UNASKED:
            self.last = share(cpu, length)
        return self.last if cpu != UNASKED or length < LIKE else 0


def this_thread():
    return state.pid if get_ident() == state.main_thread else get_native_id()


def defer(ring, is_deferred):
    """Whether somebody will come and flush."""
    if ring is not state.ring:
        return
    if is_deferred:
        state.soon = moments.allow(ring.waiting.append, rings.Ring.put_whole)
    else:
        state.soon = now
        moments.forbid()


def span(what, start, end, a=0, b=0, flags=0, thread=0):
    state.soon((write_span, what, start, end, thread or this_thread(), a, b, flags))


def write_span(ring, what, start, end, thread, a=0, b=0, flags=0):
    ring.put(_span, 48, rings.RECORD_SPAN, flags, start, end, thread, what, a, b)


def mark(what, a=0, b=0, when=0):
    state.soon((write_mark, what, when or clock(), this_thread(), a, b))


def write_mark(ring, what, when, thread, a, b):
    ring.put(_mark, 40, rings.RECORD_MARK, 0, when, thread, what, a, b)


def queue(when, loader, ready, early, unpinned, outstanding, flags=0):
    state.soon((write_queue, flags, when, loader, ready, early, unpinned, outstanding))


def write_queue(ring, flags, *fields):
    ring.put(_queue, 40, rings.RECORD_QUEUE, flags, *fields, 0)


def text(kind, number, words):
    ring = state.ring or get()
    if ring is not None:
        data = words.encode("utf-8", "replace")[:60000]
        ring.put_text(rings.TEXT.pack_into, 16, kind, (number, len(data)), data)


def record_json(kind, number, value):
    text(kind, number, json.dumps(value, default=plain))


def plain(value):
    """Numbers of other libraries, as a script may give them for a size."""
    try:
        return int(value)
    except Exception:
        return None


def notice(sentence, unreliable=False):
    """A sentence for the report, once."""
    if sentence not in state.said:
        state.said.add(sentence)
        text(rings.RECORD_NOTICE, 1 if unreliable else 0, sentence)


def flush(ring):
    """Writes what waits. False: another thread is still at it."""
    if ring is state.ring:
        moments.give()
    return ring.flush()


def reached(final=False):
    """All that ended before is in the ring."""
    ring = state.ring
    if ring is not None:
        now = clock()
        if not final:
            begun = state.next_begun, moments.next_begun()
            now = min([*list(state.open.values()), *filter(None, begun), now])
        if flush(ring):
            ring.put(rings.REACHED.pack_into, 16, rings.RECORD_REACHED, 0, now)


def tell_process():
    """Who this is. Told again when more of it is known."""
    record_json(rings.RECORD_PROCESS, 0, process.describe(state.role, state.worker))
