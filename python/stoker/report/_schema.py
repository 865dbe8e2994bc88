"""What a run file and a benchmark's result hold, as tables, and how a file is held against them.

A file comes from outside: whatever has passed `shaped` has the types that the rest relies on.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

TEXT, NUMBER, FLAG = "text", "number", "flag"


class Wrong(Exception):
    """A value is not what its place demands; the words name the place."""


class Maybe(NamedTuple):
    """An object that may be missing as a whole: None then."""

    shape: Any


class Map(NamedTuple):
    """An object whose names are not known beforehand; its values are all of one kind."""

    kind: str


class Tree(NamedTuple):
    """A node of functions; its children are like it. None where there is none."""

    shape: dict[str, Any]


def shaped(shape: Any, value: Any, place: str = "") -> Any:
    """The value with the types of its shape. What is missing is None, an empty list, or an object
    whose own values are missing; what is unknown is left out."""
    if isinstance(shape, Maybe):
        return None if value is None else shaped(shape.shape, value, place)
    if isinstance(shape, Tree):
        return None if value is None else _tree(shape.shape, value, place)
    if isinstance(shape, Map):
        return _map(shape.kind, value, place)
    if isinstance(shape, dict):
        return _object(shape, value, place)
    if isinstance(shape, list):
        return _list(shape, value, place)
    return None if value is None else _plain(shape, value, place)


def _object(shape: dict[str, Any], value: Any, place: str) -> dict[str, Any]:
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise Wrong(f"{place or 'the whole'} is {_kind(value)}, not an object")
    inner = f"{place}." if place else ""
    return {name: shaped(part, value.get(name), f"{inner}{name}") for name, part in shape.items()}


def _map(kind: str, value: Any, place: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Wrong(f"{place} is {_kind(value)}, not an object")
    return {
        shaped(TEXT, name, place): shaped(kind, one, f"{place}.{name}")
        for name, one in value.items()
    }


def _list(shape: list[Any], value: Any, place: str) -> list[Any]:
    if value is None:
        return [None] * len(shape) if len(shape) > 1 else []
    if not isinstance(value, list):
        raise Wrong(f"{place} is {_kind(value)}, not a list")
    if len(shape) > 1:  # a list of that many values, each of its own kind
        if len(value) != len(shape):
            raise Wrong(f"{place} has {len(value)} values, not {len(shape)}")
        pairs = zip(shape, value, strict=True)
        return [shaped(part, one, f"{place}[{i}]") for i, (part, one) in enumerate(pairs)]
    made = [shaped(shape[0], one, f"{place}[{i}]") for i, one in enumerate(value)]
    return [one or "" for one in made] if shape[0] == TEXT else made


def _plain(kind: str, value: Any, place: str) -> Any:
    if kind == TEXT and isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")  # halves of pairs cannot be written
    if kind == FLAG and isinstance(value, bool):
        return value
    if kind == NUMBER and isinstance(value, int | float) and not isinstance(value, bool):
        if isinstance(value, float) and not math.isfinite(value):
            raise Wrong(f"{place} is too large for a number")
        if abs(value) > 1e300:
            raise Wrong(f"{place} is too large for a number")
        return value
    raise Wrong(f"{place} is {_kind(value)}, not a {kind}")


def _tree(shape: dict[str, Any], value: Any, place: str) -> dict[str, Any]:
    """Without recursion: a tree may be deep."""
    top: list[dict[str, Any]] = []
    waiting = [(value, top)]
    while waiting:
        node, siblings = waiting.pop()
        if not isinstance(node, dict):
            raise Wrong(f"a node of {place} is {_kind(node)}, not an object")
        made = _object(shape, node, place)
        children = node.get("children") or []
        if not isinstance(children, list):
            raise Wrong(f"children in {place} is {_kind(children)}, not a list")
        made["children"] = []
        siblings.append(made)
        waiting.extend((child, made["children"]) for child in reversed(children))
    return top[0]


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a flag", type(None): "null"}
    return names.get(type(value), "a number")


def _all(kind: str, names: str) -> dict[str, str]:
    """The same kind for each of these names."""
    return dict.fromkeys(names.split(), kind)


FUNCTION = {"function": TEXT, "file": TEXT, "line": NUMBER, "seconds": NUMBER}
CAUSE = {
    "cause": TEXT,
    "words": TEXT,
    "seconds": NUMBER,
    "share": NUMBER,
    "functions": [FUNCTION],
}
NODE = Tree({**FUNCTION, "cpu_s": NUMBER})
EPOCH = {"start_s": NUMBER, "end_s": NUMBER, "steps": NUMBER, "samples": NUMBER}
RANK = {
    "rank": NUMBER,
    "pid": NUMBER,
    "device": NUMBER,
    "start_s": NUMBER,
    "end_s": NUMBER,
    "excluded_s": NUMBER,
    "recorded": NUMBER,
    "busy": {"compute": NUMBER, "communication": NUMBER, "copy": NUMBER},
    "compute_s": NUMBER,
    "idle_s": NUMBER,
    "causes": [CAUSE],
    "steps": NUMBER,
    "samples": NUMBER,
    "samples_s": NUMBER,
    "step_s": {"median": NUMBER, "p95": NUMBER},
    "next_s": NUMBER,
    "epoch_s": NUMBER,
    "epochs": [EPOCH],
    "kernels": NUMBER,
    "copies": NUMBER,
    "copied_bytes": NUMBER,
    "pageable_bytes": NUMBER,
    "graph_kernels": NUMBER,
}
LOADER = {
    **_all(TEXT, "kind class dataset collate file"),
    **_all(NUMBER, "id rank line batch_size workers prefetch_factor samples batches epochs"),
    **_all(NUMBER, "handed_out starts next_s start_s fetch_s fetch_cpu_s collate_s send_s idle_s"),
    **_all(NUMBER, "pin_s fetch_max_s fetch_median_s batch_bytes"),
    **_all(FLAG, "pin_memory persistent_workers in_order"),
    "files": Maybe(
        {
            "opens": NUMBER,
            "distinct": NUMBER,
            "bytes": NUMBER,
            "folder": TEXT,
            "extension": TEXT,
        }
    ),
}
SERIES = (
    "compute", "communication", "copy", "waiting", "samples_s", "cpu", "machine_cpu", "iowait",
    "rss_bytes", "read_bytes_s", "written_bytes_s", "network_bytes_s", "gpu_memory_bytes",
    "gpu_power_w", "gpu_clock_mhz", "gpu_nvml", "gpu_pcie_received_bytes_s",
    "gpu_pcie_sent_bytes_s",
)  # fmt: skip
PROCESS = {
    "role": TEXT,
    "name": TEXT,
    **_all(
        NUMBER,
        "pid rank worker cpu_s run_delay_s io_wait_s read_bytes written_bytes max_rss_bytes",
    ),
    **_all(NUMBER, "read_calls_bytes write_calls_bytes minor_faults major_faults"),
}
THREAD = {"name": TEXT, **_all(NUMBER, "pid thread cpu_s run_delay_s")}
MACHINE_IO = "disk_read_bytes disk_written_bytes network_received_bytes network_sent_bytes"
RATE = _all(NUMBER, "mean peak")
DEVICE = {"device": NUMBER, "pcie_received_bytes_s": RATE, "pcie_sent_bytes_s": RATE}
WHAT_IF = _all(NUMBER, "wall_s steps step_median_s samples_s busy gain")
ADVICE = {
    "rule": TEXT,
    "do": TEXT,
    "why": TEXT,
    "snippet": TEXT,
    "gain": NUMBER,
    "gain_is": TEXT,
}
VERDICT = {
    **_all(TEXT, "bound cause words why sure sure_why gain_is"),
    "gain_bound": NUMBER,
    "advice": [ADVICE],
    "against": [{"rule": TEXT, "do": TEXT, "why": TEXT}],
}
RUN = {
    "stoker_run": NUMBER,
    "stoker": TEXT,
    "command": [TEXT],
    "started": TEXT,
    "wall_s": NUMBER,
    "exit": {"status": NUMBER, "signal": NUMBER},
    "machine": {
        "cpus": NUMBER,
        "memory_bytes": NUMBER,
        **_all(TEXT, "kernel gpu driver cupti python torch"),
    },
    "mode": TEXT,
    "reliable": FLAG,
    "unreliable": [TEXT],
    "notices": [TEXT],
    "ranks": [RANK],
    "causes": [CAUSE],
    "slowest_rank": Maybe({"rank": NUMBER, "words": TEXT}),
    "gaps": {
        "count": NUMBER,
        "longest": [{"start_s": NUMBER, "seconds": NUMBER, "cause": TEXT, "rank": NUMBER}],
        "sizes": [{"upto_s": NUMBER, "count": NUMBER, "seconds": NUMBER}],
    },
    "functions": {"main": NODE, "workers": NODE},
    "loaders": [LOADER],
    "series": {"bin_s": NUMBER, **{name: [NUMBER] for name in SERIES}},
    "timeline": {
        "start_s": NUMBER,
        "end_s": NUMBER,
        "lanes": [{"name": TEXT, "slices": [[NUMBER, NUMBER, TEXT]]}],
    },
    "processes": [PROCESS],
    "threads": [THREAD],
    "machine_io": _all(NUMBER, MACHINE_IO),
    "devices": [DEVICE],
    "watching": _all(NUMBER, "records lost stacks_hz cpu_s rss_bytes"),
    "cpu": {"own": NUMBER, "foreign": NUMBER},
    "throttle": [TEXT],
    "what_if": Maybe(WHAT_IF),
    "verdict": VERDICT,
}

LIMIT = {"name": TEXT, "value": NUMBER, "unit": TEXT, "runs": [NUMBER]}
BENCH = {
    "bench": TEXT,
    "version": NUMBER,
    "machine": {
        **_all(TEXT, "cpu gpu kernel driver cuda torch device"),
        "cores": NUMBER,
        "memory": NUMBER,
        "gpu_memory": NUMBER,
    },
    "date": TEXT,
    "command": TEXT,
    "quick": FLAG,
    "load": NUMBER,
    "limit": LIMIT,
    "rows": [
        {
            "name": TEXT,
            "value": NUMBER,
            "unit": TEXT,
            "runs": [NUMBER],
            "note": TEXT,
            "peak_rss": NUMBER,
            "limit": NUMBER,
        }
    ],
    "ratios": Map(NUMBER),
}
TRAINING = {
    "device": TEXT,
    "classes": NUMBER,
    "epochs": [_all(NUMBER, "epoch loss held_out_accuracy seconds samples_per_s")],
}
