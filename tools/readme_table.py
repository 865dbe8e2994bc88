#!/usr/bin/env python3
"""Writes the tables of measured figures into README.md and docs/series.md, from results/*.json.

tools/readme_table.py            writes them
tools/readme_table.py --check    says whether the pages have them; exit status 1 when not

No number of a table is typed by hand: `make bench-NAME` measures, this script renders. A table
whose result is not there stays as it is.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
SERIES = ROOT / "docs" / "series.md"

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

WINDOWS = {
    "stoker": "**Stoker**, packed series",
    "stoker_late": "**Stoker**, scaled while copied",
    "stoker_read": "**Stoker**, within 256 MiB: nothing mapped",
    "memmap_dataloader": "numpy.memmap + DataLoader, worker_init_fn",
    "numpy_vectorised": "numpy, a batch by fancy indexing",
    "numpy_strided": "numpy, the same over sliding_window_view",
    "pandas_in_memory": "pandas, every window in memory",
    "lazy_files": "a Parquet file opened a sample",
    "sequence_files": "every window a file of its own",
    "hdf5_workers": "HDF5, opened in each worker",
    "iterable": "IterableDataset, no shuffle",
}

PACKING = {
    "stoker": "**Stoker**, scaled values stored",
    "stoker_late": "**Stoker**, scaled late",
    "pandas_sklearn": "pandas + scikit-learn, two passes",
}

JPEG = {
    "stoker": "**Stoker**, tar shards",
    "stoker_fast": "**Stoker**, `DecodeImage(fast=True)`",
    "f32": "**Stoker**, to normalised float32 CHW",
    "pil_dataloader": "Pillow + PyTorch DataLoader",
    "opencv_threads": "OpenCV in a pool of threads",
    "dali_cpu": "DALI, on the CPU",
    "ffcv_jpg": "FFCV, JPEGs in its own file",
    "spdl": "SPDL",
}

AUDIO = {
    "stoker": ("**Stoker**, wav in tar shards", "stoker"),
    "soundfile_dataloader": ("soundfile + PyTorch DataLoader, wav", "stoker"),
    "soundfile_threads": ("soundfile in a pool of threads, wav", "stoker"),
    "spdl": ("SPDL, wav", "stoker"),
    "flac": ("**Stoker**, flac in tar shards", "flac"),
    "flac_dataloader": ("soundfile + PyTorch DataLoader, flac", "flac"),
}

VIDEO = {
    "stoker": "**Stoker**, tar shards",
    "pyav": "PyAV",
    "decord": "decord",
    "torchcodec": "TorchCodec",
}


TRAINING = {
    "bound": "the same steps, data on the GPU already",
    "stoker": "**Stoker**, tar shards",
    "resident": "**Stoker**, `resident=True`",
    "thwc": "**Stoker**, stored THWC, made CTHW on the GPU",
    "npy_0": "DataLoader, .npy files, 0 workers",
    "npy_4": "DataLoader, .npy files, 4 workers",
    "npy_15": "DataLoader, .npy files, 15 workers",
    "tar_5": "DataLoader, Python tar stream, 5 workers",
    "tar_10": "DataLoader, Python tar stream, 10 workers",
}


STORES = {
    "libcurl": "HTTP, nginx: a plain libcurl client in C, its best run",
    "http": "HTTP, nginx: **Stoker**, tar shards",
    "webdataset": "HTTP, nginx: WebDataset, `pipe:curl`",
    "s3": "S3, nginx: **Stoker**, tar shards",
    "boto3": "S3, nginx: boto3, an object a sample",
    "s3fs": "S3, nginx: s3fs, an object a sample",
    "mosaic": "S3, nginx: Mosaic Streaming, MDS shards",
    "litdata": "S3, nginx: LitData, its chunks",
    "azure": "Azurite: **Stoker**, tar shards",
    "azure_sdk": "Azurite: azure-storage-blob, an object a sample",
    "latency20": "**Stoker**, a server that answers after 20 ms",
    "halfcache": "**Stoker**, half of it in the cache",
    "cached": "**Stoker**, all of it in the cache",
    "local": "**Stoker**, the same shards as files",
}


def file_of(name):
    """Below the root: results/bench-NAME.json, or results/gpu/NAME.json."""
    return f"results/{name}.json" if "/" in name else f"results/bench-{name}.json"


def marks(name):
    return tuple(f"<!-- table of {file_of(name)}: {end} -->\n" for end in ("begin", "end"))


def result_of(name):
    return ROOT / file_of(name)


def between_marks(text, name):
    """What a page has between the marks of a table."""
    begin, end = marks(name)
    return text[text.index(begin) + len(begin) : text.index(end)]


# --- tensors -------------------------------------------------------------------------------------


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


# --- windows -------------------------------------------------------------------------------------


def seconds(value):
    return "" if value is None else f"{value:.1f} s" if value >= 1 else f"{value * 1000:.0f} ms"


def size(value):
    if value is None:
        return ""
    return f"{value / 1e9:,.2f} GB" if value >= 1e9 else f"{value / 1e6:,.0f} MB"


def rate(value):
    """Three digits that matter."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def windows_line(row, ratios):
    name = WINDOWS[row["name"]]
    if row.get("value") is None:
        return f"| {name} | not measured | | | | | |"
    ratio = ratios.get(f"stoker/{row['name']}")
    disk = size(row.get("disk_bytes"))
    if row.get("disk_bytes_of_all_computed"):
        disk += f" (1); all: {size(row['disk_bytes_of_all_computed'])} (2)"
    if row["name"] == "pandas_in_memory":
        name += " (1)"
    cells = [
        name,
        rate(row["value"]),
        rate(row["batches_per_s"]) if row.get("batches_per_s") else "",
        seconds(row.get("start_s")),
        disk,
        f"{row['peak_rss'] / 2**20:,.0f} MiB" if row.get("peak_rss") else "",
        (f"{ratio:,.0f}x" if ratio >= 10 else f"{ratio:.1f}x") if ratio else "",
    ]
    return f"| {' | '.join(cells)} |"


