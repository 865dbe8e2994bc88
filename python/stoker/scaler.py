"""Scalers of series: back to the units of the data."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy


class Scaler:
    """How the columns of a series were scaled: ``scaled = (raw - center) / scale``. ``ds.scaler``
    of a series is one.

    Attributes:
        kind: ``"standard"``, ``"minmax"``, ``"robust"`` or ``"none"``.
        columns: the names of all columns that it knows.
        center, scale: two numbers a column (float64), in the order of `columns`.
        features: the columns of ``x``, in order.
        labels: the columns of ``y``, in order.
    """

    def __init__(
        self,
        kind: str,
        columns: Sequence[str],
        center: Sequence[float] | numpy.ndarray,
        scale: Sequence[float] | numpy.ndarray,
        features: Sequence[str] | None = None,
        labels: Sequence[str] = (),
    ) -> None:
        self.kind = kind
        self.columns = tuple(columns)
        self.center = numpy.array(center, numpy.float64)
        self.scale = numpy.array(scale, numpy.float64)
        self.features = self.columns if features is None else tuple(features)
        self.labels = tuple(labels)

    def __repr__(self) -> str:
        lines = [f"<stoker.Scaler {self.kind}"]
        for name, center, scale in zip(self.columns, self.center, self.scale, strict=True):
            if len(lines) > 8:
                lines.append(f"  and {len(self.columns) - 8} more")
                break
            lines.append(f"  {name}: center {center:.6g}, scale {scale:.6g}")
        return "\n".join(lines) + ">"

    def transform(self, x: Any, columns: Sequence[str] | str | None = None) -> Any:
        """Scales raw values whose last axis is these columns (default: the features). Arrays of
        numpy and tensors of torch stay what they are, type and device too."""
        center, scale = self._of(x, self.features if columns is None else columns)
        return self._apply(x, lambda value, center, scale: (value - center) / scale, center, scale)

    def inverse(self, y: Any, columns: Sequence[str] | str | None = None) -> Any:
        """Turns predictions back into the units of the data.

        Args:
            y: its last axis is the labels; where there is one label, any shape is fine.
            columns: what the last axis is instead, such as ``scaler.features`` for an ``x``.
        """
        center, scale = self._of(y, self.labels if columns is None else columns)
        return self._apply(y, lambda value, center, scale: value * scale + center, center, scale)

    def _of(self, values: Any, columns: Sequence[str] | str) -> tuple[numpy.ndarray, numpy.ndarray]:
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        if not names:
            raise ValueError("there are no columns to scale; name them: columns=[...]")
        unknown = [name for name in names if name not in self.columns]
        if unknown:
            raise KeyError(f"the scaler has no column {unknown[0]!r}; it has {self.columns}")
        numbers = [self.columns.index(name) for name in names]
        if len(names) == 1:
            return self.center[numbers[0]], self.scale[numbers[0]]
        shape = tuple(numpy.shape(values))
        if not shape or shape[-1] != len(names):
            raise ValueError(
                f"the last axis should be the {len(names)} columns {', '.join(names)}; the shape "
                f"is {shape}"
            )
        return self.center[numbers], self.scale[numbers]

    def _apply(self, values: Any, what: Any, center: Any, scale: Any) -> Any:
        """In float64, so that a mean of a thousand million keeps its digits."""
        tensor = getattr(sys.modules.get("torch"), "Tensor", None)  # no torch, no tensors
        if tensor is not None and isinstance(values, tensor):
            import torch

            kind = values.dtype if values.dtype.is_floating_point else torch.get_default_dtype()
            wide = torch.float32 if values.device.type == "mps" else torch.float64
            numbers = (
                torch.as_tensor(n, dtype=wide, device=values.device) for n in (center, scale)
            )
            return what(values.to(wide), *numbers).to(kind)
        array = numpy.asarray(values)
        kept = array.dtype if array.dtype.kind == "f" else numpy.dtype(numpy.float64)
        return numpy.asarray(what(array.astype(numpy.float64), center, scale)).astype(kept)
