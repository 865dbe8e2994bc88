"""FAULTS 51 to 57 through the loader: images that are bombs, cut, of other kinds or broken; and
recordings, point clouds and videos that are not what they say."""

import io
import shutil
import struct
import subprocess
import tarfile
import zlib

import numpy
import pytest
import stoker

pytest.importorskip("PIL")
from media_making import (
    decode,
    encode,
    huge_jpeg,
    jpeg,
    many_scans,
    picture,
    png_chunk,
    without_segment,
)
from PIL import Image
from shard_making import write_tar


def cut_scan():
    data = jpeg(2)
    return data[: len(data) * 2 // 3]


def cut_header():
    return jpeg(2)[:100]


def no_height():
    data = bytearray(jpeg(3))
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 2] = b"\0\0"
    return bytes(data)


def twelve_bits():
    data = bytearray(jpeg(3))
    data[data.index(b"\xff\xc0") + 4] = 12
    return bytes(data)


def other_size():
    """The header says twice the height that the scan has."""
    data = bytearray(jpeg(3))
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 2] = struct.pack(">H", 120)
    return bytes(data)


def restart_garbage():
    data = bytearray(jpeg(4))
    at = data.index(b"\xff\xda") + 40
    data[at : at + 40] = b"\xff\xd3" * 20
    return bytes(data)


def huge_png():
    header = struct.pack(">IIBBBBB", 1 << 30, 1 << 30, 8, 2, 0, 0, 0)
    body = png_chunk(b"IHDR", header) + png_chunk(b"IDAT", zlib.compress(b"\0" * 1000))
    return b"\x89PNG\r\n\x1a\n" + body + png_chunk(b"IEND", b"")


BAD = {
    "51 a header of 65,535 x 65,535": huge_jpeg,
    "51 a PNG of 2^30 x 2^30": huge_png,
    "52 thousands of scans": lambda: many_scans(3000),
    "53 a cut scan": cut_scan,
    "53 a cut header": cut_header,
    "53 a header that says another size than the scan": other_size,
    "54 twelve bits": twelve_bits,
    "55 a page of HTML": lambda: b"<!DOCTYPE html><html><body>404</body></html>",
    "57 no bytes": lambda: b"",
    "57 no height": no_height,
    "57 no Huffman tables": lambda: without_segment(jpeg(5), 0xC4),
    "57 no quantisation tables": lambda: without_segment(jpeg(5), 0xDB),
    "57 restart markers that do not belong": restart_garbage,
}
# Some decoders fill in the standard Huffman tables, as for a camera's frames: right either way.
MAY_PASS = {"57 no Huffman tables"}


def place_in_tar(path, name):
    with tarfile.open(path) as tar:
        return tar.getmember(name).offset_data


@pytest.mark.parametrize("what", BAD)
def test_a_bad_image_is_an_error_that_names_the_sample(tmp_path, what):
    samples = [(f"{n}", {"jpg": jpeg(n), "cls": n}) for n in range(6)]
    samples[3][1]["jpg"] = BAD[what]()
    write_tar(tmp_path / "a.tar", samples)
    loader = stoker.Loader(tmp_path, 2, transforms={"jpg": "Resize((20, 20))"})
    iterator = iter(loader)
    next(iterator)
    if what in MAY_PASS:
        try:
            next(iterator)
        except stoker.BadSampleError as error:
            assert error.sample == 3
        return
    with pytest.raises(stoker.BadSampleError) as caught:
        next(iterator)
    error = caught.value
    assert (error.sample, error.key, error.field) == (3, "3", "jpg")
    assert error.object.endswith("a.tar")
    assert error.status in ("CORRUPT", "TRUNCATED", "LIMIT", "UNSUPPORTED")
    assert error.offset == place_in_tar(tmp_path / "a.tar", "3.jpg")
    assert len(str(error)) > 20
    assert error.remedy


