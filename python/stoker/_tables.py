"""Tables in files, opened with pyarrow: Parquet, CSV, ORC and Arrow, read ahead of whoever packs.

Small files are decoded whole, two at a time. Large ones are streams of batches, and one thread is a
batch or two ahead. What waits stays within a bound, whatever the files hold. A file is read once.
Files of stores are the same files: only where their bytes come from is another.
"""

from __future__ import annotations

import glob
import logging
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from . import _remote_file
from ._remote_file import RemoteFile, Store, local_path, name_of, shown
from .errors import (
    CorruptError,
    DeniedError,
    NotFoundError,
    ReadError,
    StaleError,
    StokerError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from ._core import Context

log = logging.getLogger("stoker")

DECODERS = 2  # threads that decode small files
FETCHERS = 32  # threads that wait for stores
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


_PACKINGS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
SERIES_FILE = "all_features.mmap"
HIDDEN = (".", "_")  # how names begin that are passed over: hidden ones, _SUCCESS, _metadata


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


@dataclass(frozen=True)
class LocalTable:
    """A file of this machine; its name is its path."""

    name: str

    def size(self) -> int:
        return os.path.getsize(self.name)


@dataclass(frozen=True)
class RemoteTable:
    """A file of a store; its name is its URI as it may be shown."""

    name: str
    store: Store
    number: int

    def size(self) -> int:
        return self.store.files[self.number][1]

    def read(self, offset: int, length: int) -> bytes:
        try:
            return self.store.read(self.number, offset, length)
        except StaleError:
            remedy = "pack again when nobody writes to it"
            raise fail("the object changed meanwhile", self.name, StaleError, remedy) from None


Table = LocalTable | RemoteTable


def find_files(sources: Sequence[str], context: Context | None = None) -> list[Table]:
    """The files that paths, URIs, folders and globs name; those of a folder by name."""
    files: list[Table] = []
    for is_local, some in groupby(sources, lambda source: local_path(source) is not None):
        if is_local:
            for source in some:
                files += _find_local(local_path(source) or "")
        else:
            files += _find_remote(list(some), context)
    return files


def _find_local(source: str) -> list[Table]:
    if os.path.exists(source):
        named = [source]
    elif glob.has_magic(source):
        named = sorted(glob.glob(source, recursive=True))
    else:
        named = []
    if not named:
        raise fail("there is no such file or folder", source, NotFoundError)
    files: list[Table] = []
    for path in named:
        files += _walk(path) if os.path.isdir(path) else [LocalTable(_checked(path))]
    return files


def _walk(folder: str) -> list[Table]:
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise fail(f"the folder cannot be listed: {error.strerror}", folder, ReadError) from None
    if SERIES_FILE in names:
        raise _is_series(folder)
    files: list[Table] = []
    for name in names:
        path = os.path.join(folder, name)
        if name[0] in HIDDEN:
            continue
        files += _walk(path) if os.path.isdir(path) else [LocalTable(_checked(path))]
    if not files:
        raise fail("the folder holds no table", folder, NotFoundError)
    return files


def _find_remote(uris: Sequence[str], context: Context | None) -> list[Table]:
    try:
        store = Store(uris, context)
    except StokerError as error:
        error.object = error.object or shown(uris[0])  # whoever tells it adds no secret
        raise
    files: list[Table] = []
    try:
        for folder, found in groupby(enumerate(store.files), lambda item: item[1][2]):
            numbers = [number for number, _ in found]
            if folder is not None:
                numbers = _in_folder(store, numbers, folder)
            for number in numbers:
                name = name_of(store.files[number][0])
                files.append(RemoteTable(_checked(name), store, number))
    except BaseException:
        store.close()
        raise
    return files


def _in_folder(store: Store, numbers: Sequence[int], folder: str) -> list[int]:
    """Those that are tables, in the order in which a folder of this machine is walked."""
    parts = {number: store.files[number][0][len(folder) + 1 :].split("/") for number in numbers}
    plain = [one for one in numbers if not any(part.startswith(HIDDEN) for part in parts[one])]
    for number in plain:
        if parts[number][-1] == SERIES_FILE:
            raise _is_series(store.files[number][0].rpartition("/")[0])
    if not plain:
        raise fail("the folder holds no table", folder, NotFoundError)
    return sorted(plain, key=parts.__getitem__)


def _is_series(folder: str) -> StokerError:
    remedy = "keep series out of the folder of their sources, or name these: '*.parquet'"
    return fail("this is a series, and no folder of tables", folder, UnsupportedError, remedy)


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
    context: Context | None = None,
) -> tuple[FileTables, int]:
    """The tables that these names stand for, and how many rows they have (0: not known).

    columns: those that are wanted; None: all. keys: columns that are named for what they are
    (entity, time and so on); with columns None, of the others only numbers are wanted. entity: the
    column that names entities; a CSV file gives it as text, so that 007 and 7 are two of them.
    context: whose hooks are asked while a store is waited for; None: the process's.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise UnsupportedError(
            "reading tables needs pyarrow", remedy="pip install 'stoker[arrow]'"
        ) from None
    files = find_files(sources, context)
    tables = FileTables(files, columns, keys, memory or DEFAULT_MEMORY, entity)
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
        files: Sequence[Table],
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
        self._room = memory // 4  # for what is fetched ahead of the file that is a stream just now
        self._window = max(
            _remote_file.LEAST_WINDOW, min(self._small // 8, _remote_file.MOST_WINDOW)
        )
        self._failures: dict[str, BaseException] = {}  # of files of stores, by name
        self._csv_types: dict[str, Any] | None = None
        self._first: frozenset[str] | None = None  # columns that the first file was asked for
        self._files = iter(files)
        self._stores = {
            id(file.store): file.store for file in files if isinstance(file, RemoteTable)
        }
        self._decoders = ThreadPoolExecutor(DECODERS, "stoker-tables")
        self._streamer = ThreadPoolExecutor(1, "stoker-stream")
        self._fetchers = ThreadPoolExecutor(FETCHERS, "stoker-fetch")
        self._ahead: deque[tuple[Table, Future[Any]]] = deque()
        try:
            first_csv = next((file for file in files if kind_of(file.name) == "CSV"), None)
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
            file = next(self._files, None)
            if file is None:
                break
            opened = self._decoders.submit(self._told, file, self._open)
            self._ahead.append((file, opened))
            if self._first is None:  # what it has, the others are measured by
                wait([opened])
                self._first = self._first or frozenset()

    def __next__(self) -> tuple[bytes, Any]:
        self._begin()
        if not self._ahead:
            raise StopIteration
        file, opened = self._ahead.popleft()
        return os.fsencode(file.name), opened.result()

    def close(self) -> None:
        """Stops reading ahead and gives memory back."""
        import pyarrow

        self._files = iter(())
        self._ahead.clear()
        stores, self._stores = list(self._stores.values()), {}
        for store in stores:
            store.stop()
        self._decoders.shutdown(cancel_futures=True)
        self._streamer.shutdown(cancel_futures=True)
        self._fetchers.shutdown(cancel_futures=True)
        for store in stores:
            store.close()
        pyarrow.default_memory_pool().release_unused()

    def _told(self, file: Table, read: Callable[[Table], Any]) -> Any:
        """read(file), where what pyarrow raises becomes an error that names the file."""
        try:
            return read(file)
        except Exception as error:
            raise self._translated(file, error) from None

    def _translated(self, file: Table, error: BaseException) -> BaseException:
        error = self._failures.pop(file.name, error)
        if isinstance(error, (StokerError, MemoryError)) or not isinstance(error, Exception):
            return error
        if isinstance(error, FileNotFoundError):
            return fail("there is no such file any more", file.name, NotFoundError)
        if isinstance(error, PermissionError):
            return fail("no permission to read the file", file.name, DeniedError)
        words = (str(error) or type(error).__name__).splitlines()[0].rstrip(". ")
        what = f"this is no {kind_of(file.name)} file that can be read: {words}"
        return fail(what, file.name, CorruptError, "write the file anew, or leave it out")

    def _open(self, file: Table) -> Any:
        readers = {
            "Parquet": self._parquet,
            "CSV": self._csv,
            "ORC": self._orc,
            "Arrow": self._arrow,
        }
        return readers[kind_of(file.name) or ""](file)

    # Where bytes come from

    def _source(self, file: Table, most: int) -> Any:
        """What pyarrow reads from: a path, or of a store all bytes where they are at most so many,
        else a file that fetches them."""
        import pyarrow

        if isinstance(file, LocalTable):
            return file.name
        size = file.size()
        if size <= most:
            return pyarrow.BufferReader(file.read(0, size))
        failed = partial(self._failures.setdefault, file.name)
        return RemoteFile(file.read, size, self._fetchers, failed)

    def _source_in_order(self, file: Table) -> Any:
        """The same, for who reads it from its begin to its end."""
        source = self._source(file, self._small)
        if isinstance(source, RemoteFile):
            source.expect_stream(self._window, self._room)
        return source

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

    def _stream(self, file: Table, schema: Any, batches: Iterator[Any]) -> Any:
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
                self.failure = self._translated(file, error)
                raise self.failure from None

        return pyarrow.RecordBatchReader.from_batches(schema, ahead())

    # Parquet

    def _count(self, files: Sequence[Table]) -> int:
        """Rows of all files; where they are many, what the first ones and the sizes suggest."""
        from pyarrow import parquet

        if any(kind_of(file.name) != "Parquet" for file in files):
            return 0
        rows = size = 0
        for file in files[:MAX_COUNTED]:
            footer = self._told(file, lambda one: parquet.read_metadata(self._source(one, 0)))
            rows += footer.num_rows
            size += self._told(file, _size_of)
        if len(files) <= MAX_COUNTED or not size:
            return rows
        return int(rows * sum(self._told(file, _size_of) for file in files) / size)

    def _parquet(self, file: Table) -> Any:
        from pyarrow import parquet

        # Plain reads: as fast here as a memory map, and a file that shrinks is an error, no signal.
        options: dict[str, Any] = {"pre_buffer": False}
        options["page_checksum_verification"] = True  # where pages have one
        source = self._source(file, self._small)
        opened = parquet.ParquetFile(source, **options)
        metadata, schema = opened.metadata, opened.schema_arrow
        names = self._project(schema)
        row_bytes = _row_bytes(schema, names)
        packed = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
        if max(metadata.num_rows * row_bytes, packed) <= self._small:
            return opened.read(columns=names, use_threads=False)
        rows = self._batch_rows(row_bytes)
        if isinstance(source, RemoteFile):
            batch, size = rows * row_bytes, file.size()
            source.expect(_remote_file.parquet_lanes(metadata, names, size, self._room, batch))
        opened = parquet.ParquetFile(source, metadata=metadata, buffer_size=1 << 16, **options)
        batches = opened.iter_batches(rows, columns=names, use_threads=True)
        if names is not None:
            schema = _picked(schema, names)
        return self._stream(file, schema, iter(batches))

    # CSV

    def _unpacked(self, file: Table, source: Any) -> Any:
        """pyarrow unpacks what it is given the path of, by its name; what is no path, we do."""
        import pyarrow

        packing = _PACKINGS.get(os.path.splitext(file.name.lower())[1])
        if packing is None or isinstance(file, LocalTable):
            return source
        return pyarrow.CompressedInputStream(source, packing)

    def _infer_csv(self, file: Table) -> dict[str, Any]:
        """Types that hold for all files: a column of whole numbers in one may have fractions in
        another, and an empty one says nothing. Names of entities are text, digits or not."""
        import pyarrow
        from pyarrow import csv

        source = self._source(file, self._small)
        if isinstance(source, RemoteFile):  # only its head is wanted
            source.expect_jumps(self._window, self._window)
        with csv.open_csv(self._unpacked(file, source)) as reader:
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

    def _csv(self, file: Table) -> Any:
        from pyarrow import csv

        types = self._csv_types or {}
        is_small = 4 * file.size() <= self._small and file.name.lower().endswith(".csv")
        convert = csv.ConvertOptions(column_types=types)
        source = self._unpacked(file, self._source_in_order(file))
        if is_small:
            reading = csv.ReadOptions(use_threads=False)
            table = csv.read_csv(source, read_options=reading, convert_options=convert)
            names = self._project(table.schema)
            return table if names is None else table.select(names)
        reader = csv.open_csv(source, convert_options=convert)
        names = self._project(reader.schema)
        if names is None:
            return self._stream(file, reader.schema, iter(reader))
        picked = (batch.select(names) for batch in reader)
        return self._stream(file, _picked(reader.schema, names), picked)

    # ORC and Arrow

    def _orc(self, file: Table) -> Any:
        from pyarrow import orc

        source = self._source(file, self._small)
        if isinstance(source, RemoteFile):  # its columns are read in turns, a little of each
            source.expect_jumps(min(self._window, 4 * _remote_file.LEAST_WINDOW), self._room)
        opened = orc.ORCFile(source)
        names = self._project(opened.schema)
        schema = opened.schema if names is None else _picked(opened.schema, names)
        row_bytes = _row_bytes(opened.schema, names)
        rows = self._batch_rows(row_bytes)

        def batches() -> Iterator[Any]:
            for stripe in range(opened.nstripes):
                batch = opened.read_stripe(stripe, columns=names).select(schema.names)
                for first in range(0, batch.num_rows, rows):
                    yield batch.slice(first, rows)

        if opened.nrows * row_bytes <= self._small:
            return opened.read(columns=names).select(schema.names)
        return self._stream(file, schema, batches())

    def _arrow(self, file: Table) -> Any:
        """A file of large batches is mapped: they cost nothing until they are looked at. Others are
        read plainly, so that a file that shrinks meanwhile is an error, and no signal."""
        import pyarrow
        from pyarrow import ipc

        remote = None if isinstance(file, LocalTable) else self._source_in_order(file)

        def source(is_large: bool = False) -> Any:
            if remote is not None:
                remote.seek(0)
                return remote
            return pyarrow.memory_map(file.name) if is_large else pyarrow.OSFile(file.name)

        try:
            reader = ipc.open_file(source())
        except pyarrow.ArrowInvalid:
            stream = ipc.open_stream(source())
            return self._stream(file, stream.schema, iter(stream))
        names = self._project(reader.schema)
        fields = [reader.schema.get_field_index(name) for name in names or ()]
        is_large = file.size() > self._small * max(reader.num_record_batches, 1)
        options = ipc.IpcReadOptions(included_fields=fields)
        reader = ipc.open_file(source(is_large), options=options)
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
        return self._stream(file, reader.schema, batches)


def _size_of(file: Table) -> int:
    return file.size()


def _picked(schema: Any, names: Sequence[str]) -> Any:
    import pyarrow

    return pyarrow.schema([schema.field(name) for name in names])
