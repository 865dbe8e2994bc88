"""tensors: 1,000 f16 tensors in 10 tar shards, shuffled, batches of 32, page cache warm."""

from bench import convert, limits, machine, measure, peers, shards
from bench.sides import make_form

BATCH_BYTES = 32 * 3 * 16 * 112 * 112 * 2
LOOP = "every side: one contiguous tensor a batch, one byte of each 4 KiB page read by the consumer"

# name: (module, form of the data it wants, variants of --workers, note)
PEERS = {
    "npy_dataloader": ("torch", None, (0, 2, 4), "one .npy and .cls a sample, global shuffle"),
    "webdataset": ("webdataset", None, (0, 2, 4), "shards shuffled, buffer of 100 samples"),
    "mosaic": ("streaming", "mosaic", (0, 2, 4), "MDS shards, its default shuffle"),
    "litdata": ("litdata", "litdata", (0, 2, 4), "chunks of 64 MB, its default shuffle"),
    "dali_tar": ("nvidia.dali", "dali", (1, 2, 4), "index files, buffer of 100 samples"),
    "dali_npy": ("nvidia.dali", None, (1, 2, 4), "files shuffled each epoch; no labels"),
}


def run(options):
    samples = 100 if options.quick else 1000
    seconds = 0.3 if options.quick else 2.0
    data, facts = shards.tensors(samples, 10)
    sides = [
        _stoker_side("stoker", data, seconds, "tar shards, global shuffle"),
        _stoker_side("stoker_read", data, seconds, "the same within 256 MiB: nothing is mapped"),
    ]
    for name in PEERS:
        sides.append(_peer_side(name, data, options, seconds))
    pool = _pool_bytes(sides[0])
    rings = sorted({BATCH_BYTES, pool, 2 * pool})
    limit_sides = [_limit_side(data, ring, seconds) for ring in rings]
    map_side = _map_side(data, pool, seconds)
    measure.alternate([*sides, *limit_sides, map_side], options.runs)

    rows = [measure.row(side, "bytes/s") for side in sides]
    at_ring = {
        ring: measure.row(side, "bytes/s") for ring, side in zip(rings, limit_sides, strict=True)
    }
    rows += [dict(entry, name=f"limit_{ring // 1000000}MB") for ring, entry in at_ring.items()]
    rows.append(measure.row(map_side, "bytes/s"))
    words = f"pread into a reused ring of {pool / 1e6:.0f} MB, {machine.cores()} threads"
    limit = limits.section(at_ring[pool], words)
    pairs = [("stoker", name) for name in ("limit", "limit_map", *PEERS)]
    pairs.append(("stoker_read", "limit"))
    workload = {
        "samples": samples,
        "bytes": facts["bytes"],
        "shards": 10,
        "dtype": "float16",
        "shape": facts["shape"],
        "batch_size": 32,
        "shuffle": True,
        "cache": "warm",
        "consumer": LOOP,
        "ring_bytes": pool,
    }
    return {
        "workload": workload,
        "limit": limit,
        "rows": rows,
        "ratios": measure.ratios(rows, pairs, limit["value"]),
    }


def _stoker_side(name, data, seconds, note):
    return measure.Side(
        name, measure.python("bench.loaders", name, data, "--seconds", seconds), note
    )


def _peer_side(name, data, options, seconds):
    """The peer with the number of workers that suits it best here."""
    module, form, workers, note = PEERS[name]
    why = peers.missing(module) or make_form(form, data, convert)
    if why:
        return measure.Side(name, [], note, missing=why)
    version = peers.version(module)
    variants = []
    for count in workers[:1] if options.quick else workers:
        command = measure.python(
            "bench.loaders",
            name,
            data,
            "--workers",
            count,
            "--seconds",
            seconds / 2,
            interpreter=peers.PYTHON,
        )
        unit = "threads" if module == "nvidia.dali" else "workers"
        variants.append(measure.Side(name, command, f"{version}, {count} {unit}: {note}"))
    best = measure.best_of(variants)
    best.command[-1] = str(seconds)
    return best


def _limit_side(data, ring, seconds):
    side = limits.side(
        "limit_pread",
        data / "extents.txt",
        ring,
        machine.cores(),
        seconds,
        note=f"pread, random order, ring of {ring / 1e6:.0f} MB",
    )
    return side


def _map_side(data, ring, seconds):
    """The other way to the same bytes: no system calls, no cache lines read to be overwritten."""
    side = limits.side(
        "limit_pread",
        data / "extents.txt",
        ring,
        machine.cores(),
        seconds,
        "map",
        note=f"copied from maps past the caches, random order, ring of {ring / 1e6:.0f} MB",
    )
    side.name = "limit_map"
    return side


def _pool_bytes(stoker):
    """What the loader itself holds: one run tells. Three batches where it cannot run."""
    answer = stoker.run()
    return int(answer.get("pool_bytes") or 3 * BATCH_BYTES)
