#!/usr/bin/env python3
"""Writes the table of measured figures into README.md, from results/bench-tensors.json.

tools/readme_table.py            writes it
tools/readme_table.py --check    says whether README.md has it; exit status 1 when not

No number of the table is typed by hand: `make bench-tensors` measures, this script renders.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
RESULT = ROOT / "results" / "bench-tensors.json"
BEGIN = "<!-- table of results/bench-tensors.json: begin -->\n"
END = "<!-- table of results/bench-tensors.json: end -->\n"

NAMES = {
    "stoker": "**Stoker**, tar shards",
    "stoker_read": "**Stoker**, the same within 256 MiB",
    "npy_dataloader": "PyTorch DataLoader, one .npy a sample",
    "webdataset": "WebDataset, tar shards",
    "mosaic": "Mosaic Streaming, MDS shards",
    "litdata": "LitData, its chunks",
    "dali_tar": "DALI, tar reader",
    "dali_npy": "DALI, npy reader",
}


def between_marks(text):
    """What README.md has between the marks."""
    return text[text.index(BEGIN) + len(BEGIN) : text.index(END)]


def spread(row):
    runs = row.get("runs") or []
    return f"{min(runs) / 1e9:.2f} to {max(runs) / 1e9:.2f}" if runs else ""


def line(row, ratios):
    name = NAMES.get(row["name"], row["name"])
    if row.get("value") is None:
        return f"| {name} | not measured | | | | |"
    ratio = ratios.get(f"stoker/{row['name']}")
    memory = row.get("peak_rss")
    samples = row.get("samples_per_s")
    cells = [
        name,
        f"{row['value'] / 1e9:.2f} GB/s",
        spread(row),
        f"{samples:,.0f}" if samples else "",
        f"{memory / 2**20:,.0f} MiB" if memory else "",
        f"{ratio:.1f}x" if ratio else "",
    ]
    return f"| {' | '.join(cells)} |"


def limits(rows, limit, ratios):
    """What this machine gives at most, by each way to the bytes."""
    ways = [(limit["name"], limit.get("value"), ratios.get("stoker/limit"))]
    ways += [
        (row["note"], row["value"], ratios.get("stoker/limit_map"))
        for row in rows
        if row["name"] == "limit_map"
    ]
    for name, value, share in ways:
        if value and share:
            words = f"{value / 1e9:.2f} GB/s; Stoker reaches {share:.0%} of it."
            yield f"Limit of this machine, {name}: {words.replace('%', ' %')}"


def render(result):
    """The table, and a sentence that says what, where and against which limit."""
    machine, workload, limit = result["machine"], result["workload"], result["limit"]
    ratios = result["ratios"]
    rows = [row for row in result["rows"] if row["name"] in NAMES]
    rows.sort(key=lambda row: -(row["value"] or 0))
    lines = [
        "| loader | median | runs, GB/s | samples/s | peak memory | Stoker is |",
        "|---|--:|--:|--:|--:|--:|",
        *(line(row, ratios) for row in rows),
    ]
    lines += ["", *limits(result["rows"], limit, ratios)]
    lines += [
        "",
        f"{workload['samples']:,} samples, {workload['bytes'] / 1e9:.2f} GB, shuffled, batches of "
        f"{workload.get('batch_size', 32)}, page cache warm; {machine['cpu']}, {machine['cores']} "
        "cores; peers at their best number of workers. Peak memory counts mapped files, whose "
        "pages the kernel takes back when it needs them. Yours: `make bench-tensors`.",
        "",
    ]
    return "\n".join(lines)


def main():
    if not RESULT.exists():
        print(f"readme_table: there is no {RESULT.relative_to(ROOT)}: make bench-tensors writes it")
        return 1
    text, table = README.read_text(), render(json.loads(RESULT.read_text()))
    if between_marks(text) == table:
        print("readme_table: README.md has the table")
        return 0
    if "--check" in sys.argv[1:]:
        print("readme_table: README.md has another table; run tools/readme_table.py")
        return 1
    head, tail = text.split(BEGIN)[0], text.split(END)[1]
    README.write_text(head + BEGIN + table + END + tail)
    print("readme_table: README.md was written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
