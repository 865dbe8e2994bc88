"""`stoker gen tensors`: what it writes, read by numpy and tarfile."""

import os
import shutil
import subprocess
import tarfile
import time

import numpy
import pytest
from places import ROOT


def generate(stoker, out, *more, samples=12, shards=2, shape="4,5", dtype="f32", **options):
    return stoker(
        *("gen", "tensors", "-o", out, "--samples", samples, "--shards", shards),
        *("--shape", shape, "--dtype", dtype, *more),
        **options,
    )


def shards_in(folder):
    return sorted(path.name for path in folder.glob("*.tar"))


def load(folder):
    """Every array of loose files, by key."""
    return {path.stem: numpy.load(path) for path in sorted(folder.glob("*.npy"))}


def test_the_shards_are_those_of_the_issue(stoker, tmp_path):
    stoker(
        *("gen", "tensors", "-o", tmp_path, "--shards", 2, "--samples", 4),
        *("--shape", "16,112,112,3", "--dtype", "f16", "--classes", 10, "--seed", 0),
    )
    assert shards_in(tmp_path) == ["shard-0000.tar", "shard-0001.tar"]
    first = stoker.lines("ls", tmp_path, "--limit", 1)[0]
    assert first == {
        "sample": 0,
        "key": "000000",
        "fields": {
            "npy": {"object": str(tmp_path / "shard-0000.tar"), "offset": 512, "length": 1204352},
            "cls": {"object": str(tmp_path / "shard-0000.tar"), "offset": 1205760, "length": 1},
        },
    }


def test_tarfile_and_numpy_read_them(stoker, tensors):
    loose = load(tensors / "loose")
    names = []
    for path in sorted((tensors / "shards").glob("shard-*.tar")):
        with tarfile.open(path) as tar:
            for info in tar:
                names.append(info.name)
                data = tar.extractfile(info).read()
                assert data == (tensors / "loose" / info.name).read_bytes()
                assert info.isreg() and info.mtime == info.uid == info.gid == 0
    assert names == [f"{i:06d}.{field}" for i in range(37) for field in ("npy", "cls")]
    assert len(loose) == 37
    for array in loose.values():
        assert array.shape == (4, 6, 3) and array.dtype == numpy.float32
        assert numpy.isfinite(array).all() and abs(array).max() <= 3


