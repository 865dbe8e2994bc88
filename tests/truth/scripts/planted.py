"""What a script of the truth suite knows of itself: when it computed, and what it did in between.

A script plants one cause and says at its end, as the last line on standard output, which share of
the idle time that cause had. The share is measured here, by the script's own clock, so that it is
known on a slow machine too.

Devices: "cpu": a step is a pause, as an accelerator looks from the CPU; "cuda": a real kernel;
"sim": the GPU of tests/sim_cuda, which is not there, but whose records are.
"""

import argparse
import contextlib
import functools
import json
import multiprocessing
import os
import signal
import statistics
import sys
import time
from pathlib import Path


def arguments():
    # Python 3.14 does not fork workers by itself: their start would outweigh what is planted.
    multiprocessing.set_start_method("fork", force=True)
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=("cpu", "cuda", "sim"), default="cpu")
    parser.add_argument("--ready", help="a file that is made when training begins")
    parser.add_argument("--end", choices=("return", "exit", "raise", "kill"), default="return")
    options = parser.parse_args()
    options.place = "cuda" if options.device == "cuda" else "cpu"  # where tensors go
    return options


def burn(seconds):
    """Uses so much CPU time of this thread, however long that takes."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class Accelerator:
    """A step of known length."""

    launched = 0.0  # seconds of all kernels on a real GPU

    def __init__(self, device, seconds):
        self._device, self._seconds = device, seconds
        self._cycles = round(seconds * _cycles_a_second()) if device == "cuda" else None

    def __call__(self):
        if self._device == "cpu":
            time.sleep(self._seconds)
        elif self._device == "sim":
            sim_gpu().launch(self._seconds)
        else:
            import torch

            torch.cuda._sleep(self._cycles)
            Accelerator.launched += self._seconds


@functools.cache
def sim_gpu():
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "sim_cuda"))
    import sim_gpu as module

    class Recorded(module.SimGpu):
        kernels = []  # noqa: RUF012 -- one device

        def _kernel(self, seconds, name, correlation, graph):
            super()._kernel(seconds, name, correlation, graph)
            self.kernels.append((self._free / 1e9 - seconds, self._free / 1e9))

    return Recorded()


def _cycles_a_second():
    import torch

    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for cycles in (1_000_000, 100_000_000):  # the first one wakes the device
        begin.record()
        torch.cuda._sleep(cycles)
        end.record()
        end.synchronize()
    return cycles / begin.elapsed_time(end) * 1000


def warm_up(model, optimizer, x):
    """A first step, which loads libraries and kernels: before training, where nobody judges it."""
    model(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


class Ledger:
    """When the device computed, and what the time between belongs to.

    planted: the cause that the script plants; it has the time that nothing else claims.
    others: of that time, the shares that belong to other causes.
    counted: only what during() says is idle; all other time is computing.
    """

    def __init__(self, planted, device="cpu", others=None, counted=False):
        self.others = others or {}
        self._planted, self._counted = planted, counted
        self._steps, self._blocks = [], []
        self._starts, self._waits = [], []  # of epochs; for batches
        self._events = {"cuda": _DeviceEvents, "sim": _SimEvents}.get(device, lambda: None)()
        self._begin = self._last = None

    def begin(self):
        """Training begins: what was before is not judged."""
        self._now()

    @contextlib.contextmanager
    def step(self):
        """What is inside keeps the device busy."""
        start = self._events.begin() if self._events else self._now()
        yield
        self._steps.append((start, self._events.end() if self._events else self._now()))
        self._now()

    def model(self):
        """What is inside computes; on a GPU it is over as soon as Python has launched it."""
        return self.during("launch") if self._events else self.step()

    @contextlib.contextmanager
    def during(self, cause):
        """What is inside belongs to this cause, as far as the device is idle."""
        start = self._now()
        yield
        self._blocks.append((start, self._now(), cause))

    def epoch(self, loader):
        """The loader's batches; its start and end are told apart from the waits for batches. A
        first batch takes as long as the others do, besides the start."""
        start = self._now()
        batches = iter(loader)
        while True:
            begin = self._now()
            try:
                batch = next(batches)
            except StopIteration:
                self._blocks.append((begin, self._now(), "input/start"))
                return
            if start is None:
                self._waits.append(self._now() - begin)
            else:
                self._starts.append((start, self._now()))
                start = None
            yield batch
            if self._events:  # the loop has dropped it: taking it apart is the loop's own work
                with self.during("input/transform"):
                    del batch

    def _now(self):
        now = time.perf_counter()
        self._begin = self._begin if self._begin is not None else now
        self._last = now
        return now

    def tell(self, share=None, **more):
        """Prints what was planted. share: of the idle seconds, where blocks cannot say it."""
        end = self._last
        if self._events:
            self._steps = self._events.seconds(self._steps)
            end = max(end, self._steps[-1][1])
        wait = statistics.median(self._waits) if self._waits else 0.0
        for begin, until in self._starts:
            self._blocks.append((begin, max(begin, until - wait), "input/start"))
        shares, busy = self._shares(end)
        if self._planted is None:
            result = {"cause": None, "share": 0.0}
        else:
            result = {"cause": self._planted, "share": shares.get(self._planted, 0.0)}
        if share:
            result["share"] = share((1 - busy) * (end - self._begin))
        print(json.dumps({**result, "busy": busy, "shares": shares, **more}), flush=True)

    def _shares(self, end):
        total = end - self._begin
        if self._counted:
            seconds = self._claimed([(self._begin, end)])
            idle = sum(seconds.values())
            return {cause: value / idle for cause, value in seconds.items()}, 1 - idle / total
        gaps = _gaps(self._steps, self._begin, end)
        idle = sum(stop - start for start, stop in gaps)
        seconds = self._claimed(gaps)
        rest = idle - sum(seconds.values())
        for cause, share in self.others.items():
            seconds[cause] = seconds.get(cause, 0.0) + share * rest
        own = rest * (1 - sum(self.others.values()))
        if self._planted is not None:
            seconds[self._planted] = seconds.get(self._planted, 0.0) + own
        return {cause: value / idle for cause, value in seconds.items()}, 1 - idle / total

    def _claimed(self, gaps):
        seconds = {}
        for begin, end, cause in self._blocks:
            over = sum(max(0.0, min(end, stop) - max(begin, start)) for start, stop in gaps)
            seconds[cause] = seconds.get(cause, 0.0) + over
        return seconds


def _gaps(steps, begin, end):
    gaps = []
    for start, stop in sorted(steps):
        if start > begin:
            gaps.append((begin, start))
        begin = max(begin, stop)
    return [*gaps, (begin, end)] if end > begin else gaps


class _DeviceEvents:
    """Moments of the device's own clock, told as this process's. What lies between the moments of a
    step is longer than its kernels are, where Python waits in between: their length is known."""

    def __init__(self):
        import torch

        self._torch, self._zero = torch, torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        self._zero.record()
        self._zero.synchronize()
        self._at = time.perf_counter()

    def begin(self):
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event, Accelerator.launched

    end = begin

    def seconds(self, pairs):
        self._torch.cuda.synchronize()
        return [self._seconds(*begin, *end) for begin, end in pairs]

    def _seconds(self, begin, before, end, after):
        start, stop = (self._at + self._zero.elapsed_time(one) / 1000 for one in (begin, end))
        length = after - before
        return (max(start, stop - length) if length else start), stop


class _SimEvents:
    """The same for a GPU that is not there: it has this process's clock, and knows its kernels."""

    def __init__(self):
        self._known = len(sim_gpu().kernels)

    def begin(self):
        return None

    end = begin

    def seconds(self, pairs):
        return sim_gpu().kernels[self._known :]


def ready(options):
    """Says to the test that training begins."""
    if options.ready:
        open(options.ready, "w").close()


def end(options):
    """Ends as the test wants it: in order, or not."""
    if options.end == "exit":
        sys.exit(3)
    if options.end == "raise":
        raise RuntimeError("a fault in the middle of training")
    if options.end == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