def render_windows(result):
    machine, workload, limit = result["machine"], result["workload"], result["limit"]
    ratios = result["ratios"]
    rows = [row for row in result["rows"] if row["name"] in WINDOWS]
    rows.sort(key=lambda row: -(row["value"] or 0))
    lines = [
        "| way | windows/s | batches/s | start-up | disk | peak memory | Stoker is |",
        "|---|--:|--:|--:|--:|--:|--:|",
        *(windows_line(row, ratios) for row in rows),
        "",
    ]
    if limit.get("value") and ratios.get("stoker/limit"):
        words = f"{rate(limit['value'])} windows/s; Stoker reaches {ratios['stoker/limit']:.0%}"
        lines += [f"Limit of this machine, {limit['name']}: {words.replace('%', ' %')} of it.", ""]
    start = next((row for row in result["rows"] if row["name"] == "start"), {})
    if start.get("value"):
        of = workload["start"]
        lines += [
            f"From `stoker.open` to the first batch of an array of {of['bytes'] / 2**30:.0f} GiB "
            f"with {of['entities']:,} entities: {seconds(start['value'])}.",
            "",
        ]
    lines += [
        f"{workload['entities']:,} entities x {workload['rows_of_each']:,} rows x "
        f"{workload['features']} float32, windows of {workload['window']} rows, shuffled, batches "
        f"of {workload['batch_size']:,}, page cache warm; {machine['cpu']}, {machine['cores']} "
        "cores; the best number of workers of 0, 2 and 4. Start-up is to the first batch. Peak "
        "memory counts mapped files. (1) measured on a part of the entities, for all do not fit: "
        "1/40 in memory, 1/100 on disk. (2) computed from (1). Yours: `make bench-windows`.",
        "",
    ]
    return "\n".join(lines)


