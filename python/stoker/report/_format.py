"""Numbers as people read them. Each remembers the value it shows and where that value stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

UNSEEN = "–"


@dataclass(frozen=True)
class Number:
    """A number in a report. key: its path in the files ("0/ranks/0/busy/compute"), or
    "made/NAME" for one that was computed from several."""

    text: str
    value: float | None = None
    key: str = ""


def _digits(value: float) -> str:
    """Three digits that matter, or all that stand before the point."""
    size = abs(value)
    if size >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"


def _in_units(value: float, units: list[tuple[float, str]]) -> str:
    """The largest unit of which there is at least one."""
    for size, name in units:
        if abs(value) >= 0.9995 * size:
            return f"{_digits(value / size)} {name}"
    size, name = units[-1]
    return f"{_digits(value / size)} {name}"


_SECONDS = [(3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs")]
_BYTES = [(2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B")]
_RATES = [(1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")]


def seconds(value: float) -> str:
    if not value:
        return "0 s"
    # Up to two minutes people think in seconds.
    return _in_units(value, _SECONDS[2:] if abs(value) < 120 else _SECONDS)


def size(value: float) -> str:
    return "0 B" if not value else _in_units(value, _BYTES)


def byte_rate(value: float) -> str:
    return "0 B/s" if not value else _in_units(value, _RATES)


def share(value: float) -> str:
    return f"{100 * value:.1f} %"


def count(value: float) -> str:
    return f"{value:,.0f}"


def plain(value: float) -> str:
    return f"{value:.0f}"


def decimal(value: float) -> str:
    return _digits(value)


def rate(value: float) -> str:
    return f"{_digits(value)}/s"


def samples(value: float) -> str:
    return f"{_digits(value)} samples/s"


def times(value: float) -> str:
    return f"{_digits(value)} times"


def frequency(value: float) -> str:
    return f"{_digits(value)} Hz"


Format = Callable[[float], str]


def number(value: float | None, form: Format, key: str = "") -> Number:
    return Number(UNSEEN) if value is None else Number(form(value), value, key)


def made(name: str, value: float | None, form: Format) -> Number:
    """One that stands in no file."""
    return number(value, form, f"made/{name}")


def look_up(data: Any, path: str) -> Any:
    """What a path leads to: look_up(run, "ranks/0/busy/compute"). ~1 in a name is a slash."""
    for step in path.split("/"):
        data = data[int(step)] if isinstance(data, list) else data[step.replace("~1", "/")]
    return data


def scaled(values: list[float | None], kind: str) -> tuple[list[float | None], str]:
    """Values in the unit that fits the largest, for an axis, and the unit's name."""
    units = {"bytes": _BYTES, "bytes/s": _RATES}.get(kind)
    if units is None:
        factor, name = (0.01, "%") if kind == "share" else (1.0, kind)
    else:
        most = max((abs(value) for value in values if value is not None), default=0.0)
        factor, name = next((u for u in units if most >= u[0]), units[-1])
    return [None if value is None else value / factor for value in values], name
