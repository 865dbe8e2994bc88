"""The injected library on a real GPU with PyTorch: what it records, against what is known of the
work and against torch.profiler. Needs the library alone (build/inject/libstoker_inject.so, or the
path in STOKER_INJECT), not the package; so it also runs as a plain script:

    python tests/gpu/test_watch_gpu.py [--json FILE] [NAME...]

--json: what was found, for results/gpu/.
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import gpu_ring_reader as reader  # noqa: E402
from gpu_ring_reader import Copy, Cost, Kernel, Lost, Reached, State, Sync  # noqa: E402

SECOND = 1_000_000_000

# What scripts share: the library as the Python hook calls it, and work of known shape.
PRELUDE = """
import ctypes, json, os, sys, time

LIBRARY = ctypes.CDLL(os.environ["WATCH_LIBRARY"])
LIBRARY.stoker_inject_start.argtypes = [ctypes.c_char_p]

def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)

def tell(**values):
    print(json.dumps(values), flush=True)
"""

WITH_TORCH = """
import torch

def device_spans(profiler):
    "Kernels as torch.profiler saw them: (name, nanoseconds)."
    found = []
    for event in profiler.profiler.kineto_results.events():
        if event.device_type() != torch.autograd.DeviceType.CUDA:
            continue
        name = event.name()
        if name.startswith(("Memcpy", "Memset", "ProfilerStep")) or "Activity Buffer" in name:
            continue
        found.append((name, event.start_ns(), event.start_ns() + event.duration_ns()))
    return found
