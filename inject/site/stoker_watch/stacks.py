"""Samples the Python stacks of this process from a thread of its own.

Each sample stands for the time since the one before and carries the CPU time that the thread used
in it. Names of functions, files and lines are told, once each; never a value.
"""

import os
import sys
import sysconfig
import time
from _thread import allocate_lock, get_ident, get_native_id, start_new_thread

from . import recording
from . import ring as rings
from .recording import clock, state

part = recording.Part("Python stacks")

GENERATOR = 0x20  # of the flags of a code
SOURCES = "__next__", "__getitem__", "__getitems__"

DEPTH = 64  # of these, the OUTER outermost; the rest are the innermost
OUTER = 24
NODES = 60000
CODES = 20000
SECOND = 1000000000
# A sample takes the GIL from a thread that runs, and that costs it more than the sample: to hand it
# over and back, and to warm its caches again, takes about 200 us (a loop of tiny operations became
# slower by 2 to 3 % with 100 samples a second, in a process in which they were switched on and
# off). A thread that waits loses nothing.
HAND_OVER = 200000
# Of a second so much and no more: 25 samples of a thread that always runs. What is above LASTING is
# taken from what there is AT_FIRST; when that is used up after some 500 samples, shares of
# functions are known to two points, and LASTING is all: 5 samples.
SPENT_MOST, SPENT_LASTING = SECOND // 160, SECOND // 1000
AT_FIRST = SECOND // 10
RATE_LEAST = 5

_sample = rings.SAMPLE.pack_into
_training = set()  # code of generators and the like in which steps are made
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep


def is_source(code):
    """Whether a loop iterates over it, or indexes it."""
    name = code.co_name
    return name in SOURCES or (code.co_flags & GENERATOR and not name.startswith("<"))


class Files:
    """Short names of files: "site-packages/..." for what is installed, "python3.11/..." for the
    standard library, else as seen from the working folder."""

    def __init__(self):
        self._cwd = os.getcwd() + os.sep
        folder = sysconfig.get_paths().get("stdlib") or "\0"
        self._library = folder + os.sep
        self._library_name = f"python{sys.version_info[0]}.{sys.version_info[1]}/"
        self._known = {}

    def short(self, file):
        known = self._known.get(file)
        if known is None:
            known = self._known[file] = self._shorten(file)
        return known

    def _shorten(self, file):
        if file.startswith("<"):
            return file
        for installed in ("/site-packages/", "/dist-packages/"):
            at = file.rfind(installed)
            if at >= 0:
                return "site-packages/" + file[at + len(installed) :]
        path = os.path.abspath(file)
        if path.startswith(self._library):
            return self._library_name + path[len(self._library) :]
        if path.startswith(self._cwd):
            return path[len(self._cwd) :]
        return path


class Tree:
    """Calls that were seen, each told once. A site is a line of a function; a node is a site that
    was called from another node."""

    def __init__(self, ring):
        self._ring = ring
        self._files = Files()
        self._codes = {}  # id -> (code, {lasti: site}); holds the code, so that its id stays
        self._sites = []  # (code, line)
        self._lines = {}  # (id of the code, line) -> site
        self._children = [{}]  # of each node: {site: node}

    def begin_anew(self):
        """All is told again, as it is known now."""
        self._children = [{}]

    def node(self, frame):
        """The number of the innermost call of this stack."""
        stack = []
        codes = self._codes
        while frame is not None:
            code = frame.f_code
            known = codes.get(id(code))
            if known is None:
                known = self._meet(code)
            sites = known[1]
            if sites is not None:  # else the frame is ours
                site = sites.get(frame.f_lasti)
                if site is None:
                    site = self._see(code, frame, sites)
                stack.append(site)
            frame = frame.f_back
        if len(stack) > DEPTH:
            stack[DEPTH - OUTER : -OUTER] = ()
        children = self._children
        at = 0
        for site in reversed(stack):
            number = children[at].get(site)
            if number is None:
                number = self._tell(at, site)
                if number == 0:
                    break
            at = number
        return at

    def _meet(self, code):
        if len(self._codes) >= CODES:  # a script that makes code without end
            self._codes.clear()
            self._lines.clear()
        ours = code.co_filename.startswith(_OURS)
        known = self._codes[id(code)] = (code, None if ours else {})
        return known

    def _see(self, code, frame, sites):
        line = frame.f_lineno or code.co_firstlineno
        key = (id(code), line)
        site = self._lines.get(key)
        if site is None:
            if len(self._sites) >= 2 * NODES:
                return -1
            site = self._lines[key] = len(self._sites)
            self._sites.append((code, line))
        sites[frame.f_lasti] = site
        return site

    def _tell(self, parent, site):
        number = len(self._children)
        if number > NODES or site < 0:
            return 0
        code, line = self._sites[site]
        name = getattr(code, "co_qualname", code.co_name)
        function = name.encode("utf-8", "replace")[:400]
        file = self._files.short(code.co_filename).encode("utf-8", "replace")[-800:]
        fields = (number, parent, line, len(function), len(file))
        flags = rings.FRAME_IS_SOURCE if is_source(code) and code not in _training else 0
        if not self._ring.put_text(
            rings.FRAME.pack_into, 24, rings.RECORD_FRAME, fields, function + file, flags
        ):
            return 0
        self._children.append({})
        self._children[parent][site] = number
        return number


