"""What can go wrong, as one family of exceptions.

Every exception that Stoker raises about data is a :class:`StokerError`. Its attributes say what,
where and what to do; where Python has an exception of the same meaning, it is one of those too.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "BadSampleError",
    "BusyError",
    "CancelledError",
    "CorruptError",
    "DeniedError",
    "LimitError",
    "MapError",
    "MismatchError",
    "NotFoundError",
    "OutOfMemoryError",
    "ReadError",
    "ResourceError",
    "ShapeError",
    "StaleError",
    "StokerError",
    "TruncatedError",
    "UnsupportedError",
    "UsageError",
]


class StokerError(Exception):
    """The base of all of them.

    Attributes:
        status: the library's word for it: ``"CORRUPT"``, ``"NOT_FOUND"`` and so on.
        object: the path or URI of the file it is about, or None.
        offset: the byte in that file, or None.
        sample: the number of the sample in the dataset, or None.
        key: the sample's key, or None.
        field: the field's name, or None.
        remedy: what you can do, or None.

    >>> import stoker
    >>> try:
    ...     stoker.open("/no/such/folder")
    ... except stoker.StokerError as error:
    ...     print(error.status)
    NOT_FOUND
    """

    status = "FAILED"
    object: str | None = None
    offset: int | None = None
    sample: int | None = None
    key: str | None = None
    field: str | None = None
    remedy: str | None = None

    def __init__(self, message: str = "", **where: Any) -> None:
        remedy = where.get("remedy")
        if remedy and remedy not in message:  # the library has written it already
            message = f"{message}\n  {remedy}"
        super().__init__(message)
        for name, value in where.items():
            setattr(self, name, value)


class UsageError(StokerError, ValueError):
    """The arguments do not fit together."""

    status = "USAGE"


class NotFoundError(StokerError, FileNotFoundError):
    """There is no such file, sample or field."""

    status = "NOT_FOUND"


class DeniedError(StokerError, PermissionError):
    """No permission."""

    status = "DENIED"


class ReadError(StokerError, OSError):
    """Reading or writing failed."""

    status = "IO"


class CorruptError(StokerError, ValueError):
    """The bytes are not what their format demands."""

    status = "CORRUPT"


class TruncatedError(CorruptError):
    """The bytes end too early."""

    status = "TRUNCATED"


class LimitError(StokerError, ValueError):
    """A cap was passed: a file claims more than Stoker is willing to hold."""

    status = "LIMIT"


class ShapeError(StokerError, ValueError):
    """Samples differ in shape or type."""

    status = "SHAPE"


class UnsupportedError(StokerError, NotImplementedError):
    """This build or this format cannot do that."""

    status = "UNSUPPORTED"


class StaleError(StokerError, RuntimeError):
    """A file changed since it was indexed."""

    status = "STALE"


class MismatchError(StokerError, ValueError):
    """A state belongs to another dataset or to other options."""

    status = "MISMATCH"


class OutOfMemoryError(StokerError, MemoryError):
    """Out of memory, or over the memory budget."""

    status = "MEMORY"


class ResourceError(StokerError, OSError):
    """The system refused a thread, a file or a lock."""

    status = "RESOURCE"


class CancelledError(StokerError):
    """Stopped on request."""

    status = "CANCELLED"


class BusyError(StokerError, RuntimeError):
    """Another thread is using it."""

    status = "BUSY"


class BadSampleError(StokerError, ValueError):
    """One sample cannot be read or decoded, or does not fit into its batch.

    ``status`` says why, ``sample``, ``key``, ``field``, ``object`` and ``offset`` say which.
    ``Loader(..., bad="replace")`` replaces such samples and lists them in ``loader.quarantine``.
    """

    status = "CORRUPT"


class MapError(StokerError, RuntimeError):
    """Your ``map=`` or ``sample_map=`` failed; what it raised is the cause.

    Attributes:
        stage: ``"map"`` or ``"sample_map"``.
    """

    status = "MAP"
    stage: str | None = None


_BY_STATUS: dict[str, type[StokerError]] = {
    kind.status: kind
    for kind in (
        UsageError,
        NotFoundError,
        DeniedError,
        ReadError,
        CorruptError,
        TruncatedError,
        LimitError,
        ShapeError,
        UnsupportedError,
        StaleError,
        MismatchError,
        OutOfMemoryError,
        ResourceError,
        CancelledError,
        BusyError,
    )
}
# With one of these and a sample's number, it is the sample that is bad.
_OF_A_SAMPLE = {"CORRUPT", "TRUNCATED", "LIMIT", "SHAPE", "NOT_FOUND", "UNSUPPORTED"}


def make_error(words: dict[str, Any]) -> StokerError:
    """The exception for an error of the C library."""
    status = words.pop("status")
    message = words.pop("message")
    where = {name: value for name, value in words.items() if value not in ("", None)}
    if status in _OF_A_SAMPLE and "sample" in where:
        kind: type[StokerError] = BadSampleError
    else:
        kind = _BY_STATUS.get(status, StokerError)
    return kind(message, status=status, **where)