# --- pack ----------------------------------------------------------------------------------------


def pack_line(name, rows):
    bare, synced = rows.get(name, {}), rows.get(f"{name}_synced")
    if bare.get("value") is None:
        return f"| {PACKING[name]} | not measured | | | | |"
    peer = rows.get("pandas_sklearn", {}).get("value")
    row = synced if synced and synced.get("value") else bare
    cells = [
        PACKING[name],
        f"{bare['value'] / 1e6:.2f} M",
        f"{row['value'] / 1e6:.2f} M" if synced else "",
        f"{row['seconds']:.2f} s" + (f", {row['sync_s']:.2f} s of it" if "sync_s" in row else ""),
        f"{row['peak_rss'] / 2**20:,.0f} MiB" if row.get("peak_rss") else "",
        f"{bare['value'] / peer:.1f}x" if peer else "",
    ]
    return f"| {' | '.join(cells)} |"


def render_pack(result):
    machine, workload, ratios = result["machine"], result["workload"], result["ratios"]
    rows = {row["name"]: row for row in result["rows"]}
    lines = [
        "| way | rows/s | with fsync | seconds, in fsync | peak memory | of pandas |",
        "|---|--:|--:|--:|--:|--:|",
        *(pack_line(name, rows) for name in PACKING),
        "",
    ]
    if "time/(read+write)" in ratios:
        lines += [
            f"Stoker takes {ratios['time/(read+write)']:.2f} times as long as pyarrow needs to "
            "read the source once and the output takes to be written once from RAM "
            f"({ratios['time_synced/(read+write)']:.2f} times with its fsync counted).",
            "",
        ]
    lines += [
        f"{workload['files']} Parquet files, {workload['samples'] / 1e6:.1f} M rows x "
        f"{workload['features']} float32, scaler {workload['scaler']}, page cache warm; "
        f"{machine['cpu']}, {machine['cores']} cores. Yours: `make bench-pack`.",
        "",
    ]
    return "\n".join(lines)


# --- jpeg, audio, video --------------------------------------------------------------------------


def media_line(name, row, samples, ratio):
    """Rate, spread, CPU time of a sample, memory, and how often Stoker does it meanwhile."""
    if row.get("value") is None:
        return f"| {name} | not measured | | | | |"
    runs = row.get("runs") or [row["value"]]
    cells = [
        name,
        rate(row["value"]),
        f"{rate(min(runs))} to {rate(max(runs))}",
        f"{1000 * row['cpu_s'] / samples:.3g} ms" if row.get("cpu_s") else "",
        f"{row['peak_rss'] / 2**20:,.0f} MiB" if row.get("peak_rss") else "",
        f"{ratio:.1f}x" if ratio else "",
    ]
    return f"| {' | '.join(cells)} |"


def media_table(what, lines):
    head = f"| loader | {what}/s | runs | CPU time of one | peak memory | Stoker is |"
    return [head, "|---|--:|--:|--:|--:|--:|", *lines, ""]


def media_limit(result, what):
    """The sentence about the limit, or nothing where it was not measured."""
    limit, share = result["limit"], result["ratios"].get("stoker/limit")
    if not limit.get("value") or not share:
        return []
    words = f"{rate(limit['value'])} {what}/s; Stoker reaches {share:.0%} of it."
    return [f"Limit of this machine, {limit['name']}: {words.replace('%', ' %')}", ""]


def where_measured(result):
    machine = result["machine"]
    return (
        f"page cache warm; {machine['cpu']}, {machine['cores']} cores, a thread a core or the best "
        "number of workers"
    )


def sorted_rows(result, names):
    rows = [row for row in result["rows"] if row["name"] in names]
    return sorted(rows, key=lambda row: -(row["value"] or 0))


