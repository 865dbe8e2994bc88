"""The sides of the `windows` benchmark: one way each from rows to shuffled batches of windows.

    python -m bench.window_sides SIDE DATA --workers N --seconds S

Every function returns a callable that begins an epoch and yields (x, y): up to 1,024 windows as
contiguous float32 torch tensors (B, 60, 16) and (B, 1) in host memory. All are consumed by the same
loop, which reads one byte of every 4 KiB page of x. The first batches are compared with the rows
they were cut from. Start-up is from nothing (modules imported) to the first batch; then batches are
drawn to warm up; then they are counted.
"""

import argparse
import importlib
import json
import pathlib
import time
import warnings

import numpy
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info

from bench import machine, measure, series_data

BATCH = 1024
WINDOW = series_data.WINDOW
READ_BUDGET = "256MiB"  # less than the array's 640 MB: nothing of it is mapped
warnings.filterwarnings("ignore")  # read-only arrays, worker counts: peers are talkative


# --- Stoker ------------------------------------------------------------------------------------


def stoker(data, workers):
    return _stoker(data / "series", None)


def stoker_late(data, workers):
    return _stoker(data / "late", None)


def stoker_read(data, workers):
    return _stoker(data / "series", READ_BUDGET)


def _stoker(folder, memory):
    import stoker

    dataset = stoker.open(folder, window=WINDOW, horizon=1, fields=("x", "y"))
    more = {} if memory is None else {"memory": memory}
    loader = stoker.Loader(dataset, batch_size=BATCH, shuffle=True, seed=0, **more)

    def tell():
        stats = loader.stats()
        return {"threads": stats["threads"], "pool_bytes": stats["peak_bytes"]}

    return lambda: iter(loader), tell


# --- the array, read as the recipes with numpy do ----------------------------------------------


class Windows(Dataset):
    """numpy.memmap, a cumulative sum of windows, and a binary search for the entity of each."""

    def __init__(self, folder):
        self.folder = folder
        metadata = json.loads((folder / "metadata.json").read_text())
        self.features = len(metadata["features"])
        self.starts = numpy.array([entity["start"] for entity in metadata["entities"]])
        ends = numpy.array([entity["end"] for entity in metadata["entities"]])
        self.sums = numpy.concatenate([[0], numpy.cumsum(ends - self.starts - WINDOW)])
        self.open_memmap()

    def open_memmap(self):
        values = numpy.memmap(self.folder / "all_features.mmap", numpy.float32, "r")
        self.rows = values.reshape(-1, self.features)

    def __len__(self):
        return int(self.sums[-1])

    def first_rows(self, numbers):
        entities = numpy.searchsorted(self.sums, numbers, side="right") - 1
        return self.starts[entities] + numbers - self.sums[entities]

    def __getitem__(self, number):
        first = self.first_rows(number)
        last = first + WINDOW
        return torch.from_numpy(self.rows[first:last]), torch.from_numpy(self.rows[last, :1])


def reopen(worker):
    get_worker_info().dataset.open_memmap()


def memmap_dataloader(data, workers):
    return _dataloader(Windows(data / "series"), workers, worker_init_fn=reopen)


def numpy_vectorised(data, workers):
    """A whole batch by fancy indexing, one thread."""
    windows = Windows(data / "series")
    rows, offsets = windows.rows, numpy.arange(WINDOW)

    def epoch():
        order = numpy.random.default_rng(0).permutation(len(windows))
        for at in range(0, len(order), BATCH):
            first = windows.first_rows(order[at : at + BATCH])
            x = rows[first[:, None] + offsets]
            yield torch.from_numpy(x), torch.from_numpy(rows[first + WINDOW, :1])

    return epoch, None


def numpy_strided(data, workers):
    """The same over a view in which every window is an element: longer runs to copy."""
    windows = Windows(data / "series")
    rows = windows.rows
    shape = (WINDOW, rows.shape[1])
    views = numpy.lib.stride_tricks.sliding_window_view(numpy.asarray(rows), shape)[:, 0]

    def epoch():
        order = numpy.random.default_rng(0).permutation(len(windows))
        for at in range(0, len(order), BATCH):
            first = windows.first_rows(order[at : at + BATCH])
            x = views[first]
            yield torch.from_numpy(x), torch.from_numpy(rows[first + WINDOW, :1])

    return epoch, None


