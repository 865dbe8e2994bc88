"""The Python hook in all the ways in which Python and training loops are run."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from ring_reader import N
from watching import SITE

torch = pytest.importorskip("torch")


def test_a_script_that_has_a_model_says_so_once(watched):
    watched.train(
        """
        module = torch.nn.Module
        made = [new_model() for _ in range(3)]
        assert module.__init__.__module__ == "torch.nn.modules.module"
        train(*made[0], DataLoader(Numbers(), batch_size=8))
        """
    )
    assert len(watched.read().marks("MARK_MODULE")) == 1
    watched.begin({"stack_hz": 100})
    watched.train(
        """
        w = torch.zeros(4, 2, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        train(lambda x: x @ w, optimizer, DataLoader(Numbers(), batch_size=8))
        """
    )
    run = watched.read()
    assert run.marks("MARK_STEP") and not run.marks("MARK_MODULE")


# Python itself


def test_the_users_own_sitecustomize_still_runs(watched):
    folder = watched.work / "theirs"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import sys\nsys.theirs = __file__\n")
    script = watched.write(
        """
        import sys, sitecustomize
        print(sys.theirs, sitecustomize.__file__)
        print([path for path in sys.path if path.endswith("inject/site")])
        """
    )
    path = f"{SITE}:{folder}"
    done = watched.python(script, PYTHONPATH=path)
    theirs = str(folder / "sitecustomize.py")
    assert done.stdout.splitlines() == [f"{theirs} {theirs}", "[]"]


def test_a_fault_in_the_users_sitecustomize_is_told_as_python_tells_it(watched):
    folder = watched.work / "theirs"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("raise RuntimeError('theirs')\n")
    alone = watched.python("-c", "print(1)", PYTHONPATH=str(folder))
    done = watched.python("-c", "print(1)", PYTHONPATH=f"{SITE}:{folder}")
    assert (done.stdout, done.stderr) == (alone.stdout, alone.stderr)
    assert "RuntimeError: theirs" in done.stderr


@pytest.mark.parametrize("option", ["-I", "-S", "-E"])
def test_an_isolated_python_is_untouched(watched, option):
    done = watched.python(option, "-c", "import sys; print('stoker_watch' in sys.modules)")
    assert done.stdout == "False\n"
    assert not watched.read().rings


def test_a_python_that_trains_nothing_costs_nothing_and_tells_nothing(watched):
    done = watched.python(
        "-c",
        "import sys, threading; print(threading.active_count());"
        "print([name for name in sys.modules if name.startswith('stoker_watch.')])",
    )
    assert done.stdout.splitlines() == ["1", "['stoker_watch.importing']"]
    assert not watched.read().rings


@pytest.mark.parametrize("way", ["-c", "-m", "file"])
def test_scripts_modules_and_commands_are_watched(watched, way):
    text = (
        "import torch; model = torch.nn.Linear(2, 2);"
        "optimizer = torch.optim.SGD(model.parameters(), lr=1);"
        "model(torch.ones(1, 2)).sum().backward(); optimizer.step()"
    )
    watched.write(text, "job.py")
    arguments = {"-c": ["-c", text], "-m": ["-m", "job"], "file": ["job.py"]}[way]
    watched.python(*arguments)
    run = watched.read()
    (main,) = run.mains()
    assert main["name"] == {"-c": "python -c", "-m": "python -m job", "file": "python job.py"}[way]
    assert len(run.marks("MARK_STEP")) == 1


VERSIONS = ("3.8", "3.12", "3.13", "3.14")
PYTHONS = [
    path
    for version in VERSIONS
    for path in Path.home().glob(f".pyenv/versions/{version}.*/bin/python3")
]


@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: path.parts[-3])
def test_other_pythons_run_as_ever(watched, python):
    if subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode:
        pytest.skip("this Python does not start")
    script = watched.write(
        """
        import multiprocessing, subprocess, sys
        def double(x):
            return 2 * x
        if __name__ == "__main__":
            with multiprocessing.get_context("fork").Pool(2) as pool:
                print(pool.map(double, [1, 2]))
            print(subprocess.run([sys.executable, "-c", "print(3)"], capture_output=True).stdout)
            sys.exit(4)
        """
    )
    done = watched.python("-W", "error", script, python=python, check=False)
    assert done.returncode == 4, done.stderr
    assert done.stdout.splitlines() == ["[2, 4]", "b'3\\n'"] and done.stderr == ""
    assert not watched.read().rings
    # A module of torch's name is looked at like torch; what it lacks is left alone.
    (watched.work / "torch.py").write_text("save = print\n__version__ = '0'\n")
    script = watched.write("import os, time, torch\nos.fork() or os._exit(0)\ntime.sleep(0.1)\n")
    done = watched.python("-W", "error", script, python=python)
    assert done.stderr == ""
    (main,) = watched.read().mains()
    assert main["torch"] == "0" and main["python"].startswith("3.")


def test_no_thread_of_ours_is_there_when_the_script_forks(watched):
    """Nor when it forks again at once, as a loader does: newer Pythons warn of threads then."""
    done = watched.python(
        watched.write(
            """
            import os
            threads = []
            os.register_at_fork(before=lambda: threads.append(len(os.listdir("/proc/self/task"))))
            import torch
            torch.set_num_threads(1)
            for x in torch.utils.data.DataLoader([torch.ones(4)], batch_size=1):
                pass
            for _ in range(10):
                os.fork() or os._exit(0)
            print(threads)
            """
        ),
        OPENBLAS_NUM_THREADS="1",
        OMP_NUM_THREADS="1",
    )
    assert done.stdout == f"{[1] * 10}\n" and done.stderr == ""


def test_a_script_that_sets_cuda_up_tells_so(watched):
    for works in (True, False):
        watched.begin({"stack_hz": 100, "replay": None, "until_s": None})
        script = f"import torch; torch.cuda._initialized = {works}; torch.cuda._lazy_init()"
        watched.python("-c", script, check=works, CUDA_VISIBLE_DEVICES="")
        assert len(watched.read().marks("MARK_CUDA")) == works


def test_tensorflow_is_said_not_to_be_looked_into(watched):
    (watched.work / "tensorflow.py").write_text("")
    watched.python("-c", "import tensorflow")
    assert watched.read().notices() == [
        "TensorFlow is not looked into: GPU busy and host figures only."
    ]


def test_a_process_that_begins_after_the_end_stays_quiet(watched):
    (watched.folder / "stop").touch()
    watched.python("-c", "import torch")
    assert not list(watched.folder.glob("ring.*"))


def test_a_fault_of_ours_is_told_and_harms_nothing(watched):
    done = watched.train(
        """
        import stoker_watch.torch_loader as ours
        ours.samples_of = None
        model, optimizer = new_model()
        print(train(model, optimizer, DataLoader(Numbers(), batch_size=8)))
        """
    )
    assert done.stdout == "4\n" and done.stderr == ""
    run = watched.read()
    (notice,) = run.notices()
    assert "torch DataLoader" in notice and "TypeError" in notice
    assert len(run.marks("MARK_STEP")) == 4, "the other parts go on"


def test_a_folder_that_is_gone_harms_nothing(watched):
    shutil.rmtree(watched.folder)
    done = watched.train(
        """
        model, optimizer = new_model()
        print(train(model, optimizer, DataLoader(Numbers(), batch_size=8, num_workers=1)))
        """
    )
    assert done.stdout == "4\n" and done.stderr == ""


def test_watching_begins_and_ends_within_a_process(watched):
    script = """
        import os
        sys.path.insert(0, os.environ["SITE"])
        import stoker_watch
        before = torch.save, DataLoader.__iter__, torch.Tensor.backward
        model, optimizer = new_model()
        loader = DataLoader(Numbers(), batch_size=8)
        running = iter(loader)
        next(running)
        for folder in sys.argv[1:]:
            stoker_watch.start(folder)
            train(model, optimizer, loader)
            next(running)
            stoker_watch.stop()
            train(model, optimizer, loader)
        assert (torch.save, DataLoader.__iter__, torch.Tensor.backward) == before
    """
    second = watched.work / "second"
    second.mkdir()
    watched.train(script, watched.folder, second, PYTHONPATH="", STOKER_WATCH="", SITE=str(SITE))
    first, watched.folder = watched.read(), second
    for run in (first, watched.read()):
        assert len(run.marks("MARK_STEP")) == 4 and run.notices() == []
        assert len(run.json("RECORD_LOADER")) == 2
        assert len(run.marks("MARK_EPOCH")) == 1
        assert run.rings[0].state == N["RING_CLOSED"]


# Loops


def test_lightning_is_seen(watched):
    pytest.importorskip("lightning")
    watched.train(
        """
        import lightning

        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.model = torch.nn.Linear(4, 2)
            def training_step(self, batch, index):
                return torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])
            def validation_step(self, batch, index):
                time.sleep(0.01)
            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)

        trainer = lightning.Trainer(
            max_epochs=2, accelerator="cpu", logger=False, enable_progress_bar=False,
            enable_model_summary=False)
        trainer.fit(Module(), DataLoader(Numbers(), batch_size=8), DataLoader(Numbers(), 16))
        """
    )
    run = watched.read()
    assert run.notices() == []
    assert len(run.marks("MARK_STEP")) == 8 and len(run.spans("SPAN_BACKWARD")) == 8
    assert {one["batch_size"] for one in run.json("RECORD_LOADER")} == {8, 16}
    assert {one["file"] for one in run.json("RECORD_LOADER")} == {"train.py"}
    assert len(run.spans("SPAN_VALIDATION")) == 2
    assert len(run.spans("SPAN_CHECKPOINT")) >= 1
    steps = run.marks("MARK_STEP")
    optimizer = run.spans("SPAN_OPTIMIZER")
    backward = run.spans("SPAN_BACKWARD")
    assert all(a.fields.start >= b.fields.end for a, b in zip(optimizer, backward, strict=True))
    assert steps[0].fields.time == optimizer[0].fields.end


@pytest.mark.parametrize("workers", [0, 1])
def test_accelerate_is_seen(watched, workers):
    pytest.importorskip("accelerate")
    watched.train(
        f"""
        from accelerate import Accelerator
        accelerator = Accelerator(cpu=True)
        model, optimizer = new_model()
        loader = DataLoader(Numbers(), batch_size=8, num_workers={workers})
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        for x, y in loader:
            optimizer.zero_grad()
            accelerator.backward(torch.nn.functional.cross_entropy(model(x), y))
            optimizer.step()
        """
    )
    run = watched.read()
    assert run.notices() == []
    assert len(run.marks("MARK_STEP")) == 4 and len(run.spans("SPAN_BACKWARD")) == 4
    told = run.json("RECORD_LOADER")[-1]
    text = (watched.work / "train.py").read_text().splitlines()
    assert "DataLoader(Numbers()" in text[told["line"] - 1], "not where accelerate made another"
    assert [one.fields.b for one in run.marks("MARK_BATCH")] == [8] * 4


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
@pytest.mark.parametrize("begin", ["", "import torch._dynamo; torch._dynamo.reset()"])
def test_compiled_models_and_steps_stay_whole(watched, begin):
    done = watched.train(
        f"""
        {begin}
        model, optimizer = new_model()
        model = torch.compile(model, fullgraph=True)

        @torch.compile(backend="eager")
        def step():
            optimizer.step()

        for x, y in DataLoader(Numbers(), batch_size=8):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            step()
        from torch._dynamo.utils import counters
        print(*counters["graph_break"], sep="\\n")
        """
    )
    breaks = [line for line in done.stdout.splitlines() if line and not line.startswith(" ")]
    own = "Call to `torch._dynamo.graph_break()`"  # step() has one of its own
    assert set(breaks) <= {own}
    run = watched.read()
    assert run.notices() == []
    assert len(run.spans("SPAN_BACKWARD")) == 4 and run.spans("SPAN_COMPILE")


def test_a_backward_in_a_compiled_function_is_not_traced_into(watched):
    body = """
        model, optimizer = new_model()

        @torch.compile(backend="eager")
        def step(x, y):
            torch.nn.functional.cross_entropy(model(x), y).backward()

        print(len([step(x, y) for x, y in DataLoader(Numbers(), batch_size=8)]))
    """
    alone = watched.train(body, STOKER_WATCH="")
    done = watched.train(body)
    assert done.stdout == alone.stdout == "4\n"
    assert (done.stderr, alone.stderr) == ("", "")


def test_ranks_under_torchrun_say_which_they_are(watched):
    script = watched.write(
        """
        import torch, torch.distributed as dist
        dist.init_process_group("gloo")
        value = torch.ones(1)
        dist.all_reduce(value)
        dist.barrier()
        dist.destroy_process_group()
        """
    )
    watched.python("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script)
    run = watched.read()
    assert sorted(one["rank"] for one in run.mains()) == [0, 1]
    assert {one["world"] for one in run.mains()} == {2}
    (launcher,) = [one for one in run.processes().values() if one["role"] == "launcher"]
    assert launcher["rank"] is None
    assert len(run.spans("SPAN_COLLECTIVE")) == 4


def test_a_loader_with_a_state_is_seen(watched):
    pytest.importorskip("torchdata.stateful_dataloader")
    watched.train(
        """
        from torchdata.stateful_dataloader import StatefulDataLoader
        for workers in (0, 2):
            for batch in StatefulDataLoader(Numbers(), batch_size=8, num_workers=workers):
                pass
        """
    )
    run = watched.read()
    assert run.notices() == []
    assert [one.fields.b for one in run.marks("MARK_BATCH")] == [8] * 8
    assert len(run.workers()) == 2 and len(run.spans("SPAN_FETCH")) == 8


def test_streams_without_a_length_are_seen(watched):
    watched.train(
        """
        model, optimizer = new_model()
        for workers in (0, 1):
            train(model, optimizer, DataLoader(Stream(), batch_size=8, num_workers=workers))
        """
    )
    run = watched.read()
    assert [one.fields.b for one in run.marks("MARK_BATCH")] == [8] * 8
    told = run.json("RECORD_LOADER")
    assert told[0]["batches"] is None and told[0]["samples"] is None
    assert run.notices() == []


def test_stokers_loader_is_seen(watched, shards):
    watched.train(
        """
        import stoker
        loader = stoker.Loader(sys.argv[1], batch_size=10)
        for epoch in range(2):
            for batch in loader:
                pass
        """,
        shards,
    )
    run = watched.read()
    assert run.notices() == []
    told = run.json("RECORD_LOADER")[-1]
    assert (told["kind"], told["batch_size"], told["samples"], told["batches"]) == (
        "stoker",
        10,
        100,
        10,
    )
    assert told["file"] == "train.py" and told["batch_bytes"] > 0
    assert [one.fields.b for one in run.marks("MARK_BATCH")] == [10] * 20
    assert len(run.marks("MARK_EPOCH_END")) == 2


def test_stokers_stages_are_written_when_the_run_is_traced(watched, shards):
    watched.begin({"stack_hz": 100, "stages": True})
    watched.train(
        """
        import stoker
        loader = stoker.Loader(sys.argv[1], batch_size=10)
        own = stoker.Loader(sys.argv[1], batch_size=10, trace="own.json")
        for batch in loader:
            pass
        own.close()
        """,
        shards,
    )
    (stages,) = watched.folder.glob("stages.*.json")
    assert json.loads(stages.read_text())["traceEvents"]
    assert (watched.work / "own.json").exists()


# The script's own profiler


def test_the_scripts_profiler_is_told_and_left_alone(watched):
    done = watched.train(
        """
        from torch.profiler import profile, schedule
        model, optimizer = new_model()
        with profile(schedule=schedule(wait=1, warmup=1, active=1, repeat=1)) as profiler:
            for x, y in DataLoader(Numbers(), batch_size=8):
                model(x).sum().backward()
                optimizer.step()
                profiler.step()
        print(any("Optimizer" in one.key for one in profiler.key_averages()))
        """
    )
    assert "True" in done.stdout.splitlines()
    run = watched.read()
    assert len(run.spans("SPAN_PROFILER")) == 1 and run.notices() == []


def test_what_the_profiler_saw_on_the_device_is_told(watched):
    watched.train(
        """
        import stoker_watch.torch_profiler as ours

        class Event:
            def __init__(self, name, start, length, device="DeviceType.CUDA", nbytes=0):
                self._ = name, start, length, device, nbytes
            name = lambda self: self._[0]
            start_ns = lambda self: self._[1]
            duration_ns = lambda self: self._[2]
            device_type = lambda self: self._[3]
            nbytes = lambda self: self._[4]
            device_index = lambda self: 1
            device_resource_id = lambda self: 7
            is_user_annotation = lambda self: self._[0] == "mine"

        class Results:
            def events(self):
                now = time.time_ns()
                return [
                    Event("aten::add", now, 5, device="DeviceType.CPU"),
                    Event("gemm", now, 1000),
                    Event("gemm", now + 2000, 1000),
                    Event("mine", now, 9000),
                    Event("Memcpy HtoD (Pageable -> Device)", now, 300, nbytes=64),
                    Event("Memset (Device)", now, 10, nbytes=8),
                ]

        print(time.monotonic_ns())
        ours.tell_events(Results())
        """
    )
    run = watched.read()
    (name,) = run.of("RECORD_NAME")
    assert name.fields.text == "gemm" and name.fields.id == 1 << 30
    kernels = [one.fields for one in run.of("RECORD_KERNEL")]
    assert [one.end - one.start for one in kernels] == [1000, 1000]
    assert {(one.device, one.stream, one.name) for one in kernels} == {(1, 7, 1 << 30)}
    (end,) = run.marks("MARK_END")
    assert abs(end.fields.time - kernels[0].start) < 60e9, "the clock is the monotonic one"
    copies = [one.fields for one in run.of("RECORD_COPY")]
    assert (copies[0].way, copies[0].source, copies[0].target, copies[0].bytes) == (
        N["COPY_TO_DEVICE"],
        N["COPY_PAGEABLE"],
        N["COPY_DEVICE"],
        64,
    )
    assert copies[1].way == N["COPY_CLEAR"]


# The replay


REPLAY = """
    model, optimizer = new_model()
    loader = DataLoader(Numbers(40, 0.001), batch_size=8, num_workers=int(sys.argv[1]),
                        persistent_workers=sys.argv[1] != "0")
    print(len(loader), len(loader.dataset))
    for epoch in range(3):
        for x, y in loader:
            print(int(x[0, 0]), end=" ")
            x.mul_(0)
        print()
    print(len(torch.multiprocessing.active_children()))
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_a_replay_has_the_right_number_of_batches_and_no_workers(watched, workers):
    watched.begin({"stack_hz": 100, "replay": {"batches": 2, "loaders": []}})
    done = watched.train(REPLAY, workers)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "5 40",
        "0 8 0 8 0 ",
        "0 8 0 8 0 ",
        "0 8 0 8 0 ",
        "0",
    ]
    run = watched.read()
    assert run.notices() == []
    assert [one.fields.b for one in run.spans("SPAN_NEXT")] == [0, 1, 2, 3, 4, 5] * 3
    assert len(run.marks("MARK_BATCH")) == 15 and len(run.marks("MARK_EPOCH_END")) == 3
    assert len(run.workers()) == workers


