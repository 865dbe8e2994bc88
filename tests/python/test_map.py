"""map= and sample_map=: run ahead, in order; FAULTS 95."""

import gc
import logging
import threading
import time
import weakref

import numpy
import pytest
import stoker
from shard_making import damage, sample, write_shards, write_tar
from stoker._map_stage import sample_generator
from stoker.errors import BusyError

torch = pytest.importorskip("torch")


def numbers(loader):
    return [batch.samples.tolist() for batch in loader]


def test_map_is_called_on_each_batch_and_order_is_kept(dataset):
    def slow_first(batch):
        if batch.step == 0:
            time.sleep(0.2)
        batch["double"] = batch["npy"] * 2
        return batch

    plain = list(stoker.Loader(dataset, 10, shuffle=True))
    mapped = list(stoker.Loader(dataset, 10, shuffle=True, map=slow_first, map_threads=4))
    for one, two in zip(plain, mapped, strict=True):
        assert one.samples.tolist() == two.samples.tolist()
        assert torch.equal(two["double"], one["npy"] * 2)


def test_map_may_return_anything_and_a_plain_dict_keeps_the_samples(dataset):
    loader = stoker.Loader(dataset, 50, map=lambda batch: {"y": batch["cls"] + 1})
    for batch in loader:
        assert batch["y"][0] == batch.samples[0] % 10 + 1
    pairs = list(stoker.Loader(dataset, 50, map=lambda batch: (batch["npy"], batch["cls"])))
    assert [type(pair) for pair in pairs] == [tuple, tuple]


def test_map_runs_ahead_but_not_without_bound(dataset):
    calls = []
    loader = stoker.Loader(dataset, 1, map=lambda batch: calls.append(1) or batch, map_threads=2)
    iterator = iter(loader)
    next(iterator)
    time.sleep(0.3)
    assert 2 <= len(calls) <= 4
    loader.close()


def test_map_runs_in_other_threads(dataset):
    names = set()
    list(stoker.Loader(dataset, 5, map=lambda b: names.add(threading.current_thread().name) or b))
    assert names
    assert threading.current_thread().name not in names


def test_sample_map_sees_samples_and_its_results_make_the_batch(rich):
    def change(one):
        assert type(one["cls"]) is int
        assert type(one["txt"]) is str
        return {
            "x": one["npy"] + one["cls"],
            "n": one["json"]["n"],
            "half": one["cls"] / 2,
            "words": one["txt"].split(),
        }

    for batch in stoker.Loader(rich, 16, shuffle=True, sample_map=change):
        assert batch["n"].dtype == torch.int64
        for i, number in enumerate(batch.samples.tolist()):
            made = sample(number)
            numpy.testing.assert_array_equal(batch["x"][i], made["npy"] + made["cls"])
            assert batch["n"][i] == number
            assert batch["half"][i] == made["cls"] / 2
            assert batch["words"][i] == made["txt"].split()


@pytest.mark.parametrize("as_", ["torch", "numpy"])
def test_a_sample_map_that_changes_nothing_gives_the_same_batches(rich, as_):
    plain = list(stoker.Loader(rich, 16, as_=as_))
    mapped = list(stoker.Loader(rich, 16, as_=as_, sample_map=lambda one: one))
    for one, two in zip(plain, mapped, strict=True):
        assert list(one) == list(two)
        for name in one:
            assert type(one[name]) is type(two[name])
            if isinstance(one[name], list):
                assert one[name] == two[name]
            else:
                assert one[name].dtype == two[name].dtype
                numpy.testing.assert_array_equal(numpy.asarray(one[name]), numpy.asarray(two[name]))


def test_sample_map_of_tuples_and_of_single_values(dataset):
    loader = stoker.Loader(
        dataset, 10, fields=("npy", "cls"), sample_map=lambda one: (one[0].sum(), one[1])
    )
    x, y = next(iter(loader))
    assert x.shape == y.shape == (10,)
    value = next(iter(stoker.Loader(dataset, 10, sample_map=lambda one: one["cls"])))
    assert value.tolist() == list(range(10))


def test_both_maps_together(dataset):
    loader = stoker.Loader(
        dataset,
        10,
        sample_map=lambda one: {"x": one["npy"].flatten()},
        map=lambda batch: batch["x"].mean(dim=1),
    )
    assert next(iter(loader)).shape == (10,)


