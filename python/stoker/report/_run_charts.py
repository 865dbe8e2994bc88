"""Charts of runs: from the file's numbers to what is drawn."""

from __future__ import annotations

import re
from typing import Any

from . import _colours as colours
from . import _format as form
from ._document import Bars, Icicle, Lanes, Line, Lines, Node, Part, Piece
from ._format import scaled
from ._run import Run

MOST_PIECES = 4000  # of a timeline: more are too many for a phone
MOST_BANDS = 80
MOST_LANES = 24
MOST_NODES = 400
MOST_DEPTH = 24
SMALLEST_NODE = 0.004  # of the whole

# --- bars -----------------------------------------------------------------------------------------


def cause_order(runs: list[Run]) -> list[tuple[str, str]]:
    """Causes that any run has, as (id, words), those with most seconds first."""
    seconds: dict[str, float] = {}
    words: dict[str, str] = {}
    for run in runs:
        for cause in run["causes"]:
            name = cause["cause"] or "other"
            seconds[name] = seconds.get(name, 0.0) + (cause["seconds"] or 0.0)
            words.setdefault(name, cause["words"] or colours.words_of(name))
    names = sorted(seconds, key=lambda name: -seconds[name])
    return [(name, words[name]) for name in names if seconds[name] > 0]


def _of_cause(run: Run, name: str, what: str) -> float:
    return sum(cause[what] or 0.0 for cause in run["causes"] if (cause["cause"] or "other") == name)


def causes_bar(runs: list[Run]) -> Bars | None:
    """What the idle time went to, as shares: a bar a run."""
    order = cause_order(runs)
    if not order:
        return None
    parts = []
    for name, words in order:
        shares = [_of_cause(run, name, "share") for run in runs]
        said = [
            f"{words}: {form.share(share)} of idle, {form.seconds(_of_cause(run, name, 'seconds'))}"
            for run, share in zip(runs, shares, strict=True)
        ]
        parts.append(Part(words, colours.of_cause(name), [100 * one for one in shares], said))
    rows = [run.label if len(runs) > 1 else "" for run in runs]
    return Bars("causes", "What the idle time went to", rows, parts, "%", top=100)


def epoch_bar(runs: list[Run]) -> Bars | None:
    """An epoch of each run: compute, then what was waited for, in seconds."""
    epochs = [run.epoch().value for run in runs]
    judged = [run.judged_value() for run in runs]
    if None in epochs or not all(judged):
        return None
    factors = [epoch / whole for epoch, whole in zip(epochs, judged, strict=True)]
    computes = [
        (run.total("compute_s") or 0.0) * factor for run, factor in zip(runs, factors, strict=True)
    ]
    said = [f"compute: {form.seconds(value)} an epoch" for value in computes]
    parts = [Part("compute", colours.COMPUTE, list(computes), said)]
    for name, words in cause_order(runs):
        values = [
            _of_cause(run, name, "seconds") * factor
            for run, factor in zip(runs, factors, strict=True)
        ]
        said = [f"{words}: {form.seconds(value)} an epoch" for value in values]
        parts.append(Part(words, colours.of_cause(name), list(values), said))
    rows, ends = [run.label for run in runs], [run.epoch().text for run in runs]
    return Bars("epochs", "Where an epoch's time went", rows, parts, "s", ends=ends)


# --- over time ------------------------------------------------------------------------------------


def _times(run: Run, values: list[Any]) -> list[float]:
    width = run["series"]["bin_s"] or 1.0
    return [round(width * (i + 0.5), 6) for i in range(len(values))]


def busy_lines(run: Run) -> Lines | None:
    """How busy the GPU was, and how much of the time the loop waited for a batch."""
    series = run["series"]
    kinds = [
        ("compute", "compute", colours.COMPUTE, True),
        ("gpu_nvml", "busy by NVML's samples", colours.COMPUTE, run["mode"] == "sampled"),
        ("communication", "communication", colours.COMMUNICATION, False),
        ("copy", "copies", colours.COPY, False),
        ("waiting", "the loop waits for a batch", colours.WAITING, False),
    ]
    lines = []
    for name, words, colour, filled in kinds:
        values = series[name]
        if name == "gpu_nvml" and run["mode"] != "sampled":
            continue
        if any(values):
            shown, _ = scaled(values, "share")
            lines.append(Line(words, colour, shown, filled=filled))
    if not lines:
        return None
    longest = max(len(line.values) for line in lines)
    title = run.titled("busy over time")
    x = _times(run, [0] * longest)
    return Lines(
        f"busy-{run.index}",
        title,
        x,
        lines,
        "%",
        top=100,
        judged=_judged(run, x[-1]),
        half=not run.alone,
    )


def _judged(run: Run, last: float) -> tuple[float, float] | None:
    """From the first rank's start to the last one's end; None where that is all."""
    starts = [rank["start_s"] for rank in run.ranks if rank["start_s"] is not None]
    ends = [rank["end_s"] for rank in run.ranks if rank["end_s"] is not None]
    if not starts or not ends or max(ends) <= min(starts):
        return None
    return max(0.0, min(starts)), min(last, max(ends))


