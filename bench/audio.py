"""audio: 2,000 recordings of a second, 16 kHz, as wav and as flac, to float32, batches of 64."""

from bench import limits, machine, measure, media_data, sides

MODULE = "bench.audio_sides"
STOKER = {
    "stoker": "wav in tar shards, global shuffle",
    "flac": "flac in tar shards, global shuffle",
}
WORKERS = (("0", "0 workers"), ("2", "2 workers"), ("4", "4 workers"))

# name: (modules, form of the data, (variant, words) pairs, note)
PEERS = {
    "soundfile_dataloader": (
        ("torch", "soundfile"),
        None,
        WORKERS,
        "a wav file a clip, default_collate",
    ),
    "flac_dataloader": (
        ("torch", "soundfile"),
        None,
        WORKERS,
        "a flac file a clip, soundfile, default_collate",
    ),
    "soundfile_threads": (
        ("soundfile",),
        None,
        (("", ""),),
        "a wav file a clip, a thread a core, straight into the batch",
    ),
    "spdl": (
        ("spdl.io",),
        None,
        (("wav", "load_wav, then to float32"), ("audio", "load_audio")),
        "a wav file a clip, a thread a core",
    ),
}

PAIRS = [
    *(("stoker", name) for name in ("soundfile_dataloader", "soundfile_threads", "spdl", "limit")),
    ("stoker", "libsndfile"),
    ("flac", "flac_dataloader"),
    ("flac", "libsndfile_flac"),
]


def run(options):
    seconds = 0.3 if options.quick else 2.0
    count = 200 if options.quick else 2000
    data, facts = media_data.recordings(count)
    all_sides = [sides.own(MODULE, name, data, seconds, note) for name, note in STOKER.items()]
    all_sides += [
        sides.peer(MODULE, name, data, options, seconds, peer) for name, peer in PEERS.items()
    ]
    all_sides += [
        _decode("libsndfile", data / "wav-extents.txt", seconds),
        _decode("libsndfile_flac", data / "flac-extents.txt", seconds),
    ]
    measure.alternate(all_sides, options.runs)

    rows = [measure.row(side, "samples/s") for side in all_sides]
    values = {row["name"]: row for row in rows}
    for name in "flac", "flac_dataloader", "libsndfile_flac":
        values[name]["limit"] = values["libsndfile_flac"]["value"]
    limit = limits.section(
        values["libsndfile"],
        f"libsndfile decodes the same wav clips from RAM, {machine.cores()} threads",
    )
    workload = {
        "samples": count,
        "bytes": facts["bytes"],
        "flac_bytes": facts["flac_bytes"],
        "rate": media_data.RATE,
        "seconds": 1,
        "shards": 10,
        "batch_size": 64,
        "threads": machine.cores(),
        "shuffle": True,
        "cache": "warm",
        "consumer": "one contiguous tensor a batch, one byte of each 4 KiB page read",
    }
    return {
        "workload": workload,
        "limit": limit,
        "rows": rows,
        "ratios": measure.ratios(rows, PAIRS, limit["value"]),
    }


def _decode(name, extents, seconds):
    side = limits.side(
        "limit_audio",
        extents,
        machine.cores(),
        seconds,
        note="libsndfile, each clip opened in RAM and read to its end",
    )
    side.name = name
    return side
