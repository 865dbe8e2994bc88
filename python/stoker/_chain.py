"""A step of a chain, and a chain, as the text that the library reads."""

from __future__ import annotations

import dataclasses
import enum
import numbers
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy

from . import _arrays

# Pillow's numbers of them, which torchvision takes too.
_INTERPOLATIONS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")


def _interpolation(value: Any) -> Any:
    """A word for what torchvision and Pillow have as members of enums."""
    if isinstance(value, enum.Enum) and isinstance(value.value, str):
        return value.value
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if is_number and 0 <= value < len(_INTERPOLATIONS):
        return _INTERPOLATIONS[value]
    return value


def _plain(value: Any) -> Any:
    """The value as it is kept: numbers, text, bools, None and tuples of numbers."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, numpy.bool_):
        return bool(value)
    if _arrays.is_array(value):
        return _plain(value.tolist())
    if hasattr(value, "__index__"):
        return operator.index(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return tuple(_plain(one) for one in value)
    raise TypeError(
        f"{value!r} cannot be an argument of a transform; numbers, text, bools, None and lists of "
        "numbers can"
    )


def _text(value: Any) -> str:
    """A plain value as the library reads it."""
    if isinstance(value, str):
        quote = '"' if "'" in value else "'"
        if quote in value or "\n" in value or "\0" in value:
            raise ValueError(
                f"{value!r} cannot be written in a chain: it has quotes of both kinds, or lines"
            )
        return f"{quote}{value}{quote}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


class Transform:
    """One step of a chain, as text: for transforms that have no class here, such as a plugin's.

    Steps are equal when their texts are. They are immutable, and pickle.

    >>> stoker.Transform("Solarize(0.5)")
    Solarize(0.5)
    """

    __slots__ = ("_words",)
    _words: str

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"a transform is written as text, not {type(text).__name__}")
        if not text.strip():
            raise ValueError("a transform has a name; this text is empty")
        object.__setattr__(self, "_words", text.strip())

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a transform does not change; make another {type(self).__name__}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a transform does not change")

    def __repr__(self) -> str:
        return self._words

    def __eq__(self, other: object) -> bool:
        return repr(self) == repr(other) if isinstance(other, Transform) else NotImplemented

    def __hash__(self) -> int:
        return hash(repr(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._words,)


@dataclass(frozen=True, repr=False, eq=False)
class Named(Transform):
    """A transform of the library: its arguments are the fields of the dataclass."""

    _bare: ClassVar[tuple[str, ...]] = ()  # written without their names, where they are given

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name == "interpolation":
                value = _interpolation(value)
            object.__setattr__(self, field.name, _plain(value))
        object.__setattr__(self, "_words", self._write())

    def _write(self) -> str:
        """Arguments that differ from their defaults; those that must be given have no name."""
        written = []
        for field in dataclasses.fields(self):
            text = _text(getattr(self, field.name))
            is_needed = field.default is dataclasses.MISSING
            if is_needed or text != _text(_plain(field.default)):
                is_bare = (is_needed and not field.kw_only) or field.name in self._bare
                written.append(text if is_bare else f"{field.name}={text}")
        return f"{type(self).__name__}({', '.join(written)})"

    def __reduce__(self) -> tuple[Any, ...]:
        fields = dataclasses.fields(self)
        return _make, (type(self), {field.name: getattr(self, field.name) for field in fields})


def _make(kind: type[Named], arguments: dict[str, Any]) -> Named:
    """What a pickle calls."""
    return kind(**arguments)


Step = Transform | str
Chain = Step | Sequence[Step]


def chain_text(chain: Chain) -> str:
    """A chain as the library reads it: steps joined by ``|``.

    >>> chain_text([stoker.Resize(256), "CenterCrop(224) | RandomHorizontalFlip"])
    'Resize(256) | CenterCrop(224) | RandomHorizontalFlip'
    """
    if isinstance(chain, str):
        return chain.strip()
    if isinstance(chain, Transform) or isinstance(chain, type):
        return _step_text(chain)
    if not isinstance(chain, Sequence) or isinstance(chain, (bytes, bytearray)):
        raise TypeError(f"a chain is text, a transform or a list of them, not {chain!r}")
    return " | ".join(_step_text(step) for step in chain)


def _step_text(step: Any) -> str:
    if isinstance(step, type) and issubclass(step, Transform):
        raise TypeError(f"{step.__name__} is a class; write {step.__name__}(...)")
    if not isinstance(step, (str, Transform)):
        raise TypeError(f"a step of a chain is a transform or text, not {step!r}")
    text = str(step).strip()
    if not text:
        raise ValueError("a step of the chain is empty")
    return text
