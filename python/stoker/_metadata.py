"""Judges samples by the rows of metadata.parquet."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import numpy

from . import _core
from ._context import context
from ._remote_file import local_path
from .errors import (
    DeniedError,
    MismatchError,
    NotFoundError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from .dataset import Dataset

NAME = "metadata.parquet"
MOST_BYTES = 4 << 30  # of a table on the network


def judge(dataset: Dataset, predicate: Any, path: Any, by: str) -> numpy.ndarray:
    """A bool for each sample of the dataset: what the predicate says of its row."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        raise UnsupportedError(
            "a predicate over metadata.parquet needs pyarrow",
            remedy="pip install pyarrow, or filter by a field: filter(predicate, field=...)",
        ) from None
    found = _find(dataset) if path is None else {os.fspath(path): _read(os.fspath(path))}
    table = pyarrow.concat_tables([pyarrow.parquet.read_table(file) for file in found.values()])
    if isinstance(predicate, pyarrow.compute.Expression):
        numbered = table.append_column("__row", pyarrow.array(numpy.arange(table.num_rows)))
        held = numpy.zeros(table.num_rows, bool)
        held[numbered.filter(predicate).column("__row").to_numpy()] = True
    elif by == "table":
        held = numpy.asarray(predicate(table)).astype(bool)
        if held.shape != (table.num_rows,):
            raise ValueError(f"the predicate gave {held.shape} for {table.num_rows} rows")
    else:
        rows = (row for batch in table.to_batches() for row in batch.to_pylist())
        held = numpy.fromiter((bool(predicate(row)) for row in rows), bool, table.num_rows)
    return numpy.asarray(held[_rows_of(dataset, table, next(iter(found)))])


def _read(path: str) -> Any:
    """What pyarrow reads the table from: its path, or its bytes where it is on the network."""
    here = local_path(path)
    if here is not None:
        return here
    import pyarrow

    return pyarrow.BufferReader(_core.remote_get(context(), os.fsencode(path), MOST_BYTES))


def _find(dataset: Dataset) -> dict[str, Any]:
    """metadata.parquet of each folder that the sources name: where it is, and what to read."""
    found: dict[str, Any] = {}
    looked: dict[str, None] = {}
    for source in dataset._recipe.located():
        here = local_path(source)
        for path in _beside_uri(source) if here is None else [_beside_path(here)]:
            file = found.get(path) or (None if path in looked else _read_if_there(path))
            looked[path] = None
            if file is not None:
                found[path] = file
                break
    if not found:
        raise NotFoundError(
            f"there is no {NAME} beside the data (looked for {', '.join(looked)})",
            object=next(iter(looked)),
            remedy="say where it is: filter(predicate, metadata=PATH)",
        )
    return found


def _read_if_there(path: str) -> Any:
    if local_path(path) is not None:
        return path if os.path.isfile(path) else None
    try:
        return _read(path)
    except (NotFoundError, DeniedError):  # S3 says so of what is not there where it may not list
        return None


def _beside_path(source: str) -> str:
    folder = source if os.path.isdir(source) else os.path.dirname(source) or "."
    return os.path.join(folder, NAME)


def _beside_uri(source: str) -> list[str]:
    """Where it may lie: in what the source names, if that is a folder, and beside it."""
    source = source.partition("?")[0] if source.startswith("http") else source
    plain = re.split(r"[*?\[{]", source, maxsplit=1)[0]  # what is not a pattern
    beside = f"{plain.rpartition('/')[0]}/{NAME}"
    return [beside] if plain != source or source.endswith("/") else [f"{source}/{NAME}", beside]


def _rows_of(dataset: Dataset, table: Any, path: str) -> numpy.ndarray:
    """The row of each sample: by key, or by shard and key where keys repeat."""
    if "key" not in table.column_names:
        raise MismatchError(f"{path} has no column key", object=path)
    keys = table.column("key").to_pylist()
    wanted: list[Any] = dataset.keys()
    if len(set(keys)) < len(keys) and "shard" in table.column_names:
        shards = [os.path.basename(str(shard)) for shard in table.column("shard").to_pylist()]
        keys = list(zip(shards, keys, strict=True))
        wanted = [(_shard(dataset, i), key) for i, key in enumerate(wanted)]
    row_of = {key: row for row, key in enumerate(keys)}
    try:
        return numpy.fromiter((row_of[key] for key in wanted), numpy.int64, len(wanted))
    except KeyError as missing:
        raise MismatchError(
            f"{path} has no row for the sample {missing}",
            object=path,
            remedy="make the table anew, or give another with metadata=PATH",
        ) from None


def _shard(dataset: Dataset, i: int) -> str:
    for field in dataset.fields:
        place = dataset.place(i, field)
        if place is not None:
            return os.path.basename(place[0])
    return ""
