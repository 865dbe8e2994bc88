"""Datasets: samples behind one index."""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy

from . import _arrays, _core, _metadata
from ._batches import Assembler, Field
from ._context import Progress, context, progress_shown
from ._options import (
    Fields,
    Source,
    encode_names,
    parse_size,
    read_dtype,
    read_fields,
    read_names,
    read_sources,
    working_folder,
)
from .errors import StaleError
from .scaler import Scaler
from .series import Entities

# Datasets that came through a fork: left as they are, for their locks belong to the parent.
_inherited: list[_core.Dataset] = []


@dataclass(frozen=True)
class _Recipe:
    """How a dataset came about: what a worker needs to open the same one."""

    sources: tuple[str, ...]
    fields: tuple[str, ...] | None
    format: str | None
    dtype: str | None
    shape: tuple[int, ...] | None
    chunk_limit: int
    index: str | None
    folder: str  # the working folder then: what relative names are relative to
    subsets: tuple[tuple[Any, ...], ...] = ()
    windows: tuple[tuple[str, Any], ...] | None = None  # how a series is cut, where it was told
    cache: str | None = None
    cache_size: int = 0

    def located(self) -> list[str]:
        """The sources as this process finds them, whatever folder it works in now."""
        return [self._located(source) for source in self.sources]

    def _located(self, name: str) -> str:
        moved = self.folder != working_folder()
        return os.path.join(self.folder, name) if moved and "://" not in name else name

    def open(self, reindex: bool = False) -> _core.Dataset:
        handle = _core.Dataset(
            context(),
            [os.fsencode(source) for source in self.located()],
            fields=None if self.fields is None else [os.fsencode(name) for name in self.fields],
            format=self.format,
            dtype=self.dtype,
            shape=self.shape,
            chunk_limit=self.chunk_limit,
            index=None if self.index is None else self._located(self.index),
            reindex=reindex,
            windows=None if self.windows is None else dict(self.windows),
            cache=self._located(self.cache) if self.cache else self.cache,
            cache_size=self.cache_size,
        )
        for subset in self.subsets:
            handle = _take(handle, subset)
        return handle

    def reopen(self, fingerprint: bytes) -> _core.Dataset:
        """Opens it once more; refused when the samples are not those that had this fingerprint."""
        handle = self.open()
        if handle.fingerprint() != fingerprint:
            raise StaleError(
                "the dataset is not the one that was opened before: its files have changed",
                object=self.sources[0],
                remedy="open it again with stoker.open",
            )
        return handle


def _take(handle: _core.Dataset, subset: tuple[Any, ...]) -> _core.Dataset:
    """One step from a dataset to a part of it."""
    how, *arguments = subset
    if how == "split":
        shares, part, seed = arguments
        return handle.split(list(shares), part, seed)
    if how == "range":
        start, stop, step = arguments
        if step == 1:
            return handle.range(start, stop - start)
        positions = numpy.arange(start, stop, step, dtype=numpy.uint64)
    elif how == "bits":
        positions = numpy.flatnonzero(numpy.unpackbits(arguments[0])).astype(numpy.uint64)
    else:
        positions = arguments[0]
    return handle.select(positions)