def test_a_replay_of_a_stream_has_the_length_of_the_first_run(watched):
    body = """
        model, optimizer = new_model()
        loader = DataLoader(Stream(), batch_size=8, num_workers=1)
        print(train(model, optimizer, loader), train(model, optimizer, loader))
    """
    loader = {"id": 1, "rank": None, "file": "train.py", "line": 1, "batches": 4}
    watched.begin({"replay": {"batches": 2, "loaders": [loader]}})
    assert watched.train(body).stdout == "4 4\n"
    watched.begin({"replay": {"batches": 2, "loaders": [dict(loader, batches=None)]}})
    assert watched.train(body).stdout == "4 4\n"
    assert "without a length" in watched.read().notices()[0]


def test_a_replay_of_a_stream_that_was_never_drawn_to_its_end_goes_on(watched):
    body = """
        stream = iter(DataLoader(Stream(), batch_size=2))
        print(len([next(stream) for _ in range(12)]))
    """
    assert watched.train(body).stdout == "12\n"
    assert [one["batches"] for one in watched.read().json("RECORD_LOADER")] == [None] * 2
    loader = {"id": 1, "rank": None, "file": "train.py", "line": 1, "batches": None}
    loader["batches_per_epoch"] = 9
    watched.begin({"replay": {"batches": 2, "loaders": [loader]}, "until_s": None})
    assert watched.train(body).stdout == "12\n"
    assert watched.read().notices() == []