"""


def library():
    """The library to inject; None: it is not built."""
    given = os.environ.get("STOKER_INJECT")
    paths = [given] if given else sorted(HERE.parents[1].glob("build*/inject/libstoker_inject.so"))
    return next((str(path) for path in paths if path and Path(path).exists()), None)


def why_not():
    try:
        import torch
    except ImportError:
        return "PyTorch is not installed"
    if not torch.cuda.is_available():
        return "PyTorch sees no GPU"
    return None if library() else "build/inject/libstoker_inject.so is not there"


class Run:
    """A script that runs with the library injected, and what its ring says. rests: it need not
    record every kernel."""

    def __init__(
        self,
        text,
        *,
        inject=True,
        torch=True,
        rests=False,
        kill_after=None,
        check=True,
        **environment,
    ):
        self.folder = tempfile.TemporaryDirectory(prefix="stoker-watch-", dir=shared_folder())
        if not rests:
            (Path(self.folder.name) / "every-kernel").touch()
        env = dict(
            os.environ, WATCH_LIBRARY=library(), WATCH_FOLDER=self.folder.name, **environment
        )
        if inject:
            env |= {"STOKER_WATCH": self.folder.name, "CUDA_INJECTION64_PATH": library()}
        script = Path(self.folder.name) / "script.py"
        script.write_text(PRELUDE + (WITH_TORCH if torch else "") + textwrap.dedent(text))
        with reader.Follower(self.folder.name) as self.follower:
            command = [sys.executable, "-X", "faulthandler", str(script)]
            child = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
            self.told, self.killed = [], None
            for line in child.stdout:
                self.told.append(json.loads(line) if line.startswith("{") else line)
                if kill_after and len(self.told) == kill_after:
                    self.killed = reader.now()
                    child.send_signal(signal.SIGKILL)
            self.status = child.wait(timeout=180)
        self.folder.cleanup()
        if check:
            assert self.status == 0, f"the script ended with {self.status}"

    @property
    def ring(self):
        return reader.only_ring(self.follower)

    def value(self, name):
        return next(told[name] for told in self.told if isinstance(told, dict) and name in told)

    def values(self, name):
        return [told[name] for told in self.told if isinstance(told, dict) and name in told]


def shared_folder():
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


FOUND = {}  # what was reported, by name


def report(name, **values):
    """A line for whoever reads the run."""
    FOUND[name] = values
    text = ", ".join(
        f"{key} {value:.6g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in values.items()
    )
    print(f"  {name}: {text}", flush=True)


def check_whole(ring):
    """Nothing was lost, and CUPTI was ours."""
    lost, states = ring.of(Lost), ring.of(State)
    assert ring.lost == 0 and not lost, (ring.lost, lost)
    assert states and states[0].state == reader.RECORDS, states
    assert not [state for state in states if state.state == reader.ABSENT], states


def test_kernels_copies_and_waits_are_recorded():
    run = Run("""
        a = torch.ones(1 << 20, device="cuda")
        pageable = torch.ones(1 << 22)
        pinned = torch.ones(1 << 22).pin_memory()
        torch.cuda.synchronize()
        begun = now()
        for _ in range(100):
            a.add_(1)
        torch.cuda.synchronize()
        ended = now()
        pageable.cuda(); pinned.cuda(non_blocking=True)
        big = torch.randn(8192, 8192, device="cuda")
        (big @ big).sum().item()  # loads libraries, and waits there
        for _ in range(5):
            (big @ big).sum().item()
        tell(begun=begun, ended=ended)
    """)
    ring = run.ring
    check_whole(ring)
    begun, ended = run.value("begun"), run.value("ended")
    inside = [k for k in ring.of(Kernel) if begun <= k.start and k.end <= ended]
    assert len(inside) == 100, len(inside)
    assert all(k.start < k.end and k.graph == 0 and k.device == 0 for k in inside)
    copies = [c for c in ring.of(Copy) if c.bytes == 4 << 22]
    assert {(c.way, c.source) for c in copies} >= {(1, 1), (1, 2)}, copies
    waits = [s for s in ring.of(Sync) if s.end - s.start > 1_000_000]
    assert len(waits) >= 5, ring.of(Sync)[-20:]
    assert ring.state == reader.CLOSED and ring.of(State)[-1].state == reader.ENDS
    report(
        "records",
        cupti=ring.of(State)[0].text,
        kernels=len(ring.of(Kernel)),
        copies=len(ring.of(Copy)),
        waits=len(ring.of(Sync)),
        costs=len(ring.of(Cost)),
    )


def test_times_are_those_of_the_host():
    """A kernel lies between the moments before its launch and after the wait for it; also after
    torch.profiler gave CUPTI another clock."""
    run = Run("""
        a = torch.ones(1 << 24, device="cuda")
        def brackets():
            for _ in range(30):
                torch.cuda.synchronize(); time.sleep(0.002)
                begun = now(); a.mul_(1.0001); torch.cuda.synchronize()
                tell(bracket=[begun, now()])
        brackets()
        LIBRARY.stoker_inject_yield()
        with torch.profiler.profile(activities=list(torch.profiler.supported_activities())):
            a.mul_(1.0001)
        LIBRARY.stoker_inject_resume()
        brackets()
    """)
    kernels = run.ring.of(Kernel)
    worst = 0
    for begun, ended in run.values("bracket"):
        mine = [k for k in kernels if begun - 200_000 < k.start < ended]
        assert len(mine) == 1, (begun, ended, [(k.start - begun, k.end - ended) for k in mine])
        worst = max(worst, begun - mine[0].start, mine[0].end - ended)
    report("clock", worst_us=max(worst, 0) / 1e3)
    assert worst < 50_000


BUSY = """
    a = torch.randn(4096, 4096, device="cuda")
    small = torch.ones(1 << 16, device="cuda")
    def work(seconds):
        torch.cuda.synchronize(); begun = now()
        while now() - begun < seconds * 1e9:
            for _ in range(3):
                a @ a; small.add_(1)
            torch.cuda.synchronize(); time.sleep(0.004)
        return begun, now()
    work(0.5)
    everything = list(torch.profiler.supported_activities())