def open(
    sources: Source | Sequence[Source],
    *,
    fields: Fields = None,
    format: str | None = None,
    dtype: Any = None,
    shape: Sequence[int] | None = None,
    chunk_limit: int | str | None = None,
    index: Source | None = None,
    reindex: bool = False,
    progress: Progress | bool | None = None,
    as_: str | None = None,
    window: int | None = None,
    horizon: int | None = None,
    stride: int | None = None,
    gap: int | None = None,
    min_history: int | None = None,
    pad: bool = False,
    split: str | None = None,
    features: str | Sequence[str] | None = None,
    labels: str | Sequence[str] | None = None,
    cache: Source | None = None,
    cache_size: int | str | None = None,
) -> Dataset:
    """Opens a dataset; the first time, an index of it is made.

    A folder made by :func:`pack_series` is a series: its samples are sliding windows, by entity,
    then by time. The fields are ``x`` (window, features) and ``y`` (horizon,) or (horizon, labels);
    ``x_mask`` with `pad`, ``static`` where there are statics; and by name in `fields`: ``entity``
    (its number in :attr:`Dataset.entities`), ``start`` (the window's first row, counted from the
    entity's first), ``time`` (of the window's last row) and ``y_time``.

    Fields that hold an image, a recording, a video or a point cloud (jpg, png, webp, wav, flac,
    ogg, mp3, mp4, pcd, ply and others) come decoded, as tensors; ``{"jpg": "bytes"}`` leaves them
    as they are stored. What is done with them on their way is the loader's `transforms`.

    Flat files of token numbers are opened with ``format="tokens"`` and a `window`; the field is
    ``tokens`` (window,). For a target that is the next token, take one more:
    ``x, y = w[:-1], w[1:]``.

    Args:
        sources: a path, a folder, a glob, a brace list (``"train-{0000..0999}.tar"``), a URI
            (``file://``, ``http://``, ``https://``, ``s3://``, ``gs://``, ``az://``,
            ``abfss://``; see docs/stores.md), or a list of them.
        fields: which fields to read. ``"jpg;png"`` is the first of the two that a sample has,
            ``"txt?"`` may be missing. A tuple makes samples and batches tuples; a str or a list
            makes them dicts; a dict says what each field is: ``{"blob": "tensor"}`` (tensor, int,
            text, json, bytes, image, audio, video, points; None: by its name). Default: all fields,
            as dicts.
        format: tar, npy, npz, raw, folder, series or tokens, where it should not be found out.
        dtype: raw arrays and tokens: the type of an element; torch's and numpy's types and names
            do.
        shape: raw arrays: the shape of one sample.
        chunk_limit: the most that a compressed shard may decode to (default 1 GiB).
        index: where to keep the index; default: beside the data, else in your cache folder; of
            data on the network: in your cache folder.
        reindex: make the index anew.
        progress: True for a bar, False for none, or a callable that is given (what, unit, done,
            total, bytes). Default: a bar on a terminal.
        as_: ``"torch"`` or ``"numpy"``; default: torch where it is installed.
        window: series: rows of ``x``; tokens: of a sample. Default here and below: what it was
            packed with.
        horizon: series: rows of ``y``; 0: no ``y``.
        stride: series and tokens: rows from one sample to the next.
        gap: series: rows between ``x`` and ``y``.
        min_history: series: least rows up to the window's end. Default: the window, or 1 with
            `pad`.
        pad: series: where the history is shorter than the window, zeros come before it, and
            ``x_mask`` is False there.
        split: series: ``"train"``, ``"val"`` or ``"test"``. No window reaches over the border of
            its split.
        features: series: columns of ``x``, in this order.
        labels: series: columns of ``y``.
        cache: data on the network: a folder of this machine where what was fetched is kept, shared
            by all its processes, so that the next epoch reads it from there; ``""``: none.
            Default: what STOKER_CACHE says, else none.
        cache_size: most that the cache may take, such as ``"200GiB"``. Default: what
            STOKER_CACHE_SIZE says, else a tenth of the disk.

    >>> import stoker
    >>> ds = stoker.open("data/shard-{0000..0001}.tar")
    >>> len(ds), list(ds.fields)
    (100, ['npy', 'cls'])
    """
    names = read_fields(fields)
    recipe = _Recipe(
        sources=tuple(read_sources(sources)),
        fields=None if names is None else tuple(names),
        format=format,
        dtype=read_dtype(dtype),
        shape=None if shape is None else tuple(operator.index(size) for size in shape),
        chunk_limit=0 if chunk_limit is None else parse_size(chunk_limit),
        index=None if index is None else os.fspath(index),
        folder=working_folder(),
        cache=None if cache is None else os.fspath(cache),
        cache_size=0 if cache_size is None else parse_size(cache_size),
        windows=_read_windows(
            bool(pad),
            split,
            {
                "window": window,
                "horizon": horizon,
                "stride": stride,
                "gap": gap,
                "min_history": min_history,
            },
            features=encode_names(read_names("features", features)),
            labels=encode_names(read_names("labels", labels)),
        ),
    )
    with progress_shown(progress):
        handle = recipe.open(reindex)
    return Dataset(recipe, handle, isinstance(fields, tuple), _arrays.resolve(as_))


