"""Tables in files, opened with pyarrow: Parquet, CSV, ORC and Arrow, read ahead of whoever packs.

Small files are decoded whole, two at a time. Large ones are streams of batches, and one thread is a
batch or two ahead. What waits stays within a bound, whatever the files hold. A file is read once.
"""

from __future__ import annotations

import glob
import logging
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from .errors import (
    CorruptError,
    DeniedError,
    NotFoundError,
    ReadError,
    StokerError,
    UnsupportedError,
)

log = logging.getLogger("stoker")

DECODERS = 2  # threads that decode small files
AHEAD = 6  # files that are decoded or being decoded before they are asked for
BATCH_ROWS = 1 << 16
MAX_COUNTED = 16  # files whose footers are read before the first row, to count all rows
DEFAULT_MEMORY = 64 << 20

# How a name ends, and what it is then.
_KINDS = {
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".csv": "CSV",
    ".csv.gz": "CSV",
    ".csv.bz2": "CSV",
    ".csv.zst": "CSV",
    ".orc": "ORC",
    ".arrow": "Arrow",
    ".arrows": "Arrow",
    ".feather": "Arrow",
    ".ipc": "Arrow",
}


def fail(
    what: str, path: str, kind: type[StokerError] = CorruptError, remedy: str | None = None
) -> StokerError:
    """An error about one file, in the form of those of the library."""
    where: dict[str, Any] = {"what": what, "object": path}
    if remedy:
        where["remedy"] = remedy
    return kind(f"{what} (object {path})", **where)


def kind_of(path: str) -> str | None:
    """ "Parquet", "CSV", "ORC" or "Arrow", by the name; None: it has no such name."""
    name = path.lower()
    return next((kind for suffix, kind in _KINDS.items() if name.endswith(suffix)), None)


def find_files(sources: Sequence[str]) -> list[str]:
    """The files that paths, folders and globs name; those of a folder by name."""
    files: list[str] = []
    for source in sources:
        source = source.removeprefix("file://")
        if os.path.exists(source):
            named = [source]
        elif glob.has_magic(source):
            named = sorted(glob.glob(source, recursive=True))
        else:
            named = []
        if not named:
            raise fail("there is no such file or folder", source, NotFoundError)
        for path in named:
            files += _walk(path) if os.path.isdir(path) else [_checked(path)]
    return files


