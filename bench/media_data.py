"""The images, recordings and videos of the media benchmarks, written without Stoker.

    python -m bench.media_data ffcv_jpg|ffcv_raw|dali DATA      a form that a peer wants

Pictures have the statistics of photographs: 1/f spectra, regions with edges between them,
correlated colours and some grain; so their JPEGs are as large as those of a camera.
"""

import argparse
import io
import pathlib
import shutil
import subprocess
import tarfile

import numpy

from bench import shards

CLASSES = 10
QUALITY = 90
RATE = 16000  # of the recordings
FRAMES, FRAME_RATE, KEY_EVERY = 100, 25, 25  # of the videos


# --- images --------------------------------------------------------------------------------------


def images(count, width, height, with_pixels=False):
    """Tar shards of KEY.jpg and KEY.cls; files/CLASS/KEY.jpg; pixels.npy where it is asked for."""

    def make(path):
        return _write_images(path, count, width, height, with_pixels)

    what = {"samples": count, "width": width, "height": height, "quality": QUALITY}
    return shards.folder(f"images-{count}-{width}x{height}", make, **what, pixels=with_pixels)


def _write_images(path, count, width, height, with_pixels):
    from PIL import Image

    random = numpy.random.default_rng(0)
    large = width > 1000
    # About 83 KB at 500 x 375 and 650 KB at 1600 x 1200: of a larger picture each pixel tells less.
    scenes = Scenes(random, 2048, 1.15) if large else Scenes(random, 1024, 0.95)
    grain = 4.5 if large else 6.0
    pixels = None
    if with_pixels:
        shape = (count, height, width, 3)
        pixels = numpy.lib.format.open_memmap(path / "pixels.npy", "w+", numpy.uint8, shape)

    def sample(number):
        data = jpeg_bytes(scenes.draw(width, height, grain))
        if pixels is not None:
            pixels[number] = numpy.asarray(Image.open(io.BytesIO(data)))
        return data

    size = _write_samples(path, count, "jpg", sample, random)
    return {"bytes": size, "pixel_bytes": 3 * width * height * count if with_pixels else 0}


def jpeg_bytes(picture):
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(picture).save(out, "JPEG", quality=QUALITY)
    return out.getvalue()


class Scenes:
    """Pictures, cut from periodic textures that are made once."""

    def __init__(self, random, side, slope=0.95):
        self.random, self.side = random, side
        self.fine = [_texture(random, side, slope) for _ in range(6)]
        self.soft = [_texture(random, side, 1.6) for _ in range(6)]
        self.grain = random.normal(0, 1, (side, side)).astype(numpy.float32)

    def _cut(self, textures, width, height):
        texture = textures[self.random.integers(len(textures))]
        left, top = self.random.integers(self.side, size=2)
        rows = numpy.arange(top, top + height) % self.side
        columns = numpy.arange(left, left + width) % self.side
        return texture[rows[:, None], columns]

    def draw(self, width, height, grain=6.0):
        """uint8 (height, width, 3)."""
        random = self.random
        mask = self._cut(self.soft, width, height) > random.normal(0, 0.6)
        light = self._cut(self.soft, width, height) * 30
        detail = self._cut(self.fine, width, height) * random.uniform(10, 40)
        smooth = self._cut(self.fine, width, height) * random.uniform(5, 25)
        value = 120 + light + numpy.where(mask, detail + 30, smooth - 30)
        value += self._cut([self.grain], width, height) * random.uniform(0.5, 1.5) * grain
        tint = self._cut(self.soft, width, height) * 14
        blue, red = random.normal(0, 12, 2)
        tint_red = tint + numpy.where(mask, red, -blue)
        tint_blue = numpy.where(mask, blue, -red) - tint
        planes = value + 1.4 * tint_red, value - 0.7 * tint_red - 0.3 * tint_blue, value
        picture = numpy.stack((planes[0], planes[1], planes[2] + 1.8 * tint_blue), -1)
        return numpy.clip(picture, 0, 255).astype(numpy.uint8)


