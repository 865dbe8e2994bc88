"""Order, ranks and states: FAULTS 97-103."""

import json
import signal
import subprocess
import sys

import numpy
import pytest
import stoker
from shard_making import write_shards

OPTIONS = {"batch_size": 7, "shuffle": True, "seed": 5}


def numbers(iterable):
    return [batch.samples.tolist() for batch in iterable]


def flat(batches):
    return [n for batch in batches for n in batch]


def two_epochs(ds, **options):
    loader = stoker.Loader(ds, **(OPTIONS | options))
    return numbers(loader), numbers(loader)


def keep(batch):
    return batch


def test_each_iteration_is_the_next_epoch_after_a_break_too(dataset):
    first, second = two_epochs(dataset)
    loader = stoker.Loader(dataset, **OPTIONS)
    for batch in loader:
        assert batch.samples.tolist() == first[0]
        assert loader.epoch == 0
        break
    assert numbers(loader) == second
    assert loader.epoch == 1


@pytest.mark.parametrize("mapped", [False, True])
def test_an_iterator_that_gave_no_batch_does_not_count(dataset, mapped):
    first, second = two_epochs(dataset)
    loader = stoker.Loader(dataset, **OPTIONS, **({"map": keep} if mapped else {}))
    iter(loader)
    assert numbers(loader) == first
    iter(loader)
    iter(loader)
    assert numbers(loader) == second
    state = loader.state_dict()
    loader.load_state_dict(state)
    iter(loader)
    assert loader.state_dict() == state


def test_set_epoch_overrides(dataset):
    first, second = two_epochs(dataset)
    loader = stoker.Loader(dataset, **OPTIONS)
    loader.set_epoch(1)
    assert loader.state_dict()["epoch"] == 1
    assert numbers(loader) == second
    loader.set_epoch(0)
    iterator = iter(loader)
    assert next(iterator).samples.tolist() == first[0]
    loader.set_epoch(1)  # while one runs: it goes on, the next begins there
    assert next(iterator).samples.tolist() == first[1]
    assert numbers(loader) == second
    with pytest.raises(ValueError, match="-1"):
        loader.set_epoch(-1)


def test_set_epoch_to_the_epoch_of_a_state_keeps_the_position(dataset):
    first, second = two_epochs(dataset)
    loader = stoker.Loader(dataset, **OPTIONS)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    resumed = stoker.Loader(dataset, **OPTIONS)
    resumed.load_state_dict(state)
    seen = []
    for epoch in range(state["epoch"], 2):
        resumed.set_epoch(epoch)
        seen.append(numbers(resumed))
    assert seen == [first[1:], second]
    resumed.load_state_dict(state)
    resumed.set_epoch(1)
    assert numbers(resumed) == second


def test_a_new_iteration_ends_the_one_before(dataset):
    loader = stoker.Loader(dataset, **OPTIONS)
    old = iter(loader)
    next(old)
    new = iter(loader)
    next(new)
    with pytest.raises(RuntimeError, match="ended"):
        next(old)
    next(new)


@pytest.mark.parametrize("threads", [1, 4, 16])
def test_97_threads_do_not_change_the_order_or_the_bytes(dataset, threads):
    expected = list(stoker.Loader(dataset, **OPTIONS, threads=2, as_="numpy"))
    got = list(stoker.Loader(dataset, **OPTIONS, threads=threads, as_="numpy"))
    for one, two in zip(expected, got, strict=True):
        numpy.testing.assert_array_equal(one.samples, two.samples)
        numpy.testing.assert_array_equal(one["npy"], two["npy"])


@pytest.mark.parametrize("world", [1, 2, 3, 8])
@pytest.mark.parametrize("last", ["short", "mask", "drop"])
def test_98_ranks_together_see_every_sample_once(tmp_path, world, last):
    folder = write_shards(tmp_path, 53, shards=3)
    loaders = [
        stoker.Loader(folder, batch_size=4, shuffle=True, rank=rank, world_size=world, last=last)
        for rank in range(world)
    ]
    epochs = [numbers(loader) for loader in loaders]
    assert len({len(epoch) for epoch in epochs}) == 1
    assert len(epochs[0]) == len(loaders[0])
    seen = [n for epoch in epochs for n in flat(epoch) if n >= 0]
    assert len(seen) == len(set(seen))
    if last == "drop":
        assert len(seen) == 53 // (4 * world) * 4 * world
    else:
        assert sorted(seen) == list(range(53))


