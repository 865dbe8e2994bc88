"""What the sides of the GPU benchmarks share: a side in this process, the clock, the watch.

A side is a function of the seconds it may take; it opens what it needs, warms up, measures once,
closes, and returns the row's facts. Sides run in one process and take turns, so that the start of
PyTorch and of the device's context is paid once; loaders and workers are new in every run.
"""

import contextlib
import gc
import os
import threading
import time

import torch

from bench import machine, measure

DEVICE = "cuda"
WARM = 0.25  # of a run's seconds are drawn before its clock starts


class Side(measure.Side):
    """One row, measured by a function in this process."""

    def __init__(self, name, work, seconds, note=""):
        super().__init__(name, [], note)
        self.work, self.seconds = work, seconds
        self.is_warm = False

    def run(self):
        """The first run is a short one: it is the warm-up of measure.alternate."""
        seconds = self.seconds if self.is_warm else self.seconds / 4
        self.is_warm = True
        _reset_peak()
        try:
            answer = self.work(seconds)
        except Exception as error:  # a side that cannot run is a row that says why
            self.missing = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            return {"error": self.missing}
        finally:
            gc.collect()
        answer.setdefault("threads", machine.cores())
        answer.setdefault("cache", "warm")
        return answer


def missing(name, why, note=""):
    """A row of something that is not installed."""
    return measure.Side(name, [], note, missing=why)


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def endless(epoch):
    """Batches of epoch after epoch."""
    while True:
        yield from epoch()


def timed(batches, work, seconds, warm=4, watch=None):
    """Draws batches and works on each: first `warm` of them and a quarter of the seconds, so that
    what was ready beforehand is used up; then, with the clock running, for the seconds.

    work(batch) returns the number of samples and of bytes it was given. The device is waited for
    before the clock is read.
    """
    until, drawn = time.perf_counter() + WARM * seconds, 0
    while drawn < warm or time.perf_counter() < until:
        work(next(batches))
        drawn += 1
    synchronize()
    samples = size = steps = 0
    with watch or contextlib.nullcontext():
        cpu, begun = measure.cpu_seconds(), time.perf_counter()
        while time.perf_counter() - begun < seconds or steps < 3:
            got = work(next(batches))
            samples, size, steps = samples + got[0], size + got[1], steps + 1
        synchronize()
        took, cpu = time.perf_counter() - begun, measure.cpu_seconds() - cpu
    return {
        "value": samples / took,
        "seconds": took,
        "steps": steps,
        "step_s": took / steps,
        "samples": samples,
        "samples_per_s": samples / took,
        "bytes_out": size,
        "bytes_per_s": size / took,
        "cpu_s": cpu,
        "cpu_cores": cpu / took,
        "peak_rss": sum(map(measure.peak_of, measure.descendants(os.getpid()))),
    }


def _reset_peak():
    """This process's peak of resident memory counts from now; where it cannot, from its start."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def only_draw(field):
    """The work of a consumer that does nothing with a batch."""

    def work(batch):
        tensor = batch[field]
        return len(tensor), tensor.nbytes

    return work


class Busy:
    """How busy the GPU was while it lasts: by CUPTI, exactly, and by NVML, as it is polled."""

    def __init__(self):
        import stoker.gpu

        self._gpu = stoker.gpu
        self._activity = stoker.gpu.Activity()
        self._end, self._polled = threading.Event(), []

    def __enter__(self):
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()
        self._activity.__enter__()
        return self

    def __exit__(self, *error):
        self._activity.__exit__(*error)
        self._end.set()
        self._thread.join()

    def _poll(self):
        while not self._end.wait(0.1):
            try:
                share = self._gpu.nvml_utilization()
            except Exception:  # no NVML: CUPTI's figure stands alone
                return
            if share is not None:
                self._polled.append(share)

    def facts(self):
        activity = self._activity
        starts, kernels, copies = activity.timeline()
        return {
            "busy": activity.busy,
            "nvml_busy": sum(self._polled) / len(self._polled) if self._polled else None,
            "kernels": activity.kernels,
            "kernel_s": activity.kernel_seconds,
            "copy_s": activity.copy_seconds,
            "copied_bytes": activity.copied_bytes,
            "lost_records": activity.lost,
            "timeline": _thin(starts, kernels, copies),
        }


def _thin(starts, kernels, copies, most=200):
    """At most so many points of a timeline: neighbours are averaged."""
    step = max(1, -(-len(starts) // most))
    cut = [slice(at, at + step) for at in range(0, len(starts), step)]
    return {
        "seconds": [round(float(starts[part][0]), 4) for part in cut],
        "kernels": [round(float(kernels[part].mean()), 4) for part in cut],
        "copies": [round(float(copies[part].mean()), 4) for part in cut],
    }


def stoker_facts(loader):
    """What a row tells of Stoker's loader."""
    stats = loader.stats()
    device = stats.get("device") or {}
    facts = {
        "threads": stats["threads"],
        "pool_bytes": stats["peak_bytes"],
        "waits": stats["waits"],
    }
    keys = "peak_bytes", "pinned_bytes", "pageable_batches", "shipped_bytes", "resident_bytes"
    more = "resident_batches", "gpu_decoded", "cpu_decoded", "decode_share"
    facts.update({f"device_{key}": device[key] for key in (*keys, *more) if key in device})
    return facts


def measured(sides, runs):
    """Sides take turns; their rows."""
    measure.alternate(sides, runs)
    return {side.name: measure.row(side, "samples/s") for side in sides}


def ratio(rows, key, above, below, ratios, of="value"):
    """ratios[key] = above over below, where both were measured."""
    upper, lower = rows.get(above), rows.get(below)
    if upper and lower and upper.get(of) and lower.get(of):
        ratios[key] = upper[of] / lower[of]
