"""Transforms as Python objects: what they write is what the library parses."""

import ast
import copy
import dataclasses
import enum
import inspect
import pathlib
import pickle

import numpy
import pytest
import stoker
from stoker import _core, transforms
from stoker._chain import chain_text
from stoker._context import context

TABLE = {row[0]: row for row in _core.transforms(context())}
CLASSES = {kind.__name__: kind for kind in transforms.NAMED}


def read(text):
    """A default of the C table as a Python value."""
    if text is None:
        return dataclasses.MISSING
    if text == "None":
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text  # a word
    return tuple(value) if isinstance(value, list) else value


def same(one, two):
    """Equal values; a number alone is a list of one."""
    if one is dataclasses.MISSING or two is dataclasses.MISSING:
        return one is two
    if isinstance(one, (tuple, int, float)) and not isinstance(one, bool):
        return numpy.allclose(numpy.ravel(one), numpy.ravel(two), rtol=1e-6)
    return type(one) is type(two) and one == two


def test_there_is_a_class_for_every_transform_of_the_library():
    assert set(CLASSES) == set(TABLE)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_a_class_has_the_arguments_and_defaults_of_the_library(name):
    fields = dataclasses.fields(CLASSES[name])
    arguments = TABLE[name][4]
    assert [field.name for field in fields] == [argument[0] for argument in arguments]
    for field, (_, kind, default, _) in zip(fields, arguments, strict=True):
        expected = bool(read(default)) if kind == "bool" and default else read(default)
        assert same(field.default, expected), (field.name, field.default, default)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_a_class_explains_itself_and_its_arguments(name):
    kind = CLASSES[name]
    words = inspect.getdoc(kind)
    assert words.strip()
    for field in dataclasses.fields(kind):
        assert f"    {field.name}: " in words, field.name
    choices = {argument[0]: argument[3] for argument in TABLE[name][4] if argument[3]}
    for argument, listed in choices.items():
        for word in listed.split("|"):
            assert f'"{word}"' in words, (argument, word)
    assert getattr(stoker, name) is kind
    assert name in stoker.__all__
    assert list(inspect.signature(kind).parameters) == [f.name for f in dataclasses.fields(kind)]


# The arguments of torchvision v2 (0.21), in their order.
TORCHVISION = {
    "RandomResizedCrop": "size scale ratio interpolation antialias",
    "Resize": "size interpolation max_size antialias",
    "CenterCrop": "size",
    "RandomCrop": "size padding pad_if_needed fill padding_mode",
    "Pad": "padding fill padding_mode",
    "RandomHorizontalFlip": "p",
    "RandomVerticalFlip": "p",
    "RandomRotation": "degrees interpolation expand center fill",
    "ColorJitter": "brightness contrast saturation hue",
    "Grayscale": "num_output_channels",
    "GaussianBlur": "kernel_size sigma",
    "RandomErasing": "p scale ratio value inplace",
    "TrivialAugmentWide": "num_magnitude_bins interpolation fill",
    "Normalize": "mean std inplace",
}


@pytest.mark.parametrize("name", TORCHVISION)
def test_a_class_takes_the_arguments_of_torchvision_in_their_order(name):
    theirs = TORCHVISION[name].split()
    assert list(inspect.signature(CLASSES[name]).parameters)[: len(theirs)] == theirs


def test_mixes_take_the_arguments_of_torchvision():
    for kind in (stoker.MixUp, stoker.CutMix):
        one = kind(alpha=0.5, num_classes=10, labels_getter="cls")
        assert repr(one) == f"{kind.__name__}(alpha=0.5, num_classes=10, labels_getter='cls')"
        with pytest.raises(TypeError, match=r"by its name.*labels_getter="):
            kind(num_classes=10, labels_getter=lambda batch: batch["cls"])


class InterpolationMode(enum.Enum):
    """As torchvision has it."""

    NEAREST_EXACT = "nearest-exact"
    BICUBIC = "bicubic"


