"""Recordings: what soundfile reads is what comes out; resampling is soxr's, LogMel librosa's."""

from __future__ import annotations

import io

import numpy
import pytest
import stoker

soundfile = pytest.importorskip("soundfile")

LOSSLESS = [
    ("WAV", "PCM_U8"),
    ("WAV", "PCM_16"),
    ("WAV", "PCM_24"),
    ("WAV", "PCM_32"),
    ("WAV", "FLOAT"),
    ("WAV", "DOUBLE"),
    ("WAVEX", "PCM_16"),
    ("RF64", "PCM_16"),
    ("FLAC", "PCM_16"),
    ("FLAC", "PCM_24"),
    ("AIFF", "PCM_16"),
    ("AU", "PCM_16"),
]
LOSSY = [("OGG", "VORBIS"), ("OGG", "OPUS"), ("MP3", "MPEG_LAYER_III"), ("WAV", "MS_ADPCM")]


def voice(frames: int, rate: int, channels: int = 1) -> numpy.ndarray:
    """Something like speech: harmonics that come and go, noise, and a gap. (frames, channels)."""
    random = numpy.random.default_rng(0)
    time = numpy.arange(frames) / rate
    rows = []
    for channel in range(channels):
        pitch = 120 + 30 * channel + 20 * numpy.sin(4 * numpy.pi * time)
        phase = 2 * numpy.pi * numpy.cumsum(pitch) / rate
        tones = sum(numpy.sin(k * phase) / k for k in range(1, 25))
        loud = numpy.clip(numpy.sin(3 * numpy.pi * time), 0, 1) ** 2
        row = 0.2 * tones * loud + 0.002 * random.standard_normal(frames)
        row[frames // 3 : frames // 3 + rate // 10] = 0
        rows.append(row)
    return numpy.stack(rows, 1).astype(numpy.float32)


def encode(wave: numpy.ndarray, rate: int, kind: str, subtype: str) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, wave, rate, format=kind, subtype=subtype)
    return file.getvalue()


def expected(data: bytes) -> numpy.ndarray:
    return soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)[0].T


def decode(data: bytes, *steps: stoker.Transform, sample: int = 0) -> numpy.ndarray:
    return stoker.Pipeline(list(steps), media="audio")(data, sample=sample)


@pytest.mark.parametrize("channels", [1, 2, 5])
@pytest.mark.parametrize(("kind", "subtype"), LOSSLESS)
def test_lossless_recordings_are_soundfiles_to_the_bit(kind, subtype, channels):
    data = encode(voice(5000, 16000, channels), 16000, kind, subtype)
    result = stoker.Pipeline([], media="audio").run(data)
    assert result.rate == 16000
    assert numpy.array_equal(result.value, expected(data))


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize(("kind", "subtype"), LOSSY)
def test_lossy_recordings_are_soundfiles(kind, subtype, channels):
    data = encode(voice(50000, 48000, channels), 48000, kind, subtype)
    numpy.testing.assert_allclose(decode(data), expected(data), atol=1e-5)


@pytest.mark.parametrize("rate", [16000, 48000])
@pytest.mark.parametrize(("kind", "subtype"), [*LOSSLESS[1:2], *LOSSLESS[8:9], *LOSSY[:3]])
def test_a_part_is_cut_out_of_the_whole_to_the_frame(kind, subtype, rate):
    data = encode(voice(5 * rate, rate, 2), rate, kind, subtype)
    whole = expected(data)
    starts = set()
    for sample in range(20):
        part = decode(data, stoker.DecodeAudio(frames=300, crop="random"), sample=sample)
        near = numpy.abs(whole[0] - part[0, 0]) < 2e-5
        places = [
            place
            for place in numpy.flatnonzero(near[: whole.shape[1] - 299])
            if numpy.abs(whole[:, place : place + 300] - part).max() < 1e-5
        ]
        assert places
        starts.add(places[0])
    assert len(starts) > 10
    last = decode(data, stoker.DecodeAudio(seconds=0.1, crop="center"))
    begin = (whole.shape[1] - last.shape[1] + 1) // 2
    numpy.testing.assert_allclose(last, whole[:, begin : begin + last.shape[1]], atol=1e-5)


