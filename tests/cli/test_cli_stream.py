"""`stoker stream`: order, ranks, resume, digests, memory and what it tells."""

import json

import numpy
import pytest
import tars

SAMPLES = 37
KEYS = {
    "samples", "batches", "bytes", "seconds", "samples_per_s", "bytes_per_s", "waits",
    "peak_bytes", "bad", "digest",
}  # fmt: skip


@pytest.fixture(scope="module")
def source(tensors):
    return tensors / "shards"


def flat(order):
    return [sample for batch in order for sample in batch]


def digest(stoker, *arguments):
    return stoker.json("stream", *arguments)["digest"]


# --- what it tells --------------------------------------------------------------------------------


def test_it_prints_one_object(stoker, source):
    told = stoker.json("stream", source, "--batch-size", 8)
    assert set(told) >= KEYS
    assert told["samples"] == SAMPLES and told["batches"] == 5 and told["bad"] == 0
    assert told["bytes"] == SAMPLES * (4 * 6 * 3 * 4 + 8)
    assert set(told["waits"]) == {"fetch", "fill", "ship", "consumer"}
    assert all(wait >= 0 for wait in told["waits"].values())
    assert told["samples_per_s"] == pytest.approx(SAMPLES / told["seconds"], rel=1e-3)
    assert told["bytes_per_s"] == pytest.approx(told["bytes"] / told["seconds"], rel=1e-3)
    assert len(told["digest"]) == 32 and int(told["digest"], 16) >= 0
    assert told["peak_bytes"] > 0 and told["threads"] >= 1
    assert told["device"] is None
    assert told["io"] in ("pread", "io_uring", "uring")


def test_words_tell_the_same(stoker, source):
    printed = stoker("stream", source, "--batch-size", 8).stdout
    told = stoker.json("stream", source, "--batch-size", 8)
    assert f"{SAMPLES} in 5 batches" in printed and told["digest"] in printed


def test_without_a_digest_there_is_none(stoker, source):
    assert stoker.json("stream", source, "--batch-size", 8, "--no-digest")["digest"] is None
    assert "digest" not in stoker("stream", source, "--batch-size", 8, "--no-digest").stdout


def test_several_epochs_are_counted_together(stoker, source):
    told = stoker.json("stream", source, "--batch-size", 10, "--epochs", 3)
    assert told["samples"] == 3 * SAMPLES and told["batches"] == 12