def test_an_interpolation_may_be_a_member_of_an_enum():
    assert stoker.Resize(7, InterpolationMode.BICUBIC) == stoker.Resize(7, "bicubic")
    nearest = stoker.RandomResizedCrop(7, interpolation=InterpolationMode.NEAREST_EXACT)
    assert repr(nearest) == "RandomResizedCrop(7, interpolation='nearest-exact')"
    assert stoker.Pipeline(nearest).text == "RandomResizedCrop(7, interpolation='nearest')"
    pillow = pytest.importorskip("PIL.Image").Resampling
    for member, word in (("BOX", "box"), ("LANCZOS", "lanczos"), ("BICUBIC", "bicubic")):
        assert stoker.Resize(7, pillow[member]) == stoker.Resize(7, word)
    assert stoker.RandomRotation(7, 2) == stoker.RandomRotation(7, "bilinear")
    with pytest.raises(stoker.StokerError, match="interpolation must be one of"):
        stoker.Pipeline(stoker.Resize(7, pillow.HAMMING))


def test_none_is_no_fill_and_no_jitter():
    for one in (stoker.ColorJitter(hue=None), stoker.TrivialAugmentWide(fill=None)):
        assert stoker.Pipeline(one).text == type(one).__name__


def test_the_repr_shows_what_differs_from_the_defaults():
    assert repr(stoker.RandomResizedCrop(224)) == "RandomResizedCrop(224)"
    assert (
        repr(stoker.RandomResizedCrop(224, scale=(0.5, 1.0)))
        == "RandomResizedCrop(224, scale=(0.5, 1))"
    )
    assert repr(stoker.RandomResizedCrop([224, 192], (0.08, 1))) == "RandomResizedCrop((224, 192))"
    assert repr(stoker.RandomHorizontalFlip()) == "RandomHorizontalFlip()"
    assert repr(stoker.RandomHorizontalFlip(0.25)) == "RandomHorizontalFlip(p=0.25)"
    assert repr(stoker.Layout("CHW")) == "Layout('CHW')"
    assert repr(stoker.DecodeImage(fast=True)) == "DecodeImage(fast=True)"
    assert repr(stoker.Normalize("imagenet")) == "Normalize('imagenet')"
    assert repr(stoker.Transform(" Solarize(0.5) ")) == "Solarize(0.5)"


def test_types_of_torch_and_numpy_name_themselves():
    assert repr(stoker.Cast(numpy.float16)) == "Cast('float16')"
    assert repr(stoker.Cast(numpy.dtype("<f4"))) == "Cast('float32')"
    assert repr(stoker.Cast("float32")) == "Cast('float32')"
    torch = pytest.importorskip("torch")
    assert repr(stoker.Cast(torch.bfloat16)) == "Cast('bfloat16')"
    assert stoker.Cast(torch.float16) == stoker.Cast(numpy.float16)


def test_numbers_of_numpy_and_torch_are_numbers():
    plain = stoker.RandomResizedCrop((224, 192), (0.5, 1))
    assert stoker.RandomResizedCrop(numpy.array([224, 192]), numpy.array([0.5, 1.0])) == plain
    assert stoker.Resize(numpy.int64(7)) == stoker.Resize(7)
    assert stoker.RandomHorizontalFlip(numpy.float64(0.25)) == stoker.RandomHorizontalFlip(0.25)
    torch = pytest.importorskip("torch")
    assert stoker.Resize(torch.tensor([7, 8])) == stoker.Resize((7, 8))


def test_equal_arguments_make_equal_transforms():
    one, two = stoker.Resize(224), stoker.Resize(size=224.0)
    assert one == two
    assert hash(one) == hash(two)
    assert one != stoker.Resize(225)
    assert one != stoker.CenterCrop(224)
    assert one == stoker.Transform("Resize(224)")
    assert one != "Resize(224)"
    assert len({one, two, stoker.Resize(7)}) == 2


def test_a_transform_cannot_be_changed():
    one = stoker.Resize([7, 8])
    assert one.size == (7, 8)
    for name in ("size", "other", "_words"):
        with pytest.raises(AttributeError):
            setattr(one, name, 9)
    with pytest.raises(AttributeError):
        del one.size
    with pytest.raises(AttributeError):
        stoker.Transform("A").other = 1


@pytest.mark.parametrize(
    "one",
    [stoker.RandomResizedCrop(7, scale=(0.5, 1)), stoker.Transform("A(1)"), stoker.Cast("u1")],
)
def test_transforms_pickle_and_copy(one):
    for other in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
        assert other == one
        assert type(other) is type(one)


