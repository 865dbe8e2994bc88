"""Results of benchmarks: sides as bars with their spread, the limit, the machine, the command."""

from __future__ import annotations

import json
from typing import Any

from . import _colours as colours
from . import _format as form
from ._document import Bars, Block, Code, Line, Lines, Paragraph, Part, Section, Table, Word, Words
from ._format import Format, Number, number, scaled
from ._read import Source


def _format_of(unit: str) -> Format:
    forms = {
        "bytes/s": form.byte_rate,
        "bytes": form.size,
        "s": form.seconds,
        "seconds": form.seconds,
    }
    if unit in forms:
        return forms[unit]
    if unit.endswith("/s"):
        what = unit[: -len("/s")]
        return lambda value: f"{form.decimal(value)} {what}/s"
    return lambda value: f"{form.decimal(value)} {unit}".strip()


def _axis(unit: str) -> str:
    return {"s": "s", "seconds": "s", "bytes": "bytes", "bytes/s": "bytes/s"}.get(unit, unit)


def title(source: Source) -> str:
    return source.data["bench"] if source.kind == "bench" else source.label


def sections(source: Source, alone: bool) -> list[Section]:
    """What a result becomes. alone: the page's title names it already."""
    if source.kind == "training":
        return [_training(source, alone)]
    blocks: list[Block] = [Paragraph(_about(source))]
    units = list(dict.fromkeys(row["unit"] or "" for row in source.data["rows"]))
    for place, unit in enumerate(units):
        chart = _chart(source, unit, place)
        if chart is not None:
            blocks.append(chart)
    blocks.append(_table(source))
    blocks += _ratios(source)
    blocks += _workload(source)
    heading = "Results" if alone else f"Benchmark: {title(source)}"
    return [Section(f"bench-{source.number}", heading, blocks)]


def _about(source: Source) -> Words:
    """Machine, date, command, limit."""
    data, machine = source.data, source.data["machine"]
    words: list[Word] = ["Measured on "]
    names = [machine["gpu"], machine["cpu"]]
    words.append(", ".join(name for name in names if name) or "an unnamed machine")
    if machine["cores"]:
        words += [" with ", number(machine["cores"], form.plain, _key(source, "machine/cores"))]
        words.append(" cores")
    if machine["memory"]:
        words += [" and ", number(machine["memory"], form.size, _key(source, "machine/memory"))]
    if data["date"]:
        words.append(f", {data['date']}")
    words.append(". Yours: ")
    words += [Code(data["command"] or f"make bench-{data['bench']}"), "."]
    if data["quick"]:
        words.append(" A quick run on small data: it shows that it works, and measures nothing.")
    return words


def _key(source: Source, path: str) -> str:
    return f"{source.number}/{path}"


def _ordered(source: Source, unit: str) -> list[dict[str, Any]]:
    rows = [row for row in source.data["rows"] if (row["unit"] or "") == unit]
    rows = [row for row in rows if row["value"] is not None]
    if unit.endswith("/s"):
        rows.sort(key=lambda row: -row["value"])
    return rows


def _chart(source: Source, unit: str, place: int) -> Bars | None:
    rows = _ordered(source, unit)
    if not rows:
        return None
    limit = source.data["limit"]
    has_limit = limit["value"] is not None and (limit["unit"] or unit) == unit
    ends = [row["runs"] or [row["value"]] for row in rows]
    every = [row["value"] for row in rows] + [value for runs in ends for value in runs]
    every += [limit["value"]] if has_limit else []
    shown, name = scaled(every, _axis(unit))
    factor = next((s / v for s, v in zip(shown, every, strict=True) if v and s is not None), 1.0)
    said = [_format_of(unit)(row["value"]) for row in rows]
    values: list[float | None] = [row["value"] * factor for row in rows]
    parts = [Part("", colours.COMPUTE, values, said)]
    return Bars(
        f"bench-{source.number}-{place}",
        title(source),
        [row["name"] or "" for row in rows],
        parts,
        name,
        ends=said,
        spread=[(min(runs) * factor, max(runs) * factor) for runs in ends],
        limit=(limit["value"] * factor, "limit") if has_limit else None,
    )


