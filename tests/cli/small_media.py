"""Makes small images, recordings and clouds of points, and shards of them, by other libraries."""

import io
import struct
import wave

import numpy
import tars
from PIL import Image


def picture(seed, width=120, height=90):
    """Smooth waves of colour: uint8 (height, width, 3)."""
    rng = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[0:height, 0:width]
    waves = rng.uniform(0.02, 0.15, (3, 2))
    planes = [127 + 60 * (numpy.sin(x * a) + numpy.cos(y * b)) for a, b in waves]
    return numpy.clip(numpy.stack(planes, -1), 0, 255).astype(numpy.uint8)


def encode(array, kind="PNG", **options):
    file = io.BytesIO()
    Image.fromarray(array).save(file, kind, **options)
    return file.getvalue()


def wav(samples, rate=8000):
    """16 bits, one channel; samples within -1 and 1."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes((numpy.asarray(samples) * 32767).astype("<i2").tobytes())
    return file.getvalue()


def bin_points(points):
    """As KITTI writes them: float32 x, y, z, intensity."""
    return struct.pack(f"<{4 * len(points)}f", *(value for point in points for value in point))


def shard(path, samples):
    """samples: {field: bytes} each, keys are numbers."""
    members = [
        (f"{number:06d}.{field}", data)
        for number, sample in enumerate(samples)
        for field, data in sample.items()
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    return tars.write(path, members)
