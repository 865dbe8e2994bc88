"""The sides of the `training` benchmark: ways from stored samples to a model on the GPU."""

import contextlib
import glob
import io
import itertools
import os
import random
import tarfile
import threading

import numpy
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from bench import machine, series_data
from bench.gpu import loop, models
from bench.gpu.models import BATCH, LSTM_BATCH, LSTM_HIDDEN  # noqa: F401
from bench.loaders import LooseFiles

DISTINCT = 16  # batches that the bound replays
BOUND_WORDS = f"{DISTINCT} batches that are on the device already, over and over"
STREAM_BATCHES = 400  # of one call that keeps the loader's threads busy
SHUFFLE_BUFFER = 100


def _train(batches, training, seconds, **more):
    """batches give (x, y) on the device."""
    return loop.timed(batches, training.step, seconds, **more)


def _pairs(loader, x="npy", y="cls", dtype=None):
    for batch in loader:
        values = batch[x]
        yield values if dtype is None else values.to(dtype), batch[y]


def _open(path, **more):
    import stoker

    return stoker.Loader(
        f"{path}/shards/*.tar", batch_size=BATCH, shuffle=True, seed=0, device=loop.DEVICE, **more
    )


# --- the bound -----------------------------------------------------------------------------------


def _kept_batches(loader, training, x, y):
    """Copies of the first batches: what the bound replays."""
    kept = []
    for values, labels in _pairs(loader, x, y, getattr(training, "dtype", None)):
        kept.append((values.clone(), labels.clone()))
        if len(kept) == DISTINCT:
            break
    return kept


def _replay(kept):
    return loop.endless(lambda: iter(kept))


def bound(path, seconds, watch=None, eager=False):
    training = models.cnn(loop.DEVICE, eager)
    with _open(path) as loader:
        kept = _kept_batches(loader, training, "npy", "cls")
    return _train(_replay(kept), training, seconds, watch=watch)


def copied_bound(path, seconds):
    """What no loader that gathers batches on the device can pass: the bound, and beside each step a
    plain copy of the next batch within the device, in another stream."""
    training = models.cnn(loop.DEVICE)
    with _open(path) as loader:
        kept = _kept_batches(loader, training, "npy", "cls")
    return _train(_copies(kept), training, seconds)


def _copies(kept, turns=3):
    slots = [tuple(torch.empty_like(value) for value in kept[0]) for _ in range(turns)]
    used = [None] * turns
    stream = torch.cuda.Stream()

    def copy(number):
        with torch.cuda.stream(stream):
            if used[number % turns]:
                stream.wait_event(used[number % turns])
            values = kept[number % len(kept)]
            for place, value in zip(slots[number % turns], values, strict=True):
                place.copy_(value, non_blocking=True)
            return stream.record_event()

    stream.wait_stream(torch.cuda.current_stream())
    ready = copy(0)
    for number in itertools.count():
        following = copy(number + 1)
        torch.cuda.current_stream().wait_event(ready)
        yield slots[number % turns]
        used[number % turns] = torch.cuda.current_stream().record_event()
        ready = following


def loaded_bound(path, seconds):
    training = models.cnn(loop.DEVICE)
    with _open(path) as loader:
        kept = _kept_batches(loader, training, "npy", "cls")
    with _busy_threads(path):
        return _train(_replay(kept), training, seconds)


@contextlib.contextmanager
def _busy_threads(path):
    """A loader with a thread a core is drawn from by C code in another thread, which needs
    Python's lock a few times a second only."""
    from stoker.__main__ import main

    end = threading.Event()
    words = ["stream", *sorted(glob.glob(f"{path}/shards/*.tar")), "--batch-size", str(BATCH)]
    words += ["--shuffle", "--no-digest", "--threads", str(machine.cores())]
    words += ["--epochs", "1000000", "--stop-after", str(STREAM_BATCHES), "--json"]

    def draw():
        while not end.is_set():
            main(words)

    with _quiet():
        thread = threading.Thread(target=draw)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()


@contextlib.contextmanager
def _quiet():
    """What the command prints meanwhile goes nowhere."""
    kept = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


# --- Stoker --------------------------------------------------------------------------------------


def stoker(path, seconds, watch=None, eager=False, **more):
    training = models.cnn(loop.DEVICE, eager)
    dtype = None if training.dtype == torch.float16 else training.dtype
    with _open(path, **more) as loader:
        _check(next(iter(loader)))
        batches = loop.endless(lambda: _pairs(loader, dtype=dtype))
        answer = _train(batches, training, seconds, watch=watch)
        answer.update(loop.stoker_facts(loader))
    return answer


