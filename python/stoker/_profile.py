"""Watches a block of code as ``stoker run`` watches a script."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

from . import _core, _torch_trace
from ._context import context

_running: tuple[int, str] | None = None  # the process, and where its profile() was entered
_dismissed: list[int] = []  # fork servers of blocks that are over


class profile(contextlib.ContextDecorator):
    """Tells how busy the GPU was in a block of code, what it waited for and what to do about it.

    The block's training loop is watched in this process, with its DataLoader workers, as ``stoker
    run`` does it for a whole script. After the block :attr:`verdict` holds the words and
    :attr:`summary` the numbers. It is a decorator too. One can be entered at a time, as often as
    you like one after the other.

    A ``torch.profiler.profile`` that records meanwhile is left to itself, and what it saw goes into
    the trace as rows of its own, on the same clock. On a GPU enter this block first: CUPTI is then
    lent to the profiler while it records.

    Args:
        trace: write a trace here, for Perfetto or chrome://tracing.
        run: write the run file here (JSON), which ``stoker report`` draws.
        report: draw the report here: ``.html``, ``.md``, ``.png``.
        prof: a ``torch.profiler.profile`` whose events go into the trace, running or done; or a
            file that it exported. Default: the one that records when the block begins, and those
            that stop within it.
        stacks: how often a second Python's stacks are looked at; 0: never.
        trace_bytes: the most that the trace may take; the middle of a longer one is left out.

    Attributes:
        verdict: words for a terminal; "" before the block has ended.
        summary: what the run file holds, as a dict; empty before.

    >>> with stoker.profile(trace="T.json") as p:
    ...     train(model, loader)
    >>> print(p.verdict)
    """

    def __init__(
        self,
        trace: str | os.PathLike[str] | None = None,
        run: str | os.PathLike[str] | None = None,
        report: str | os.PathLike[str] | None = None,
        *,
        prof: Any = None,
        stacks: int = 100,
        trace_bytes: int | None = None,
    ) -> None:
        self.verdict = ""
        self.summary: dict[str, Any] = {}
        self._trace = None if trace is None else os.path.abspath(os.fspath(trace))
        self._run = None if run is None else os.fspath(run)
        self._report = None if report is None else os.fspath(report)
        self._given = prof
        self._stacks = stacks
        self._trace_bytes = trace_bytes or 0
        self._watch: Any = None

    def __enter__(self) -> profile:
        global _running
        if _running is not None and _running[0] == os.getpid():
            raise RuntimeError(
                f"stoker.profile() is entered already, at {_running[1]}: one block at a time; "
                "leave that one first"
            )
        self.verdict, self.summary = "", {}
        if os.environ.get("STOKER_WATCH"):
            warnings.warn(
                "stoker.profile() does nothing here: `stoker run` watches this process already",
                stacklevel=2,
            )
            return self
        if self._report is not None:
            from . import report

            report.check(self._report)
        self._open()
        _running = os.getpid(), _caller()
        return self

    def _open(self) -> None:
        self._watch = _core.watch_open(
            context(),
            None if self._trace is None else os.fsencode(self._trace),
            self._trace_bytes,
            self._stacks if self._stacks > 0 else 0xFFFFFFFF,
        )
        folder = _core.watch_folder(self._watch)
        self._undo = contextlib.ExitStack()
        self._profs: list[Any] = [] if self._given is None else [self._given]
        try:
            self._follow_profilers()
            self._hook(folder)
        except BaseException:
            self._undo.close()
            _core.watch_close(self._watch)
            self._watch = None
            raise

    def _follow_profilers(self) -> None:
        """Those that stop within the block, and the one that records as it begins."""
        if self._trace is None or self._given is not None:
            return
        found = _torch_trace.find_recording()
        if found is not None:
            self._profs.append(found)
        profiler = sys.modules.get("torch.profiler")
        if profiler is None:
            return
        kind, stop = profiler.profile, profiler.profile.stop

        def stop_and_keep(prof: Any) -> None:
            stop(prof)
            if _torch_trace.is_done(prof) and not any(prof is one for one in self._profs):
                self._profs.append(prof)

        kind.stop = stop_and_keep
        self._undo.callback(setattr, kind, "stop", stop)

    def _hook(self, folder: str) -> None:
        """Starts the hook in this interpreter, and lets children start theirs."""
        site = str(Path(folder) / "site")
        paths = [site, os.environ.get("PYTHONPATH", "")]
        self._set("STOKER_WATCH", folder)
        self._set("PYTHONPATH", os.pathsep.join(path for path in paths if path))
        self._inject(str(Path(folder) / "libstoker_inject.so"), folder)
        self._own_fork_server()
        sys.path.insert(0, site)
        try:
            import stoker_watch
        finally:
            sys.path.remove(site)
        self._undo.callback(_forget_hook)
        self._undo.callback(stoker_watch.stop)
        stoker_watch.start(folder)

    def _inject(self, path: str, folder: str) -> None:
        """Records the GPU's work, unless another tool does: CUPTI has room for one. CUDA itself
        loads the library when it is initialised; where it is already, we do."""
        if "CUDA_INJECTION64_PATH" in os.environ:
            return
        if _torch_trace.is_recording():
            if _uses_device():
                warnings.warn(
                    "torch.profiler records already, so stoker.profile() does not see the GPU's "
                    "work; enter stoker.profile() first",
                    stacklevel=5,
                )
            return
        self._set("CUDA_INJECTION64_PATH", path)
        try:
            library = ctypes.CDLL(path)
            self._undo.callback(library.stoker_inject_stop)
            if _uses_device():
                library.stoker_inject_start.argtypes = [ctypes.c_char_p]
                library.stoker_inject_start(os.fsencode(folder))
        except (OSError, AttributeError):
            return  # without it the run file says that nothing of a GPU was recorded

    def _own_fork_server(self) -> None:
        """A fork server, Python 3.14's way to start workers, gives them the environment that it was
        started in: one from before the block has no hook. The block has a server of its own."""
        from multiprocessing import forkserver

        _reap_servers()
        try:
            server: Any = forkserver.ForkServer()
            server._preload_modules = forkserver._forkserver._preload_modules
            connect = forkserver.connect_to_new_process
            forkserver.connect_to_new_process = server.connect_to_new_process
        except AttributeError:
            return  # a Python that does it in another way: such workers are not seen
        self._undo.callback(_dismiss, server)
        self._undo.callback(setattr, forkserver, "connect_to_new_process", connect)

    def _set(self, name: str, value: str) -> None:
        before = os.environ.get(name)
        os.environ[name] = value
        if before is None:
            self._undo.callback(os.environ.pop, name, None)
        else:
            self._undo.callback(os.environ.__setitem__, name, before)

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        global _running
        if self._watch is None:
            return
        watch, self._watch = self._watch, None
        if _running is not None and _running[0] != os.getpid():
            return  # a forked child leaves the block: its parent is the one who tells
        _running = None
        try:
            self._undo.close()
            text, self.verdict = _core.watch_finish(watch)
            self.summary = json.loads(text)
            self._write(text)
        finally:
            _core.watch_close(watch)

    def _write(self, text: str) -> None:
        if self._run is not None:
            Path(self._run).write_text(text)
        if self._trace is not None:
            for number, prof in enumerate(self._profs):
                self._merge(prof, number)
        if self._report is not None:
            from . import report

            with _as_file(self._run, text) as path:
                report.make([path], self._report)

    def _merge(self, prof: Any, number: int) -> None:
        """Now, or as soon as it has stopped."""
        path = self._trace
        assert path is not None
        if isinstance(prof, (str, os.PathLike)) or _torch_trace.is_done(prof):
            _torch_trace.append(path, prof, number)
        else:
            _torch_trace.when_done(prof, lambda one: _append_quietly(path, one, number))


def _dismiss(server: Any) -> None:
    """It leaves with the last of its workers."""
    if server._forkserver_pid is not None:
        os.close(server._forkserver_alive_fd)
        _dismissed.append(server._forkserver_pid)


def _reap_servers() -> None:
    for pid in list(_dismissed):
        with contextlib.suppress(ChildProcessError):  # this process is a fork: it is not ours
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                continue
        _dismissed.remove(pid)


def _uses_device() -> bool:
    """CUDA is initialised in this process, and there is a GPU."""
    try:
        driver = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        count = ctypes.c_int(0)
        return driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0
    except (OSError, AttributeError):
        return False


def _append_quietly(path: str, prof: Any, number: int) -> None:
    """The profiler's own block must not fail for our trace."""
    try:
        _torch_trace.append(path, prof, number)
    except (OSError, ValueError) as error:
        warnings.warn(f"what torch.profiler saw is not in {path}: {error}", stacklevel=2)


def _forget_hook() -> None:
    """Its files go away with the run's folder; the next run brings its own."""
    for name in [name for name in sys.modules if name.split(".")[0] == "stoker_watch"]:
        del sys.modules[name]


def _caller() -> str:
    """The line that entered the block: the first one that is not ours or contextlib's."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename == contextlib.__file__:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


@contextlib.contextmanager
def _as_file(path: str | None, text: str) -> Any:
    if path is not None:
        yield path
        return
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "run.json"
        made.write_text(text)
        yield str(made)
