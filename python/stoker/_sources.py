"""What a user packs -- files, data frames, streams, generators -- as named Arrow streams."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from . import _tables
from ._remote_file import shown
from .errors import MismatchError


def is_path(source: Any) -> bool:
    """Whether it names files."""
    return isinstance(source, (str, bytes, os.PathLike))


def is_stream(source: Any) -> bool:
    """Whether it is a table for Arrow's C stream interface: pandas, polars, DuckDB, pyarrow."""
    return hasattr(source, "__arrow_c_stream__")


def _is_batch(item: Any) -> bool:
    return hasattr(item, "__arrow_c_array__")


class Tables:
    """An iterator of (name, stream) over anything that may be packed.

    Attributes:
        rows: of all tables; 0: not known.
        own_names: names are the entities' own; else they are of files.
    """

    def __init__(
        self,
        sources: Any,
        columns: Sequence[str] | None,
        keys: Sequence[str] | None,
        memory: int,
        entity: str | None = None,
    ) -> None:
        self.rows = 0
        self.own_names = True
        self._options = columns, keys, memory, entity
        self._failure: BaseException | None = None
        self._files: _tables.FileTables | None = None
        self._parts = self._begin(sources)

    @property
    def failure(self) -> BaseException | None:
        """What was raised while a stream was read: Arrow passes only its words on."""
        return self._failure or (None if self._files is None else self._files.failure)

    def __iter__(self) -> Iterator[tuple[bytes, Any]]:
        return self._parts

    def close(self) -> None:
        """Ends what reads ahead."""
        if self._files is not None:
            self._files.close()

    def _begin(self, sources: Any) -> Iterator[tuple[bytes, Any]]:
        if is_path(sources):
            return self._open([sources])
        if isinstance(sources, Mapping) and sources and all(map(is_path, sources.values())):
            return self._open_named(sources)
        if is_stream(sources):
            self.rows = _rows_of(sources)
            return iter([(b"table", sources)])
        if isinstance(sources, Mapping):
            self.rows = _sum(_rows_of(table) for table in sources.values())
            return self._named(sources)
        if isinstance(sources, Sequence):
            if not sources:
                raise ValueError("there is no source to pack")
            if all(is_path(source) for source in sources):
                return self._open(sources)
            self.rows = _sum(_rows_of(table) for table in sources)
        if isinstance(sources, Iterable):
            return self._each(iter(sources))
        raise TypeError(
            f"{type(sources).__name__} is no table: give paths, a data frame, an object with "
            "__arrow_c_stream__, a dict of such, or an iterator of record batches"
        )

    def _open(self, paths: Sequence[Any]) -> Iterator[tuple[bytes, Any]]:
        names = [os.fsdecode(path) for path in paths]
        self._files, self.rows = _tables.open_tables(names, *self._options)
        self.own_names = False
        return self._files

    def _open_named(self, paths: Mapping[Any, Any]) -> Iterator[tuple[bytes, Any]]:
        """A file an entity."""
        named = {name: os.fsdecode(path) for name, path in paths.items()}
        if len(_tables.find_files(list(named.values()))) != len(named):
            for name, path in named.items():
                if len(_tables.find_files([path])) != 1:
                    raise ValueError(f"{name} is {shown(path)}, which is more than one file")
        files = self._open(list(paths.values()))
        self.own_names = True
        return ((_encoded(str(name)), table) for name, (_, table) in zip(paths, files, strict=True))

    def _named(self, sources: Mapping[Any, Any]) -> Iterator[tuple[bytes, Any]]:
        for name, table in sources.items():
            yield _encoded(str(name)), self._table(table, str(name))

    def _each(self, items: Iterator[Any]) -> Iterator[tuple[bytes, Any]]:
        """Tables, pairs (name, table), or batches, which make one table together."""
        for number, item in enumerate(items):
            name = f"table {number}"
            if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
                name, item = item
            elif _is_batch(item) and not hasattr(item, "to_batches"):
                yield name.encode(), self._batches(item, items, name)
                return
            yield _encoded(name), self._table(item, name)

    def _table(self, table: Any, name: str) -> Any:
        if is_stream(table):
            return table
        if _is_batch(table):
            return self._batches(table, iter(()), name)
        if isinstance(table, Iterator):
            first = next(table, None)
            if first is not None and _is_batch(first):
                return self._batches(first, table, name)
        raise TypeError(f"{name} is {type(table).__name__}, which is no table of Arrow's")

    def _batches(self, first: Any, rest: Iterator[Any], name: str) -> Any:
        """Record batches, one after the other, as a stream. Each is checked against the first: the
        stream tells its schema only once."""
        import pyarrow

        first = pyarrow.record_batch(first)

        def each() -> Iterator[Any]:
            try:
                yield first
                for number, item in enumerate(rest, 1):
                    batch = pyarrow.record_batch(item)
                    if not batch.schema.equals(first.schema):
                        raise MismatchError(
                            f"batch {number} of {name} has other columns than the first: "
                            f"{_words(batch.schema)}; before: {_words(first.schema)}",
                            remedy="give batches of one schema",
                        )
                    yield batch
            except GeneratorExit:
                raise
            except BaseException as error:
                self._failure = error
                raise

        return pyarrow.RecordBatchReader.from_batches(first.schema, each())


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _words(schema: Any) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _rows_of(table: Any) -> int:
    """How many rows a table has, where it says so; else 0."""
    for name in ("num_rows", "height"):
        rows = getattr(table, name, None)
        if isinstance(rows, int):
            return rows
    shape = getattr(table, "shape", None)
    is_known = type(table).__module__.startswith("pandas") and isinstance(shape, tuple)
    return int(shape[0]) if is_known and shape else 0


def _sum(counts: Iterable[int]) -> int:
    """The sum, where all are known."""
    known = list(counts)
    return sum(known) if all(known) else 0
