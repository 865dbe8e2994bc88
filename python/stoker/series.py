"""Series: tables of many entities into one array of rows, for sliding windows."""

from __future__ import annotations

import datetime
import json
import numbers
import operator
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from . import _core, _sklearn_file
from ._context import Progress, context, progress_shown
from ._options import Source, encode_names, parse_size, read_dtype, read_names
from ._sources import Tables

_MIB = 1 << 20


@dataclass(frozen=True)
class PackedSeries:
    """What :func:`pack_series` did.

    Attributes:
        folder: where the series is.
        rows, entities: in the folder now.
        added_rows: by this call.
        dropped_rows: left out because a value was missing (``nan="drop"``).
        missing: values that were missing.
        bytes: of the array.
        sorted: the rows did not come in order and were sorted.
    """

    folder: str
    rows: int
    entities: int
    added_rows: int
    dropped_rows: int
    missing: int
    bytes: int
    sorted: bool


def pack_series(
    sources: Any,
    out: Source,
    *,
    entity: str | None = None,
    time: str | None = None,
    features: str | Sequence[str] | None = None,
    labels: str | Sequence[str] | None = None,
    statics: str | Sequence[str] | None = None,
    dtype: Any = None,
    nan: str = "error",
    scaler: str | None = "standard",
    scale: str = "stored",
    fit_on: Any = None,
    split: Any = None,
    window: int | None = None,
    horizon: int | None = None,
    stride: int | None = None,
    gap: int | None = None,
    memory: int | str = "256MiB",
    threads: int | None = None,
    append: bool = False,
    force: bool = False,
    progress: Progress | bool | None = None,
) -> PackedSeries:
    """Packs tables into a series, which :func:`open` samples as sliding windows.

    The sources are read once, in constant memory. The folder appears whole, or not at all: a
    failure or Ctrl-C leaves what was there. Where scikit-learn is installed, scaler.joblib is put
    into the folder right after, by one rename.

    Args:
        sources: paths, folders or globs of Parquet, CSV, ORC and Arrow files, or a list of them, on
            this machine or in a store (``"s3://bucket/tables/*.parquet"``); a table with
            ``__arrow_c_stream__`` (pandas, polars, DuckDB, pyarrow); an iterator of record batches
            (one table together) or of tables; a dict of tables or of files, one an entity.
        out: the folder to write.
        entity: the column that names the entity, text or whole numbers; of CSV files as it is
            written: 007 is not 7. Default: one entity a file, named by the file.
        time: the column to order rows by. Default: they are in order as they come.
        features: columns of x. Default: all numbers but entity, time, statics and the index that
            pandas writes. Text columns named here become codes.
        labels: columns of y. Default: the first feature.
        statics: columns with one value an entity.
        dtype: of the stored values: float32 (the default), float16 or bfloat16.
        nan: missing values: ``"error"``, ``"drop"`` the row, ``"ffill"`` (the entity's last
            value), ``"mean"`` or ``"zero"`` (before scaling).
        scaler: ``"standard"``, ``"minmax"``, ``"robust"`` or None.
        scale: ``"stored"``: scaled values are stored. ``"late"``: raw ones are, and windows are
            scaled while they are copied; :func:`rescale` can then change the scaler.
        fit_on: rows that shape the scaler: a share of the time (0.8), a tuple of two times
            (``("2020-01-01", "2024-01-01")``; None: open), a list of entities, or the command's
            text. Default: the first part of the split, else all rows.
        split: shares by time (``(0.8, 0.1, 0.1)``), times where the next part begins
            (``"time:2024-01-01"``, or dates), ``"entity:0.8,0.1,0.1"``. The parts are train, val
            and test.
        window, horizon, stride, gap: what :func:`open` takes when it is not told (60, 1, 1, 0).
        memory: the most bytes that packing holds.
        threads: default: one a core. The bytes written are the same for any number.
        append: adds entities and newer rows to the series that is there.
        force: replaces a series that is there.
        progress: as in :func:`open`.

    >>> import numpy, pyarrow
    >>> steps = numpy.arange(200)
    >>> tables = {
    ...     name: pyarrow.table({"day": steps, "value": numpy.sin(steps / pace)})
    ...     for name, pace in [("slow", 9), ("fast", 4)]
    ... }
    >>> packed = stoker.pack_series(tables, "waves", time="day", split=(0.8, 0.2))
    >>> packed.rows, packed.entities
    (400, 2)
    >>> ds = stoker.open("waves", window=24, horizon=2, split="train")
    >>> ds[0]["x"].shape, ds[0]["y"].shape
    (torch.Size([24, 1]), torch.Size([2]))
    """
    named = {"features": features, "labels": labels, "statics": statics}
    lists = {name: read_names(name, value) for name, value in named.items()}
    sizes = {"window": window, "horizon": horizon, "stride": stride, "gap": gap}
    for name, size in sizes.items():
        if size is not None and operator.index(size) < (name != "gap"):
            raise ValueError(f"{name} is {size}; it is at least {int(name != 'gap')}")
    dtype, fit_on, split = read_dtype(dtype), read_fit_on(fit_on), read_split(split)
    budget = parse_size(memory)
    reading = max(8 * _MIB, min(budget // 4, 128 * _MIB))
    folder = os.fsdecode(out)
    known = [entity, time, *(lists["labels"] or []), *(lists["statics"] or [])]
    keys = [name for name in known if name is not None]
    wanted = None if lists["features"] is None or append else [*keys, *lists["features"]]
    # What an append needs, the series that is there says.
    naming = _entity_column(folder) if append and entity is None else entity
    tables = Tables(sources, wanted, None if append else keys, reading, naming)
    try:
        with progress_shown(progress):
            counts = _core.pack_series(
                context(),
                tables,
                tables.rows,
                tables.own_names,
                os.fsencode(folder),
                entity=entity,
                time=time,
                dtype=dtype,
                missing=nan,
                scaler=scaler or "none",
                scale=scale,
                fit_on=fit_on,
                split=split,
                memory=max(budget - reading, budget // 2),
                threads=threads,
                append=append,
                force=force,
                **sizes,
                **{name: encode_names(value) for name, value in lists.items()},
            )
    except BaseException:
        if tables.failure is not None:
            raise tables.failure from None
        raise
    finally:
        tables.close()
    _sklearn_file.write(folder)
    return PackedSeries(folder, **counts)


def _entity_column(folder: str) -> str | None:
    """The column that names the entities of a series; None: there is none. What is wrong with the
    folder, packing tells."""
    try:
        with open(os.path.join(folder, "metadata.json"), encoding="utf-8") as file:
            metadata = json.load(file)
    except (OSError, ValueError):
        return None
    name = metadata.get("entity") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else None


def rescale(folder: Source, scaler: str | None = "standard", *, fit_on: Any = None) -> None:
    """Fits another scaler to a series that was packed with ``scale="late"``; the array stays as it
    is. Datasets that are open keep the scaler they were opened with.

    Args:
        folder: the series.
        scaler: ``"standard"``, ``"minmax"``, ``"robust"`` or None.
        fit_on: rows that shape it, as in :func:`pack_series`. Default: the first part of the
            split, else all rows.
    """
    name = os.fsdecode(folder)
    try:
        _core.rescale_series(context(), os.fsencode(name), scaler or "none", read_fit_on(fit_on))
    finally:
        if os.path.isfile(os.path.join(name, "scaler.json")):
            _sklearn_file.write(name)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, numpy.timedelta64))


def _share(value: Any) -> str:
    """A share in billionths, which is how fine the library takes it: 1 - 0.7 is 0.3."""
    return format(float(value), ".9f").rstrip("0").rstrip(".")


def _read_time(value: Any) -> str:
    """A moment as the library reads it: ISO 8601, or a plain number."""
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, str) or _is_number(value):
        return str(value)
    return str(value).replace(" ", "T")  # numpy.datetime64, pandas.Timestamp


