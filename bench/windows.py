"""windows: 2,000 entities x 5,000 rows x 16 f32, windows of 60 rows, shuffled batches of 1,024.

python -m bench.windows DATA        open to first batch of a series, the `start` row
"""

import argparse
import json
import os
import pathlib
import subprocess
import time

from bench import limits, machine, measure, peers, series_data

BATCH = 1024
ROW_BYTES = 4 * series_data.FEATURES
START_ENTITIES, START_BYTES = 10_000, 10 << 30
CLOSE_RUNS = 8  # more for the sides whose ratios are near one: single runs swing by a fifth

# name: (modules, the form of the rows it reads, numbers of workers, note)
PEERS = {
    "memmap_dataloader": ((), "series", (0, 2, 4), "numpy.memmap, searchsorted, worker_init_fn"),
    "numpy_vectorised": ((), "series", (0,), "fancy indexing of a batch's rows, one thread"),
    "numpy_strided": ((), "series", (0,), "fancy indexing of sliding_window_view, one thread"),
    "pandas_in_memory": (
        ("pandas", "pyarrow"),
        "parquet",
        (0, 2, 4),
        f"every window materialised: of 1/{series_data.PANDAS_SHARE} of the entities",
    ),
    "lazy_files": (("pandas", "pyarrow"), "parquet", (0, 2, 4), "a Parquet file opened a sample"),
    "sequence_files": (
        (),
        "sequences",
        (0, 2, 4),
        f"every window a file: of 1/{series_data.SEQUENCES_SHARE} of the entities",
    ),
    "hdf5_workers": (("h5py",), "hdf5", (0, 2, 4), "h5py, opened in each worker"),
    "iterable": ((), "series", (0, 2, 4), "IterableDataset over numpy.memmap; no shuffle"),
}
MODULE_OF_FORM = {"hdf5": "h5py"}


def run(options):
    entities, rows = (40, 1000) if options.quick else (2000, 5000)
    seconds = 0.2 if options.quick else 2.0
    data, facts = series_data.array(entities, rows)
    sides = [
        _stoker_side("stoker", data, seconds, "global shuffle"),
        _stoker_side("stoker_late", data, seconds, "scaled while it is copied"),
        _stoker_side("stoker_read", data, seconds, "within 256 MiB: the array is not mapped"),
    ]
    sides += [_peer_side(name, data, options, seconds) for name in PEERS]
    pool = _pool_bytes(sides[0])
    limit_side = _limit_side(data, pool, seconds)
    sparse, sparse_facts = series_data.sparse(START_ENTITIES, START_BYTES)
    start_side = measure.Side(
        "start",
        measure.python("bench.windows", sparse),
        f"open to first batch: {START_BYTES >> 30} GiB (sparse), {START_ENTITIES:,} entities",
    )
    measure.alternate([*sides, limit_side, start_side], options.runs)
    if not options.quick:
        measure.alternate([*sides[:2], limit_side], CLOSE_RUNS)

    measured = [measure.row(side, "samples/s") for side in sides]
    for row in measured:
        row.update(_disk_of(row["name"], data, facts))
    limit = limits.section(
        measure.row(limit_side, "samples/s"),
        f"windows copied from RAM by memcpy, random order, ring of {pool / 1e6:.0f} MB, "
        f"{machine.cores()} threads",
    )
    pairs = [("stoker", name) for name in ("limit", *PEERS)]
    pairs += [("stoker_late", "stoker"), ("stoker_late", "limit"), ("stoker_read", "stoker")]
    workload = {
        "samples": series_data.windows_of(entities, rows),
        "bytes": facts["bytes"],
        "entities": entities,
        "rows_of_each": rows,
        "features": series_data.FEATURES,
        "window": series_data.WINDOW,
        "horizon": 1,
        "dtype": "float32",
        "batch_size": BATCH,
        "shuffle": True,
        "cache": "warm",
        "consumer": "one byte of each 4 KiB page of x is read",
        "ring_bytes": pool,
        "start": {"bytes": sparse_facts["bytes"], "entities": START_ENTITIES},
    }
    return {
        "workload": workload,
        "limit": limit,
        "rows": [*measured, measure.row(start_side, "s")],
        "ratios": measure.ratios(measured, pairs, limit["value"]),
    }


