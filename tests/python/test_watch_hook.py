"""The Python hook of `stoker run` tells what a training loop does."""

import ast
import sys

import pytest
import ring_reader
from ring_reader import N
from watching import SITE

torch = pytest.importorskip("torch")


def cpu_of(span):
    """The CPU time that a span's flags tell, in nanoseconds."""
    share = span.flags >> 4
    assert 1 <= share <= 4001
    return (share - 1) * (span.fields.end - span.fields.start) / 4000


def test_numbers_are_those_of_the_c_header():
    tree = ast.parse((SITE / "stoker_watch" / "ring.py").read_text())
    spelled = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            names, values = node.targets[0], node.value
            pairs = (
                zip(names.elts, values.elts, strict=True)
                if isinstance(names, ast.Tuple)
                else [(names, values)]
            )
            for name, value in pairs:
                if isinstance(value, ast.Constant):
                    spelled[name.id] = value.value
    prefixes = ("RECORD_", "SPAN_", "MARK_", "COPY_", "SAMPLE_", "RING_")
    ours = {name: value for name, value in spelled.items() if name.startswith(prefixes)}
    assert len(ours) > 40
    assert ours == {name: N[name] for name in ours}
    assert spelled["MAGIC"] == N["RING_MAGIC"] and spelled["HEADER"] == N["RING_HEADER"]


def test_a_loop_without_workers_is_told(watched):
    watched.train(
        """
        model, optimizer = new_model()
        loader = DataLoader(Numbers(seconds=0.001), batch_size=8)
        print(train(model, optimizer, loader), train(model, optimizer, loader))
        """
    )
    run = watched.read()
    assert len(run.rings) == 1 and run.rings[0].lost == 0
    assert run.rings[0].state == N["RING_CLOSED"]
    (process,) = run.mains()
    assert process["name"] == "python train.py" and process["main"] == process["pid"]
    assert process["torch"] == torch.__version__ and process["rank"] is None
    assert process["python"] == sys.version.split()[0]

    nexts = run.spans("SPAN_NEXT")
    assert [one.fields.b for one in nexts] == [0, 1, 2, 3, 4] * 2
    assert [one.flags & 1 for one in nexts] == [0, 0, 0, 0, 1] * 2
    assert all(one.fields.start < one.fields.end for one in nexts)
    assert all(one.fields.thread == process["pid"] for one in nexts)
    assert [one.fields.b for one in run.marks("MARK_BATCH")] == [8] * 8
    assert [one.fields.b for one in run.marks("MARK_EPOCH")] == [0, 1]
    assert len(run.marks("MARK_EPOCH_END")) == 2 and len(run.marks("MARK_END")) == 1
    assert [one.fields.a for one in run.marks("MARK_STEP")] == [1] * 8
    assert len(run.spans("SPAN_ITER")) == 2
    for name in ("SPAN_FETCH", "SPAN_COLLATE", "SPAN_BACKWARD", "SPAN_OPTIMIZER"):
        assert len(run.spans(name)) == 8, name
    assert run.notices() == []


@pytest.mark.alone
def test_fetch_and_collate_lie_in_next_and_know_their_cpu_time(watched):
    watched.train(
        """
        def collate(samples):
            until = time.thread_time() + 0.02
            while time.thread_time() < until:
                pass
            return torch.utils.data.default_collate(samples)

        model, optimizer = new_model()
        train(model, optimizer, DataLoader(Numbers(16, 0.004), batch_size=8, collate_fn=collate))
        """
    )
    run = watched.read()
    nexts, fetches = run.spans("SPAN_NEXT"), run.spans("SPAN_FETCH")
    for whole, fetch, collate in zip(nexts, fetches, run.spans("SPAN_COLLATE"), strict=False):
        assert whole.fields.start <= fetch.fields.start < fetch.fields.end
        assert fetch.fields.end == collate.fields.start < collate.fields.end <= whole.fields.end
        assert (fetch.fields.a, fetch.fields.b) == (whole.fields.a, whole.fields.b)
        assert fetch.fields.end - fetch.fields.start >= 8 * 4_000_000
        assert 0 < cpu_of(fetch) < 0.015e9, "it sleeps"
        assert cpu_of(collate) > 0.015e9, "it works"
    (loader,) = {one["collate"] for one in run.json("RECORD_LOADER")}
    assert loader == "__main__.collate"


