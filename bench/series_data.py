"""The data of `windows` and `pack`, written without Stoker. Each set is made once and kept.

    python -m bench.series_data hdf5|parquet|sequences DATA

writes one more form of the same rows, as an approach other than a flat array wants them.
"""

import argparse
import json
import os
import pathlib

import numpy

from bench import shards

FEATURES = 16
WINDOW = 60
NAMES = [f"f{number}" for number in range(FEATURES)]
PANDAS_SHARE, SEQUENCES_SHARE = 40, 100  # every sequence in memory, on disk: of 1/40, 1/100 of it


def windows_of(entities, rows):
    """How many windows of 60 rows with one row after them there are."""
    return entities * max(0, rows - WINDOW)


def array(entities, rows):
    """A series made with numpy alone: metadata.json and all_features.mmap, 16 f32 a row.

    The last column is the row's number, by which a window is known again: float32 holds numbers up
    to 2^24 exactly. `late` is the same array, to be scaled while windows are copied.
    """

    def make(path):
        if entities * rows > 1 << 24:
            raise RuntimeError("more than 2^24 rows: float32 cannot number them")
        (path / "series").mkdir()
        (path / "late").mkdir()
        random = numpy.random.default_rng(0)
        with open(path / "series" / "all_features.mmap", "wb") as out:
            for entity in range(entities):
                block = random.standard_normal((rows, FEATURES), dtype=numpy.float32)
                block[:, -1] = numpy.arange(entity * rows, (entity + 1) * rows)
                out.write(block.tobytes())
        os.link(path / "series" / "all_features.mmap", path / "late" / "all_features.mmap")
        metadata = hand_made(entities, rows)
        (path / "series" / "metadata.json").write_text(json.dumps(metadata))
        metadata.update(scale="late", scaler=late_scaler())
        (path / "late" / "metadata.json").write_text(json.dumps(metadata))
        return {"bytes": entities * rows * FEATURES * 4}

    return shards.folder(f"windows-{entities}x{rows}", make, entities=entities, rows=rows)


def sparse(entities, size):
    """An array of holes: as large as wanted, and no disk used."""
    rows = size // (4 * FEATURES * entities)

    def make(path):
        (path / "series").mkdir()
        with open(path / "series" / "all_features.mmap", "wb") as out:
            out.truncate(entities * rows * FEATURES * 4)
        (path / "series" / "metadata.json").write_text(json.dumps(hand_made(entities, rows)))
        return {"bytes": entities * rows * FEATURES * 4, "rows": rows}

    return shards.folder(f"sparse-series-{entities}", make, entities=entities, size=size)


def hand_made(entities, rows):
    """metadata.json as a script with numpy writes it."""
    return {
        "features": NAMES,
        "labels": [NAMES[0]],
        "dtype": "float32",
        "sequence": {"window": WINDOW, "horizon": 1},
        "entities": [
            {"name": f"e{number:05d}", "start": number * rows, "end": (number + 1) * rows}
            for number in range(entities)
        ],
    }


def late_scaler():
    """Center and scale of each column; the row's number stays as it is."""
    center = [0.125 * (1 + number) for number in range(FEATURES - 1)] + [0.0]
    scale = [1.0 + 0.25 * number for number in range(FEATURES - 1)] + [1.0]
    return {"kind": "standard", "features": NAMES, "center": center, "scale": scale}


def open_array(data):
    """The array and what metadata.json says of it, as the seed of all this reads them."""
    metadata = json.loads((pathlib.Path(data) / "metadata.json").read_text())
    values = numpy.memmap(pathlib.Path(data) / "all_features.mmap", numpy.float32, "r")
    return values.reshape(-1, len(metadata["features"])), metadata


def tables(files, rows):
    """Parquet files of 16 f32 columns, an entity each, written as pyarrow does when not told."""

    def make(path):
        import pyarrow
        import pyarrow.parquet

        random = numpy.random.default_rng(0)
        offset = random.normal(0, 10, FEATURES).astype(numpy.float32)
        for number in range(files):
            steps = random.standard_normal((FEATURES, rows), dtype=numpy.float32)
            columns = {
                name: numpy.cumsum(steps[i], dtype=numpy.float32) * 0.1 + offset[i]
                for i, name in enumerate(NAMES)
            }
            table = pyarrow.table(columns)
            pyarrow.parquet.write_table(table, path / f"entity-{number:04d}.parquet")
        size = sum(file.stat().st_size for file in path.glob("*.parquet"))
        return {"bytes": size, "bytes_out": files * rows * FEATURES * 4}

    return shards.folder(f"pack-{files}x{rows}", make, files=files, rows=rows)


