"""The script's own torch.profiler: it needs CUPTI for itself. The injected library yields while it
records; what it saw on the device is told from here afterwards, so that nothing is lost."""

import sys
import time

from . import recording
from . import ring as rings
from .gpu_library import injected
from .importing import patch
from .recording import clock, state

part = recording.Part("torch.profiler")

FIRST_NAME = 1 << 30  # the injected library counts from below
WAITS = 100  # of 20 ms, for room in the ring
WAYS = {"HtoD": rings.COPY_TO_DEVICE, "DtoH": rings.COPY_TO_HOST, "DtoD": rings.COPY_ON_DEVICE}
MEMORY = {
    "Pageable": rings.COPY_PAGEABLE,
    "Pinned": rings.COPY_PINNED,
    "Device": rings.COPY_DEVICE,
    "Managed": rings.COPY_MANAGED,
}
_names = {}


class Yielded:
    start = 0
    library = None
    by = None  # the profile object that we yielded to


def uses_device(profile):
    return any("CUDA" in str(one) for one in getattr(profile, "kineto_activities", ()))


def captures():
    """A yield waits for the device, which would spoil a graph that is being captured."""
    cuda = sys.modules.get("torch.cuda")
    return cuda is not None and cuda.is_initialized() and cuda.is_current_stream_capturing()


def begin(profile):
    if Yielded.by is not None or state.worker is not None:
        return
    Yielded.by = id(profile)
    Yielded.start = clock()
    if piece not in state.on_second:
        state.on_second.append(piece)
    if uses_device(profile) and not captures():
        Yielded.library = injected()
        if Yielded.library is not None:
            Yielded.library.stoker_inject_yield()


def end(profile):
    if Yielded.by != id(profile):
        return
    try:
        if uses_device(profile):
            tell_events(profile.kineto_results)
    finally:
        library, Yielded.library, Yielded.by = Yielded.library, None, None
        if library is not None:
            library.stoker_inject_resume()
        start, Yielded.start = Yielded.start, 0
        recording.span(rings.SPAN_PROFILER, start, clock())


def piece():
    """A long one is told as it goes on."""
    start, now = Yielded.start, clock()
    if start and now - start > 1000000000:
        Yielded.start = now
        recording.span(rings.SPAN_PROFILER, start, now, thread=state.pid)


def tell_events(results):
    """The profiler's clock is that of the calendar; ours is the monotonic one."""
    offset = time.time_ns() - clock()
    ring = recording.get()
    if results is None or ring is None:
        return
    patience = [WAITS]
    for event in results.events():
        if "CUDA" in str(event.device_type()) and is_work(event):
            tell_event(ring, event, offset, patience)


def is_work(event):
    """A kernel, a copy or a clear; not a note of the script's on the device's line, nor a wait."""
    is_user = getattr(event, "is_user_annotation", None)
    if is_user is not None and is_user():
        return False
    return not event.name().endswith(("Sync", "Synchronize", "Wait Event"))


def times_of(event):
    if hasattr(event, "start_ns"):
        return event.start_ns(), event.duration_ns()
    return event.start_us() * 1000, event.duration_us() * 1000


def tell_event(ring, event, offset, patience):
    start, length = times_of(event)
    start -= offset
    name = event.name()
    if name.startswith(("Memcpy", "Memset")):
        kind = getattr(event, "nbytes", int)()
        way, source, target = read_copy(name)
        fields = (start, start + length, max(kind, 0), event.device_index())
        fields += (event.device_resource_id(), way, source, target)
        put(ring, rings.COPY.pack_into, 48, rings.RECORD_COPY, fields, patience)
        return
    fields = (start, start + length, event.device_index(), event.device_resource_id())
    fields += (name_of(name), 0)
    put(ring, rings.KERNEL.pack_into, 40, rings.RECORD_KERNEL, fields, patience)


def read_copy(name):
    """ "Memcpy HtoD (Pageable -> Device)" in our numbers."""
    if name.startswith("Memset"):
        return rings.COPY_CLEAR, rings.COPY_UNKNOWN, rings.COPY_DEVICE
    way = next((WAYS[key] for key in WAYS if key in name), rings.COPY_OTHER)
    inside = name.partition("(")[2].rstrip(")").split(" -> ")
    places = [MEMORY.get(place.strip(), rings.COPY_UNKNOWN) for place in inside]
    return (way, places[0], places[1]) if len(places) == 2 else (way, 0, 0)


def name_of(name):
    """Its number in this ring; told when it is new."""
    number = _names.get(name)
    if number is None:
        number = _names[name] = FIRST_NAME + len(_names)
        recording.text(rings.RECORD_NAME, number, name[:512])
    return number


def put(ring, pack_into, size, kind, fields, patience):
    """The script has stopped its profiler and waits for us: a short wait for room is fair."""
    while ring.room() < 4096 and patience[0] > 0:
        patience[0] -= 1
        time.sleep(0.02)
    ring.put(pack_into, size, kind, 0, *fields)


def before(call):
    """Makes wrappers that call `call(profile)` first."""

    def make(original):
        def wrapper(self, *arguments, **options):
            if part.on and state.on and getattr(self, "enabled", True):
                try:
                    call(self)
                except Exception:
                    part.failed()
            return original(self, *arguments, **options)

        return wrapper

    return make


def after(call):
    def make(original):
        def wrapper(self, *arguments, **options):
            try:
                return original(self, *arguments, **options)
            finally:
                if part.on and state.on and getattr(self, "enabled", True):
                    try:
                        call(self)
                    except Exception:
                        part.failed()

        return wrapper

    return make


def patch_profiler(module):
    kind = module.profile
    first = "_prepare_trace" if hasattr(kind, "_prepare_trace") else "__enter__"
    patch(kind, first, before(begin))
    patch(kind, "__exit__", after(end))


def patch_activity(module):
    """Stoker's own look at the device takes CUPTI's callbacks too."""
    patch(module.Activity, "__enter__", before(begin_activity))
    patch(module.Activity, "__exit__", after(end_activity))


def begin_activity(activity):
    library = injected()
    if library is not None and Yielded.by is None:
        Yielded.by, Yielded.library, Yielded.start = id(activity), library, clock()
        library.stoker_inject_yield()


def end_activity(activity):
    if Yielded.by == id(activity):
        library, Yielded.library, Yielded.by = Yielded.library, None, None
        start, Yielded.start = Yielded.start, 0
        library.stoker_inject_resume()
        recording.span(rings.SPAN_PROFILER, start, clock())


def _forked():
    """CUPTI is the parent's."""
    Yielded.by = Yielded.library = None
    Yielded.start = 0
    _names.clear()


state.on_fork.append(_forked)