def test_a_loader_is_described_by_names_and_numbers(watched):
    watched.train(
        """
        model, optimizer = new_model()
        loader = DataLoader(Numbers(), batch_size=8, num_workers=1, prefetch_factor=3)
        train(model, optimizer, loader)
        """
    )
    told = watched.read().json("RECORD_LOADER")
    assert len(told) == 2 and told[1] == dict(told[0], batch_bytes=8 * 4 * 4 + 8 * 8)
    line = 1 + (watched.work / "train.py").read_text().split("loader = DataLoader")[0].count("\n")
    assert told[0] == {
        "id": 1,
        "kind": "torch",
        "class": "DataLoader",
        "dataset": "__main__.Numbers",
        "collate": "torch.utils.data._utils.collate.default_collate",
        "batch_size": 8,
        "workers": 1,
        "prefetch_factor": 3,
        "pin_memory": False,
        "persistent_workers": False,
        "in_order": True,
        "samples": 32,
        "batches": 4,
        "context": None,
        "file": "train.py",
        "line": line,
    }


@pytest.mark.parametrize("way", ["fork", "spawn", "forkserver"])
def test_workers_tell_however_they_are_started(watched, way):
    watched.train(
        f"""
        model, optimizer = new_model()
        first = DataLoader(Numbers(8), batch_size=8)
        train(model, optimizer, first)
        loader = DataLoader(Numbers(seconds=0.002), 8, num_workers=2,
                            multiprocessing_context="{way}")
        train(model, optimizer, loader)
        """
    )
    run = watched.read()
    (main,) = run.mains()
    workers = run.workers()
    assert sorted(one["worker"] for one in workers) == [0, 1]
    assert {one["main"] for one in workers} == {main["pid"]}
    pids = {one["pid"] for one in workers}
    for name in ("SPAN_FETCH", "SPAN_COLLATE", "SPAN_SEND"):
        theirs = [one for one in run.spans(name) if one.pid in pids]
        assert sorted(one.fields.b for one in theirs) == [0, 1, 2, 3], name
        assert {one.fields.a for one in theirs} == {2}, name
    assert {one.pid for one in run.spans("SPAN_IDLE")} == pids
    assert all(ring.state == N["RING_CLOSED"] and ring.lost == 0 for ring in run.rings)
    functions = {frame.function for pid in pids for _, stack in run.stacks(pid) for frame in stack}
    assert "Numbers.__getitem__" in functions
    assert run.notices() == []


@pytest.mark.parametrize(
    ("command", "rings"),
    [
        ("from multiprocessing.forkserver import main; ", 0),  # Python 3.11, 3.12
        ("import sys; from multiprocessing.forkserver import main; ", 0),  # 3.13, 3.14
        ("from multiprocessing.resource_tracker import main;", 0),
        ("from multiprocessing.spawn import spawn_main; ", 0),
        ("from multiprocessing.pool import ThreadPool; ", 1),  # a script as any other
    ],
)
def test_processes_of_multiprocessing_itself_are_no_ranks(watched, command, rings):
    watched.python("-c", command + "import torch")
    assert len(watched.read().rings) == rings