def test_samples_are_spread_evenly_in_order(stoker, tensors):
    counts = []
    for path in sorted((tensors / "shards").glob("shard-*.tar")):
        with tarfile.open(path) as tar:
            counts.append(len(tar.getnames()) // 2)
    assert counts == [12, 12, 13]


def test_labels_are_dealt_out_evenly(stoker, tensors):
    labels = [int((tensors / "loose" / f"{i:06d}.cls").read_text()) for i in range(37)]
    counts = numpy.bincount(labels, minlength=5)
    assert counts.max() - counts.min() <= 1 and labels != sorted(labels)


def test_any_number_of_threads_makes_the_same_bytes(stoker, tmp_path):
    made = []
    for threads in (1, 2, 7):
        out = tmp_path / str(threads)
        generate(stoker, out, "--threads", threads, samples=300, shards=7, shape="3,7")
        made.append([path.read_bytes() for path in sorted(out.glob("*.tar"))])
    assert made[0] == made[1] == made[2]


def test_another_seed_makes_other_samples(stoker, tmp_path):
    for seed in (0, 1):
        generate(stoker, tmp_path / str(seed), "--seed", seed)
    assert (tmp_path / "0/shard-0000.tar").read_bytes() != (
        tmp_path / "1/shard-0000.tar"
    ).read_bytes()


def test_halves_are_the_singles_rounded_as_numpy_does(stoker, tmp_path):
    for dtype in ("f32", "f16", "f64"):
        generate(
            stoker, tmp_path / "s" / dtype, "--loose", tmp_path / dtype, dtype=dtype, shape="64,64"
        )
    single, half, double = (load(tmp_path / name) for name in ("f32", "f16", "f64"))
    for key, array in single.items():
        assert half[key].dtype == numpy.float16 and double[key].dtype == numpy.float64
        numpy.testing.assert_array_equal(half[key], array.astype(numpy.float16))
        numpy.testing.assert_array_equal(double[key], array.astype(numpy.float64))


@pytest.mark.parametrize(
    "dtype", ["u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "bool", "complex64"]
)
def test_every_type_has_values_over_its_range(stoker, tmp_path, dtype):
    generate(stoker, tmp_path / "s", "--loose", tmp_path / "l", dtype=dtype, shape="100,50")
    values = numpy.stack(list(load(tmp_path / "l").values()))
    names = {"u": "uint", "i": "int"}
    name = dtype if dtype[0] in "bc" else names[dtype[0]] + dtype[1:]
    assert values.dtype == numpy.dtype(name)
    if dtype == "bool":
        assert 0.3 < values.mean() < 0.7
    elif dtype != "complex64":
        limits = numpy.iinfo(values.dtype)
        whole = float(limits.max) - float(limits.min)
        middle = float(limits.max) / 2 + float(limits.min) / 2
        wide = values.astype(float)
        assert wide.max() - wide.min() > 0.7 * whole
        assert abs(wide.mean() - middle) < 0.1 * whole


def test_bfloats_are_the_singles_rounded(stoker, tmp_path):
    for dtype in ("f32", "bf16"):
        generate(
            stoker, tmp_path / "s" / dtype, "--loose", tmp_path / dtype, dtype=dtype, shape="64,64"
        )
    for path in (tmp_path / "f32").glob("*.npy"):
        bits = numpy.load(path).view(numpy.uint32)
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)
        stored = (tmp_path / "bf16" / path.name).read_bytes()[-rounded.nbytes :]
        numpy.testing.assert_array_equal(numpy.frombuffer(stored, numpy.uint16), rounded.ravel())


@pytest.mark.parametrize("shape", ["1", "9", "5000", "9001", "2,5000", "1,1,1,1,1,1,1,3", "3,2,1"])
def test_every_shape_is_taken(stoker, tmp_path, shape):
    generate(stoker, tmp_path / "s", "--loose", tmp_path / "l", shape=shape)
    for array in load(tmp_path / "l").values():
        assert array.shape == tuple(map(int, shape.split(",")))
        assert array.size < 5 or array.std() > 0.2


def test_a_line_can_tell_the_classes_apart_but_not_by_one_element(stoker, tmp_path):
    """The mean over a class of the spectrum's magnitude is near to its held-out samples' own."""
    generate(
        stoker, tmp_path / "s", "--loose", tmp_path / "l", "--classes", 4, samples=400,
        shape="8,24,24,3",
    )  # fmt: skip
    arrays = numpy.stack(list(load(tmp_path / "l").values()))
    labels = numpy.array([int(p.read_text()) for p in sorted((tmp_path / "l").glob("*.cls"))])
    spectra = abs(numpy.fft.fftn(arrays, axes=(1, 2, 3))).reshape(400, -1)
    means = numpy.stack([spectra[:300][labels[:300] == c].mean(0) for c in range(4)])
    guess = ((spectra[300:, None] - means) ** 2).sum(2).argmin(1)
    assert (guess == labels[300:]).mean() > 0.9
    element = arrays[:, 0, 0, 0, 0]
    spread = [element[labels == c].mean() for c in range(4)]
    assert max(spread) - min(spread) < 2 * element.std()


def test_what_is_there_is_not_replaced_without_force(stoker, tmp_path):
    generate(stoker, tmp_path, samples=20, shards=5)
    before = (tmp_path / "shard-0000.tar").read_bytes()
    done = generate(stoker, tmp_path, "--seed", 3, status=1)
    assert "--force" in done.stderr
    assert (tmp_path / "shard-0000.tar").read_bytes() == before
    generate(stoker, tmp_path, "--seed", 3, "--force")
    assert (tmp_path / "shard-0000.tar").read_bytes() != before
    assert shards_in(tmp_path) == ["shard-0000.tar", "shard-0001.tar"]


def test_loose_files_that_are_there_are_not_replaced_without_force(stoker, tmp_path):
    generate(stoker, tmp_path / "a", "--loose", tmp_path / "l", samples=20)
    generate(stoker, tmp_path / "b", "--loose", tmp_path / "l", samples=10, status=1)
    assert not (tmp_path / "b").exists()
    generate(stoker, tmp_path / "b", "--loose", tmp_path / "l", "--force", samples=10)
    assert len(os.listdir(tmp_path / "l")) == 20


def test_a_folder_that_cannot_be_made_fails_with_its_name(stoker, tmp_path):
    (tmp_path / "file").write_text("")
    done = generate(stoker, tmp_path / "file" / "out", status=1)
    assert str(tmp_path / "file") in done.stderr


def test_its_result_is_told_as_json(stoker, tmp_path):
    told = stoker.json(
        *("gen", "tensors", "-o", tmp_path, "--samples", 6, "--shards", 2, "--shape", "3")
    )
    written = sum(path.stat().st_size for path in tmp_path.glob("*.tar"))
    assert told == {"out": str(tmp_path), "samples": 6, "shards": 2, "bytes": written}


def test_the_package_writes_a_table_beside_the_shards(stoker, tmp_path):
    package = ROOT / ".venv" / "bin" / "stoker"
    parquet = pytest.importorskip("pyarrow.parquet")
    if not package.exists():
        pytest.skip("the package is not installed in .venv")
    run = [
        *("gen", "tensors", "--samples", "12", "--shards", "2", "--shape", "4,5"),
        *("--dtype", "f16", "--loose", str(tmp_path / "loose"), "-o", str(tmp_path / "out")),
    ]
    subprocess.run([package, *run], check=True, timeout=60, env=stoker.environment)
    table = parquet.read_table(tmp_path / "out" / "metadata.parquet").to_pydict()
    keys = [f"{i:06d}" for i in range(12)]
    assert table["key"] == keys
    assert table["shard"] == ["shard-0000.tar"] * 6 + ["shard-0001.tar"] * 6
    assert table["label"] == [int((tmp_path / "loose" / f"{k}.cls").read_text()) for k in keys]
    assert table["shape"] == ["4,5"] * 12 and table["dtype"] == ["float16"] * 12
    assert table["bytes"] == [40] * 12
    shutil.rmtree(tmp_path / "loose")
    stoker(*run[:-1], tmp_path / "plain")
    for name in shards_in(tmp_path / "out"):
        same = (tmp_path / "plain" / name).read_bytes()
        assert (tmp_path / "out" / name).read_bytes() == same


def test_it_is_not_a_hundred_times_slower_than_it_was(stoker, tmp_path):
    """Fifty samples take a tenth of a second; no machine is so busy that they take twenty."""
    begun = time.monotonic()
    stoker(
        *("gen", "tensors", "-o", tmp_path, "--shards", 2, "--samples", 50),
        *("--shape", "16,112,112,3", "--dtype", "f16"),
    )
    assert time.monotonic() - begun < 20
