"""Reads run files and results of benchmarks, and refuses what is neither, in words."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from ..errors import (
    CorruptError,
    DeniedError,
    LimitError,
    NotFoundError,
    ReadError,
    StokerError,
    TruncatedError,
    UnsupportedError,
    UsageError,
)
from ._schema import BENCH, RUN, TRAINING, Wrong, shaped

VERSION = 1
MOST_BYTES = 256 << 20
ANEW = "write it anew: stoker run --json RUN.json -- COMMAND"


@dataclass(frozen=True)
class Source:
    """One file, read. kind: "run", "bench" or "training"; number: its place in the report."""

    kind: str
    label: str
    number: int
    data: dict[str, Any]
    raw: dict[str, Any]


def read_all(paths: Iterable[str]) -> list[Source]:
    """The files in order, each with a name of its own."""
    names = list(paths)
    if not names:
        raise UsageError("there is no run to draw")
    labels = _labels(names)
    sources = []
    for number, (path, label) in enumerate(zip(names, labels, strict=True)):
        kind, raw = _load(path)
        sources.append(Source(kind, label, number, _shaped(kind, raw, path), raw))
    return sources


def _labels(paths: list[str]) -> list[str]:
    """File names without folder and ending; folders too where names are alike."""
    stems = [os.path.splitext(os.path.basename(path))[0] or path for path in paths]
    if len(set(stems)) == len(stems):
        return [_clean(stem) for stem in stems]
    whole = [os.path.splitext(path)[0] for path in paths]
    if len(set(whole)) == len(whole):
        return [_clean(stem) for stem in whole]
    return [_clean(f"{stem} ({number})") for number, stem in enumerate(stems, 1)]


def _clean(text: str) -> str:
    """A name of a file may hold bytes that are no text."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _load(path: str) -> tuple[str, dict[str, Any]]:
    text = _text(path)
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        if _is_cut(text, error):
            raise TruncatedError(
                "the file ends too early: it was cut short", object=path, remedy=ANEW
            ) from None
        raise CorruptError(
            f"this is not JSON: {error.msg} in line {error.lineno}", object=path, remedy=ANEW
        ) from None
    except (ValueError, RecursionError):
        raise CorruptError(
            "this is no JSON that a run file could hold", object=path, remedy=ANEW
        ) from None
    return _kind(value, path), value


def _is_cut(text: str, error: json.JSONDecodeError) -> bool:
    """Began as an object and stops making sense where it stops."""
    begins = text.lstrip()[:1] == "{"
    open_text = error.msg.startswith("Unterminated string")
    return begins and (open_text or not text[error.pos :].strip() or error.pos >= len(text) - 8)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _text(path: str) -> str:
    try:
        if os.path.isdir(path):
            raise UsageError(
                "this is a folder, not a run file", object=path, remedy="name the files in it"
            )
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except StokerError:
        raise
    except FileNotFoundError:
        raise NotFoundError("there is no such run file", object=path, remedy=ANEW) from None
    except PermissionError:
        raise DeniedError("no permission to read the run file", object=path) from None
    except OSError as error:
        raise ReadError(f"cannot read the run file: {error.strerror}", object=path) from None
    if len(data) > MOST_BYTES:
        raise LimitError("this is too large for a run file", object=path)
    if not data.strip():
        raise TruncatedError("the file is empty", object=path, remedy=ANEW)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.end >= len(data) and data.lstrip()[:1] == b"{":
            raise TruncatedError(
                "the file ends too early: it was cut short", object=path, remedy=ANEW
            ) from None
        raise CorruptError("this is not JSON: it is no text", object=path, remedy=ANEW) from None


def _kind(value: Any, path: str) -> str:
    if not isinstance(value, dict):
        value = {}
    if "stoker_run" in value:
        version = value["stoker_run"]
        if version != VERSION or isinstance(version, bool):
            words = json.dumps(version)[:40]
            raise UnsupportedError(
                f"the run file is of version {words}; this Stoker reads version {VERSION}",
                object=path,
                remedy="draw it with the Stoker that wrote it, or run the command again",
            )
        return "run"
    if isinstance(value.get("bench"), str) and isinstance(value.get("rows"), list):
        return "bench"
    epochs = value.get("epochs")
    if isinstance(epochs, list) and epochs and isinstance(epochs[0], dict) and "loss" in epochs[0]:
        return "training"
    raise CorruptError(
        "this is neither a run file nor a benchmark's result",
        object=path,
        remedy="run files come from: stoker run --json RUN.json -- COMMAND",
    )


def _shaped(kind: str, raw: dict[str, Any], path: str) -> dict[str, Any]:
    shape = {"run": RUN, "bench": BENCH, "training": TRAINING}[kind]
    try:
        data = shaped(shape, raw)
    except Wrong as error:
        raise CorruptError(str(error), object=path, remedy=ANEW) from None
    return data