def test_queues_are_looked_at_as_next_begins(watched):
    watched.train(
        """
        model, optimizer = new_model()
        loader = DataLoader(Numbers(40), batch_size=8, num_workers=2)
        iterator = iter(loader)
        time.sleep(1)
        for x, y in iterator:
            pass
        """
    )
    run = watched.read()
    starts = {one.fields.start for one in run.spans("SPAN_NEXT")}
    queues = [one for one in run.of("RECORD_QUEUE") if not one.flags]
    assert {one.fields.time for one in queues} == starts
    first = queues[0].fields
    assert (first.loader, first.outstanding, first.early, first.unpinned) == (1, 4, 0, -1)
    assert first.ready == 4, "all that was asked for has come"
    assert queues[-1].fields.outstanding == 0


@pytest.mark.alone
def test_one_slow_sample_shows_as_batches_that_came_before_their_turn(watched):
    watched.train(
        """
        model, optimizer = new_model()
        train(model, optimizer, DataLoader(Slow(64), batch_size=8, num_workers=2))
        """,
        top="""
        class Slow(Numbers):
            def __getitem__(self, i):
                if i == 16:
                    time.sleep(1.5)
                return super().__getitem__(i)
        """,
    )
    run = watched.read()
    longest = max(run.spans("SPAN_NEXT")[:-1], key=lambda one: one.fields.end - one.fields.start)
    if longest.fields.b == 0:
        pytest.skip("starting the workers took longer than the slow sample")
    after = [one for one in run.of("RECORD_QUEUE") if one.fields.time == longest.fields.end]
    assert after[0].flags == 1 and after[0].fields.early >= 1


@pytest.mark.alone
def test_checkpoints_and_validation_are_told(watched):
    watched.train(
        """
        model, optimizer = new_model()
        frozen, teacher = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
        teacher.eval()
        loader = DataLoader(Numbers(), batch_size=8)
        for epoch in range(2):
            model.train()
            frozen.eval()
            train(model, optimizer, loader)
            model.eval()
            for x, y in loader:
                time.sleep(0.02)
                model(x)
            torch.save(model.state_dict(), "model.pt")
        """
    )
    run = watched.read()
    validation = [one.fields for one in run.spans("SPAN_VALIDATION")]
    assert len(validation) == 2, "each after an epoch; frozen modules and teachers are none"
    assert all(0.08e9 < one.end - one.start < 1e9 for one in validation)
    saves = [one.fields for one in run.spans("SPAN_CHECKPOINT")]
    assert len(saves) == 2
    assert validation[0].start < saves[0].start


def test_what_a_script_writes_between_batches_is_a_checkpoint(watched):
    done = watched.train(
        """
        import pickle
        import numpy

        class Caching(Numbers):
            def __getitem__(self, index):
                numpy.save("cache.npy", numpy.ones(index))
                return super().__getitem__(index)

        def write(name, function, *arguments):
            with open(name, "wb") as file:
                first = function is pickle.dump
                function(*arguments, file) if first else function(file, *arguments)

        model, optimizer = new_model()
        write("before.pkl", pickle.dump, {})
        train(model, optimizer, DataLoader(Caching(), batch_size=8))
        for x, y in DataLoader(Caching(), batch_size=8):
            write("model.pkl", pickle.dump, {"model": model.state_dict()})
            write("model.npz", numpy.savez, x.numpy())
        torch.save(model.state_dict(), "model.pt")
        print(pickle.loads(pickle.dumps(pickle.dump)) is pickle.dump)
        print(sorted(pickle.load(open("model.pkl", "rb"))["model"]))
        """
    )
    assert done.stdout.splitlines() == ["True", "['bias', 'weight']"]
    assert len(watched.read().spans("SPAN_CHECKPOINT")) == 2 * 4 + 1


def test_a_batch_may_be_anything(watched):
    watched.train(
        """
        class Odd(Numbers):
            def __getitem__(self, i):
                return {"name": str(i), "x": torch.zeros(3)}

        for kind, collate in ((Odd, None), (Odd, list), (Numbers, lambda samples: "text")):
            for batch in DataLoader(kind(6), batch_size=3, collate_fn=collate):
                pass
        for batch in DataLoader(Numbers(2), batch_size=None):
            pass
        """
    )
    run = watched.read()
    assert [one.fields.b for one in run.marks("MARK_BATCH")] == [3, 3, 3, 3, 3, 3, 4, 4]
    assert run.notices() == []


