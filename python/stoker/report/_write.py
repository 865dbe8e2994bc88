"""Writes a document where it was asked for: whole, or not at all."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
from collections.abc import Callable, Iterator
from typing import BinaryIO

from ..errors import DeniedError, NotFoundError, ReadError, UnsupportedError, UsageError
from ._document import Document

REMEDY = "pip install 'stoker[report]'"
ENDINGS = "R.html, R.md, R.png, or a folder for a picture a chart"


def kind_of(out: str) -> str:
    """ "html", "md", "png" or "folder", by the ending."""
    if out.endswith(os.sep) or os.path.isdir(out):
        return "folder"
    ending = os.path.splitext(os.path.basename(out))[1].lower()
    kinds = {".html": "html", ".htm": "html", ".md": "md", ".png": "png", "": "folder"}
    if ending not in kinds:
        raise UsageError(f"a report cannot be written as {ending}: {ENDINGS}", object=out)
    return kinds[ending]


def check(out: str) -> None:
    """Raises what would hinder a report: its libraries, its folder."""
    if not os.path.basename(out.rstrip(os.sep)):
        raise UsageError(f"this names no file for the report: {ENDINGS}", object=out)
    kind = kind_of(out)
    _need("plotly" if kind == "html" else "matplotlib")
    folder = os.path.dirname(os.path.realpath(out))
    if kind == "folder" and os.path.isdir(out):
        folder = out
    if kind == "folder" and os.path.isfile(out):
        raise UsageError("there is a file of that name; a folder cannot be made", object=out)
    if not os.path.isdir(folder):
        raise NotFoundError("the folder for the report is not there", object=folder)
    if not (os.access(out, os.W_OK) if _is_stream(out) else os.access(folder, os.W_OK | os.X_OK)):
        raise DeniedError("no permission to write the report", object=out)


def _need(library: str) -> None:
    """Says what to install, and why it does not load if it is there."""
    try:
        importlib.import_module(library)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise UnsupportedError(f"{library} does not load: {error}", remedy=REMEDY) from None
        raise UnsupportedError(
            f"{library} draws reports, and it is not installed", remedy=REMEDY
        ) from None
    except ImportError as error:
        raise UnsupportedError(f"{library} does not load: {error}", remedy=REMEDY) from None


def write(document: Document, out: str) -> None:
    writers: dict[str, Callable[[Document, str], None]] = {
        "html": _write_page,
        "md": _write_markdown,
        "png": _write_picture,
        "folder": _write_folder,
    }
    writers[kind_of(out)](document, out)


def _is_stream(path: str) -> bool:
    """A pipe or a device, which is written to as it is."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


@contextlib.contextmanager
def whole_file(path: str) -> Iterator[BinaryIO]:
    """A file that appears under its name, or where that links to, when everything is in it."""
    target = os.path.realpath(path)
    temporary = f"{target}.{os.getpid()}.tmp"
    try:
        if _is_stream(path):
            with open(path, "wb") as file:
                yield file
            return
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        _remove(temporary)
        raise _explained(error, path) from None
    except BaseException:
        _remove(temporary)
        raise


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _explained(error: OSError, path: str) -> Exception:
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return DeniedError(f"cannot write the report: {error.strerror}", object=path)
    return ReadError(f"cannot write the report: {error.strerror}", object=path)


def _write_page(document: Document, out: str) -> None:
    from plotly.offline import get_plotlyjs

    from ._html import page

    # A closing tag in a script would end it: plotly writes it so in no release, but might.
    source = get_plotlyjs().replace("</script", "<\\/script")
    text = page(document, source)
    with whole_file(out) as file:
        file.write(text.encode("utf-8"))


def _write_markdown(document: Document, out: str) -> None:
    from . import _picture
    from ._markdown import markdown

    stem = os.path.splitext(os.path.basename(out))[0]
    folder = os.path.dirname(os.path.abspath(out))
    names = {}
    for chart in document.charts():
        names[chart.id] = f"{stem}-{chart.id}.png"
        with whole_file(os.path.join(folder, names[chart.id])) as file:
            _picture.draw([chart], file)
    with whole_file(out) as file:
        file.write(markdown(document, names).encode("utf-8"))


def _write_picture(document: Document, out: str) -> None:
    from . import _picture

    with whole_file(out) as file:
        _picture.draw(document.charts(), file, document.title)


def _write_folder(document: Document, out: str) -> None:
    from . import _picture

    try:
        os.makedirs(out, exist_ok=True)
    except OSError as error:
        raise _explained(error, out) from None
    for chart in document.charts():
        with whole_file(os.path.join(out, f"{chart.id}.png")) as file:
            _picture.draw([chart], file)