def test_random_numbers_belong_to_the_sample_not_to_the_thread_or_batch(dataset):
    def draw(one, rng):
        return {"r": int(rng.integers(1 << 30)), "cls": one["cls"]}

    def by_sample(epoch=0, **options):
        loader = stoker.Loader(dataset, sample_map=draw, shuffle=True, **options)
        loader.set_epoch(epoch)
        return {
            n: r
            for batch in loader
            for n, r in zip(batch.samples.tolist(), batch["r"].tolist(), strict=True)
            if n >= 0
        }

    one = by_sample(batch_size=7, map_threads=1)
    assert one == by_sample(batch_size=32, map_threads=4)
    assert len(set(one.values())) > 95
    assert one != by_sample(batch_size=7, seed=1)
    assert one != by_sample(batch_size=7, epoch=1)
    shares = [by_sample(batch_size=5, rank=r, world_size=2) for r in range(2)]
    assert one == shares[0] | shares[1]


def test_masked_places_are_zeros_and_none(rich):
    def change(one):
        return {"x": one["npy"] + 1, "t": one["txt"]}

    *_, batch = stoker.Loader(rich, 40, last="mask", sample_map=change)
    assert batch["mask"].tolist() == [True] * 20 + [False] * 20
    assert batch["x"].shape == (40, 4, 4)
    assert not batch["x"][20:].any()
    assert batch["t"][20:] == [None] * 20


def test_a_batch_of_masked_places_only_has_the_right_shapes(rich):
    def change(one):
        return {"x": one["npy"] + 1, "t": one["txt"]}

    one = stoker.open(rich)[:1]
    loaders = [stoker.Loader(one, 2, rank=r, world_size=2, sample_map=change) for r in range(2)]
    batches = [batch for loader in loaders for batch in loader]
    (empty,) = (batch for batch in batches if not batch["mask"].any())
    assert len(batches) == 2
    assert empty["x"].shape == (2, 4, 4)
    assert not empty["x"].any()
    assert empty["t"] == [None, None]


def test_optional_and_ragged_values_reach_sample_map_as_they_are(tmp_path):
    write_tar(
        tmp_path / "a.tar",
        [("a", {"npy": numpy.ones((3, 2)), "cls": 1}), ("b", {"npy": numpy.ones((1, 2))})],
    )
    seen = []
    fields = ["npy", "cls?"]
    for layout in ("pad", "list"):
        loader = stoker.Loader(
            tmp_path / "a.tar",
            2,
            fields=fields,
            ragged=layout,
            sample_map=lambda one: seen.append(one) or len(one["npy"]),
        )
        assert next(iter(loader)).tolist() == [3, 1]
    assert [list(one.values())[1] for one in seen] == [1, None, 1, None]


def test_95_an_exception_of_sample_map_names_the_stage_and_the_sample(dataset):
    def fail(one):
        if one["cls"] == 7:
            raise ZeroDivisionError("by hand")
        return one

    loader = stoker.Loader(dataset, 5, sample_map=fail)
    iterator = iter(loader)
    next(iterator)
    with pytest.raises(stoker.MapError) as caught:
        next(iterator)
    error = caught.value
    assert isinstance(error, stoker.StokerError)
    assert (error.stage, error.sample) == ("sample_map", 7)
    assert "sample_map raised ZeroDivisionError: by hand on sample 7" in str(error)
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert loader.state_dict()["position"] == 5
    assert list(iterator) == []


def test_95_an_exception_of_map_names_the_stage_and_the_step(dataset):
    def fail(batch):
        if batch.step == 2:
            raise KeyError("x")
        return batch

    iterator = iter(stoker.Loader(dataset, 5, map=fail))
    next(iterator)
    next(iterator)
    with pytest.raises(stoker.MapError, match=r"map raised KeyError.* on step 2") as caught:
        next(iterator)
    assert caught.value.stage == "map"


def test_95_unequal_shapes_name_the_stage_and_both(dataset):
    def grow(one):
        return torch.zeros(one["cls"] + 1)

    with pytest.raises(stoker.MapError) as caught:
        next(iter(stoker.Loader(dataset, 5, sample_map=grow)))
    words = str(caught.value)
    assert caught.value.stage == "sample_map"
    assert "(1,)" in words
    assert "(2,)" in words
    assert "sample 0" in words
    assert "sample 1" in words


def test_95_results_of_unequal_form_are_an_error(dataset):
    def forget(one):
        return {"x": 1} if one["cls"] else {"y": 1}

    with pytest.raises(stoker.MapError, match="sample_map"):
        next(iter(stoker.Loader(dataset, 5, sample_map=forget)))