def _texture(random, side, slope):
    """Noise whose amplitude falls as 1/f^slope, of mean 0 and deviation 1; it tiles."""
    vertical = numpy.fft.fftfreq(side)[:, None]
    horizontal = numpy.fft.rfftfreq(side)[None]
    frequency = numpy.hypot(vertical, horizontal)
    frequency[0, 0] = 1
    spectrum = numpy.fft.rfft2(random.normal(size=(side, side))) / frequency**slope
    spectrum[0, 0] = 0
    texture = numpy.fft.irfft2(spectrum, (side, side))
    return (texture / texture.std()).astype(numpy.float32)


def _write_samples(path, count, field, sample, random, shard_count=10):
    """Shards, loose files and extents.txt of samples that sample(number) makes; their bytes."""
    size, extents = 0, []
    for label in range(CLASSES):
        (path / field / str(label)).mkdir(parents=True)
    for shard in range(shard_count):
        name = path / f"{field}-{shard:04d}.tar"
        with tarfile.open(name, "w", format=tarfile.USTAR_FORMAT) as tar:
            for number in range(shard * count // shard_count, (shard + 1) * count // shard_count):
                data, label = sample(number), int(random.integers(CLASSES))
                extents.append((tar.offset + 512, len(data), name.name))
                for suffix, value in (field, data), ("cls", str(label).encode()):
                    member = tarfile.TarInfo(f"{number:06d}.{suffix}")
                    member.size = len(value)
                    tar.addfile(member, io.BytesIO(value))
                (path / field / str(label) / f"{number:06d}.{field}").write_bytes(data)
                size += len(data)
    with open(path / f"{field}-extents.txt", "w") as out:
        out.writelines(f"{offset} {length} {name}\n" for offset, length, name in extents)
    return size


def files_of(path, field):
    """The loose files, and the class of each."""
    found = sorted((path / field).glob(f"*/*.{field}"))
    return [str(file) for file in found], [int(file.parent.name) for file in found]


# --- forms for peers; they run in the peers' venv ------------------------------------------------


class Decoded:
    """What FFCV's writer reads: (picture, class)."""

    def __init__(self, path):
        self.files, self.labels = files_of(path, "jpg")

    def __len__(self):
        return len(self.files)

    def __getitem__(self, number):
        from PIL import Image

        return Image.open(self.files[number]), self.labels[number]


def _ffcv(path, mode):
    from ffcv.fields import IntField, RGBImageField
    from ffcv.writer import DatasetWriter

    field = RGBImageField(write_mode=mode, jpeg_quality=QUALITY)
    part = path / f"{mode}.beton.part"
    writer = DatasetWriter(str(part), {"image": field, "label": IntField()}, num_workers=2)
    writer.from_indexed_dataset(Decoded(path))
    part.rename(path / f"{mode}.beton")


def ffcv_jpg(path):
    _ffcv(path, "jpg")


def ffcv_raw(path):
    _ffcv(path, "raw")


def dali(path):
    """The index files of DALI's tar reader, as its wds2idx writes them."""
    folder = path / "dali.part"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for shard in sorted(path.glob("jpg-*.tar")):
        with tarfile.open(shard) as tar:
            members = tar.getmembers()
        pairs = zip(members[0::2], members[1::2], strict=True)
        lines = [
            " ".join(f"{m.name[7:]} {m.offset_data} {m.size} {m.name}" for m in pair)
            for pair in pairs
        ]
        text = f"v1.2 {len(lines)}\n" + "\n".join(lines) + "\n"
        (folder / f"{shard.name}.idx").write_text(text)
    folder.rename(path / "dali")


FORMS = {"ffcv_jpg": "jpg.beton", "ffcv_raw": "raw.beton", "dali": "dali"}


# --- recordings ----------------------------------------------------------------------------------


def recordings(count):
    """Clips of a second, 16 kHz, 16 bit, mono; as wav and as flac, in shards and in files."""

    def make(path):
        import soundfile

        random = numpy.random.default_rng(0)
        clips = [_clip(random) for _ in range(count)]
        size = {}
        for field in "wav", "flac":

            def sample(number, field=field):
                out = io.BytesIO()
                soundfile.write(out, clips[number], RATE, "PCM_16", format=field.upper())
                return out.getvalue()

            size[field] = _write_samples(path, count, field, sample, random)
        return {"bytes": size["wav"], "flac_bytes": size["flac"]}

    return shards.folder(f"recordings-{count}", make, samples=count, rate=RATE)


def _clip(random):
    """A voice of a few harmonics that swells and fades, over pink noise: float (16000,)."""
    time = numpy.arange(RATE) / RATE
    pitch = random.uniform(80, 300) * (1 + 0.05 * numpy.sin(2 * numpy.pi * 3 * time))
    phase = 2 * numpy.pi * numpy.cumsum(pitch) / RATE
    voice = sum(random.uniform(0, 1 / k) * numpy.sin(k * phase) for k in range(1, 9))
    voice *= numpy.sin(numpy.pi * time) ** 2
    spectrum = numpy.fft.rfft(random.normal(size=RATE))
    spectrum[1:] /= numpy.sqrt(numpy.arange(1, len(spectrum)))
    noise = numpy.fft.irfft(spectrum, RATE)
    return 0.2 * voice + 0.02 * noise / noise.std()


# --- videos --------------------------------------------------------------------------------------


def videos(count, width=320, height=240):
    """h264 in mp4: a camera that pans over a picture, with grain; a keyframe a second."""
    if not shutil.which("ffmpeg"):
        raise RuntimeError("the command ffmpeg makes the videos: install it (apt install ffmpeg)")
    codec = "libx264" if "libx264" in _ffmpeg("-encoders") else "mpeg4"

    def make(path):
        random = numpy.random.default_rng(0)
        scenes = Scenes(random, 1024)
        size = _write_samples(
            path,
            count,
            "mp4",
            lambda number: _video(path, scenes, width, height, codec),
            random,
            shard_count=4,
        )
        return {"bytes": size}

    what = {"samples": count, "width": width, "height": height, "frames": FRAMES}
    return shards.folder(f"videos-{count}", make, **what, codec=codec, key_every=KEY_EVERY)


def middle(frames, stride):
    """The numbers of the frames of a clip from the middle of a video, as Stoker rounds it."""
    first = (FRAMES - (frames - 1) * stride) // 2
    return [first + stride * number for number in range(frames)]


def _video(path, scenes, width, height, codec):
    random = scenes.random
    picture = scenes.draw(width + 2 * FRAMES, height + FRAMES, grain=2.0)
    speed_x, speed_y = random.uniform(0, 2), random.uniform(0, 1)
    frames = bytearray()
    for number in range(FRAMES):
        left, top = int(number * speed_x), int(number * speed_y)
        frame = picture[top : top + height, left : left + width].astype(numpy.int16)
        frame += random.integers(-3, 4, size=(height, width, 1), dtype=numpy.int16)
        frames += numpy.clip(frame, 0, 255).astype(numpy.uint8).tobytes()
    file = path / "video.mp4"
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", str(FRAME_RATE)]
    coded = ["-c:v", codec, "-pix_fmt", "yuv420p", "-g", str(KEY_EVERY), "-an"]
    command = ["ffmpeg", "-v", "error", "-y", *raw, "-i", "-", *coded, str(file)]
    subprocess.run(command, input=frames, check=True)
    data = file.read_bytes()
    file.unlink()
    return data


def _ffmpeg(*arguments):
    return subprocess.run(
        ["ffmpeg", "-v", "error", *arguments], capture_output=True, text=True
    ).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("form", choices=FORMS)
    parser.add_argument("data", type=pathlib.Path)
    arguments = parser.parse_args()
    globals()[arguments.form](arguments.data)


if __name__ == "__main__":
    main()
