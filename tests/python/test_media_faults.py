"""FAULTS 51 to 57 through the loader: images that are bombs, cut, of other kinds or broken."""

import io
import struct
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
    assert len(str(error)) > 20


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
