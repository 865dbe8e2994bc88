"""What a caller gets: dicts or tuples of tensors, made from the library's batches and samples."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy

from . import _arrays


@dataclass(frozen=True)
class Field:
    """What a dataset knows of one field.

    Attributes:
        name: as it was asked for: ``"npy"``, ``"jpg;png"``.
        kind: ``"tensor"``, ``"int"``, ``"text"``, ``"json"`` or ``"bytes"``.
        optional: whether samples may lack it.
        dtype: of a tensor, as numpy and torch name it; else None.
        shape: of a tensor, as found in the first sample that has it; else None.
        max_length: the longest stored value, in bytes.
    """

    name: str
    kind: str
    optional: bool
    dtype: str | None
    shape: tuple[int, ...] | None
    max_length: int


class Batch(dict[str, Any]):
    """A dict of the fields of B samples that also knows which samples they are.

    Attributes:
        samples: the number in the index of each sample (int64, numpy); -1 where the place is
            masked.
        epoch: the epoch it belongs to.
        step: its place in the epoch.

    They are None in a copy that something else has made, such as a mover to a device.
    """

    samples: numpy.ndarray | None = None
    epoch: int | None = None
    step: int | None = None


class Raw(NamedTuple):
    """A batch as stoker._core gives it."""

    epoch: int
    step: int
    end: int
    places: int
    real: int
    samples: bytes
    mask: Any
    fields: list[tuple[Any, Any, Any]]

    def numbers(self) -> numpy.ndarray:
        return numpy.frombuffer(self.samples, numpy.int64)


class Assembler:
    """Builds samples and batches in the form that was asked for."""

    def __init__(self, fields: Sequence[Field], as_: str, as_tuple: bool) -> None:
        self.fields = list(fields)
        self.as_ = as_
        self.as_tuple = as_tuple
        self.array = _arrays.converter(as_)
        self._names = [field.name for field in self.fields]
        # What is left to do with an item of a list; the library has checked that json is JSON.
        readers: dict[str, Callable[[Any], Any]] = {"tensor": self.array, "json": json.loads}
        self._readers = [readers.get(field.kind) for field in self.fields]

    def sample(self, values: Sequence[Any]) -> Any:
        """A sample, from the values that the library read."""
        made = []
        for field, value in zip(self.fields, values, strict=True):
            if field.kind == "tensor" and value is not None:
                value = self.array(value)
            elif field.kind == "json" and value is not None:
                value = json.loads(value)
            made.append(value)
        return tuple(made) if self.as_tuple else dict(zip(self._names, made, strict=True))

    def batch(self, raw: Raw) -> Any:
        """A batch, sharing the library's memory."""
        return self._tuple(raw) if self.as_tuple else self._dict(raw)

    def _value(self, raw: Raw, i: int) -> Any:
        value = raw.fields[i][0]
        if not isinstance(value, list):
            return self.array(value)
        read = self._readers[i]
        return value if read is None else [item if item is None else read(item) for item in value]

    def _dict(self, raw: Raw) -> Batch:
        batch = Batch()
        for i, (name, (_, lengths, present)) in enumerate(
            zip(self._names, raw.fields, strict=True)
        ):
            batch[name] = self._value(raw, i)
            if lengths is not None:
                batch[name + "_lengths"] = self.array(lengths)
            if present is not None:
                batch[name + "_present"] = self.array(present)
        if raw.mask is not None:
            batch["mask"] = self.array(raw.mask)
        label(batch, raw)
        return batch

    def _tuple(self, raw: Raw) -> tuple[Any, ...]:
        made = []
        for i, (_, lengths, present) in enumerate(raw.fields):
            value = self._value(raw, i)
            beside = [self.array(extra) for extra in (lengths, present) if extra is not None]
            made.append((value, *beside) if beside else value)
        if raw.mask is not None:
            made.append(self.array(raw.mask))
        return tuple(made)

    def views(self, raw: Raw) -> list[Any]:
        """The real samples of a batch, one by one, as views of its memory."""
        columns = [self._column(raw, i) for i in range(len(self.fields))]
        rows = zip(*columns, strict=True) if columns else iter([()] * raw.real)
        if self.as_tuple:
            return list(rows)
        return [dict(zip(self._names, row, strict=True)) for row in rows]

    def _column(self, raw: Raw, i: int) -> list[Any]:
        _, lengths, present = raw.fields[i]
        value = self._value(raw, i)
        if self.fields[i].kind == "int":
            items: list[Any] = value[: raw.real].tolist()
        else:
            items = list(value[: raw.real])
        if lengths is not None:
            rows = _arrays.to_numpy(lengths)
            items = [item[: int(rows[at])] for at, item in enumerate(items)]
        if present is not None:
            there = _arrays.to_numpy(present)
            items = [item if there[at] else None for at, item in enumerate(items)]
        return items


def label(batch: Batch, raw: Raw) -> None:
    """Writes on a batch which samples it holds."""
    batch.samples, batch.epoch, batch.step = raw.numbers(), raw.epoch, raw.step


def collate(results: Sequence[Any], raw: Raw, as_: str, mask: Any) -> Any:
    """What sample_map returned for each sample -> a batch of the same form."""
    numbers = raw.numbers()
    first = results[0]

    def column(name: str, values: Sequence[Any]) -> Any:
        return _arrays.stack(values, raw.places, as_, name, numbers.tolist())

    if isinstance(first, Mapping):
        batch = Batch({name: column(name, [one[name] for one in results]) for name in first})
        if mask is not None:
            batch.setdefault("mask", mask)
        label(batch, raw)
        return batch
    extra = () if mask is None else (mask,)
    if isinstance(first, tuple):
        columns = zip(*results, strict=True)
        return (*(column(f"item {i}", values) for i, values in enumerate(columns)), *extra)
    value = column("its result", results)
    return (value, *extra) if extra else value
