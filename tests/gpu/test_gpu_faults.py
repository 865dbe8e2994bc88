"""Ends, limits and faults with a real driver. FAULTS 88, 89, 91, 96."""

import gc
import json
import os
import signal
import subprocess
import sys
import time

import numpy
import pytest
import shard_making
import stoker

torch = pytest.importorskip("torch")


def used():
    """Bytes of the device that somebody holds."""
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    return total - free


def test_a_thousand_loaders_give_every_byte_back(tensors):
    dataset = stoker.open(tensors, fields=["npy", "cls"])

    def once(i):
        resident = bool(i % 4 == 3)
        loader = stoker.Loader(
            dataset, 32, shuffle=True, device="cuda", resident=resident, device_memory="32MiB"
        )
        if i % 2:
            next(iter(loader))
        loader.close()

    for i in range(8):  # the driver's own: modules, streams
        once(i)
    before = used()
    for i in range(1000):
        once(i)
    assert used() == before


def test_the_first_batch_comes_soon(tensors):
    torch.zeros(1, device="cuda")
    dataset = stoker.open(tensors)
    times = []
    for _ in range(5):
        began = time.perf_counter()
        with stoker.Loader(dataset, 32, shuffle=True, device="cuda") as loader:
            batch = next(iter(loader))
            batch["npy"].sum().item()
            times.append(time.perf_counter() - began)
        del batch
    print("first batch after", [f"{1e3 * took:.1f} ms" for took in times])
    assert min(times) < 0.15


def test_96_a_full_device_is_told_and_freed_memory_is_used(tmp_path):
    def make(number):
        return {"npy": numpy.full((4 << 20,), number % 100, numpy.uint8), "cls": number}

    folder = shard_making.write_shards(tmp_path / "large", 64, make=make)
    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info()
    hog = torch.empty(free - (48 << 20), dtype=torch.uint8, device="cuda")
    with pytest.raises(stoker.StokerError) as caught:
        for _ in stoker.Loader(folder, 32, device="cuda"):
            pass
    assert caught.value.status == "MEMORY"
    assert isinstance(caught.value, MemoryError)
    assert caught.value.remedy
    del hog
    torch.cuda.empty_cache()
    total = sum(int(batch["cls"].sum()) for batch in stoker.Loader(folder, 32, device="cuda"))
    assert total == sum(range(64))


def test_88_a_forked_child_is_refused_and_the_parent_goes_on(tensors, run_python):
    script = """
    import os, sys
    import stoker, torch
    loader = stoker.Loader(sys.argv[1], 50, device="cuda", as_="dlpack")
    iterator = iter(loader)
    batch = next(iterator)
    child = os.fork()
    if child == 0:
        refused = 0
        for attempt in (lambda: next(iterator), lambda: batch["npy"].to_host(),
                        lambda: batch["npy"].__dlpack__(stream=1),
                        lambda: stoker.Loader(sys.argv[1], 50, device="cuda", as_="dlpack")):
            try:
                attempt()
            except (RuntimeError, stoker.StokerError) as error:
                refused += "fork" in str(error)
        del batch, iterator
        loader.close()
        plain = len(list(stoker.Loader(sys.argv[1], 50)))
        os._exit(refused if plain == 12 else 99)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(list(iterator)))
    """
    done = run_python(script, tensors)
    assert done.stdout.split() == ["4", "11"], done.stdout + done.stderr


@pytest.mark.parametrize("how", ["pass", "sys.exit(0)", "raise SystemExit(0)"])
@pytest.mark.parametrize("options", ["{}", "{'map': dict}", "{'resident': True}"])
def test_91_the_interpreter_ends_cleanly_with_batches_alive(tensors, run_python, how, options):
    script = f"""
    import sys
    import stoker, torch
    options = {{"fields": ["npy", "cls"], "device": "cuda", **{options}}}
    loader = stoker.Loader(sys.argv[1], 8, shuffle=True, **options)
    iterator = iter(loader)
    kept = [next(iterator) for _ in range(5)]
    sums = [batch["npy"].float().sum() for batch in kept]
    cycle = [loader, kept]
    cycle.append(cycle)
    {how}
    """
    done = run_python(script, tensors)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_89_ctrl_c_ends_it(tensors):
    script = (
        "import sys, stoker\n"
        "loader = stoker.Loader(sys.argv[1], 8, device='cuda')\n"
        "next(iter(loader)); print('runs', flush=True)\n"
        "while True:\n    for batch in loader: pass\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tensors)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline().strip() == "runs"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in told
    assert process.returncode in (1, -signal.SIGINT)


RANK = """
import json, sys
import stoker, torch
loader = stoker.Loader(sys.argv[1], 16, shuffle=True, seed=4, device="cuda")
assert loader.device == "cuda:0"
seen, sums = [], []
for _ in range(2):
    for batch in loader:
        real = [number for number in batch.samples.tolist() if number >= 0]
        seen.append(real)
        sums += batch["npy"][: len(real)].double().sum((1, 2, 3, 4)).tolist()
print(json.dumps([loader.world_size, seen, sums]))
"""


def test_two_ranks_share_one_gpu(tensors):
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(tensors)],
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0],
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": "2",
                "LOCAL_WORLD_SIZE": "2",
            },
        )
        for rank in range(2)
    ]
    told = [json.loads(process.communicate(timeout=180)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    dataset = stoker.open(tensors)
    together = []
    for world, batches, sums in told:
        assert world == 2
        numbers = [number for batch in batches for number in batch]
        together += numbers
        for number, value in list(zip(numbers, sums, strict=True))[::41]:
            assert value == pytest.approx(dataset[number]["npy"].double().sum().item(), abs=1e-6)
    assert sorted(together) == sorted(2 * list(range(600)))


def test_the_activity_of_the_gpu_is_seen(tensors):
    gpu = pytest.importorskip("stoker.gpu")
    loader = stoker.Loader(tensors, 32, device="cuda")
    try:
        with gpu.Activity(loader.device) as activity:
            for batch in loader:
                torch.cuda._sleep(1_000_000)
                del batch
    except stoker.StokerError as error:
        pytest.skip(str(error))
    assert activity.kernels >= len(loader)
    assert 0 < activity.busy <= 1
