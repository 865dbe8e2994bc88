"""Makes pictures with numpy, encodes them with Pillow, and writes them into shards: what Stoker
decodes is compared with what Pillow decodes."""

import io
import struct
import zlib
from pathlib import Path

import numpy
from PIL import Image
from shard_making import write_tar


def picture(seed, width=80, height=60, channels=3):
    """Smooth shapes with some grain: uint8 (height, width, channels)."""
    rng = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[0:height, 0:width]
    planes = []
    for _ in range(channels):
        waves = rng.uniform(0.02, 0.2, 4)
        plane = numpy.sin(x * waves[0] + waves[2] * 40) + numpy.cos(y * waves[1] + waves[3] * 40)
        planes.append(127 + 55 * plane + rng.normal(0, 4, plane.shape))
    return numpy.clip(numpy.stack(planes, -1), 0, 255).astype(numpy.uint8)


def encode(array, kind="JPEG", **options):
    """The bytes of an image file."""
    array = array[:, :, 0] if array.ndim == 3 and array.shape[2] == 1 else array
    if kind == "JPEG":
        options.setdefault("quality", 90)
    file = io.BytesIO()
    Image.fromarray(array).save(file, kind, **options)
    return file.getvalue()


def decode(data, mode="RGB"):
    """What Pillow makes of them: uint8 (height, width, channels)."""
    array = numpy.asarray(Image.open(io.BytesIO(data)).convert(mode))
    return array[:, :, None] if array.ndim == 2 else array


def jpeg(seed, width=80, height=60, **options):
    return encode(picture(seed, width, height), **options)


def write_images(folder, count, shards=2, make=jpeg, field="jpg"):
    """`count` images with their number as class, in tar shards; the folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    share = -(-count // shards)
    for shard in range(shards):
        numbers = range(shard * share, min(count, (shard + 1) * share))
        samples = [(f"{n:05d}", {field: make(n), "cls": n % 10}) for n in numbers]
        write_tar(folder / f"images-{shard:03d}.tar", samples)
    return folder


def png_chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def huge_jpeg():
    """FAULTS 51: a header of 65,535 x 65,535 pixels on a small file."""
    data = bytearray(jpeg(0))
    at = data.index(b"\xff\xc0") + 5  # SOF0: length, precision, height, width
    data[at : at + 4] = b"\xff\xff\xff\xff"
    return bytes(data)


def without_segment(data, marker):
    """The JPEG without its segments of one kind (0xC4: Huffman tables, 0xDB: quantisation)."""
    out, at = bytearray(data[:2]), 2
    while data[at + 1] != 0xDA:
        length = struct.unpack(">H", data[at + 2 : at + 4])[0]
        if data[at + 1] != marker:
            out += data[at : at + 2 + length]
        at += 2 + length
    return bytes(out + data[at:])


def many_scans(count):
    """FAULTS 52: a progressive JPEG whose last scan comes again and again."""
    data = jpeg(0, progressive=True)
    scan = data.rindex(b"\xff\xda")
    return data[:scan] + data[scan:-2] * count + b"\xff\xd9"
