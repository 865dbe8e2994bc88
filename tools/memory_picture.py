#!/usr/bin/env python3
"""Draws docs/img/series-memory.svg from the curves of results/bench-pack.json.

tools/memory_picture.py            draws it
tools/memory_picture.py --check    says whether the picture is the measured one; status 1 when not
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "results" / "bench-pack.json"
PICTURE = ROOT / "docs" / "img" / "series-memory.svg"
MIB = 1 << 20
LEFT, TOP, WIDTH, HEIGHT, APART = 60, 56, 330, 200, 70
PANEL = {"pack": "pack", "sort": "pack", "stream": "stream"}
TITLES = {"pack": "packing", "stream": "streaming shuffled windows"}

STYLE = """  <style>
    .text { fill: #1f2328; }
    .small { font-size: 12px; fill: #57606a; }
    .axis { stroke: #57606a; fill: none; }
    .bound { stroke: #57606a; stroke-dasharray: 4 4; fill: none; }
    .curve { fill: none; stroke-width: 2; }
    .x1 { stroke: #0969da; } .x4 { stroke: #bc4c00; } .x16 { stroke: #8250df; }
    .sort { stroke-dasharray: 2 3; }
    @media (prefers-color-scheme: dark) {
      .text { fill: #e6edf3; }
      .small { fill: #9da7b1; }
      .axis, .bound { stroke: #8d96a0; }
      .x1 { stroke: #4493f8; } .x4 { stroke: #f0883e; } .x16 { stroke: #ab7df8; }
    }
  </style>
"""


def top_of(memory):
    """A little more than the highest thing drawn: a multiple of 32 MiB."""
    highest = [size for curve in memory["curves"] for _, size in curve.get("curve", [])]
    highest.append(memory["budget"] + memory["margin"])
    return (max(highest) // (32 * MIB) + 1) * 32 * MIB


def place(share, size, left, top):
    """Pixels of a point: share of the run's time, bytes."""
    x = left + share * WIDTH
    y = TOP + HEIGHT - max(0, size) / top * HEIGHT
    return f"{x:.1f} {y:.1f}"


def curve_path(curve, left, top):
    points = [
        place(at / curve["seconds"], size, left, top) for at, size in [[0, 0], *curve["curve"]]
    ]
    kind = f"curve x{curve['factor']}" + (" sort" if curve["what"] == "sort" else "")
    return f'  <path class="{kind}" d="M{" L".join(points)}"/>\n'


def panel(memory, what, left, top):
    """Axes, the two bounds and a curve for each size of the data."""
    out = f'  <text class="text" x="{left}" y="{TOP - 14}">{TITLES[what]}</text>\n'
    corner = f"M{left} {TOP} V{TOP + HEIGHT} H{left + WIDTH}"
    out += f'  <path class="axis" d="{corner}"/>\n'
    bounds = {"budget": memory["budget"], "budget + 64 MiB": memory["budget"] + memory["margin"]}
    for name, size in bounds.items():
        start = place(0, size, left, top)
        out += f'  <path class="bound" d="M{start} h{WIDTH}"/>\n'
        y = float(start.split()[1]) - 4
        words = f'x="{left + WIDTH}" y="{y:.1f}" text-anchor="end"'
        out += f'  <text class="small" {words}>{name}</text>\n'
    for size in range(0, top + 1, 32 * MIB):
        y = float(place(0, size, left, top).split()[1]) + 4
        words = f'x="{left - 6}" y="{y:.1f}" text-anchor="end"'
        out += f'  <text class="small" {words}>{size // MIB}</text>\n'
    words = f'x="{left + WIDTH}" y="{TOP + HEIGHT + 18}" text-anchor="end"'
    out += f'  <text class="small" {words}>time, from the first byte to the last</text>\n'
    for curve in memory["curves"]:
        if PANEL.get(curve["what"]) == what and curve.get("curve"):
            out += curve_path(curve, left, top)
    return out


def legend(memory):
    out, x, y = "", LEFT, TOP + HEIGHT + 48
    for curve in (curve for curve in memory["curves"] if curve["what"] != "stream"):
        is_sort = curve["what"] == "sort"
        size = f"{curve['bytes'] / MIB:,.0f} MiB" if "bytes" in curve else "not measured"
        words = "the same, unsorted" if is_sort else f"{curve['factor']}x the budget: {size}"
        kind = f"curve x{curve['factor']}" + (" sort" if is_sort else "")
        out += f'  <path class="{kind}" d="M{x} {y - 4} h24"/>\n'
        out += f'  <text class="small" x="{x + 30}" y="{y}">{words}</text>\n'
        x += 200
    return out


def draw(memory):
    top = top_of(memory)
    width = LEFT + 2 * WIDTH + APART + 20
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {TOP + HEIGHT + 64}" '
        'font-family="system-ui, sans-serif" font-size="14" role="img" '
        'aria-label="Memory over time of packing and streaming">\n'
    )
    title = "MiB over what the interpreter and its modules take; pages of files are not counted"
    words = f'  <text class="small" x="{LEFT}" y="18">{title}</text>\n'
    panels = panel(memory, "pack", LEFT, top) + panel(memory, "stream", LEFT + WIDTH + APART, top)
    return head + STYLE + words + panels + legend(memory) + "</svg>\n"


def main():
    if not RESULT.exists():
        print(f"memory_picture: there is no {RESULT.relative_to(ROOT)}: make bench-pack writes it")
        return 1
    picture = draw(json.loads(RESULT.read_text())["memory"])
    if PICTURE.exists() and PICTURE.read_text() == picture:
        print("memory_picture: the picture is the measured one")
        return 0
    if "--check" in sys.argv[1:]:
        print("memory_picture: the picture is another one; run tools/memory_picture.py")
        return 1
    PICTURE.write_text(picture)
    print(f"memory_picture: {PICTURE.relative_to(ROOT)} was written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
