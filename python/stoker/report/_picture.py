"""Charts as PNG pictures, by matplotlib: for Markdown, mail and slides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO

from ._document import Bars, Chart, Icicle, Lanes, Lines

WIDTH = 9.0  # inches
DPI = 144
INK, SOFT, LINE = "#1D2329", "#5B6570", "#E2E6E9"
STYLE = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.edgecolor": LINE,
    "axes.labelcolor": SOFT,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "text.parse_math": False,  # a dollar in a file's name is a dollar
    "svg.hashsalt": "stoker",
}


def draw(charts: list[Chart], file: BinaryIO, title: str = "") -> None:
    """All charts below each other, in one picture; those of half the width in pairs."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        rows = _rows(charts)
        head = 0.5 if title or not charts else 0.0
        whole = head + sum(max(map(_height, row)) for row in rows)
        figure = Figure(figsize=(WIDTH, whole), dpi=DPI, facecolor="white")
        FigureCanvasAgg(figure)
        y = 1 - 0.28 / whole
        figure.text(0.02, y, _printable(title), size=14, weight="bold", va="center")
        if not charts:
            figure.text(0.6, y, "There is nothing to draw.", color=SOFT, va="center")
        top = whole - head
        for row in rows:
            for place, chart in enumerate(row):
                _draw(figure, chart, place / len(row), 1 / len(row), top)
            top -= max(map(_height, row))
        figure.savefig(file, format="png", dpi=DPI, metadata={"Software": "Stoker"})


def _rows(charts: list[Chart]) -> list[list[Chart]]:
    rows: list[list[Chart]] = []
    for chart in charts:
        if rows and chart.half and rows[-1][0].half and len(rows[-1]) == 1:
            rows[-1].append(chart)
        else:
            rows.append([chart])
    return rows


def _draw(figure: Any, chart: Chart, left: float, width: float, top: float) -> None:
    """In its strip: title and legend above its axes. top: inches from the foot of the picture."""
    whole = figure.get_figheight()
    height = _height(chart)
    margin = 0.09 if isinstance(chart, Lines) else 0.02
    foot = 0.1 if isinstance(chart, Icicle) else 0.34
    head = 0.34 + 0.2 * _legend_lines(chart)
    margin, right = left + (margin * 0.5 + 0.01), left + width - 0.03
    place = [margin, (top - height + foot) / whole, right - margin, (height - foot - head) / whole]
    axes = figure.add_axes(place)
    _caption(figure, chart, left + 0.02, top / whole, whole)
    makers: dict[type, Callable[[Any, Any], None]] = {
        Bars: _bars,
        Lines: _lines,
        Lanes: _lanes,
        Icicle: _icicle,
    }
    makers[type(chart)](axes, chart)


def _height(chart: Chart) -> float:
    head = 0.34 + 0.2 * _legend_lines(chart)
    if isinstance(chart, Bars):
        return head + 0.34 + 0.42 * len(chart.rows) + 0.15
    if isinstance(chart, Lanes):
        return head + 0.34 + 0.36 * len(chart.lanes) + 0.1
    if isinstance(chart, Icicle):
        return head + 0.2 + 0.24 * chart.depth
    return head + (1.7 if chart.half else 2.0)


def _legend_of(chart: Chart) -> list[tuple[str, str]]:
    if isinstance(chart, Bars):
        return [(part.name, part.colour) for part in chart.parts if part.name]
    if isinstance(chart, Lines):
        return [(line.name, line.colour) for line in chart.lines]
    return chart.legend


def _legend_rows(chart: Chart) -> list[list[tuple[str, str]]]:
    """As many names a row as fit."""
    rows: list[list[tuple[str, str]]] = []
    used = 1e9
    for name, colour in _legend_of(chart):
        width = 0.35 + 0.07 * len(name)
        if used + width > (WIDTH / 2 if chart.half else WIDTH) - 0.4:
            rows.append([])
            used = 0.0
        rows[-1].append((name, colour))
        used += width
    return rows


def _legend_lines(chart: Chart) -> int:
    return len(_legend_rows(chart))


def _caption(figure: Any, chart: Chart, left: float, top: float, whole: float) -> None:
    """The title, and below it what the colours mean."""
    unit = getattr(chart, "unit", "")
    title = f"{chart.title}, {unit}" if unit else chart.title
    figure.text(left, top - 0.17 / whole, _printable(title), weight="bold", va="center")
    for row, names in enumerate(_legend_rows(chart)):
        x, y = left, top - (0.36 + 0.2 * row) / whole
        for name, colour in names:
            figure.text(x, y, "■", color=colour, va="center", size=9)
            figure.text(x + 0.016, y, _printable(name), color=SOFT, va="center", size=8)
            x += (0.35 + 0.07 * len(name)) / WIDTH


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() else " " for one in text)


