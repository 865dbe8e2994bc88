"""The Python hook of `stoker run` samples stacks, and knows what a loop takes its batches from."""

import pytest
from ring_reader import N
from watching import SITE

torch = pytest.importorskip("torch")


@pytest.mark.alone
def test_stacks_name_functions_files_and_lines(watched):
    watched.train(
        """
        def busy(seconds):
            until = time.thread_time() + seconds
            while time.thread_time() < until:
                pass

        model, optimizer = new_model()
        for x, y in DataLoader(Numbers(8), batch_size=8):
            busy(0.5)
            time.sleep(0.7)
        """
    )
    run = watched.read()
    (main,) = run.mains()
    stacks = run.stacks(main["pid"])
    mine = [(one, stack) for one, stack in stacks if one.kind == N["SAMPLE_MAIN"]]
    busy = [one for one, stack in mine if stack and stack[0].function == "busy"]
    assert sum(one.weight for one in busy) > 0.4e9
    assert 0.4e9 < sum(one.cpu for one in busy) < 0.6e9
    frame = next(stack for one, stack in mine if stack and stack[0].function == "busy")
    assert [one.function for one in frame] == ["busy", "<module>"]
    assert {one.file for one in frame} == {"train.py"}
    text = (watched.work / "train.py").read_text().splitlines()
    assert (
        "while time.thread_time()" in text[frame[0].line - 1] or "pass" in text[frame[0].line - 1]
    )
    own = [(one, stack) for one, stack in mine if stack and stack[0].file == "train.py"]
    slept = [one for one, stack in own if "time.sleep(0.7)" in text[stack[0].line - 1]]
    assert sum(one.weight for one in slept) > 0.5e9
    assert sum(one.cpu for one in slept) < 0.15e9
    for _, stack in stacks:
        assert not any("stoker_watch" in frame.file for frame in stack)
    sampled = run.marks("MARK_SAMPLED")
    assert sampled and sampled[0].fields.a == 100 and 1_000 < sampled[0].fields.b < 130_000
    assert any(one.kind == N["SAMPLE_OURS"] for one, _ in stacks)
    assert run.of("RECORD_REACHED")


def sources(run):
    """Functions that are told to be what a loop iterates over or indexes."""
    flagged = [one for one in run.of("RECORD_FRAME") if one.flags & N["FRAME_IS_SOURCE"]]
    return {one.fields.function for one in flagged}


def test_what_a_loop_iterates_over_or_indexes_is_marked(watched):
    watched.train(
        """
        model, optimizer = new_model()

        class Own:
            def __getitem__(self, number):
                time.sleep(0.02)
                return torch.ones(4, 4)

        def batches(own):
            for number in range(30):
                time.sleep(0.02)
                yield own[number]

        for x in batches(Own()):
            model(sum(part for part in x.split(1))).sum().backward()
            optimizer.step()
            time.sleep(0.02)
        """
    )
    run = watched.read()
    names = {one.fields.function.split(".")[-1] for one in run.of("RECORD_FRAME")}
    assert "<module>" in names
    assert {name.split(".")[-1] for name in sources(run)} == {"batches", "__getitem__"}


def test_a_generator_that_trains_is_not_marked(watched):
    """Stacks are taken before the first step is made: they are told anew."""
    watched.train(
        """
        from stoker_watch import stacks
        model, optimizer = new_model()

        def losses():
            stacks.start()
            for number in range(30):
                time.sleep(0.02)
                model(torch.ones(4, 4)).sum().backward()
                optimizer.step()
                yield number

        for _ in losses():
            pass
        """
    )
    run = watched.read()
    first = min(one.fields.time for one in run.marks("MARK_STEP"))
    told, flagged = {}, {True: 0, False: 0}  # samples after the first step
    for one in run.records:
        if one.kind == N["RECORD_FRAME"]:
            told[one.fields.id] = one
        elif one.kind == N["RECORD_SAMPLE"] and one.fields.kind == N["SAMPLE_MAIN"]:
            frame = told.get(one.fields.frame)
            while frame and not frame.fields.function.endswith("losses"):
                frame = told.get(frame.fields.parent)
            if frame and one.fields.time > first + 50_000_000:
                flagged[bool(frame.flags & N["FRAME_IS_SOURCE"])] += 1
    assert flagged[True] == 0 and flagged[False] >= 5


@pytest.mark.alone
def test_stacks_of_the_loop_are_sampled_as_often_as_asked_whatever_came_before(watched):
    """Code that is always new costs much to tell: fewer stacks are taken, until training begins."""
    watched.train(
        """
        model, optimizer = new_model()
        optimizer.step()  # stacks are taken from here on
        until = time.monotonic() + 3.5
        while time.monotonic() < until:
            names = {}
            chain = "".join(f"def f{i}(): return f{i - 1}()\\n" for i in range(1, 60))
            exec("def f0():\\n end = time.monotonic() + 0.01\\n"
                 " while time.monotonic() < end: pass\\n" + chain, {"time": time}, names)
            for name, function in names.items():
                function.__globals__[name] = function
            names["f59"]()
        for x, y in DataLoader(Numbers(8), batch_size=8):
            until = time.monotonic() + 0.6
            while time.monotonic() < until:
                pass
        """
    )
    run = watched.read()
    (main,) = run.mains()
    begun = run.spans("SPAN_ITER")[0].fields.start
    mine = [one for one, _ in run.stacks(main["pid"]) if one.kind == N["SAMPLE_MAIN"]]
    before = [one for one in mine if begun - 500_000_000 < one.time <= begun]
    within = [one for one in mine if begun < one.time <= begun + 600_000_000]
    assert len(before) < 15, "what came before was to be costly"
    assert len(within) >= 16, f"{len(within)} stacks in 0.6 s"


def test_a_thread_that_always_runs_is_sampled_less_often_and_later_still_less(monkeypatch):
    monkeypatch.syspath_prepend(str(SITE))
    from stoker_watch import stacks

    def seconds(count, share):
        """The pace in each, of a thread that runs for this share of the time."""
        paces = []
        for _ in range(count):
            paces.append(pace.now)
            pace.spent += int(pace.now * 230_000 * share)  # a fifth of a millisecond, and its own
            pace.keep(stacks.SECOND)
        return paces

    pace = stacks.Pace(100)
    assert seconds(3600, share=0.04) == [100] * 3600, "one that waits hardly loses anything"
    running = seconds(3600, share=1)
    assert running[:3] == [100, 50, 25]
    assert 400 < sum(one for one in running if one > 12) < 700, "then the shares are known"
    assert set(running[60:]) == {5}
    assert seconds(60, share=0.04)[-1] > 75
    assert set(seconds(60, share=1)[6:]) == {5}, "what there was at first does not come back"
    assert min(seconds(60, share=9)) == 5, "fewer would tell nothing, whatever they cost"
    pace = stacks.Pace(2)
    assert set(seconds(60, share=9)) == {2}, "as asked"
