"""Ends of all kinds: closing, dropping, Ctrl-C, fork, exit. FAULTS 88-91."""

import gc
import gzip
import json
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy
import pytest
import stoker
from conftest import open_descriptors, running_threads
from shard_making import write_shards, write_tar

torch = pytest.importorskip("torch")


def settle(check, seconds=1.0):
    """Whether check() becomes true within a time."""
    until = time.monotonic() + seconds
    while not check():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def warm(dataset):
    """The dataset has its shards open from here on: they are not the loader's."""
    with stoker.Loader(dataset, 10, shuffle=True) as loader:
        list(loader)


@pytest.mark.alone
@pytest.mark.parametrize("end", ["close", "drop", "raise", "break", "with", "exhaust"])
@pytest.mark.parametrize("mapped", [False, True])
def test_89_every_end_gives_threads_and_files_back(dataset, end, mapped):
    warm(dataset)
    gc.collect()
    fds, threads = open_descriptors(), running_threads()
    options = {"map": lambda batch: batch} if mapped else {}
    loader = stoker.Loader(dataset, 2, shuffle=True, **options)
    iterator = iter(loader)
    batch = next(iterator)
    assert running_threads() > threads
    if end == "close":
        loader.close()
    elif end == "with":
        with loader:
            pass
    elif end == "raise":
        try:
            for _ in iterator:
                raise KeyError("the caller's own")
        except KeyError:
            pass
    elif end == "break":
        for _ in iterator:
            break
    elif end == "exhaust":
        list(iterator)
    began = time.monotonic()
    del loader, iterator
    gc.collect()
    assert time.monotonic() - began < 1
    assert settle(lambda: running_threads() == threads)
    assert open_descriptors() == fds
    assert batch["npy"].shape == (2, 4, 4)


@pytest.mark.alone
def test_89_many_loaders_leave_nothing(dataset):
    warm(dataset)
    gc.collect()
    fds, threads = open_descriptors(), running_threads()
    for i in range(200):
        loader = stoker.Loader(dataset, 10, shuffle=True)
        if i % 2:
            next(iter(loader))
        loader.close()
    del loader
    gc.collect()
    assert settle(lambda: running_threads() == threads)
    assert open_descriptors() == fds


SLOW = """
import os, signal, sys, threading, time
import stoker

def main(folder, options):
    loader = stoker.Loader(folder, 2, **options)
    iterator = iter(loader)
    next(iterator)
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    try:
        while True:
            next(iterator, None)
    except KeyboardInterrupt:
        pass
    print("interrupted after", time.monotonic() - began)
    began = time.monotonic()
    loader.close()
    print("closed", time.monotonic() - began < 1)
"""


@pytest.mark.alone
@pytest.mark.parametrize("mapped", [False, True])
def test_89_ctrl_c_ends_a_wait(shards, run_python, mapped):
    options = '{"map": lambda b: time.sleep(0.05) or b}' if mapped else "{}"
    done = run_python(SLOW + f"\nmain(sys.argv[1], {options})\n", shards)
    assert done.returncode == 0, done.stderr
    assert "interrupted after" in done.stdout
    assert "closed True" in done.stdout


@pytest.mark.alone
def test_89_ctrl_c_ends_a_wait_for_a_callable_that_hangs(shards, run_python):
    script = """
    import os, signal, sys, threading, time
    import stoker
    loader = stoker.Loader(sys.argv[1], 2, map=lambda batch: time.sleep(1000))
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        next(iter(loader))
    except KeyboardInterrupt:
        print("interrupted")
    """
    began = time.monotonic()
    done = run_python(script, shards)
    assert done.stdout.strip() == "interrupted"
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 20