@pytest.mark.parametrize(
    "value", [object(), b"bytes", {"a": 1}, [1, object()], 1j, lambda: 1, numpy.array(["a"])[0:0]]
)
def test_what_cannot_be_written_is_refused_where_it_is_given(value):
    if isinstance(value, numpy.ndarray):
        assert stoker.Resize(value).size == ()  # the library refuses it
        return
    with pytest.raises(TypeError, match="cannot be an argument"):
        stoker.Resize(value)


def test_text_with_both_kinds_of_quotes_is_refused():
    assert repr(stoker.Layout("it's")) == 'Layout("it\'s")'
    with pytest.raises(ValueError, match="quotes"):
        stoker.Layout("""a'b"c""")


def test_a_chain_is_text_a_transform_or_a_list_of_both():
    chain = chain_text
    assert chain("Resize(7) | CenterCrop(5)") == "Resize(7) | CenterCrop(5)"
    assert chain(stoker.Resize(7)) == "Resize(7)"
    assert chain([stoker.Resize(7), "CenterCrop(5)"]) == "Resize(7) | CenterCrop(5)"
    assert chain(()) == ""
    for wrong in (7, b"Resize(7)", None, {"a": 1}):
        with pytest.raises(TypeError):
            chain(wrong)
    with pytest.raises(TypeError, match=r"Resize is a class; write Resize\(\.\.\.\)"):
        chain([stoker.Resize])
    with pytest.raises(TypeError, match="not 7"):
        chain([7])
    with pytest.raises(ValueError, match="empty"):
        chain(["Resize(7)", " "])


# One of each, written by Python and read by the library.
EXAMPLES = [
    stoker.DecodeImage("gray", fast=True, relaxed=True, max_pixels=1e6),
    stoker.DecodeAudio(16000, mono=True, seconds=1.5, crop="random", pad=False),
    stoker.DecodeVideo(8, stride=2, clips=3, start="center"),
    stoker.DecodePoints(3, count=1024, sample="first", pad=False),
    stoker.RandomResizedCrop((224, 192), scale=(0.5, 1), interpolation="bicubic"),
    stoker.Resize(256, interpolation="area"),
    stoker.Resize(None, max_size=256),
    stoker.CenterCrop((5, 7)),
    stoker.RandomCrop(32, padding=4, padding_mode="reflect"),
    stoker.RandomRotation(30, "bilinear", True, fill=(1, 2, 3)),
    stoker.RandomRotation((10, 20), center=(3.5, 4)),
    stoker.RandomErasing(1, value="random"),
    stoker.RandomHorizontalFlip(0.25),
    stoker.Normalize((0.5, 0.4, 0.3), (0.2, 0.2, 0.1)),
    stoker.Normalize("imagenet"),
    stoker.Normalize(0.5, 0.25),
    stoker.Cast("float16", scale=True),
    stoker.Layout("CHW"),
]


@pytest.mark.parametrize("one", EXAMPLES, ids=repr)
def test_what_python_writes_the_library_reads_and_means_the_same(one):
    text = stoker.Pipeline(one).text
    assert stoker.Pipeline(text).text == text
    assert text.startswith(type(one).__name__)
    again = eval(text if "(" in text else text + "()", vars(stoker))
    assert stoker.Pipeline(again).text == text


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_every_class_without_options_is_read_by_the_library(name):
    given = {"size": 8, "padding": 1, "degrees": 10, "kernel_size": 3, "dtype": "float32"}
    given |= {"order": "CHW", "rate": 8000, "frames": 4, "std": 0.1, "mean": 0.5}
    given |= {"db": 3}
    kind = CLASSES[name]
    needed = [f.name for f in dataclasses.fields(kind) if f.default is dataclasses.MISSING]
    needed = {"Normalize": ["mean", "std"], "Resize": ["size"]}.get(name, needed)
    one = kind(**{argument: given[argument] for argument in needed})
    if not TABLE[name][3]:  # MixUp and CutMix are no steps of a field
        assert stoker.Pipeline(one).text.startswith(name)


def test_the_page_of_transforms_names_every_one():
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "transforms.md").read_text()
    named = {word for line in page.splitlines() if line[:1] == "|" for word in line.split("`")}
    assert set(TABLE) <= named
