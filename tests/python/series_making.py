"""Series for tests, and what their windows should be: by numpy alone."""

import json

import numpy
from numpy.lib.stride_tricks import sliding_window_view


def values(rows, columns, seed=0):
    """Walks, of unlike means and widths."""
    random = numpy.random.default_rng(seed)
    steps = random.standard_normal((rows, columns)) * numpy.arange(1, columns + 1)
    return (steps.cumsum(axis=0) + 10 * numpy.arange(columns)).astype(numpy.float32)


def write_by_hand(folder, lengths, columns=4, **metadata):
    """The seed's recipe: a flat array and a few words about it. Returns the rows of each entity."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [values(rows, columns, seed) for seed, rows in enumerate(lengths)]
    numpy.concatenate(parts).tofile(folder / "all_features.mmap")
    ends = numpy.cumsum(lengths)
    entities = [
        {"name": f"e{number}", "start": int(end - rows), "end": int(end)}
        for number, (rows, end) in enumerate(zip(lengths, ends, strict=True))
    ]
    words = {"features": list("abcdefgh"[:columns]), "entities": entities} | metadata
    (folder / "metadata.json").write_text(json.dumps(words))
    return parts


def tables(lengths, columns=3, seed=0, start=0):
    """Entity -> pyarrow table with a time (a day a row) and columns a, b, c."""
    import pyarrow

    made = {}
    for number, rows in enumerate(lengths):
        array = values(rows, columns, seed + number)
        days = numpy.datetime64("2020-01-01", "D") + numpy.arange(start, start + rows)
        named = {"day": days.astype("datetime64[s]")}
        named |= {"abcdefgh"[i]: array[:, i] for i in range(columns)}
        made[f"e{number}"] = pyarrow.table(named)
    return made


def matrix(table, columns=None):
    """The columns of a table as float64, row by row."""
    names = columns or [name for name in table.column_names if name not in ("day", "entity")]
    return numpy.column_stack([table[name].to_numpy().astype(numpy.float64) for name in names])


def windows(rows, window, horizon=1, stride=1, gap=0, labels=(0,)):
    """All (x, y) of one entity's rows."""
    reach = window + (gap + horizon if horizon else 0)
    if len(rows) < reach:
        shape = (0, horizon) if len(labels) == 1 else (0, horizon, len(labels))
        return numpy.empty((0, window, rows.shape[1]), rows.dtype), numpy.empty(shape, rows.dtype)
    whole = sliding_window_view(rows, reach, axis=0).transpose(0, 2, 1)[::stride]
    y = whole[:, reach - horizon :, list(labels)]
    return whole[:, :window], y[..., 0] if len(labels) == 1 else y


def all_windows(parts, **how):
    """The windows of all entities, one after the other."""
    made = [windows(rows, **how) for rows in parts]
    return numpy.concatenate([x for x, _ in made]), numpy.concatenate([y for _, y in made])


def padded(rows, window, least, horizon=1):
    """All (x, mask, y) with zeros before short histories."""
    made = []
    for last in range(least - 1, len(rows) - horizon):
        past = rows[max(0, last + 1 - window) : last + 1]
        x = numpy.zeros((window, rows.shape[1]), rows.dtype)
        x[window - len(past) :] = past
        made.append((x, numpy.arange(window) >= window - len(past), rows[last + 1 :][:horizon, 0]))
    return tuple(numpy.stack(column) for column in zip(*made, strict=True))


def drawn(loader, *names):
    """What a loader gives in one epoch, each field as one array, without masked places."""
    columns = {name: [] for name in names}
    for batch in loader:
        kept = batch["mask"] if "mask" in batch else slice(None)
        for name in names:
            columns[name].append(batch[name][kept].copy())
    return tuple(numpy.concatenate(columns[name]) for name in names)
