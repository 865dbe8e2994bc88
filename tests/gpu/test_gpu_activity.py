"""GPU busy time by CUPTI, against what is known of the work that was launched."""

import time

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("PyTorch sees no GPU here", allow_module_level=True)

import stoker.gpu  # noqa: E402
from stoker.errors import BusyError, UsageError  # noqa: E402


@pytest.fixture(scope="module")
def square():
    """A matrix whose product with itself takes a few milliseconds, warm."""
    matrix = torch.randn(8192, 8192, device="cuda", dtype=torch.float16)
    for _ in range(3):
        matrix @ matrix
    torch.cuda.synchronize()
    return matrix


def test_a_gpu_that_always_has_work_is_busy(square):
    with stoker.gpu.Activity() as activity:
        for _ in range(50):
            square @ square
    assert activity.kernels >= 50
    assert activity.busy > 0.9
    assert activity.lost == 0


def test_an_idle_gpu_is_not_busy(square):
    with stoker.gpu.Activity() as activity:
        time.sleep(0.2)
    assert activity.kernels == 0
    assert activity.busy == 0
    assert activity.seconds >= 0.2


def test_the_time_of_kernels_is_what_events_say(square):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with stoker.gpu.Activity() as activity:
        start.record()
        for _ in range(50):
            square @ square
        end.record()
    assert activity.kernel_seconds == pytest.approx(start.elapsed_time(end) / 1e3, rel=0.05)


def test_kernels_of_two_streams_count_once(square):
    streams = [torch.cuda.Stream() for _ in range(2)]
    torch.cuda.synchronize()
    with stoker.gpu.Activity() as activity:
        for stream in streams:
            with torch.cuda.stream(stream):
                for _ in range(20):
                    square @ square
    assert activity.kernel_seconds <= activity.seconds
    assert activity.busy > 0.8


def test_copies_are_told_apart(square):
    host = torch.zeros(1 << 26, dtype=torch.uint8, pin_memory=True)
    device = torch.empty_like(host, device="cuda")
    torch.cuda.synchronize()
    with stoker.gpu.Activity() as activity:
        for _ in range(10):
            device.copy_(host, non_blocking=True)
    assert activity.kernels == 0
    assert activity.copies == 10
    assert activity.copied_bytes == 10 << 26
    assert 0 < activity.copy_seconds <= activity.seconds


def test_the_timeline_adds_up(square):
    with stoker.gpu.Activity(bin=0.002) as activity:
        square @ square
        torch.cuda.synchronize()
        time.sleep(0.05)
        square @ square
    starts, kernels, copies = activity.timeline()
    assert len(starts) == len(kernels) == len(copies) >= 25
    assert kernels[:-1].sum() * 0.002 == pytest.approx(activity.kernel_seconds, rel=0.5)
    assert (kernels == 0).sum() >= 15  # the sleep


def test_it_can_be_read_while_it_runs_and_started_again(square):
    for _ in range(3):
        with stoker.gpu.Activity() as activity:
            square @ square
            torch.cuda.synchronize()
            assert activity.kernels >= 1
        assert activity.kernels >= 1


def test_kernels_of_a_captured_graph_count(square):
    out = torch.empty_like(square)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.mul(square, 2, out=out)
    torch.cuda.synchronize()
    with stoker.gpu.Activity() as activity:
        for _ in range(5):
            graph.replay()
    assert activity.kernels == 5


def test_a_second_recording_is_refused(square):
    with stoker.gpu.Activity(), pytest.raises(BusyError):
        stoker.gpu.Activity().__enter__()


def test_pytorchs_profiler_is_refused(square):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]):
        with pytest.raises(BusyError, match="profiler"):
            stoker.gpu.Activity().__enter__()


def test_after_pytorchs_profiler_times_are_still_seconds(square):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]):
        square @ square
    torch.cuda.synchronize()
    for _ in range(5):  # it lets go of CUPTI some time later, and leaves its own clock there
        time.sleep(0.3)
        begun = time.perf_counter()
        with stoker.gpu.Activity() as activity:
            for _ in range(20):
                square @ square
        assert activity.kernels >= 20
        assert activity.busy > 0.8
        assert activity.seconds == pytest.approx(time.perf_counter() - begun, rel=0.2)


def test_without_a_recording_there_is_nothing_to_tell():
    with pytest.raises(UsageError):
        _ = stoker.gpu.Activity().busy


def test_nvml_tells_a_share(square):
    until = time.perf_counter() + 1.0
    while time.perf_counter() < until:
        for _ in range(20):
            square @ square
        torch.cuda.synchronize()
    share = stoker.gpu.nvml_utilization()
    assert share is None or 0.2 <= share <= 1
