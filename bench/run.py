"""Runs benchmarks, prints their tables and writes results/bench-NAME.json.

python -m bench.run tensors
python -m bench.run all --quick
"""

import argparse
import datetime
import importlib
import json
import pathlib
import sys

from bench import machine
from bench.measure import ROOT

NAMES = [
    "tensors",
    "tiny",
    "start",
    "memory",
    "index",
    "windows",
    "pack",
    "jpeg",
    "audio",
    "video",
    "watch",
    "stores",
]

# columns that some benchmarks have: key of a row, title, unit
MORE = [
    ("start_s", "start-up", "s"),
    ("disk_bytes", "disk", "B"),
    ("batches_per_s", "batches/s", ""),
    ("sync_s", "fsync", "s"),
]


def main():
    options = _arguments()
    names = NAMES if options.name == "all" else [options.name]
    failed = []
    for name in names:
        path = options.json or ROOT / "results" / f"bench-{name}.json"
        print(f"bench {name}", flush=True)
        try:
            result = _run(name, options)
        except (OSError, RuntimeError) as error:
            print(f"bench {name}: {error}", file=sys.stderr)
            failed.append(name)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=1) + "\n")
        print_table(result)
        print(f"written: {path}\n")
    return 1 if failed else 0


def _arguments():
    parser = argparse.ArgumentParser(prog="bench.run", description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=[*NAMES, "all"])
    parser.add_argument(
        "--json",
        type=pathlib.Path,
        metavar="PATH",
        help="where to write the result (one benchmark only)",
    )
    parser.add_argument("--runs", type=int, metavar="N", help="runs of each side (default 3)")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small data, one run: shows that it works, measures nothing",
    )
    options = parser.parse_args()
    if options.runs is None:
        options.runs = 1 if options.quick else 3
    if options.runs < 1 or (options.json and options.name == "all"):
        parser.error("--runs is 1 or more; --json is for one benchmark")
    return options


def _run(name, options):
    load = machine.load()
    if load > 0.5:
        print(f"  other work is running (load {load:.1f}): the figures will be low")
    parts = importlib.import_module(f"bench.{name}").run(options)
    result = {
        "bench": name,
        "version": 1,
        "machine": machine.describe(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "quick": options.quick,
        "load": load,
    }
    result.update(parts)
    return result


def print_table(result):
    """Measured, limit and ratio of each row, then the ratios."""
    limit = result["limit"]
    print(f"\n{result['bench']}: {result['machine']['cpu']}, {result['machine']['cores']} cores")
    print(f"limit: {limit['name']}")
    more = [column for column in MORE if any(column[0] in row for row in result["rows"])]
    header = f"{'row':<22}{'median':>12}{'spread':>8}{'limit':>12}{'ratio':>7}"
    header += f"{'samples/s':>11}{'CPU':>10}{'peak RSS':>11}"
    print(header + "".join(f"{title:>11}" for _, title, _ in more) + "  note")
    for row in result["rows"]:
        print(_line(row, limit, more))
    for name, value in result["ratios"].items():
        print(f"  {name:<32} {value:.2f}")


def _line(row, limit, more):
    note = row.get("note", "")
    cells = "".join(f"{human(row.get(key), unit):>11}" for key, _, unit in more)
    if row["value"] is None:
        return f"{row['name']:<22}{'-':>12}{'':>59}{cells}  {note}"
    at_most = row.get("limit", limit["value"] if limit["unit"] == row["unit"] else None)
    spread = (max(row["runs"]) - min(row["runs"])) / row["value"] if row["runs"] else 0.0
    return (
        f"{row['name']:<22}{human(row['value'], row['unit']):>12}{spread:>8.0%}"
        f"{human(at_most, row['unit']):>12}"
        f"{format(row['value'] / at_most, '.2f') if at_most else '':>7}"
        f"{human(row.get('samples_per_s'), ''):>11}{human(row.get('cpu_s'), 's'):>10}"
        f"{human(row.get('peak_rss'), 'B'):>11}{cells}  {note}"
    )


def human(value, unit):
    """A number as people read it: 11.0 GB/s, 3.2 M/s, 12 ms."""
    if value is None:
        return ""
    if unit == "s":
        return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.1f} ms"
    unit = {
        "bytes/s": "B/s",
        "bytes": "B",
        "samples/s": "/s",
        "members/s": "/s",
        "rows/s": "/s",
        "bytes/field": "B",
    }.get(unit, unit)
    for scale, letter in (1e9, "G"), (1e6, "M"), (1e3, "k"):
        if value >= scale:
            return f"{value / scale:.2f} {letter}{unit}"
    return f"{value:.4g} {unit}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