def test_objects_of_the_scripts_own_stop_no_watching(watched):
    """Shapes that raise, attributes that are anything, numbers of other libraries, iterators that
    are not torch's."""
    done = watched.train(
        """
        class Shaped:
            @property
            def shape(self):
                raise RuntimeError("theirs")
            nbytes = shape

        class Sized:
            shape = (5,)
            nbytes = Shaped.shape

        class Whole:
            def __index__(self):
                return 1
            __int__ = __index__

        class Sampler:
            batch_size = Whole()
            def __iter__(self):
                yield [0, 1]

        class Anything(Numbers):
            def __getattr__(self, name):
                if name.startswith("__"):
                    raise AttributeError(name)
                return Shaped()

        class Listed(DataLoader):
            def _get_iterator(self):
                return iter([1, 2])

        for batch in (Shaped(), Sized(), torch.nested.nested_tensor([torch.ones(2)])):
            next(iter(DataLoader(Numbers(), batch_size=4, collate_fn=lambda _, made=batch: made)))
        next(iter(DataLoader(Anything(), batch_size=4)))
        next(iter(DataLoader(Numbers(), batch_sampler=Sampler())))
        print(len(list(Listed(Numbers()))))
        next(iter(DataLoader(Numbers(), batch_size=4)))
        """
    )
    assert done.stdout == "2\n"
    run = watched.read()
    assert run.notices() == []
    assert [one.fields.b for one in run.marks("MARK_BATCH")] == [4, 5, 4, 4, 2, 4]


def test_opened_files_are_counted(watched):
    folder = watched.work / "images"
    folder.mkdir()
    for i in range(20):
        (folder / f"{i}.bin").write_bytes(bytes(100 + i))
    top = """
        class Files(Dataset):
            def __len__(self):
                return 20

            def __getitem__(self, i):
                with open(f"images/{i}.bin", "rb") as file:
                    return len(file.read())
    """
    body = """
        for epoch in range(2):
            for batch in DataLoader(Files(), batch_size=5, num_workers=int(sys.argv[1])):
                pass
    """
    watched.train(body, 0, top=top)
    last = watched.read().json("RECORD_FILES")[-1]
    assert (last["opens"], last["distinct"]) == (20, 20)
    assert last["folder"] == str(folder) and last["extension"] == ".bin"
    assert 20 * 100 <= last["bytes"] <= 20 * 120

    watched.begin({"stack_hz": 100})
    watched.train(body, 2, top=top)
    run = watched.read()
    last = {one.pid: one.fields.text for one in run.of("RECORD_FILES")}
    assert len(last) == 4, "two workers in two epochs"


def test_the_script_ends_as_it_would_alone(watched):
    for statement, status in (
        ("sys.exit(7)", 7),
        ("raise KeyError('mine')", 1),
        ("import os; time.sleep(1); os._exit(5)", 5),
        ("import os, signal; time.sleep(1); os.kill(os.getpid(), signal.SIGKILL)", -9),
    ):
        watched.begin({"stack_hz": 100})
        done = watched.train(
            f"""
            model, optimizer = new_model()
            train(model, optimizer, DataLoader(Numbers(), batch_size=8))
            {statement}
            """,
            check=False,
        )
        assert done.returncode == status, done.stderr
        run = watched.read()
        assert len(run.marks("MARK_STEP")) == 4, "what was told a second ago stays, come what may"
        assert len(run.marks("MARK_END")) == (0 if status in (5, -9) else 1)
        if status == 1:
            assert done.stderr.count("Traceback") == 1 and "stoker" not in done.stderr


