"""Transforms of pixels against Pillow, OpenCV and colorsys: to one level of 255."""

import colorsys
import io
import math

import numpy
import pytest
import stoker
from PIL import Image, ImageEnhance

cv2 = pytest.importorskip("cv2")


def picture(height=61, width=83, channels=3, seed=0):
    """Smooth colours with noise: every value occurs, and neighbours are alike."""
    random = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[0:height, 0:width]
    waves = [numpy.sin(x / (7 + c) + y / (11 + 2 * c)) * 110 + 128 for c in range(channels)]
    noisy = numpy.stack(waves, -1) + random.normal(0, 12, (height, width, channels))
    return numpy.clip(noisy, 0, 255).astype(numpy.uint8)


def run(chain, array, **key):
    return stoker.Pipeline(chain, as_="numpy")(array, **key)


def close(ours, theirs, levels=1):
    difference = numpy.abs(ours.astype(int) - numpy.asarray(theirs).astype(int))
    assert ours.shape == numpy.asarray(theirs).shape
    assert difference.max() <= levels, f"{difference.max()} levels apart"


@pytest.mark.parametrize("factor", [0, 0.3, 1, 1.7])
@pytest.mark.parametrize(
    "name,enhance",
    [
        ("brightness", ImageEnhance.Brightness),
        ("contrast", ImageEnhance.Contrast),
        ("saturation", ImageEnhance.Color),
    ],
)
def test_a_jitter_of_one_factor_is_what_pillow_makes_of_it(name, enhance, factor):
    image = picture()
    ours = run(f"ColorJitter({name}=({factor}, {factor}))", image)
    close(ours, enhance(Image.fromarray(image)).enhance(factor))


def test_a_turn_of_the_hue_is_what_colorsys_makes_of_it():
    image = picture(20, 30)
    ours = run("ColorJitter(hue=(0.2, 0.2))", image)
    expected = numpy.empty_like(image)
    for at in numpy.ndindex(image.shape[:2]):
        hue, saturation, value = colorsys.rgb_to_hsv(*(image[at] / 255))
        expected[at] = numpy.round(
            numpy.array(colorsys.hsv_to_rgb((hue + 0.2) % 1, saturation, value)) * 255
        )
    close(ours, expected)


def test_a_jitter_draws_every_order_and_stays_in_its_range():
    image = numpy.full((4, 4, 3), 100, numpy.uint8)
    chain = stoker.Pipeline("ColorJitter(brightness=0.5)", as_="numpy")
    means = [chain(image, sample=i).mean() for i in range(400)]
    assert 49 <= min(means) < 60 and 140 < max(means) <= 150
    assert abs(numpy.mean(means) - 100) < 4


@pytest.mark.parametrize("channels", [1, 3])
def test_grey_is_pillows_grey(channels):
    image = picture()
    grey = numpy.asarray(Image.fromarray(image).convert("L"))
    expected = numpy.repeat(grey[..., None], channels, -1)
    numpy.testing.assert_array_equal(run(f"Grayscale({channels})", image), expected)


@pytest.mark.parametrize("size,sigma", [((3, 3), 0.8), ((7, 5), 2.0), ((1, 9), 3.5)])
def test_a_blur_is_opencvs_blur(size, sigma):
    image = picture()
    expected = cv2.GaussianBlur(image, size, sigma, borderType=cv2.BORDER_REFLECT_101)
    close(run(f"GaussianBlur({size}, {sigma})", image), expected)


@pytest.mark.parametrize("degrees", [0, 17, 90, -133])
@pytest.mark.parametrize("how", ["nearest", "bilinear"])
def test_a_rotation_is_pillows_rotation(degrees, how):
    image = picture()
    ours = run(f"RandomRotation(({degrees}, {degrees}), {how}, fill=(9, 8, 7))", image)
    how = {"nearest": Image.Resampling.NEAREST, "bilinear": Image.Resampling.BILINEAR}[how]
    expected = numpy.asarray(
        Image.fromarray(image).rotate(degrees, resample=how, fillcolor=(9, 8, 7))
    )
    differ = numpy.abs(ours.astype(int) - expected.astype(int)).max(-1) > 1
    assert differ.mean() < 0.002  # a corner that rounds to the other side


@pytest.mark.parametrize("degrees", [0, 17, 90, 180, -133.3])
@pytest.mark.parametrize("how", ["nearest", "bilinear"])
@pytest.mark.parametrize("where", [{"expand": True}, {"center": (3, 20.5)}], ids=str)
def test_a_rotation_grows_and_has_a_center_as_pillows(degrees, how, where):
    image = picture()
    turn = stoker.RandomRotation((degrees, degrees), how, fill=(9, 8, 7), **where)
    ours = run(turn, image)
    how = Image.Resampling[how.upper()]
    theirs = Image.fromarray(image).rotate(degrees, resample=how, fillcolor=(9, 8, 7), **where)
    expected = numpy.asarray(theirs)
    assert ours.shape == expected.shape
    differ = numpy.abs(ours.astype(int) - expected.astype(int)).max(-1) > 1
    assert differ.mean() < 0.002