@pytest.mark.alone
def test_89_ctrl_c_while_indexing_ends_it(tmp_path):
    folder = write_shards(tmp_path / "data", 3000, shards=300, fields=("cls",))
    script = textwrap.dedent(
        """
        import os, signal, sys
        import stoker
        def interrupt(*told):
            os.kill(os.getpid(), signal.SIGINT)
        try:
            while True:
                stoker.open(sys.argv[1], reindex=True, progress=interrupt)
        except KeyboardInterrupt:
            print("interrupted")
        print(len(stoker.open(sys.argv[1])))
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["interrupted", "3000"], done.stderr


def test_88_a_forked_child_gets_a_clear_error_and_the_parent_goes_on(shards, run_python):
    script = """
    import os, sys
    import stoker
    for options in ({}, {"map": lambda batch: batch}):
        loader = stoker.Loader(sys.argv[1], 10, shuffle=True, **options)
        iterator = iter(loader)
        batch = next(iterator)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                next(iterator)
            except RuntimeError as error:
                code = 0 if "fork" in str(error) else 2
            total = float(batch["npy"].sum())  # the batch itself is still there
            del batch, iterator
            loader.close()
            del loader
            own = stoker.Loader(sys.argv[1], 10)  # and one of its own works
            code += 4 * (len(list(own)) != 10)
            own.close()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), len(list(iterator)))
    """
    done = run_python(script, shards)
    assert done.stdout.split() == ["0", "9", "0", "9"], done.stderr


def test_88_a_forked_child_that_exits_normally_is_clean(shards, run_python):
    script = """
    import os, sys
    import stoker
    loader = stoker.Loader(sys.argv[1], 10)
    iterator = iter(loader)
    batch = next(iterator)
    if os.fork() == 0:
        sys.exit(7)
    print(os.waitstatus_to_exitcode(os.wait()[1]), len(list(iterator)))
    """
    done = run_python(script, shards)
    assert done.stdout.split() == ["7", "9"], done.stderr


def test_88_a_forked_child_does_not_wait_for_a_lock_of_the_map(shards, run_python):
    script = """
    import os, sys, threading
    import stoker
    loader = stoker.Loader(sys.argv[1], 10, map=lambda batch: batch)
    iterator = iter(loader)
    next(iterator)
    held, forked = threading.Event(), threading.Event()
    def hold():
        with loader._stage._lock:  # as a thread of the map does for moments
            held.set()
            forked.wait()
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        loader.close()
        os._exit(7)
    forked.set()
    thread.join()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(list(iterator)))
    """
    done = run_python(script, shards, timeout=30)
    assert done.stdout.split() == ["7", "9"], done.stderr


def test_90_an_iterator_used_from_two_threads_is_refused_or_shared(dataset):
    """Either call may win; none crashes, none hangs, and no batch comes twice."""
    iterator = iter(stoker.Loader(dataset, 1, shuffle=True))
    seen, refused, wrong = [], [], []

    def draw():
        while True:
            try:
                seen.append(int(next(iterator).samples[0]))
            except StopIteration:
                return
            except RuntimeError as error:
                refused.append(error)
                if "ended" in str(error):
                    return
            except BaseException as error:
                wrong.append(error)
                return

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert not wrong
    assert sorted(seen) == list(range(100))


def test_a_close_by_another_thread_wakes_the_one_that_waits(dataset):
    loader = stoker.Loader(dataset, 1)
    outcome = []

    def draw():
        try:
            while True:
                for _ in loader:
                    pass
        except (RuntimeError, stoker.StokerError) as error:
            outcome.append(str(error))

    thread = threading.Thread(target=draw)
    thread.start()
    time.sleep(0.2)
    loader.close()
    thread.join(10)
    assert not thread.is_alive()
    assert outcome
    assert "ended" in outcome[0] or "closed" in outcome[0]


@pytest.mark.parametrize(
    "how",
    ["pass", "sys.exit(0)", "raise SystemExit(0)", "threading.Thread(target=print).start()"],
)
@pytest.mark.parametrize("options", ["{}", "{'map': lambda batch: batch}"])
def test_91_the_interpreter_ends_cleanly_with_batches_in_flight(shards, run_python, how, options):
    script = f"""
    import sys, threading
    import stoker
    loader = stoker.Loader(sys.argv[1], 2, shuffle=True, **{options})
    iterator = iter(loader)
    kept = [next(iterator) for _ in range(5)]
    other = stoker.Loader(sys.argv[1], 2)
    generator = (batch for batch in other)
    next(generator)
    cycle = [loader]
    cycle.append(cycle)
    {how}
    """
    done = run_python(script, shards)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_91_torch_is_imported_by_who_opens_the_loader(shards, run_python):
    """Not by a thread of the map: one that is still importing when Python ends may crash it."""
    script = """
    import sys
    import stoker
    dataset = stoker.open(sys.argv[1])
    print("torch" in sys.modules)
    loader = stoker.Loader(dataset, 10, map=lambda batch: batch)
    print("torch" in sys.modules)
    with stoker.Loader(dataset, 10, as_="numpy") as loader:
        pass
    """
    done = run_python(script, shards)
    assert done.stdout.split() == ["False", "True"], done.stderr


def test_91_an_exception_at_the_top_ends_as_ever(shards, run_python):
    script = """
    import sys
    import stoker
    for batch in stoker.Loader(sys.argv[1], 2):
        raise ValueError("the caller's own")
    """
    done = run_python(script, shards)
    assert done.returncode == 1
    assert done.stderr.strip().endswith("ValueError: the caller's own")


def test_91_a_free_threaded_python_is_refused_in_clear_words(run_python):
    script = """
    import sys
    sys.abiflags = "t"
    try:
        import stoker
    except ImportError as error:
        print(error)
    """
    assert "free-threaded" in run_python(script).stdout


def test_other_systems_are_refused_in_clear_words(run_python):
    script = """
    import sys
    sys.platform = "darwin"
    try:
        import stoker
    except ImportError as error:
        print(error)
    """
    assert "Linux only" in run_python(script).stdout


@pytest.mark.alone
def test_the_lock_of_python_is_free_while_a_batch_is_awaited(tmp_path):
    """A counting thread goes on while the main thread waits for a compressed shard."""
    [shard] = write_shards(tmp_path / "plain", 64, shards=1, make=_large).glob("*.tar")
    packed = tmp_path / "shard.tar.gz"
    packed.write_bytes(gzip.compress(shard.read_bytes(), 1))
    loader = stoker.Loader(packed, 16, threads=1)
    ticks, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            ticks[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    before, began = ticks[0], time.monotonic()
    next(iter(loader))
    waited, counted = time.monotonic() - began, ticks[0] - before
    stop.set()
    thread.join()
    # Held for a slice of waiting (0.1 s) at a time, it would count ten in a second.
    assert counted > waited / 0.03


def _large(number):
    generator = numpy.random.default_rng(number)
    return {"npy": generator.integers(0, 100, (256, 1024)).astype(numpy.float32), "cls": number}


def test_notices_go_to_logging(dataset, caplog):
    from stoker import _context

    with caplog.at_level(logging.WARNING, "stoker"):
        _context._tell_notice("no batch for 30 s: 100 %")
    assert caplog.records[0].name == "stoker"
    assert caplog.records[0].getMessage() == "no batch for 30 s: 100 %"


def test_a_long_wait_is_told_once_with_its_cause(tmp_path, caplog):
    """A compressed shard is decoded whole before its first sample comes: this one takes a while."""
    half_bytes = numpy.random.default_rng(0).integers(0, 16, 60 << 20, dtype=numpy.uint8)
    write_tar(tmp_path / "plain.tar", [("a", {"npy": half_bytes})])
    data = (tmp_path / "plain.tar").read_bytes()
    (tmp_path / "plain.tar").unlink()
    (tmp_path / "slow.tar.gz").write_bytes(gzip.compress(data, 1))
    loader = stoker.Loader(tmp_path / "slow.tar.gz", stall_seconds=0.2)
    with caplog.at_level(logging.WARNING, "stoker"):
        list(loader)
    told = [record.getMessage() for record in caplog.records]
    assert [text.partition(":")[0] for text in told] == ["no batch for 0 s"], told


def test_a_stop_and_a_continue_do_no_harm(shards):
    script = """
import json, sys, time
import stoker
loader = stoker.Loader(sys.argv[1], 1, shuffle=True)
seen = []
for batch in loader:
    seen += batch.samples.tolist()
    if len(seen) == 10:
        print("ten", flush=True)
    time.sleep(0.005)
print(json.dumps(sorted(seen)))
"""
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(shards)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "ten\n"
    child.send_signal(signal.SIGSTOP)
    time.sleep(1)
    child.send_signal(signal.SIGCONT)
    text, _ = child.communicate(timeout=60)
    assert json.loads(text) == list(range(100))
    assert child.returncode == 0
    assert os.getpid() != child.pid
