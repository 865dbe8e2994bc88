"""Reads what users write: sizes, ranks, fields, sources."""

from __future__ import annotations

import operator
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy

from . import _core

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS |= {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def parse_size(size: int | str) -> int:
    """Bytes: 4096, "512MiB", "2GB"."""
    if not isinstance(size, str) and operator.index(size) >= 0:
        return operator.index(size)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", str(size).lower())
    if not found or found[2] not in _UNITS:
        raise ValueError(f"{size!r} is not a size; write it like 512MiB or 2GB")
    return int(float(found[1]) * _UNITS[found[2]])


class Ranks(NamedTuple):
    """Who this process is among all, and among those on this machine."""

    rank: int
    world_size: int
    local_rank: int
    local_world_size: int


def _environment(name: str, default: int) -> int:
    text = os.environ.get(name)
    if text is None or not text.strip():
        return default
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"the environment says {name}={text!r}, which is not a number") from None


def find_ranks(rank: int | None, world_size: int | None) -> Ranks:
    """Explicit numbers, else torch.distributed's when it is initialised, else the environment's."""
    if (rank is None) != (world_size is None):
        raise ValueError("rank and world_size go together: give both or none")
    if rank is None or world_size is None:
        rank, world_size = _known_ranks()
    rank, world_size = operator.index(rank), operator.index(world_size)
    if world_size < 1 or not 0 <= rank < world_size:
        raise ValueError(f"rank {rank} is not one of {world_size} ranks")
    local_world = _environment("LOCAL_WORLD_SIZE", 1)
    local_rank = _environment("LOCAL_RANK", 0)
    if world_size == 1 or not 0 <= local_rank < local_world:
        local_rank, local_world = 0, 1
    return Ranks(rank, world_size, local_rank, local_world)


def _known_ranks() -> tuple[int, int]:
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return _environment("RANK", 0), _environment("WORLD_SIZE", 1)


Fields = str | Sequence[str] | Mapping[str, str | None] | None


def read_fields(fields: Fields) -> list[str] | None:
    """The library's form: "jpg;png", "txt?", "blob=tensor"."""
    if fields is None:
        return None
    if isinstance(fields, str):
        fields = [fields]
    if isinstance(fields, Mapping):
        fields = [name if kind is None else f"{name}={kind}" for name, kind in fields.items()]
    names = list(fields)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"a field's name is text, not {type(name).__name__}")
    if not names:
        raise ValueError("fields is empty; leave it out to get all of them")
    return names


Source = str | os.PathLike[str]


def read_sources(sources: Source | Sequence[Source]) -> list[str]:
    """Paths and URIs, as text."""
    if isinstance(sources, (str, bytes, os.PathLike)):
        sources = [sources]
    names = [os.fsdecode(source) for source in sources]
    if not names:
        raise ValueError("there is no source to open")
    return names


def working_folder() -> str:
    """Where relative names begin; empty where that folder is gone."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def read_dtype(dtype: Any) -> str | None:
    """ "float16" of "float16", "f16", "f2", torch.float16, numpy.float16 or numpy.dtype("<f2")."""
    if dtype is None:
        return None
    text = str(dtype) if isinstance(dtype, str) or type(dtype).__module__ == "torch" else ""
    if not _core.parse_dtype(text):
        try:
            text = numpy.dtype(dtype).str.lstrip("|")
        except TypeError:
            text = ""
    if not _core.parse_dtype(text):
        raise ValueError(f"{dtype!r} is not a dtype that numpy and torch share, such as float16")
    return text


def encode_names(names: Sequence[str] | None) -> list[bytes] | None:
    """Names of columns for the library: UTF-8, whatever the locale says."""
    return None if names is None else [name.encode("utf-8", "surrogateescape") for name in names]


def read_names(what: str, names: str | Sequence[str] | None) -> list[str] | None:
    """Names of columns; one may stand alone."""
    if names is None:
        return None
    found = [names] if isinstance(names, str) else list(names)
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"{what} are names of columns, not {type(name).__name__}")
    if not found:
        raise ValueError(f"{what} is empty; leave it out to get the default")
    return found
