"""Streams, graphs, kept batches, PyTorch's allocator: nothing is read too early, nothing is written
over too early."""

import gc
import itertools

import pytest
import stoker

torch = pytest.importorskip("torch")

from gpu_compare import LATE, compare, compare_epoch, flatten, read_late  # noqa: E402

ORDER = {"shuffle": True, "seed": 3}


def loaders(source, batch_size=32, **options):
    device = stoker.Loader(source, batch_size, device="cuda", **ORDER, **options)
    return device, stoker.Loader(source, batch_size, **ORDER)


@pytest.mark.parametrize("kind", ["default", "side", "changing"])
def test_the_current_stream_waits_and_is_waited_for(tensors, kind):
    device, cpu = loaders(tensors, device_memory="8MiB")
    streams = {
        "default": [torch.cuda.default_stream()],
        "side": [torch.cuda.Stream()],
        "changing": [torch.cuda.Stream() for _ in range(3)],
    }[kind]
    for _ in range(3):
        got = []
        iterator = iter(device)
        for stream in itertools.cycle(streams):
            with torch.cuda.stream(stream):
                batch = next(iterator, None)
                if batch is None:
                    break
                got.append(read_late(batch))
                del batch
        torch.cuda.synchronize()
        for tensors_, batch in zip(got, cpu, strict=True):
            for name, tensor in tensors_.items():
                compare(tensor.cpu(), flatten(batch)[name], 0, name)


def test_other_streams_work_on_a_batch_once_it_is_recorded(tensors):
    device, cpu = loaders(tensors, device_memory="8MiB")
    others = [torch.cuda.Stream() for _ in range(3)]

    def read(batch):
        found = {}
        for number, (name, tensor) in enumerate(flatten(batch).items()):
            stream = others[number % len(others)]
            if number % 2:
                device.record_stream(batch, stream)
            else:
                device.record_stream(tensor[len(tensor) // 2 :], stream)  # a view is enough
            with torch.cuda.stream(stream):
                torch.cuda._sleep(LATE)
                found[name] = tensor.clone()
        return found

    for _ in range(3):
        compare_epoch(device, cpu, read=read)


def test_memory_of_others_is_not_recorded(tensors):
    device, _ = loaders(tensors)
    batch = next(iter(device))
    foreign = torch.ones(10, device="cuda")
    device.record_stream({**batch, "mine": foreign}, torch.cuda.Stream())  # torch's own: told to it
    with pytest.raises(ValueError, match="no batch of this loader"):
        device.record_stream(foreign, 1)


def test_a_graph_replays_over_static_inputs(tensors):
    device, cpu = loaders(tensors, drop_last=True)
    cpu = stoker.Loader(tensors, 32, drop_last=True, **ORDER)
    x = torch.zeros(32, 4, 32, 32, 3, dtype=torch.float16, device="cuda")
    warm = torch.cuda.Stream()
    with torch.cuda.stream(warm):
        (x.float() * 3).sum((1, 2, 3, 4))
    torch.cuda.synchronize()
    iterator = iter(device)
    first = next(iterator)  # the loader runs ahead while the graph is captured
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        sums = (x.float() * 3).sum((1, 2, 3, 4))
    got = []
    for batch in itertools.chain([first], iterator):
        x.copy_(batch["npy"])
        graph.replay()
        got.append(sums.clone())
        del batch
    for result, batch in zip(got, cpu, strict=True):
        expected = (batch["npy"].cuda().float() * 3).sum((1, 2, 3, 4))
        assert torch.allclose(result, expected, rtol=1e-4, atol=1e-3)


def test_drawing_inside_a_capture_is_refused(tensors):
    device, cpu = loaders(tensors)
    iterator = iter(device)
    next(iterator)
    graph = torch.cuda.CUDAGraph()
    x = torch.ones(4, device="cuda")
    with torch.cuda.graph(graph):
        y = x + 1
        with pytest.raises(stoker.StokerError, match="captur") as caught:
            next(iterator)
    assert caught.value.status == "USAGE"
    graph.replay()
    assert y.tolist() == [2, 2, 2, 2]
    compare_epoch(device, cpu_at_epoch(cpu, 1))  # and it goes on


def cpu_at_epoch(cpu, epoch):
    cpu.set_epoch(epoch)
    return cpu


def test_a_consumer_that_keeps_every_batch(tensors):
    device, cpu = loaders(tensors, 1, device_memory="4MiB")
    kept = [batch for batch, _ in zip(itertools.chain(device, device), range(1000), strict=False)]
    assert len(kept) == 1000
    stats = device.stats()["device"]
    assert stats["peak_bytes"] <= 4 << 20
    assert stats["caller_bytes"] >= 1000 * 4 * 32 * 32 * 3 * 2
    expected = itertools.islice(itertools.chain(cpu, cpu), 1000)
    for batch, right in zip(kept, expected, strict=True):
        assert torch.equal(batch["npy"].cpu(), right["npy"])
    del kept, batch
    gc.collect()
    assert device.stats()["device"]["caller_bytes"] == 0


def test_batches_live_longer_than_the_loader(tensors):
    device, cpu = loaders(tensors)
    kept = [batch["npy"] for batch, _ in zip(device, range(5), strict=False)]
    device.close()
    del device
    gc.collect()
    noise = [torch.full((1 << 20,), 7.0, device="cuda") for _ in range(20)]
    for value, batch in zip(kept, cpu, strict=False):
        assert torch.equal(value.cpu(), batch["npy"])
    del noise


def test_pressure_of_torchs_allocator_changes_nothing(tensors):
    device, cpu = loaders(tensors, device_memory="8MiB")
    pool = []

    def read(batch):
        pool.append(torch.full((64 << 18,), 3.0, device="cuda"))
        if len(pool) > 4:
            pool.pop(0)
        if len(pool) % 3 == 0:
            torch.cuda.empty_cache()
        return read_late(batch)

    for _ in range(2):
        compare_epoch(device, cpu, read=read)


def test_training_steps_give_the_same_weights(tensors):
    """A real loop: what the device's loader feeds it is what the CPU's does, step by step."""

    def train(loader, move):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4 * 32 * 32 * 3, 10)).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        for batch in loader:
            x, y = (batch[name].cuda() if move else batch[name] for name in ("npy", "cls"))
            loss = torch.nn.functional.cross_entropy(model(x.float()), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return model[1].weight.detach()

    device, cpu = loaders(tensors, device_memory="8MiB")
    assert torch.allclose(train(device, False), train(cpu, True), rtol=1e-5, atol=1e-6)