def test_95_nan_that_a_callable_makes_names_the_stage_and_the_sample(dataset):
    def spoil(one):
        return {"x": one["npy"] / (0.0 if one["cls"] == 3 else 1.0) * 0, "cls": one["cls"]}

    with pytest.raises(stoker.MapError, match="sample_map returned NaN in x on sample 3") as caught:
        next(iter(stoker.Loader(dataset, 5, sample_map=spoil)))
    assert (caught.value.stage, caught.value.sample) == ("sample_map", 3)
    assert 'map_nan="pass"' in str(caught.value)
    for as_ in ("torch", "numpy"):
        loader = stoker.Loader(
            dataset, 5, as_=as_, map=lambda batch: (batch["npy"] * float("nan"),)
        )
        with pytest.raises(stoker.MapError, match="map returned NaN in item 0 on step 0") as caught:
            next(iter(loader))
        assert caught.value.stage == "map"
    with pytest.raises(stoker.MapError, match="NaN in its result"):
        next(iter(stoker.Loader(dataset, 5, sample_map=lambda one: float("nan"))))


def test_95_nan_passes_where_it_is_meant_and_where_it_is_handed_on(dataset, tmp_path):
    loader = stoker.Loader(
        dataset, 5, sample_map=lambda one: one["npy"] * float("nan"), map_nan="pass"
    )
    assert next(iter(loader)).isnan().all()
    write_tar(tmp_path / "a.tar", [("a", {"npy": numpy.full(3, numpy.nan)})])
    for option in ("map", "sample_map"):
        loader = stoker.Loader(tmp_path / "a.tar", 1, **{option: lambda one: {"x": one["npy"]}})
        assert next(iter(loader))["x"].isnan().all()
    with pytest.raises(ValueError, match="map_nan is 'maybe'"):
        stoker.Loader(dataset, 5, map=lambda batch: batch, map_nan="maybe")


@pytest.mark.alone
def test_95_a_callable_that_hangs_is_told_and_closing_does_not_wait_for_it(dataset, caplog):
    go = threading.Event()
    loader = stoker.Loader(
        dataset, 5, sample_map=lambda one: go.wait(60) or one, stall_seconds=0.3, map_timeout=1
    )
    with caplog.at_level(logging.WARNING, "stoker"):
        with pytest.raises(stoker.MapError, match=r"sample_map on sample .* has not returned"):
            next(iter(loader))
    assert "waiting for sample_map on sample" in caplog.text
    began = time.monotonic()
    loader.close()
    assert time.monotonic() - began < 3
    go.set()


def test_a_bad_sample_surfaces_at_its_batch(tmp_path):
    from shard_making import damage, write_shards

    folder = write_shards(tmp_path, 20, shards=1)
    damage(folder / "shard-0000.tar", "000013", "npy")
    iterator = iter(stoker.Loader(folder, 4, map=lambda batch: batch))
    for _ in range(3):
        next(iterator)
    with pytest.raises(stoker.BadSampleError) as caught:
        next(iterator)
    assert caught.value.sample == 13


def test_90_a_mapped_iterator_used_from_two_threads_is_refused(dataset):
    go = threading.Event()
    iterator = iter(stoker.Loader(dataset, 5, map=lambda batch: go.wait(30) and batch))
    got = []
    thread = threading.Thread(target=lambda: got.append(next(iterator)))
    thread.start()
    time.sleep(0.3)
    with pytest.raises(RuntimeError, match="another thread"):
        next(iterator)
    go.set()
    thread.join()
    assert len(got) == 1


def map_threads():
    return {thread for thread in threading.enumerate() if "stoker-map" in thread.name}


def test_epochs_follow_each_other_and_threads_end(dataset):
    before = map_threads()
    loader = stoker.Loader(dataset, 10, shuffle=True, map=lambda batch: batch)
    plain = stoker.Loader(dataset, 10, shuffle=True)
    for _ in range(3):
        assert numbers(loader) == numbers(plain)
    loader.close()
    assert map_threads() == before


def test_a_break_ends_the_threads_of_the_map(dataset):
    before = map_threads()
    loader = stoker.Loader(dataset, 10, map=lambda batch: batch)
    for _ in loader:
        break
    assert map_threads() == before
    assert next(iter(loader)).epoch == 1


@pytest.mark.parametrize("option", ["map", "sample_map"])
def test_95_a_callable_that_forgets_its_return_is_an_error(dataset, option):
    """None once ended the epoch without a word."""
    loader = stoker.Loader(dataset, 10, **{option: lambda one: None})
    with pytest.raises(stoker.MapError, match="returned None") as caught:
        list(loader)
    assert caught.value.stage == option
    assert caught.value.remedy in str(caught.value)


@pytest.mark.parametrize("last", ["short", "mask"])
def test_a_share_without_samples_has_the_form_of_the_others(dataset, last):
    loaders = [
        stoker.Loader(
            dataset[:1],
            2,
            rank=rank,
            world_size=2,
            last=last,
            sample_map=lambda one: (one["npy"][0].double(), one["cls"], "word"),
            map=lambda batch: batch[:3],
        )
        for rank in range(2)
    ]
    empty, full = sorted((next(iter(loader)) for loader in loaders), key=lambda b: b[0].any())
    places = 0 if last == "short" else 2
    assert empty[0].shape == (places, 4)
    assert empty[0].dtype == full[0].dtype == torch.float64
    assert empty[1].tolist() == [0] * places
    assert empty[2] == [None] * places