class Watched:
    """A thread that is sampled."""

    __slots__ = ("clock", "cpu", "every", "kind", "last", "thread")

    def __init__(self, thread, kind, now, every):
        self.thread, self.kind, self.last, self.every = thread, kind, now, every
        # The kernel's number of a thread's CPU clock. It refuses one of a thread that has ended;
        # pthread_getcpuclockid would crash.
        self.clock = (~thread << 3) | 6 if thread else None
        self.cpu = self._cpu() if thread else None

    def _cpu(self):
        try:
            return time.clock_gettime_ns(self.clock)
        except OSError:
            return None

    def used(self):
        """CPU time since it was asked last."""
        if self.cpu is None:
            return rings.UNKNOWN
        cpu = self._cpu()
        if cpu is None:
            self.cpu = None
            return rings.UNKNOWN
        used, self.cpu = cpu - self.cpu, cpu
        return max(used, 0)


class Pace:
    """How many samples a second: as many as asked for, or as cost the script little."""

    def __init__(self, rate):
        self.rate = rate  # asked for
        self.begin()

    def begin(self):
        self.now, self.spent, self.left = self.rate, 0, AT_FIRST

    def keep(self, elapsed):
        """Since this was asked last."""
        spent, self.spent = self.spent * SECOND // elapsed, 0
        self.left -= max(spent - SPENT_LASTING, 0) * elapsed // SECOND
        most = SPENT_MOST if self.left > 0 else SPENT_LASTING
        if spent > most:
            self.now = max(self.now // 2, min(self.rate, RATE_LEAST))
        elif spent < most * 2 // 5:
            self.now = min(self.now * 2, self.rate)


class Sampler:
    def __init__(self, ring, rate):
        self.ring = ring
        self.pace = Pace(rate)
        self.in_loop = False
        self.anew = False  # its tree is to be told anew
        self.wake = allocate_lock()
        self.wake.acquire()
        self.sampling = allocate_lock()  # held while frames of the script's threads are held
        self.turn = 0  # of the thread that may run; an older one leaves
        self.thread = 0
        self.ident = 0
        self.watched = {}
        self.tree = Tree(ring)
        self.ticks = self.sampled = 0
        self.second = self.quarter = clock()
        self.own_cpu = 0
        self.until = state.options.get("until_s")
        self.stop_file = os.path.join(state.folder, "stop")

    def start(self):
        self.thread = 0  # until it runs
        self.wake.acquire(False)
        start_new_thread(self._run, (self.turn,))

    def begin_loop(self):
        """Training begins: what stacks cost while modules were imported says nothing of it."""
        self.in_loop = True
        self.pace.begin()
        self._rouse()

    def _rouse(self):
        try:
            self.wake.release()
        except RuntimeError:
            pass  # it is awake

    def leave(self):
        """Ends the thread and waits, not long, until the system has it no more. It never leaves in
        the middle of a sample: a forked child would free the frames that it holds, and with them
        iterators of its parent."""
        self.turn += 1
        self._rouse()
        if self.sampling.acquire(True, 1):
            self.sampling.release()
        for _ in range(250):
            thread = self.thread  # one that was just started has yet to come, and to go
            if thread and not os.path.exists(f"/proc/self/task/{thread}"):
                break
            time.sleep(0.0002)
        self._flush_at_last()

    def _flush_at_last(self):
        recording.defer(self.ring, False)
        recording.flush(self.ring)

    def _run(self, turn):
        try:
            self.thread, self.ident = get_native_id(), get_ident()
            self.own_cpu = time.thread_time_ns()
            # A worker may end at any moment, and is not what everything waits for.
            recording.defer(self.ring, state.worker is None)
            self._loop(turn)
        except Exception:
            part.failed()
        if self.turn == turn:  # else leave() has done it
            self._flush_at_last()

    def _loop(self, turn):
        due = clock() + SECOND // max(self.pace.now, 4)
        while self.turn == turn and state.ring is self.ring:
            wait = due - clock()
            if wait > 0:
                self.wake.acquire(True, wait / SECOND)
            else:
                due = clock()  # we came late: what was missed is missed, and weighs in the next
                time.sleep(0)
            due = min(due, clock()) + SECOND // max(self.pace.now, 4)
            if self.turn != turn or state.ring is not self.ring:
                return
            if self.pace.rate:
                with self.sampling:
                    if self.turn == turn:
                        self._take()
            now = clock()
            if now - self.quarter >= SECOND // 4:
                self.quarter = now
                recording.reached()
            if now - self.second >= SECOND:
                self._each_second(now)

    def _take(self):
        if self.anew:
            self.anew = False
            self.tree.begin_anew()
        now = clock()
        frames = sys._current_frames()
        main, share = state.main_thread, 1
        self.ticks += 1
        for ident, frame in frames.items():
            if ident == self.ident:
                continue
            watched = self.watched.get(ident)
            if watched is None:
                watched = self._meet(ident, main, now)
                continue
            if self.ticks % watched.every:
                continue
            running = self._tell(watched, frame, clock())
            if ident == main:
                share = running
        del frames
        if self.ticks % 512 == 0:
            self._forget()
        self.sampled += 1
        self.pace.spent += int((clock() - now + HAND_OVER) * share)

    def _meet(self, ident, main, now):
        thread, kind, every = 0, rings.SAMPLE_OTHER, 10
        if ident == main:
            thread, kind, every = state.pid, rings.SAMPLE_MAIN, 1
        else:
            threading = sys.modules.get("threading")
            known = threading._active.get(ident) if threading is not None else None
            thread = getattr(known, "native_id", None) or 0
            target = getattr(known, "_target", None)
            if getattr(target, "__name__", "") == "_pin_memory_loop":
                kind, every = rings.SAMPLE_PIN, 4
        watched = self.watched[ident] = Watched(thread, kind, now, every)
        return watched

    def _tell(self, watched, frame, now):
        """Returns the share of the time since the last sample in which the thread ran."""
        elapsed, used = now - watched.last, watched.used()
        self.ring.put(
            _sample,
            48,
            rings.RECORD_SAMPLE,
            0,
            now,
            elapsed,
            used,
            watched.thread,
            watched.kind,
            self.tree.node(frame),
            0,
        )
        watched.last = now
        return min(used / elapsed, 1) if used != rings.UNKNOWN and elapsed > 0 else 1

    def _forget(self):
        alive = sys._current_frames()
        self.watched = {i: one for i, one in self.watched.items() if i in alive}

    def _each_second(self, now):
        elapsed = now - self.second
        cpu = time.thread_time_ns()
        self.ring.put(
            _sample,
            48,
            rings.RECORD_SAMPLE,
            0,
            now,
            elapsed,
            cpu - self.own_cpu,
            self.thread,
            rings.SAMPLE_OURS,
            0,
            0,
        )
        self.own_cpu, self.second = cpu, now
        reached = self.sampled * 1000 * SECOND // elapsed
        recording.mark(rings.MARK_SAMPLED, self.pace.rate, reached)
        self.sampled = 0
        self.pace.keep(elapsed)
        for call in list(state.on_second):
            call()
        over = self.until is not None and time.monotonic() > self.until
        if over or os.path.exists(self.stop_file):
            recording.end()


_sampler = None
_forks = False


def start_loop():
    """Samples this process, at full rate from here on."""
    start()
    if _sampler is not None and not _sampler.in_loop:
        _sampler.begin_loop()


def start():
    """Begins to sample this process, if it is not sampled already."""
    global _sampler, _forks
    if not part.on or recording.get() is None:
        return
    if _sampler is not None and _sampler.ring is state.ring:
        return
    rate = state.options.get("stack_hz", 100)
    rate = rate if isinstance(rate, int) and 0 < rate <= 1000 else 0
    try:
        _sampler = Sampler(state.ring, rate)
        if not _forks:
            _forks = True
            os.register_at_fork(before=_before_fork, after_in_parent=_after_fork)
            state.on_fork.append(_forget)
        _sampler.start()
    except Exception:
        part.failed()


def first_step(frame):
    """A step of training is made in this frame: what is above it hands out no data."""
    known = len(_training)
    while frame is not None:
        if is_source(frame.f_code):
            _training.add(frame.f_code)
        frame = frame.f_back
    if len(_training) > known and _sampler is not None:
        _sampler.anew = True


def stop():
    """A thread that is still there while Python shuts down is ended in the middle of something."""
    global _sampler
    sampler, _sampler = _sampler, None
    if sampler is not None and sampler.ident != get_ident():
        sampler.leave()


state.on_end.append(stop)


def _before_fork():
    """Python 3.12 warns of a fork in a process with threads: ours is not to be the one."""
    if _sampler is not None and _sampler.ident != get_ident():
        _sampler.leave()


def _after_fork():
    if _sampler is not None and state.ring is _sampler.ring:
        try:
            _sampler.start()
        except Exception:
            part.failed()


def _forget():
    """In a child: the thread is the parent's."""
    global _sampler
    _sampler = None
