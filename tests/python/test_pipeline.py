"""stoker.Pipeline: a chain on one value, compared with Pillow and numpy."""

import os
import pickle
import threading

import numpy
import pytest
import stoker

pytest.importorskip("PIL")
from media_making import decode, encode, jpeg, picture
from PIL import Image


def apart(one, two):
    """The largest difference of two images."""
    assert one.shape == two.shape
    return int(numpy.abs(numpy.asarray(one, int) - numpy.asarray(two, int)).max())


def test_encoded_bytes_are_decoded_as_pillow_does():
    data = jpeg(1)
    result = stoker.Pipeline([])(data)
    assert result.dtype == numpy.uint8
    assert apart(result, decode(data)) <= 1


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_content_decides_what_the_bytes_are(kind):
    options = {"lossless": True} if kind == "WEBP" else {}
    data = encode(picture(2), kind, **options)
    assert apart(stoker.Pipeline("")(data), decode(data)) <= 1


@pytest.mark.parametrize("size", [(30, 40), (120, 100), (60, 33)])
@pytest.mark.parametrize(
    ("name", "pillow"),
    [
        ("bilinear", Image.Resampling.BILINEAR),
        ("bicubic", Image.Resampling.BICUBIC),
        ("lanczos", Image.Resampling.LANCZOS),
        ("area", Image.Resampling.BOX),
    ],
)
def test_resize_is_pillows_to_one_level(size, name, pillow):
    image = picture(3)
    height, width = size
    expected = Image.fromarray(image).resize((width, height), pillow)
    result = stoker.Pipeline(stoker.Resize(size, interpolation=name))(image)
    assert apart(result, numpy.asarray(expected)) <= 1


@pytest.mark.parametrize(("width", "height"), [(80, 60), (60, 80), (64, 64)])
def test_resize_by_one_number_keeps_the_proportion(width, height):
    result = stoker.Pipeline("Resize(32)")(picture(4, width, height))
    short, long = sorted(result.shape[:2])
    assert short == 32
    assert abs(long - 32 * max(width, height) / min(width, height)) < 1


def test_center_crop_is_the_middle():
    image = picture(5, 80, 60)
    result = stoker.Pipeline("CenterCrop((20, 30))")(image)
    assert numpy.array_equal(result, image[20:40, 25:55])


def test_crop_and_resize_together_are_one_after_the_other():
    image = picture(6)
    resized = Image.fromarray(image).resize((40, 30), Image.Resampling.BILINEAR)
    expected = numpy.asarray(resized)[3:27, 8:32]
    result = stoker.Pipeline("Resize((30, 40)) | CenterCrop(24)")(image)
    assert apart(result, expected) <= 1


def test_flips_are_numpys():
    image = picture(7)
    for chain, expected in (
        ("RandomHorizontalFlip(1)", image[:, ::-1]),
        ("RandomVerticalFlip(1)", image[::-1]),
        ("RandomHorizontalFlip(0) | RandomVerticalFlip(0)", image),
        ("RandomHorizontalFlip(1) | RandomVerticalFlip(1)", image[::-1, ::-1]),
        ("RandomHorizontalFlip(1) | RandomHorizontalFlip(1)", image),
    ):
        assert numpy.array_equal(stoker.Pipeline(chain)(image), expected), chain


def test_normalize_cast_and_layout_are_numpys():
    pixels = picture(8)
    image = encode(pixels, "PNG")
    mean, std = numpy.array([0.485, 0.456, 0.406]), numpy.array([0.229, 0.224, 0.225])
    expected = (pixels / 255 - mean) / std
    result = stoker.Pipeline("Normalize(imagenet)")(image)
    assert result.dtype == numpy.float32
    numpy.testing.assert_allclose(result, expected, atol=1e-5)
    chain = [stoker.Normalize(tuple(mean), tuple(std)), stoker.Layout("CHW")]
    numpy.testing.assert_allclose(
        stoker.Pipeline(chain)(image), expected.transpose(2, 0, 1), atol=1e-5
    )
    result = stoker.Pipeline([*chain, stoker.Cast(numpy.float16)])(image)
    assert result.dtype == numpy.float16
    numpy.testing.assert_allclose(result, expected.transpose(2, 0, 1), atol=2e-3)
    result = stoker.Pipeline("Cast(float32, scale=True)")(image)
    numpy.testing.assert_allclose(result, pixels / 255, atol=1e-6)
    result = stoker.Pipeline("Cast(float32)")(image)
    assert numpy.array_equal(result, pixels.astype(numpy.float32))


