"""The sides of the `pack` benchmark: from Parquet files to one scaled array.

    python -m bench.pack_sides SIDE DATA OUT

The clock runs from the list of files to the folder that is done; modules are imported before it.
OUT is removed before and after. The result is looked at: rows, and that columns are scaled.
"""

import argparse
import json
import os
import pathlib
import shutil
import time

import numpy

from bench import machine, measure, series_data

PIECE = 1 << 20
FEATURES = series_data.FEATURES


def stoker(files, out):
    return _stoker(files, out, "stored")


def stoker_late(files, out):
    return _stoker(files, out, "late")


def _stoker(files, out, scale):
    import pyarrow.dataset  # noqa: F401
    import stoker

    def work():
        stoker.pack_series(files, out, scaler="standard", scale=scale, progress=False)

    return work


def pandas_sklearn(files, out):
    """Two passes: partial_fit over every file, then transform into a memmap. One file at a time."""
    import joblib
    import pandas
    from sklearn.preprocessing import StandardScaler

    def work():
        scaler, counts = StandardScaler(), []
        for path in files:
            rows = pandas.read_parquet(path).to_numpy(numpy.float32)
            scaler.partial_fit(rows)
            counts.append(len(rows))
        os.makedirs(out)
        array = numpy.memmap(
            f"{out}/all_features.mmap", numpy.float32, "w+", shape=(sum(counts), FEATURES)
        )
        entities, start = [], 0
        for path in files:
            rows = pandas.read_parquet(path).to_numpy(numpy.float32)
            array[start : start + len(rows)] = scaler.transform(rows)
            entities.append({"name": path.stem, "start": start, "end": start + len(rows)})
            start += len(rows)
        metadata = {"features": series_data.NAMES, "rows": start, "entities": entities}
        pathlib.Path(out, "metadata.json").write_text(json.dumps(metadata))
        joblib.dump(scaler, f"{out}/scaler.joblib")

    return work


def read_dataset(files, out):
    """pyarrow reads every file once by its dataset scanner; batches are dropped."""
    import pyarrow
    import pyarrow.dataset

    pyarrow.set_cpu_count(machine.cores())

    def work():
        source = pyarrow.dataset.dataset([str(path) for path in files], format="parquet")
        return sum(len(batch) for batch in source.to_batches())

    return work


def read_tables(files, out):
    """pyarrow reads one file after the other, columns in threads; tables are dropped."""
    import pyarrow
    import pyarrow.parquet

    pyarrow.set_cpu_count(machine.cores())

    def work():
        return sum(len(pyarrow.parquet.read_table(path)) for path in files)

    return work


def read_files(files, out):
    """A thread a core, each reading whole files; tables are dropped."""
    from concurrent.futures import ThreadPoolExecutor

    import pyarrow.parquet

    def read(path):
        return pyarrow.parquet.ParquetFile(path).read(use_threads=False).num_rows

    def work():
        with ThreadPoolExecutor(machine.cores()) as pool:
            return sum(pool.map(read, files))

    return work


def write(files, out):
    """The bytes of the array, from memory, in writes of 1 MiB, into the page cache."""
    rows = _rows_of(files)
    piece = numpy.random.default_rng(0).standard_normal(PIECE // 4, dtype=numpy.float32).data
    left = rows * FEATURES * 4

    def work():
        os.makedirs(out)
        fd = os.open(f"{out}/all_features.mmap", os.O_WRONLY | os.O_CREAT, 0o644)
        view = memoryview(piece).cast("B")
        for at in range(0, left, PIECE):
            os.write(fd, view[: min(PIECE, left - at)])
        os.close(fd)

    return work


SIDES = {
    side.__name__: side
    for side in (
        stoker,
        stoker_late,
        pandas_sklearn,
        read_dataset,
        read_tables,
        read_files,
        write,
    )
}


def _rows_of(files):
    import pyarrow.parquet

    return sum(pyarrow.parquet.ParquetFile(path).metadata.num_rows for path in files)


def check(side, out, rows, files):
    """Every row is there; a scaled array has mean 0 and variance 1 in every column."""
    if side.startswith("read"):
        return
    array = numpy.memmap(f"{out}/all_features.mmap", numpy.float32, "r").reshape(-1, FEATURES)
    if len(array) != rows:
        raise SystemExit(f"{len(array)} rows were written, not {rows}")
    if side in ("stoker", "pandas_sklearn"):
        mean, spread = array.mean(axis=0, dtype=numpy.float64), array.std(axis=0)
        if abs(mean).max() > 1e-3 or abs(spread - 1).max() > 1e-2:
            raise SystemExit("columns are not scaled")
    if side == "stoker_late":
        import pyarrow.parquet

        first = pyarrow.parquet.read_table(files[0])
        raw = numpy.stack([first[name].to_numpy() for name in series_data.NAMES], axis=1)
        if not (array[: len(raw)] == raw).all():
            raise SystemExit("the array does not hold the source's values")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("side", choices=SIDES)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    files = sorted(arguments.data.glob("*.parquet"))
    out = arguments.out
    shutil.rmtree(out, ignore_errors=True)
    rows = _rows_of(files)
    work = SIDES[arguments.side](files, out)
    cpu, begun = measure.cpu_seconds(), time.perf_counter()
    work()
    took = time.perf_counter() - begun
    cpu = measure.cpu_seconds() - cpu
    check(arguments.side, out, rows, files)
    shutil.rmtree(out, ignore_errors=True)
    result = {"value": rows / took, "seconds": took, "samples_per_s": rows / took, "cpu_s": cpu}
    result.update(rows=rows, bytes_in=sum(path.stat().st_size for path in files))
    result.update(bytes_out=rows * FEATURES * 4, threads=machine.cores())
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