def _table(source: Source) -> Table:
    rows: list[list[Words]] = []
    for i, row in enumerate(source.data["rows"]):
        shape = _format_of(row["unit"] or "")
        runs = row["runs"]
        spread: Words = [form.UNSEEN]
        if runs:
            low, high = (min(range(len(runs)), key=lambda j: (runs[j], j)),
                         max(range(len(runs)), key=lambda j: (runs[j], j)))  # fmt: skip
            bare = form.decimal if shape not in (form.size, form.byte_rate, form.seconds) else shape
            spread = [
                number(runs[low], bare, _key(source, f"rows/{i}/runs/{low}")),
                " to ",
                number(runs[high], bare, _key(source, f"rows/{i}/runs/{high}")),
            ]
        rows.append(
            [
                [row["name"] or ""],
                [number(row["value"], shape, _key(source, f"rows/{i}/value"))],
                spread,
                [number(row["peak_rss"], form.size, _key(source, f"rows/{i}/peak_rss"))],
                [row["note"] or ""],
            ]
        )
    limit = source.data["limit"]
    if limit["value"] is not None:
        shape = _format_of(limit["unit"] or "")
        value = number(limit["value"], shape, _key(source, "limit/value"))
        rows.append([["limit"], [value], [form.UNSEEN], [form.UNSEEN], [limit["name"] or ""]])
    return Table(["side", "median", "runs", "peak memory", "note"], rows, "lrrrl")


def _ratios(source: Source) -> list[Block]:
    ratios = source.data["ratios"]
    if not ratios:
        return []
    rows: list[list[Words]] = []
    for name, value in ratios.items():
        shown: Number = number(
            value, form.decimal, _key(source, "ratios/" + name.replace("/", "~1"))
        )
        rows.append([[name], [shown]])
    return [Table(["ratio", "value"], rows, "lr")]


def _workload(source: Source) -> list[Block]:
    """What was measured, as the file tells it."""
    workload = source.raw.get("workload")
    if not isinstance(workload, dict) or not workload:
        return []
    words = "; ".join(f"{name} {_said(value)}" for name, value in workload.items())
    words = words.encode("utf-8", "replace").decode("utf-8")
    return [Paragraph([f"Workload: {words}."], quiet=True)]


def _said(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if abs(value) < 10**18 else "a large number"
    return json.dumps(value)[:200]


def _training(source: Source, alone: bool) -> Section:
    """A training run of the demo: loss and accuracy by epoch."""
    epochs = source.data["epochs"]
    rows: list[list[Words]] = []
    shapes = [
        ("loss", form.decimal),
        ("held_out_accuracy", form.share),
        ("seconds", form.seconds),
        ("samples_per_s", form.rate),
    ]
    for i, epoch in enumerate(epochs):
        cells: list[Words] = [
            [number(epoch[name], shape, _key(source, f"epochs/{i}/{name}"))]
            for name, shape in shapes
        ]
        first = number(epoch["epoch"], form.plain, _key(source, f"epochs/{i}/epoch"))
        rows.append([[first], *cells])
    x = [float(epoch["epoch"] or i) for i, epoch in enumerate(epochs, 1)]
    blocks: list[Block] = [Paragraph([f"Trained on: {source.data['device'] or 'unknown'}."])]
    for place, (name, words, unit, factor) in enumerate(
        [("loss", "Loss", "", 1.0), ("held_out_accuracy", "Held-out accuracy", "%", 100.0)]
    ):
        values = [None if one[name] is None else one[name] * factor for one in epochs]
        if any(value is not None for value in values):
            line = Line(words, colours.SERIES[place], values)
            id = f"training-{source.number}-{place}"
            blocks.append(Lines(id, words, x, [line], unit, x_unit="epoch", half=True))
    head = ["epoch", "loss", "held-out accuracy", "took", "samples"]
    blocks.append(Table(head, rows, "lrrrr"))
    heading = "Results" if alone else f"Training: {source.label}"
    return Section(f"training-{source.number}", heading, blocks)
