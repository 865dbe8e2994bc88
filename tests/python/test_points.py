"""Clouds of points: what numpy writes is what comes out, and transforms do what numpy does."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy
import pytest
import stoker


def cloud(count: int, columns: int = 4, seed: int = 0) -> numpy.ndarray:
    random = numpy.random.default_rng(seed)
    return random.normal(0, 10, (count, columns)).astype(numpy.float32)


def as_npy(values: numpy.ndarray) -> bytes:
    file = io.BytesIO()
    numpy.save(file, values)
    return file.getvalue()


def as_pcd(values: numpy.ndarray, data: str) -> bytes:
    count, columns = values.shape
    names = ["x", "y", "z", "intensity", "ring"][:columns]
    header = (
        f"# .PCD v0.7\nVERSION 0.7\nFIELDS {' '.join(names)}\nSIZE{' 4' * columns}\n"
        f"TYPE{' F' * columns}\nCOUNT{' 1' * columns}\nWIDTH {count}\nHEIGHT 1\n"
        f"VIEWPOINT 0 0 0 1 0 0 0\nPOINTS {count}\nDATA {data}\n"
    )
    if data == "ascii":
        body = "".join(" ".join(map(repr, row)) + "\n" for row in values.tolist()).encode()
    else:
        body = values.tobytes()
    return header.encode() + body


def as_ply(values: numpy.ndarray, order: str) -> bytes:
    names = ["x", "y", "z", "intensity", "ring"][: values.shape[1]]
    header = f"ply\nformat binary_{order}_endian 1.0\nelement vertex {len(values)}\n"
    header += "".join(f"property double {name}\n" for name in names) + "end_header\n"
    return header.encode() + values.astype("<f8" if order == "little" else ">f8").tobytes()


def whole(data: bytes) -> numpy.ndarray:
    return stoker.Pipeline([], media="points")(data)


@pytest.mark.parametrize("columns", [3, 4, 5])
def test_every_format_gives_the_same_points(columns: int) -> None:
    values = cloud(500, columns)
    stored = [
        as_npy(values),
        as_npy(numpy.asfortranarray(values)),
        as_npy(values.astype(">f8")),
        as_pcd(values, "ascii"),
        as_pcd(values, "binary"),
        as_ply(values, "little"),
        as_ply(values, "big"),
    ] + ([values.tobytes()] if columns == 4 else [])
    for data in stored:
        numpy.testing.assert_array_equal(whole(data), values)


def test_halves_and_integers_are_converted_as_numpy_does() -> None:
    for dtype in ("f2", "i2", "u1", "i8"):
        values = cloud(50).astype(dtype)
        numpy.testing.assert_array_equal(whole(as_npy(values)), values.astype(numpy.float32))


def test_nan_points_are_kept_bit_by_bit_or_dropped() -> None:
    values = cloud(300)
    values[::3, 1] = numpy.nan
    assert whole(values.tobytes()).tobytes() == values.tobytes()
    kept = stoker.Pipeline(stoker.DecodePoints(nan="drop"), media="points")(values.tobytes())
    numpy.testing.assert_array_equal(kept, values[~numpy.isnan(values[:, 1])])


def test_a_fixed_count_is_a_choice_without_repeats_in_order() -> None:
    values = cloud(1000)
    values[:, 3] = numpy.arange(1000)
    pipeline = stoker.Pipeline(stoker.DecodePoints(count=100), media="points")
    taken = numpy.zeros(1000)
    for sample in range(300):
        chosen = pipeline(values.tobytes(), sample=sample)
        numbers = chosen[:, 3].astype(int)
        assert (numpy.diff(numbers) > 0).all()
        numpy.testing.assert_array_equal(chosen, values[numbers])
        taken[numbers] += 1
    # each is taken 30 times in the mean, with a deviation of 5.2
    assert taken.min() > 5 and taken.max() < 60
    assert abs(taken[:500].mean() - 30) < 1.5


def test_rotation_and_scale_are_those_of_numpy() -> None:
    values = cloud(200).astype(numpy.float64)
    for axis, (a, b) in {"z": (0, 1), "x": (1, 2), "y": (2, 0)}.items():
        angle = numpy.radians(33.0)
        expected = values.copy()
        expected[:, a] = values[:, a] * numpy.cos(angle) - values[:, b] * numpy.sin(angle)
        expected[:, b] = values[:, a] * numpy.sin(angle) + values[:, b] * numpy.cos(angle)
        pipeline = stoker.Pipeline(stoker.Rotate((33, 33), axis=axis), media="points")
        found = pipeline(values.astype(numpy.float32).tobytes())
        numpy.testing.assert_allclose(found, expected, atol=1e-4)
    pipeline = stoker.Pipeline(stoker.Scale((1.5, 1.5)), media="points")
    expected = values * [1.5, 1.5, 1.5, 1]
    found = pipeline(values.astype(numpy.float32).tobytes())
    numpy.testing.assert_allclose(found, expected, rtol=1e-6)


def test_stored_arrays_take_the_transforms_of_points() -> None:
    values = cloud(200, 3)
    found = stoker.Pipeline("Scale((2, 2)) | Jitter(0.5, clip=1)")(values)
    moved = found - 2 * values
    assert 0.3 < moved.std() < 0.6
    assert abs(moved).max() <= 1.001


def test_a_count_that_lies_is_replaced_and_listed(tmp_path: Path) -> None:
    values = cloud(40)
    good, bad = as_pcd(values, "binary"), as_pcd(values, "binary").replace(b"S 40", b"S 99")
    with tarfile.open(tmp_path / "clouds.tar", "w") as tar:
        for number in range(12):
            data = bad if number in (3, 7) else good
            info = tarfile.TarInfo(f"{number:04}.pcd")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    ds = stoker.open(tmp_path / "clouds.tar")
    assert ds.fields["pcd"].media == "points"
    loader = stoker.Loader(ds, batch_size=4, bad="replace")
    batches = list(loader)
    assert sum(len(batch["pcd"]) for batch in batches) == 12
    for batch in batches:
        for one in batch["pcd"]:
            numpy.testing.assert_array_equal(one, values)
    assert sorted(one["sample"] for one in loader.quarantine) == [3, 7]
    with pytest.raises(stoker.StokerError, match="is not POINTS 99"):
        list(stoker.Loader(ds, batch_size=4))