def jpeg_sentences(values, ratios):
    """What is not a row of the table: other sizes, other work."""
    if ratios.get("large/full_decode_large"):
        yield (
            f"1600 x 1200 with `fast=True`: {rate(values['large'])} images/s, "
            f"{ratios['large/full_decode_large']:.2f} times libjpeg-turbo's full decode."
        )
    if ratios.get("resize/full_decode"):
        yield (
            f"Whole images resized, without a crop: {rate(values['resize'])} images/s, "
            f"{ratios['resize/full_decode']:.2f} times the full decode alone."
        )
    if ratios.get("raw/ffcv_raw"):
        yield (
            f"Stored as pixels: {rate(values['raw'])} images/s, {ratios['raw/ffcv_raw']:.1f} times "
            "FFCV's raw mode."
        )


def render_jpeg(result):
    workload, ratios = result["workload"], result["ratios"]
    values = {row["name"]: row["value"] for row in result["rows"]}
    lines = [
        media_line(JPEG[row["name"]], row, workload["samples"], ratios.get(f"stoker/{row['name']}"))
        for row in sorted_rows(result, JPEG)
    ]
    sentences = " ".join(jpeg_sentences(values, ratios))
    return "\n".join(
        [
            *media_table("images", lines),
            *media_limit(result, "images"),
            *([sentences, ""] if sentences else []),
            f"{workload['samples']:,} JPEGs of {workload['width']} x {workload['height']}, "
            f"{workload['bytes'] / workload['samples'] / 1000:.0f} KB each, to random crops of 224 "
            f"x 224, flipped by chance, uint8, shuffled, batches of {workload['batch_size']}, "
            f"{where_measured(result)}. Yours: `make bench-jpeg`.",
            "",
        ]
    )


def render_audio(result):
    workload, ratios = result["workload"], result["ratios"]
    lines = [
        media_line(
            AUDIO[row["name"]][0],
            row,
            workload["samples"],
            ratios.get(f"{AUDIO[row['name']][1]}/{row['name']}"),
        )
        for row in sorted_rows(result, AUDIO)
    ]
    return "\n".join(
        [
            *media_table("clips", lines),
            *media_limit(result, "clips"),
            f"{workload['samples']:,} recordings of {workload['seconds']} s, "
            f"{workload['rate'] / 1000:.0f} kHz, to float32, shuffled, batches of "
            f"{workload['batch_size']}, {where_measured(result)}. Yours: `make bench-audio`.",
            "",
        ]
    )


def render_video(result):
    workload, ratios = result["workload"], result["ratios"]
    lines = [
        media_line(
            VIDEO[row["name"]], row, workload["samples"], ratios.get(f"stoker/{row['name']}")
        )
        for row in sorted_rows(result, VIDEO)
    ]
    clip = workload["clip"]
    return "\n".join(
        [
            *media_table("clips", lines),
            *media_limit(result, "clips"),
            f"{workload['samples']} videos ({workload['codec']}, {workload['width']} x "
            f"{workload['height']}, {workload['frames']} frames, a keyframe every "
            f"{workload['key_every']}), of each {clip['frames']} frames from the middle, at a "
            f"stride of {clip['stride']}, uint8, shuffled, batches of {workload['batch_size']}, "
            f"{where_measured(result)}. Yours: `make bench-video`.",
            "",
        ]
    )


# --- stores --------------------------------------------------------------------------------------


def stores_line(row):
    name = STORES[row["name"]]
    if row.get("value") is None:
        return f"| {name} | not measured | | | |"
    cpu = row.get("cpu_s_per_gb")
    cells = [
        name,
        f"{row['value'] / 1e9:.2f} GB/s",
        spread(row),
        f"{cpu:.2f} s" if cpu else "",
        f"{row['peak_rss'] / 2**20:,.0f} MiB" if row.get("peak_rss") else "",
    ]
    return f"| {' | '.join(cells)} |"


