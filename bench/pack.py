"""pack: 400 Parquet files, 9.0 M rows x 16 f32, into one scaled array; and the memory it takes."""

import json
import shutil

from bench import limits, measure, peers, rss, series_data, shards

BUDGET = 64 << 20
FACTORS = (1, 4, 16)
MARGIN = 64 << 20  # over the budget: what code, threads and allocators may take

READERS = {
    "read_dataset": "dataset scanner",
    "read_tables": "read_table, file after file",
    "read_files": "whole files, a thread a core",
}


def run(options):
    files, rows = (8, 2500) if options.quick else (400, 22_500)
    data, facts = series_data.tables(files, rows)
    out = shards.DATA / "pack-out"
    sides = [
        _side(
            "stoker", data, out, "scaled values in the file; fsync left out by sync_clock.c", "skip"
        ),
        _side("stoker_synced", data, out, "the same, fsync counted", "count"),
        _side("stoker_late", data, out, "raw values in the file; fsync left out", "skip"),
        _side("stoker_late_synced", data, out, "the same, fsync counted", "count"),
        _pandas_side(data, out),
        _read_side(data, out),
        _side("write", data, out, "the array's bytes written once from RAM, page cache"),
    ]
    measure.alternate(sides, options.runs)
    measured = [measure.row(side, "rows/s") for side in sides]
    limit = _limit(measured)
    pairs = [
        (ours, theirs)
        for theirs in ("pandas_sklearn", "limit")
        for ours in ("stoker", "stoker_synced", "stoker_late", "stoker_late_synced")
    ]
    ratios = measure.ratios(measured, pairs, limit["value"])
    ratios.update(_times(measured))
    memory, memory_rows = _memory(data, files, options)
    workload = {
        "samples": files * rows,
        "bytes": facts["bytes"],
        "files": files,
        "features": series_data.FEATURES,
        "bytes_out": facts["bytes_out"],
        "scaler": "standard",
        "cache": "warm",
        "time/(read+write)": "seconds of a side over those of pyarrow_read and write together; "
        "less is better",
        "memory": f"budget {BUDGET >> 20} MiB, data of {FACTORS} times that; value: most anonymous "
        "and shared memory over what the process had before the work; less is better",
    }
    return {
        "workload": workload,
        "limit": limit,
        "rows": [*measured, *memory_rows],
        "ratios": ratios,
        "memory": memory,
    }


def _side(name, data, out, note, sync=None):
    which = name.removesuffix("_synced")
    command = measure.python("bench.pack_sides", which, data, out)
    side = SyncedSide if sync else measure.Side
    made = side(name, command, note)
    if sync:
        made.sync = sync
    return made


class SyncedSide(measure.Side):
    """A side whose waits for the disk are counted, or left out, by sync_clock.c."""

    def run(self):
        clock = limits.library("sync_clock")
        told = shards.DATA / "sync-clock.json"
        told.unlink(missing_ok=True)
        plain = self.command
        settings = [f"LD_PRELOAD={clock}", f"SYNC_CLOCK={self.sync}", f"SYNC_CLOCK_FILE={told}"]
        self.command = ["env", *settings, *plain]
        answer = super().run()
        self.command = plain
        if told.exists():
            answer.update(json.loads(told.read_text()))
            told.unlink()
        return answer


def _pandas_side(data, out):
    note = "partial_fit over all files, then transform into a memmap; no fsync"
    modules = ("pandas", "sklearn", "pyarrow")
    why = next(filter(None, map(peers.missing, modules)), None)
    if why:
        return measure.Side("pandas_sklearn", [], note, missing=why)
    command = measure.python(
        "bench.pack_sides", "pandas_sklearn", data, out, interpreter=peers.PYTHON
    )
    words = ", ".join(map(peers.version, modules))
    return measure.Side("pandas_sklearn", command, f"{words}: {note}")


def _read_side(data, out):
    """The way in which pyarrow reads these files fastest here."""
    variants = [
        measure.Side("pyarrow_read", measure.python("bench.pack_sides", side, data, out), note)
        for side, note in READERS.items()
    ]
    return measure.best_of(variants)


def _seconds(rows):
    return {row["name"]: row["seconds"] for row in rows if row.get("value")}


def _limit(rows):
    """Reading the source once and writing the output once, one after the other."""
    seconds, done = _seconds(rows), next((row.get("rows") for row in rows if row.get("rows")), 0)
    known = "pyarrow_read" in seconds and "write" in seconds
    return {
        "name": "pyarrow reads the source once, then the output is written once from RAM",
        "value": done / (seconds["pyarrow_read"] + seconds["write"]) if known else None,
        "unit": "rows/s",
    }


def _times(rows):
    """Seconds over those of reading and writing, the bars' own terms."""
    seconds = _seconds(rows)
    if "pyarrow_read" not in seconds or "write" not in seconds:
        return {}
    least = seconds["pyarrow_read"] + seconds["write"]
    names = {
        "time/(read+write)": "stoker",
        "time_synced/(read+write)": "stoker_synced",
        "late_time/(read+write)": "stoker_late",
        "late_time_synced/(read+write)": "stoker_late_synced",
    }
    return {key: seconds[name] / least for key, name in names.items() if name in seconds}


# --- memory ------------------------------------------------------------------------------------


def _memory(data, files, options):
    """Curves and rows: packing and streaming of 1, 4 and 16 times the budget, and sorting 16."""
    out = shards.DATA / "memory-out"
    seconds = 0.5 if options.quick else 3.0
    curves, rows = [], []

    def watch(what, factor, source):
        answers = [_watched(what, source, out, seconds) for _ in range(options.runs)]
        row, highest = _memory_row(f"memory_{what}_{factor}x", answers)
        print(f"  {row['name']:<20} {_mib(row)}", flush=True)
        rows.append(row)
        curves.append({"what": what, "factor": factor, **highest})

    for factor in FACTORS:
        count = factor if options.quick else -(-factor * BUDGET // _array_bytes(data))
        source, _ = series_data.linked_tables(count, data, files)
        watch("pack", factor, source)
        watch("stream", factor, out)
    largest = FACTORS[-1]
    mixed, _ = series_data.mixed_tables((1 << 22) if options.quick else largest * BUDGET)
    watch("sort", largest, mixed)
    shutil.rmtree(out, ignore_errors=True)
    return {"budget": BUDGET, "margin": MARGIN, "curves": curves}, rows


def _watched(what, source, out, seconds):
    if what != "stream":
        shutil.rmtree(out, ignore_errors=True)
    return rss.watched(what, source, out, BUDGET, seconds)


def _mib(row):
    return row["note"] if row["value"] is None else f"{row['value'] / 2**20:.1f} MiB"


def _array_bytes(data):
    """Of the rows of one file."""
    import pyarrow.parquet

    first = next(iter(sorted(data.glob("*.parquet"))))
    return pyarrow.parquet.ParquetFile(first).metadata.num_rows * series_data.FEATURES * 4


def _memory_row(name, answers):
    """The row and the run that took most: a bound is kept by all of them or it is not."""
    row = {"name": name, "unit": "bytes", "runs": [], "limit": BUDGET + MARGIN}
    error = next((answer for answer in answers if "error" in answer), None)
    if error:
        return {**row, "value": None, "note": f"not measured: {error['error']}"}, error
    highest = max(answers, key=lambda answer: answer["value"])
    note = f"array of {highest['bytes'] / 2**20:.0f} MiB; the highest of the runs"
    row.update(value=highest["value"], runs=[answer["value"] for answer in answers], note=note)
    return row, highest
