import copy
import multiprocessing
import os
import pickle
import threading

import numpy
import pytest
import stoker
from shard_making import sample, write_shards, write_tar

torch = pytest.importorskip("torch")


def same(got, number):
    expected = sample(number)
    numpy.testing.assert_array_equal(numpy.asarray(got["npy"]), expected["npy"])
    for name in got:
        if name != "npy":
            assert got[name] == expected[name]


def test_values_are_those_that_were_written(rich):
    ds = stoker.open(rich)
    for number in (0, 1, 19, 20, 59):
        same(ds[number], number)


def test_samples_are_torch_tensors_and_python_values(rich):
    got = stoker.open(rich)[5]
    assert type(got["npy"]) is torch.Tensor
    assert type(got["cls"]) is int
    assert type(got["txt"]) is str
    assert type(got["json"]) is dict


def test_samples_are_numpy_arrays_when_asked(rich):
    assert type(stoker.open(rich, as_="numpy")[5]["npy"]) is numpy.ndarray
    with pytest.raises(ValueError, match="as_"):
        stoker.open(rich, as_="jax")


@pytest.mark.parametrize(
    "dtype",
    [
        "bool",
        "uint8",
        "int8",
        "uint16",
        "int16",
        "uint32",
        "int32",
        "uint64",
        "int64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ],
)
@pytest.mark.parametrize("as_", ["torch", "numpy"])
def test_every_dtype_arrives_bit_for_bit(tmp_path, dtype, as_):
    array = numpy.random.default_rng(1).integers(0, 2, (3, 5)).astype(dtype)
    if array.dtype.kind in "fc":
        array[0, 0] = numpy.nan
    write_tar(tmp_path / "a.tar", [("k", {"npy": array})])
    ds = stoker.open(tmp_path / "a.tar", as_=as_)
    got = ds[0]["npy"]
    (batch,) = stoker.Loader(ds)
    for value in (numpy.asarray(got), numpy.asarray(batch["npy"])[0]):
        assert value.dtype == array.dtype
        assert value.tobytes() == array.tobytes()


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0, 2), (2, 1, 3, 1, 2)])
@pytest.mark.parametrize("as_", ["torch", "numpy"])
def test_every_shape_arrives(tmp_path, shape, as_):
    array = numpy.arange(numpy.prod(shape), dtype=numpy.int32).reshape(shape)
    write_tar(tmp_path / "a.tar", [("a", {"npy": array}), ("b", {"npy": array + 1})])
    ds = stoker.open(tmp_path / "a.tar", as_=as_)
    assert tuple(ds[1]["npy"].shape) == shape
    numpy.testing.assert_array_equal(numpy.asarray(ds[1]["npy"]), array + 1)
    (batch,) = stoker.Loader(ds, 2)
    numpy.testing.assert_array_equal(numpy.asarray(batch["npy"]), numpy.stack([array, array + 1]))


def test_fortran_order_and_big_endian_are_converted(tmp_path):
    array = numpy.arange(6, dtype=">f4").reshape(2, 3)
    write_tar(
        tmp_path / "a.tar",
        [("a", {"npy": array}), ("b", {"npy": numpy.asfortranarray(array.astype("<f4"))})],
    )
    for got in stoker.open(tmp_path / "a.tar", as_="numpy"):
        numpy.testing.assert_array_equal(got["npy"], array)
        assert got["npy"].flags.c_contiguous


def test_bfloat16_of_raw_arrays(tmp_path):
    tensor = torch.arange(8, dtype=torch.bfloat16)
    (tmp_path / "x.bin").write_bytes(tensor.view(torch.uint16).numpy().tobytes())
    options = {"format": "raw", "dtype": torch.bfloat16, "shape": (2,)}
    ds = stoker.open(tmp_path / "x.bin", **options)
    (name,) = ds.fields
    assert ds[1][name].dtype == torch.bfloat16
    assert ds[1][name].tolist() == [2.0, 3.0]
    bits = stoker.open(tmp_path / "x.bin", as_="numpy", **options)[1][name]
    assert bits.dtype == numpy.uint16


