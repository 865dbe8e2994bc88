"""Flat files of tokens as windows: numpy cuts the same."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest
import stoker


def make(path: Path, count: int, dtype: str, seed: int) -> numpy.ndarray:
    top = numpy.iinfo(dtype).max
    values = numpy.random.default_rng(seed).integers(0, top, count, dtype=dtype, endpoint=True)
    if path.suffix == ".npy":
        numpy.save(path, values)
    else:
        values.tofile(path)
    return values


def cut(values: numpy.ndarray, window: int, stride: int) -> list[numpy.ndarray]:
    return [values[start : start + window] for start in range(0, len(values) - window + 1, stride)]


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
@pytest.mark.parametrize("suffix", [".bin", ".npy"])
@pytest.mark.parametrize("stride", [None, 1, 7, 40])
def test_windows_are_those_numpy_cuts(
    tmp_path: Path, dtype: str, suffix: str, stride: int | None
) -> None:
    counts = (100, 31, 32, 0, 90)
    parts = [make(tmp_path / f"part-{i}{suffix}", n, dtype, i) for i, n in enumerate(counts)]
    ds = stoker.open(
        tmp_path / f"part-*{suffix}", format="tokens", dtype=dtype, window=32, stride=stride
    )
    expected = [row for part in parts for row in cut(part, 32, stride or 32)]
    assert list(ds.fields) == ["tokens"]
    assert len(ds) == len(expected)
    loader = stoker.Loader(ds, batch_size=8, as_="numpy")
    found = numpy.concatenate([batch["tokens"] for batch in loader])
    assert found.dtype == dtype
    numpy.testing.assert_array_equal(found, numpy.stack(expected))


def test_a_shuffled_epoch_has_every_window_once(tmp_path: Path) -> None:
    values = numpy.arange(64 * 50, dtype="uint16")
    values.tofile(tmp_path / "tokens.bin")
    ds = stoker.open(tmp_path / "tokens.bin", format="tokens", window=64)
    loader = stoker.Loader(ds, batch_size=7, shuffle=True, seed=3, as_="numpy")
    firsts = [int(row[0]) for batch in loader for row in batch["tokens"]]
    assert firsts != sorted(firsts)
    assert sorted(firsts) == list(range(0, 64 * 50, 64))


def test_a_token_that_is_cut_off_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "tokens.bin").write_bytes(b"\0" * 101)
    with pytest.raises(stoker.StokerError, match="101 bytes are no whole number of tokens"):
        stoker.open(tmp_path / "tokens.bin", format="tokens", window=4)


def test_tokens_need_a_window(tmp_path: Path) -> None:
    (tmp_path / "tokens.bin").write_bytes(b"\0" * 100)
    with pytest.raises(ValueError, match="none is given"):
        stoker.open(tmp_path / "tokens.bin", format="tokens")
    with pytest.raises(ValueError, match="take one token more"):
        stoker.open(tmp_path / "tokens.bin", format="tokens", window=4, horizon=1)
