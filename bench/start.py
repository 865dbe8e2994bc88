"""start: from stoker.open to the first batch, 1,000 shards x 1,000 members, the index warm.

python -m bench.start SIDE DATA
"""

import argparse
import glob
import json
import os
import pathlib
import subprocess
import time

from bench import measure, shards

BATCH = 32
SIDES = ("begin", "resume", "limit", "state")


def shards_of(options):
    """The data of start, memory and index: a member a sample."""
    return shards.tiny_tar("shards", 20 if options.quick else 1000, 1000, False)


def run(options):
    data, facts = shards_of(options)
    begin, resume, limit_side = (
        measure.Side(name, measure.python("bench.start", name, data), note)
        for name, note in (
            ("begin", "first batch of the epoch"),
            ("resume", "first batch after load_state_dict, in the middle of the epoch"),
            ("limit", ""),
        )
    )
    saving = measure.python("bench.start", "state", str(data))
    subprocess.run(saving, cwd=measure.ROOT, stdout=subprocess.DEVNULL)
    measure.alternate([begin, resume, limit_side], options.runs)
    rows = [measure.row(side, "s") for side in (begin, resume)]
    least = measure.row(limit_side, "s")
    limit = {
        "name": "stat of every shard, then the bytes of one batch, from Python",
        "value": least["value"],
        "unit": "s",
        "runs": least["runs"],
    }
    workload = {
        "shards": facts["shards"],
        "members": facts["members"],
        "batch_size": BATCH,
        "shuffle": True,
        "cache": "warm",
        "index": "warm",
        "value": "seconds from stoker.open to the first batch; less is better",
    }
    return {
        "workload": workload,
        "limit": limit,
        "rows": rows,
        "ratios": measure.ratios(rows, [("resume", "begin"), ("begin", "limit")], limit["value"]),
    }


def stoker_side(data, name):
    import stoker
    import torch  # noqa: F401  imported by any training script: not part of the start

    state = json.loads((data / "state.json").read_text()) if name == "resume" else None
    start = time.perf_counter()
    dataset = stoker.open(f"{data}/shard-*.tar")
    opened = time.perf_counter()
    loader = stoker.Loader(dataset, batch_size=BATCH, shuffle=True, seed=0)
    if state:
        loader.load_state_dict(state)
    next(iter(loader))
    end = time.perf_counter()
    return {
        "value": end - start,
        "open_s": opened - start,
        "after_open_s": end - opened,
        "note": f"open {1000 * (opened - start):.1f} ms, then {1000 * (end - opened):.1f} ms",
    }


def save_state(data):
    """Saves the state in the middle of an epoch."""
    import stoker

    loader = stoker.Loader(f"{data}/shard-*.tar", batch_size=BATCH, shuffle=True, seed=0)
    batches = iter(loader)
    for _ in range(len(loader) // 2):
        next(batches)
    (data / "state.json").write_text(json.dumps(loader.state_dict()))
    loader.close()
    return {}


def limit(data):
    paths = sorted(glob.glob(f"{data}/shard-*.tar"))
    start = time.perf_counter()
    for path in paths:
        os.stat(path)
    for number in range(BATCH):
        fd = os.open(paths[number * 7 % len(paths)], os.O_RDONLY)
        os.pread(fd, 32, 512 + 128)
        os.close(fd)
    return {"value": time.perf_counter() - start}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("side", choices=SIDES)
    parser.add_argument("data", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.side in ("limit", "state"):
        result = (limit if arguments.side == "limit" else save_state)(arguments.data)
    else:
        result = stoker_side(arguments.data, arguments.side)
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
