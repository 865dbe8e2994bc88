"""`stoker gen images|audio|video|points`: what it writes, as others read it."""

import io
import itertools
import json
import os
import resource
import shutil
import signal
import subprocess
import tarfile
import wave

import numpy
import pytest

image = pytest.importorskip("PIL.Image")

KINDS = {
    "images": ("--size", "64x48"),
    "audio": ("--seconds", "0.1"),
    "video": ("--frames", 3, "--size", "48x32"),
    "points": ("--points", 50),
}


def generate(stoker, kind, out, *more, **options):
    return stoker("gen", kind, "-o", out, "--shards", 2, *more, **options)


def samples_in(folder):
    """(key, suffix, bytes, class) of every sample of the shards, in order."""
    samples = []
    for path in sorted(folder.glob("shard-*.tar")):
        with tarfile.open(path) as tar:
            members = [(info.name, tar.extractfile(info).read()) for info in tar]
        for (name, data), (label_name, label) in zip(members[::2], members[1::2], strict=True):
            key, suffix = name.split(".")
            assert label_name == f"{key}.cls"
            samples.append((key, suffix, data, int(label)))
    return samples


def guess_held_out(features, labels, classes):
    """The share of the second half that is nearest to its own class's mean in the first half."""
    half = len(features) // 2
    scaled = (features - features.mean(0)) / (features.std(0) + 1e-9)
    means = numpy.stack([scaled[:half][labels[:half] == c].mean(0) for c in range(classes)])
    guess = ((scaled[half:, None] - means) ** 2).sum(2).argmin(1)
    return (guess == labels[half:]).mean()


def labelled(stoker, kind, out, *more, samples=80, classes=4):
    generate(stoker, kind, out, "--samples", samples, "--classes", classes, *more)
    made = samples_in(out)
    return [data for _, _, data, _ in made], numpy.array([label for *_, label in made])


# --- what all kinds share -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_any_number_of_threads_makes_the_same_bytes(stoker, tmp_path, kind):
    made = []
    for threads in (1, 2, 7):
        out = tmp_path / str(threads)
        generate(stoker, kind, out, *KINDS[kind], "--samples", 23, "--threads", threads)
        made.append([path.read_bytes() for path in sorted(out.glob("*.tar"))])
    assert len(made[0]) == 2 and made[0] == made[1] == made[2]


@pytest.mark.parametrize("kind", KINDS)
def test_samples_are_numbered_and_classes_even(stoker, tmp_path, kind):
    told = stoker.json(
        *("gen", kind, "-o", tmp_path, *KINDS[kind], "--samples", 13, "--classes", 5, "--shards", 3)
    )
    made = samples_in(tmp_path)
    written = sum(path.stat().st_size for path in tmp_path.glob("*.tar"))
    assert told == {"out": str(tmp_path), "samples": 13, "shards": 3, "bytes": written}
    assert [key for key, *_ in made] == [f"{i:06d}" for i in range(13)]
    counts = numpy.bincount([label for *_, label in made], minlength=5)
    assert len(counts) == 5 and counts.max() - counts.min() <= 1
    assert sorted(os.listdir(tmp_path)) == [f"shard-000{i}.tar" for i in range(3)]


@pytest.mark.parametrize("kind", KINDS)
def test_another_seed_makes_other_samples(stoker, tmp_path, kind):
    for seed in (0, 1):
        generate(stoker, kind, tmp_path / str(seed), *KINDS[kind], "--samples", 2, "--seed", seed)
    one, other = (samples_in(tmp_path / str(seed))[0][2] for seed in (0, 1))
    assert one != other


@pytest.mark.parametrize("kind", KINDS)
def test_folders_hold_the_files_of_the_shards(stoker, tmp_path, kind):
    generate(stoker, kind, tmp_path / "shards", *KINDS[kind], "--samples", 9, "--classes", 3)
    stoker(
        *("gen", kind, "-o", tmp_path / "folders", *KINDS[kind]),
        *("--samples", 9, "--classes", 3, "--folder"),
    )
    found = {
        str(path.relative_to(tmp_path / "folders")): path.read_bytes()
        for path in (tmp_path / "folders").rglob("*")
        if path.is_file()
    }
    assert found == {
        f"class-{label:02d}/{key}.{suffix}": data
        for key, suffix, data, label in samples_in(tmp_path / "shards")
    }
    assert sorted(os.listdir(tmp_path / "folders")) == ["class-00", "class-01", "class-02"]