def test_positions_may_be_negative_and_of_numpy(dataset):
    same(dataset[-1], 99)
    same(dataset[numpy.int64(7)], 7)
    same(dataset[torch.tensor(7)], 7)
    for outside in (100, -101):
        with pytest.raises(IndexError):
            dataset[outside]
    with pytest.raises(TypeError):
        dataset[1.5]


def test_samples_are_copies(dataset):
    first = dataset[0]["npy"]
    first.zero_()
    same(dataset[0], 0)


def test_iteration_and_getitems_give_samples_in_order(rich):
    ds = stoker.open(rich)
    assert [s["json"]["n"] for s in ds] == list(range(60))
    assert [s["json"]["n"] for s in ds.__getitems__([5, 3, 3])] == [5, 3, 3]


@pytest.mark.parametrize(
    "cut",
    [slice(10, 20), slice(None, None, 7), slice(-5, None), slice(20, 10), slice(None, None, -1)],
)
def test_slices_are_subsets(dataset, cut):
    part = dataset[cut]
    assert isinstance(part, stoker.Dataset)
    assert part.samples.tolist() == list(range(100))[cut]
    if len(part):
        same(part[-1], list(range(100))[cut][-1])


def test_keys_and_places(dataset, shards):
    assert dataset.key(-1) == "000099"
    assert dataset.keys()[50:52] == ["000050", "000051"]
    assert dataset.find("000042") == 42
    with pytest.raises(stoker.StokerError):
        dataset.find("nope")
    path, offset, length = dataset.place(60, "cls")
    with open(path, "rb") as file:
        file.seek(offset)
        assert file.read(length) == b"0"
    assert os.path.samefile(path, shards / "shard-0001.tar")
    assert dataset.read_bytes(60, "cls") == b"0"
    with pytest.raises(KeyError, match="npy, cls"):
        dataset.place(0, "nope")


def test_split_parts_are_disjoint_complete_and_seeded(dataset):
    train, val = dataset.split([0.9, 0.1], seed=0)
    assert (len(train), len(val)) == (90, 10)
    both = numpy.concatenate([train.samples, val.samples])
    assert sorted(both.tolist()) == list(range(100))
    again, _ = dataset.split([0.9, 0.1], seed=0)
    other, _ = dataset.split([0.9, 0.1], seed=1)
    assert again.samples.tolist() == train.samples.tolist()
    assert other.samples.tolist() != train.samples.tolist()
    with pytest.raises(stoker.StokerError):
        dataset.split([0.9, 0.2])


def test_select_keeps_order_and_repeats(dataset):
    assert dataset.select([5, 3, 3, -1]).samples.tolist() == [5, 3, 3, 99]
    assert dataset.select(numpy.arange(100) % 2 == 0).samples.tolist() == list(range(0, 100, 2))
    assert len(dataset.select([])) == 0
    with pytest.raises(IndexError):
        dataset.select([100])
    with pytest.raises(IndexError):
        dataset.select(numpy.array([2**64 - 1], numpy.uint64))
    with pytest.raises(TypeError):
        dataset.select([0.5])
    with pytest.raises(ValueError, match="mask"):
        dataset.select([True, False])


def test_subsets_of_subsets_hold_the_right_samples(dataset):
    part = dataset[10:50].select([0, 2, 4, 39])[1:]
    assert part.samples.tolist() == [12, 14, 49]
    same(part[1], 14)
    assert part.key(0) == "000012"


def test_with_fields_keeps_the_subset(rich):
    part = stoker.open(rich)[10:20].with_fields(("txt",))
    assert part[0] == ("caption 10 ä",)
    assert len(part) == 10


