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
        media: what a tensor is decoded from: ``"image"``, ``"audio"``, ``"video"`` or
            ``"points"``; None where it is stored as it is.
    """

    name: str
    kind: str
    optional: bool
    dtype: str | None
    shape: tuple[int, ...] | None
    max_length: int
    media: str | None = None


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


class RawField(NamedTuple):
    """One field of a batch as stoker._core gives it."""

    value: Any  # a tensor, or a list
    lengths: Any
    present: Any
    offsets: Any  # ragged="flat"
    is_padded: bool  # by its chain: lengths say what is real


class Raw(NamedTuple):
    """A batch as stoker._core gives it."""

    epoch: int
    step: int
    end: int
    places: int
    real: int
    samples: bytes
    mask: Any
    fields: list[RawField]

    @classmethod
    def of(cls, got: tuple[Any, ...]) -> Raw:
        *head, fields = got
        return cls(*head, [RawField(*field) for field in fields])

    def numbers(self) -> numpy.ndarray:
        return numpy.frombuffer(self.samples, numpy.int64)


class Assembler:
    """Builds samples and batches in the form that was asked for."""

    def __init__(
        self,
        fields: Sequence[Field],
        as_: str,
        as_tuple: bool,
        changed: Sequence[str] = (),
        device: int | None = None,  # the number of a GPU
    ) -> None:
        self.fields = list(fields)
        self.changed = frozenset(changed)  # fields whose values transforms change
        self.as_ = as_
        self.as_tuple = as_tuple
        self.array = _arrays.converter(as_, device)
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
        value = raw.fields[i].value
        if not isinstance(value, list):
            return self.array(value)
        read = self._readers[i]
        return value if read is None else [item if item is None else read(item) for item in value]

    def _dict(self, raw: Raw) -> Batch:
        batch = Batch()
        for i, name in enumerate(self._names):
            batch[name] = value = self._value(raw, i)
            for what, beside in self._beside(raw, i, value).items():
                batch.setdefault(f"{name}_{what}", beside)
        if raw.mask is not None:
            batch["mask"] = self.array(raw.mask)
        label(batch, raw)
        return batch

    def _tuple(self, raw: Raw) -> tuple[Any, ...]:
        made = []
        for i in range(len(self.fields)):
            value = self._value(raw, i)
            beside = self._beside(raw, i, value)
            made.append((value, *beside.values()) if beside else value)
        if raw.mask is not None:
            made.append(self.array(raw.mask))
        return tuple(made)

    def _beside(self, raw: Raw, i: int, value: Any) -> dict[str, Any]:
        """What comes with a field: lengths, mask, present, offsets, by these names."""
        field = raw.fields[i]
        made = {}
        if field.lengths is not None:
            made["lengths"] = self.array(field.lengths)
        if field.is_padded and self.as_ != "dlpack":  # the lengths say it too
            axis = -1 if self.fields[i].media == "audio" else 1
            made["mask"] = _arrays.mask_of(made["lengths"], value.shape[axis])
        if field.present is not None:
            made["present"] = self.array(field.present)
        if field.offsets is not None:
            made["offsets"] = self.array(field.offsets)
        return made

    def like(self, raw: Raw, sample: Any) -> Any:
        """A sample of the dataset, with zeros of this batch's shapes where transforms change it."""
        values = dict(zip(self._names, sample if self.as_tuple else sample.values(), strict=True))
        for i, field in enumerate(self.fields):
            if isinstance(raw.fields[i].value, list):
                continue
            value = self._value(raw, i)
            if field.name in self.changed or (field.kind == "int" and value.ndim > 1):
                rows = (1,) if raw.fields[i].offsets is not None else ()
                values[field.name] = _arrays.zeros((*rows, *value.shape[1:]), value)
            if raw.fields[i].is_padded and not self.as_tuple:
                mask = self._beside(raw, i, value)["mask"]
                values.setdefault(f"{field.name}_lengths", 0)
                values.setdefault(f"{field.name}_mask", _arrays.zeros(mask.shape[1:], mask))
        return tuple(values.values()) if self.as_tuple else values

    def views(self, raw: Raw) -> list[Any]:
        """The real samples of a batch, one by one, as views of its memory. What a chain has padded
        stays so: in a dict its length and its mask come with it."""
        columns: dict[str, list[Any]] = {}
        for i, name in enumerate(self._names):
            value = self._value(raw, i)
            columns[name] = self._column(raw, i, value)
            if raw.fields[i].is_padded and not self.as_tuple:
                beside = self._beside(raw, i, value)
                columns.setdefault(f"{name}_lengths", beside["lengths"][: raw.real].tolist())
                columns.setdefault(f"{name}_mask", list(beside["mask"][: raw.real]))
        rows = zip(*columns.values(), strict=True) if columns else iter([()] * raw.real)
        if self.as_tuple:
            return list(rows)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def _column(self, raw: Raw, i: int, value: Any) -> list[Any]:
        field = raw.fields[i]
        if field.offsets is not None:
            ends = _arrays.to_numpy(field.offsets).tolist()
            items: list[Any] = [value[ends[at] : ends[at + 1]] for at in range(raw.real)]
        elif self.fields[i].kind == "int" and value.ndim == 1:  # else labels that were mixed
            items = value[: raw.real].tolist()
        else:
            items = list(value[: raw.real])
        if field.lengths is not None and not field.is_padded:
            rows = _arrays.to_numpy(field.lengths)
            items = [item[: int(rows[at])] for at, item in enumerate(items)]
        if field.present is not None:
            there = _arrays.to_numpy(field.present)
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