def test_what_is_there_is_not_replaced_without_force(stoker, tmp_path):
    small = ("--points", 4, "--samples", 8)
    generate(stoker, "points", tmp_path / "s", *small)
    assert "--force" in generate(stoker, "points", tmp_path / "s", *small, status=1).stderr
    generate(stoker, "points", tmp_path / "s", *small, "--seed", 2, "--force")
    folder = ("gen", "points", "-o", tmp_path / "f", "--folder", *small)
    stoker(*folder, "--classes", 4)
    (tmp_path / "f" / "class-03" / "mine.txt").write_text("mine")
    assert "--force" in stoker(*folder, status=1).stderr
    stoker(*folder, "--classes", 2, "--format", "npy", "--force")
    left = sorted(path.name for path in (tmp_path / "f").rglob("*") if path.is_file())
    assert left == [f"{i:06d}.npy" for i in range(8)] + ["mine.txt"]


@pytest.mark.parametrize(
    "arguments, status, words",
    [
        (("images", "--size", "0x10"), 2, "16 to 16384 pixels"),
        (("images", "--size", "500"), 2, "such as 500x375, not 500"),
        (("images", "--size", "500x"), 2, "such as 500x375, not 500x"),
        (("images", "--quality", "0"), 2, "quality of a JPEG is 1 to 100"),
        (("images", "--quality", "101"), 2, "quality of a JPEG is 1 to 100"),
        (("images", "--subsampling", "411"), 2, "420 or 444"),
        (("images", "--vary", "1"), 2, "0 to 0.9"),
        (("images", "--vary", "nan"), 2, "0 to 0.9"),
        (("images", "--vary", "much"), 2, "--vary takes a number, not much"),
        (("images", "--format", "gif"), 2, "--format jpeg|png, not gif"),
        (("images", "--samples", "0"), 2, "at least 1"),
        (("images", "--classes", "0"), 2, "at least 1"),
        (("images", "--shards", "0"), 2, "at least 1 shard"),
        (("images", "--shards", "9", "--samples", "8"), 2, "9 shards cannot share 8 samples"),
        (("images", "--rate", "8000"), 2, "--rate goes with gen audio"),
        (("audio", "--size", "3x4"), 2, "--size goes with gen images|video"),
        (("audio", "--seconds", "0"), 2, "longer than 0 seconds"),
        (("audio", "--seconds", "1e9"), 1, "more than a gigabyte"),
        (("audio", "--rate", "100"), 2, "4000 to 384000"),
        (("audio", "--channels", "9"), 2, "1 to 8 channels"),
        (("video", "--frames", "0"), 2, "1 to 100000 frames"),
        (("video", "--fps", "0"), 2, "0.1 to 1000 frames"),
        (("points", "--points", "0"), 2, "1 to 67108864 points"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(stoker, tmp_path, arguments, status, words):
    done = stoker("gen", *arguments, "-o", tmp_path / "out", status=status)
    assert words in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_disk_without_room_is_said_and_nothing_is_left(stoker, tmp_path):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))

    done = stoker(
        *("gen", "points", "-o", tmp_path / "out", "--samples", 20, "--shards", 1),
        preexec_fn=limit,
        status=1,
    )
    assert "shard-0000.tar" in done.stderr and "File too large" in done.stderr
    assert not (tmp_path / "out").exists()


# --- images -------------------------------------------------------------------------------------


def spectrum_slope(grey):
    """How power falls with frequency: photographs have about -2."""
    grey = grey - grey.mean()
    grey = grey * numpy.hanning(grey.shape[0])[:, None] * numpy.hanning(grey.shape[1])
    power = abs(numpy.fft.fft2(grey)) ** 2
    radius = numpy.hypot(
        numpy.fft.fftfreq(grey.shape[0])[:, None], numpy.fft.fftfreq(grey.shape[1])
    )
    edges = numpy.geomspace(0.01, 0.25, 12)
    bands = [power[(radius >= a) & (radius < b)].mean() for a, b in itertools.pairwise(edges)]
    return numpy.polyfit(numpy.log(edges[1:]), numpy.log(bands), 1)[0]


@pytest.mark.parametrize("format", ["jpeg", "png"])
def test_pillow_opens_every_image(stoker, tmp_path, format):
    generate(stoker, "images", tmp_path, "--samples", 10, "--size", "90x70", "--format", format)
    for _, suffix, data, _ in samples_in(tmp_path):
        opened = image.open(io.BytesIO(data))
        opened.load()
        assert suffix == {"jpeg": "jpg"}.get(format, format)
        assert (opened.format, opened.mode, opened.size) == (format.upper(), "RGB", (90, 70))


def test_jpeg_and_png_show_the_same_scene(stoker, tmp_path):
    pixels = []
    for format in ("jpeg", "png"):
        more = ("--size", "160x120", "--samples", 3, "--quality", 100, "--subsampling", 444)
        generate(
            stoker, "images", tmp_path / format, "--format", format,
            *(more if format == "jpeg" else more[:4]),
        )  # fmt: skip
        made = samples_in(tmp_path / format)
        pixels.append([numpy.asarray(image.open(io.BytesIO(s[2])).convert("RGB")) for s in made])
    for jpeg, png in zip(*pixels, strict=True):
        assert abs(jpeg.astype(int) - png).mean() < 2


def test_jpegs_are_as_asked(stoker, tmp_path):
    def first(name, *more):
        generate(stoker, "images", tmp_path / name, "--samples", 2, "--size", "200x150", *more)
        data = samples_in(tmp_path / name)[0][2]
        return image.open(io.BytesIO(data)), len(data)

    plain, plain_size = first("plain")
    fine, fine_size = first("fine", "--subsampling", 444)
    progressive, _ = first("progressive", "--progressive")
    _, coarse_size = first("coarse", "--quality", 30)
    assert plain.layer[0][1:3] == (2, 2) and fine.layer[0][1:3] == (1, 1)
    assert "progressive" not in plain.info and progressive.info["progressive"]
    assert coarse_size < plain_size / 2 < fine_size
    numpy.testing.assert_array_equal(numpy.asarray(plain), numpy.asarray(progressive))


def test_sizes_vary_within_the_share(stoker, tmp_path):
    generate(stoker, "images", tmp_path, "--samples", 40, "--size", "100x50", "--vary", "0.2")
    sizes = numpy.array([image.open(io.BytesIO(s[2])).size for s in samples_in(tmp_path)])
    assert len(set(map(tuple, sizes))) > 20
    assert (abs(sizes - [100, 50]) <= [20, 10]).all() and (sizes.std(0) > [8, 4]).all()


def test_images_have_the_statistics_of_photographs(stoker, tmp_path):
    """83 KB at 500x375, 450 to 850 KB at 1600x1200; power falls with about the square."""
    generate(stoker, "images", tmp_path / "s", "--samples", 40)
    generate(stoker, "images", tmp_path / "l", "--samples", 4, "--size", "1600x1200")
    small, large = (samples_in(tmp_path / name) for name in "sl")
    assert 70e3 < numpy.mean([len(s[2]) for s in small]) < 95e3
    assert 450e3 < numpy.mean([len(s[2]) for s in large]) < 850e3
    slopes = []
    for _, _, data, _ in small:
        grey = numpy.asarray(image.open(io.BytesIO(data)).convert("L"), float)
        assert grey.std() > 15 and len(numpy.unique(grey)) > 100
        slopes.append(spectrum_slope(grey))
    assert -3 < numpy.mean(slopes) < -1.5


def test_the_hue_of_strong_colours_tells_the_class(stoker, tmp_path):
    files, labels = labelled(stoker, "images", tmp_path, "--size", "96x96", samples=160, classes=6)
    features = []
    for data in files:
        ycc = numpy.asarray(image.open(io.BytesIO(data)).convert("YCbCr"), float)[..., 1:] - 128
        strength = numpy.hypot(ycc[..., 0], ycc[..., 1])
        strong = ycc[strength >= numpy.quantile(strength, 0.9)]
        features.append(strong.mean(0) / numpy.hypot(*strong.mean(0)))
    assert guess_held_out(numpy.array(features), labels, 6) > 0.8
    # the picture's mean brightness tells nothing
    grey = numpy.array(
        [[numpy.asarray(image.open(io.BytesIO(d)).convert("L")).mean()] for d in files]
    )
    assert guess_held_out(grey, labels, 6) < 0.45


# --- audio --------------------------------------------------------------------------------------


def test_wave_reads_what_was_asked_for(stoker, tmp_path):
    generate(
        stoker, "audio", tmp_path, "--samples", 4, "--seconds", "0.25", "--rate", 8000,
        "--channels", 2,
    )  # fmt: skip
    for _, suffix, data, _ in samples_in(tmp_path):
        with wave.open(io.BytesIO(data)) as file:
            assert suffix == "wav" and file.getparams()[:4] == (2, 2, 8000, 2000)
            values = numpy.frombuffer(file.readframes(2000), "<i2").reshape(-1, 2)
        assert 300 < values.std() < 12000 and abs(values.mean()) < 1000
        assert len(data) == 44 + values.nbytes and (values[:, 0] != values[:, 1]).any()


def test_flac_is_the_wave_and_ogg_is_near_it(stoker, tmp_path):
    soundfile = pytest.importorskip("soundfile")
    sounds = {}
    for format in ("wav", "flac", "ogg"):
        for time in ("a", "b"):
            generate(stoker, "audio", tmp_path / format / time, "--samples", 3, "--format", format)
        made, again = (samples_in(tmp_path / format / time) for time in "ab")
        assert made == again  # also the stream's number in an Ogg file
        sounds[format] = [soundfile.read(io.BytesIO(s[2])) for s in made]
    for (plain, rate), (packed, flac_rate), (lossy, ogg_rate) in zip(*sounds.values(), strict=True):
        assert rate == flac_rate == ogg_rate == 16000 and plain.shape == lossy.shape == (16000,)
        numpy.testing.assert_array_equal(plain, packed)
        assert (plain - lossy).std() < 0.3 * plain.std()


def test_the_strongest_pitch_tells_the_class(stoker, tmp_path):
    files, labels = labelled(stoker, "audio", tmp_path, samples=120, classes=6)
    pitches = []
    for data in files:
        values = numpy.frombuffer(data[44:], "<i2") * numpy.hanning(16000)
        spectrum = abs(numpy.fft.rfft(values))
        spectrum[:100] = 0
        smooth = numpy.convolve(spectrum**2, numpy.ones(25), "same")
        pitches.append([numpy.log2(smooth.argmax())])
    assert guess_held_out(numpy.array(pitches), labels, 6) > 0.6


# --- video --------------------------------------------------------------------------------------


def frames_of(data, tmp_path, width, height):
    """The frames as ffmpeg decodes them, and what ffprobe says."""
    path = tmp_path / "clip.avi"
    path.write_bytes(data)
    probe = subprocess.run(
        ["ffprobe", "-v", "error", "-count_frames", "-show_streams", "-of", "json", str(path)],
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    raw = subprocess.run(
        ["ffmpeg", "-v", "error", "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert not raw.stderr and not probe.stderr
    frames = numpy.frombuffer(raw.stdout, numpy.uint8).reshape(-1, height, width, 3)
    return frames, json.loads(probe.stdout)["streams"]


needs_ffmpeg = pytest.mark.skipif(not shutil.which("ffmpeg"), reason="ffmpeg is not installed")


@needs_ffmpeg
@pytest.mark.parametrize("fps, said", [("25", "25/1"), ("29.97", "2997/100")])
def test_ffmpeg_decodes_every_frame_as_pillow_does(stoker, tmp_path, fps, said):
    generate(
        stoker, "video", tmp_path / "s", "--samples", 2, "--frames", 9, "--size", "100x66",
        "--fps", fps,
    )  # fmt: skip
    for _, suffix, data, _ in samples_in(tmp_path / "s"):
        frames, streams = frames_of(data, tmp_path, 100, 66)
        assert suffix == "avi" and len(streams) == 1
        assert streams[0]["codec_name"] == "mjpeg" and streams[0]["r_frame_rate"] == said
        assert streams[0]["nb_frames"] == streams[0]["nb_read_frames"] == "9"
        at = data.index(b"idx1")
        movi = data.index(b"movi")
        for i in range(9):
            offset, size = numpy.frombuffer(data[at + 8 + 16 * i + 8 :][:8], "<u4")
            assert data[movi + offset :][:4] == b"00dc"
            jpeg = data[movi + offset + 8 :][:size]
            expected = numpy.asarray(image.open(io.BytesIO(jpeg)), int)
            # chroma is brought to full size by another filter
            assert abs(expected - frames[i]).mean() < 4
        assert abs(frames[0].astype(int) - frames[8]).mean() > 2


@needs_ffmpeg
def test_the_motion_tells_the_class(stoker, tmp_path):
    files, labels = labelled(
        *(stoker, "video", tmp_path / "s", "--frames", 6, "--size", "96x96"),
        samples=16, classes=4,
    )  # fmt: skip
    right = 0
    for data, label in zip(files, labels, strict=True):
        frames = frames_of(data, tmp_path, 96, 96)[0].mean(3)
        before, after = frames[:-1], frames[1:]
        dy, dx = numpy.gradient((before + after) / 2, axis=(1, 2))
        change = after - before
        moving = abs(change) > 12
        matrix = [
            [(dx * dx)[moving].sum(), (dx * dy)[moving].sum()],
            [(dx * dy)[moving].sum(), (dy * dy)[moving].sum()],
        ]
        motion = numpy.linalg.solve(
            matrix, [-(dx * change)[moving].sum(), -(dy * change)[moving].sum()]
        )
        angle = numpy.arctan2(motion[1], motion[0])
        right += round(angle / (numpy.pi / 2)) % 4 == label
    assert right >= 13


# --- points -------------------------------------------------------------------------------------


def cloud_of(data, suffix):
    if suffix == "npy":
        return numpy.load(io.BytesIO(data), allow_pickle=False)
    if suffix == "ply":
        head, _, data = data.partition(b"end_header\n")
        assert head.startswith(b"ply\nformat binary_little_endian 1.0\nelement vertex 300\n")
    if suffix == "pcd":
        head, _, data = data.partition(b"DATA binary\n")
        assert b"FIELDS x y z intensity\n" in head and b"POINTS 300\n" in head
    return numpy.frombuffer(data, "<f4").reshape(-1, 4)


def test_every_format_holds_the_same_points(stoker, tmp_path):
    clouds = []
    for format in ("bin", "pcd", "ply", "npy"):
        generate(
            *(stoker, "points", tmp_path / format, "--samples", 3),
            *("--points", 300, "--format", format),
        )
        made = samples_in(tmp_path / format)
        assert all(suffix == format for _, suffix, _, _ in made)
        clouds.append([cloud_of(data, suffix) for _, suffix, data, _ in made])
    for first, *others in zip(*clouds, strict=True):
        assert first.shape == (300, 4) and numpy.isfinite(first).all()
        assert abs(first[:, :3]).max() < 2.5 and 0.2 < first[:, :3].std() < 1.5
        assert first[:, 3].min() >= 0 and first[:, 3].max() <= 1 and first[:, 3].std() > 0.01
        for other in others:
            numpy.testing.assert_array_equal(first, other)


def test_distances_from_the_middle_tell_the_solid(stoker, tmp_path):
    files, labels = labelled(stoker, "points", tmp_path, "--points", 1000, samples=160, classes=8)
    features = []
    for data in files:
        cloud = numpy.frombuffer(data, "<f4").reshape(-1, 4)[:, :3]
        cloud = cloud - numpy.median(cloud, 0)
        flat, high = numpy.hypot(cloud[:, 0], cloud[:, 1]), abs(cloud[:, 2])
        shares = (0.1, 0.3, 0.5, 0.7, 0.9)
        features.append([numpy.quantile(part, q) for part in (flat, high) for q in shares])
    assert guess_held_out(numpy.array(features), labels, 8) > 0.9
