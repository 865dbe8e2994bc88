"""index: members a second that are indexed, against Python's tarfile on the same shards.

python -m bench.index SIDE SHARD...
"""

import argparse
import json
import os
import subprocess
import tarfile
import tempfile
import time

from bench import limits, machine, measure, shards, start

BLOCK = 1 << 20
SMALL_BYTES, LARGE_BYTES = 1024, BLOCK + 512  # a member with its header, in the shard


def run(options):
    tiny, _ = start.shards_of(options)
    sparse, _ = shards.sparse_tar(2 if options.quick else 50, 1000, BLOCK)
    sets = {
        "small": sorted(tiny.glob("shard-*.tar"))[:100],
        "large": sorted(sparse.glob("shard-*.tar")),
    }
    names = [f"{side}_{kind}" for kind in sets for side in ("stoker", "tarfile", "limit")]
    sides = [
        measure.Side(name, measure.python("bench.index", name, *sets[name.split("_")[1]]))
        for name in names
    ]
    measure.alternate(sides, options.runs)
    rows = {side.name: measure.row(side, "members/s") for side in sides}
    for name, entry in rows.items():
        entry["limit"] = rows[f"limit_{name.split('_')[1]}"]["value"]
    workload = {
        "small": f"{len(sets['small'])} shards of 1,000 members of 160 B",
        "large": f"{len(sets['large'])} shards of 1,000 members of 1 MiB",
        "cache": "warm",
    }
    words = f"by pread, {machine.cores()} threads"
    limit = limits.section(
        rows["limit_small"], f"small: all bytes once, large: all headers, {words}"
    )
    pairs = [
        (f"stoker_{kind}", f"{other}_{kind}") for other in ("tarfile", "limit") for kind in sets
    ]
    rows = list(rows.values())
    return {
        "workload": workload,
        "limit": limit,
        "rows": rows,
        "ratios": measure.ratios(rows, pairs),
    }


def stoker(paths):
    """Opens with an index that is made anew: what `stoker index --reindex` does."""
    import stoker

    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        dataset = stoker.open(paths, index=f"{folder}/index", reindex=True)
        return len(dataset) * len(dataset.fields), time.perf_counter() - begun


def python_tarfile(paths):
    begun = time.perf_counter()
    members = 0
    for path in paths:
        with tarfile.open(path) as tar:
            members += sum(1 for _ in tar)
    return members, time.perf_counter() - begun


def limit_small(paths):
    """Every byte of the shards."""
    return _pread(paths, BLOCK, BLOCK, SMALL_BYTES)


def limit_large(paths):
    """The header of every member."""
    return _pread(paths, LARGE_BYTES, 512, LARGE_BYTES)


def _pread(paths, stride, length, member_bytes):
    """Reads `length` bytes of each `stride`; returns members and seconds."""
    members = 0
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as extents:
        for path in map(os.path.abspath, paths):
            size = os.path.getsize(path) - 1024  # two empty blocks end a tar
            members += size // member_bytes
            for at in range(0, size, stride):
                extents.write(f"{at} {min(length, size - at)} {path}\n")
        extents.flush()
        command = [limits.program("limit_pread"), extents.name, 8 * BLOCK, machine.cores()]
        command += [0.5, "stored"]
        answer = json.loads(subprocess.check_output(list(map(str, command))))
    return members, answer["seconds"] / answer["passes"]


SIDES = {
    "stoker_small": stoker,
    "stoker_large": stoker,
    "tarfile_small": python_tarfile,
    "tarfile_large": python_tarfile,
    "limit_small": limit_small,
    "limit_large": limit_large,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("side", choices=SIDES)
    parser.add_argument("shards", nargs="+")
    arguments = parser.parse_args()
    side = SIDES[arguments.side]
    side(arguments.shards)
    members, took = side(arguments.shards)
    print(json.dumps({"value": members / took, "members": members, "seconds": took}), flush=True)


if __name__ == "__main__":
    main()