def test_a_random_turn_shows_the_whole_image_in_the_middle():
    image = numpy.full((40, 60, 3), 200, numpy.uint8)
    chain = stoker.Pipeline("RandomRotation(180, expand=True)", as_="numpy")
    sizes = set()
    for sample in range(50):
        turned = chain(image, sample=sample)
        assert abs(int((turned[..., 0] > 0).sum()) - 2400) < 60
        assert min(turned.shape[:2]) >= 40 and max(turned.shape[:2]) <= 74
        sizes.add(turned.shape)
    assert len(sizes) > 10


def test_frames_of_a_clip_grow_alike():
    clip = numpy.stack([picture(seed=seed) for seed in range(3)])
    chain = "RandomRotation(60, expand=True, fill=5) | RandomCrop(90, 8, True, 0, 'edge')"
    frames = run(chain, clip, sample=4)
    assert frames.shape == (3, 90, 90, 3)
    for frame, image in zip(frames, clip, strict=True):
        numpy.testing.assert_array_equal(run(chain, image, sample=4), frame)


def padded(image, sides, mode, fill=0):
    """(left, top, right, bottom), as numpy has it."""
    left, top, right, bottom = sides
    given = {"constant_values": fill} if mode == "constant" else {}
    return numpy.pad(image, ((top, bottom), (left, right), (0, 0)), mode=mode, **given)


