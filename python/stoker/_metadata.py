"""Judges samples by the rows of metadata.parquet."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy

from .errors import MismatchError, NotFoundError, UnsupportedError

if TYPE_CHECKING:
    from .dataset import Dataset

NAME = "metadata.parquet"


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
    paths = [os.fspath(path)] if path is not None else _find(dataset)
    table = pyarrow.concat_tables([pyarrow.parquet.read_table(name) for name in paths])
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
    return numpy.asarray(held[_rows_of(dataset, table, paths[0])])


def _find(dataset: Dataset) -> list[str]:
    """metadata.parquet of each folder that the sources name."""
    folders = []
    for source in dataset._recipe.located():
        source = source.removeprefix("file://")
        if "://" in source:
            source = source.partition("?")[0]  # what may follow is no name, and may be a secret
        folders.append(source if os.path.isdir(source) else os.path.dirname(source) or ".")
    paths = [os.path.join(folder, NAME) for folder in dict.fromkeys(folders)]
    found = [path for path in paths if os.path.isfile(path)]
    if not found:
        raise NotFoundError(
            f"there is no {NAME} beside the data (looked for {', '.join(paths)})",
            object=paths[0],
            remedy="say where it is: filter(predicate, metadata=PATH)",
        )
    return found


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
