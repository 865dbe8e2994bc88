"""video: 40 h264 videos of 100 frames, 320 x 240; 16 frames of each, batches of 8."""

from bench import limits, machine, measure, media_data, sides

MODULE = "bench.video_sides"
FRAMES, STRIDE = 16, 2
FIRST, *_, LAST = media_data.middle(FRAMES, STRIDE)
WAYS = (
    ("threads", "a pool of threads, one a core"),
    ("workers", "DataLoader, a worker a core"),
)

# name: (modules, form of the data, (variant, words) pairs, note)
PEERS = {
    "pyav": (("torch", "av"), None, WAYS, "a file a video, seek, one decoder thread"),
    "decord": (("torch", "decord"), None, WAYS, "a file a video, get_batch, one decoder thread"),
    "torchcodec": (
        ("torch", "torchcodec"),
        None,
        WAYS,
        "a file a video, get_frames_at, approximate seek, one decoder thread",
    ),
}


def run(options):
    seconds = 0.3 if options.quick else 2.0
    count = 12 if options.quick else 40
    data, facts = media_data.videos(count)
    all_sides = [sides.own(MODULE, "stoker", data, seconds, "tar shards, global shuffle")]
    all_sides += [
        sides.peer(MODULE, name, data, options, seconds, peer) for name, peer in PEERS.items()
    ]
    limit_side = limits.side(
        "limit_video",
        data / "mp4-extents.txt",
        machine.cores(),
        seconds,
        FIRST,
        LAST,
        note="libavcodec, from the keyframe to the last frame of the clip, left as YUV",
    )
    measure.alternate([*all_sides, limit_side], options.runs)

    rows = [measure.row(side, "samples/s") for side in all_sides]
    limit_row = measure.row(limit_side, "samples/s")
    limit = limits.section(
        limit_row,
        "libavcodec decodes each clip's frames from its keyframe on, left as YUV, "
        f"{machine.cores()} threads",
    )
    best = max(rows[1:], key=lambda row: row["value"] or 0)
    ratios = measure.ratios(rows, [("stoker", name) for name in (*PEERS, "limit")], limit["value"])
    if rows[0]["value"] and best["value"]:
        ratios["stoker/best_peer"] = rows[0]["value"] / best["value"]
    workload = {
        "samples": count,
        "bytes": facts["bytes"],
        "codec": facts["codec"],
        "width": facts["width"],
        "height": facts["height"],
        "frames": facts["frames"],
        "key_every": facts["key_every"],
        "clip": {"frames": FRAMES, "stride": STRIDE, "start": "center"},
        "batch_size": 8,
        "threads": machine.cores(),
        "best_peer": best["name"] if best["value"] else None,
        "shuffle": True,
        "cache": "warm",
        "consumer": "one contiguous tensor a batch, one byte of each 4 KiB page read",
    }
    rows.append(dict(limit_row, name="libavcodec"))
    return {"workload": workload, "limit": limit, "rows": rows, "ratios": ratios}