def _walk(folder: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise fail(f"the folder cannot be listed: {error.strerror}", folder, ReadError) from None
    if "all_features.mmap" in names:
        remedy = "keep series out of the folder of their sources, or name these: '*.parquet'"
        raise fail("this is a series, and no folder of tables", folder, UnsupportedError, remedy)
    files: list[str] = []
    for name in names:
        path = os.path.join(folder, name)
        if name[0] in "._":  # hidden, _SUCCESS, _metadata
            continue
        files += _walk(path) if os.path.isdir(path) else [_checked(path)]
    if not files:
        raise fail("the folder holds no table", folder, NotFoundError)
    return files


def _checked(path: str) -> str:
    if kind_of(path) is None:
        raise fail(
            "this is no table that can be read, by its name",
            path,
            UnsupportedError,
            f"names end in {', '.join(_KINDS)}; a glob such as '*.parquet' picks some of a folder",
        )
    return path


def open_tables(
    sources: Sequence[str],
    columns: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    memory: int = 0,
    entity: str | None = None,
) -> tuple[FileTables, int]:
    """The tables that these names stand for, and how many rows they have (0: not known).

    columns: those that are wanted; None: all. keys: columns that are named for what they are
    (entity, time and so on); with columns None, of the others only numbers are wanted. entity: the
    column that names entities; a CSV file gives it as text, so that 007 and 7 are two of them.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise UnsupportedError(
            "reading tables needs pyarrow", remedy="pip install 'stoker[arrow]'"
        ) from None
    tables = FileTables(find_files(sources), columns, keys, memory or DEFAULT_MEMORY, entity)
    return tables, tables.rows


def _is_number(type_: Any) -> bool:
    from pyarrow import types

    kinds = types.is_integer, types.is_floating, types.is_boolean, types.is_decimal
    return any(is_kind(type_) for is_kind in kinds)


def _row_bytes(schema: Any, names: Sequence[str] | None) -> int:
    """What a row takes once decoded; 32 bytes for a text."""
    total = 0
    for field in schema:
        if names is None or field.name in names:
            try:
                total += field.type.bit_width // 8 or 1
            except ValueError:
                total += 32
    return max(total, 1)


class FileTables:
    """An iterator of (name, stream) over files.

    Attributes:
        rows: of all of them, or about so many; 0: not known.
        failure: what reading a stream has raised; pyarrow passes only its words on.
    """

    def __init__(
        self,
        files: Sequence[str],
        columns: Sequence[str] | None,
        keys: Sequence[str] | None,
        memory: int,
        entity: str | None,
    ) -> None:
        self.failure: BaseException | None = None
        self._columns = None if columns is None else list(dict.fromkeys(columns))
        self._keys = None if keys is None else set(keys)
        self._entity = entity
        self._small = memory // (2 * AHEAD)  # most bytes of a file that is decoded whole
        self._csv_types: dict[str, Any] | None = None
        self._first: frozenset[str] | None = None  # columns that the first file was asked for
        self._files = iter(files)
        self._decoders = ThreadPoolExecutor(DECODERS, "stoker-tables")
        self._streamer = ThreadPoolExecutor(1, "stoker-stream")
        self._ahead: deque[tuple[str, Future[Any]]] = deque()
        try:
            first_csv = next((path for path in files if kind_of(path) == "CSV"), None)
            if first_csv is not None:
                self._csv_types = self._told(first_csv, self._infer_csv)
            self._begin()  # the decoders work while rows are counted
            self.rows = self._count(files)
        except BaseException:
            self.close()
            raise

    # The iterator

    def __iter__(self) -> FileTables:
        return self

    def _begin(self) -> None:
        while len(self._ahead) < AHEAD:
            path = next(self._files, None)
            if path is None:
                break
            opened = self._decoders.submit(self._told, path, self._open)
            self._ahead.append((path, opened))
            if self._first is None:  # what it has, the others are measured by
                wait([opened])
                self._first = self._first or frozenset()

    def __next__(self) -> tuple[bytes, Any]:
        self._begin()
        if not self._ahead:
            raise StopIteration
        path, opened = self._ahead.popleft()
        return os.fsencode(path), opened.result()

    def close(self) -> None:
        """Stops reading ahead and gives memory back."""
        import pyarrow

        self._files = iter(())
        self._ahead.clear()
        self._decoders.shutdown(cancel_futures=True)
        self._streamer.shutdown(cancel_futures=True)
        pyarrow.default_memory_pool().release_unused()

    def _told(self, path: str, read: Callable[[str], Any]) -> Any:
        """read(path), where what pyarrow raises becomes an error that names the file."""
        try:
            return read(path)
        except Exception as error:
            raise self._translated(path, error) from None

    def _translated(self, path: str, error: BaseException) -> BaseException:
        if isinstance(error, (StokerError, MemoryError)) or not isinstance(error, Exception):
            return error
        if isinstance(error, FileNotFoundError):
            return fail("there is no such file any more", path, NotFoundError)
        if isinstance(error, PermissionError):
            return fail("no permission to read the file", path, DeniedError)
        words = (str(error) or type(error).__name__).splitlines()[0].rstrip(". ")
        what = f"this is no {kind_of(path)} file that can be read: {words}"
        return fail(what, path, CorruptError, "write the file anew, or leave it out")

    def _open(self, path: str) -> Any:
        readers = {
            "Parquet": self._parquet,
            "CSV": self._csv,
            "ORC": self._orc,
            "Arrow": self._arrow,
        }
        return readers[kind_of(path) or ""](path)

    def _project(self, schema: Any) -> list[str] | None:
        """The columns to read; None: all. Where one that is wanted is missing, all are shown, so
        that whoever complains can name what is there; so is one that was a number before."""
        if self._columns is not None:
            there = set(schema.names)
            return self._columns if there.issuperset(self._columns) else None
        if self._keys is None:
            return None
        known = self._keys | (self._first or frozenset())
        kept = [field.name for field in schema if field.name in known or _is_number(field.type)]
        if self._first is None:
            self._first = frozenset(kept)
            left = [f"{field.name} ({field.type})" for field in schema if field.name not in kept]
            if left and not self._keys.issuperset(kept):
                log.warning("left out of the features: %s", ", ".join(left))
        is_of_use = len(kept) < len(schema) and not self._keys.issuperset(kept)
        return kept if is_of_use else None

    def _batch_rows(self, row_bytes: int) -> int:
        return max(1024, min(BATCH_ROWS, self._small // row_bytes))

    def _stream(self, path: str, schema: Any, batches: Iterator[Any]) -> Any:
        """A stream of batches, of which two are read ahead."""
        import pyarrow

        def ahead() -> Iterator[Any]:
            waiting = deque(self._streamer.submit(next, batches, None) for _ in range(2))
            try:
                while (batch := waiting.popleft().result()) is not None:
                    waiting.append(self._streamer.submit(next, batches, None))
                    yield batch
            except GeneratorExit:
                raise
            except BaseException as error:
                self.failure = self._translated(path, error)
                raise self.failure from None

        return pyarrow.RecordBatchReader.from_batches(schema, ahead())

    # Parquet

    def _count(self, files: Sequence[str]) -> int:
        """Rows of all files; where they are many, what the first ones and the sizes suggest."""
        from pyarrow import parquet

        if any(kind_of(path) != "Parquet" for path in files):
            return 0
        rows = size = 0
        for path in files[:MAX_COUNTED]:
            rows += self._told(path, parquet.read_metadata).num_rows
            size += self._told(path, os.path.getsize)
        if len(files) <= MAX_COUNTED or not size:
            return rows
        return int(rows * sum(self._told(path, os.path.getsize) for path in files) / size)

    def _parquet(self, path: str) -> Any:
        from pyarrow import parquet

        # Plain reads: as fast here as a memory map, and a file that shrinks is an error, no signal.
        options: dict[str, Any] = {"pre_buffer": False}
        options["page_checksum_verification"] = True  # where pages have one
        file = parquet.ParquetFile(path, **options)
        metadata, schema = file.metadata, file.schema_arrow
        names = self._project(schema)
        row_bytes = _row_bytes(schema, names)
        packed = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
        if max(metadata.num_rows * row_bytes, packed) <= self._small:
            return file.read(columns=names, use_threads=False)
        file = parquet.ParquetFile(path, metadata=metadata, buffer_size=1 << 16, **options)
        batches = file.iter_batches(self._batch_rows(row_bytes), columns=names, use_threads=True)
        if names is not None:
            schema = _picked(schema, names)
        return self._stream(path, schema, iter(batches))

    # CSV

    def _infer_csv(self, path: str) -> dict[str, Any]:
        """Types that hold for all files: a column of whole numbers in one may have fractions in
        another, and an empty one says nothing. Names of entities are text, digits or not."""
        import pyarrow
        from pyarrow import csv

        with csv.open_csv(path) as reader:
            schema = reader.schema
        types = {}
        for field in schema:
            is_whole = pyarrow.types.is_integer(field.type)
            free = self._keys is not None and field.name not in self._keys
            if pyarrow.types.is_null(field.type) or (is_whole and free):
                types[field.name] = pyarrow.float64()
            else:
                types[field.name] = field.type
        if self._entity is not None:
            types[self._entity] = pyarrow.string()
        return types

    def _csv(self, path: str) -> Any:
        from pyarrow import csv

        types = self._csv_types or {}
        is_small = 4 * os.path.getsize(path) <= self._small and path.lower().endswith(".csv")
        convert = csv.ConvertOptions(column_types=types)
        if is_small:
            reading = csv.ReadOptions(use_threads=False)
            table = csv.read_csv(path, read_options=reading, convert_options=convert)
            names = self._project(table.schema)
            return table if names is None else table.select(names)
        reader = csv.open_csv(path, convert_options=convert)
        names = self._project(reader.schema)
        if names is None:
            return self._stream(path, reader.schema, iter(reader))
        picked = (batch.select(names) for batch in reader)
        return self._stream(path, _picked(reader.schema, names), picked)

    # ORC and Arrow

    def _orc(self, path: str) -> Any:
        from pyarrow import orc

        file = orc.ORCFile(path)
        names = self._project(file.schema)
        schema = file.schema if names is None else _picked(file.schema, names)
        row_bytes = _row_bytes(file.schema, names)
        rows = self._batch_rows(row_bytes)

        def batches() -> Iterator[Any]:
            for stripe in range(file.nstripes):
                batch = file.read_stripe(stripe, columns=names).select(schema.names)
                for first in range(0, batch.num_rows, rows):
                    yield batch.slice(first, rows)

        if file.nrows * row_bytes <= self._small:
            return file.read(columns=names).select(schema.names)
        return self._stream(path, schema, batches())

    def _arrow(self, path: str) -> Any:
        """A file of large batches is mapped: they cost nothing until they are looked at. Others are
        read plainly, so that a file that shrinks meanwhile is an error, and no signal."""
        import pyarrow
        from pyarrow import ipc

        try:
            reader = ipc.open_file(pyarrow.OSFile(path))
        except pyarrow.ArrowInvalid:
            stream = ipc.open_stream(pyarrow.OSFile(path))
            return self._stream(path, stream.schema, iter(stream))
        names = self._project(reader.schema)
        fields = [reader.schema.get_field_index(name) for name in names or ()]
        is_large = os.path.getsize(path) > self._small * max(reader.num_record_batches, 1)
        source = pyarrow.memory_map(path) if is_large else pyarrow.OSFile(path)
        reader = ipc.open_file(source, options=ipc.IpcReadOptions(included_fields=fields))
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
        return self._stream(path, reader.schema, batches)


def _picked(schema: Any, names: Sequence[str]) -> Any:
    import pyarrow

    return pyarrow.schema([schema.field(name) for name in names])
