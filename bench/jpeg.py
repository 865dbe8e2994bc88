"""jpeg: 2,000 JPEGs of 500 x 375, cropped at random to 224 x 224 and flipped, batches of 64."""

from bench import limits, machine, measure, media_data, sides

MODULE = "bench.jpeg_sides"
FFCV_NEEDS = "its build needs the system's OpenCV and TurboJPEG (libopencv-dev, libturbojpeg0-dev)"

# name: (set of images, note)
STOKER = {
    "stoker": ("images", "tar shards, global shuffle, antialiased bilinear as Pillow's"),
    "f32": ("images", "the same, then Normalize(imagenet) and Layout(CHW): float32"),
    "resize": ("images", "Resize((224, 224)) of the whole image, no crop, no flip"),
    "stoker_fast": ("images", "as stoker, with DecodeImage(fast=True)"),
    "large": ("large", "1600x1200, DecodeImage(fast=True) and RandomResizedCrop(224)"),
    "large_exact": ("large", "1600x1200, RandomResizedCrop(224)"),
    "raw": ("images", "an .npy of the decoded pixels; crop, resize, flip"),
}

# name: (modules, form of the data, (variant, words) pairs, note)
PEERS = {
    "pil_dataloader": (
        ("torch", "PIL"),
        None,
        (("2", "2 workers"), ("0", "0 workers"), ("4", "4 workers")),
        "a file an image, Image.resize(box=), bilinear, default_collate",
    ),
    "opencv_threads": (
        ("cv2",),
        None,
        (("", ""),),
        "a file an image, a thread a core, INTER_LINEAR: no antialiasing",
    ),
    "dali_cpu": (
        ("nvidia.dali",),
        "dali",
        (("file", "file reader"), ("tar", "tar reader, buffer of 1,024 samples")),
        "a thread a core; image_random_crop, triangular resize, flip",
    ),
    "ffcv_jpg": (
        ("ffcv",),
        "ffcv_jpg",
        (("", ""),),
        f"its own file, the images coded anew at quality {media_data.QUALITY}, OS cache, RANDOM, "
        f"a worker thread a core; INTER_AREA; {FFCV_NEEDS}",
    ),
    "ffcv_raw": (
        ("ffcv",),
        "ffcv_raw",
        (("", ""),),
        f"its own file of pixels, OS cache, RANDOM, a worker thread a core; INTER_AREA; "
        f"{FFCV_NEEDS}",
    ),
    "spdl": (
        ("spdl.io",),
        None,
        (
            ("sample", "an image a task, its own random crop and flip as filters"),
            ("batch", "a batch a task, resize 256 and centre crop as its example: no random crop"),
        ),
        "a file an image, a thread a core",
    ),
}

PAIRS = [
    *(("stoker", name) for name in ("ffcv_jpg", "dali_cpu", "pil_dataloader", "opencv_threads")),
    *(("stoker", name) for name in ("spdl", "full_decode", "limit")),
    *(("stoker_fast", name) for name in ("stoker", "full_decode")),
    *((name, "full_decode_large") for name in ("large", "large_exact")),
    ("raw", "ffcv_raw"),
    ("resize", "full_decode"),
]


def run(options):
    seconds = 0.3 if options.quick else 2.0
    count, count_large = (200, 20) if options.quick else (2000, 150)
    data, facts = media_data.images(count, 500, 375, with_pixels=True)
    data_large, facts_large = media_data.images(count_large, 1600, 1200)
    sets = {"images": data, "large": data_large}
    all_sides = [
        sides.own(MODULE, name, sets[which], seconds, note)
        for name, (which, note) in STOKER.items()
    ]
    all_sides += [
        sides.peer(MODULE, name, data, options, seconds, peer) for name, peer in PEERS.items()
    ]
    all_sides += [
        _full_decode("full_decode", data, seconds),
        _full_decode("full_decode_large", data_large, seconds),
    ]
    measure.alternate(all_sides, options.runs)

    rows = [measure.row(side, "samples/s") for side in all_sides]
    full = next(row for row in rows if row["name"] == "full_decode")
    limit = limits.section(
        full, f"libjpeg-turbo decodes whole images from RAM, {machine.cores()} threads"
    )
    _set_limits(rows)
    ratios = measure.ratios(rows, PAIRS, limit["value"])
    values = {row["name"]: row["value"] for row in rows}
    if values["f32"] and values["stoker"]:
        ratios["f32/u8"] = values["f32"] / values["stoker"]
    workload = {
        "samples": count,
        "bytes": facts["bytes"],
        "width": 500,
        "height": 375,
        "quality": media_data.QUALITY,
        "shards": 10,
        "large": {"samples": count_large, "bytes": facts_large["bytes"], "size": [1600, 1200]},
        "batch_size": 64,
        "threads": machine.cores(),
        "shuffle": True,
        "cache": "warm",
        "consumer": "one contiguous tensor a batch, one byte of each 4 KiB page read",
    }
    return {"workload": workload, "limit": limit, "rows": rows, "ratios": ratios}


def _set_limits(rows):
    """Large images have a limit of their own; pixels are not decoded and have none."""
    values = {row["name"]: row["value"] for row in rows}
    for row in rows:
        if row["name"] in ("large", "large_exact", "full_decode_large"):
            row["limit"] = values["full_decode_large"]
        elif row["name"] in ("raw", "ffcv_raw"):
            row["limit"] = None


def _full_decode(name, data, seconds):
    side = limits.side(
        "limit_jpeg",
        data / "jpg-extents.txt",
        machine.cores(),
        seconds,
        note="libjpeg-turbo, whole images from RAM, no crop, no resize",
    )
    side.name = name
    return side
