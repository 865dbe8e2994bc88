"""One run as the report sees it: what is read from its file, and what is made of it."""

from __future__ import annotations

import itertools
from typing import Any

from . import _format as form
from ._format import Format, Number, look_up, made, number
from ._read import Source

GOAL = 0.9  # of the time that the GPU is to be busy

BUSY_NAMES = {
    "gpu": "GPU busy",
    "sampled": "GPU busy (sampled)",
    "cpu": "computing",
    "nothing": "busy",
}


class Run:
    """A run file with its place in the report."""

    def __init__(self, source: Source, alone: bool) -> None:
        self.data, self.index = source.data, source.number
        self.label, self.alone = source.label, alone

    def titled(self, title: str) -> str:
        """A chart's title: with the run's name, where there are several runs."""
        return title[0].upper() + title[1:] if self.alone else f"{self.label}: {title}"

    def lead(self, words: str) -> str:
        """The beginning of a sentence, with the run's name where there are several."""
        return words if self.alone else f"{self.label}: {words[0].lower()}{words[1:]}"

    def __getitem__(self, name: str) -> Any:
        return self.data[name]

    def get(self, path: str, shape: Format) -> Number:
        """The number at a path of the file."""
        return number(look_up(self.data, path), shape, f"{self.index}/{path}")

    def made(self, name: str, value: float | None, shape: Format) -> Number:
        return made(f"{self.index}/{name}", value, shape)

    @property
    def ranks(self) -> list[dict[str, Any]]:
        return self.data["ranks"]

    @property
    def reliable(self) -> bool:
        return self.data["reliable"] is not False and not self.data["unreliable"]

    @property
    def is_gpu(self) -> bool:
        return self.data["mode"] in ("gpu", "sampled")

    @property
    def busy_name(self) -> str:
        return BUSY_NAMES.get(self.data["mode"] or "", "busy")

    @property
    def is_busy(self) -> str:
        """The beginning of a sentence that ends with a share of the time."""
        if not self.is_gpu:
            return "computing is"
        return "the GPUs are busy" if len(self.ranks) > 1 else "the GPU is busy"

    @property
    def who(self) -> str:
        """Who waits."""
        if not self.is_gpu:
            return "training step"
        return "GPUs" if len(self.ranks) > 1 else "GPU"

    def busy(self) -> Number:
        """The share of the judged time in which there was compute, over all ranks."""
        if len(self.ranks) == 1:
            return self.get("ranks/0/busy/compute", form.share)
        judged, compute = self.judged_value(), self.total("compute_s")
        known = judged and compute is not None
        return self.made("busy", compute / judged if known else None, form.share)

    def judged_value(self) -> float | None:
        """Seconds that were judged, all ranks together."""
        spans = [
            rank["end_s"] - rank["start_s"] - (rank["excluded_s"] or 0.0)
            for rank in self.ranks
            if rank["end_s"] is not None and rank["start_s"] is not None
        ]
        return sum(spans) if spans else None

    def judged(self) -> Number:
        return self.made("judged", self.judged_value(), form.seconds)

    def total(self, name: str) -> float | None:
        """A value of all ranks together; None where none has it."""
        values = [rank[name] for rank in self.ranks if rank[name] is not None]
        return sum(values) if values else None

    def summed(self, name: str, shape: Format) -> Number:
        if len(self.ranks) == 1:
            return self.get(f"ranks/0/{name}", shape)
        return self.made(name, self.total(name), shape)

    def epoch(self) -> Number:
        """Seconds of an epoch: of the slowest rank, for the others wait for it."""
        values = [(rank["epoch_s"], i) for i, rank in enumerate(self.ranks) if rank["epoch_s"]]
        if not values:
            return Number(form.UNSEEN)
        return self.get(f"ranks/{max(values)[1]}/epoch_s", form.seconds)

    def script(self) -> str:
        """What ran, in a word: the first argument that names a program, else the command."""
        words = self.data["command"]
        for word in words[1:]:
            if word.endswith(".py"):
                return word.rsplit("/", 1)[-1]
        for before, word in itertools.pairwise(words):
            if before == "-m":
                return word
        return words[0].rsplit("/", 1)[-1] if words else "a run"


def reduction(before: Number, after: Number) -> float | None:
    """By which share a time became shorter."""
    if not before.value or after.value is None:
        return None
    return 1 - after.value / before.value