"""


def test_busy_agrees_with_torch_profiler():
    run = Run(
        BUSY
        + """
    for _ in range(4):
        tell(ours=work(0.5))
        LIBRARY.stoker_inject_yield()
        with torch.profiler.profile(activities=everything) as profiler:
            begun, ended = work(0.5)
        spans = device_spans(profiler)
        LIBRARY.stoker_inject_resume()
        reach, busy = 0, 0
        for _, first, last in sorted(spans, key=lambda span: span[1]):
            busy += max(0, last - max(first, reach)); reach = max(reach, last)
        tell(theirs=busy / (ended - begun))
    """
    )
    ring = run.ring
    check_whole(ring)
    spans = [(k.start, k.end) for k in ring.of(Kernel)]
    ours = [
        reader.covered(spans, *window) / (window[1] - window[0]) for window in run.values("ours")
    ]
    theirs = run.values("theirs")
    mean = [sum(values) / len(values) for values in (ours, theirs)]
    report("busy", ours=[round(v, 4) for v in ours], theirs=[round(v, 4) for v in theirs])
    assert 0.05 < mean[0] < 1 and abs(mean[0] - mean[1]) < 0.02, (ours, theirs)


def test_neither_loses_a_kernel_around_torch_profiler():
    """Each kernel is either ours or the profiler's, over many sessions; with a schedule too."""
    run = Run("""
        a = torch.ones(1 << 16, device="cuda"); torch.cuda.synchronize()
        everything = list(torch.profiler.supported_activities())
        theirs = 0
        begun = now()
        for session in range(10):
            for _ in range(100):
                a.add_(1)                       # not waited for: under way as we yield
            LIBRARY.stoker_inject_yield()
            with torch.profiler.profile(activities=everything) as profiler:
                for _ in range(100):
                    a.add_(1)
            theirs += len(device_spans(profiler))
            LIBRARY.stoker_inject_resume()
        for _ in range(100):
            a.add_(1)
        torch.cuda.synchronize()
        tell(theirs=theirs, begun=begun)
    """)
    ring = run.ring
    check_whole(ring)
    ours = [k for k in ring.of(Kernel) if k.start >= run.value("begun")]
    states = [state.state for state in ring.of(State)]
    report("sessions", ours=len(ours), theirs=run.value("theirs"))
    assert run.value("theirs") == 1000
    assert len(ours) == 1100
    assert states == [reader.RECORDS] + [reader.YIELDS, reader.RECORDS] * 10 + [reader.ENDS]


def test_a_profiler_without_the_hook_is_noticed():
    run = Run("""
        a = torch.ones(1 << 16, device="cuda"); torch.cuda.synchronize()
        everything = list(torch.profiler.supported_activities())
        with torch.profiler.profile(activities=everything) as profiler:
            for _ in range(100):
                a.add_(1)
            torch.cuda.synchronize(); time.sleep(1)
        tell(theirs=len(device_spans(profiler)))
        a.add_(1); torch.cuda.synchronize(); time.sleep(1)
    """)
    states = run.ring.of(State)
    report("unhooked", theirs=run.value("theirs"), states=[(s.state, s.text) for s in states])
    assert run.value("theirs") >= 99  # the user's profile is not spoilt
    assert [s for s in states if s.state in (reader.ABSENT, reader.YIELDS)], states


GRAPH = """
    a = torch.ones(1 << 20, device="cuda")
    stream = torch.cuda.Stream()
    def make():
        with torch.cuda.stream(stream):
            for _ in range(3):
                a.add_(1)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(10):
                a.add_(1)
        return graph
    def replay(graph):
        torch.cuda.synchronize(); begun = now()
        for _ in range(200):
            graph.replay()
        torch.cuda.synchronize()
        tell(begun=begun, ended=now())
"""


def test_kernels_of_graphs_are_recorded():
    run = Run(GRAPH + "    replay(make())\n")
    check_whole(run.ring)
    kernels = [k for k in run.ring.of(Kernel) if k.start >= run.value("begun")]
    in_graph = [k for k in kernels if k.graph]
    report("graphs", kernels=len(kernels), in_graphs=len(in_graph))
    assert len(in_graph) == 2000


def test_graphs_made_before_recording_are_recorded_or_told():
    """Recording that starts late, as stoker.profile does."""
    run = Run(
        GRAPH
        + """
    graph = make()
    assert LIBRARY.stoker_inject_start(os.environ["WATCH_FOLDER"].encode()) == 0
    replay(graph)
    LIBRARY.stoker_inject_stop()
    """,
        inject=False,
    )
    kernels = [k for k in run.ring.of(Kernel) if k.start >= run.value("begun")]
    lost = [record for record in run.ring.of(Lost) if record.why == 3]
    report("late graphs", kernels=len(kernels), lost=sum(record.count for record in lost))
    assert len(kernels) >= 2000 or sum(record.count for record in lost) >= 150