def _read_windows(
    pad: bool, split: str | None, rows: dict[str, Any], **names: Any
) -> tuple[tuple[str, Any], ...] | None:
    """What was given; None: nothing."""
    told = {name: _read_rows(name, value) for name, value in rows.items() if value is not None}
    if split is not None and not isinstance(split, str):
        raise TypeError(f"split is {split!r}; it is the name of a part, such as 'train'")
    told |= {"pad": True} if pad else {}
    told |= {"split": split} if split is not None else {}
    told |= {name: value for name, value in names.items() if value is not None}
    return tuple(told.items()) or None


def _read_rows(name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {value!r}; it is a whole number of rows")
    rows = operator.index(value)
    if rows < 0:
        raise ValueError(f"{name} is {rows}; it cannot be below 0")
    if rows >= 1 << 63:
        raise ValueError(f"{name} is {rows}: more rows than can be counted")
    return rows


class Dataset:
    """Samples by number: what :func:`open` gives.

    A map-style dataset: ``len(ds)``, ``ds[i]`` (a dict, or a tuple), ``ds[10:20]`` (a smaller
    Dataset), iteration. It pickles, opens itself again in worker processes, and so works inside a
    ``torch.utils.data.DataLoader``. Samples are yours: they share no memory with it.

    >>> ds = stoker.open("data")
    >>> ds[0]["npy"].shape, ds[0]["cls"]
    (torch.Size([4, 4]), 0)
    """

    def __init__(self, recipe: _Recipe, handle: _core.Dataset, as_tuple: bool, as_: str) -> None:
        self._recipe = recipe
        self._open_handle = handle
        self._process = os.getpid()
        self._as = as_
        self._as_tuple = as_tuple
        self._length = len(handle)
        self._fields = {described[0]: Field(*described) for described in handle.fields()}
        self._assembler = Assembler(list(self._fields.values()), as_, as_tuple)

    @property
    def _handle(self) -> _core.Dataset:
        if self._process != os.getpid():
            _inherited.append(self._open_handle)
            self._open_handle = self._recipe.reopen(self._open_handle.fingerprint())
            self._process = os.getpid()
        return self._open_handle

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._recipe, self._handle.fingerprint(), self._as_tuple, self._as)

    def __repr__(self) -> str:
        names = ", ".join(self._fields)
        source = self._recipe.sources[0]
        if "://" in source:
            source = source.partition("?")[0]  # what may follow is no name, and may be a secret
        return f"<stoker.Dataset of {self._length} samples ({names}) from {source}>"

    # Looking

    def __len__(self) -> int:
        return self._length

    @property
    def fields(self) -> dict[str, Field]:
        """The fields by name; see :class:`Field`."""
        return dict(self._fields)

    @property
    def classes(self) -> list[str]:
        """The names of the class folders; their places are the numbers in the field ``cls``."""
        return self._handle.classes()

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits, the same for the same samples in the same order on any machine."""
        return self._handle.fingerprint().hex()

    @property
    def samples(self) -> numpy.ndarray:
        """The number that each sample has in the whole dataset (int64): a subset's say which."""
        return numpy.frombuffer(self._handle.numbers(), numpy.int64)

    # Series

    @functools.cached_property
    def _series(self) -> dict[str, Any] | None:
        return self._open_handle.series()

    def _of_series(self, name: str) -> Any:
        return None if self._series is None else self._series[name]

    @property
    def scaler(self) -> Scaler | None:
        """How the columns of a series were scaled; None where it is no series.

        ``ds.scaler.inverse(predictions)`` gives them in the units of the data; see
        :class:`Scaler`."""
        return self._made_scaler

    @functools.cached_property
    def _made_scaler(self) -> Scaler | None:
        if self._series is None:
            return None
        features, labels = self._series["features"], self._series["labels"]
        columns: dict[str, tuple[float, float]] = {}
        for names, center, scale in (features, labels):
            numbers = (numpy.frombuffer(column) for column in (center, scale))
            columns |= zip(names, zip(*numbers, strict=True), strict=True)
        center, scale = zip(*columns.values(), strict=True)
        return Scaler(self._series["kind"], list(columns), center, scale, features[0], labels[0])

    @property
    def features(self) -> tuple[str, ...]:
        """Series: the columns of ``x``."""
        return () if self._series is None else tuple(self._series["features"][0])

    @property
    def labels(self) -> tuple[str, ...]:
        """Series: the columns of ``y``."""
        return () if self._series is None else tuple(self._series["labels"][0])

    @property
    def statics(self) -> tuple[str, ...]:
        """Series: the columns of ``static``."""
        return tuple(self._of_series("statics") or ())

    @property
    def entities(self) -> Sequence[str]:
        """Series: the names of all entities, in order; ``ds.entities.rows(i)`` are an entity's rows
        in the array."""
        count = self._of_series("entity_count") or 0
        return Entities(self._entity, count)

    def _entity(self, number: int) -> tuple[str, int, int]:
        return self._handle.entity(number)

    @property
    def short_entities(self) -> int:
        """Series: how many entities are too short for one window and give no sample."""
        return self._of_series("short_entities") or 0

    @property
    def splits(self) -> tuple[str, ...]:
        """Series: the names that `split` may have."""
        return tuple(self._of_series("splits") or ())

    @property
    def series_split(self) -> str | None:
        """Series: the split that it was opened with; None: all rows."""
        split: str | None = self._of_series("split")
        return split

    @property
    def window(self) -> int | None:
        """Series: rows of ``x``."""
        window: int | None = self._of_series("window")
        return window

    @property
    def horizon(self) -> int | None:
        """Series: rows of ``y``."""
        horizon: int | None = self._of_series("horizon")
        return horizon

    @property
    def stride(self) -> int | None:
        """Series: rows from one sample to the next."""
        stride: int | None = self._of_series("stride")
        return stride

    @property
    def gap(self) -> int | None:
        """Series: rows between ``x`` and ``y``."""
        gap: int | None = self._of_series("gap")
        return gap

    @property
    def min_history(self) -> int | None:
        """Series: least rows up to a window's end."""
        rows: int | None = self._of_series("min_history")
        return rows

    @property
    def time_unit(self) -> str | None:
        """Series: of the fields ``time`` and ``y_time``: s, ms, us, ns or d since 1970; empty for
        plain numbers; None where there is no time."""
        unit: str | None = self._of_series("time_unit")
        return unit

    # Looking at single samples

    @property
    def index_path(self) -> str:
        """Where the index is kept."""
        return self._handle.about()["index"]

    @property
    def skipped(self) -> int:
        """Members that were passed over when indexing: links, devices, folders."""
        return self._handle.about()["skipped"]

    def key(self, i: int) -> str:
        """The key of the i-th sample."""
        return self._handle.key(self._position(i))

    def keys(self) -> list[str]:
        """The keys of all samples, in order."""
        handle = self._handle
        return [handle.key(i) for i in range(self._length)]

    def find(self, key: str) -> int:
        """The position of the first sample with this key."""
        return self._handle.find(key.encode("utf-8", "surrogateescape"))

    def place(self, i: int, field: str) -> tuple[str, int | None, int | None] | None:
        """Where a value lies: (path, offset, length); None where the sample lacks the field.
        Offset and length are None inside a compressed shard."""
        return self._handle.place(self._position(i), self._number_of(field))

    def read_bytes(self, i: int, field: str) -> bytes:
        """The bytes of a value, as they are stored."""
        return self._handle.bytes(self._position(i), self._number_of(field))

    def _number_of(self, field: str) -> int:
        try:
            return list(self._fields).index(field)
        except ValueError:
            names = ", ".join(self._fields)
            raise KeyError(f"there is no field {field!r}; there are {names}") from None

    def _position(self, i: int) -> int:
        position = operator.index(i)
        if position < 0:
            position += self._length
        if not 0 <= position < self._length:
            raise IndexError(f"there is no sample {i}; the dataset has {self._length}")
        return position

    # Reading

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            start, stop, step = i.indices(self._length)
            if step > 0:
                return self._subset("range", start, max(start, stop), step)
            return self.select(numpy.arange(start, stop, step))
        return self._assembler.sample(self._handle.read(self._position(i)))

    def __getitems__(self, positions: Sequence[int]) -> list[Any]:
        return [self[i] for i in positions]

    def __iter__(self) -> Iterator[Any]:
        for i in range(self._length):
            yield self[i]

    # Subsets

    def _subset(self, *step: Any) -> Dataset:
        recipe = replace(self._recipe, subsets=(*self._recipe.subsets, step))
        return Dataset(recipe, _take(self._handle, step), self._as_tuple, self._as)

    def split(self, shares: Sequence[float], *, seed: int = 0) -> list[Dataset]:
        """Random parts that share no sample: each of these shares of the whole (they add up to at
        most 1). The same seed gives the same parts, on every machine.

        >>> train, val = ds.split([0.9, 0.1], seed=0)
        >>> len(train), len(val)
        (90, 10)
        """
        parts = tuple(float(share) for share in shares)
        return [self._subset("split", parts, part, seed) for part in range(len(parts))]

    def select(self, indices: Sequence[int] | numpy.ndarray) -> Dataset:
        """These samples, in this order; an array of bool picks where it is True.

        >>> [ds.key(i) for i in (5, 3)] == ds.select([5, 3]).keys()
        True
        """
        chosen = numpy.asarray(indices)
        if chosen.dtype == bool:
            if chosen.shape != (self._length,):
                raise ValueError(f"the mask has shape {chosen.shape}, not ({self._length},)")
            return self._subset("bits", numpy.packbits(chosen))
        if chosen.size == 0:
            chosen = chosen.astype(numpy.int64)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise TypeError("select takes a list of whole numbers, or an array of bool")
        outside = (chosen < -self._length) | (chosen >= self._length)
        if outside.any():
            raise IndexError(f"there is no sample {chosen[outside][0]}; there are {self._length}")
        positions = chosen.astype(numpy.int64)
        positions[positions < 0] += self._length
        if len(positions) * 64 > self._length and (numpy.diff(positions) > 0).all():
            mask = numpy.zeros(self._length, bool)
            mask[positions] = True
            return self._subset("bits", numpy.packbits(mask))
        return self._subset("select", positions.astype(numpy.uint64))

    def filter(
        self,
        predicate: Any,
        *,
        field: str | Sequence[str] | None = None,
        metadata: Source | None = None,
        by: str = "row",
    ) -> Dataset:
        """The samples for which the predicate holds.

        Args:
            predicate: with `field`, a callable on the field's value (or values). Else it is about
                metadata.parquet: a callable on a row (a dict); with ``by="table"``, a callable on
                the whole pyarrow Table that returns a bool for each row; or a pyarrow expression.
            field: the name of a field, or several; only these are read, each sample once.
            metadata: where metadata.parquet is; default: beside the data. Its column ``key`` tells
                which row belongs to which sample.

        >>> small = ds.filter(lambda cls: cls < 5, field="cls")
        >>> few = ds.filter(lambda row: row["label"] == 3)
        """
        if field is not None:
            return self.select(self._judge_fields(predicate, field))
        if by not in ("row", "table"):
            raise ValueError(f"by is {by!r}; it may be 'row' or 'table'")
        return self.select(_metadata.judge(self, predicate, metadata, by))

    def _judge_fields(
        self, predicate: Callable[..., Any], field: str | Sequence[str]
    ) -> numpy.ndarray:
        names = (field,) if isinstance(field, str) else tuple(field)
        view = self.with_fields(tuple(self._as_asked(name) for name in names))
        kept = (bool(predicate(*values)) for values in view)
        return numpy.fromiter(kept, bool, self._length)

    def _as_asked(self, name: str) -> str:
        """The field with its kind, and whether it may be missing, as this dataset has them."""
        if name not in self._fields:
            return name
        if self._recipe.fields is not None:
            return dict(zip(self._fields, self._recipe.fields, strict=True))[name]
        return name + "?" if self._fields[name].optional else name

    def with_fields(self, fields: Fields) -> Dataset:
        """The same samples with other fields; see :func:`open`."""
        names = read_fields(fields)
        recipe = replace(self._recipe, fields=None if names is None else tuple(names))
        handle = recipe.reopen(self._handle.fingerprint())
        return Dataset(recipe, handle, isinstance(fields, tuple), self._as)


def _restore(recipe: _Recipe, fingerprint: bytes, as_tuple: bool, as_: str) -> Dataset:
    """What a pickle calls."""
    return Dataset(recipe, recipe.reopen(fingerprint), as_tuple, as_)