class StreamedWindows(IterableDataset):
    """Entity after entity, window after window; workers take every so many-th entity."""

    def __init__(self, folder):
        self.windows = Windows(folder)

    def __iter__(self):
        worker = get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        windows = self.windows
        for entity in range(first, len(windows.starts), step):
            for number in range(windows.sums[entity], windows.sums[entity + 1]):
                yield windows[number]


def iterable(data, workers):
    """No shuffle: it is a stream."""
    return _dataloader(StreamedWindows(data / "series"), workers, shuffle=False)


# --- everything in memory; a file a sample; HDF5 -----------------------------------------------


def pandas_in_memory(data, workers):
    """All files into frames, all windows into one tensor."""
    import pandas

    paths = series_data.share_of(sorted((data / "parquet").glob("*.parquet")), PANDAS_SHARE)
    x, y = [], []
    for path in paths:
        rows = pandas.read_parquet(path).to_numpy(numpy.float32)
        for first in range(len(rows) - WINDOW):
            x.append(rows[first : first + WINDOW])
            y.append(rows[first + WINDOW, :1])
    return _dataloader(
        TensorDataset(torch.from_numpy(numpy.stack(x)), torch.from_numpy(numpy.stack(y))), workers
    )


class LazyFiles(Dataset):
    """A Parquet file an entity, opened for every sample."""

    def __init__(self, folder):
        import pandas

        self.read = pandas.read_parquet
        self.paths = sorted(folder.glob("*.parquet"))
        from pyarrow.parquet import ParquetFile

        counts = [ParquetFile(path).metadata.num_rows - WINDOW for path in self.paths]
        self.sums = numpy.concatenate([[0], numpy.cumsum(counts)])

    def __len__(self):
        return int(self.sums[-1])

    def __getitem__(self, number):
        entity = int(numpy.searchsorted(self.sums, number, side="right")) - 1
        rows = self.read(self.paths[entity]).to_numpy(numpy.float32)
        first = number - self.sums[entity]
        last = first + WINDOW
        return rows[first:last], rows[last, :1]


def lazy_files(data, workers):
    return _dataloader(LazyFiles(data / "parquet"), workers)