def test_an_array_of_pixels_is_an_image_whatever_its_chain_begins_with():
    image = picture(8)
    expected = (image / 255 - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)
    result = stoker.Pipeline("Normalize(imagenet)")(image)
    numpy.testing.assert_allclose(result, expected, atol=1e-5)
    result = stoker.Pipeline("Layout(CHW)")(image)
    assert numpy.array_equal(result, image.transpose(2, 0, 1))


def test_the_whole_chain_of_an_evaluation():
    """Resize, crop, normalise, channels first: what torchvision's presets do."""
    data = jpeg(9, 100, 80)
    image = Image.fromarray(decode(data)).resize((80, 64), Image.Resampling.BILINEAR)
    box = numpy.asarray(image)[4:60, 12:68] / 255
    expected = (box - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)
    chain = "Resize(64) | CenterCrop(56) | Normalize(imagenet) | Layout(CHW)"
    result = stoker.Pipeline(chain)(data)
    assert result.shape == (3, 56, 56)
    assert numpy.abs(result - expected.transpose(2, 0, 1)).max() < 2.1 / 255 / 0.224


def test_modes_of_decoding():
    data = encode(picture(10), "PNG")
    for mode, pillow in (("gray", "L"), ("rgb", "RGB"), ("rgba", "RGBA")):
        result = stoker.Pipeline(stoker.DecodeImage(mode))(data)
        assert apart(result, decode(data, pillow)) <= 1, mode
    grey = encode(picture(10, channels=1), "PNG")
    assert stoker.Pipeline("DecodeImage(keep)")(grey).shape == (60, 80, 1)
    assert stoker.Pipeline("")(grey).shape == (60, 80, 3)


def test_random_choices_depend_on_seed_epoch_and_sample_alone():
    image = picture(11)
    pipeline = stoker.Pipeline("RandomResizedCrop(24) | RandomHorizontalFlip")
    first = pipeline(image, seed=1, epoch=2, sample=3)
    pipeline(image, seed=9)
    assert numpy.array_equal(first, pipeline(image, seed=1, epoch=2, sample=3))
    other = stoker.Pipeline("RandomResizedCrop(24) | RandomHorizontalFlip")
    assert numpy.array_equal(first, other(image, 1, 2, 3))
    for seed, epoch, sample in ((2, 2, 3), (1, 3, 3), (1, 2, 4)):
        assert not numpy.array_equal(first, pipeline(image, seed, epoch, sample))


def test_flips_are_as_frequent_as_asked():
    image = picture(12, 8, 8)
    pipeline = stoker.Pipeline("RandomHorizontalFlip(0.3)")
    flipped = sum(numpy.array_equal(pipeline(image, sample=n), image[:, ::-1]) for n in range(2000))
    assert abs(flipped / 2000 - 0.3) < 0.04


def test_crops_lie_evenly_over_the_image():
    """Pixels that tell their place: the corner of the crop is read off the result."""
    image = numpy.zeros((40, 50, 3), numpy.uint8)
    image[..., 0], image[..., 1] = numpy.arange(50), numpy.arange(40)[:, None]
    pipeline = stoker.Pipeline("RandomCrop(10)")
    corners = numpy.array([pipeline(image, sample=n)[0, 0, :2] for n in range(3000)])
    for axis, places in ((0, 41), (1, 31)):
        counts = numpy.bincount(corners[:, axis], minlength=places)
        assert len(counts) == places
        expected = 3000 / places
        assert ((counts - expected) ** 2 / expected).sum() < places + 5 * (2 * places) ** 0.5


def test_results_are_the_callers():
    pipeline = stoker.Pipeline("CenterCrop(20)")
    one, two = picture(13), picture(14)
    first = pipeline(one)
    kept = first.copy()
    second = pipeline(two)
    assert numpy.array_equal(first, kept)
    second[:] = 0
    del pipeline
    assert numpy.array_equal(first, kept)
    assert first.flags.writeable


def test_the_input_is_not_changed():
    image = picture(15)
    kept = image.copy()
    stoker.Pipeline("RandomHorizontalFlip(1) | ColorJitter(0.5)")(image)
    assert numpy.array_equal(image, kept)


