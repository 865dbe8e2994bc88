"""The hook's module in C times what comes again at each step, and tells what Python would tell."""

from collections import Counter

import pytest
from ring_reader import N
from watching import MODULE, Watched

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not MODULE.exists(), reason="built without Python's headers")

COUNT = """
import sys, time

calls = {}

def count(frame, event, argument):
    code = frame.f_code
    if event == "call" and "stoker_watch" in code.co_filename:
        calls[code.co_qualname] = calls.get(code.co_qualname, 0) + 1
"""

# Loops of different kinds. `steps` tells how many batches each draws.
LOOPS = {
    "plain": """
        model, optimizer = new_model()
        loader = DataLoader(Numbers(800), batch_size=2)
        train(model, optimizer, loader)
        train(model, optimizer, loader)
    """,
    "workers": """
        model, optimizer = new_model()
        train(model, optimizer, DataLoader(Numbers(800), batch_size=4, num_workers=2))
    """,
    "a smaller last batch": """
        model, optimizer = new_model()
        train(model, optimizer, DataLoader(Numbers(403), batch_size=2))
    """,
    "left early": """
        model, optimizer = new_model()
        for _ in range(3):
            for number, (x, y) in enumerate(DataLoader(Numbers(800), batch_size=2)):
                if number == 150:
                    break
                ((model(x) - y) ** 2).mean().backward()
                optimizer.step()
    """,
    "two loaders side by side": """
        model, optimizer = new_model()
        pair = DataLoader(Numbers(200), batch_size=2), DataLoader(Numbers(200), batch_size=2)
        for (x, y), _ in zip(*pair):
            ((model(x) - y) ** 2).mean().backward()
            optimizer.step()
    """,
    "a loader in a loader": """
        model, optimizer = new_model()
        loader = DataLoader(Outer(400), batch_size=2)
        for _ in loader:
            pass
        for (x, y) in DataLoader(Numbers(200), batch_size=2):
            ((model(x) - y) ** 2).mean().backward()
            optimizer.step()
    """,
    "several optimizers": """
        pairs = [new_model() for _ in range(6)]
        for x, y in DataLoader(Numbers(400), batch_size=2):
            for model, optimizer in pairs:
                ((model(x) - y) ** 2).mean().backward()
                optimizer.step()
    """,
    "a closure": """
        model, _ = new_model()
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
        for x, y in DataLoader(Numbers(100), batch_size=2):
            def closure():
                optimizer.zero_grad()
                loss = ((model(x) - y) ** 2).mean()
                loss.backward()
                return loss
            optimizer.step(closure)
    """,
    "validation": """
        model, optimizer = new_model()
        held = DataLoader(Numbers(100), batch_size=2)
        for _ in range(3):
            model.train()
            train(model, optimizer, DataLoader(Numbers(200), batch_size=2))
            model.eval()
            for x, y in held:
                model(x)
    """,
    "a step in a step": """
        model, optimizer = new_model()
        inner = torch.optim.SGD(new_model()[0].parameters(), lr=0.1)

        class Both(torch.optim.SGD):
            def step(self):
                inner.step()
                return super().step()

        train(model, Both(model.parameters(), lr=0.1), DataLoader(Numbers(400), batch_size=2))
    """,
    "steps without a loader": """
        model, optimizer = new_model()
        for _ in range(300):
            model(torch.ones(2, 4)).mean().backward()
            optimizer.step()
    """,
}

TOP = """
class Outer(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        if index % 50 < 49:
            return index
        return sum(len(x) for x, y in DataLoader(Numbers(6), batch_size=2))
"""


def told(run):
    """What the main process told, without the times: spans and marks, how often each. Numbers of
    loaders and optimizers are as they were met."""
    (ring,) = [ring for ring in run.rings if ring.pid == run.mains()[0]["pid"]]
    assert ring.lost == 0
    found = Counter()
    for one in ring.records:
        if one.kind == N["RECORD_SPAN"]:
            found["span", one.fields.what, one.fields.a, one.fields.b] += 1
        elif one.kind == N["RECORD_MARK"] and one.fields.what != N["MARK_SAMPLED"]:
            found["mark", one.fields.what, one.fields.a, one.fields.b] += 1
    return found


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_is_told_as_python_alone_tells_it(tmp_path, name):
    answers = []
    for has_module in True, False:
        folder = tmp_path / str(has_module)
        folder.mkdir()
        one = Watched(folder, has_module)
        one.train(LOOPS[name], top=TOP)
        answers.append(told(one.read()))
    quick, careful = answers
    assert quick == careful
    assert sum(quick.values()) > 300