class SequenceFiles(Dataset):
    """Every window is a file of its own."""

    def __init__(self, folder):
        self.paths = sorted(str(path) for path in folder.rglob("*.npy"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, number):
        rows = numpy.load(self.paths[number])
        return rows[:WINDOW], rows[WINDOW, :1]


def sequence_files(data, workers):
    return _dataloader(SequenceFiles(data / "sequences"), workers)


class Hdf5Windows(Windows):
    """The same index over an HDF5 dataset, opened in each worker when it is first needed."""

    def __init__(self, data):
        self.file = data / "hdf5"
        self.hdf5_rows = None
        super().__init__(data / "series")

    def open_memmap(self):
        self.rows = None

    def __getitem__(self, number):
        if self.hdf5_rows is None:
            import h5py

            self.hdf5_rows = h5py.File(self.file, "r")["rows"]
        first = int(self.first_rows(number))
        rows = self.hdf5_rows[first : first + WINDOW + 1]
        return rows[:WINDOW], rows[WINDOW, :1]


def hdf5_workers(data, workers):
    return _dataloader(Hdf5Windows(data), workers)


def _dataloader(dataset, workers, shuffle=True, worker_init_fn=None):
    loader = DataLoader(
        dataset,
        batch_size=BATCH,
        shuffle=shuffle,
        num_workers=workers,
        worker_init_fn=worker_init_fn,
        persistent_workers=workers > 0,
    )
    return lambda: iter(loader), None


PANDAS_SHARE = series_data.PANDAS_SHARE
STOKER = (stoker, stoker_late, stoker_read)
PEERS = (
    memmap_dataloader,
    numpy_vectorised,
    numpy_strided,
    pandas_in_memory,
    lazy_files,
    sequence_files,
    hdf5_workers,
    iterable,
)
SIDES = {side.__name__: side for side in (*STOKER, *PEERS)}


# --- measuring ---------------------------------------------------------------------------------


class Check:
    """Batches hold the windows that their last column names, whole and within one entity."""

    def __init__(self, data, side):
        self.rows, metadata = series_data.open_array(data / "series")
        self.starts = numpy.array([entity["start"] for entity in metadata["entities"]])
        self.ends = numpy.array([entity["end"] for entity in metadata["entities"]])
        self.is_shuffled = side != "iterable"
        self.center = numpy.zeros(series_data.FEATURES)
        self.scale = numpy.ones(series_data.FEATURES)
        if side == "stoker_late":
            late = series_data.late_scaler()
            self.center, self.scale = numpy.array(late["center"]), numpy.array(late["scale"])

    def batch(self, x, y):
        for tensor, shape in (x, (len(x), WINDOW, series_data.FEATURES)), (y, (len(x), 1)):
            if not torch.is_tensor(tensor) or not tensor.is_contiguous():
                raise SystemExit("a batch is not one contiguous tensor")
            if tensor.dtype != torch.float32 or tuple(tensor.shape) != shape:
                raise SystemExit(f"a batch is {tensor.dtype} {tuple(tensor.shape)}, not {shape}")
        first = x[:, 0, -1].numpy().astype(numpy.int64)
        entity = numpy.searchsorted(self.starts, first, side="right") - 1
        if (first + WINDOW >= self.ends[entity]).any():
            raise SystemExit("a window reaches into the next entity")
        rows = self.rows[first[:, None] + numpy.arange(WINDOW + 1)].astype(numpy.float64)
        wanted = (rows - self.center) / self.scale
        if not numpy.allclose(x.numpy(), wanted[:, :WINDOW], rtol=1e-6, atol=1e-6):
            raise SystemExit("x is not the rows of its window")
        if not numpy.allclose(y.numpy(), wanted[:, WINDOW, :1], rtol=1e-6, atol=1e-6):
            raise SystemExit("y is not the label of the row after its window")
        if self.is_shuffled and (numpy.diff(first) == 1).mean() > 0.01:
            raise SystemExit("windows come in the stored order")


def endless(epoch):
    while True:
        yield from epoch()


def timed(batches, warm, seconds):
    """Draws `warm` batches and for a quarter of `seconds`; then counts as long, `warm` at least."""
    until = time.perf_counter() + seconds / 4
    drawn = 0
    while drawn < warm or time.perf_counter() < until:
        touch(next(batches)[0])
        drawn += 1
    cpu, begun = measure.cpu_seconds(), time.perf_counter()
    windows = count = took = 0
    while took < seconds or count < max(4, warm):
        x, _ = next(batches)
        touch(x)
        count, windows = count + 1, windows + len(x)
        took = time.perf_counter() - begun
    cpu = measure.cpu_seconds() - cpu
    size = windows * (WINDOW * series_data.FEATURES + 1) * 4
    return {
        "seconds": took,
        "batches": count,
        "samples": windows,
        "samples_per_s": windows / took,
        "batches_per_s": count / took,
        "bytes_per_s": size / took,
        "bytes_out": size,
        "cpu_s": cpu,
        "cpu_us_per_window": 1e6 * cpu / windows,
    }


def touch(x):
    x.view(torch.uint8).view(-1)[::4096].sum(dtype=torch.int64)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("side", choices=SIDES)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=2.0)
    arguments = parser.parse_args()
    if arguments.side.startswith("stoker"):
        importlib.import_module("stoker")  # no part of the start, as torch is none
    begun = time.perf_counter()
    epoch, more = SIDES[arguments.side](arguments.data, arguments.workers)
    batches = endless(epoch)
    first = next(batches)
    start = time.perf_counter() - begun
    check = Check(arguments.data, arguments.side)
    check.batch(*first)
    check.batch(*next(batches))
    del first
    # what workers have ready when the clock starts would be counted and was not made in its time
    result = timed(batches, 2 * arguments.workers, arguments.seconds)
    result.update(value=result["samples_per_s"], workers=arguments.workers, start_s=start)
    result.update(threads=machine.cores())
    if more:
        result.update(more())
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
