"""What a report is made of, before it becomes a page, Markdown or pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ._format import Number


@dataclass(frozen=True)
class Code:
    """A word as it stands in a program."""

    text: str


Word = str | Number | Code
Words = Sequence[Word]


# --- charts ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """One colour of a bar chart: a value a bar."""

    name: str
    colour: str
    values: list[float | None]
    words: list[str]  # the same for people


@dataclass(frozen=True)
class Bars:
    """Lying bars, one below the other; several parts of one bar follow each other."""

    id: str
    title: str
    rows: list[str]
    parts: list[Part]
    unit: str
    ends: list[str] = field(default_factory=list)  # words behind each bar
    spread: list[tuple[float, float]] = field(default_factory=list)  # lowest and highest of each
    limit: tuple[float, str] | None = None  # a line across, and its name
    top: float | None = None
    half = False


@dataclass(frozen=True)
class Line:
    name: str
    colour: str
    values: list[float | None]
    filled: bool = False
    dashed: bool = False


@dataclass(frozen=True)
class Lines:
    """Values over time."""

    id: str
    title: str
    x: list[float]
    lines: list[Line]
    unit: str
    x_unit: str = "s"
    top: float | None = None  # of the axis; None: what the values need
    limit: tuple[float, str] | None = None
    judged: tuple[float, float] | None = None  # what lies outside is drawn as not judged
    half: bool = False


@dataclass(frozen=True)
class Piece:
    start: float
    end: float
    name: str
    colour: str


@dataclass(frozen=True)
class Lanes:
    """What went on at the same time, a lane each. bands: stalls, drawn across all lanes."""

    id: str
    title: str
    start: float
    end: float
    lanes: list[tuple[str, list[Piece]]]
    bands: list[Piece]
    legend: list[tuple[str, str]]
    half = False


@dataclass(frozen=True)
class Node:
    id: str
    parent: str
    label: str
    where: str
    seconds: float
    share: float
    colour: str
    depth: int


@dataclass(frozen=True)
class Icicle:
    """Functions below those that called them, as wide as they were long."""

    id: str
    title: str
    nodes: list[Node]
    depth: int
    legend: list[tuple[str, str]]
    half = False


Chart = Bars | Lines | Lanes | Icicle


# --- text -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Paragraph:
    words: Words
    quiet: bool = False


@dataclass(frozen=True)
class Heading:
    """Within a section: the name of a run, of a function."""

    words: Words


@dataclass(frozen=True)
class Figure:
    """A number that is to be seen first. before: what it was in the first run."""

    label: str
    number: Number
    before: Number | None = None
    note: str = ""


@dataclass(frozen=True)
class Figures:
    figures: list[Figure]


@dataclass(frozen=True)
class Table:
    """align: a letter a column, "l" or "r"."""

    head: list[str]
    rows: list[list[Words]]
    align: str
    chips: list[str] = field(default_factory=list)  # a colour a row


@dataclass(frozen=True)
class Snippet:
    text: str


@dataclass(frozen=True)
class Notice:
    """What a reader must not miss."""

    title: str
    items: list[Words]
    bad: bool = False


@dataclass(frozen=True)
class Listing:
    items: list[list[Block]]
    numbered: bool = False


Block = Paragraph | Heading | Figures | Table | Snippet | Notice | Listing | Chart


@dataclass(frozen=True)
class Section:
    id: str
    title: str
    blocks: list[Block]


@dataclass(frozen=True)
class Document:
    title: str
    subtitle: Words
    answer: Words
    notices: list[Notice]
    sections: list[Section]
    stoker: str

    def charts(self) -> list[Chart]:
        """All charts, in order."""
        blocks = (block for section in self.sections for block in section.blocks)
        return [block for block in blocks if isinstance(block, Bars | Lines | Lanes | Icicle)]