def test_bad_images_are_replaced_and_counted_and_the_order_is_kept(tmp_path):
    kinds = [make for what, make in BAD.items() if what not in MAY_PASS]
    count = 4 * len(kinds)
    samples, bad = [], set()
    for n in range(count):
        data = jpeg(n)
        if n % 4 == 2:
            data = kinds[n // 4]()
            bad.add(n)
        samples.append((f"{n:03d}", {"jpg": data, "cls": n}))
    write_tar(tmp_path / "a.tar", samples)
    chain = {"jpg": [stoker.RandomResizedCrop(16), stoker.RandomHorizontalFlip()]}
    options = {"transforms": chain, "bad": "replace", "shuffle": True, "as_": "numpy"}

    def run(threads):
        loader = stoker.Loader(tmp_path, 8, threads=threads, **options)
        batches = [
            (batch.samples.tolist(), batch["cls"].tolist(), batch["jpg"].copy()) for batch in loader
        ]
        listed = {entry["sample"]: entry for entry in loader.quarantine}
        stats = loader.stats()
        loader.close()
        return batches, listed, stats

    batches, listed, stats = run(1)
    assert sum(len(numbers) for numbers, _, _ in batches) == count
    assert set(listed) == bad
    assert stats["bad"] == len(bad)
    for entry in listed.values():
        assert entry["field"] == "jpg"
        assert entry["status"] in ("CORRUPT", "TRUNCATED", "LIMIT", "UNSUPPORTED")
        assert entry["substitute"] not in bad
        assert entry["reason"]
        assert entry["key"] == f"{entry['sample']:03d}"
        assert entry["object"].endswith("a.tar")
        assert entry["offset"] == place_in_tar(tmp_path / "a.tar", f"{entry['key']}.jpg")
    clean = stoker.Loader(tmp_path, 8, fields=["cls"], shuffle=True)
    order = [n for batch in clean for n in batch.samples.tolist()]
    told = [n for numbers, _, _ in batches for n in numbers]
    assert len(told) == len(order)
    for here, there in zip(told, order, strict=True):
        assert here == there or (there in bad and here == listed[there]["substitute"])
    again, _, _ = run(4)
    for one, two in zip(batches, again, strict=True):
        assert one[:2] == two[:2]
        assert numpy.array_equal(one[2], two[2])


def whole(data, **options):
    """The image as the loader decodes it."""
    return stoker.Pipeline("", as_="numpy", **options)(data)


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_55_content_decides_what_a_jpg_is(tmp_path, kind):
    data = encode(picture(1), kind, **({"lossless": True} if kind == "WEBP" else {}))
    write_tar(tmp_path / "a.tar", [("0", {"jpg": data}), ("1", {"jpg": jpeg(1)})])
    ds = stoker.open(tmp_path, as_="numpy")
    assert numpy.array_equal(ds[0]["jpg"], picture(1))
    assert next(iter(stoker.Loader(ds, 2)))["jpg"].shape == (2, 60, 80, 3)


def test_54_grey_images_become_rgb_and_cmyk_too():
    grey = encode(picture(6, channels=1))
    assert numpy.abs(whole(grey).astype(int) - decode(grey)).max() <= 1
    file = io.BytesIO()
    Image.fromarray(picture(6)).convert("CMYK").save(file, "JPEG", quality=95)
    expected = decode(file.getvalue())
    assert numpy.abs(whole(file.getvalue()).astype(int) - expected).max() <= 2


@pytest.mark.parametrize("orientation", range(1, 9))
def test_56_orientation_turns_the_image(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encode(picture(7), exif=exif, subsampling=0)
    from PIL import ImageOps

    expected = numpy.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))))
    result = whole(data)
    assert result.shape == expected.shape
    assert numpy.abs(result.astype(int) - expected).max() <= 1


def test_56_a_malformed_profile_is_passed_over():
    data = jpeg(8)
    chain = b"".join(
        b"\xff\xe2" + struct.pack(">H", 65535) + b"ICC_PROFILE\0" + bytes([n, 9]) + b"x" * 65519
        for n in (7, 7, 0)
    )
    broken_exif = b"\xff\xe1" + struct.pack(">H", 40) + b"Exif\0\0MM\0*" + b"\xff" * 28
    dressed = data[:2] + chain + broken_exif + data[2:]
    assert numpy.array_equal(whole(dressed), whole(data))


def test_53_a_damaged_end_passes_where_relaxed():
    data = cut_scan()
    with pytest.raises(stoker.StokerError):
        whole(data)
    result = stoker.Pipeline("DecodeImage(relaxed=True)")(data)
    assert result.shape == (60, 80, 3)
    kept = decode(jpeg(2))[:12]  # what is there of the first row of blocks, but for its lower edge
    assert numpy.abs(result[:12, :32].astype(int) - kept[:, :32]).max() <= 1


def test_51_the_cap_can_be_set():
    with pytest.raises(stoker.StokerError, match="pixels"):
        stoker.Pipeline("DecodeImage(max_pixels=1000)")(jpeg(9))
    assert stoker.Pipeline("DecodeImage(max_pixels=4800)")(jpeg(9)).shape == (60, 80, 3)