def _stoker_side(name, data, seconds, note):
    command = measure.python("bench.window_sides", name, data, "--seconds", seconds)
    return measure.Side(name, command, note)


def _peer_side(name, data, options, seconds):
    """The peer with the number of workers that suits it best here."""
    modules, form, workers, note = PEERS[name]
    why = next(filter(None, map(peers.missing, ("torch", *modules))), None) or _make(form, data)
    if why:
        return measure.Side(name, [], note, missing=why)
    words = ", ".join(filter(None, map(peers.version, modules or ("torch",))))
    variants = []
    for count in workers[:1] if options.quick else workers:
        command = measure.python(
            "bench.window_sides",
            name,
            data,
            "--workers",
            count,
            "--seconds",
            seconds / 2,
            interpreter=peers.PYTHON,
        )
        variants.append(measure.Side(name, command, f"{words}, {count} workers: {note}"))
    best = measure.best_of(variants)
    best.command[-1] = str(seconds)
    return best


def _make(form, data):
    """Writes the form of the rows that a peer wants. None, or why it cannot."""
    if (data / form).exists():
        return None
    module = MODULE_OF_FORM.get(form, "pyarrow")
    why = peers.missing(module)
    if why:
        return why
    print(f"  writing the rows as {form}", flush=True)
    command = measure.python("bench.series_data", form, str(data), interpreter=str(peers.PYTHON))
    done = subprocess.run(command, cwd=measure.ROOT, capture_output=True, text=True)
    return done.stderr.strip().splitlines()[-1] if done.returncode else None


def _disk_of(name, data, facts):
    """What a side's form takes on disk; of a share of the entities, also what all would take."""
    form = PEERS[name][1] if name in PEERS else "late" if name == "stoker_late" else "series"
    if not (data / form).exists():
        return {}
    size = series_data.disk_bytes(data / form)
    if name != "sequence_files":
        return {"disk_bytes": size}
    share = len(series_data.share_of(range(facts["entities"]), series_data.SEQUENCES_SHARE))
    return {"disk_bytes": size, "disk_bytes_of_all_computed": size * facts["entities"] // share}


def _limit_side(data, ring, seconds):
    return limits.side(
        "limit_gather",
        data / "series" / "all_features.mmap",
        ROW_BYTES,
        series_data.WINDOW,
        BATCH,
        ring,
        machine.cores(),
        seconds,
        note=f"memcpy, random order, ring of {ring / 1e6:.0f} MB",
    )


def _pool_bytes(stoker):
    """What the loader itself holds: one run tells. Three batches where it cannot run."""
    answer = stoker.run()
    return int(answer.get("pool_bytes") or 3 * BATCH * series_data.WINDOW * ROW_BYTES)


def main():
    """The `start` side."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=pathlib.Path)
    arguments = parser.parse_args()
    import stoker
    import torch  # noqa: F401  imported by any training script: not part of the start

    begun = time.perf_counter()
    dataset = stoker.open(arguments.data / "series", window=series_data.WINDOW, horizon=1)
    opened = time.perf_counter()
    loader = stoker.Loader(dataset, batch_size=BATCH, shuffle=True, seed=0)
    next(iter(loader))
    end = time.perf_counter()
    note = f"open {1000 * (opened - begun):.1f} ms, then {1000 * (end - opened):.1f} ms"
    result = {"value": end - begun, "open_s": opened - begun, "after_open_s": end - opened}
    result.update(note=note, disk_bytes=series_data.disk_bytes(arguments.data / "series"))
    result.update(metadata_bytes=os.path.getsize(arguments.data / "series" / "metadata.json"))
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