def test_the_length_of_a_stream_is_told_once_it_ended(watched):
    watched.train("list(DataLoader(Stream(), batch_size=8))")
    assert [one["batches"] for one in watched.read().json("RECORD_LOADER")] == [None, None, 4]


def test_a_replay_serves_containers_that_a_loop_may_empty(watched):
    watched.begin({"replay": {"batches": 1, "loaders": []}})
    done = watched.train(
        """
        from collections import namedtuple
        Pair = namedtuple("Pair", "x y")

        class Dicts(Numbers):
            def __getitem__(self, i):
                return {"x": torch.ones(1), "pair": Pair(torch.ones(1), [i])}

        for epoch in range(2):
            for batch in DataLoader(Dicts(), batch_size=8):
                x, pair = batch.pop("x"), batch.pop("pair")
                pair.y.clear()
                print(type(pair).__name__, float(x.sum().mul_(2)), len(batch), end=" ")
        """
    )
    assert done.stdout == "Pair 16.0 0 " * 8


def test_a_replay_serves_stokers_loader(watched, shards):
    watched.begin({"replay": {"batches": 3, "loaders": []}})
    done = watched.train(
        """
        import stoker
        with stoker.Loader(sys.argv[1], batch_size=10) as loader:
            for epoch in range(2):
                print(*[int(batch.samples[0]) for batch in loader])
        """,
        shards,
    )
    assert done.stdout.splitlines() == ["0 10 20 0 10 20 0 10 20 0"] * 2


def test_a_replay_keeps_lightning_and_accelerate_happy(watched):
    pytest.importorskip("lightning")
    pytest.importorskip("accelerate")
    watched.begin({"replay": {"batches": 2, "loaders": []}})
    done = watched.train(
        """
        import lightning
        from accelerate import Accelerator

        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.model = torch.nn.Linear(4, 2)
            def training_step(self, batch, index):
                return torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])
            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)

        trainer = lightning.Trainer(
            max_epochs=2, accelerator="cpu", logger=False, enable_progress_bar=False,
            enable_model_summary=False, enable_checkpointing=False)
        trainer.fit(Module(), DataLoader(Numbers(), batch_size=8, num_workers=1))
        print(trainer.global_step)
        accelerator = Accelerator(cpu=True)
        model, optimizer, loader = accelerator.prepare(
            *new_model(), DataLoader(Numbers(), batch_size=8, num_workers=1))
        print(train(model, optimizer, loader), train(model, optimizer, loader), len(loader))
        """
    )
    assert done.stdout.splitlines()[-2:] == ["8", "4 4 4"]
    assert json.dumps(watched.read().notices()) == "[]"
