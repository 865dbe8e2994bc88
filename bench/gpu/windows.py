"""windows: 60 rows of 16 float32 out of a series, shuffled, handed over on the device."""

import time

import torch
from torch.utils.data import DataLoader

from bench import limits, measure, series_data
from bench.gpu import data, loop
from bench.window_sides import Windows, reopen

BATCH, LARGE_BATCH = 1024, 65536
WORKERS = (0, 4, 15)
WINDOW_BYTES = 4 * (series_data.WINDOW * series_data.FEATURES + 1)  # x and y
COPY_BYTES = 4 << 30


def run(options):
    entities, rows, seconds = (100, 1000, 0.3) if options.quick else (2000, 5000, 1.0)
    path, facts = data.series(entities, rows)
    series = path / "series"

    def own(name, batch, words, **more):
        return loop.Side(name, lambda s: _stoker(series, batch, s, **more), seconds, words)

    own_sides = [
        own("stoker", BATCH, "global shuffle, batches of 1,024"),
        own("resident_1024", BATCH, "resident=True, from the second epoch on", resident=True),
        own(
            "resident",
            LARGE_BATCH,
            f"resident=True, from the second epoch on, batches of {LARGE_BATCH:,}",
            resident=True,
        ),
    ]
    peers = [
        loop.Side(
            f"memmap_{workers}",
            lambda s, workers=workers: _memmap(series, workers, s),
            seconds,
            f"numpy.memmap, DataLoader, {workers} workers, pin_memory, non_blocking",
        )
        for workers in WORKERS
    ]
    hbm = loop.Side("hbm", _hbm, seconds / 2, "a copy within the device, read and written bytes")
    measure.alternate([*own_sides, *peers, hbm], options.runs)
    measured = {side.name: measure.row(side, "samples/s") for side in (*own_sides, *peers)}
    limit = measure.row(hbm, "bytes/s")
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
        "consumer": "draws batches and does nothing with them",
    }
    return {
        "workload": workload,
        "limit": limits.section(limit, "a copy within the device, bytes read and written"),
        "rows": [*measured.values(), limit],
        "ratios": ratios(measured, limit),
    }


def ratios(rows, hbm):
    """A window that is gathered is read and written: its bytes count twice."""
    found = {}
    for name, key in ("resident", "resident/hbm"), ("resident_1024", "resident_1024/hbm"):
        row = rows.get(name, {})
        if row.get("value"):
            row["moved_bytes_per_s"] = 2 * WINDOW_BYTES * row["value"]
            if hbm["value"]:
                found[key] = row["moved_bytes_per_s"] / hbm["value"]
    names = [f"memmap_{workers}" for workers in WORKERS]
    peers = [rows[name]["value"] for name in names if rows.get(name, {}).get("value")]
    if peers and rows["stoker"]["value"]:
        found["stoker/memmap_dataloader"] = rows["stoker"]["value"] / max(peers)
    loop.ratio(rows, "resident_1024/stoker", "resident_1024", "stoker", found)
    return found


def _draw(batch):
    x, y = batch
    return len(x), x.nbytes + y.nbytes


def _stoker(series, batch_size, seconds, **more):
    import stoker

    dataset = stoker.open(series, window=series_data.WINDOW, horizon=1, fields=("x", "y"))
    if more.get("resident"):
        more["device_memory"] = "4GiB"
    with stoker.Loader(
        dataset, batch_size=batch_size, shuffle=True, seed=0, device=loop.DEVICE, **more
    ) as loader:
        if more.get("resident"):
            _make_resident(loader)
        answer = loop.timed(loop.endless(lambda: iter(loader)), _draw, seconds)
        answer.update(loop.stoker_facts(loader))
    answer["batch_size"] = batch_size
    return answer


def _make_resident(loader, seconds=20.0):
    """Draws until batches are gathered on the device."""
    until = time.perf_counter() + seconds
    for number, _ in enumerate(loop.endless(lambda: iter(loader))):
        if number % 16 == 0 and (loader.stats()["device"] or {}).get("resident_batches", 0) > 16:
            return
        if time.perf_counter() > until:
            raise RuntimeError(f"not resident after {seconds:.0f} s: {loader.stats()['device']}")


def _memmap(series, workers, seconds):
    loader = DataLoader(
        Windows(series),
        batch_size=BATCH,
        shuffle=True,
        num_workers=workers,
        pin_memory=loop.DEVICE == "cuda",
        persistent_workers=workers > 0,
        worker_init_fn=reopen,
    )

    def epoch():
        for x, y in loader:
            yield x.to(loop.DEVICE, non_blocking=True), y.to(loop.DEVICE, non_blocking=True)

    # what workers have ready when the clock starts was not made in its time
    answer = loop.timed(loop.endless(epoch), _draw, seconds, warm=2 * workers)
    answer.update(workers=workers, threads=max(1, workers))
    return answer


def _hbm(seconds):
    size = COPY_BYTES if loop.DEVICE == "cuda" else 1 << 26
    source = torch.zeros(size, dtype=torch.uint8, device=loop.DEVICE)
    target = torch.empty_like(source)
    for _ in range(3):
        target.copy_(source)
    loop.synchronize()
    begun, copies, took = time.perf_counter(), 0, 0.0
    while took < seconds:
        for _ in range(8):
            target.copy_(source)
        loop.synchronize()
        copies, took = copies + 8, time.perf_counter() - begun
    moved = 2 * copies * size
    return {"value": moved / took, "bytes_per_s": moved / took, "seconds": took, "threads": 1}