def test_a_sixteen_bit_png_keeps_its_upper_bits():
    values = (numpy.arange(60 * 80).reshape(60, 80) * 13 % 65536).astype(numpy.uint16)
    file = io.BytesIO()
    Image.fromarray(values).save(file, "PNG")
    result = whole(file.getvalue())
    assert numpy.abs(result[..., 0].astype(int) - (values >> 8)).max() <= 1


def test_an_animated_webp_is_an_error_or_its_first_frame():
    file = io.BytesIO()
    frames = [Image.fromarray(picture(n)) for n in range(3)]
    frames[0].save(file, "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    try:
        result = whole(file.getvalue())
    except stoker.StokerError as error:
        assert "anim" in str(error)
    else:
        assert numpy.array_equal(result, picture(0))


@pytest.mark.parametrize(
    "make",
    [
        lambda: encode(picture(1), "PNG"),
        lambda: encode((numpy.arange(4800).reshape(60, 80) * 13).astype(numpy.uint16), "PNG"),
    ],
    ids=["a PNG named jpg", "16 bits"],
)
def test_unusual_images_are_no_bad_samples(tmp_path, make):
    samples = [(f"{n}", {"jpg": jpeg(n), "cls": n}) for n in range(6)]
    samples[3][1]["jpg"] = make()
    write_tar(tmp_path / "a.tar", samples)
    loader = stoker.Loader(tmp_path, 2, bad="replace", as_="numpy")
    batches = list(loader)
    assert [n for batch in batches for n in batch["cls"].tolist()] == [0, 1, 2, 3, 4, 5]
    assert loader.quarantine == []
    assert numpy.abs(batches[1]["jpg"][1].astype(int) - whole(make())).max() == 0


# Recordings, point clouds, videos


def recording(kind, frames=8000):
    soundfile = pytest.importorskip("soundfile")
    file = io.BytesIO()
    wave = numpy.sin(numpy.arange(frames) * 0.05).astype(numpy.float32) / 2
    try:
        soundfile.write(file, wave, 8000, format=kind)
    except soundfile.LibsndfileError:
        pytest.skip(f"this libsndfile writes no {kind}")
    return file.getvalue()


def cloud(promised, there=20):
    head = (
        "VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\n"
        f"WIDTH {promised}\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS {promised}\nDATA binary\n"
    )
    return head.encode() + numpy.arange(3 * there, dtype=numpy.float32).tobytes()


def video(tmp_path, *options, name="made.mkv"):
    if not shutil.which("ffmpeg"):
        pytest.skip("there is no ffmpeg")
    path = tmp_path / name
    command = ["ffmpeg", "-v", "error", "-y", *options, str(path)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this ffmpeg cannot make it")
    return path


def plain_video(tmp_path, *options):
    source = ["-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=3"]
    return video(tmp_path, *source, "-pix_fmt", "yuv420p", "-c:v", "mpeg4", "-g", "10", *options)


AUDIO, POINTS, VIDEO = "DecodeAudio(frames=8000)", "DecodePoints(count=16)", "DecodeVideo(frames=4)"
OTHERS = {
    "an mp3 cut in mid-frame": ("mp3", AUDIO, lambda _: recording("MP3"), lambda d: d[:-300]),
    "an mp3 cut in its first frame": ("mp3", AUDIO, lambda _: recording("MP3"), lambda d: d[:100]),
    "a cut flac": ("flac", AUDIO, lambda _: recording("FLAC"), lambda d: d[: len(d) // 2]),
    "a cut wav": ("wav", AUDIO, lambda _: recording("WAV"), lambda d: d[: len(d) // 2]),
    "an empty wav": ("wav", AUDIO, lambda _: recording("WAV"), lambda d: b""),
    "a page as wav": ("wav", AUDIO, lambda _: recording("WAV"), lambda d: b"<html>404</html>"),
    "a pcd of fewer points": ("pcd", POINTS, lambda _: cloud(20), lambda d: cloud(2000)),
    "a pcd of far fewer": ("pcd", POINTS, lambda _: cloud(20), lambda d: cloud(4000000000)),
    "a pcd of more points": ("pcd", POINTS, lambda _: cloud(20), lambda d: cloud(5)),
    "an empty pcd": ("pcd", POINTS, lambda _: cloud(20), lambda d: b""),
    "an empty video": ("mkv", VIDEO, lambda p: plain_video(p).read_bytes(), lambda d: b""),
    "a video's head": ("mkv", VIDEO, lambda p: plain_video(p).read_bytes(), lambda d: d[:60]),
}


def load_or_skip(folder, chain, **options):
    try:
        return stoker.Loader(folder, 2, transforms=chain, as_="numpy", **options)
    except stoker.StokerError as error:
        if "FFmpeg" in str(error):
            pytest.skip("the decoder of videos is not built")
        raise


@pytest.mark.parametrize("what", OTHERS)
def test_bad_media_are_named_or_replaced_and_listed(tmp_path, what):
    field, chain, make, spoil = OTHERS[what]
    good = make(tmp_path)
    samples = [(f"{n}", {field: good, "cls": n}) for n in range(6)]
    samples[3][1][field] = spoil(good)
    folder = tmp_path / "shards"
    folder.mkdir()
    write_tar(folder / "a.tar", samples)
    offset = place_in_tar(folder / "a.tar", f"3.{field}")
    iterator = iter(load_or_skip(folder, {field: chain}))
    next(iterator)
    with pytest.raises(stoker.BadSampleError) as caught:
        next(iterator)
    error = caught.value
    assert (error.sample, error.key, error.field, error.offset) == (3, "3", field, offset)
    assert error.object.endswith("a.tar")
    assert error.remedy
    loader = load_or_skip(folder, {field: chain}, bad="replace")
    told = [n for batch in loader for n in batch.samples.tolist()]
    (entry,) = loader.quarantine
    assert told == [0, 1, 2, entry["substitute"], 4, 5]
    assert (entry["sample"], entry["key"], entry["field"], entry["offset"]) == (
        3,
        "3",
        field,
        offset,
    )
    assert entry["object"].endswith("a.tar")
    assert entry["reason"]


def test_nan_points_are_no_bad_sample(tmp_path):
    points = numpy.arange(60, dtype=numpy.float32).reshape(20, 3)
    points[2, 1] = numpy.nan
    odd = cloud(20)[:-240] + points.tobytes()
    write_tar(tmp_path / "a.tar", [("0", {"pcd": cloud(20)}), ("1", {"pcd": odd})])
    loader = stoker.Loader(tmp_path, 2, bad="replace", as_="numpy")
    value = next(iter(loader))["pcd"]
    assert value[1].tobytes() == points.tobytes()
    assert loader.quarantine == []


def test_videos_without_a_first_keyframe_and_of_variable_rate_are_no_bad_samples(tmp_path):
    path = plain_video(tmp_path)
    drop = ["-c", "copy", "-bsf:v", "noise=drop='lt(n,5)'"]
    headless = video(tmp_path, "-i", str(path), *drop, name="headless.mkv")
    pick = ["-vf", "select='not(mod(n,3))+not(mod(n,7))'", "-fps_mode", "vfr", "-c:v", "mpeg4"]
    uneven = video(tmp_path, "-i", str(path), *pick, name="uneven.mkv")
    folder = tmp_path / "shards"
    folder.mkdir()
    files = [path, headless, uneven, path]
    write_tar(folder / "a.tar", [(f"{n}", {"mkv": f.read_bytes()}) for n, f in enumerate(files)])
    loader = load_or_skip(folder, {"mkv": "DecodeVideo(frames=4, start='start')"}, bad="replace")
    batches = [batch["mkv"].copy() for batch in loader]
    assert [batch.shape for batch in batches] == [(2, 4, 48, 64, 3)] * 2
    assert loader.quarantine == []
    assert numpy.array_equal(batches[0][0], batches[1][1])


def test_a_substitute_brings_its_optional_fields(tmp_path):
    samples = []
    for n in range(40):
        fields = {"jpg": b"bad" if n % 10 in (4, 5) else jpeg(n), "cls": n}
        if n % 2:
            fields["png"] = encode(picture(n), "PNG")
        samples.append((f"{n:02d}", fields))
    write_tar(tmp_path / "a.tar", samples)
    chain = {"jpg": "Resize((8, 8))", "png": "Resize((8, 8))"}
    loader = stoker.Loader(tmp_path, 8, bad="replace", shuffle=True, transforms=chain, as_="numpy")
    for batch in loader:
        odd = [number % 2 == 1 for number in batch.samples.tolist()]
        assert batch["png_present"].tolist() == odd
        assert [bool(image.any()) for image in batch["png"]] == odd
    assert len(loader.quarantine) == 8