def test_an_exception_in_a_worker_is_the_users(watched):
    done = watched.train(
        """
        model, optimizer = new_model()
        train(model, optimizer, DataLoader(Bad(), batch_size=8, num_workers=1))
        """,
        top="""
        class Bad(Numbers):
            def __getitem__(self, i):
                raise ValueError("sample %d is bad" % i)
        """,
        check=False,
    )
    assert done.returncode == 1
    assert "ValueError: sample 0 is bad" in done.stderr.splitlines()
    assert watched.read().notices() == []


def test_epochs_that_are_broken_off_and_workers_that_persist(watched):
    watched.train(
        """
        loader = DataLoader(Numbers(), batch_size=8, num_workers=1, persistent_workers=True)
        for epoch in range(3):
            for batch in loader:
                if epoch == 1:
                    break
        """
    )
    run = watched.read()
    assert len(run.workers()) == 1
    assert [one.fields.b for one in run.spans("SPAN_ITER")] == [1, 0, 0], "workers that it started"
    assert [one.fields.b for one in run.marks("MARK_EPOCH")] == [0, 1, 2]
    assert [one.fields.b for one in run.marks("MARK_EPOCH_END")] == [0, 2]
    assert [one.fields.b for one in run.spans("SPAN_NEXT")] == [0, 1, 2, 3, 4, 0, 0, 1, 2, 3, 4]


def test_a_ring_that_nobody_reads_loses_records_and_counts_them(watched):
    watched.train(
        """
        import stoker_watch.recording as recording
        loader = DataLoader(Numbers(8), batch_size=8)
        for batch in loader:
            pass
        for i in range(40000):
            recording.mark(1, i)
        ring = recording.get()
        print(ring.lost(), ring.room())
        """
    )
    path = next(watched.folder.glob("ring.*.py"))
    ring = ring_reader.read_ring(path)
    assert ring.lost > 10000
    marks = [one.fields.a for one in ring.records if one.kind == N["RECORD_MARK"]]
    assert marks[-1] < 40000


def test_records_wrap_at_the_end_of_the_ring(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SITE))
    from stoker_watch import ring as rings

    ring = rings.Ring(str(tmp_path), 77, 1 << 12)
    tail = ring._words
    seen = 0
    for i in range(1000):
        assert ring.put(rings.MARK.pack_into, 40, rings.RECORD_MARK, 0, i, 1, 2, 3, 4)
        head = ring._words[8]
        record, size = None, 0
        at = tail[16]
        while at < head:
            record, size = ring_reader.parse(77, bytes(ring._map), 4096 + (at & 4095))
            at += size
        tail[16] = at
        assert record.fields.time == i
        seen += 1
    assert seen == 1000 and ring.lost() == 0
    words = "é" * 100
    assert ring.put_text(rings.TEXT.pack_into, 16, rings.RECORD_NOTICE, (0, 200), words.encode())


def test_records_that_wait_are_written_in_their_order(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SITE))
    from stoker_watch import ring as rings

    def times():
        path = next(tmp_path.glob("ring.*.py"))
        return [one.fields.time for one in ring_reader.read_ring(path).records]

    def write(ring, time, what):
        ring.put(rings.MARK.pack_into, 40, rings.RECORD_MARK, 0, time, 1, what, 3, 4)

    ring = rings.Ring(str(tmp_path), 77, 1 << 22)
    for i in range(3):
        ring.waiting.append((write, i, 2))
    assert times() == []
    assert ring.flush() and times() == [0, 1, 2]
    ring.waiting.append((write, 3, 2))
    with ring._flushing:
        assert not ring.flush(), "not done: what comes next must not count on it"
    assert ring.flush() and times()[-1] == 3 and ring.lost() == 0
    for i in range(rings.WAITING_MOST + 5):
        ring.waiting.append((write, i, 2))
    assert ring.flush() and ring.lost() > 0, (
        "nobody came for long: the oldest are gone, and that is told"
    )
    assert times()[-1] == rings.WAITING_MOST + 4


