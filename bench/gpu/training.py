"""training: a 3D-CNN on f16 tensors of 1.2 MB and an LSTM on windows of a series, against the same
loop over batches that are on the device already."""

from bench import measure, series_data
from bench.gpu import data, loop
from bench.gpu import training_sides as sides
from bench.gpu.models import BATCH, LSTM_BATCH

EAGER = "kernels launched one by one, not as a graph: "
PEERS = ("npy_0", "npy_4", "npy_15", "tar_5", "tar_10")


def run(options):
    samples, seconds, entities = (640, 0.4, 100) if options.quick else (4000, 3.0, 2000)
    path, facts = data.tensors(samples)
    thwc, _ = data.tensors(samples, data.THWC)
    series, _ = data.series(entities, 1000 if options.quick else 5000)
    cnn, lstm = _cnn_sides(path, thwc, seconds), _lstm_sides(series / "series", seconds / 2)
    rows = loop.measured([*cnn, *lstm], options.runs)
    _add_busy(rows, [*cnn, *lstm])
    for name in "lstm", "lstm_bound":
        rows[name]["limit"] = rows["lstm_bound"]["value"]
    return {
        "workload": {
            "samples": samples,
            "bytes": facts["bytes"],
            "dtype": "float16",
            "shape": facts["shape"],
            "shards": data.SHARDS,
            "batch_size": BATCH,
            "shuffle": True,
            "cache": "warm",
            "model": "Conv3d 3-16-32-64 (kernel 3, stride 2, padding 1), ReLU, AdaptiveAvgPool3d, "
            "Linear 10; half, SGD, cross entropy; the step is a CUDA graph, but for eager rows",
            "lstm": {
                "window": series_data.WINDOW,
                "features": series_data.FEATURES,
                "batch_size": LSTM_BATCH,
                "hidden": sides.LSTM_HIDDEN,
                "windows": series_data.windows_of(entities, 1000 if options.quick else 5000),
            },
        },
        "limit": {
            "name": "the same steps over batches that are on the device already",
            "value": rows["bound"]["value"],
            "unit": "samples/s",
            "runs": rows["bound"]["runs"],
        },
        "rows": list(rows.values()),
        "ratios": ratios(rows),
    }


def _cnn_sides(path, thwc, seconds):
    def side(name, work, time, note):
        return loop.Side(name, work, time, note)

    return [
        side("bound", lambda s, **w: sides.bound(path, s, **w), seconds, sides.BOUND_WORDS),
        side("stoker", lambda s, **w: sides.stoker(path, s, **w), seconds, "tar shards"),
        side(
            "resident",
            lambda s, **w: sides.resident(path, s, **w),
            seconds,
            "resident=True, from the second epoch on",
        ),
        side(
            "thwc",
            lambda s, **w: sides.thwc(thwc, s, **w),
            seconds,
            "stored THWC, made CTHW by Stoker on the device",
        ),
        side(
            "copied_bound",
            lambda s: sides.copied_bound(path, s),
            seconds,
            "the bound, and a copy of each batch within the device beside the step before it",
        ),
        side(
            "loaded_bound",
            lambda s: sides.loaded_bound(path, s),
            seconds / 2,
            "the bound while `stoker stream` keeps a thread a core busy in the same process",
        ),
        side(
            "eager_bound",
            lambda s, **w: sides.bound(path, s, eager=True, **w),
            seconds / 2,
            EAGER + sides.BOUND_WORDS,
        ),
        side(
            "eager_stoker",
            lambda s, **w: sides.stoker(path, s, eager=True, **w),
            seconds / 2,
            EAGER + "tar shards",
        ),
        *(_peer(name, path, seconds / 3) for name in PEERS),
    ]


def _peer(name, path, seconds):
    kind, _, workers = name.partition("_")
    words = {
        "npy": "a .npy and a .cls file a sample, DataLoader, global shuffle",
        "tar": "tarfile in an IterableDataset, DataLoader, shards shuffled, buffer of 100 samples",
    }[kind]
    work = sides.npy_files if kind == "npy" else sides.tar_stream
    note = f"{words}, {workers} workers, pin_memory, non_blocking"
    return loop.Side(name, lambda s: work(path, int(workers), s), seconds, note)


def _lstm_sides(series, seconds):
    return [
        loop.Side(
            "lstm_bound",
            lambda s, **w: sides.lstm_bound(series, s, **w),
            seconds,
            "LSTM: " + sides.BOUND_WORDS,
        ),
        loop.Side(
            "lstm",
            lambda s, **w: sides.lstm_stoker(series, s, **w),
            seconds,
            "LSTM: windows of a series, global shuffle",
        ),
    ]


def _add_busy(rows, all_sides):
    """One more run of some sides with the GPU's activity recorded; those times do not count."""
    for side in all_sides:
        if side.name in ("bound", "stoker", "lstm_bound", "lstm") and side.answers:
            try:
                busy = loop.Busy()
                answer = side.work(side.seconds, watch=busy)
                rows[side.name]["gpu"] = {**busy.facts(), "samples_per_s": answer["value"]}
                rows[side.name]["busy"] = rows[side.name]["gpu"]["busy"]
            except Exception as error:
                rows[side.name]["gpu"] = {"busy": None, "note": f"not measured: {error}"}
                print(f"  {side.name:<16} busy: not measured: {error}", flush=True)


def ratios(rows):
    pairs = [("stoker", "bound"), ("resident", "bound"), ("loaded_bound", "bound")]
    pairs += [("copied_bound", "bound"), ("resident", "copied_bound")]
    found = measure.ratios(list(rows.values()), pairs)
    peers = [rows[name]["value"] for name in PEERS if name in rows and rows[name]["value"]]
    if peers and rows["stoker"]["value"]:
        found["stoker/best_dataloader"] = rows["stoker"]["value"] / max(peers)
    loop.ratio(rows, "thwc/cthw", "thwc", "stoker", found)
    loop.ratio(rows, "lstm/bound", "lstm", "lstm_bound", found)
    loop.ratio(rows, "eager_stoker/eager_bound", "eager_stoker", "eager_bound", found)
    for name in "stoker", "bound", "lstm", "lstm_bound":
        if rows.get(name, {}).get("busy") is not None:
            found[f"{name}_busy"] = rows[name]["busy"]
    bound = rows["bound"]
    if bound["value"] and bound.get("gpu", {}).get("samples_per_s"):  # what the recording costs
        found["recorded_bound/bound"] = bound["gpu"]["samples_per_s"] / bound["value"]
    loop.ratio(rows, "stoker_busy/bound_busy", "stoker", "bound", found, of="busy")
    loop.ratio(rows, "lstm_busy/bound_busy", "lstm", "lstm_bound", found, of="busy")
    return found