def test_records_keep_the_order_in_which_things_ended(watched):
    watched.train(LOOPS["validation"])
    run = watched.read()
    for marks, number in ("MARK_BATCH", 450), ("MARK_STEP", 300):
        times = [one.fields.time for one in run.marks(marks)]
        assert len(times) == number and times == sorted(times)
    for spans, number in ("SPAN_NEXT", 456), ("SPAN_BACKWARD", 300), ("SPAN_OPTIMIZER", 300):
        ends = [one.fields.end for one in run.spans(spans)]
        assert len(ends) == number and ends == sorted(ends)


def test_spans_follow_one_another(watched):
    watched.train(LOOPS["plain"])
    run = watched.read()
    nexts = sorted(one.fields.start for one in run.spans("SPAN_NEXT"))
    spans = {name: run.spans(f"SPAN_{name}") for name in ("NEXT", "FETCH", "COLLATE")}
    by_batch = {(one.fields.b, one.fields.start): one.fields for one in spans["NEXT"]}
    assert len(nexts) == 802 and len(spans["FETCH"]) == len(spans["COLLATE"]) == 800
    for fetch, collate in zip(spans["FETCH"], spans["COLLATE"], strict=True):
        fetch, collate = fetch.fields, collate.fields
        whole = by_batch[fetch.b, fetch.start]
        assert whole.start == fetch.start <= fetch.end == collate.start <= collate.end <= whole.end
    optimizer = run.spans("SPAN_OPTIMIZER")
    backward = run.spans("SPAN_BACKWARD")
    for before, after in zip(
        sorted(one.fields.end for one in backward),
        sorted(one.fields.start for one in optimizer),
        strict=True,
    ):
        assert before <= after


@pytest.mark.alone
def test_a_loop_that_goes_on_as_before_runs_next_to_nothing_of_the_hook(watched):
    """1,600 batches, backward passes and steps; one batch of 16 is looked at."""
    done = watched.train(
        """
        model, optimizer = new_model()
        loader = DataLoader(Numbers(3200), batch_size=2)
        sys.setprofile(count)
        train(model, optimizer, loader)
        sys.setprofile(None)
        print(max(calls.values()), calls)
        """,
        top=COUNT,
    )
    number = int(done.stdout.split()[0])
    assert number <= 300, done.stdout


@pytest.mark.parametrize(
    ("top", "body", "status", "words"),
    [
        (
            """
            class Broken(Numbers):
                def __getitem__(self, index):
                    if index == 700:
                        raise KeyError("sample 700")
                    return super().__getitem__(index)
            """,
            "train(*new_model(), DataLoader(Broken(1000), batch_size=2))",
            1,
            "KeyError: 'sample 700'",
        ),
        (
            """
            class Interrupted(Numbers):
                def __getitem__(self, index):
                    if index == 700:
                        os.kill(os.getpid(), 2)
                        time.sleep(5)
                    return super().__getitem__(index)
            """,
            "import os, signal; globals().update(os=os)\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "train(*new_model(), DataLoader(Interrupted(1000), batch_size=2))",
            -2,
            "KeyboardInterrupt",
        ),
        (
            """
            def put_together(samples):
                if samples[0] == 600:
                    raise SystemExit("enough")
                return torch.tensor(samples, dtype=torch.float32)
            """,
            "for x in DataLoader(range(1000), batch_size=2, collate_fn=put_together):\n    pass",
            1,
            "enough",
        ),
    ],
)
def test_a_fault_of_the_script_is_its_own(watched, top, body, status, words):
    done = watched.train(body, top=top, check=False)
    assert (done.returncode, done.stderr.strip().splitlines()[-1]) == (status, words)
    assert not watched.read().notices()


def test_a_slow_batch_among_quick_ones_is_told_with_its_parts(watched):
    watched.train(
        """
        train(*new_model(), DataLoader(Slow(1600), batch_size=2))
        """,
        top="""
        class Slow(Numbers):
            def __getitem__(self, index):
                if index % 400 == 201:
                    time.sleep(0.05)
                return super().__getitem__(index)
        """,
    )
    run = watched.read()
    slow = [one.fields for one in run.spans("SPAN_FETCH") if length(one) > 40000000]
    assert [one.b for one in slow] == [100, 300, 500, 700]
    assert len([one for one in run.spans("SPAN_NEXT") if length(one) > 40000000]) == 4