def test_arrays_of_any_memory_order_and_origin():
    image = picture(16)
    expected = stoker.Pipeline("CenterCrop(20)")(image)
    for same in (numpy.asfortranarray(image), image[:, ::-1][:, ::-1], memoryview(image).obj):
        assert numpy.array_equal(stoker.Pipeline("CenterCrop(20)")(same), expected)
    torch = pytest.importorskip("torch")
    made = stoker.Pipeline("CenterCrop(20)", as_="torch")(torch.from_numpy(image))
    assert isinstance(made, torch.Tensor)
    assert numpy.array_equal(made.numpy(), expected)
    half = stoker.Pipeline("Cast(bfloat16)", as_="torch")(torch.ones(2, 2, 3))
    assert half.dtype == torch.bfloat16
    back = stoker.Pipeline("Cast(float32)", as_="torch")(half)
    assert torch.equal(back, torch.ones(2, 2, 3))


def test_bytes_like_objects_are_taken():
    data = jpeg(17)
    expected = stoker.Pipeline("")(data)
    for same in (bytearray(data), memoryview(data)):
        assert numpy.array_equal(stoker.Pipeline("")(same), expected)


def test_what_is_neither_bytes_nor_numbers_is_refused():
    pipeline = stoker.Pipeline("CenterCrop(20)")
    for wrong in ("text", None, object(), numpy.array(["a"])):
        with pytest.raises(TypeError):
            pipeline(wrong)


def test_errors_of_data_tell_what_is_wrong():
    pipeline = stoker.Pipeline("CenterCrop(20)")
    with pytest.raises(stoker.StokerError, match="no image"):
        pipeline(b"<html>not found</html>")
    with pytest.raises(stoker.StokerError):
        pipeline(b"")
    with pytest.raises(stoker.StokerError):
        pipeline(jpeg(18)[:200])
    assert pipeline(jpeg(18)).shape == (20, 20, 3)  # and it goes on


def test_the_media_may_be_said():
    data = jpeg(19)
    assert stoker.Pipeline("", "image")(data).shape == (60, 80, 3)
    with pytest.raises(ValueError, match="media is 'picture'; it may be"):
        stoker.Pipeline("", "picture")
    with pytest.raises(stoker.StokerError):
        stoker.Pipeline("", "audio")(data)


def test_a_pipeline_pickles():
    pipeline = stoker.Pipeline([stoker.RandomResizedCrop(24), "RandomHorizontalFlip"], "image")
    again = pickle.loads(pickle.dumps(pipeline))
    data = jpeg(20)
    assert numpy.array_equal(pipeline(data, 5), again(data, 5))
    assert repr(again) == repr(pipeline)
    assert repr(pipeline) == "stoker.Pipeline('RandomResizedCrop(24) | RandomHorizontalFlip')"


def test_threads_share_a_pipeline():
    images = [jpeg(n) for n in range(8)]
    pipeline = stoker.Pipeline("RandomResizedCrop(24)")
    expected = [pipeline(data, sample=n) for n, data in enumerate(images)]
    wrong = []

    def work():
        for n, data in list(enumerate(images)) * 5:
            if not numpy.array_equal(pipeline(data, sample=n), expected[n]):
                wrong.append(n)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong


def test_a_forked_child_uses_it():
    data = jpeg(21)
    pipeline = stoker.Pipeline("CenterCrop(20)")
    expected = pipeline(data)
    pipeline._lock.acquire()  # as if a thread were in it
    child = os.fork()
    if child == 0:
        os._exit(0 if numpy.array_equal(pipeline(data), expected) else 1)
    pipeline._lock.release()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_recordings_tell_their_rate_and_their_length():
    soundfile = pytest.importorskip("soundfile")
    import io

    file = io.BytesIO()
    wave = numpy.sin(numpy.arange(8000) / 8).astype(numpy.float32) / 2
    soundfile.write(file, wave, 8000, "FLOAT", format="WAV")
    result = stoker.Pipeline("").run(file.getvalue())
    assert (result.media, result.rate, result.length) == ("audio", 8000, None)
    assert numpy.array_equal(result.value, wave[None])
    result = stoker.Pipeline(stoker.DecodeAudio(frames=10000)).run(file.getvalue())
    assert result.value.shape == (1, 10000)
    assert result.length == 8000


def test_a_plugin_that_is_none_is_refused(tmp_path):
    with pytest.raises(stoker.StokerError):
        stoker.load_plugin(tmp_path / "missing.so")
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(stoker.StokerError, match=r"text\.so"):
        stoker.load_plugin(tmp_path / "text.so")