def _several(
    run: Run, id: str, title: str, kind: str, parts: list[tuple[str, str]]
) -> Lines | None:
    """Lines of one unit: parts are (name in the file, words)."""
    seen = [(name, words) for name, words in parts if any(run["series"][name])]
    if not seen:
        return None
    everything = [value for name, _ in seen for value in run["series"][name]]
    _, unit = scaled(everything, kind)
    most = max((abs(value) for value in everything if value is not None), default=1.0)
    factor = (scaled([most], kind)[0][0] or 1.0) / (most or 1.0)
    lines = [
        Line(
            words,
            colours.SERIES[number],
            [None if value is None else value * factor for value in run["series"][name]],
            filled=len(seen) == 1,
        )
        for number, (name, words) in enumerate(seen)
    ]
    longest = max(len(line.values) for line in lines)
    x = _times(run, [0] * longest)
    return Lines(f"{id}-{run.index}", run.titled(title), x, lines, unit, half=True)


def samples_lines(run: Run) -> Lines | None:
    return _several(run, "samples", "throughput", "samples/s", [("samples_s", "samples a second")])


def memory_lines(run: Run) -> Lines | None:
    parts = [("rss_bytes", "resident, all processes together")]
    return _several(run, "memory", "memory", "bytes", parts)


def io_lines(run: Run) -> Lines | None:
    parts = [
        ("read_bytes_s", "read from disk"),
        ("written_bytes_s", "written to disk"),
        ("network_bytes_s", "network"),
    ]
    return _several(run, "io", "input and output", "bytes/s", parts)


def cpu_lines(run: Run) -> Lines | None:
    parts = [
        ("cpu", "by the run"),
        ("machine_cpu", "by all programs"),
        ("iowait", "waiting for a disk"),
    ]
    chart = _several(run, "cpu", "CPUs in use", "", parts)
    cpus = run["machine"]["cpus"]
    if chart is None or not cpus:
        return chart
    words = f"{cpus:g} CPUs"
    return Lines(
        chart.id, chart.title, chart.x, chart.lines, chart.unit, limit=(cpus, words), half=True
    )


def gpu_memory_lines(run: Run) -> Lines | None:
    return _several(run, "gpu-memory", "GPU memory", "bytes", [("gpu_memory_bytes", "in use")])


def gpu_power_lines(run: Run) -> Lines | None:
    return _several(run, "gpu-power", "GPU power", "W", [("gpu_power_w", "drawn")])


def gpu_clock_lines(run: Run) -> Lines | None:
    return _several(run, "gpu-clock", "GPU clock", "MHz", [("gpu_clock_mhz", "of its processors")])


def gpu_pcie_lines(run: Run) -> Lines | None:
    parts = [("gpu_pcie_received_bytes_s", "received"), ("gpu_pcie_sent_bytes_s", "sent")]
    return _several(run, "gpu-pcie", "GPU over PCIe", "bytes/s", parts)


# --- the timeline ---------------------------------------------------------------------------------


def _pieces(lane: str, slices: list[list[Any]], stop: float, shortest: float) -> list[Piece]:
    """Slices in order, up to a moment; neighbours of one colour that are too near become one."""
    idle = _is_idle(lane)
    pieces: list[Piece] = []
    whole = [one for one in slices if one[0] is not None and one[1] is not None and one[1] > one[0]]
    for start, end, name in sorted(whole, key=lambda one: one[0]):
        if start >= stop:
            break
        end, name = min(end, stop), name or ""
        colour = colours.of_cause(name) if idle else colours.of_slice(lane, name)[0]
        last = pieces[-1] if pieces else None
        if last and last.colour == colour and start - last.end < shortest:
            both = last.name if last.name == name else f"{last.name.removesuffix(' …')} …"
            pieces[-1] = Piece(last.start, max(last.end, end), both, colour)
        else:
            pieces.append(Piece(start, end, name, colour))
    return pieces


def _is_idle(lane: str) -> bool:
    """Whether a lane holds what was waited for; its slices are named by causes."""
    return lane.startswith("idle")


def excerpt_end(run: Run) -> float | None:
    """Where the picture ends. A lane that was full ends in one long slice, "several", which says
    nothing any more; kernels that were joined are named so too, and that is fine."""
    excerpt = run["timeline"]
    ends = [] if excerpt["end_s"] is None else [excerpt["end_s"]]
    for lane in excerpt["lanes"]:
        last = lane["slices"][-1] if lane["slices"] else [None, None, None]
        kernels = (lane["name"] or "").startswith("GPU")
        if last[2] == "several" and last[0] is not None and not kernels:
            ends.append(last[0])
    return min(ends, default=None)