MODES = ["constant", "edge", "reflect", "symmetric"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sides", [(1, 2, 3, 4), (0, 70, 90, 0), (200, 1, 0, 3)])
def test_a_border_is_numpys(mode, sides):
    image = picture(20, 30)
    ours = run(stoker.Pad(sides, 7, mode), image)
    numpy.testing.assert_array_equal(ours, padded(image, sides, mode, 7))


def place_of(part, whole):
    """Where the part lies in the whole: (y, x)."""
    height, width = part.shape[:2]
    for y in range(whole.shape[0] - height + 1):
        for x in range(whole.shape[1] - width + 1):
            if numpy.array_equal(whole[y : y + height, x : x + width], part):
                return y, x
    raise AssertionError("the part is not there")


@pytest.mark.parametrize(
    "size,options,sides",
    [
        ((20, 30), {"padding": 4}, (4, 4, 4, 4)),
        ((20, 30), {"padding": (3, 1)}, (3, 1, 3, 1)),
        ((9, 33), {"padding": (1, 2, 3, 4)}, (1, 2, 3, 4)),
        ((26, 30), {"pad_if_needed": True}, (0, 6, 0, 6)),
        ((50, 34), {"padding": (1, 0, 0, 2), "pad_if_needed": True}, (4, 28, 3, 30)),
    ],
    ids=str,
)
def test_a_random_crop_is_of_the_image_with_numpys_border(size, options, sides):
    image = picture(20, 30)
    places = {}
    for mode in MODES:
        chain = stoker.Pipeline(
            stoker.RandomCrop(size, fill=7, padding_mode=mode, **options), as_="numpy"
        )
        whole = padded(image, sides, mode, 7)
        places[mode] = [place_of(chain(image, sample=n), whole) for n in range(12)]
    assert len(set(places["reflect"])) > 3
    assert places["edge"] == places["reflect"] == places["symmetric"] == places["constant"]


def test_a_crop_with_a_border_is_one_step_of_a_longer_chain():
    image = picture(40, 50)
    data = io.BytesIO()
    Image.fromarray(image).save(data, "PNG")
    border = "RandomCrop(40, 6, padding_mode='reflect')"
    chain = f"CenterCrop(40) | {border} | RandomHorizontalFlip(1) | Normalize(0.5, 0.5)"
    middle = run(f"CenterCrop(40) | {border}", image, sample=3)
    assert place_of(middle, padded(image[:, 5:45], (6,) * 4, "reflect"))
    expected = (middle[:, ::-1] / 255 - 0.5) / 0.5
    for source in (image, data.getvalue()):
        numpy.testing.assert_allclose(run(chain, source, sample=3), expected, atol=1e-6)


def test_a_thin_line_is_not_turned_into_a_huge_square():
    line = numpy.zeros((1, 60000, 3), numpy.uint8)
    with pytest.raises(stoker.StokerError, match="RandomRotation makes"):
        run("RandomRotation((45, 45), expand=True)", line)


def test_trivial_augment_has_torchvisions_name_too():
    image = picture()
    for sample in range(20):
        one = run("TrivialAugmentWide(fill=3)", image, sample=sample)
        numpy.testing.assert_array_equal(one, run("TrivialAugment(fill=3)", image, sample=sample))


def test_an_erased_rectangle_keeps_within_scale_and_ratio():
    image = numpy.full((64, 96, 3), 200, numpy.uint8)
    chain = stoker.Pipeline(
        "RandomErasing(p=1, scale=(0.1, 0.2), ratio=(0.5, 2), value=7)", as_="numpy"
    )
    for sample in range(50):
        erased = (chain(image, sample=sample) == 7).all(-1)
        rows, columns = numpy.flatnonzero(erased.any(1)), numpy.flatnonzero(erased.any(0))
        height, width = rows[-1] - rows[0] + 1, columns[-1] - columns[0] + 1
        assert erased.sum() == height * width
        assert 0.08 < height * width / (64 * 96) < 0.23
        assert 0.45 < height / width < 2.2


def test_erasing_comes_with_its_probability_and_after_normalize_too():
    image = numpy.full((32, 32, 3), 255, numpy.uint8)
    chain = stoker.Pipeline(
        "Normalize(0.5, 0.5) | Layout(CHW) | RandomErasing(p=0.3, value=(4, 5, 6))", as_="numpy"
    )
    erased = 0
    for sample in range(300):
        result = chain(image, sample=sample)
        assert result.shape == (3, 32, 32) and result.dtype == numpy.float32
        hit = result != 1
        erased += hit.any()
        for channel, value in enumerate((4, 5, 6)):
            assert set(numpy.unique(result[channel])) <= {1.0, float(value)}
    assert 60 < erased < 125


def test_random_values_of_erasing_are_normal_for_floats():
    image = numpy.zeros((128, 128, 3), numpy.uint8)
    result = run("Cast(float32) | RandomErasing(p=1, scale=(0.3, 0.33), value=random)", image)
    noise = result[result != 0]
    assert abs(noise.mean()) < 0.05 and abs(noise.std() - 1) < 0.05


def test_trivial_augment_makes_many_kinds_of_pictures():
    image = picture()
    chain = stoker.Pipeline("TrivialAugment", as_="numpy")
    made = {chain(image, sample=i).tobytes() for i in range(300)}
    same = sum(numpy.array_equal(chain(image, sample=i), image) for i in range(300))
    assert len(made) > 150
    assert 300 / 14 * 0.5 < same < 300 / 14 * 4  # identity, and changes of no strength


@pytest.mark.parametrize(
    "name", ["ColorJitter(0.5)", "Grayscale", "GaussianBlur(3)", "TrivialAugment"]
)
def test_a_transform_of_pixels_after_normalize_is_refused_with_a_remedy(name):
    with pytest.raises(stoker.StokerError, match="before Normalize, Cast and Layout"):
        run(f"Normalize(0.5, 0.5) | {name}", picture())


def test_the_same_key_gives_the_same_pixels_and_another_gives_others():
    image, chain = picture(), stoker.Pipeline("ColorJitter(0.5, 0.5, 0.5, 0.2)", as_="numpy")
    first = chain(image, seed=1, epoch=2, sample=3)
    numpy.testing.assert_array_equal(first, chain(image, seed=1, epoch=2, sample=3))
    for other in ({"seed": 2}, {"epoch": 3}, {"sample": 4}):
        assert not numpy.array_equal(
            first, chain(image, **{"seed": 1, "epoch": 2, "sample": 3} | other)
        )


def test_alpha_is_left_alone():
    image = picture(channels=4)
    result = run("ColorJitter(brightness=(0.2, 0.2))", image)
    numpy.testing.assert_array_equal(result[..., 3], image[..., 3])
    assert result[..., :3].mean() < image[..., :3].mean() / 3


def test_angles_are_drawn_evenly():
    image = numpy.zeros((65, 65, 1), numpy.uint8)
    image[32, 48:64] = 255  # a hand that points to the right
    chain = stoker.Pipeline("RandomRotation(90, bilinear)", as_="numpy")
    angles = []
    for sample in range(200):
        y, x = numpy.nonzero(chain(image, sample=sample)[..., 0] > 60)
        angles.append(math.degrees(math.atan2(32 - y.mean(), x.mean() - 32)))
    assert min(angles) < -75 and max(angles) > 75 and abs(numpy.mean(angles)) < 12


def test_an_array_and_its_encoded_twin_are_cut_alike():
    image = picture(120, 90)
    encoded = io.BytesIO()
    Image.fromarray(image).save(encoded, "PNG")
    chain = stoker.Pipeline("RandomResizedCrop(32) | ColorJitter(0.5)", as_="numpy")
    for sample in range(5):
        twin = chain(encoded.getvalue(), sample=sample)
        numpy.testing.assert_array_equal(chain(image, sample=sample), twin)