def read_fit_on(fit_on: Any) -> str | None:
    """The library's text for rows that shape a scaler."""
    if fit_on is None or isinstance(fit_on, str):
        return fit_on
    if _is_number(fit_on):
        return _share(fit_on)
    if isinstance(fit_on, tuple) and len(fit_on) == 2:
        first, last = ("" if one is None else _read_time(one) for one in fit_on)
        return f"time:{first}..{last}"
    if isinstance(fit_on, (list, set, frozenset)) and all(isinstance(one, str) for one in fit_on):
        for name in fit_on:
            if "," in name:
                raise ValueError(f"the entity {name!r} cannot be named here: a comma parts names")
        return "entities:" + ",".join(fit_on)
    raise TypeError(
        "fit_on is a share such as 0.8, a tuple of two times, or a list of names of entities"
    )


def read_split(split: Any) -> str | None:
    """The library's text for a split."""
    if split is None or isinstance(split, str):
        return split
    if _is_number(split):
        split = (split, 1 - split)
    if isinstance(split, (datetime.date, numpy.datetime64)):
        split = (split,)
    if isinstance(split, (tuple, list)) and split:
        if all(_is_number(share) for share in split):
            return ",".join(map(_share, split))
        return "time:" + ",".join(_read_time(moment) for moment in split)
    raise TypeError("split is shares such as (0.8, 0.1, 0.1), or times where the next part begins")


class Entities(Sequence[str]):
    """The names of a series' entities, in order; nothing is kept of them."""

    def __init__(self, read: Callable[[int], tuple[str, int, int]], count: int) -> None:
        self._read = read
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[number] for number in range(*i.indices(self._count))]
        return self._read(self._number(i))[0]

    def __iter__(self) -> Iterator[str]:
        for number in range(self._count):
            yield self._read(number)[0]

    def __repr__(self) -> str:
        shown = ", ".join(repr(name) for name in self[:5])
        return f"<{self._count} entities: {shown}{', ...' if self._count > 5 else ''}>"

    def rows(self, which: int | str) -> range:
        """The rows of the array that are this entity's: by number or by name."""
        try:
            number = self.index(which) if isinstance(which, str) else self._number(which)
        except ValueError:
            raise KeyError(f"there is no entity {which!r}") from None
        return range(*self._read(number)[1:])

    def _number(self, i: Any) -> int:
        number = operator.index(i)
        if number < 0:
            number += self._count
        if not 0 <= number < self._count:
            raise IndexError(f"there is no entity {i}; there are {self._count}")
        return number