def thwc(path, seconds, watch=None):
    return stoker(path, seconds, watch=watch, transforms={"npy": "Layout(CTHW)"})


def resident(path, seconds, watch=None):
    """The epoch that brings the data to the device is not measured."""
    training = models.cnn(loop.DEVICE)
    with _open(path, resident=True, device_memory="24GiB") as loader:
        count = len(loader.dataset)
        for _ in range(4):
            for _ in loader:
                pass
            if (loader.stats().get("device") or {}).get("resident_samples", 0) >= count:
                break
        batches = loop.endless(lambda: _pairs(loader))
        answer = _train(batches, training, seconds, watch=watch)
        answer.update(loop.stoker_facts(loader))
    return answer


def _check(batch):
    x, y = batch["npy"], batch["cls"]
    if x.device.type != loop.DEVICE or not x.is_contiguous() or x.dtype != torch.float16:
        raise RuntimeError(f"a batch is {x.dtype} on {x.device}, contiguous: {x.is_contiguous()}")
    if tuple(x.shape) != (BATCH, 3, 16, 112, 112) or tuple(y.shape) != (BATCH,):
        raise RuntimeError(f"a batch is {tuple(x.shape)} and {tuple(y.shape)}")


# --- DataLoader, as its own documentation advises ------------------------------------------------


def npy_files(path, workers, seconds):
    return _dataloader(LooseFiles(f"{path}/loose"), workers, seconds, shuffle=True)


class TarStream(IterableDataset):
    """Every worker reads its share of the shards from front to back."""

    def __init__(self, path):
        self.shards = sorted(glob.glob(f"{path}/shards/*.tar"))
        self.epoch = 0

    def __iter__(self):
        worker = get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        shards = list(self.shards)
        random.Random(self.epoch).shuffle(shards)
        self.epoch += 1
        kept = []
        for sample in self._samples(shards[first::step]):
            if len(kept) < SHUFFLE_BUFFER:
                kept.append(sample)
                continue
            place = random.randrange(SHUFFLE_BUFFER)
            sample, kept[place] = kept[place], sample
            yield sample
        random.shuffle(kept)
        yield from kept

    def _samples(self, shards):
        for shard in shards:
            with tarfile.open(shard, "r|") as tar:
                parts = {}
                for member in tar:
                    key, _, field = member.name.partition(".")
                    if parts.get("key") != key:
                        parts = {"key": key}
                    parts[field] = tar.extractfile(member).read()
                    if "npy" in parts and "cls" in parts:
                        yield numpy.load(io.BytesIO(parts["npy"])), int(parts["cls"])
                        parts = {}


def tar_stream(path, workers, seconds):
    return _dataloader(TarStream(path), workers, seconds)


def _dataloader(dataset, workers, seconds, **more):
    training = models.cnn(loop.DEVICE)
    is_gpu = loop.DEVICE == "cuda"
    loader = DataLoader(
        dataset,
        batch_size=BATCH,
        num_workers=workers,
        pin_memory=is_gpu,
        persistent_workers=workers > 0,
        drop_last=True,
        **more,
    )

    def epoch():
        for x, y in loader:
            x = x.to(loop.DEVICE, dtype=training.dtype, non_blocking=True)
            yield x, y.to(loop.DEVICE, non_blocking=True)

    # what workers have ready when the clock starts was not made in its time
    answer = _train(loop.endless(epoch), training, seconds, warm=2 * workers)
    answer.update(workers=workers, threads=max(1, workers))
    return answer


# --- an LSTM on the windows of a series ----------------------------------------------------------


def _open_series(series):
    import stoker

    dataset = stoker.open(series, window=series_data.WINDOW, horizon=1, fields=["x", "y"])
    return stoker.Loader(
        dataset, batch_size=LSTM_BATCH, shuffle=True, seed=0, device=loop.DEVICE, last="drop"
    )


def lstm_bound(series, seconds, watch=None):
    training = models.lstm(series_data.FEATURES, loop.DEVICE)
    with _open_series(series) as loader:
        kept = _kept_batches(loader, training, "x", "y")
    return _train(_replay(kept), training, seconds, watch=watch)


def lstm_stoker(series, seconds, watch=None):
    training = models.lstm(series_data.FEATURES, loop.DEVICE)
    with _open_series(series) as loader:
        batches = loop.endless(lambda: _pairs(loader, "x", "y"))
        answer = _train(batches, training, seconds, watch=watch)
        answer.update(loop.stoker_facts(loader))
    return answer
