"""A document as one page that needs nothing else: no network, no other file.

Everything that comes from a file is escaped. Beyond that the page carries a policy under which a
browser runs only the scripts of this package and loads nothing.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib import resources
from typing import Any

from . import _document as doc
from ._format import Number
from ._plotly import figure

Json = Any


def escape(text: str) -> str:
    """For text and for attributes in double quotes; what cannot be shown becomes a mark."""
    safe = "".join(one if one in "\n\t" or ord(one) >= 32 else "�" for one in text)
    return html.escape(safe, quote=True)


def script_json(value: Json) -> str:
    """JSON that nothing in it can end: for a script element."""
    plain = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return plain.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def words(parts: doc.Words) -> str:
    return "".join(_word(part) for part in parts)


def _word(part: doc.Word) -> str:
    if isinstance(part, Number):
        return _number(part)
    if isinstance(part, doc.Code):
        return f"<code>{escape(part.text)}</code>"
    return escape(part)


def _number(number: Number) -> str:
    text = escape(number.text).replace(" ", "&nbsp;")
    if number.value is None:
        return f'<span class="n">{text}</span>'
    return f'<span class="n" data-key="{escape(number.key)}">{text}</span>'


# --- blocks ---------------------------------------------------------------------------------------


def block(one: doc.Block) -> str:
    makers: dict[type, Any] = {
        doc.Paragraph: lambda b: f"<p{' class=quiet' if b.quiet else ''}>{words(b.words)}</p>",
        doc.Heading: lambda b: f"<h3>{words(b.words)}</h3>",
        doc.Figures: _figures,
        doc.Table: _table,
        doc.Snippet: lambda b: f"<pre><code>{escape(b.text)}</code></pre>",
        doc.Notice: _notice,
        doc.Listing: _listing,
    }
    return makers.get(type(one), _chart)(one)


def blocks(many: list[doc.Block]) -> str:
    """Charts of half the width that follow each other stand side by side."""
    out: list[str] = []
    beside: list[str] = []
    for one in [*many, None]:
        if one is not None and getattr(one, "half", False):
            beside.append(_chart(one))
            continue
        if beside:
            out.append(f'<div class="beside">{"".join(beside)}</div>')
            beside = []
        if one is not None:
            out.append(block(one))
    return "\n".join(out)


def _figures(figures: doc.Figures) -> str:
    items = []
    for one in figures.figures:
        before = f'<span class="was">{_number(one.before)} → </span>' if one.before else ""
        note = f"<small>{escape(one.note)}</small>" if one.note else ""
        items.append(
            f"<div><dt>{escape(one.label)}</dt><dd>{before}{_number(one.number)}{note}</dd></div>"
        )
    return f'<dl class="figures">{"".join(items)}</dl>'


def _table(table: doc.Table) -> str:
    def cell(tag: str, align: str, inner: str) -> str:
        return f"<{tag}{' class=r' if align == 'r' else ''}>{inner}</{tag}>"

    head = "".join(
        cell("th", align, escape(name)) for name, align in zip(table.head, table.align, strict=True)
    )
    rows = []
    for number, row in enumerate(table.rows):
        cells = [words(one) for one in row]
        if table.chips:
            cells[0] = _chip(table.chips[number]) + cells[0]
        inner = "".join(
            cell("td", align, one) for one, align in zip(cells, table.align, strict=True)
        )
        rows.append(f"<tr>{inner}</tr>")
    shown = f"<thead><tr>{head}</tr></thead>" if any(table.head) else ""
    return f'<div class="table"><table>{shown}<tbody>{"".join(rows)}</tbody></table></div>'


def _chip(colour: str) -> str:
    return f'<i class="chip" style="background:{escape(colour)}"></i>'


def _notice(notice: doc.Notice) -> str:
    items = "".join(f"<li>{words(item)}</li>" for item in notice.items)
    kind = "notice bad" if notice.bad else "notice"
    return f'<aside class="{kind}"><strong>{escape(notice.title)}</strong><ul>{items}</ul></aside>'


def _listing(listing: doc.Listing) -> str:
    tag = "ol" if listing.numbered else "ul"
    items = "".join(f"<li>{blocks(item)}</li>" for item in listing.items)
    return f"<{tag}>{items}</{tag}>"


def legend(chart: doc.Chart) -> list[tuple[str, str]]:
    """(words, colour) of what a chart holds."""
    if isinstance(chart, doc.Bars):
        return [(part.name, part.colour) for part in chart.parts if part.name]
    if isinstance(chart, doc.Lines):
        return [(line.name, line.colour) for line in chart.lines]
    return chart.legend


def _chart(chart: doc.Chart) -> str:
    unit = getattr(chart, "unit", "")
    title = f"{chart.title}, {unit}" if unit else chart.title
    names = "".join(f"<li>{_chip(colour)}{escape(name)}</li>" for name, colour in legend(chart))
    height = figure(chart)["layout"]["height"]
    return (
        f'<figure class="{"half" if chart.half else "whole"}">'
        f'<figcaption>{escape(title)}<ul class="legend">{names}</ul></figcaption>'
        f'<div class="chart" id="chart-{escape(chart.id)}" role="img" aria-label="{escape(title)}" '
        f'style="height:{height}px"></div></figure>'
    )


# --- the page -------------------------------------------------------------------------------------


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _section(section: doc.Section) -> str:
    inner = blocks(section.blocks)
    return (
        f'<section id="{escape(section.id)}"><h2>{escape(section.title)}</h2>\n{inner}\n</section>'
    )


def page(document: doc.Document, plotly: str) -> str:
    """The whole page. plotly: its source."""
    scripts = [_part("page.js"), plotly]
    charts = [{"id": f"chart-{chart.id}", **figure(chart)} for chart in document.charts()]
    policy = (
        f"default-src 'none'; script-src {' '.join(_hash(one) for one in scripts)}; "
        "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    links = "".join(
        f'<a href="#{escape(section.id)}">{escape(section.title)}</a>'
        for section in document.sections
        if len(document.sections) > 1
    )
    subtitle = f'<p class="quiet">{words(document.subtitle)}</p>' if document.subtitle else ""
    answer = f'<p class="answer">{words(document.answer)}</p>' if document.answer else ""
    made = f"Drawn by Stoker; the runs were watched by Stoker {escape(document.stoker)}."
    sections = "\n".join(_section(section) for section in document.sections)
    loaded = "\n".join(f"<script>{one}</script>" for one in scripts)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{escape(document.title)}</title>
<style>
{_part("page.css")}</style>
</head>
<body>
<header>
<h1>{escape(document.title)}</h1>
{subtitle}
{answer}
{"".join(_notice(notice) for notice in document.notices)}
<nav>{links}</nav>
</header>
<main>
{sections}
</main>
<footer><p class="quiet">{made if document.stoker else "Drawn by Stoker."}</p></footer>
<script type="application/json" id="charts">{script_json(charts)}</script>
{loaded}
</body>
</html>
"""
