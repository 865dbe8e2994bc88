"""Images through the loader: transforms, order, resume, maps; compared with Pillow and numpy."""

import io
import threading
import time

import numpy
import pytest
import stoker

pytest.importorskip("PIL")
from media_making import decode, encode, jpeg, picture, write_images
from PIL import Image
from shard_making import write_tar

COUNT = 48
AUGMENT = [
    stoker.RandomResizedCrop(24, scale=(0.3, 1)),
    stoker.RandomHorizontalFlip(),
    stoker.ColorJitter(0.4, 0.4, 0.4, 0.1),
]


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return write_images(tmp_path_factory.mktemp("images"), COUNT)


def load(source, batch_size=8, **options):
    options.setdefault("as_", "numpy")
    return stoker.Loader(source, batch_size, **options)


def by_sample(loader, field="jpg"):
    return {
        number: batch[field][place].copy()
        for batch in loader
        for place, number in enumerate(batch.samples.tolist())
        if number >= 0
    }


def apart(one, two):
    assert one.shape == two.shape
    return int(numpy.abs(one.astype(int) - two.astype(int)).max())


# Fields


def test_images_are_arrays_and_say_what_they_are_decoded_from(images):
    ds = stoker.open(images, as_="numpy")
    field = ds.fields["jpg"]
    assert (field.kind, field.media, field.dtype, field.shape) == (
        "tensor",
        "image",
        "uint8",
        (60, 80, 3),
    )
    assert ds.fields["cls"].media is None
    assert ds[5]["jpg"].dtype == numpy.uint8
    assert apart(ds[5]["jpg"], decode(jpeg(5))) <= 1
    assert ds.read_bytes(5, "jpg") == jpeg(5)


def test_bytes_stay_bytes_where_they_are_asked_for(images):
    ds = stoker.open(images, fields=("jpg=bytes", "cls"))
    assert ds[5] == (jpeg(5), 5)
    assert ds.fields["jpg"].kind == "bytes"
    batch = next(iter(stoker.Loader(ds, 4)))
    assert batch[0] == [jpeg(n) for n in range(4)]


def test_images_of_one_size_make_a_batch_without_a_chain(images):
    batch = next(iter(load(images)))
    assert batch["jpg"].shape == (8, 60, 80, 3)
    for n in range(8):
        assert apart(batch["jpg"][n], decode(jpeg(n))) <= 1


def test_images_of_unequal_size_are_an_error_that_names_both(tmp_path):
    folder = write_images(tmp_path, 4, 1, lambda n: jpeg(n, 40 + n, 30))
    with pytest.raises(stoker.BadSampleError) as caught:
        next(iter(load(folder, 4)))
    assert caught.value.status == "SHAPE"
    assert "Resize((height, width))" in caught.value.remedy
    chained = next(iter(load(folder, 4, transforms={"jpg": "Resize((20, 30))"})))
    assert chained["jpg"].shape == (4, 20, 30, 3)