@pytest.mark.parametrize("mapped", [False, True])
def test_99_resume_at_every_step_equals_an_uninterrupted_run(dataset, mapped):
    options = OPTIONS | ({"map": keep} if mapped else {})
    first, second = two_epochs(dataset)
    loader = stoker.Loader(dataset, **options)
    states = [loader.state_dict()]
    iterator = iter(loader)
    for _ in first:
        next(iterator)
        states.append(loader.state_dict())
    resumed = stoker.Loader(dataset, **options)
    for step, state in enumerate(states):
        resumed.load_state_dict(state)
        assert resumed.state_dict() == state
        if step < len(first):
            assert numbers(resumed) == first[step:]
            assert numbers(resumed) == second
        else:
            assert (state["epoch"], state["position"]) == (1, 0)
            assert numbers(resumed) == second


@pytest.mark.parametrize("mapped", [False, True])
def test_99_resume_twice_in_one_epoch(dataset, mapped):
    options = OPTIONS | ({"map": keep} if mapped else {})
    first, _ = two_epochs(dataset)
    seen = []
    state = None
    for steps in (2, 3, None):
        with stoker.Loader(dataset, **options) as loader:
            if state is not None:
                loader.load_state_dict(state)
            for i, batch in enumerate(loader, 1):
                seen.append(batch.samples.tolist())
                if i == steps:
                    break
            state = loader.state_dict()
    assert seen == first
    assert (state["epoch"], state["position"]) == (1, 0)


def test_99_a_state_before_the_first_batch_and_between_epochs(dataset):
    first, second = two_epochs(dataset)
    loader = stoker.Loader(dataset, **OPTIONS)
    zero = loader.state_dict()
    list(loader)
    between = loader.state_dict()
    other = stoker.Loader(dataset, **OPTIONS)
    other.load_state_dict(zero)
    assert numbers(other) == first
    other.load_state_dict(between)
    assert other.state_dict() == between
    assert numbers(other) == second


def test_a_state_is_plain_and_survives_json(dataset):
    loader = stoker.Loader(dataset, **OPTIONS)
    next(iter(loader))
    state = loader.state_dict()
    assert all(type(value) in (int, str) for value in state.values())
    other = stoker.Loader(dataset, **OPTIONS)
    other.load_state_dict(json.loads(json.dumps(state)))
    assert other.state_dict() == state


def test_100_after_kill_9_nothing_is_lost_or_repeated(shards, tmp_path, dataset):
    script = """
import json, sys, time
import stoker
loader = stoker.Loader(sys.argv[1], batch_size=7, shuffle=True, seed=5)
for i, batch in enumerate(loader):
    print(json.dumps([batch.samples.tolist(), loader.state_dict()]), flush=True)
    if i == 4:
        time.sleep(600)
"""
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(shards)], stdout=subprocess.PIPE, text=True
    )
    lines = [json.loads(child.stdout.readline()) for _ in range(5)]
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    loader = stoker.Loader(dataset, **OPTIONS)
    loader.load_state_dict(lines[-1][1])
    seen = [line[0] for line in lines] + numbers(loader)
    assert seen == two_epochs(dataset)[0]


@pytest.mark.parametrize(
    "other",
    [
        {"shuffle": False},
        {"seed": 6},
        {"order": "local"},
        {"weights": numpy.ones(100)},
    ],
)
def test_101_other_order_options_are_refused(dataset, other):
    state = stoker.Loader(dataset, **OPTIONS).state_dict()
    with pytest.raises(stoker.StokerError) as caught:
        stoker.Loader(dataset, **(OPTIONS | other)).load_state_dict(state)
    assert caught.value.status == "MISMATCH"


