"""jpeg: JPEGs of 500 x 375, cropped at random to 224 x 224, flipped, normalised, on the device."""

import importlib.util

from bench import machine, measure, media_data
from bench.gpu import data, loop
from bench.gpu import jpeg_sides as sides

NVJPEG_BATCHES = (64, 256, 1024)  # that nvJPEG alone is given; the best one counts


def run(options):
    samples, distinct, seconds = (1024, 128, 0.4) if options.quick else (8192, 1024, 1.5)
    path, facts = data.images(samples, distinct)
    rows = loop.measured(_sides(path, seconds, options), options.runs)
    workload = {
        "samples": samples,
        "distinct": distinct,
        "bytes": facts["bytes"],
        "width": 500,
        "height": 375,
        "quality": media_data.QUALITY,
        "shards": data.SHARDS,
        "batch_size": sides.BATCH,
        "result": "float32 (3, 224, 224), normalised, on the device",
        "shuffle": True,
        "cache": "warm",
        "consumer": "draws batches and does nothing with them",
    }
    return {
        "workload": workload,
        "limit": limit(rows),
        "rows": list(rows.values()),
        "ratios": ratios(rows),
    }


def _sides(path, seconds, options):
    def own(decode, note):
        return loop.Side(decode, lambda s: sides.stoker(path, decode, s), seconds, note)

    cores = machine.cores()
    peers = [
        loop.Side(
            "pil_dataloader",
            lambda s: sides.pil_dataloader(path, max(1, cores - 1), s),
            seconds / 2,
            f"Pillow, DataLoader, {max(1, cores - 1)} workers, pin_memory, normalised on the GPU",
        ),
        loop.Side(
            "torchvision_cpu",
            lambda s: sides.torchvision_cpu(path, s),
            seconds / 2,
            f"torchvision decodes and resizes in {cores} threads, normalised on the GPU",
        ),
    ]
    alone = [
        _nvjpeg(path, seconds, options),
        loop.Side(
            "cpu_decode",
            lambda s: sides.cpu_decode(path, s),
            seconds / 2,
            f"torchvision decodes whole images from memory in {cores} threads, nothing else",
        ),
    ]
    dali = loop.missing("dali_gpu", why_no_dali(), "GPU pipeline of its ResNet example")
    return [
        own("gpu", "decode='gpu'"),
        own("auto", "decode='auto'"),
        own("cpu", "decode='cpu'"),
        *peers,
        *alone,
        dali,
    ]


def why_no_dali():
    try:
        found = importlib.util.find_spec("nvidia.dali") is not None
    except ModuleNotFoundError:
        found = False
    return "no side is written for this version" if found else "nvidia-dali is not installed"


def _nvjpeg(path, seconds, options):
    """torchvision's nvJPEG, decoding alone, with the number of images a call that suits it best."""
    variants = [
        loop.Side(
            "nvjpeg",
            lambda s, batch=batch: sides.nvjpeg(path, batch, s),
            seconds,
            f"torchvision's decode_jpeg(list of {batch}, device='cuda'): whole images from memory, "
            "nothing else",
        )
        for batch in (NVJPEG_BATCHES[1:2] if options.quick else NVJPEG_BATCHES)
    ]
    return measure.best_of(variants)


def limit(rows):
    """Both decoders at once, if neither disturbed the other."""
    parts = [rows[name]["value"] for name in ("nvjpeg", "cpu_decode") if rows[name]["value"]]
    return {
        "name": "nvjpeg and cpu_decode added: both decoders, each alone",
        "value": sum(parts) if parts else None,
        "unit": "samples/s",
        "runs": [],
    }


def ratios(rows):
    pairs = [(name, "nvjpeg") for name in ("gpu", "auto", "cpu")]
    pairs += [("cpu", "cpu_decode"), ("auto", "pil_dataloader"), ("auto", "torchvision_cpu")]
    return measure.ratios(list(rows.values()), pairs)
