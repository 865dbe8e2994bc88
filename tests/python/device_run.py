"""Runs a script against the simulated CUDA driver, in a process of its own."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SIMULATED = Path(os.environ.get("SIM_CUDA", HERE.parents[1] / "build" / "sim_cuda"))

# What every script may use. Batches come as the library's own tensors: no torch is needed.
PRELUDE = """
import ctypes, gc, json, logging, os, sys, threading, time
import numpy
import stoker
from stoker import _core

FOLDER = sys.argv[1] if len(sys.argv) > 1 else None


def host(value):
    if isinstance(value, _core.Tensor):
        assert value.device.startswith("cuda:")
        return numpy.asarray(value.to_host())
    return [host(item) for item in value] if isinstance(value, list) else value


def open_loader(batch_size=10, source=FOLDER, **options):
    options = {"device": "cuda", "as_": "dlpack", **options}
    return stoker.Loader(source, batch_size, **options)


def on_cpu(batch_size=10, source=FOLDER, **options):
    return stoker.Loader(source, batch_size, as_="numpy", **options)


def compare(one, two, tolerance=0):
    if isinstance(two, list):
        assert len(one) == len(two)
        for left, right in zip(one, two):
            compare(left, right, tolerance)
    elif isinstance(two, numpy.ndarray):
        assert one.shape == two.shape and one.dtype == two.dtype, (one.shape, two.shape)
        if tolerance:
            difference = numpy.abs(one.astype(float) - two.astype(float)).max(initial=0)
            assert difference <= tolerance, difference
        else:
            numpy.testing.assert_array_equal(one, two)
    else:
        assert one == two


def compare_batches(device, cpu, tolerance=0):
    assert device.samples.tolist() == cpu.samples.tolist()
    for name, value in cpu.items():
        if name in device:  # no mask is made without torch
            compare(host(device[name]), value, tolerance)
    assert set(cpu) - set(device) <= {name for name in cpu if name.endswith("_mask")}


def compare_epochs(device, cpu, epochs=2, tolerance=0):
    batches = 0
    for _ in range(epochs):
        for one, two in zip(device, cpu, strict=True):
            compare_batches(one, two, tolerance)
            batches += 1
    assert batches
    return batches


class Counts(ctypes.Structure):
    names = ("contexts allocations allocated_bytes registrations registered_bytes streams events "
             "modules queued peak_bytes copies_in copied_in_bytes copies_out copied_out_bytes "
             "pageable_copies launches complaints")
    _fields_ = [(name, ctypes.c_uint64) for name in names.split()]


def counts():
    made = Counts()
    ctypes.CDLL("libcuda.so.1").sim_cuda_counts(ctypes.byref(made))
    return {name: getattr(made, name) for name, _ in Counts._fields_}


def fail(text):
    text = None if text is None else text.encode()
    assert ctypes.CDLL("libcuda.so.1").sim_cuda_fail(text) == 0
"""


def is_simulated():
    return (SIMULATED / "libcuda.so.1").exists()


needs_simulation = pytest.mark.skipif(
    not is_simulated(), reason=f"{SIMULATED} is not there: build the target sim_cuda"
)


def environment(**settings):
    """Of a process that finds the simulated driver, and nothing of a real one."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("SIM_CUDA")}
    for name in ("LOCAL_RANK", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        env.pop(name, None)
    env["LD_LIBRARY_PATH"] = f"{SIMULATED}:{env.get('LD_LIBRARY_PATH', '')}"
    env["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    return {**env, "PYTHONFAULTHANDLER": "1", **{k: str(v) for k, v in settings.items()}}


def run_simulated(script, *arguments, expected=0, timeout=120, **settings):
    """The finished process; PRELUDE comes before the script."""
    text = PRELUDE + textwrap.dedent(script)
    done = subprocess.run(
        [sys.executable, "-c", text, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment(**settings),
    )
    if expected is not None:
        assert done.returncode == expected, done.stdout + done.stderr
        assert "sim_cuda:" not in done.stderr or "alive" in done.stderr, done.stderr
    return done
