"""Flat files of tokens as windows, compared with numpy."""

import numpy
import pytest
import stoker


@pytest.fixture
def files(tmp_path):
    rng = numpy.random.default_rng(0)
    arrays = [rng.integers(0, 50000, count).astype(numpy.uint16) for count in (1000, 130, 700)]
    for number, array in enumerate(arrays):
        array.tofile(tmp_path / f"tokens-{number}.bin")
    return tmp_path, arrays


def windows(arrays, window, stride):
    return [
        array[start : start + window]
        for array in arrays
        for start in range(0, len(array) - window + 1, stride)
    ]


@pytest.mark.parametrize(("window", "stride"), [(65, 64), (128, 128), (1, 1), (700, 7)])
def test_a_sample_is_a_window_of_one_file(files, window, stride):
    folder, arrays = files
    ds = stoker.open(
        folder, format="tokens", dtype="uint16", window=window, stride=stride, as_="numpy"
    )
    expected = windows(arrays, window, stride)
    assert len(ds) == len(expected)
    assert list(ds.fields) == ["tokens"]
    for number in {0, 1, len(ds) // 2, len(ds) - 1}:
        assert numpy.array_equal(ds[number]["tokens"], expected[number])
    seen = 0
    for batch in stoker.Loader(ds, 16, shuffle=True):
        for place, number in enumerate(batch.samples.tolist()):
            assert numpy.array_equal(batch["tokens"][place], expected[number])
            seen += 1
    assert seen == len(expected)


def test_tokens_of_32_bits_and_of_npy_files(tmp_path):
    array = numpy.arange(100000, 100500, dtype=numpy.uint32)
    array.tofile(tmp_path / "a.bin")
    ds = stoker.open(tmp_path / "a.bin", format="tokens", dtype=numpy.uint32, window=100)
    assert numpy.asarray(ds[1]["tokens"])[0] >= 100000
    numpy.save(tmp_path / "b.npy", array)
    ds = stoker.open(tmp_path / "b.npy", format="tokens", window=100, as_="numpy")
    assert ds.fields["tokens"].dtype == "uint32"
    assert numpy.array_equal(ds[0]["tokens"], array[:100])


def test_tokens_without_a_window_are_refused(files):
    folder, _ = files
    with pytest.raises(stoker.StokerError, match="window"):
        stoker.open(folder, format="tokens", dtype="uint16")