def test_a_share_without_samples_needs_no_first_sample(tmp_path):
    """It is shaped after a sample that can be read, in the loader's form."""
    folder = write_shards(tmp_path, 3, shards=1)
    damage(folder / "shard-0000.tar", "000000", "npy")
    dataset = stoker.open(folder)
    for rank in range(4):
        loader = stoker.Loader(
            dataset,
            2,
            rank=rank,
            world_size=4,
            bad="replace",
            as_="numpy",
            sample_map=lambda one: {"x": numpy.flip(one["npy"], 0)},
        )
        assert [batch["x"].shape for batch in loader] == [(2, 4, 4)]


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_arrays_beside_none_are_an_error_whichever_comes_first(tmp_path, order):
    write_tar(tmp_path / "a.tar", [("a", {"npy": numpy.ones(2), "cls": 1}), ("b", {"cls": 2})])
    dataset = stoker.open(tmp_path / "a.tar").select(order)
    with pytest.raises(stoker.MapError, match="NoneType"):
        list(stoker.Loader(dataset, 2, sample_map=lambda one: one))


@pytest.mark.filterwarnings("error")
def test_results_in_any_layout_make_a_batch(dataset):
    """Reversed, read-only and big-endian arrays, tensors where arrays are asked for, subclasses."""

    class Picture(torch.Tensor):
        pass

    def change(one):
        x = one["npy"].numpy()
        return {
            "reversed": x[::-1],
            "frozen": numpy.frombuffer(x.tobytes(), x.dtype),
            "foreign": x.astype(">f4"),
            "picture": one["npy"].as_subclass(Picture),
            "complex": complex(one["cls"], 1),
            "name": numpy.str_("a"),
        }

    plain = next(iter(stoker.Loader(dataset, 4)))
    batch = next(iter(stoker.Loader(dataset, 4, sample_map=change)))
    assert torch.equal(batch["reversed"], plain["npy"].flip(1))
    assert torch.equal(batch["frozen"], plain["npy"].reshape(4, 16))
    assert torch.equal(batch["foreign"], plain["npy"])
    assert torch.equal(batch["picture"], plain["npy"])
    assert batch["complex"].tolist() == [0 + 1j, 1 + 1j, 2 + 1j, 3 + 1j]
    assert batch["name"] == ["a"] * 4

    arrays = stoker.Loader(dataset, 4, as_="numpy", sample_map=lambda one: torch.arange(3))
    assert numpy.array_equal(next(iter(arrays)), [[0, 1, 2]] * 4)


def test_random_numbers_are_those_of_philox(dataset):
    """A change of them would change every user's augmentations."""
    for seed, epoch, number in ((0, 0, 0), (2**63 - 1, 7, 2**40)):
        key = numpy.array([seed, epoch], numpy.uint64)
        bits = numpy.random.Philox(key=key, counter=[0, 0, 0, number])
        wanted = numpy.random.Generator(bits).random(9)
        assert (sample_generator(seed, epoch, number).random(9) == wanted).all()


def test_a_mapped_loader_that_is_dropped_is_gone_at_once(dataset):
    """Without waiting for the garbage collector; in a cycle, with it."""
    before = map_threads()
    gc.collect()
    gc.disable()
    try:
        loader = stoker.Loader(dataset, 10, map=lambda batch: batch)
        iterator = iter(loader)
        next(iterator)
        watched = weakref.ref(loader)
        del loader, iterator
        assert watched() is None
        assert map_threads() == before
    finally:
        gc.enable()
    holder = {"loader": stoker.Loader(dataset, 10, map=lambda batch: batch)}
    holder["iterator"] = iter(holder["loader"])
    next(holder["iterator"])
    holder["self"] = holder
    del holder
    gc.collect()
    assert map_threads() == before


def test_90_a_mapped_iterator_shared_by_threads_loses_nothing_and_ends_for_all(dataset):
    """Each turn goes to one of them; the first and the last turn too."""
    for _ in range(20):
        iterator = iter(stoker.Loader(dataset, 1, map=lambda batch: batch))
        start = threading.Barrier(4)
        seen, wrong = [], []

        def draw(iterator=iterator, start=start, seen=seen, wrong=wrong):
            start.wait()
            while True:
                try:
                    seen.append(int(next(iterator).samples[0]))
                except StopIteration:
                    return
                except BusyError:
                    continue
                except BaseException as error:
                    wrong.append(error)
                    return

        threads = [threading.Thread(target=draw, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
        assert not wrong
        assert sorted(seen) == list(range(100))
