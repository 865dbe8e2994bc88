"""One colour and one name a cause, the same in every chart and table.

They can be told apart by those who see fewer colours: neighbours differ in lightness as well as in
hue, and every chart also names what it colours. All are legible on white and on black.
"""

from __future__ import annotations

COMPUTE = "#4C7A9E"
COMMUNICATION = "#9C82C9"
COPY = "#56B4E9"
WAITING = "#D8791F"
QUIET = "#9AA3AB"  # what needs no attention
MARK = "#C03A2B"

WORDS = {  # as in src/watch/causes.h
    "input/fetch": "reading the data",
    "input/transform": "decoding and transforming",
    "input/collate": "collating batches and handing them between processes",
    "input/workers": "too few workers",
    "input/slow-sample": "one slow sample that holds up the order",
    "input/start": "starting the loader and its epochs",
    "copy": "copying to the device",
    "launch": "Python launching kernels",
    "gil": "the GIL or the pin thread",
    "contention": "other programs on the CPU",
    "sync": "synchronising and logging",
    "checkpoint": "writing checkpoints",
    "validation": "validation",
    "rank": "waiting for another rank",
    "overhead": "being watched",
    "other": "something else",
}

CAUSES = {
    "input/fetch": "#E69F00",
    "input/transform": "#D1495B",
    "input/collate": "#8F4E8B",
    "input/workers": "#F0C45C",
    "input/slow-sample": "#E8718D",
    "input/start": "#A9714B",
    "copy": "#56B4E9",
    "launch": "#5A6ACF",
    "gil": "#B58ADB",
    "contention": "#8A8B2E",
    "sync": "#2E86C1",
    "checkpoint": "#009E73",
    "validation": "#7CC5A9",
    "rank": "#6F5B4B",
    "overhead": "#7D858C",
    "other": "#B4BBC1",
}

# Lines and bars that are no causes, in order.
SERIES = ["#4C7A9E", "#D8791F", "#009E73", "#9C82C9", "#D1495B", "#8A8B2E"]

# The steps of a loop and of a worker, by how their names on the timeline begin.
_STEPS = {
    "next": (WAITING, "the loop waits for a batch"),
    "fetch": ("#E69F00", "fetching"),
    "collate": ("#8F4E8B", "collating"),
    "send": ("#C79BC4", "handing over"),
    "loader": ("#A9714B", "starting the loader"),
    "idle": ("#D5DADE", "a worker without work"),
    "step": ("#7FA8C9", "a step"),
    "forward": ("#7FA8C9", "forward"),
    "backward": ("#4F86B0", "backward"),
    "optimizer": ("#2F5675", "optimizer"),
    "checkpoint": ("#009E73", "checkpoint"),
    "validation": ("#7CC5A9", "validation"),
    "collective": (COMMUNICATION, "communication"),
    "compiling": ("#B4BBC1", "compiling"),
    "profiler": ("#B4BBC1", "the script's own profiler"),
}


def of_cause(cause: str) -> str:
    return CAUSES.get(cause, CAUSES["other"])


def words_of(cause: str) -> str:
    return WORDS.get(cause, cause)


def of_slice(lane: str, name: str) -> tuple[str, str]:
    """Of a piece of the timeline, by its lane and its name: the colour, and what it stands for."""
    lane, name = lane.lower(), name.lower()
    if "nccl" in name:
        return COMMUNICATION, "communication"
    if "copies" in lane or name.startswith(("copy", "memcpy", "memset", "clear")):
        return COPY, "copies"
    if "stream" in lane or lane.startswith("gpu"):
        return COMPUTE, "compute"
    for word, found in _STEPS.items():
        if name.startswith(word):
            return found
    return QUIET, "other"
