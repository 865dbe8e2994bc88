"""memory: what the loader holds for few and for many samples at one budget, and the index's size.

python -m bench.memory SHARDS BATCH_SIZE BUDGET BATCHES
"""

import argparse
import glob
import json

from bench import measure, shards, start

BUDGET = 64 << 20
TENSOR_BUDGET = 256 << 20


def run(options):
    tiny, facts = start.shards_of(options)
    tensors, _ = shards.tensors(100 if options.quick else 1000, 10)
    sides = [
        _side("samples_1000", tiny / "shard-0000.tar", 1024, BUDGET, 2000),
        _side(f"samples_{facts['members']}", tiny / "shard-*.tar", 1024, BUDGET, 2000),
        _side("tensors", tensors / "shard-*.tar", 32, TENSOR_BUDGET, 320),
    ]
    measure.alternate(sides, options.runs)
    rows = [measure.row(side, "bytes") for side in sides]
    rows[2]["limit"] = TENSOR_BUDGET
    many = rows[1]
    rows.append(
        {
            "name": "index_bytes_per_field",
            "value": many.get("index_bytes_per_field"),
            "unit": "bytes/field",
            "runs": [],
            "note": f"index of {facts['members']} samples with one field",
        }
    )
    ratios = measure.ratios(
        rows[:2], [(rows[1]["name"], "limit"), (rows[1]["name"], rows[0]["name"])], BUDGET
    )
    workload = {
        "samples": facts["members"],
        "bytes": facts["bytes"],
        "budget": BUDGET,
        "tensors_budget": TENSOR_BUDGET,
        "cache": "warm",
        "value": "peak bytes held by the loader, by its own count; grown_rss is what the "
        "process's anonymous memory grew by; less is better",
    }
    limit = {
        "name": "the budget of the loader over small samples",
        "value": BUDGET,
        "unit": "bytes",
    }
    return {"workload": workload, "limit": limit, "rows": rows, "ratios": ratios}


def _side(name, source, batch, budget, batches):
    command = measure.python("bench.memory", source, batch, budget, batches)
    return measure.Side(name, command, f"budget {budget >> 20} MiB, batch {batch}")


def anonymous_bytes():
    with open("/proc/self/status") as lines:
        found = dict(line.split(":", 1) for line in lines)
    return sum(int(found[key].split()[0]) * 1024 for key in ("RssAnon", "RssShmem"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("batch", type=int)
    parser.add_argument("budget", type=int)
    parser.add_argument("batches", type=int)
    arguments = parser.parse_args()
    import os

    import stoker

    paths = sorted(glob.glob(arguments.source))
    dataset = stoker.open(paths)
    before = anonymous_bytes()
    loader = stoker.Loader(
        dataset, batch_size=arguments.batch, shuffle=True, seed=0, memory=arguments.budget
    )
    grown = batches = 0
    while batches < arguments.batches:
        for batch in loader:  # noqa: B007
            batches += 1
            if batches % 64 == 0:
                grown = max(grown, anonymous_bytes() - before)
            if batches == arguments.batches:
                break
    stats = loader.stats()
    size = os.path.getsize(dataset.index_path)
    print(
        json.dumps(
            {
                "value": stats["peak_bytes"],
                "grown_rss": grown,
                "index_bytes": size,
                "caller_peak_bytes": stats["caller_peak_bytes"],
                "index_bytes_per_field": size / (len(dataset) * len(dataset.fields)),
                "samples_per_s": stats["samples"] / stats["seconds"],
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