def test_what_is_not_a_number_passes_through():
    wave = numpy.array([[0.5], [numpy.nan], [-numpy.inf], [0.25]], numpy.float32)
    data = encode(wave, 8000, "WAV", "FLOAT")
    assert decode(data).tobytes() == wave.T.tobytes()


@pytest.mark.parametrize(("kind", "subtype"), [*LOSSLESS, *LOSSY[:3]])
def test_a_cut_recording_is_truncated(kind, subtype):
    data = encode(voice(20000, 48000), 48000, kind, subtype)
    for share in (0.35, 0.6, 0.95):
        with pytest.raises(stoker.StokerError, match=r"cut|promises"):
            decode(data[: int(len(data) * share)])


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"", "0 bytes"), (b"<html><body>404", "HTML"), (b"\0\0\0 ftypM4A ", "M4A"), (b"abc", "text")],
)
def test_what_is_no_recording_is_named(data, words):
    with pytest.raises(stoker.StokerError, match=words):
        decode(data)


@pytest.mark.parametrize(
    ("old", "new"), [(44100, 16000), (16000, 44100), (8000, 16000), (22050, 16001)]
)
def test_resampling_is_soxrs(old, new):
    soxr = pytest.importorskip("soxr")
    wave = voice(2 * old + 17, old, 2)
    right = soxr.resample(wave, old, new, quality="HQ").T
    data = encode(wave, old, "WAV", "FLOAT")
    numpy.testing.assert_allclose(decode(data, stoker.DecodeAudio(new)), right, atol=1e-5)
    numpy.testing.assert_allclose(decode(data, stoker.Resample(new)), right, atol=1e-5)
    mono = decode(data, stoker.DecodeAudio(new, mono=True))
    numpy.testing.assert_allclose(mono[0], right.mean(0), atol=1e-5)
    part = decode(data, stoker.DecodeAudio(new, seconds=0.3, crop="center"))
    begin = (right.shape[1] - part.shape[1] + 1) // 2
    numpy.testing.assert_allclose(part, right[:, begin : begin + part.shape[1]], atol=1e-4)
    array = stoker.Pipeline(stoker.Resample(new, orig_rate=old))(numpy.ascontiguousarray(wave.T))
    numpy.testing.assert_allclose(array, right, atol=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_fft": 400, "hop_length": 160, "n_mels": 80},
        {"n_fft": 512, "hop_length": 160, "win_length": 400, "n_mels": 40, "htk": True},
        {"n_fft": 1024, "hop_length": 256, "pad_mode": "reflect", "fmin": 50, "fmax": 7000},
        {"n_fft": 480, "hop_length": 120, "pad_mode": "edge", "power": 1.0},
        {"n_fft": 401, "hop_length": 100, "center": False},
        {"n_fft": 1022, "hop_length": 128, "n_mels": 64, "norm": None},
    ],
)
@pytest.mark.parametrize("top_db", [80, None])
@pytest.mark.filterwarnings("ignore")
def test_log_mel_is_librosas(options, top_db):
    librosa = pytest.importorskip("librosa")
    wave = numpy.ascontiguousarray(voice(16000, 16000, 2).T)
    power = librosa.feature.melspectrogram(y=wave, sr=16000, **options)
    right = librosa.power_to_db(power, top_db=top_db)
    ours = options | {"norm": options.get("norm", "slaney") or "none"}
    step = stoker.LogMel(**ours, top_db=top_db or 0, rate=16000)
    result = stoker.Pipeline(step, media="tensor")(wave)
    assert result.shape == right.shape
    numpy.testing.assert_allclose(result, right, rtol=1e-3, atol=1e-3)


def test_a_whole_chain_is_repeatable_and_random():
    data = encode(voice(20000, 16000), 16000, "FLAC", "PCM_16")
    steps = [
        stoker.DecodeAudio(16000, mono=True, seconds=0.5, crop="random"),
        stoker.Gain((-6, 6)),
        stoker.LogMel(400, 160, n_mels=40),
        stoker.SpecAugment(1, 8, 1, 10),
    ]
    first = decode(data, *steps, sample=1)
    assert first.shape == (1, 40, 51)
    assert numpy.array_equal(first, decode(data, *steps, sample=1))
    assert not numpy.array_equal(first, decode(data, *steps, sample=2))