def test_readers_in_many_threads_see_their_own_samples(dataset):
    failures = []

    def read(start):
        try:
            for i in range(start, 100, 8):
                same(dataset[i], i)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=read, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize(
    "take",
    [
        lambda ds: ds,
        lambda ds: ds[3:90:2],
        lambda ds: ds.split([0.5, 0.5], seed=3)[1],
        lambda ds: ds.select([7, 1]),
        lambda ds: ds.select(numpy.arange(50)),
        lambda ds: ds.with_fields(("cls",)),
    ],
)
def test_a_pickle_opens_the_same_samples(dataset, take):
    ds = take(dataset)
    for twin in (pickle.loads(pickle.dumps(ds)), copy.copy(ds), copy.deepcopy(ds)):
        assert twin.samples.tolist() == ds.samples.tolist()
        assert list(twin.fields) == list(ds.fields)
        assert type(twin[0]) is type(ds[0])


def test_a_pickle_of_relative_paths_opens_from_another_folder(shards, tmp_path, monkeypatch):
    monkeypatch.chdir(shards)
    text = pickle.dumps(stoker.open("shard-*.tar"))
    monkeypatch.chdir(tmp_path)
    assert len(pickle.loads(text)) == 100


def test_a_dataset_of_relative_paths_survives_a_change_of_folder(shards, tmp_path, monkeypatch):
    monkeypatch.chdir(shards.parent)
    dataset = stoker.open(shards.name, index=os.path.relpath(tmp_path / "index"))
    monkeypatch.chdir(tmp_path)
    assert len(pickle.loads(pickle.dumps(dataset))) == 100
    assert dataset.with_fields(("cls",))[3] == (3,)
    assert len(dataset.filter(lambda cls: cls == 3, field="cls")) == 10
    (index,) = tmp_path.iterdir()
    assert index.name == "index"


def test_a_pickle_of_files_that_changed_is_refused(tmp_path):
    text = pickle.dumps(stoker.open(write_shards(tmp_path, 10)))
    write_shards(tmp_path, 12)
    with pytest.raises(stoker.StokerError) as caught:
        pickle.loads(text)
    assert caught.value.status == "STALE"


def _read_in_child(ds, queue):
    queue.put([int(ds[i]["cls"]) for i in range(len(ds))])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_process_reads_the_same_samples(dataset, method):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=_read_in_child, args=(dataset[20:40], queue))
    child.start()
    assert queue.get(timeout=60) == [i % 10 for i in range(20, 40)]
    child.join()
    assert child.exitcode == 0


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_plain_torch_data_loader_takes_it(dataset, workers, method):
    loader = torch.utils.data.DataLoader(
        dataset,
        batch_size=16,
        num_workers=workers,
        multiprocessing_context=method if workers else None,
    )
    numbers = []
    for batch in loader:
        assert batch["npy"].shape[1:] == (4, 4)
        numbers += batch["cls"].tolist()
    assert numbers == [i % 10 for i in range(100)]


def test_a_bad_sample_names_itself(tmp_path):
    write_tar(tmp_path / "a.tar", [("a", {"npy": numpy.zeros(2)}), ("b", {"npy": numpy.zeros(2)})])
    from shard_making import damage

    ds = stoker.open(tmp_path / "a.tar")
    stat = os.stat(tmp_path / "a.tar")
    damage(tmp_path / "a.tar", "b", "npy")
    os.utime(tmp_path / "a.tar", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    ds = stoker.open(tmp_path / "a.tar")
    with pytest.raises(stoker.BadSampleError) as caught:
        ds[1]
    error = caught.value
    assert (error.sample, error.key, error.field) == (1, "b", "npy")
    assert error.object.endswith("a.tar")
    assert error.offset is not None
    assert len(ds[0]["npy"]) == 2


def test_a_thousand_opens_leave_nothing_open(shards, baseline):
    from conftest import open_descriptors

    for _ in range(300):
        ds = stoker.open(shards)
        ds[0]
    del ds
    assert open_descriptors() <= baseline["fds"] + 1
