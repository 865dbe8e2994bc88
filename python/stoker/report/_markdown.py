"""A document as Markdown, with its charts as pictures beside it."""

from __future__ import annotations

import re
from typing import Any

from . import _document as doc
from ._format import Number

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~&$!])")


def escape(text: str) -> str:
    """So that nothing in it means anything to Markdown or HTML."""
    one_line = "".join(one if one.isprintable() else " " for one in text)
    return _SPECIAL.sub(r"\\\1", one_line)


def words(parts: doc.Words) -> str:
    return "".join(_word(part) for part in parts)


def _word(part: doc.Word) -> str:
    if isinstance(part, Number):
        return part.text
    if isinstance(part, doc.Code):
        return _code(part.text)
    return escape(part)


def _code(text: str) -> str:
    """Fenced by one backtick more than it holds."""
    text = "".join(one if one.isprintable() else " " for one in text).replace("|", "\\|")
    if not text.strip():
        return ""
    most = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * (most + 1)
    pad = " " if most else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _snippet(text: str) -> str:
    most = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, most + 1)
    return f"{fence}python\n{text.rstrip()}\n{fence}\n"


def _table(table: doc.Table) -> str:
    head = [name or " " for name in table.head]
    lines = [
        "| " + " | ".join(escape(name) for name in head) + " |",
        "|" + "|".join("--:" if one == "r" else "---" for one in table.align) + "|",
    ]
    lines += ["| " + " | ".join(words(cell) for cell in row) + " |" for row in table.rows]
    return "\n".join(lines) + "\n"


def _figures(figures: doc.Figures) -> str:
    lines = []
    for one in figures.figures:
        before = f"{one.before.text} → " if one.before else ""
        lines.append(f"- {escape(one.label)}: {before}**{one.number.text}**")
    return "\n".join(lines) + "\n"


def _notice(notice: doc.Notice) -> str:
    lines = [f"> **{escape(notice.title)}**", ">"]
    lines += [f"> - {words(item)}" for item in notice.items]
    return "\n".join(lines) + "\n"


def _listing(listing: doc.Listing, pictures: dict[str, str]) -> str:
    out = []
    for number, item in enumerate(listing.items, 1):
        mark = f"{number}. " if listing.numbered else "- "
        inner = "\n".join(block(one, pictures) for one in item).rstrip("\n")
        indent = " " * len(mark)
        lines = inner.split("\n")
        out.append(
            mark + "\n".join([lines[0], *(indent + one if one else "" for one in lines[1:])])
        )
    return "\n".join(out) + "\n"


def block(one: doc.Block, pictures: dict[str, str]) -> str:
    makers: dict[type, Any] = {
        doc.Paragraph: lambda b: words(b.words).strip() + "\n",
        doc.Heading: lambda b: f"**{words(b.words)}**\n",
        doc.Figures: _figures,
        doc.Table: _table,
        doc.Snippet: lambda b: _snippet(b.text),
        doc.Notice: _notice,
        doc.Listing: lambda b: _listing(b, pictures),
    }
    if type(one) in makers:
        return makers[type(one)](one)
    name = pictures[one.id].replace(" ", "%20").replace("(", "%28").replace(")", "%29")
    return f"![{escape(one.title)}](<{name}>)\n"


def markdown(document: doc.Document, pictures: dict[str, str]) -> str:
    """pictures: the file of each chart, by its id."""
    out = [f"# {escape(document.title)}\n"]
    if document.subtitle:
        out.append(words(document.subtitle) + "\n")
    if document.answer:
        out.append(f"**{words(document.answer).strip()}**\n")
    out += [_notice(notice) for notice in document.notices]
    for section in document.sections:
        out.append(f"## {escape(section.title)}\n")
        out += [block(one, pictures) for one in section.blocks]
    return "\n".join(out)