@pytest.mark.parametrize("ragged", ["pad", "flat"])
def test_what_cannot_be_padded_or_joined_is_named(tmp_path, ragged):
    folder = write_images(tmp_path, 4, 1, lambda n: jpeg(n, 40 + n // 2, 30))
    with pytest.raises(stoker.BadSampleError, match="only the first axis") as caught:
        next(iter(load(folder, 4, ragged=ragged)))
    error = caught.value
    assert (error.sample, error.key, error.field) == (2, "00002", "jpg")
    assert error.object.endswith(".tar")
    assert "list" in error.remedy


def test_alternatives_are_one_field_with_one_chain(tmp_path):
    samples = [
        ("a", {"jpg": jpeg(1), "cls": 0}),
        ("b", {"png": encode(picture(2), "PNG"), "cls": 1}),
    ]
    write_tar(tmp_path / "a.tar", samples)
    loader = load(
        tmp_path / "a.tar",
        2,
        fields=["jpg;png", "cls"],
        transforms={"jpg;png": "CenterCrop(20)"},
    )
    batch = next(iter(loader))
    assert numpy.array_equal(batch["jpg;png"][1], picture(2)[20:40, 30:50])


# Chains that do not draw


def test_a_chain_gives_what_pillow_and_numpy_give(images):
    chain = [
        stoker.Resize(40),
        stoker.CenterCrop(32),
        stoker.RandomHorizontalFlip(1),
        stoker.Normalize("imagenet"),
        stoker.Layout("CHW"),
    ]
    for number, value in by_sample(load(images, transforms={"jpg": chain}, shuffle=True)).items():
        image = Image.fromarray(decode(jpeg(number))).resize((53, 40), Image.Resampling.BILINEAR)
        box = numpy.asarray(image)[4:36, 10:42][:, ::-1] / 255
        expected = (box - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)
        assert value.dtype == numpy.float32
        assert numpy.abs(value - expected.transpose(2, 0, 1)).max() < 2.1 / 255 / 0.224


def test_text_and_objects_say_the_same(images):
    texts = ["Resize(40) | CenterCrop(32)", ["Resize(40)", stoker.CenterCrop(32)]]
    one, two = (by_sample(load(images, transforms={"jpg": chain})) for chain in texts)
    assert all(numpy.array_equal(one[n], two[n]) for n in range(COUNT))


def test_the_pipeline_does_what_the_loader_does(images):
    loader = load(images, transforms={"jpg": AUGMENT}, seed=7, shuffle=True)
    pipeline = stoker.Pipeline(AUGMENT)
    for _ in range(2):
        for batch in loader:
            for place, number in enumerate(batch.samples.tolist()):
                expected = pipeline(jpeg(number), seed=7, epoch=batch.epoch, sample=number)
                assert numpy.array_equal(batch["jpg"][place], expected)


def test_stored_arrays_take_chains_too(tmp_path):
    arrays = [picture(n) for n in range(6)]
    samples = [(f"{n}", {"npy": array}) for n, array in enumerate(arrays)]
    write_tar(tmp_path / "a.tar", samples)
    loader = load(tmp_path, 6, transforms={"npy": "CenterCrop(20) | Normalize(0.5, 0.5)"})
    batch = next(iter(loader))
    expected = (numpy.stack(arrays)[:, 20:40, 30:50] / 255 - 0.5) / 0.5
    numpy.testing.assert_allclose(batch["npy"], expected, atol=1e-6)


# Random numbers


@pytest.fixture(scope="module")
def augmented(images):
    return by_sample(load(images, transforms={"jpg": AUGMENT}, threads=1, shuffle=True))


@pytest.mark.parametrize("threads", [2, 4])
@pytest.mark.parametrize("batch_size", [5, 16])
def test_pixels_are_the_same_for_any_number_of_threads(images, augmented, threads, batch_size):
    loader = load(images, batch_size, transforms={"jpg": AUGMENT}, threads=threads, shuffle=True)
    again = by_sample(loader)
    assert set(again) == set(range(COUNT))
    assert all(numpy.array_equal(again[n], augmented[n]) for n in range(COUNT))


def test_pixels_are_the_same_on_any_number_of_ranks(images, augmented):
    seen = {}
    for rank in range(3):
        options = {"transforms": {"jpg": AUGMENT}, "shuffle": True, "rank": rank, "world_size": 3}
        seen |= by_sample(load(images, **options))
    assert all(numpy.array_equal(seen[n], augmented[n]) for n in range(COUNT))


def test_epochs_and_seeds_differ(images, augmented):
    loader = load(images, transforms={"jpg": AUGMENT}, shuffle=True)
    loader.set_epoch(1)
    other_epoch = by_sample(loader)
    other_seed = by_sample(load(images, transforms={"jpg": AUGMENT}, shuffle=True, seed=1))
    for other in (other_epoch, other_seed):
        same = sum(numpy.array_equal(other[n], augmented[n]) for n in range(COUNT))
        assert same <= 1


def test_a_resumed_run_gives_the_same_pixels(images):
    options = {"transforms": {"jpg": AUGMENT}, "shuffle": True, "seed": 3}
    loader = load(images, **options)
    whole = [batch["jpg"].copy() for _ in range(2) for batch in loader]
    loader = load(images, **options)
    iterator = iter(loader)
    first = [next(iterator)["jpg"].copy() for _ in range(4)]
    state = loader.state_dict()
    loader.close()
    again = load(images, threads=1, **options)
    again.load_state_dict(state)
    rest = [batch["jpg"].copy() for batch in again] + [batch["jpg"].copy() for batch in again]
    for one, two in zip(whole, first + rest, strict=True):
        assert numpy.array_equal(one, two)


def test_flips_are_as_frequent_as_asked_and_differ_by_epoch(images):
    loader = load(images, transforms={"jpg": "RandomHorizontalFlip(0.25)"})
    plain = by_sample(load(images))
    flipped = []
    for _ in range(10):
        got = by_sample(loader)
        flips = [numpy.array_equal(got[n], plain[n][:, ::-1]) for n in range(COUNT)]
        assert all(flips[n] or numpy.array_equal(got[n], plain[n]) for n in range(COUNT))
        flipped.append(tuple(flips))
    assert abs(numpy.mean(flipped) - 0.25) < 0.08
    assert len(set(flipped)) == 10


# Batches


def test_mixup_makes_soft_labels(images):
    mix = stoker.MixUp(alpha=0.4, classes=10, image="jpg", label="cls")
    chain = {"jpg": "CenterCrop(32) | Normalize(0.5, 0.5)"}
    plain = load(images, transforms=chain, shuffle=True)
    mixed = load(images, transforms=chain, batch_transforms=mix, shuffle=True)
    changed = 0
    for one, two in zip(plain, mixed, strict=True):
        assert one.samples.tolist() == two.samples.tolist()
        assert two["cls"].shape == (8, 10)
        assert two["cls"].dtype == numpy.float32
        numpy.testing.assert_allclose(two["cls"].sum(1), 1, atol=1e-6)
        changed += not numpy.allclose(one["jpg"], two["jpg"])
        for place, label in enumerate(one["cls"]):
            share = two["cls"][place, label]
            if share > 1 - 1e-6 and (two["cls"][place] > 0).sum() == 1:
                continue  # not mixed, or with one of its own class
            assert (two["cls"][place] > 1e-6).sum() <= 2
    assert changed > 2


@pytest.mark.parametrize("kind", [stoker.MixUp, stoker.CutMix])
def test_torchvisions_words_mix_as_our_own(images, kind):
    chain = {"jpg": "CenterCrop(8)"}
    ours = kind(alpha=0.4, classes=10, image="jpg", label="cls")
    for theirs in (
        kind(alpha=0.4, num_classes=10),
        kind(alpha=0.4, num_classes=10, labels_getter="cls"),
    ):
        pairs = zip(
            load(images, transforms=chain, batch_transforms=ours),
            load(images, transforms=chain, batch_transforms=theirs),
            strict=True,
        )
        for one, two in pairs:
            numpy.testing.assert_array_equal(one["jpg"], two["jpg"])
            numpy.testing.assert_array_equal(one["cls"], two["cls"])


@pytest.mark.parametrize("behind", ["", " | Resize(24)", " | Pad(3)"])
@pytest.mark.parametrize("ragged", ["error", "pad", "flat"])
def test_sizes_that_are_drawn_are_refused_when_the_loader_is_opened(images, behind, ragged):
    chain = {"jpg": f"RandomRotation(30, expand=True){behind}"}
    with pytest.raises(stoker.StokerError, match="another size") as caught:
        load(images, transforms=chain, ragged=ragged)
    assert "CenterCrop(224)" in str(caught.value)


def test_sizes_that_are_drawn_make_a_batch_behind_a_step_of_one_size(images):
    for behind in ("CenterCrop(24)", "Resize((24, 24))", "RandomResizedCrop(24)"):
        chain = {"jpg": f"RandomRotation(30, expand=True) | {behind}"}
        assert next(iter(load(images, transforms=chain)))["jpg"].shape == (8, 24, 24, 3)
    chain = {"jpg": "RandomRotation((90, 90), expand=True)"}  # of one size: nothing is drawn
    assert next(iter(load(images, transforms=chain)))["jpg"].shape == (8, 80, 60, 3)
    chain = {"jpg": "RandomRotation(30, expand=True)"}
    sizes = {one.shape for one in next(iter(load(images, transforms=chain, ragged="list")))["jpg"]}
    assert len(sizes) > 1


def test_mixed_labels_reach_a_sample_map_as_arrays(images):
    mix = "MixUp(alpha=0.4, classes=10, image=jpg, label=cls)"
    loader = load(
        images,
        transforms={"jpg": "CenterCrop(8)"},
        batch_transforms=mix,
        sample_map=lambda one: {"x": one["jpg"], "y": one["cls"]},
    )
    assert next(iter(loader))["y"].shape == (8, 10)


def test_masked_places_of_images(images):
    *_, last = load(images, 32, last="mask", transforms={"jpg": AUGMENT})
    assert last["mask"].tolist() == [True] * 16 + [False] * 16
    assert last["jpg"].shape == (32, 24, 24, 3)


def test_batches_of_torch(images):
    torch = pytest.importorskip("torch")
    chain = {"jpg": [*AUGMENT, stoker.Normalize("imagenet"), stoker.Cast(torch.float16)]}
    batch = next(iter(stoker.Loader(images, 8, as_="torch", transforms=chain)))
    assert batch["jpg"].dtype == torch.float16
    assert batch["jpg"].shape == (8, 24, 24, 3)
    assert batch["jpg"].abs().max() < 3


# Recordings and point clouds: what is padded


def wave(number):
    soundfile = pytest.importorskip("soundfile")
    frames = 1000 + 100 * number
    values = numpy.sin(numpy.arange(frames) * (0.05 + number / 100)).astype(numpy.float32) / 2
    file = io.BytesIO()
    soundfile.write(file, values, 8000, "FLOAT", format="WAV")
    return file.getvalue(), values


def test_a_padded_recording_has_lengths_and_a_mask(tmp_path):
    waves = [wave(n) for n in range(4)]
    write_tar(tmp_path / "a.tar", [(f"{n}", {"wav": data}) for n, (data, _) in enumerate(waves)])
    loader = load(tmp_path, 4, transforms={"wav": stoker.DecodeAudio(frames=1200)})
    batch = next(iter(loader))
    assert batch["wav"].shape == (4, 1, 1200)
    assert batch["wav_lengths"].tolist() == [1000, 1100, 1200, 1200]
    assert batch["wav_mask"].shape == (4, 1200)
    assert batch["wav_mask"].dtype == bool
    assert batch["wav_mask"].sum(1).tolist() == [1000, 1100, 1200, 1200]
    for n, (_, values) in enumerate(waves):
        assert numpy.array_equal(batch["wav"][n, 0][batch["wav_mask"][n]], values[:1200])
        assert not batch["wav"][n, 0][~batch["wav_mask"][n]].any()
    fields = load(tmp_path, 4, fields=("wav",), transforms={"wav": "DecodeAudio(frames=1200)"})
    ((value, lengths, mask),) = next(iter(fields))
    assert numpy.array_equal(value, batch["wav"])
    assert numpy.array_equal(lengths, batch["wav_lengths"])
    assert numpy.array_equal(mask, batch["wav_mask"])
    seconds = next(iter(load(tmp_path, 4, transforms={"wav": "DecodeAudio(seconds=0.15)"})))
    assert numpy.array_equal(seconds["wav"], batch["wav"])
    assert numpy.array_equal(seconds["wav_lengths"], batch["wav_lengths"])
    assert numpy.array_equal(seconds["wav_mask"], batch["wav_mask"])
    same = load(
        tmp_path,
        4,
        transforms={"wav": stoker.DecodeAudio(frames=1200)},
        sample_map=lambda one: one,
    )
    again = next(iter(same))
    assert list(again) == list(batch)
    for name in batch:
        assert numpy.array_equal(again[name], batch[name]), name


def cloud(number, count):
    return numpy.random.default_rng(number).normal(size=(count, 4)).astype(numpy.float32)


@pytest.fixture
def clouds(tmp_path):
    made = [cloud(n, 50 + 10 * n) for n in range(5)]
    samples = [(f"{n}", {"bin": one.tobytes(), "cls": n}) for n, one in enumerate(made)]
    write_tar(tmp_path / "a.tar", samples)
    return tmp_path, made


def test_a_part_of_a_long_recording_needs_no_room_for_the_whole(tmp_path):
    soundfile = pytest.importorskip("soundfile")
    file = io.BytesIO()
    soundfile.write(file, numpy.zeros(300 * 44100, numpy.float32), 44100, format="FLAC")
    write_tar(tmp_path / "a.tar", [("0", {"flac": file.getvalue()})])
    chain = {"flac": "DecodeAudio(seconds=0.5)"}  # 50 MiB decoded, and 8 threads
    with load(tmp_path, 1, transforms=chain, memory="128MiB", threads=8) as loader:
        assert next(iter(loader))["flac"].shape == (1, 1, 22050)
        assert loader.stats()["peak_bytes"] < 128 << 20


def test_flat_point_clouds_lie_behind_each_other(clouds):
    folder, made = clouds
    options = {"fields": {"bin": "points", "cls": None}, "ragged": "flat"}
    batch = next(iter(load(folder, 3, **options)))
    assert batch["bin"].shape == (50 + 60 + 70, 4)
    assert batch["bin_offsets"].tolist() == [0, 50, 110, 180]
    assert numpy.array_equal(batch["bin"], numpy.concatenate(made[:3]))
    seen = []
    loader = load(folder, 3, **options, sample_map=lambda one: seen.append(one) or one["cls"])
    assert next(iter(loader)).tolist() == [0, 1, 2]
    for one in seen:
        assert numpy.array_equal(one["bin"], made[one["cls"]])
    pair = next(iter(load(folder, 3, fields=("bin=points",), ragged="flat")))
    assert numpy.array_equal(pair[0][0], batch["bin"])
    assert numpy.array_equal(pair[0][1], batch["bin_offsets"])


def test_padded_point_clouds_have_lengths_and_a_mask(clouds):
    folder, made = clouds
    loader = load(
        folder,
        5,
        fields={"bin": "points"},
        transforms={"bin": stoker.DecodePoints(count=64, sample="first")},
    )
    batch = next(iter(loader))
    assert batch["bin"].shape == (5, 64, 4)
    assert batch["bin_lengths"].tolist() == [50, 60, 64, 64, 64]
    assert batch["bin_mask"].shape == (5, 64)
    for n in range(5):
        assert numpy.array_equal(batch["bin"][n][batch["bin_mask"][n]], made[n][:64])


# Chains that do not fit


@pytest.mark.parametrize(
    ("transforms", "words"),
    [
        ({"jpg": "RandomResizeCrop(24)"}, "RandomResizedCrop"),
        ({"jpg": "Resize(24, sise=3)"}, r"Resize has no argument \"sise\""),
        ({"jpg": "Resize(24, interpolation=cubic)"}, "interpolation must be one of"),
        ({"jpg": "Resize(wide)"}, "size must be"),
        ({"jpg": "Resize"}, "Resize needs size"),
        ({"jpg": "Resize(24, 24, 24, 24, 24, 24)"}, "at most|must be"),
        ({"jpg": "RandomHorizontalFlip(1.5)"}, "p is 1.5"),
        ({"jpg": "RandomHorizontalFlip(True)"}, "p must be a number"),
        ({"jpg": "Resize(24"}, "expected"),
        ({"jpg": "Resize(24) CenterCrop(3)"}, r"'\|' is expected"),
        ({"jpg": "Resize(24) |"}, "behind"),
        ({"jpg": "Resize(0)"}, "size is 0"),
        ({"jpg": "LogMel"}, "LogMel takes"),
        ({"jpg": "Normalize(0.5, 0.5) | ColorJitter(0.5)"}, "ColorJitter"),
        ({"jpg": "Resize(24) | DecodeImage"}, "DecodeImage"),
        ({"jpg": "DecodeAudio"}, "DecodeAudio"),
        ({"jpg": "MixUp(classes=10)"}, "MixUp .* whole batches"),
        ({"jpg": "Cast(float99)"}, "dtype"),
        ({"jpg": "Layout(WHC)"}, "order must be one of"),
        ({"jpg": "Normalize((1, 2), (3, 4))"}, "Normalize|mean|channels"),
        ({"cls": "Resize(24)"}, "cls"),
        ({"png": "Resize(24)"}, "png"),
    ],
    ids=str,
)
def test_a_bad_chain_is_refused_when_the_loader_is_opened(images, transforms, words):
    with pytest.raises(stoker.StokerError, match=words) as caught:
        load(images, transforms=transforms)
    assert caught.value.status in ("USAGE", "NOT_FOUND", "UNSUPPORTED", "SHAPE")


def test_resize_of_a_recording_is_refused(tmp_path):
    write_tar(tmp_path / "a.tar", [("0", {"wav": wave(0)[0]})])
    with pytest.raises(stoker.StokerError, match="Resize takes"):
        load(tmp_path, transforms={"wav": "Resize(24)"})


@pytest.mark.parametrize(
    "text",
    [
        "MixUp(alpha=0.2)",
        "MixUp(alpha=0.2, classes=10, image=png, label=cls)",
        "MixUp(alpha=0.2, classes=10, image=jpg, label=jpg)",
        "MixUp(alpha=-1, classes=10, image=jpg, label=cls)",
        "Resize(24)",
        "MixUpp(alpha=0.2)",
    ],
)
def test_bad_batch_transforms_are_refused_when_the_loader_is_opened(images, text):
    with pytest.raises(stoker.StokerError):
        load(images, transforms={"jpg": "CenterCrop(8)"}, batch_transforms=text)


def test_transforms_that_are_no_dict_are_refused(images):
    with pytest.raises(TypeError, match="dict of fields"):
        load(images, transforms=[stoker.Resize(8)])
    with pytest.raises(TypeError, match="is a class"):
        load(images, transforms={"jpg": stoker.RandomHorizontalFlip})
    with pytest.raises(TypeError, match="name is text"):
        load(images, transforms={1: "Resize(8)"})
    with pytest.raises(TypeError, match="is a class"):
        load(images, transforms={"jpg": [stoker.Resize]})
    with pytest.raises(ValueError, match="ragged is 'flatt'; it may be error, pad, list, flat"):
        load(images, ragged="flatt")


# A user's own, after the chain


def test_maps_see_what_the_chain_made(images):
    def change(one, rng):
        assert one["jpg"].shape == (24, 24, 3)
        return {"x": one["jpg"].astype(numpy.float32) / 255, "r": rng.random()}

    loader = load(
        images, transforms={"jpg": AUGMENT}, sample_map=change, map=lambda batch: batch["x"]
    )
    assert next(iter(loader)).shape == (8, 24, 24, 3)


def test_a_batch_of_masked_places_has_the_shapes_of_the_chain(images):
    one = stoker.open(images, as_="numpy")[:1]
    seen = []

    def change(sample):
        seen.append(sample["jpg"].shape)
        return {"x": sample["jpg"]}

    for rank in range(2):
        loader = stoker.Loader(
            one, 2, transforms={"jpg": AUGMENT}, rank=rank, world_size=2, sample_map=change
        )
        for batch in loader:
            assert batch["x"].shape == (2, 24, 24, 3)
    assert set(seen) == {(24, 24, 3)}


def test_95_a_sample_map_that_raises_on_an_image(images):
    def fail(one):
        if one["cls"] == 3:
            raise ValueError("no such picture")
        return one

    with pytest.raises(stoker.MapError, match="sample_map raised ValueError: no such") as caught:
        list(load(images, transforms={"jpg": AUGMENT}, sample_map=fail))
    assert (caught.value.stage, caught.value.sample) == ("sample_map", 3)


def test_95_a_sample_map_that_returns_images_of_other_shapes(images):
    def cut(one):
        return {"x": one["jpg"][: 10 + one["cls"]]}

    with pytest.raises(stoker.MapError, match=r"\(10, 24, 3\) uint8") as caught:
        list(load(images, transforms={"jpg": AUGMENT}, sample_map=cut))
    assert caught.value.stage == "sample_map"


def test_95_a_map_that_makes_nan_of_images(images):
    def normalise(batch):
        x = batch["jpg"].astype(numpy.float32)
        with numpy.errstate(all="ignore"):
            return {"x": (x - x.mean()) / (x.std() * 0) * 0}

    with pytest.raises(stoker.MapError, match="map returned NaN in x on step 0") as caught:
        list(load(images, transforms={"jpg": AUGMENT}, map=normalise))
    assert caught.value.stage == "map"


def test_95_a_map_that_hangs_on_images(images):
    go = threading.Event()
    loader = load(
        images, transforms={"jpg": AUGMENT}, map=lambda batch: go.wait(60) or batch, map_timeout=0.5
    )
    began = time.monotonic()
    with pytest.raises(stoker.MapError, match="map on step 0 has not returned") as caught:
        next(iter(loader))
    assert caught.value.stage == "map"
    go.set()
    loader.close()
    assert time.monotonic() - began < 10


def test_an_optional_image_that_is_missing_is_told(tmp_path):
    samples = [
        ("a", {"jpg": jpeg(1), "cls": 0}),
        ("b", {"cls": 1}),
        ("c", {"jpg": jpeg(3), "cls": 2}),
    ]
    write_tar(tmp_path / "a.tar", samples)
    options = {"fields": ["jpg?", "cls"], "transforms": {"jpg": "CenterCrop(20)"}}
    batch = next(iter(load(tmp_path, 3, **options)))
    assert batch["jpg"].shape == (3, 20, 20, 3)
    assert batch["jpg_present"].tolist() == [True, False, True]
    assert not batch["jpg"][1].any()
    seen = []
    loader = load(tmp_path, 3, **options, sample_map=lambda one: seen.append(one) or one["cls"])
    next(iter(loader))
    assert [one["jpg"] is None for one in seen] == [False, True, False]


# Videos


def test_a_clip_is_the_frames_that_were_asked_for(tmp_path):
    cv2 = pytest.importorskip("cv2")
    path = tmp_path / "made.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"MJPG"), 10, (64, 48))
    if not writer.isOpened():
        pytest.skip("this OpenCV cannot write videos")
    for number in range(40):
        writer.write(numpy.full((48, 64, 3), 6 * number, numpy.uint8))
    writer.release()
    capture = cv2.VideoCapture(str(path))
    frames = numpy.stack([capture.read()[1][..., ::-1] for _ in range(40)]).astype(int)
    folder = tmp_path / "videos"
    folder.mkdir()
    write_tar(folder / "a.tar", [(f"{n}", {"avi": path.read_bytes(), "cls": n}) for n in range(4)])
    try:
        ds = stoker.open(folder, as_="numpy")
        first = load(ds, 4, transforms={"avi": stoker.DecodeVideo(5, stride=3, start="start")})
        value = next(iter(first))["avi"].astype(int)
    except stoker.StokerError as error:
        if "FFmpeg" in str(error):
            pytest.skip("the decoder of videos is not built")
        raise
    assert ds.fields["avi"].media == "video"
    assert value.shape == (4, 5, 48, 64, 3)
    assert numpy.abs(value - frames[:15:3]).max() <= 6
    chain = [stoker.DecodeVideo(4, start="random"), stoker.RandomResizedCrop(16)]
    chain += [stoker.RandomHorizontalFlip(), stoker.Normalize("imagenet"), stoker.Layout("CTHW")]
    one, two = (by_sample(load(ds, 2, threads=n, transforms={"avi": chain}), "avi") for n in (1, 4))
    assert one[0].shape == (3, 4, 16, 16)
    assert all(numpy.array_equal(one[n], two[n]) for n in range(4))
    assert not numpy.array_equal(one[0], one[1])