def test_101_another_dataset_subset_or_version_is_refused(dataset, rich):
    state = stoker.Loader(dataset, **OPTIONS).state_dict()
    refused = [
        (stoker.open(rich), state),
        (dataset[1:], state),
        (dataset.split([0.5, 0.5])[0], state),
        (dataset, state | {"version": 99}),
        (dataset, {}),
        (dataset, {name: state[name] for name in state if name != "position"}),
    ]
    for ds, wrong in refused:
        loader = stoker.Loader(ds, **OPTIONS)
        with pytest.raises(stoker.StokerError) as caught:
            loader.load_state_dict(wrong)
        assert caught.value.status == "MISMATCH"
        loader.close()
    with pytest.raises(TypeError):
        stoker.Loader(dataset).load_state_dict("text")


def test_101_another_world_thread_count_or_batch_size_resumes(dataset):
    whole = flat(two_epochs(dataset)[0])
    loader = stoker.Loader(dataset, **OPTIONS)
    iterator = iter(loader)
    for _ in range(4):
        next(iterator)
    state = loader.state_dict()
    assert state["position"] == 28
    for options in ({"batch_size": 9}, {"threads": 5}, {"memory": "64MiB"}, {"last": "mask"}):
        resumed = stoker.Loader(dataset, **(OPTIONS | options))
        resumed.load_state_dict(state)
        assert [n for n in flat(numbers(resumed)) if n >= 0] == whole[28:]
    ranks = [stoker.Loader(dataset, **OPTIONS, rank=r, world_size=3) for r in range(3)]
    for one in ranks:
        one.load_state_dict(state)
    steps = zip(*(numbers(one) for one in ranks), strict=True)
    rest = [n for step in steps for share in step for n in share if n >= 0]
    assert sorted(rest) == sorted(whole[28:])


def test_101_a_subsets_state_belongs_to_that_subset(dataset):
    part = dataset.split([0.5, 0.5], seed=1)[0]
    loader = stoker.Loader(part, **OPTIONS)
    whole = numbers(loader)
    loader.set_epoch(0)
    iterator = iter(loader)
    next(iterator)
    twin = stoker.Loader(dataset.split([0.5, 0.5], seed=1)[0], **OPTIONS)
    twin.load_state_dict(loader.state_dict())
    assert numbers(twin) == whole[1:]
    sibling = stoker.Loader(dataset.split([0.5, 0.5], seed=1)[1], **OPTIONS)
    with pytest.raises(stoker.StokerError) as caught:
        sibling.load_state_dict(loader.state_dict())
    assert caught.value.status == "MISMATCH"


def test_102_a_changed_list_of_shards_is_refused(tmp_path):
    folder = write_shards(tmp_path, 30, shards=3)
    state = stoker.Loader(folder, **OPTIONS).state_dict()
    (folder / "shard-0002.tar").unlink()
    with pytest.raises(stoker.StokerError) as caught:
        stoker.Loader(folder, **OPTIONS).load_state_dict(state)
    assert caught.value.status == "MISMATCH"


def test_103_an_empty_subset_has_no_steps(dataset):
    for last in ("short", "mask", "drop"):
        loader = stoker.Loader(dataset[:0], 4, last=last)
        assert len(loader) == 0
        assert list(loader) == []
        assert list(loader) == []
        state = loader.state_dict()
        loader.load_state_dict(state)
        assert loader.state_dict() == state


def test_103_one_sample(dataset):
    assert numbers(stoker.Loader(dataset[5:6], 4, shuffle=True)) == [[5]]
    assert numbers(stoker.Loader(dataset[5:6], 4, drop_last=True)) == []
    (batch,) = stoker.Loader(dataset[5:6], 4, last="mask")
    assert batch["mask"].tolist() == [True, False, False, False]


def test_103_fewer_shards_and_fewer_samples_than_ranks(dataset):
    epochs = [numbers(stoker.Loader(dataset[:3], 2, rank=rank, world_size=8)) for rank in range(8)]
    assert {len(epoch) for epoch in epochs} == {1}
    assert {len(epoch[0]) for epoch in epochs} == {2}
    assert sorted(n for epoch in epochs for n in epoch[0] if n >= 0) == [0, 1, 2]


def test_103_a_batch_larger_than_the_dataset(dataset):
    assert numbers(stoker.Loader(dataset, 1000)) == [list(range(100))]
    assert len(stoker.Loader(dataset, 1000, drop_last=True)) == 0
