import json
import logging
import os
import subprocess
import sys

import numpy
import pytest
import stoker
from shard_making import damage, sample, write_shards, write_tar
from stoker import _core

torch = pytest.importorskip("torch")


def numbers(loader):
    """The samples of one epoch, batch by batch."""
    return [batch.samples.tolist() for batch in loader]


def flat(batches):
    return [n for batch in batches for n in batch]


def check(batch, where=None):
    for i, number in enumerate(batch.samples.tolist()):
        expected = sample(number)
        numpy.testing.assert_array_equal(numpy.asarray(batch["npy"][i]), expected["npy"])
        assert int(batch["cls"][i]) == expected["cls"]


def test_batches_hold_what_was_written(dataset):
    for batch in stoker.Loader(dataset, batch_size=32, shuffle=True):
        assert type(batch["npy"]) is torch.Tensor
        assert batch["cls"].dtype == torch.int64
        check(batch)


def test_numpy_arrays_when_asked(dataset):
    for batch in stoker.Loader(dataset, batch_size=32, as_="numpy"):
        assert type(batch["npy"]) is numpy.ndarray
        assert batch["npy"].flags.writeable
        check(batch)


def test_the_default_is_one_sample_in_order(dataset):
    loader = stoker.Loader(dataset)
    assert len(loader) == 100
    assert numbers(loader) == [[n] for n in range(100)]


def test_a_path_or_a_list_will_do_for_a_dataset(shards):
    assert len(stoker.Loader(shards, 10)) == 10
    assert len(stoker.Loader(str(shards / "shard-0000.tar"), 10)) == 5
    assert len(stoker.Loader([shards / "shard-0000.tar"], 10, fields=("cls",))) == 5


def test_shuffling_is_a_permutation_that_changes_with_seed_and_epoch(dataset):
    loader = stoker.Loader(dataset, 10, shuffle=True, seed=1)
    first, second = flat(numbers(loader)), flat(numbers(loader))
    other = flat(numbers(stoker.Loader(dataset, 10, shuffle=True, seed=2)))
    for order in (first, second, other):
        assert sorted(order) == list(range(100))
    assert first != second != other
    assert first != list(range(100))
    assert flat(numbers(stoker.Loader(dataset, 10, shuffle=True, seed=1))) == first


@pytest.mark.parametrize("order", ["sequential", "global", "local"])
def test_each_order_gives_every_sample_once(dataset, order):
    assert sorted(flat(numbers(stoker.Loader(dataset, 7, order=order)))) == list(range(100))


def test_text_json_and_bytes_come_as_lists(rich):
    ds = stoker.open(rich, fields={"txt": None, "json": None, "npy": "bytes"})
    for batch in stoker.Loader(ds, 16, shuffle=True):
        wanted = [sample(n) for n in batch.samples]
        assert batch["txt"] == [w["txt"] for w in wanted]
        assert batch["json"] == [w["json"] for w in wanted]
        assert all(type(value) is bytes for value in batch["npy"])


def test_a_tuple_of_fields_gives_tuples(dataset):
    for x, y in stoker.Loader(dataset, 50, fields=("npy", "cls")):
        assert x.shape == (50, 4, 4)
        assert y.shape == (50,)


def test_a_batch_knows_its_samples_epoch_and_step(dataset):
    loader = stoker.Loader(dataset, 40)
    list(loader)
    batches = list(loader)
    assert [batch.epoch for batch in batches] == [1, 1, 1]
    assert [batch.step for batch in batches] == [0, 1, 2]
    assert batches[2].samples.tolist() == list(range(80, 100))


@pytest.mark.parametrize(
    ("last", "lengths"), [("short", [40, 40, 20]), ("mask", [40, 40, 40]), ("drop", [40, 40])]
)
def test_what_happens_to_the_last_batch(dataset, last, lengths):
    loader = stoker.Loader(dataset, 40, last=last)
    batches = list(loader)
    assert [len(batch["cls"]) for batch in batches] == lengths
    assert len(loader) == len(lengths)
    assert all(("mask" in batch) == (last == "mask") for batch in batches)
    if last == "mask":
        assert batches[2]["mask"].dtype == torch.bool
        assert batches[2]["mask"].tolist() == [True] * 20 + [False] * 20
        assert batches[2].samples.tolist()[18:22] == [98, 99, -1, -1]