def test_a_kill_loses_at_most_a_second():
    """While the GPU always has work queued."""
    for size, name in ((1 << 24, "short kernels"), (1 << 30, "long kernels")):
        run = Run(
            f"""
            a = torch.ones({size}, dtype=torch.uint8, device="cuda"); torch.cuda.synchronize()
            events = []
            begun = told = now()
            while True:
                a.add_(1)
                events.append(torch.cuda.Event()); events[-1].record()
                if len(events) > 200:
                    events.pop(0).synchronize()
                if now() - told > 1e9:
                    told = now(); tell(second=told)
        """,
            kill_after=3,
            check=False,
        )
        ring = run.ring
        reached = max((record.time for record in ring.of(Reached)), default=0)
        last = max((kernel.end for kernel in ring.of(Kernel)), default=0)
        report(
            f"kill, {name}",
            reached_ms=(run.killed - reached) / 1e6,
            last_kernel_ms=(run.killed - last) / 1e6,
            kernels=len(ring.of(Kernel)),
        )
        assert run.status == -signal.SIGKILL and ring.state == reader.OPEN
        assert run.killed - last < SECOND and run.killed - reached < SECOND


def test_workers_are_left_alone():
    run = Run("""
        data = torch.utils.data.TensorDataset(torch.ones(64, 8))
        torch.ones(1, device="cuda")
        for (batch,) in torch.utils.data.DataLoader(data, batch_size=8, num_workers=2):
            batch.cuda()
        if os.fork() == 0:
            sys.exit(0)
        os.wait()
        torch.ones(1, device="cuda").add_(1); torch.cuda.synchronize()
        tell(done=1)
    """)
    check_whole(run.ring)  # and there is one ring
    assert run.ring.state == reader.CLOSED


def test_all_ends_of_a_process_leave_a_whole_ring():
    for ending in ("sys.exit(3)", "raise ValueError", "os._exit(4)", "os.abort()"):
        run = Run(
            f"""
            a = torch.ones(1 << 20, device="cuda")
            for _ in range(50):
                a.add_(1)
            torch.cuda.synchronize(); time.sleep(0.6)
            {ending}
        """,
            check=False,
        )
        kernels = len(run.ring.of(Kernel))
        report(f"end by {ending}", status=run.status, kernels=kernels, state=run.ring.state)
        assert run.status != 0 and kernels >= 51
        orderly = not ending.startswith("os.")
        assert (run.ring.state == reader.CLOSED) == orderly


def test_stoker_profile_starts_and_stops():
    run = Run(
        """
        a = torch.ones(1 << 20, device="cuda"); a.add_(1); torch.cuda.synchronize()
        for _ in range(2):
            assert LIBRARY.stoker_inject_start(os.environ["WATCH_FOLDER"].encode()) == 0
            for _ in range(50):
                a.add_(1)
            LIBRARY.stoker_inject_stop()
            a.add_(1); torch.cuda.synchronize(); time.sleep(0.2)
    """,
        inject=False,
    )
    counts = sorted(len(ring.of(Kernel)) for ring in run.follower.rings.values())
    report("profile", rings=counts)
    assert counts and all(count == 50 for count in counts)


def test_a_rest_gives_launches_their_speed_back_and_loses_nothing():
    """A loop that does nothing but launch is recorded until its allowance is used up."""
    run = Run(
        """
        a = torch.ones(16, device="cuda")
        def block(count=2000):
            torch.cuda.synchronize(); begun = now()
            for _ in range(count):
                a.add_(1)
            torch.cuda.synchronize()
            return begun, now(), count
        begun = now()
        tell(begun=begun, blocks=[block() for _ in range(400)])
        """,
        rests=True,
    )
    ring = run.ring
    check_whole(ring)
    rests = [state.time for state in ring.of(State) if state.state == reader.RESTS]
    assert len(rests) == 1, ring.of(State)
    us = {True: [], False: []}
    launched = 0
    for begun, ended, count in run.value("blocks")[5:]:
        if ended < rests[0] or begun > rests[0] + SECOND // 10:
            us[ended < rests[0]].append((ended - begun) / count / 1e3)
    for _, ended, count in run.value("blocks"):
        launched += count if ended < rests[0] else 0
    kernels = [k for k in ring.of(Kernel) if run.value("begun") <= k.start]
    recorded, rested = (statistics.median(us[is_recorded]) for is_recorded in (True, False))
    report(
        "rest",
        after_s=(rests[0] - run.value("begun")) / 1e9,
        kernels=len(kernels),
        recorded_us=recorded,
        rested_us=rested,
    )
    assert launched <= len(kernels) < launched + 4000
    assert rested < 0.9 * recorded


