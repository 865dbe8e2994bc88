"""Transforms, as objects that write themselves as text.

Names, arguments, defaults and value scales are those of torchvision v2. An object holds nothing but
its arguments; its repr is the text that the library parses, so a chain may be given as objects, as
text, or mixed:

>>> import stoker
>>> [stoker.RandomResizedCrop(224, scale=(0.5, 1)), stoker.RandomHorizontalFlip()]
[RandomResizedCrop(224, scale=(0.5, 1)), RandomHorizontalFlip()]
>>> "RandomResizedCrop(224) | RandomHorizontalFlip"
'RandomResizedCrop(224) | RandomHorizontalFlip'

What the arguments may be is checked by the library, where the chain is opened: by a
:class:`stoker.Loader` or a :class:`stoker.Pipeline`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from . import _core
from ._chain import Named, Transform
from ._options import read_dtype

Numbers = float | Sequence[float]


# How media are decoded: the first step of a chain


@dataclass(frozen=True, repr=False, eq=False)
class DecodeImage(Named):
    """How images are decoded.

    Args:
        mode: ``"rgb"``, ``"gray"``, ``"rgba"``, or ``"keep"``: as many channels as are stored.
        fast: a JPEG may be scaled down while it is decoded, never below what is needed.
        relaxed: a damaged end is filled with grey and not an error.
        max_pixels: an image of more is an error, before memory is asked for.
    """

    mode: str = "rgb"
    fast: bool = False
    relaxed: bool = False
    max_pixels: float = 179e6


@dataclass(frozen=True, repr=False, eq=False)
class DecodeAudio(Named):
    """How recordings are decoded, to float32 (channels, frames).

    Args:
        rate: frames a second: others are resampled to it; None: as stored.
        mono: channels are averaged into one.
        seconds: a fixed length, in time ...
        frames: ... or in frames after resampling; None: all of it.
        crop: where a longer one is cut: ``"start"``, ``"center"`` or ``"random"``.
        pad: a shorter one gets zeros behind it; False: it is an error.
    """

    rate: float | None = None
    mono: bool = False
    seconds: float | None = None
    frames: int | None = None
    crop: str = "start"
    pad: bool = True


@dataclass(frozen=True, repr=False, eq=False)
class DecodeVideo(Named):
    """Which frames of a video are decoded, to uint8 (T, H, W, C).

    Args:
        frames: of a clip.
        stride: every stride-th frame is taken.
        clips: several: (clips, T, H, W, C).
        start: where a clip begins: ``"start"``, ``"center"`` or ``"random"``; several clips that
            do not begin at random are spread evenly.
    """

    frames: int = 16
    stride: int = 1
    clips: int = 1
    start: str = "random"


@dataclass(frozen=True, repr=False, eq=False)
class DecodePoints(Named):
    """How point clouds are decoded, to float32 (N, columns).

    Args:
        columns: the first so many; None: all that are stored.
        count: a fixed number of points; None: all of them.
        sample: which of more: ``"random"`` (without repeats, in their order) or ``"first"``.
        pad: fewer are padded with zeros; False: points are repeated at random instead.
        nan: points whose x, y or z is NaN: ``"keep"`` or ``"drop"``.
    """

    columns: int | None = None
    count: int | None = None
    sample: str = "random"
    pad: bool = True
    nan: str = "keep"


# Images, and the frames of videos


@dataclass(frozen=True, repr=False, eq=False)
class RandomResizedCrop(Named):
    """A random part of the image, resized.

    Args:
        size: (height, width), or one number for both.
        scale: the part's area, as shares of the image's.
        ratio: the part's width over its height, drawn evenly on a logarithmic scale.
        interpolation: ``"bilinear"``, ``"bicubic"``, ``"area"`` (or ``"box"``), ``"nearest"`` (or
            ``"nearest-exact"``: pixels as Pillow takes them) or ``"lanczos"``.
        antialias: pixels are averaged where the image is made smaller.
    """

    size: Numbers
    scale: Numbers = (0.08, 1.0)
    ratio: Numbers = (3 / 4, 4 / 3)
    interpolation: str = "bilinear"
    antialias: bool = True


@dataclass(frozen=True, repr=False, eq=False)
class Resize(Named):
    """Resizes the image.

    Args:
        size: (height, width), or one number for the shorter side: the longer keeps the proportion.
            None: the longer side becomes max_size.
        interpolation: ``"bilinear"``, ``"bicubic"``, ``"area"`` (or ``"box"``), ``"nearest"`` (or
            ``"nearest-exact"``: pixels as Pillow takes them) or ``"lanczos"``.
        max_size: the longer side is not made longer than this.
        antialias: pixels are averaged where the image is made smaller.
    """

    _bare = ("size",)

    size: Numbers | None = None
    interpolation: str = "bilinear"
    max_size: int | None = None
    antialias: bool = True


@dataclass(frozen=True, repr=False, eq=False)
class CenterCrop(Named):
    """The middle of the image; zeros around one that is smaller.

    Args:
        size: (height, width), or one number for both.
    """

    size: Numbers


@dataclass(frozen=True, repr=False, eq=False)
class RandomCrop(Named):
    """A part of a fixed size, at a random place.

    Args:
        size: (height, width), or one number for both.
        padding: pixels added around the image first: one number, (left and right, top and bottom),
            or (left, top, right, bottom).
        pad_if_needed: an image that is too small is padded; False: it is an error.
        fill: the value of added pixels, 0 to 255: one number, or one a channel.
        padding_mode: ``"constant"``: fill; or the image's own pixels, as numpy.pad has them:
            ``"edge"``, ``"reflect"`` or ``"symmetric"``.
    """

    size: Numbers
    padding: Numbers | None = None
    pad_if_needed: bool = False
    fill: Numbers | None = 0
    padding_mode: str = "constant"


@dataclass(frozen=True, repr=False, eq=False)
class Pad(Named):
    """Adds pixels around the image.

    Args:
        padding: one number, (left and right, top and bottom), or (left, top, right, bottom).
        fill: the value of added pixels, 0 to 255.
        padding_mode: ``"constant"``, ``"edge"``, ``"reflect"`` or ``"symmetric"``.
    """

    padding: Numbers
    fill: Numbers | None = 0
    padding_mode: str = "constant"


@dataclass(frozen=True, repr=False, eq=False)
class RandomHorizontalFlip(Named):
    """Mirrors left and right.

    Args:
        p: how often: 0 to 1.
    """

    p: float = 0.5


@dataclass(frozen=True, repr=False, eq=False)
class RandomVerticalFlip(Named):
    """Mirrors top and bottom.

    Args:
        p: how often: 0 to 1.
    """

    p: float = 0.5


@dataclass(frozen=True, repr=False, eq=False)
class RandomRotation(Named):
    """Turns the image counter-clockwise by a random angle.

    Args:
        degrees: (least, most), or one number: from its negative to it.
        interpolation: ``"nearest"`` or ``"bilinear"``.
        expand: the result is as large as the turned image. Sizes then differ, and a batch needs a
            crop or a resize of a fixed size behind it. False: corners are cut off.
        center: (x, y) in pixels, that it is turned about; None: the middle.
        fill: the value of pixels that come from outside, 0 to 255: one number, or one a channel.
    """

    degrees: Numbers
    interpolation: str = "nearest"
    expand: bool = False
    center: Numbers | None = None
    fill: Numbers | None = 0


@dataclass(frozen=True, repr=False, eq=False)
class ColorJitter(Named):
    """Changes brightness, contrast, saturation and hue by random amounts, in a random order.

    Args:
        brightness: (least, most) factor, or one number x: from 1 - x to 1 + x.
        contrast: as brightness.
        saturation: as brightness.
        hue: (least, most) turn of the colour circle, within -0.5 and 0.5, or one number.
    """

    brightness: Numbers | None = 0.0
    contrast: Numbers | None = 0.0
    saturation: Numbers | None = 0.0
    hue: Numbers | None = 0.0


@dataclass(frozen=True, repr=False, eq=False)
class Grayscale(Named):
    """Takes the colour away.

    Args:
        num_output_channels: 1, or 3 equal ones.
    """

    num_output_channels: int = 1


@dataclass(frozen=True, repr=False, eq=False)
class GaussianBlur(Named):
    """Blurs the image.

    Args:
        kernel_size: pixels of the kernel, odd: (x, y), or one number for both.
        sigma: (least, most) of its width in pixels, or one number.
    """

    kernel_size: Numbers
    sigma: Numbers = (0.1, 2.0)


@dataclass(frozen=True, repr=False, eq=False)
class RandomErasing(Named):
    """Fills a random box.

    Args:
        p: how often: 0 to 1.
        scale: the box's area, as shares of the image's.
        ratio: the box's height over its width.
        value: what it is filled with: one number, one a channel, or ``"random"``.
        inplace: torchvision's; here it makes no difference.
    """

    p: float = 0.5
    scale: Numbers = (0.02, 0.33)
    ratio: Numbers = (0.3, 3.3)
    value: Numbers | str = 0
    inplace: bool = False


@dataclass(frozen=True, repr=False, eq=False)
class TrivialAugment(Named):
    """One random operation of a random strength (Müller and Hutter, 2021).

    Args:
        num_magnitude_bins: so many strengths.
        interpolation: ``"nearest"`` or ``"bilinear"``, where the operation turns or moves pixels.
        fill: the value of pixels that come from outside, 0 to 255: one number, or one a channel.
    """

    num_magnitude_bins: int = 31
    interpolation: str = "nearest"
    fill: Numbers | None = 0


@dataclass(frozen=True, repr=False, eq=False)
class TrivialAugmentWide(TrivialAugment):
    """TrivialAugment under torchvision's name.

    Args:
        num_magnitude_bins: so many strengths.
        interpolation: ``"nearest"`` or ``"bilinear"``, where the operation turns or moves pixels.
        fill: the value of pixels that come from outside, 0 to 255: one number, or one a channel.
    """


# The form of the result


@dataclass(frozen=True, repr=False, eq=False)
class Normalize(Named):
    """(value - mean) / std, on values from 0 to 1: uint8 is divided by 255 first. To float32.

    Args:
        mean: one number, or one a channel; or the word ``"imagenet"`` alone.
        std: one number, or one a channel.
        inplace: torchvision's; here it makes no difference.
        preset: ``"imagenet"``: the mean and std of torchvision's models.
    """

    _bare = ("mean", "std")

    mean: Numbers | str | None = None
    std: Numbers | None = None
    inplace: bool = False
    preset: str | None = None


@dataclass(frozen=True, repr=False, eq=False)
class Cast(Named):
    """Another type.

    Args:
        dtype: a name, or torch's or numpy's type.
        scale: integers become 0 to 1, and floats the whole range of integers.
    """

    dtype: Any
    scale: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.dtype, str):
            named = read_dtype(self.dtype)
            object.__setattr__(self, "dtype", _core.parse_dtype(named) if named else named)
        super().__post_init__()


@dataclass(frozen=True, repr=False, eq=False)
class Layout(Named):
    """The order of the axes.

    Args:
        order: ``"CHW"`` or ``"HWC"``; videos: ``"CTHW"`` or ``"THWC"``.
    """

    order: str


# Recordings


@dataclass(frozen=True, repr=False, eq=False)
class Gain(Named):
    """Makes a recording louder or softer.

    Args:
        db: decibels: (least, most) of a random amount, or one number.
        clip: the result stays within -1 and 1.
    """

    db: Numbers = 0
    clip: bool = False


@dataclass(frozen=True, repr=False, eq=False)
class Resample(Named):
    """Another number of frames a second.

    Args:
        rate: the new one.
        orig_rate: the old one, where the data do not say.
    """

    rate: float
    orig_rate: float | None = None


@dataclass(frozen=True, repr=False, eq=False)
class LogMel(Named):
    """The mel spectrogram of a recording in decibels, float32 (channels, n_mels, time), as librosa
    makes it.

    Args:
        n_fft: frames of one Fourier transform.
        hop_length: frames from one to the next.
        win_length: frames of the window; None: n_fft.
        n_mels: bands.
        fmin: the lowest frequency, in Hz.
        fmax: the highest; None: half the rate.
        power: 2: energy; 1: amplitude.
        center: the recording is padded, so that a column is of the frames around its place.
        pad_mode: with what: ``"constant"`` (zeros), ``"reflect"`` or ``"edge"``.
        htk: HTK's mel scale; False: Slaney's.
        norm: ``"slaney"``: bands of equal area; or ``"none"``.
        ref: the value that is 0 dB.
        amin: smaller values are taken for this.
        top_db: what lies this far below the loudest is cut off; 0: nothing is.
        rate: frames a second, where the data do not say.
    """

    n_fft: int = 2048
    hop_length: int = 512
    win_length: int | None = None
    n_mels: int = 128
    fmin: float = 0.0
    fmax: float | None = None
    power: float = 2.0
    center: bool = True
    pad_mode: str = "constant"
    htk: bool = False
    norm: str = "slaney"
    ref: float = 1.0
    amin: float = 1e-10
    top_db: float = 80.0
    rate: float | None = None


@dataclass(frozen=True, repr=False, eq=False)
class SpecAugment(Named):
    """Blanks random bands and stretches of a spectrogram (Park and others, 2019).

    Args:
        freq_masks: how many bands.
        freq_width: the most that a band is wide.
        time_masks: how many stretches of time.
        time_width: the most that a stretch is long.
        p: how often: 0 to 1.
        fill: with what: ``"zero"``, or the spectrogram's ``"mean"``.
    """

    freq_masks: int = 2
    freq_width: int = 27
    time_masks: int = 2
    time_width: int = 100
    p: float = 1.0
    fill: str = "zero"


# Point clouds


@dataclass(frozen=True, repr=False, eq=False)
class Rotate(Named):
    """Turns a point cloud about an axis by a random angle.

    Args:
        degrees: (least, most), or one number: from its negative to it.
        axis: ``"z"``, ``"x"`` or ``"y"``.
    """

    degrees: Numbers = (-180, 180)
    axis: str = "z"


@dataclass(frozen=True, repr=False, eq=False)
class Scale(Named):
    """Multiplies x, y and z by one random factor.

    Args:
        range: (least, most).
    """

    range: Numbers = (0.95, 1.05)


@dataclass(frozen=True, repr=False, eq=False)
class Jitter(Named):
    """Moves every point by normal noise.

    Args:
        sigma: its standard deviation.
        clip: the most that a point is moved along an axis.
    """

    sigma: float = 0.01
    clip: float = 0.05


@dataclass(frozen=True, repr=False, eq=False)
class Drop(Named):
    """Leaves points out at random.

    Args:
        p: how many of them: 0 to 1.
        replace: a copy of the first point that stays takes the place of one that goes; False: the
            cloud becomes shorter.
    """

    p: float = 0.1
    replace: bool = True


# Any tensor


@dataclass(frozen=True, repr=False, eq=False)
class TemporalCrop(Named):
    """A stretch of time: of a video's frames, of a recording, or of a tensor's axis.

    Args:
        frames: how long it is.
        axis: tensors: the axis of time.
        start: where it begins: ``"start"``, ``"center"`` or ``"random"``.
    """

    frames: int
    axis: int = 0
    start: str = "random"


@dataclass(frozen=True, repr=False, eq=False)
class Noise(Named):
    """Adds random numbers of a normal distribution.

    Args:
        sigma: their standard deviation.
        p: how often: 0 to 1.
    """

    sigma: float = 0.1
    p: float = 1.0


# Whole batches


@dataclass(frozen=True, repr=False, eq=False)
class _Mix(Named):
    """What MixUp and CutMix are given."""

    alpha: float = 1.0
    _: KW_ONLY
    num_classes: int | None = None
    image: str | None = None
    label: str | None = None
    p: float = 1.0
    labels_getter: str = "default"
    classes: int | None = None

    def __post_init__(self) -> None:
        if callable(self.labels_getter):
            raise TypeError(
                "labels_getter is a function, but batches are mixed before Python has them; give "
                f"the field of the labels by its name: {type(self).__name__}(..., "
                'labels_getter="cls")'
            )
        super().__post_init__()


@dataclass(frozen=True, repr=False, eq=False)
class MixUp(_Mix):
    """Blends each image of a batch, and its label, with another's.

    Labels become float32 (B, classes).

    Args:
        alpha: of the Beta distribution that says how much of each: below 1, mostly one of the two.
        num_classes: how many there are.
        image: the field of the images; None: the only one there is.
        label: the field of the classes' numbers; None: the only one there is.
        p: how often: 0 to 1.
        labels_getter: torchvision's: the name of the label's field, or ``"default"``.
        classes: another name for num_classes.
    """


@dataclass(frozen=True, repr=False, eq=False)
class CutMix(_Mix):
    """Puts a box of one image of a batch into another, and mixes their labels by its area.

    Labels become float32 (B, classes).

    Args:
        alpha: of the Beta distribution that says how much of each: below 1, mostly one of the two.
        num_classes: how many there are.
        image: the field of the images; None: the only one there is.
        label: the field of the classes' numbers; None: the only one there is.
        p: how often: 0 to 1.
        labels_getter: torchvision's: the name of the label's field, or ``"default"``.
        classes: another name for num_classes.
    """


NAMED: tuple[type[Transform], ...] = tuple(
    kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, Named) and kind not in (Named, _Mix)
)
