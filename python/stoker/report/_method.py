"""Where a run took place, how it was watched, and what that cannot see."""

from __future__ import annotations

from . import _format as form
from ._document import Code, Listing, Paragraph, Section, Table, Words
from ._run import Run

MODES = {
    "gpu": "Every kernel, copy and synchronisation of the GPU was recorded by CUPTI. Busy times "
    "are exact unions of these intervals, to the microsecond.",
    "gpu at first": "Kernels, copies and synchronisations of the GPU were recorded by CUPTI in the "
    "first part of the run: all of them there, and none later, for that would have slowed the "
    "script down. A step is taken to have kept it as busy later as there; what the loop waited "
    "for was seen all the time.",
    "sampled": "The GPU's kernels were not recorded; the notes say why. Busy is what NVML samples "
    "a few times a second, of the devices that the run uses: a kernel of any size makes the GPU "
    "busy for a whole sample, and short gaps are not seen. Busy is thus the most that it can have "
    "been.",
    "cpu": "No GPU was seen. Busy is the compute step: what the main thread did between one batch "
    "and the call for the next, less what went to other causes.",
    "nothing": "Neither a GPU nor training steps were seen. Only the figures of the host stand.",
}

LIMITS = [
    "Judged is the time from the first batch to the last step. Imports, building the model and the "
    "end of the script are left out.",
    "Each idle moment goes to one cause, by what overlapped it. Shares add up to 100 %.",
    "A gain is what would be left if its cause were gone: the most that can be gained, not a "
    "promise. Gains do not add up.",
    "Functions are found by samples of the Python stacks: what is short and rare may be missing.",
    "TensorFlow and other frameworks: GPU busy and host figures only.",
]


def machine(runs: list[Run]) -> Section:
    """A column a run."""
    texts = [
        ("GPU", "gpu"),
        ("driver", "driver"),
        ("CUPTI", "cupti"),
        ("Python", "python"),
        ("torch", "torch"),
        ("kernel", "kernel"),
    ]
    rows: list[list[Words]] = [
        [["command"], *([Code(" ".join(run["command"]))] for run in runs)],
        [["started"], *([run["started"] or form.UNSEEN] for run in runs)],
        [["took"], *([run.get("wall_s", form.seconds)] for run in runs)],
        [["CPUs"], *([run.get("machine/cpus", form.plain)] for run in runs)],
        [["memory"], *([run.get("machine/memory_bytes", form.size)] for run in runs)],
    ]
    for words, name in texts:
        values = [run["machine"][name] for run in runs]
        if any(values):
            rows.append([[words], *([value or form.UNSEEN] for value in values)])
    head = ["", *(run.label for run in runs)] if len(runs) > 1 else ["", ""]
    return Section("machine", "Machine", [Table(head, rows, "l" * len(head))])


def method(runs: list[Run]) -> Section:
    blocks = []
    modes = {_mode(run) for run in runs}
    for run in runs:
        if len(modes) > 1 or run is runs[0]:
            name = f"{run.label}: " if len(modes) > 1 else ""
            blocks.append(Paragraph([name + MODES.get(_mode(run), MODES["nothing"])]))
    for run in runs:
        blocks.append(Paragraph(_watching(runs, run), quiet=True))
    blocks.append(Listing([[Paragraph([text])] for text in LIMITS]))
    return Section("method", "Method and its limits", blocks)


def _mode(run: Run) -> str:
    is_partly = any(rank["recorded"] is not None and rank["recorded"] < 1 for rank in run["ranks"])
    return "gpu at first" if run["mode"] == "gpu" and is_partly else run["mode"] or "nothing"


def _watching(runs: list[Run], run: Run) -> Words:
    """What watching cost, and whether anything was lost."""
    name = f"{run.label}: w" if len(runs) > 1 else "W"
    words = [f"{name}atching kept ", run.get("watching/records", form.count), " records, lost "]
    words += [run.get("watching/lost", form.count), ", looked at stacks at "]
    words += [run.get("watching/stacks_hz", form.frequency), ", and took "]
    words += [run.get("watching/cpu_s", form.seconds), " of CPU time and "]
    words += [run.get("watching/rss_bytes", form.size), " of memory."]
    return words