def _drawn(lanes: list[dict[str, Any]], start: float, end: float) -> list[list[Piece]]:
    """Coarser and coarser, until the whole can be drawn."""
    width = end - start
    shortest = width / 20000
    while True:
        drawn = [_pieces(lane["name"] or "", lane["slices"], end, shortest) for lane in lanes]
        if sum(map(len, drawn)) <= MOST_PIECES or shortest > width / 50:
            return [pieces[:MOST_PIECES] for pieces in drawn]
        shortest *= 2


def timeline(run: Run) -> Lanes | None:
    """An excerpt of the run, with the stalls as bands in the colours of their causes."""
    excerpt = run["timeline"]
    start, end = excerpt["start_s"], excerpt_end(run)
    lanes = excerpt["lanes"][:MOST_LANES]
    if start is None or end is None or end <= start or not lanes:
        return None
    named: list[tuple[str, list[Piece]]] = []
    bands: list[Piece] = []
    stalls: dict[str, str] = {}
    others: dict[str, str] = {}
    for lane, pieces in zip(lanes, _drawn(lanes, start, end), strict=True):
        name = lane["name"] or ""
        if not _is_idle(name):
            for piece in pieces:
                colour, said = colours.of_slice(name, piece.name)
                others.setdefault(said, colour)
            named.append((name, pieces))
            continue
        for piece in pieces:
            stalls[colours.words_of(piece.name.removesuffix(" …"))] = piece.colour
        bands += _longest(pieces, (end - start) / 300)
        named.append((f"{name}, by cause", [_waiting(piece) for piece in pieces]))
    legend = [(f"stall: {said}", colour) for said, colour in stalls.items()]
    legend += list(others.items())
    title = run.titled("timeline")
    return Lanes(f"timeline-{run.index}", title, start, end, named, bands, legend)


def _longest(pieces: list[Piece], shortest: float) -> list[Piece]:
    found = sorted(pieces, key=lambda piece: piece.start - piece.end)[:MOST_BANDS]
    return [piece for piece in found if piece.end - piece.start > shortest]


def _waiting(piece: Piece) -> Piece:
    first = piece.name.removesuffix(" …")
    more = " and more" if first != piece.name else ""
    return Piece(
        piece.start, piece.end, f"waits for: {colours.words_of(first)}{more}", piece.colour
    )


# --- functions ------------------------------------------------------------------------------------


def _where(node: dict[str, Any]) -> str:
    if not node["file"]:
        return ""
    line = f":{node['line']:.0f}" if node["line"] else ""
    return f"{node['file']}{line}"


# Files of packages, of the standard library ("python3.11/queue.py"), and generated code.
LIBRARY = re.compile(r"(?:^|/)(?:site|dist)-packages/|(?:^|/)python3\.\d+/|^<")
OWN_COLOUR, LIBRARY_COLOUR = "#E0A458", "#AEBECB"


def _is_library(node: dict[str, Any]) -> bool:
    return not node["file"] or LIBRARY.search(node["file"]) is not None


def _trunk(tree: dict[str, Any]) -> dict[str, Any]:
    """Down to where the tree begins to branch: what is above is the same for all."""
    while len(tree["children"]) == 1:
        only = tree["children"][0]
        if not only["children"] or (only["seconds"] or 0) < 0.97 * (tree["seconds"] or 0):
            break
        tree = only
    return tree


def icicle(run: Run, which: str, title: str) -> Icicle | None:
    """The functions of the main thread, or of the workers."""
    tree = run["functions"][which]
    if tree is None or not tree["seconds"]:
        return None
    top = _trunk(tree)
    total = top["seconds"] or tree["seconds"]
    nodes: list[Node] = []
    waiting: list[tuple[dict[str, Any], str, int]] = [(top, "", 0)]
    while waiting and len(nodes) < MOST_NODES:
        node, parent, depth = waiting.pop(0)
        seconds = min(node["seconds"] or 0.0, total)
        name = f"n{len(nodes)}"
        colour = LIBRARY_COLOUR if _is_library(node) else OWN_COLOUR
        label = node["function"] or ("all" if not parent else "?")
        nodes.append(
            Node(name, parent, label, _where(node), seconds, seconds / total, colour, depth)
        )
        if depth + 1 < MOST_DEPTH:
            waiting += [
                (child, name, depth + 1)
                for child in _fitting(node)
                if (child["seconds"] or 0.0) >= SMALLEST_NODE * total
            ]
    depth = max(node.depth for node in nodes) + 1
    legend = [("your files", OWN_COLOUR), ("libraries", LIBRARY_COLOUR)]
    return Icicle(f"functions-{which}-{run.index}", run.titled(title), nodes, depth, legend)


def _fitting(node: dict[str, Any]) -> list[dict[str, Any]]:
    """Children, most first; those that would be more than their parent are left out."""
    left = (node["seconds"] or 0.0) * 1.000001
    fitting = []
    for child in sorted(node["children"], key=lambda child: -(child["seconds"] or 0.0)):
        left -= child["seconds"] or 0.0
        if left >= 0:
            fitting.append(child)
        else:
            left += child["seconds"] or 0.0
    return fitting