def test_drop_last_is_an_alias(dataset):
    assert len(stoker.Loader(dataset, 40, drop_last=True)) == 2
    with pytest.raises(ValueError, match="two things"):
        stoker.Loader(dataset, 40, drop_last=True, last="mask")


def test_the_mask_comes_last_in_a_tuple(dataset):
    *_, (x, y, mask) = stoker.Loader(dataset, 40, fields=("npy", "cls"), last="mask")
    assert mask.sum() == 20
    assert len(x) == len(y) == 40


def test_masked_places_of_lists_are_none(rich):
    *_, batch = stoker.Loader(rich, 40, fields=["txt", "json"], last="mask")
    assert batch["txt"][19] is not None
    assert batch["txt"][20:] == [None] * 20
    assert batch["json"][20:] == [None] * 20


@pytest.fixture
def ragged(tmp_path):
    arrays = [numpy.arange(2 * n, dtype=numpy.float32).reshape(n, 2) for n in (3, 1, 2, 3)]
    write_tar(tmp_path / "a.tar", [(f"{i}", {"npy": a}) for i, a in enumerate(arrays)])
    return tmp_path / "a.tar", arrays


def test_unequal_shapes_are_an_error_that_names_them(ragged):
    with pytest.raises(stoker.BadSampleError) as caught:
        list(stoker.Loader(ragged[0], 4))
    assert caught.value.status == "SHAPE"
    assert caught.value.sample == 1
    assert caught.value.remedy


def test_unequal_shapes_padded(ragged):
    path, arrays = ragged
    (batch,) = stoker.Loader(path, 4, ragged="pad")
    assert batch["npy"].shape == (4, 3, 2)
    assert batch["npy_lengths"].tolist() == [3, 1, 2, 3]
    for i, array in enumerate(arrays):
        numpy.testing.assert_array_equal(batch["npy"][i, : len(array)], array)
        assert not batch["npy"][i, len(array) :].any()
    ((tensor, lengths),) = next(iter(stoker.Loader(path, 4, ragged="pad", fields=("npy",))))
    assert lengths.tolist() == [3, 1, 2, 3]
    assert tensor.shape == (4, 3, 2)


def test_unequal_shapes_as_a_list(ragged):
    path, arrays = ragged
    (batch,) = stoker.Loader(path, 4, ragged="list")
    assert [tuple(tensor.shape) for tensor in batch["npy"]] == [(3, 2), (1, 2), (2, 2), (3, 2)]
    for tensor, array in zip(batch["npy"], arrays, strict=True):
        numpy.testing.assert_array_equal(tensor, array)


def test_optional_fields_tell_which_are_there(tmp_path):
    write_tar(
        tmp_path / "a.tar",
        [("a", {"npy": numpy.ones(2), "txt": "t", "cls": 4}), ("b", {"json": 1})],
    )
    names = {"npy?": None, "txt?": None, "cls?": None, "json?": None}
    ds = stoker.open(tmp_path / "a.tar", fields=list(names))
    assert all(field.optional for field in ds.fields.values())
    (batch,) = stoker.Loader(ds, 2)
    npy, txt, cls, parsed = ds.fields
    assert batch[npy + "_present"].tolist() == [True, False]
    assert batch[npy].tolist() == [[1, 1], [0, 0]]
    assert batch[cls + "_present"].tolist() == [True, False]
    assert batch[txt] == ["t", None]
    assert batch[parsed] == [None, 1]


