"""From files to a document: which sections there are, and in which order."""

from __future__ import annotations

from . import _bench, _evidence, _method, _story
from ._document import Code, Document, Notice, Section, Word
from ._read import Source
from ._run import Run


def build(sources: list[Source], note: str | None = None) -> Document:
    """The document of these files: runs first, results of benchmarks after them."""
    noted = [Notice("Note", [[note]])] if note else []
    found = [source for source in sources if source.kind == "run"]
    runs = [Run(source, alone=len(found) == 1) for source in found]
    results = [source for source in sources if source.kind != "run"]
    sections = _run_sections(runs) if runs else []
    for source in results:
        sections += _bench.sections(source, alone=len(sources) == 1)
    if runs:
        return Document(
            title=_title(runs),
            subtitle=_subtitle(runs),
            answer=_story.answer(runs),
            notices=noted + _story.notices(runs),
            sections=sections,
            stoker=runs[-1]["stoker"] or "",
        )
    names = ", ".join(_bench.title(source) for source in results)
    return Document(f"Measured: {names}", [], [], noted, sections, "")


def _title(runs: list[Run]) -> str:
    scripts = list(dict.fromkeys(run.script() for run in runs))
    what = ", ".join(scripts[:3])
    if len(runs) > 1:
        return f"{runs[0].label} against {runs[-1].label}"
    who = "GPU" if runs[0].is_gpu else "compute step"
    return f"What the {who} waits for: {what}" if runs[0].ranks else what


def _subtitle(runs: list[Run]) -> list[Word]:
    """What ran, when, where."""
    run = runs[-1]
    words: list[Word] = [Code(" ".join(run["command"]))]
    if run["started"]:
        words.append(f", {run['started'].replace('T', ' ').rstrip('Z')} UTC")
    if run["machine"]["gpu"]:
        words.append(f", {run['machine']['gpu']}")
    return words


def _run_sections(runs: list[Run]) -> list[Section]:
    found = [
        _story.problem(runs),
        _story.comparison(runs),
        _story.strategy(runs),
        _evidence.timeline(runs),
        _evidence.busy(runs),
        _evidence.causes(runs),
        _evidence.functions(runs),
        _evidence.host(runs),
        _evidence.gpu(runs),
        _evidence.ranks(runs),
        _evidence.loaders(runs),
        _evidence.processes(runs),
        _method.machine(runs),
        _method.method(runs),
    ]
    return [section for section in found if section is not None]