def _bare(axes: Any) -> None:
    axes.set_yticks([])
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0, labelsize=8)


def _row_names(axes: Any, names: list[str]) -> None:
    for row, name in enumerate(names):
        axes.text(
            0, -row + 0.25, _printable(name[:90]), transform=axes.get_yaxis_transform(),
            va="bottom", size=8, color=SOFT,
        )  # fmt: skip


def _bars(axes: Any, chart: Bars) -> None:
    lefts = [0.0] * len(chart.rows)
    for part in chart.parts:
        for row, value in enumerate(part.values):
            if value is not None:
                axes.barh(-row, value, left=lefts[row], height=0.42, color=part.colour)
                lefts[row] += value
    reach = list(lefts)
    for row, (low, high) in enumerate(chart.spread):
        axes.plot([low, high], [-row, -row], color=INK, linewidth=1, solid_capstyle="butt")
        reach[row] = max(reach[row], high)
    most = chart.top or 1.02 * max([*reach, chart.limit[0] if chart.limit else 0.0]) or 1.0
    for row, end in enumerate(chart.ends):
        axes.text(reach[row] + 0.01 * most, -row, end, va="center", size=8)
    if chart.limit:
        axes.axvline(chart.limit[0], color=SOFT, linewidth=1, linestyle=":")
        axes.text(chart.limit[0], 0.62, f" {chart.limit[1]}", size=8, color=SOFT, va="top")
    axes.set_xlim(0, most * (1.15 if chart.ends else 1.0))
    axes.set_ylim(-(len(chart.rows) - 1) - 0.4, 0.65)
    _row_names(axes, chart.rows)
    _bare(axes)
    unit = f" {chart.unit}" if len(chart.unit) <= 3 else ""
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}{unit}")


def _lines(axes: Any, chart: Lines) -> None:
    for line in chart.lines:
        x = chart.x[: len(line.values)]
        y = [float("nan") if value is None else value for value in line.values]
        marker = "o" if len(x) == 1 else ""
        style = ":" if line.dashed else "-"
        axes.plot(x, y, color=line.colour, linewidth=1.3, linestyle=style, marker=marker)
        if line.filled:
            axes.fill_between(x, y, color=line.colour, alpha=0.2, linewidth=0)
    if chart.limit:
        axes.axhline(chart.limit[0], color=SOFT, linewidth=1, linestyle=":")
    if chart.judged:
        for start, end in ((chart.x[0], chart.judged[0]), (chart.judged[1], chart.x[-1])):
            if end > start:
                axes.axvspan(start, end, color=SOFT, alpha=0.12, linewidth=0)
    axes.set_ylim(0, chart.top)
    axes.grid(axis="y", color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0, labelsize=8)
    axes.margins(x=0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} {chart.x_unit}")


def _lanes(axes: Any, chart: Lanes) -> None:
    for band in chart.bands:
        axes.axvspan(band.start, band.end, color=band.colour, alpha=0.18, linewidth=0)
    for row, (_, pieces) in enumerate(chart.lanes):
        spans = [(piece.start, piece.end - piece.start) for piece in pieces]
        colours = [piece.colour for piece in pieces]
        axes.broken_barh(spans, (-row - 0.2, 0.42), facecolors=colours, linewidth=0)
    axes.set_xlim(chart.start, chart.end)
    axes.set_ylim(-(len(chart.lanes) - 1) - 0.4, 0.65)
    _row_names(axes, [name for name, _ in chart.lanes])
    _bare(axes)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} s")


def _icicle(axes: Any, chart: Icicle) -> None:
    lefts = {"": 0.0}
    for node in chart.nodes:
        left = lefts[node.parent]
        lefts[node.id], lefts[node.parent] = left, left + node.share
        axes.barh(
            -node.depth, node.share, left=left, height=0.94, color=node.colour,
            edgecolor="white", linewidth=0.6,
        )  # fmt: skip
        room = int(node.share * WIDTH / 0.075)
        if room >= 4:
            label = node.label if len(node.label) <= room else node.label[: room - 1] + "…"
            axes.text(left + 0.004, -node.depth, _printable(label), va="center", size=7.5)
    axes.set_xlim(0, 1)
    axes.set_ylim(-chart.depth + 0.5, 0.5)
    axes.axis("off")