def linked_tables(files, source, source_files):
    """As many files as wanted, by other names of those that are there: no disk used."""

    def make(path):
        for number in range(files):
            name = source / f"entity-{number % source_files:04d}.parquet"
            os.link(name, path / f"entity-{number:04d}.parquet")
        return {}

    return shards.folder(f"{source.name}-as-{files}", make, files=files)


def mixed_tables(size, entities=100, files=50):
    """Tables in which a row of every entity follows the other: to be sorted. `size` of f32 rows."""
    rows = size // (4 * FEATURES * files * entities) * entities

    def make(path):
        import pyarrow
        import pyarrow.parquet

        random = numpy.random.default_rng(0)
        names = pyarrow.array([f"e{number:03d}" for number in range(entities)])
        codes = pyarrow.array(
            numpy.tile(numpy.arange(entities, dtype=numpy.int32), rows // entities)
        )
        for file in range(files):
            first = file * (rows // entities)
            moments = numpy.arange(first, first + rows // entities).repeat(entities)
            values = random.integers(0, 250, (FEATURES, rows)).astype(numpy.float32)
            columns = {name: values[i] for i, name in enumerate(NAMES)}
            columns["time"] = moments.astype("datetime64[s]")
            columns["entity"] = pyarrow.DictionaryArray.from_arrays(codes, names)
            table = pyarrow.table(columns)
            pyarrow.parquet.write_table(table, path / f"part-{file:04d}.parquet")
        return {"rows": rows * files}

    return shards.folder(f"mixed-{size >> 20}", make, entities=entities, files=files)


# --- other forms of the same rows --------------------------------------------------------------


def parquet(data):
    """A file an entity."""
    import pyarrow
    import pyarrow.parquet

    values, metadata = open_array(data / "series")
    folder = data / "parquet.part"
    folder.mkdir(exist_ok=True)
    for entity in metadata["entities"]:
        rows = values[entity["start"] : entity["end"]]
        table = pyarrow.table({name: rows[:, i].copy() for i, name in enumerate(NAMES)})
        pyarrow.parquet.write_table(table, folder / f"{entity['name']}.parquet")
    folder.rename(data / "parquet")


def hdf5(data):
    """One dataset (rows, 16), in chunks of 256 rows: 16 KiB, what h5py's own guess comes to."""
    import h5py

    values, _ = open_array(data / "series")
    with h5py.File(data / "hdf5.part", "w") as file:
        out = file.create_dataset("rows", values.shape, numpy.float32, chunks=(256, FEATURES))
        for first in range(0, len(values), 1 << 18):
            out[first : first + (1 << 18)] = values[first : first + (1 << 18)]
    (data / "hdf5.part").rename(data / "hdf5")


def sequences(data):
    """Every window of a hundredth of the entities as a file of its own: 61 rows."""
    values, metadata = open_array(data / "series")
    folder = data / "sequences.part"
    folder.mkdir(exist_ok=True)
    number = 0
    for entity in share_of(metadata["entities"], SEQUENCES_SHARE):
        for start in range(entity["start"], entity["end"] - WINDOW):
            below = folder / f"{number // 1000:05d}"
            below.mkdir(exist_ok=True)
            numpy.save(below / f"{number:08d}.npy", values[start : start + WINDOW + 1])
            number += 1
    folder.rename(data / "sequences")


def share_of(entities, share):
    return entities[: max(1, len(entities) // share)]


def disk_bytes(path):
    """What a file, or all files of a folder, take on disk."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_blocks * 512 for file in files)


FORMS = {form.__name__: form for form in (parquet, hdf5, sequences)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("form", choices=FORMS)
    parser.add_argument("data", type=pathlib.Path)
    arguments = parser.parse_args()
    FORMS[arguments.form](arguments.data)


if __name__ == "__main__":
    main()