def render_stores(result):
    machine, workload = result["machine"], result["workload"]
    rows = {row["name"]: row for row in result["rows"]}
    return "\n".join(
        [
            "| way | median | runs, GB/s | CPU time of a GB | peak memory |",
            "|---|--:|--:|--:|--:|",
            *(stores_line(rows[name]) for name in STORES if name in rows),
            "",
            f"{workload['samples']:,} samples of 1.2 MB, shuffled, batches of "
            f"{workload['batch_size']}, servers and clients on the same {machine['cores']} cores "
            f"({machine['cpu']}), loopback; peers at their best number of workers or threads. "
            "Yours: `make bench-stores`.",
            "",
        ]
    )


# --- training on a GPU ---------------------------------------------------------------------------


def training_line(row, bound):
    if row.get("value") is None:
        return f"| {TRAINING[row['name']]} | not measured | | | | |"
    runs = row.get("runs") or [row["value"]]
    cells = [
        TRAINING[row["name"]],
        rate(row["value"]),
        f"{rate(min(runs))} to {rate(max(runs))}",
        f"{row['value'] / bound:.1%}".replace("%", " %"),
        f"{row['busy']:.1%}".replace("%", " %") if row.get("busy") else "",
        f"{row['cpu_cores']:.1f}" if row.get("cpu_cores") else "",
    ]
    return f"| {' | '.join(cells)} |"


def render_training(result):
    machine, workload, ratios = result["machine"], result["workload"], result["ratios"]
    bound = result["limit"]["value"]
    lines = [training_line(row, bound) for row in sorted_rows(result, TRAINING)]
    sentences = []
    if ratios.get("eager_stoker/eager_bound"):
        sentences.append(
            "The step is a CUDA graph in all rows. Launched kernel by kernel, the GPU waits for "
            f"the CPU, and Stoker reaches {ratios['eager_stoker/eager_bound']:.0%} of that bound."
        )
    if ratios.get("lstm/bound"):
        sentences.append(
            f"An LSTM on shuffled windows of a series: {ratios['lstm/bound']:.0%} of its bound."
        )
    return "\n".join(
        [
            "| way | samples/s | runs | of the bound | GPU busy | cores used |",
            "|---|--:|--:|--:|--:|--:|",
            *lines,
            "",
            *([" ".join(sentences).replace("%", " %"), ""] if sentences else []),
            f"A 3D-CNN in half precision ({workload['model'].split(';')[0]}), batches of "
            f"{workload['batch_size']} of {tuple(workload['shape'])} {workload['dtype']}, "
            f"{workload['samples']:,} samples of 1.2 MB, shuffled, page cache warm; "
            f"{machine['gpu']}, {machine['cores']} cores. GPU busy by CUPTI, in a run of its own. "
            "Yours: `make gpu-bench`.",
            "",
        ]
    )


# (page, result, what renders it)
TABLES = [
    (README, "tensors", render),
    (README, "windows", render_windows),
    (README, "jpeg", render_jpeg),
    (README, "audio", render_audio),
    (README, "video", render_video),
    (README, "stores", render_stores),
    (README, "gpu/training", render_training),
    (SERIES, "windows", render_windows),
    (SERIES, "pack", render_pack),
]


def put(page, name, draw, check):
    """Puts one table into its page. 0: it is there now."""
    where = page.relative_to(ROOT)
    if not result_of(name).exists():
        print(f"readme_table: there is no {file_of(name)}; a benchmark writes it")
        return 1
    text, table = page.read_text(), draw(json.loads(result_of(name).read_text()))
    if marks(name)[0] not in text:
        print(f"readme_table: {where} has no marks for the table of {name}")
        return 1
    if between_marks(text, name) == table:
        print(f"readme_table: {where} has the table of {name}")
        return 0
    if check:
        print(f"readme_table: {where} has another table of {name}; run tools/readme_table.py")
        return 1
    begin, end = marks(name)
    page.write_text(text.split(begin)[0] + begin + table + end + text.split(end)[1])
    print(f"readme_table: the table of {name} was written into {where}")
    return 0


def main():
    check = "--check" in sys.argv[1:]
    return max([put(*table, check) for table in TABLES])


if __name__ == "__main__":
    sys.exit(main())
