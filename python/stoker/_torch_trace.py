"""What torch.profiler saw, as events for a trace of ours: the same clock, in rows of their own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

ROWS = 6_000_000  # pids of these rows begin here, above every pid of Linux
TAIL = b'\n],"displayTimeUnit"'  # how a finished trace of ours ends


def is_recording() -> bool:
    """A torch.profiler records in this process at the moment."""
    torch = sys.modules.get("torch")
    try:
        return torch is not None and bool(torch._C._autograd._profiler_enabled())
    except AttributeError:
        return False


def find_recording() -> Any:
    """The torch.profiler.profile that records now; None: there is none that could be asked."""
    import gc

    profiler = sys.modules.get("torch.profiler")
    if profiler is None or not is_recording():
        return None
    for thing in gc.get_objects():
        try:
            if isinstance(thing, profiler.profile) and not is_done(thing):
                return thing
        except ReferenceError:
            continue
    return None


def is_done(prof: Any) -> bool:
    """It has recorded and stopped; what it saw can be asked for."""
    return getattr(getattr(prof, "profiler", None), "kineto_results", None) is not None


def when_done(prof: Any, call: Callable[[Any], None]) -> None:
    """Calls back once `prof` has stopped. Only this one object is touched."""
    stop = prof.stop

    def stop_and_call() -> None:
        del prof.stop
        stop()
        call(prof)

    prof.stop = stop_and_call


def events_of(prof: Any, unix_zero: int, number: int) -> Iterator[dict[str, Any]]:
    """The events of a profiler, or of a file that it exported. unix_zero: nanoseconds since 1970 at
    which the trace begins."""
    if isinstance(prof, (str, os.PathLike)):
        return _of_file(prof, unix_zero, number)
    return _of_profiler(prof, unix_zero, number)


def _name_row(pid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": pid, "tid": 0, "name": "process_name", "args": {"name": name}}


def _of_profiler(prof: Any, unix_zero: int, number: int) -> Iterator[dict[str, Any]]:
    host = ROWS + 100 * number
    seen: set[int] = set()
    for event in prof.profiler.kineto_results.events():
        on_device = not str(event.device_type()).endswith("CPU")
        pid = host + 1 + event.device_index() if on_device else host
        if pid not in seen:
            seen.add(pid)
            where = f", GPU {event.device_index()}" if on_device else ""
            yield _name_row(pid, f"torch.profiler{where}")
        yield {
            "ph": "X",
            "pid": pid,
            "tid": event.device_resource_id() or event.start_thread_id(),
            "ts": (event.start_ns() - unix_zero) / 1000,
            "dur": event.duration_ns() / 1000,
            "name": event.name(),
            "cat": "torch.profiler",
        }


def _of_file(path: str | os.PathLike[str], unix_zero: int, number: int) -> Iterator[dict[str, Any]]:
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    if not isinstance(trace, dict) or "traceEvents" not in trace:
        raise ValueError(f"{os.fspath(path)} is no trace of torch.profiler")
    zero = unix_zero - int(trace.get("baseTimeNanoseconds", 0))
    rows: dict[Any, int] = {}
    for event in trace["traceEvents"]:
        pid = rows.setdefault(event.get("pid"), ROWS + 100 * number + len(rows))
        event["pid"] = pid
        if "ts" in event:
            event["ts"] -= zero / 1000
        if event.get("ph") == "M" and event.get("name") == "process_name":
            event["args"] = {"name": f"torch.profiler: {event.get('args', {}).get('name', '')}"}
        yield event


def append(path: str, prof: Any, number: int) -> int:
    """Puts the events of `prof` into the finished trace at `path`. How many there were."""
    with open(path, "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 65536))
        end = file.read()
        at = end.rfind(TAIL)
        if at < 0:
            raise ValueError(f"{path} is not a trace that stoker.profile() finished")
        tail = end[at:]
        data = json.loads(b'{"traceEvents":[' + tail)["otherData"]
        file.seek(max(0, size - 65536) + at)
        count = 0
        for event in events_of(prof, data["begun_ns"] + data["unix_offset_ns"], number):
            file.write(b",\n" + json.dumps(event).encode())
            count += 1
        file.write(tail)
        file.truncate()
    return count