def length(span):
    return span.fields.end - span.fields.start


def test_what_is_wrapped_looks_like_the_functions_that_it_wraps(watched):
    done = watched.train(
        """
        import copy, inspect, pickle, weakref
        from torch.utils.data.dataloader import _BaseDataLoaderIter
        for function in torch.Tensor.backward, _BaseDataLoaderIter.__next__:
            print(type(function).__name__, function.__name__, function.__module__)
            assert pickle.loads(pickle.dumps(function)) is function
            assert copy.deepcopy(function) is function
            inspect.signature(function), inspect.getsource(function), function.__doc__
            assert weakref.ref(function)() is function
        x = torch.ones(2, requires_grad=True)
        bound = x.sum().backward
        assert inspect.ismethod(bound) and bound.__name__ == "backward"
        bound()
        print(x.grad.tolist())
        """
    )
    assert done.stdout.splitlines() == [
        "Moment backward torch._tensor",
        "Moment __next__ torch.utils.data.dataloader",
        "[1.0, 1.0]",
    ]


def test_a_step_within_a_step_leaves_the_outer_one_its_time(watched):
    watched.train(
        """
        model, optimizer = new_model()
        inner = torch.optim.SGD(new_model()[0].parameters(), lr=0.1)

        class Both(torch.optim.SGD):
            def step(self):
                inner.step()
                time.sleep(0.002)

        train(model, Both(model.parameters(), lr=0.1), DataLoader(Numbers(400), batch_size=2))
        """
    )
    lengths = sorted(length(one) for one in watched.read().spans("SPAN_OPTIMIZER"))
    assert len(lengths) == 400
    assert lengths[200] > 2000000


def test_a_loader_that_its_own_collate_holds_is_freed(watched):
    done = watched.train(
        """
        import gc, weakref

        class Trainer:
            def __init__(self):
                self.loader = DataLoader(Numbers(8), batch_size=2, collate_fn=self.collate)
                self.batches = iter(self.loader)

            def collate(self, samples):
                return torch.utils.data.default_collate(samples)

        trainer = Trainer()
        next(trainer.batches)
        seen = weakref.ref(trainer)
        del trainer
        until = time.monotonic() + 20  # what waits to be written holds it for a moment
        while seen() is not None and time.monotonic() < until:
            time.sleep(0.05)
            gc.collect()
        print(seen())
        """
    )
    assert done.stdout.split() == ["None"]


def test_a_python_without_the_gil_is_left_without_the_module(watched):
    done = watched.python(
        "-c",
        "import sys; sys.abiflags = 't'; import torch; from stoker_watch import moments;"
        "print(moments._quick)",
    )
    assert done.stdout.split() == ["None"]


def test_threads_of_the_script_may_draw_and_step_beside_the_loop(watched):
    watched.train(
        """
        import threading
        model, optimizer = new_model()

        def other():
            train(*new_model(), DataLoader(Numbers(400), batch_size=2))

        threads = [threading.Thread(target=other) for _ in range(3)]
        for thread in threads:
            thread.start()
        train(model, optimizer, DataLoader(Numbers(400), batch_size=2))
        for thread in threads:
            thread.join()
        """
    )
    run = watched.read()
    assert not run.notices()
    assert len(run.marks("MARK_BATCH")) == len(run.marks("MARK_STEP")) == 800
    threads = Counter(one.fields.thread for one in run.marks("MARK_STEP"))
    assert sorted(threads.values()) == [200] * 4


def test_a_fork_in_the_middle_of_a_loop_begins_anew_in_the_child(watched):
    watched.train(
        """
        import os
        model, optimizer = new_model()
        for number, (x, y) in enumerate(DataLoader(Numbers(800), batch_size=2)):
            ((model(x) - y) ** 2).mean().backward()
            optimizer.step()
            if number == 300 and not os.fork():
                train(model, optimizer, DataLoader(Numbers(400), batch_size=2))
                sys.exit()
        os.wait()
        """
    )
    run = watched.read()
    steps = Counter(one.pid for one in run.marks("MARK_STEP"))
    assert sorted(steps.values()) == [200, 400]