def test_a_trace_is_json(stoker, source, tmp_path):
    stoker("stream", source, "--batch-size", 8, "--trace", tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert trace["traceEvents"] if isinstance(trace, dict) else trace


# --- digest ---------------------------------------------------------------------------------------


def test_the_digest_tells_bytes_and_order_apart(stoker, source, tmp_path):
    plain = digest(stoker, source, "--batch-size", 8)
    assert plain == digest(stoker, source, "--batch-size", 8)
    assert plain == digest(stoker, source, "--batch-size", 5)
    assert plain != digest(stoker, source, "--batch-size", 8, "--shuffle")
    stoker(
        *("gen", "tensors", "-o", tmp_path, "--shards", 3, "--samples", SAMPLES),
        *("--shape", "4,6,3", "--dtype", "f32", "--classes", 5, "--seed", 2),
    )
    assert plain != digest(stoker, tmp_path, "--batch-size", 8)


@pytest.mark.parametrize("shuffle", [[], ["--shuffle", "--seed", "5"]])
def test_threads_and_io_do_not_change_the_digest(stoker, source, shuffle):
    digests = {
        digest(stoker, source, "--batch-size", 4, "--threads", threads, "--io", io, *shuffle)
        for threads in (1, 2, 8)
        for io in ("pread", "uring", "auto")
    }
    assert len(digests) == 1


def test_loose_files_give_the_digest_of_their_shards(stoker, tensors):
    fields = ["--batch-size", 8, "--fields", "npy,cls"]
    assert digest(stoker, tensors / "loose", *fields) == digest(stoker, tensors / "shards", *fields)


def test_a_small_memory_changes_nothing_but_the_peak(stoker, tmp_path):
    stoker(
        *("gen", "tensors", "-o", tmp_path, "--shards", 2, "--samples", 200),
        *("--shape", "64,64", "--dtype", "f32"),
    )
    small = stoker.json("stream", tmp_path, "--batch-size", 8, "--shuffle", "--memory", "4MiB")
    large = stoker.json("stream", tmp_path, "--batch-size", 8, "--shuffle", "--memory", "1GiB")
    assert small["digest"] == large["digest"]
    assert small["peak_bytes"] <= 4 << 20


def test_masked_places_are_not_in_the_digest(stoker, source):
    plain = digest(stoker, source, "--batch-size", 8, "--last", "short")
    assert plain == digest(stoker, source, "--batch-size", 8, "--last", "mask")


# --- order ----------------------------------------------------------------------------------------


def test_the_order_without_shuffle_is_as_stored(stoker, source):
    order = stoker.order(source, "--batch-size", 8)
    assert flat(order) == list(range(SAMPLES)) and [len(batch) for batch in order] == [8] * 4 + [5]


def test_a_shuffle_is_a_permutation_that_seed_and_epoch_change(stoker, source):
    shuffle = ["--batch-size", 8, "--shuffle"]
    first = flat(stoker.order(source, *shuffle, "--seed", 3))
    assert sorted(first) == list(range(SAMPLES)) and first != sorted(first)
    assert first == flat(stoker.order(source, *shuffle, "--seed", 3))
    assert first != flat(stoker.order(source, *shuffle, "--seed", 4))
    second = flat(stoker.order(source, *shuffle, "--seed", 3, "--epoch", 1))
    assert sorted(second) == sorted(first) and second != first
    both = flat(stoker.order(source, *shuffle, "--seed", 3, "--epochs", 2))
    assert both == first + second


def test_the_batch_size_does_not_enter_the_order(stoker, source):
    orders = {
        tuple(flat(stoker.order(source, "--batch-size", size, "--shuffle"))) for size in (1, 5, 99)
    }
    assert len(orders) == 1


@pytest.mark.parametrize("shuffle", [[], ["--shuffle"]])
@pytest.mark.parametrize("world", [1, 2, 3, 8])
@pytest.mark.parametrize("last", ["auto", "short", "mask", "drop"])
def test_ranks_share_every_sample_once_in_equal_steps(stoker, source, world, last, shuffle):
    batch = 4
    options = [source, "--batch-size", batch, "--last", last, *shuffle]
    ranks = [stoker.order(*options, "--rank", rank, "--world-size", world) for rank in range(world)]
    steps = {len(order) for order in ranks}
    assert len(steps) == 1
    union = [flat(batches) for batches in zip(*ranks, strict=True)]
    whole = flat(stoker.order(source, "--batch-size", batch, *shuffle))
    if last == "drop":
        kept = SAMPLES // (batch * world) * batch * world
        assert [sorted(step) for step in union] == [
            sorted(whole[at : at + batch * world]) for at in range(0, kept, batch * world)
        ]
    else:
        assert sorted(flat(union)) == list(range(SAMPLES))
        for number, step in enumerate(union):
            at = number * batch * world
            assert sorted(step) == sorted(whole[at : at + batch * world])


@pytest.mark.parametrize("world", [1, 2, 3, 8])
def test_global_batches_are_the_same_on_any_number_of_ranks(stoker, source, world):
    options = [source, "--global-batch-size", 10, "--shuffle"]
    ranks = [stoker.order(*options, "--rank", rank, "--world-size", world) for rank in range(world)]
    union = [sorted(flat(batches)) for batches in zip(*ranks, strict=True)]
    assert union == [sorted(batch) for batch in stoker.order(*options)]


def test_a_rank_without_samples_has_empty_lines(stoker, tmp_path):
    path = tars.write(tmp_path / "a.tar", tars.sample_members(3))
    ranks = [[path, "--batch-size", 2, "--rank", rank, "--world-size", 8] for rank in range(8)]
    printed = [stoker("stream", *run, "--order").stdout for run in ranks]
    assert sorted(printed) == ["\n"] * 5 + ["0\n", "1\n", "2\n"]
    for run, line in zip(ranks, printed, strict=True):
        told = stoker.json("stream", *run)
        assert (told["samples"], told["batches"]) == (len(line.split()), 1)


def test_the_order_reads_nothing(stoker, tmp_path):
    path = tars.write(tmp_path / "a.tar", [(f"{i}.cls", b"no number") for i in range(9)])
    assert flat(stoker.order(path, "--batch-size", 2)) == list(range(9))
    stoker("stream", path, "--batch-size", 2, status=1)


def test_a_local_order_is_a_permutation_too(stoker, source):
    options = [source, "--batch-size", 4, "--shuffle", "--shuffle-order", "local", "--reach", 2]
    order = flat(stoker.order(*options))
    assert sorted(order) == list(range(SAMPLES)) and order != sorted(order)


@pytest.mark.parametrize("size", [1, 37, 100])
def test_odd_batch_sizes_are_exact(stoker, source, size):
    assert sorted(flat(stoker.order(source, "--batch-size", size, "--shuffle"))) == list(range(37))
    assert stoker.json("stream", source, "--batch-size", size)["samples"] == SAMPLES


def test_one_sample_is_a_set(stoker, tmp_path):
    path = tars.write(tmp_path / "a.tar", tars.sample_members(1))
    assert stoker.order(path, "--batch-size", 4, "--shuffle") == [[0]]
    assert stoker.json("stream", path, "--batch-size", 4, "--last", "drop")["batches"] == 0


# --- resume ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("stop", range(12))
def test_resume_at_every_step_goes_on_exactly(stoker, source, tmp_path, stop):
    """Two epochs of five steps: before the first, within, between and after the last."""
    run = [source, "--batch-size", 8, "--shuffle", "--seed", 9, "--epochs", 2]
    state = tmp_path / "state"
    whole = stoker.order(*run)
    begun = stoker.order(*run, "--stop-after", stop, "--save-state", state)
    rest = stoker.order(*run, "--resume", state)
    assert begun == whole[:stop] and begun + rest == whole

    full = stoker.json("stream", *run)
    part = stoker.json("stream", *run, "--stop-after", stop, "--save-state", state)
    end = stoker.json("stream", *run, "--resume", state)
    assert part["batches"] == len(begun) and end["batches"] == len(rest)
    assert part["samples"] + end["samples"] == full["samples"]
    assert end["run_digest"] == full["digest"]


def test_resume_may_change_threads_batch_size_and_ranks(stoker, source, tmp_path):
    run = [source, "--shuffle", "--seed", 2]
    state = tmp_path / "state"
    whole = flat(stoker.order(*run, "--batch-size", 4))
    stoker("stream", *run, "--batch-size", 4, "--stop-after", 3, "--save-state", state)
    rest = stoker.order(*run, "--batch-size", 7, "--threads", 3, "--resume", state)
    assert flat(rest) == whole[12:]
    ranks = [
        stoker.order(*run, "--batch-size", 3, "--rank", r, "--world-size", 2, "--resume", state)
        for r in range(2)
    ]
    assert sorted(flat(map(flat, ranks))) == sorted(whole[12:])


def test_resume_twice_in_one_epoch(stoker, source, tmp_path):
    run = [source, "--batch-size", 3, "--shuffle"]
    parts = stoker.order(*run, "--stop-after", 2, "--save-state", tmp_path / "1")
    parts += stoker.order(
        *run, "--resume", tmp_path / "1", "--stop-after", 4, "--save-state", tmp_path / "2"
    )
    parts += stoker.order(*run, "--resume", tmp_path / "2")
    assert parts == stoker.order(*run)


def test_epochs_count_from_the_first_of_the_run(stoker, source, tmp_path):
    run = [source, "--batch-size", 10, "--shuffle", "--epochs", 3]
    state = tmp_path / "state"
    whole = stoker.order(*run, "--epoch", 4)
    begun = stoker.order(*run, "--epoch", 4, "--stop-after", 6, "--save-state", state)
    again = tmp_path / "again"
    middle = stoker.order(*run, "--resume", state, "--stop-after", 3, "--save-state", again)
    assert begun + middle + stoker.order(*run, "--resume", again) == whole
    assert len(whole) == 12


def test_a_run_that_is_over_resumes_to_nothing(stoker, source, tmp_path):
    run = [source, "--batch-size", 10]
    stoker("stream", *run, "--save-state", tmp_path / "state")
    told = stoker.json("stream", *run, "--resume", tmp_path / "state")
    assert told["batches"] == 0 and told["samples"] == 0
    assert stoker.order(*run, "--resume", tmp_path / "state", "--epochs", 2) == stoker.order(
        *run, "--epoch", 1
    )


def test_load_then_save_is_the_identity(stoker, source, tmp_path):
    run = [source, "--batch-size", 5, "--shuffle", "--seed", 8]
    stoker("stream", *run, "--stop-after", 3, "--save-state", tmp_path / "a", "--no-digest")
    first, state = (tmp_path / "a").read_text().splitlines()
    assert first == "stoker-state 1 first_epoch 0"
    assert json.loads(state)
    copy = tmp_path / "b"
    stoker(
        *("stream", *run, "--resume", tmp_path / "a", "--epochs", 0, "--save-state", copy),
        *("--no-digest",),
    )
    assert copy.read_text() == (tmp_path / "a").read_text()


def test_a_state_of_another_set_or_order_is_refused(stoker, source, tmp_path):
    state = tmp_path / "state"
    run = ["--batch-size", 4, "--shuffle", "--seed", 1]
    stoker("stream", source, *run, "--stop-after", 2, "--save-state", state)
    other = tars.write(tmp_path / "a.tar", tars.sample_members(SAMPLES))
    stoker("stream", other, *run, "--resume", state, status=1)
    stoker("stream", source, "--batch-size", 4, "--resume", state, status=1)
    stoker("stream", source, *run, "--seed", 2, "--resume", state, status=1)


@pytest.mark.parametrize(
    "text",
    [
        "", "\n", "{}", '{"epoch": 1}\n', "stoker-state 2 first_epoch 0\n{}\n",
        "stoker-state 1 first_epoch x\n{}\n", "stoker-state 1 first_epoch 0\n",
        "stoker-state 1 first_epoch 0 more\n{}\n", "stoker-state 1 first_epoch 0\n{}\nmore\n",
        "stoker-state 1 first_epoch 0\n{}\n", "stoker-state 1 first_epoch 0\n" + "x" * 5000,
    ],
)  # fmt: skip
def test_a_file_that_is_no_state_is_refused(stoker, source, tmp_path, text):
    (tmp_path / "state").write_text(text)
    done = stoker(*("stream", source, "--batch-size", 4, "--resume", tmp_path / "state"), status=1)
    assert done.stdout == "" and done.stderr.startswith("stoker: ")
    stoker("stream", source, "--batch-size", 4, "--resume", tmp_path / "none", status=1)


def test_a_state_that_cannot_be_written_fails(stoker, source, tmp_path):
    done = stoker(
        *("stream", source, "--batch-size", 4, "--save-state", tmp_path / "no" / "state"), status=1
    )
    assert str(tmp_path / "no" / "state") in done.stderr


# --- bad and ragged samples -----------------------------------------------------------------------


@pytest.fixture
def spoiled(tmp_path):
    members = [(f"{i:03d}.cls", b"bad" if i in (4, 11) else b"%d" % i) for i in range(20)]
    return tars.write(tmp_path / "a.tar", members)


def test_a_bad_sample_stops_the_run_with_its_place(stoker, spoiled):
    done = stoker("stream", spoiled, "--batch-size", 4, status=1)
    assert str(spoiled) in done.stderr and "sample 4" in done.stderr and "004" in done.stderr


def test_a_run_that_failed_can_be_resumed_before_the_bad_batch(stoker, spoiled, tmp_path):
    state = tmp_path / "state"
    stoker("stream", spoiled, "--batch-size", 4, "--save-state", state, status=1)
    order = stoker.order(spoiled, "--batch-size", 4, "--resume", state)
    assert flat(order) == list(range(4, 20))


def test_bad_samples_are_replaced_and_listed(stoker, spoiled, tmp_path):
    told = stoker.json(
        *("stream", spoiled, "--batch-size", 4, "--bad", "replace"),
        *("--quarantine", tmp_path / "bad.jsonl"),
    )
    assert told["samples"] == 20 and told["bad"] == 2
    listed = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert [(bad["sample"], bad["key"], bad["field"]) for bad in listed] == [
        (4, "004", "cls"), (11, "011", "cls"),
    ]  # fmt: skip
    for bad in listed:
        assert bad["object"] == str(spoiled) and bad["offset"] > 0 and bad["reason"]
        assert bad["substitute"] not in (4, 11) and bad["epoch"] == 0


def test_replacing_is_the_same_every_time(stoker, spoiled):
    run = [spoiled, "--batch-size", 4, "--bad", "replace", "--shuffle"]
    digests = {digest(stoker, *run, "--threads", threads) for threads in (1, 2, 8)}
    assert len(digests) == 1


def test_unequal_shapes_are_refused_padded_or_listed(stoker, tmp_path):
    members = [(f"{i}.npy", tars.npy(numpy.ones((i + 1, 2), numpy.float32))) for i in range(6)]
    path = tars.write(tmp_path / "a.tar", members)
    done = stoker("stream", path, "--batch-size", 3, status=1)
    assert "(1, 2)" in done.stderr and "(2, 2)" in done.stderr
    padded = stoker.json("stream", path, "--batch-size", 3, "--ragged", "pad")
    listed = stoker.json("stream", path, "--batch-size", 3, "--ragged", "list")
    assert padded["samples"] == listed["samples"] == 6


def test_a_missing_field_is_an_error_unless_it_is_optional(stoker, tmp_path):
    path = tars.write(tmp_path / "a.tar", [("a.cls", b"1"), ("b.txt", b"x"), ("b.cls", b"2")])
    stoker("stream", path, "--batch-size", 1, "--fields", "cls,txt", status=1)
    told = stoker.json("stream", path, "--batch-size", 1, "--fields", "cls,txt?")
    assert told["samples"] == 2