def test_cupti_12_works_with_this_driver():
    """Only where STOKER_CUPTI_12 names a libcupti.so.12: the driver alone, without PyTorch."""
    path = os.environ.get("STOKER_CUPTI_12")
    if not path:
        print("  STOKER_CUPTI_12 is not set: not tried")
        return
    run = Run(
        f"""
        ctypes.CDLL({path!r})
        cuda = ctypes.CDLL("libcuda.so.1")
        device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
        module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
        assert cuda.cuInit(0) == 0 and cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
        assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
        assert cuda.cuCtxSetCurrent(context) == 0
        assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 20)) == 0
        source = b".version 7.0\\n.target sm_70\\n.address_size 64\\n"
        source += b".visible .entry empty() {{ ret; }}\\n"
        assert cuda.cuModuleLoadData(ctypes.byref(module), source) == 0
        assert cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"empty") == 0
        def work():
            for _ in range(100):
                assert cuda.cuMemsetD8Async(memory, 1, ctypes.c_size_t(1 << 20), None) == 0
                assert cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None) == 0
        work()
        assert cuda.cuCtxSynchronize() == 0
        """,
        torch=False,
    )
    check_whole(run.ring)
    clears = [copy for copy in run.ring.of(Copy) if copy.way == 100]
    version = run.ring.of(State)[0].text
    report("CUPTI 12", version=version, clears=len(clears), kernels=len(run.ring.of(Kernel)))
    assert version.startswith("12.")
    assert len(clears) == 100 and len(run.ring.of(Kernel)) == 100


def pytest_skip():
    """Marks all of this as skipped where there is no GPU; there may be no pytest."""
    try:
        import pytest
    except ImportError:
        return None
    reason = why_not()
    return pytest.mark.skipif(reason is not None, reason=reason or "")


pytestmark = pytest_skip() or []


def rows_of(found):
    """What was found as rows of a result: each number, or each list of numbers, is one."""
    rows = []
    for check, values in found.items():
        for key, value in values.items():
            runs = value if isinstance(value, list) else [value]
            if not runs or any(type(number) not in (int, float) for number in runs):
                continue
            unit = "of the time" if check == "busy" else "us" if key.endswith("_us") else ""
            row = {"name": f"{check}: {key}", "value": statistics.median(runs), "unit": unit}
            rows.append({**row, "runs": runs, "note": "a check, no speed"})
    return rows


def write_found(path, failed):
    import torch

    words = [path.name if word == str(path) else word for word in sys.argv[1:]]
    facts = {
        "bench": "gpu/watch-checks",
        "version": 1,
        "command": f"python tests/gpu/test_watch_gpu.py {' '.join(words)}",
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__},
        "failed": failed,
        "rows": rows_of(FOUND),
        "ratios": {},
        "found": FOUND,
    }
    path.write_text(json.dumps(facts, indent=1) + "\n")


MEASURE = {  # how long something takes, so they run alone
    "test_busy_agrees_with_torch_profiler",
    "test_times_are_those_of_the_host",
    "test_a_rest_gives_launches_their_speed_back_and_loses_nothing",
}
AT_ONCE = 4  # of the others


def passes(name, test):
    begun, is_well = time.perf_counter(), True
    try:
        test()
    except Exception:
        is_well = False
        traceback.print_exc()
    print(
        f"{name}: {'ok' if is_well else 'FAILED'}, {time.perf_counter() - begun:.1f} s", flush=True
    )
    return is_well


def main():
    reason = why_not()
    if reason:
        sys.exit(reason)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="words in the names of tests; none: all")
    parser.add_argument("--json", type=Path, help="what was found")
    options = parser.parse_args()
    wanted = options.names
    tests = {name: test for name, test in globals().items() if name.startswith("test_")}
    tests = {
        name: test
        for name, test in tests.items()
        if not wanted or any(word in name for word in wanted)
    }
    failed = [name for name in tests if name in MEASURE and not passes(name, tests[name])]
    rest = [name for name in tests if name not in MEASURE]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        well = pool.map(lambda name: passes(name, tests[name]), rest)
        failed += [name for name, is_well in zip(rest, well, strict=True) if not is_well]
    if options.json:
        write_found(options.json, failed)
    print(f"{len(failed)} failed: {' '.join(failed)}" if failed else "all passed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