def test_samples_are_counted_though_not_each_batch_is_asked(watched):
    """The last batch is smaller; and batches that change are all asked again."""
    done = watched.train(
        """
        import random
        from stoker_watch import torch_loader
        asked, samples_of = [], torch_loader.samples_of
        def counted(batch, otherwise, depth=0):
            asked.append(1)
            return samples_of(batch, otherwise, depth)
        torch_loader.samples_of = counted
        model, optimizer = new_model()
        train(model, optimizer, DataLoader(Numbers(4 * 100 + 1), batch_size=4))
        print(len(asked))
        sizes = [4] * 32 + [random.Random(i).randrange(2, 9) for i in range(60)]
        numbers = iter(range(sum(sizes)))
        batches = [[next(numbers) for _ in range(size)] for size in sizes]
        train(model, optimizer, DataLoader(Numbers(sum(sizes)), batch_sampler=batches))
        print(sum(sizes))
        """
    )
    asked, changing = map(int, done.stdout.split())
    assert asked < 30
    marks = [one.fields for one in watched.read().of("RECORD_MARK")]
    batches = [one for one in marks if one.what == N["MARK_BATCH"]]
    assert sum(one.b for one in batches if one.a == 1) == 401
    assert sum(one.b for one in batches if one.a == 2) == changing


def test_cpu_time_is_asked_now_and_then_and_of_every_long_span(monkeypatch):
    monkeypatch.syspath_prepend(str(SITE))
    from stoker_watch.recording import ASK_EVERY, UNASKED, Shares, share

    shares = Shares()
    assert shares.of(UNASKED, 1000) == 0, "nothing is known yet"
    half = shares.of(500, 1000)
    assert half == share(500, 1000) > 0
    assert shares.of(UNASKED, 3000) == half, "as the one before"
    assert shares.of(UNASKED, ASK_EVERY) == 0, "unlike the one before: not known"
    assert shares.of(1000, 1000) > half


def test_the_loop_leaves_the_writing_to_the_sampler(watched):
    """And nothing is lost when that thread ends for a fork, or for good."""
    done = watched.train(
        """
        import os
        from stoker_watch import recording, stacks
        model, optimizer = new_model()
        loader = DataLoader(Numbers(), batch_size=8)
        train(model, optimizer, loader)
        sampler = stacks._sampler
        while not sampler.thread:
            time.sleep(0.01)
        sampler.sampling.acquire()
        time.sleep(0.1)  # it is held up now
        recording.mark(99, 1)
        print(len(recording.get().waiting) > 0)
        sampler.sampling.release()
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        recording.mark(99, 2)
        stacks.stop()
        recording.mark(99, 3)
        print(len(recording.get().waiting))
        """
    )
    assert done.stdout.split() == ["True", "0"]
    marks = [one.fields for one in watched.read().of("RECORD_MARK")]
    assert [one.a for one in marks if one.what == 99] == [1, 2, 3]


def test_the_pin_thread_is_told(tmp_path, watched):
    watched.train(
        """
        import queue, threading
        from stoker_watch.recording import state
        from torch.utils.data._utils import pin_memory
        torch.accelerator.set_device_index = lambda index: None
        batches, pinned, done = queue.Queue(), queue.Queue(), threading.Event()
        state.opened = 3
        thread = threading.Thread(
            target=pin_memory._pin_memory_loop, args=(batches, pinned, 0, done, "cpu"))
        thread.start()
        time.sleep(0.1)
        for i in range(3):
            batches.put((i, ["text", i]))
            print(pinned.get())
        done.set()
        batches.put((3, ["text", 3]))
        thread.join()
        """
    )
    pins = watched.read().spans("SPAN_PIN")
    assert [(one.fields.a, one.fields.b) for one in pins] == [(3, 0), (3, 1), (3, 2)]
