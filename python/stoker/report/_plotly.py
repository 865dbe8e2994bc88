"""Charts as plotly's figures: plain dicts. Colours of text, axes and grids are the page's (CSS)."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from . import _format as form
from ._document import Bars, Chart, Icicle, Lanes, Lines

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
MIDDLE = "#7D858C"  # legible on white and on black
SHOWN = "%{customdata}<extra></extra>"
Figure = dict[str, Any]


def text(words: str) -> str:
    """Plotly reads tags in every text: what comes from a file must not be one."""
    printable = "".join(one if one.isprintable() else " " for one in words)
    return html.escape(printable, quote=False)


def short(words: str, most: int = 160) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"


def figure(chart: Chart) -> Figure:
    """{"data", "layout"} of a chart."""
    makers: dict[type, Callable[[Any], Figure]] = {
        Bars: _bars,
        Lines: _lines,
        Lanes: _lanes,
        Icicle: _icicle,
    }
    made = makers[type(chart)](chart)
    made["layout"] = {**_layout(), **made["layout"]}
    return made


def _layout() -> Figure:
    return {
        "autosize": True,
        "showlegend": False,
        "dragmode": False,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 12, "color": MIDDLE},
        "hoverlabel": {"align": "left", "font": {"family": FONT, "size": 12}, "namelength": -1},
        "margin": {"l": 4, "r": 12, "t": 6, "b": 28},
    }


def _axis(**options: Any) -> Figure:
    return {
        "zeroline": False,
        "showline": False,
        "gridcolor": MIDDLE,
        "gridwidth": 1,
        "fixedrange": True,
        **options,
    }


def _note(words: str, **options: Any) -> Figure:
    """A word in the chart."""
    return {"text": text(words), "showarrow": False, "font": {"size": 12}, **options}


def _row_axis(count: int, labelled: bool) -> Figure:
    top = 0.72 if labelled else 0.5
    return _axis(visible=False, range=[-(count - 1) - 0.42, top])


def _row_height(count: int, labelled: bool) -> int:
    return (44 if labelled else 40) * count + 44


def _row_names(names: list[str]) -> list[Figure]:
    return [
        _note(short(name, 60), xref="paper", x=0, xanchor="left", y=-row + 0.24, yanchor="bottom")
        for row, name in enumerate(names)
        if name
    ]


def _bars(chart: Bars) -> Figure:
    count = len(chart.rows)
    labelled = any(chart.rows)
    traces = []
    for number, part in enumerate(chart.parts):
        shown = [row for row in range(count) if part.values[row] is not None]
        trace = {
            "type": "bar",
            "orientation": "h",
            "x": [part.values[row] for row in shown],
            "y": [-row for row in shown],
            "width": 0.46,
            "name": text(part.name),
            "marker": {"color": part.colour, "line": {"width": 0}},
            "customdata": [text(part.words[row]) for row in shown],
            "hovertemplate": SHOWN,
        }
        if chart.spread:
            trace["error_x"] = _spread(chart, number, shown)
        traces.append(trace)
    totals = _totals(chart)
    most = chart.top or 1.02 * max(
        [*totals, *(high for _, high in chart.spread), chart.limit[0] if chart.limit else 0.0]
    )
    notes = _row_names(chart.rows)
    if chart.ends:
        most *= 1.2
        reach = [high for _, high in chart.spread] or totals
        notes += [
            _note(end, x=max(reach[row], totals[row]), xanchor="left", xshift=7, y=-row)
            for row, end in enumerate(chart.ends)
        ]
    shapes = []
    if chart.limit:
        shapes.append(_upright(chart.limit[0]))
        place = {"x": chart.limit[0], "yref": "paper", "y": 1, "yanchor": "top", "xanchor": "left"}
        notes.append(_note(chart.limit[1], xshift=4, **place))
    layout = {
        "barmode": "relative",
        "height": _row_height(count, labelled),
        "xaxis": _axis(range=[0, most or 1], ticksuffix=_short_unit(chart.unit)),
        "yaxis": _row_axis(count, labelled),
        "annotations": notes,
        "shapes": shapes,
    }
    return {"data": traces, "layout": layout}


def _totals(chart: Bars) -> list[float]:
    return [sum(part.values[row] or 0.0 for part in chart.parts) for row in range(len(chart.rows))]


def _spread(chart: Bars, number: int, shown: list[int]) -> Figure:
    """From the lowest run to the highest."""
    values = chart.parts[number].values
    return {
        "type": "data",
        "symmetric": False,
        "array": [chart.spread[row][1] - (values[row] or 0.0) for row in shown],
        "arrayminus": [(values[row] or 0.0) - chart.spread[row][0] for row in shown],
        "color": "#20262B",
        "thickness": 1.2,
        "width": 4,
    }


def _upright(x: float) -> Figure:
    line = {"color": MIDDLE, "width": 1.5, "dash": "dot"}
    return {"type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1, "line": line}


def _tint(colour: str, share: float) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{share})"


def _lines(chart: Lines) -> Figure:
    traces = []
    for line in chart.lines:
        x = chart.x[: len(line.values)]
        trace: Figure = {
            "type": "scatter",
            "mode": "lines" if len(x) > 1 else "markers",
            "x": x,
            "y": [None if value is None else round(value, 6) for value in line.values],
            "name": text(line.name),
            "line": {"color": line.colour, "width": 1.6, "dash": "dot" if line.dashed else "solid"},
            "marker": {"color": line.colour},
            "hovertemplate": f"%{{y:.4~g}} {text(chart.unit)}: {text(line.name)}<extra></extra>",
        }
        if line.filled:
            trace |= {"fill": "tozeroy", "fillcolor": _tint(line.colour, 0.22)}
        traces.append(trace)
    values = [value for line in chart.lines for value in line.values if value is not None]
    top = chart.top or 1.08 * max([*values, chart.limit[0] if chart.limit else 0.0, 1e-9])
    shapes, notes = _unjudged(chart)
    if chart.limit:
        style = {"color": MIDDLE, "width": 1.2, "dash": "dot"}
        level = {"y0": chart.limit[0], "y1": chart.limit[0]}
        shapes.append({"type": "line", "xref": "paper", "x0": 0, "x1": 1, "line": style, **level})
        place = {"xref": "paper", "x": 1, "xanchor": "right", "yanchor": "bottom"}
        notes.append(_note(chart.limit[1], y=chart.limit[0], **place))
    layout = {
        "height": 190 if chart.half else 220,
        "hovermode": "x unified",
        "xaxis": _axis(ticksuffix=f" {chart.x_unit}" if chart.x_unit == "s" else "", nticks=6),
        "yaxis": _axis(
            range=[0, top * 1.02],
            nticks=5,
            automargin=True,
            ticksuffix=_short_unit(chart.unit) if chart.unit == "%" else "",
        ),
        "shapes": shapes,
        "annotations": notes,
        "margin": {"l": 36, "r": 12, "t": 6, "b": 28},
    }
    return {"data": traces, "layout": layout}


def _unjudged(chart: Lines) -> tuple[list[Figure], list[Figure]]:
    """Start-up and tear-down, where the chart tells them apart."""
    if chart.judged is None:
        return [], []
    sides = [(chart.x[0], chart.judged[0]), (chart.judged[1], chart.x[-1])]
    whole = (chart.x[-1] - chart.x[0]) or 1.0
    sides = [(start, end) for start, end in sides if end > start]
    shapes = [_band(start, end, _tint(MIDDLE, 0.12)) for start, end in sides]
    notes = [
        _note("not judged", x=(start + end) / 2, yref="paper", y=0.5, yanchor="middle")
        for start, end in sides
        if (end - start) / whole > 0.25
    ]
    return shapes, notes


def _band(start: float, end: float, colour: str) -> Figure:
    """Across the whole height, behind everything."""
    return {
        "type": "rect",
        "x0": round(start, 6),
        "x1": round(end, 6),
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "layer": "below",
        "line": {"width": 0},
        "fillcolor": colour,
    }


def _short_unit(unit: str) -> str:
    """Behind each tick; longer ones stand in the title alone."""
    return f" {text(unit)}" if len(unit) <= 3 else ""


def _lanes(chart: Lanes) -> Figure:
    by_colour: dict[str, list[tuple[int, Any]]] = {}
    for row, (_, pieces) in enumerate(chart.lanes):
        for piece in pieces:
            by_colour.setdefault(piece.colour, []).append((row, piece))
    traces = []
    for colour, found in by_colour.items():
        said = [
            f"{short(piece.name, 100)}: {form.seconds(piece.end - piece.start)}"
            for _, piece in found
        ]
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "base": [round(piece.start, 6) for _, piece in found],
                "x": [round(piece.end - piece.start, 6) for _, piece in found],
                "y": [-row for row, _ in found],
                "width": 0.46,
                "marker": {"color": colour, "line": {"width": 0}},
                "customdata": [text(words) for words in said],
                "hovertemplate": SHOWN,
            }
        )
    bands = [_band(one.start, one.end, _tint(one.colour, 0.2)) for one in chart.bands]
    count = len(chart.lanes)
    layout = {
        "barmode": "overlay",
        "height": 38 * count + 40,
        "xaxis": _axis(range=[chart.start, chart.end], ticksuffix=" s", nticks=6, fixedrange=False),
        "yaxis": _row_axis(count, True),
        "annotations": _row_names([name for name, _ in chart.lanes]),
        "shapes": bands,
    }
    return {"data": traces, "layout": layout}


def _last_name(function: str) -> str:
    """Long names without their class: more of them fit."""
    return function if len(function) <= 26 else short(function.rsplit(".", 1)[-1], 60)


def _icicle(chart: Icicle) -> Figure:
    said = [
        f"{node.label} {short(node.where)}: {form.seconds(node.seconds)}, {form.share(node.share)}"
        for node in chart.nodes
    ]
    trace = {
        "type": "icicle",
        "ids": [node.id for node in chart.nodes],
        "labels": [text(_last_name(node.label)) for node in chart.nodes],
        "parents": [node.parent for node in chart.nodes],
        "values": [node.seconds for node in chart.nodes],
        "branchvalues": "total",
        "sort": False,
        "textinfo": "label",
        "textposition": "middle left",
        "customdata": [text(words) for words in said],
        "hovertemplate": SHOWN,
        "marker": {
            "colors": [node.colour for node in chart.nodes],
            "line": {"width": 1, "color": "#FFFFFF"},
        },
        "tiling": {"orientation": "v", "pad": 0},
        "leaf": {"opacity": 1},
        "pathbar": {"visible": False},
        "insidetextfont": {"color": "#15191C", "size": 12},
        "outsidetextfont": {"color": "#15191C", "size": 12},
    }
    layout = {
        "height": 24 * chart.depth + 8,
        "margin": {"l": 0, "r": 0, "t": 2, "b": 2},
        "uniformtext": {"mode": "hide", "minsize": 10},
    }
    return {"data": [trace], "layout": layout}