def test_weights_draw_with_replacement(dataset):
    weights = numpy.zeros(100)
    weights[[3, 7]] = 1, 3
    drawn = flat(numbers(stoker.Loader(dataset, 10, weights=weights)))
    assert len(drawn) == 100
    assert set(drawn) == {3, 7}
    assert drawn.count(7) > drawn.count(3)
    with pytest.raises(ValueError, match="weights has 3"):
        stoker.Loader(dataset, weights=[1, 2, 3])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"batch_size": 0}, "at least one"),
        ({"batch_size": -3}, "at least one"),
        ({"batch_size": 2, "global_batch_size": 4}, "not both"),
        ({"order": "random"}, "order is 'random'; it may be"),
        ({"last": "keep"}, "last is 'keep'"),
        ({"bad": "skip"}, "bad is 'skip'"),
        ({"ragged": "crop"}, "ragged is 'crop'"),
        ({"io": "aio"}, "io is 'aio'"),
        ({"memory": "lots"}, "not a size"),
        ({"memory": -1}, "not a size"),
        ({"seed": -1}, "seed is -1"),
        ({"threads": -1}, "threads is -1"),
        ({"map_threads": -1}, "map_threads is -1"),
        ({"rank": 0}, "go together"),
        ({"rank": 2, "world_size": 2}, "not one of 2"),
        ({"as_": "jax"}, "as_ is 'jax'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_in_words(dataset, arguments, words):
    with pytest.raises(ValueError, match=words):
        stoker.Loader(dataset, **arguments)


def test_callables_must_be_callable(dataset):
    with pytest.raises(TypeError, match="sample_map"):
        stoker.Loader(dataset, sample_map=3)


@pytest.mark.parametrize(
    ("text", "size"),
    [("4096", 4096), ("1KiB", 1024), ("2GiB", 2**31), ("1.5 MB", 1_500_000), ("3g", 3 * 10**9)],
)
def test_sizes_are_read_as_people_write_them(text, size):
    from stoker._options import parse_size

    assert parse_size(text) == size
    assert parse_size(size) == size


@pytest.mark.skipif(_core.device_count() > 0, reason="there is a GPU")
def test_a_device_other_than_the_cpu_is_refused_and_auto_is_the_cpu(dataset, caplog):
    for device in ("cuda", "cuda:1", torch.device("cuda"), 0):
        with pytest.raises(stoker.StokerError, match=r"GPU|CUDA|NVIDIA") as caught:
            stoker.Loader(dataset, device=device)
        assert caught.value.status == "UNSUPPORTED"
        assert caught.value.remedy
    stoker.Loader(dataset, device=torch.device("cpu"))
    with caplog.at_level(logging.WARNING, "stoker"):
        loader = stoker.Loader(dataset, 100, device="auto")
    assert len(caplog.records) == 1
    assert "CPU" in caplog.text
    assert next(iter(loader))["npy"].device.type == "cpu"


def test_ranks_come_from_the_environment(dataset, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    loader = stoker.Loader(dataset, 5)
    assert (loader.rank, loader.world_size, len(loader)) == (1, 4, 5)
    assert loader.last == "mask"
    monkeypatch.setenv("RANK", "one")
    with pytest.raises(ValueError, match="RANK='one'"):
        stoker.Loader(dataset, 5)
    assert stoker.Loader(dataset, 5, rank=0, world_size=1).world_size == 1


def test_torch_distributed_goes_before_the_environment(dataset, monkeypatch, tmp_path):
    monkeypatch.setenv("RANK", "7")
    monkeypatch.setenv("WORLD_SIZE", "8")
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1
    )
    try:
        assert stoker.Loader(dataset, 5).world_size == 1
    finally:
        torch.distributed.destroy_process_group()


def test_a_global_batch_is_the_same_on_any_number_of_ranks(dataset):
    def steps(world):
        loaders = [
            stoker.Loader(dataset, global_batch_size=12, shuffle=True, rank=r, world_size=world)
            for r in range(world)
        ]
        shares = zip(*(numbers(loader) for loader in loaders), strict=True)
        return [[n for share in step for n in share if n >= 0] for step in shares]

    alone = [sorted(step) for step in steps(1)]
    for world in (2, 3, 4):
        assert [sorted(step) for step in steps(world)] == alone


def test_a_bad_sample_raises_where_it_lies(tmp_path):
    folder = write_shards(tmp_path, 20, shards=1)
    damage(folder / "shard-0000.tar", "000013", "npy")
    loader = stoker.Loader(folder, 4)
    iterator = iter(loader)
    for _ in range(3):
        next(iterator)
    state = loader.state_dict()
    with pytest.raises(stoker.BadSampleError) as caught:
        next(iterator)
    error = caught.value
    assert (error.sample, error.key, error.field) == (13, "000013", "npy")
    assert error.object.endswith("shard-0000.tar")
    assert loader.state_dict() == state
    assert list(iterator) == []


def test_bad_samples_are_replaced_and_listed(tmp_path):
    folder = write_shards(tmp_path, 20, shards=1)
    damage(folder / "shard-0000.tar", "000013", "npy")
    loader = stoker.Loader(folder, 4, bad="replace")
    drawn = flat(numbers(loader))
    assert len(drawn) == 20
    (listed,) = loader.quarantine
    assert (listed["sample"], listed["key"], listed["epoch"]) == (13, "000013", 0)
    assert listed["substitute"] in range(20)
    assert listed["object"].endswith("shard-0000.tar")
    assert listed["offset"] is not None
    assert listed["reason"]
    assert loader.stats()["bad"] == 1
    loader.close()
    assert loader.quarantine == [listed]
    assert flat(numbers(stoker.Loader(folder, 4, bad="replace"))) == drawn


def test_stats_count_what_was_delivered(dataset):
    loader = stoker.Loader(dataset, 10, threads=1, io="pread")
    assert loader.stats()["samples"] == 0
    list(loader)
    stats = loader.stats()
    assert (stats["samples"], stats["batches"], stats["bad"]) == (100, 10, 0)
    assert stats["bytes"] >= 100 * 64
    assert set(stats["waits"]) == {"fetch", "fill", "ship", "consumer", "map"}
    assert stats["threads"] == 1
    assert stats["io"] == "pread"
    assert 0 < stats["held_bytes"] <= stats["peak_bytes"]
    assert stats["samples_per_second"] > 0
    loader.close()
    assert loader.stats()["samples"] == 100


@pytest.mark.parametrize("io", ["auto", "pread", "io_uring"])
def test_each_way_to_read_gives_the_same(dataset, io):
    try:
        loader = stoker.Loader(dataset, 32, io=io, shuffle=True)
    except stoker.StokerError as error:
        if io == "io_uring" and error.status in ("UNSUPPORTED", "RESOURCE"):
            pytest.skip(str(error))
        raise
    for batch in loader:
        check(batch)


def test_a_trace_is_written_on_close(dataset, tmp_path):
    with stoker.Loader(dataset, 10, trace=tmp_path / "trace.json") as loader:
        list(loader)
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert trace["traceEvents"] if isinstance(trace, dict) else trace


def test_a_closed_loader_says_so(dataset):
    with stoker.Loader(dataset, 10) as loader:
        iterator = iter(loader)
        next(iterator)
    for use in (lambda: iter(loader), lambda: len(loader), lambda: next(iterator)):
        with pytest.raises(RuntimeError, match=r"closed|ended"):
            use()
    loader.close()
    assert loader.state_dict()["position"] == 10


def test_torch_is_not_needed(shards, tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('there is no torch')")
    script = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import importlib.util
import stoker
import stoker._arrays
stoker._arrays.has_torch = lambda: False
batch = next(iter(stoker.Loader({str(shards)!r}, 10)))
print(type(batch["npy"]).__name__, "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["ndarray", "False"], done.stderr


def test_importing_stoker_does_not_import_torch(run_python):
    done = run_python("import sys, stoker; print('torch' in sys.modules)")
    assert done.stdout.strip() == "False"


def test_a_loader_cannot_be_pickled_and_says_why(dataset):
    import pickle

    with pytest.raises(TypeError, match="state_dict"):
        pickle.dumps(stoker.Loader(dataset))


def test_a_field_called_mask_does_not_hide_the_mask(tmp_path):
    write_tar(tmp_path / "a.tar", [("a", {"mask": b"m"})])
    with pytest.raises(ValueError, match="mask"):
        stoker.Loader(tmp_path / "a.tar", last="mask")
    value, mask = next(iter(stoker.Loader(tmp_path / "a.tar", last="mask", fields=("mask",))))
    assert (value, mask.tolist()) == ([b"m"], [True])


def test_shards_of_webdataset(tmp_path):
    webdataset = pytest.importorskip("webdataset")
    with webdataset.ShardWriter(str(tmp_path / "w-%04d.tar"), maxcount=7, verbose=0) as writer:
        for n in range(20):
            made = sample(n)
            writer.write(
                {
                    "__key__": f"{n:04d}",
                    "x.npy": made["npy"],
                    "cls": made["cls"],
                    "json": made["json"],
                    "txt": made["txt"],
                }
            )
    ds = stoker.open(tmp_path / "w-*.tar")
    assert len(ds) == 20
    for batch in stoker.Loader(ds, 6, shuffle=True):
        for i, n in enumerate(batch.samples.tolist()):
            made = sample(n)
            numpy.testing.assert_array_equal(batch["x.npy"][i], made["npy"])
            assert batch["cls"][i] == made["cls"]
            assert batch["json"][i] == made["json"]
            assert batch["txt"][i] == made["txt"]


def test_the_library_is_one_file_of_the_stable_abi():
    assert stoker._core.__file__.endswith(".abi3.so")
    assert os.path.dirname(stoker._core.__file__) == os.path.dirname(stoker.__file__)
