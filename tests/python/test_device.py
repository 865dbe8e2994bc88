"""Batches on a device, by a simulated CUDA driver: what comes out is what the CPU's loader gives.
FAULTS 88, 89, 91, 92, 93 and 96."""

import signal
import subprocess
import sys

import numpy
import pytest
import series_making
import shard_making
import stoker
from device_run import PRELUDE, environment, needs_simulation, run_simulated

# --- options, on any machine ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{"resident": True}, {"resident": "auto"}, {"decode": "gpu"}, {"device_memory": "1GiB"}],
    ids=str,
)
def test_options_of_a_device_need_one(dataset, options):
    with pytest.raises(stoker.StokerError, match="memory of the CPU") as caught:
        stoker.Loader(dataset, 10, **options)
    assert caught.value.status == "USAGE"
    assert "device" in caught.value.remedy


@pytest.mark.parametrize(
    "options",
    [
        {"device": "gpu"},
        {"device": "cuda:x"},
        {"device": -1},
        {"device": True},
        {"device": 1.5},
        {"device": "cuda", "resident": "yes"},
        {"device": "cuda", "decode": "nvjpeg"},
        {"device": "cuda", "device_memory": 0},
        {"device": "cuda", "device_memory": "much"},
    ],
    ids=str,
)
def test_what_is_no_option_is_refused(dataset, options):
    with pytest.raises((ValueError, TypeError)):
        stoker.Loader(dataset, 10, **options)


def test_the_cpu_is_a_device_too(dataset):
    loader = stoker.Loader(dataset, 10, device="cpu")
    assert loader.device == "cpu"
    assert loader.stats()["device"] is None
    loader.record_stream(next(iter(loader)), 1)  # nothing happens


def test_plain_tensors_of_the_cpu(dataset):
    batch = next(iter(stoker.Loader(dataset, 10, as_="dlpack")))
    assert (batch["npy"].device, batch["npy"].shape) == ("cpu", (10, 4, 4))
    copied = batch["npy"].to_host()
    assert copied.address != batch["npy"].address
    numpy.testing.assert_array_equal(numpy.asarray(copied), numpy.asarray(batch["npy"]))
    assert not hasattr(batch["npy"], "__cuda_array_interface__")
    with pytest.raises(stoker.StokerError, match="sample_map"):
        stoker.Loader(dataset, 10, as_="dlpack", sample_map=lambda sample: sample)


# --- no device ------------------------------------------------------------------------------------


@needs_simulation
@pytest.mark.parametrize("settings", [{"SIM_CUDA_DEVICES": 0}, {"SIM_CUDA_DRIVER": 9000}], ids=str)
def test_without_a_device_the_error_says_why_and_auto_is_the_cpu(shards, settings):
    script = """
    try:
        open_loader()
    except stoker.StokerError as error:
        print(error.status, "|", str(error).replace("\\n", " "), "|", error.remedy)
    told = []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())
    logging.getLogger("stoker").addHandler(handler)
    loader = on_cpu(device="auto", resident="auto", device_memory="1GiB")
    print(len(told), loader.device, sum(len(batch["npy"]) for batch in loader))
    """
    done = run_simulated(script, shards, SIM_CUDA_DEVICES=0)
    first, second = done.stdout.splitlines()
    status, words, remedy = (part.strip() for part in first.split("|"))
    assert status == "UNSUPPORTED"
    assert len(words) > 20
    assert remedy not in ("", "None")
    assert second == "1 cpu 100"


# --- the same batches -----------------------------------------------------------------------------


@needs_simulation
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": True, "seed": 3},
        {"shuffle": True, "last": "mask", "batch_size": 32},
        {"shuffle": True, "drop_last": True, "batch_size": 7},
        {"shuffle": True, "rank": 1, "world_size": 3},
        {"threads": 1, "depth": 1},
        {"shuffle": True, "memory": "1MiB", "device_memory": "64KiB"},
    ],
    ids=str,
)
def test_tensors_are_those_of_the_cpu(shards, options):
    script = f"""
    options = {options}
    device, cpu = open_loader(**options), on_cpu(**{{n: v for n, v in options.items()
                                                     if n != "device_memory"}})
    compare_epochs(device, cpu)
    stats = device.stats()
    assert stats["device"]["shipped_bytes"] > 0
    limit = 64 << 10 if "device_memory" in options else 1 << 30
    assert stats["device"]["peak_bytes"] <= limit, stats
    """
    run_simulated(script, shards)


@needs_simulation
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_order_of_the_device_changes_a_value(shards, seed):
    script = """
    for _ in range(2):
        compare_epochs(open_loader(shuffle=True), on_cpu(shuffle=True))
    """
    run_simulated(script, shards, SIM_CUDA_SEED=seed, SIM_CUDA_DELAY_US=500)


def ragged_sample(number):
    rows = number % 5
    array = numpy.arange(rows * 3, dtype=numpy.float32).reshape(rows, 3) + number
    made = {"npy": array, "cls": number % 10, "txt": f"caption {number} ä", "json": {"n": number}}
    if number % 3 == 0:
        made["extra.npy"] = numpy.full((2,), number, numpy.int16)
    return made


@pytest.fixture(scope="module")
def ragged(tmp_path_factory):
    """Rows of unequal number, text, JSON, and a tensor that two samples of three lack."""
    folder = tmp_path_factory.mktemp("ragged")
    fields = ("npy", "cls", "txt", "json", "extra.npy")
    return shard_making.write_shards(folder, 40, fields=fields, make=ragged_sample)


@needs_simulation
@pytest.mark.parametrize("layout", ["pad", "list", "flat"])
def test_unequal_shapes_text_and_missing_values_are_those_of_the_cpu(ragged, layout):
    script = f"""
    fields = ["npy", "cls", "txt", "json", "extra.npy?"]
    options = {{"fields": fields, "ragged": "{layout}", "shuffle": True, "last": "mask"}}
    compare_epochs(open_loader(12, **options), on_cpu(12, **options))
    """
    run_simulated(script, ragged)


@needs_simulation
@pytest.mark.parametrize("resident", [False, True, "auto"])
def test_windows_are_those_of_the_cpu(tmp_path, resident):
    series_making.write_by_hand(tmp_path / "series", [120, 40, 77], columns=5)
    script = f"""
    options = {{"shuffle": True, "seed": 5}}
    source = stoker.open(FOLDER, window=16, horizon=2)
    device = open_loader(32, source, resident={resident!r}, **options)
    compare_epochs(device, on_cpu(32, source, **options), epochs=4)
    stats = device.stats()["device"]
    assert bool(stats["resident_batches"]) == bool({resident!r}), stats
    """
    run_simulated(script, tmp_path / "series")


@needs_simulation
@pytest.mark.parametrize("shuffle", [False, True])
def test_resident_epochs_are_those_of_the_cpu(shards, shuffle):
    script = f"""
    options = {{"shuffle": {shuffle}, "seed": 1}}
    device = open_loader(resident=True, **options)
    compare_epochs(device, on_cpu(**options), epochs=4)
    stats = device.stats()["device"]
    assert stats["resident_samples"] == 100 and stats["resident_batches"] > 0, stats
    """
    run_simulated(script, shards)


@needs_simulation
def test_what_cannot_be_resident_is_refused_and_auto_goes_on(shards):
    script = """
    try:
        open_loader(resident=True, device_memory=4096).__iter__().__next__()
    except stoker.StokerError as error:
        print(error.status, bool(error.remedy))
    compare_epochs(open_loader(resident="auto", device_memory="16KiB"), on_cpu(), epochs=3)
    """
    assert run_simulated(script, shards).stdout.split()[1:] == ["True"]


@needs_simulation
@pytest.mark.parametrize("decode", ["cpu", "gpu", "auto"])
def test_images_are_those_of_the_cpu_but_for_a_level(tmp_path, decode):
    making = pytest.importorskip("media_making")
    making.write_images(tmp_path / "images", 40)
    script = f"""
    chain = "RandomResizedCrop(32) | RandomHorizontalFlip | Layout(CHW)"
    options = {{"transforms": {{"jpg": chain}}, "shuffle": True}}
    device = open_loader(8, decode="{decode}", **options)
    compare_epochs(device, on_cpu(8, **options), tolerance=1 if "{decode}" == "cpu" else 8)
    chain += " | Normalize(imagenet)"
    options = {{"transforms": {{"jpg": chain}}, "shuffle": True}}
    compare_epochs(open_loader(8, decode="cpu", **options), on_cpu(8, **options), tolerance=0.02)
    stats = device.stats()["device"]
    print(stats["gpu_decoded"], stats["cpu_decoded"], stats["decode_share"])
    """
    done = run_simulated(script, tmp_path / "images")
    by_gpu, _, share = done.stdout.split()
    assert decode != "cpu" or (by_gpu, float(share)) == ("0", 0.0)


def odd_jpeg(number):
    """Every third is progressive, grey or CMYK; one of ten is cut off."""
    import media_making

    picture = media_making.picture(number)
    if number % 12 == 1:
        data = media_making.encode(picture, progressive=True)
    elif number % 12 == 4:
        data = media_making.encode(picture[:, :, :1])
    elif number % 12 == 7:
        import io

        from PIL import Image

        file = io.BytesIO()
        Image.fromarray(picture).convert("CMYK").save(file, "JPEG", quality=90)
        data = file.getvalue()
    else:
        data = media_making.encode(picture)
    return data[: len(data) // 3] if number % 10 == 9 else data


@needs_simulation
@pytest.mark.parametrize("decode", ["cpu", "gpu", "auto"])
def test_58_what_the_decoder_refuses_comes_from_the_cpu_in_its_place(tmp_path, decode):
    making = pytest.importorskip("media_making")
    making.write_images(tmp_path / "odd", 60, make=odd_jpeg)
    script = f"""
    options = {{"transforms": {{"jpg": "Resize((40, 40)) | Layout(CHW)"}}, "shuffle": True,
               "bad": "replace"}}
    device, cpu = open_loader(8, decode="{decode}", **options), on_cpu(8, **options)
    compare_epochs(device, cpu, tolerance=1 if "{decode}" == "cpu" else 8)
    bad = [{{(one["sample"], one["substitute"]) for one in loader.quarantine}}
           for loader in (device, cpu)]
    assert bad[0] == bad[1] and len(bad[0]) == 12, bad  # six in each epoch
    """
    run_simulated(script, tmp_path / "odd")


# --- state ----------------------------------------------------------------------------------------


@needs_simulation
@pytest.mark.parametrize("resident", [False, True])
def test_a_run_resumes_on_the_device_and_on_the_cpu(shards, resident):
    script = f"""
    options = {{"shuffle": True, "seed": 2}}
    whole = open_loader(resident={resident}, **options)
    list(whole)
    iterator = iter(whole)
    for _ in range(4):
        next(iterator)
    state = json.loads(json.dumps(whole.state_dict()))
    rest = [(batch.samples, host(batch["npy"])) for batch in iterator]
    for again in (open_loader(**options), open_loader(resident=True, **options), on_cpu(**options)):
        again.load_state_dict(state)
        batches = list(again)
        assert len(batches) == len(rest) == 6
        for batch, (samples, values) in zip(batches, rest):
            assert batch.samples.tolist() == samples.tolist()
            value = batch["npy"] if again.device == "cpu" else host(batch["npy"])
            numpy.testing.assert_array_equal(value, values)
    """
    run_simulated(script, shards)


# --- which device ---------------------------------------------------------------------------------


@needs_simulation
def test_cuda_alone_is_the_device_of_the_local_rank(shards):
    script = """
    made = [open_loader(device=device).device for device in ("cuda", "cuda:1", 2, "auto")]
    print(*made)
    batch = next(iter(open_loader()))
    print(batch["npy"].device, *batch["npy"].__dlpack_device__())
    """
    done = run_simulated(script, shards, SIM_CUDA_DEVICES=3, LOCAL_RANK=1)
    assert done.stdout.split() == "cuda:1 cuda:1 cuda:2 cuda:1 cuda:1 2 1".split()
    # A rank that is shown one GPU alone has number 0, whatever its rank.
    done = run_simulated("print(open_loader().device)", shards, LOCAL_RANK=3)
    assert done.stdout.split() == ["cuda:0"]


@needs_simulation
def test_a_device_that_is_not_there_is_named(shards):
    script = """
    try:
        open_loader(device="cuda:5")
    except stoker.StokerError as error:
        print(error)
    """
    assert "5" in run_simulated(script, shards).stdout


@needs_simulation
def test_a_torch_that_has_no_cuda_is_told(shards):
    torch = pytest.importorskip("torch")
    if torch.version.cuda:
        pytest.skip("this torch has CUDA")
    script = """
    try:
        stoker.Loader(FOLDER, 10, device="cuda")
    except stoker.StokerError as error:
        print(error.status, error.remedy)
    with stoker.Loader(FOLDER, 10, device="auto") as loader:
        print(loader.device, next(iter(loader))["npy"].device)
    """
    first, second = run_simulated(script, shards).stdout.splitlines()
    assert first.startswith("UNSUPPORTED") and "dlpack" in first
    assert second == "cpu cpu"


@needs_simulation
def test_map_gets_the_batch_on_the_device_and_sample_map_is_refused(shards):
    script = """
    def keep(batch):
        assert batch["npy"].device == "cuda:0"
        return batch
    compare_epochs(open_loader(shuffle=True, map=keep, map_threads=2), on_cpu(shuffle=True))
    for options in ({"as_": "torch"}, {"as_": "numpy"}, {"sample_map": dict}):
        try:
            open_loader(**options)
        except stoker.StokerError as error:
            print(error.status)
    """
    assert set(run_simulated(script, shards).stdout.split()) <= {"UNSUPPORTED", "USAGE"}


# --- DLPack ---------------------------------------------------------------------------------------


@needs_simulation
def test_93_the_protocol(shards):
    script = """
    loader = open_loader()
    tensor = next(iter(loader))["npy"]
    assert tensor.__dlpack_device__() == (2, 0)
    for stream in (None, 1, 2, -1):
        assert "dltensor" in repr(tensor.__dlpack__(stream=stream))
    assert '"dltensor_versioned"' in repr(tensor.__dlpack__(stream=1, max_version=(1, 1)))
    assert '"dltensor"' in repr(tensor.__dlpack__(stream=1, max_version=(0, 8)))
    assert '"dltensor"' in repr(tensor.__dlpack__(dl_device=(2, 0), copy=False))
    for wish in ({"stream": 0}, {"stream": -2}, {"dl_device": (1, 0)}, {"dl_device": (2, 1)},
                 {"copy": True}):
        try:
            tensor.__dlpack__(**wish)
        except BufferError as error:
            print(len(str(error)) > 20)
    for take in (memoryview, numpy.asarray, bytes):
        try:
            take(tensor)
        except BufferError as error:
            print("to_host" in str(error))
    for wish in ({"dl_device": [2, 0]}, {"max_version": 1}):
        try:
            tensor.__dlpack__(**wish)
        except TypeError as error:
            print("a tuple" in str(error))
    found = tensor.__cuda_array_interface__
    assert found["shape"] == (10, 4, 4) and found["typestr"] == "<f4" and found["version"] == 3
    assert found["data"] == (tensor.address, False) and found["stream"] == 1
    assert "stream" in found and found["strides"] is None
    """
    done = run_simulated(script, shards)
    assert set(done.stdout.split()) == {"True"}
    assert len(done.stdout.split()) == 10


@needs_simulation
def test_93_capsules_are_freed_once_and_keep_the_memory(shards):
    script = """
    loader = open_loader()
    iterator = iter(loader)
    tensor = next(iterator)["npy"]
    expected = host(tensor)
    one, two = tensor.__dlpack__(stream=1), tensor.__dlpack__(stream=2, max_version=(1, 0))
    held = loader.stats()["device"]["caller_bytes"]
    assert held > 0
    address = tensor.address
    del tensor
    gc.collect()
    assert loader.stats()["device"]["caller_bytes"] == held
    for _ in iterator:  # the memory is not used again
        pass
    del _
    seen = numpy.ctypeslib.as_array((ctypes.c_float * 160).from_address(address))
    numpy.testing.assert_array_equal(seen.reshape(10, 4, 4), expected)
    del one
    assert loader.stats()["device"]["caller_bytes"] == held
    del two
    assert loader.stats()["device"]["caller_bytes"] == 0
    """
    run_simulated(script, shards)


@needs_simulation
@pytest.mark.parametrize("versioned", [False, True])
def test_93_the_deleter_runs_in_a_thread_that_python_does_not_know(shards, versioned):
    script = f"""
    loader = open_loader()
    tensor = next(iter(loader))["npy"]
    version, name, at = None, b"dltensor", 56
    if {versioned}:
        version, name, at = (1, 0), b"dltensor_versioned", 16
    capsule = tensor.__dlpack__(stream=1, max_version=version)
    del tensor
    gc.collect()
    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_void_p]
    managed = api.PyCapsule_GetPointer(capsule, name)
    used = ctypes.create_string_buffer(b"used_" + name)
    api.PyCapsule_SetName(capsule, ctypes.addressof(used))
    deleter = ctypes.c_void_p.from_address(managed + at).value
    libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
    libc.pthread_create.argtypes = [ctypes.c_void_p] * 4
    libc.pthread_join.argtypes = [ctypes.c_ulong, ctypes.c_void_p]
    assert libc.pthread_create(ctypes.addressof(thread), None, deleter, managed) == 0
    assert libc.pthread_join(thread, None) == 0
    assert loader.stats()["device"]["caller_bytes"] == 0
    """
    run_simulated(script, shards)


@needs_simulation
def test_92_a_caller_that_keeps_every_batch_does_not_stop_the_loader(shards):
    script = """
    loader = open_loader(1, shuffle=True, device_memory="64KiB")
    kept = [batch for _ in range(10) for batch in loader]
    assert len(kept) == 1000
    stats = loader.stats()["device"]
    assert stats["peak_bytes"] <= 64 << 10 and stats["caller_bytes"] >= 1000 * 64, stats
    dataset = stoker.open(FOLDER, as_="numpy")
    for batch in kept[::97]:
        expected = dataset[int(batch.samples[0])]["npy"]
        numpy.testing.assert_array_equal(host(batch["npy"])[0], expected)
    """
    run_simulated(script, shards)


@needs_simulation
def test_batches_outlive_the_loader_and_all_is_given_back(shards):
    script = """
    loader = open_loader(shuffle=True)
    kept = [batch for _, batch in zip(range(3), loader)]
    expected = [host(batch["npy"]) for batch in kept]
    loader.close()
    del loader
    gc.collect()
    for batch, values in zip(kept, expected):
        numpy.testing.assert_array_equal(host(batch["npy"]), values)
    del kept, batch
    gc.collect()
    left = counts()
    names = ("contexts", "allocations", "registrations", "streams", "events", "queued")
    assert not any(left[name] for name in names), left
    """
    run_simulated(script, shards)


@needs_simulation
def test_many_loaders_leave_nothing_on_the_device(shards):
    script = """
    for i in range(100):
        loader = open_loader(resident=bool(i % 3 == 0), shuffle=True)
        if i % 2:
            next(iter(loader))
        loader.close()
    del loader
    gc.collect()
    left = counts()
    names = ("contexts", "allocated_bytes", "registered_bytes", "streams", "events")
    assert not any(left[name] for name in names), left
    """
    run_simulated(script, shards, SIM_CUDA_DELAY_US=0)


@needs_simulation
def test_several_streams_are_told_and_others_memory_is_not_ours(shards):
    script = """
    loader = open_loader()
    iterator = iter(loader)
    batch = next(iterator)
    loader.record_stream(batch, 1)
    loader.record_stream(batch["npy"], 2)
    class Stream:
        cuda_stream = 1
    loader.record_stream([batch["cls"], {"x": batch["npy"]}, "text"], Stream())
    assert loader._core.use(batch["npy"].address + 64, 1)
    assert not loader._core.use(4096, 1)
    other = next(iter(open_loader()))
    try:
        loader.record_stream(other, 1)
    except ValueError as error:
        print("no batch of this loader" in str(error))
    """
    assert run_simulated(script, shards).stdout.split() == ["True"]


# --- faults ---------------------------------------------------------------------------------------


@needs_simulation
def test_88_a_forked_child_is_refused_and_the_parent_goes_on(shards):
    script = """
    loader = open_loader(shuffle=True)
    iterator = iter(loader)
    batch = next(iterator)
    child = os.fork()
    if child == 0:
        refused = 0
        for try_ in (lambda: next(iterator), lambda: batch["npy"].to_host(), open_loader,
                     lambda: batch["npy"].__dlpack__(stream=1),
                     lambda: batch["npy"].__cuda_array_interface__):
            try:
                try_()
            except (RuntimeError, stoker.StokerError) as error:
                refused += "fork" in str(error)
        del batch, iterator, try_
        loader.close()
        del loader
        gc.collect()
        plain = len(list(on_cpu()))  # and the CPU's way works
        os._exit(refused if plain == 10 else 99)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), len(list(iterator)), host(batch["npy"]).shape)
    """
    assert run_simulated(script, shards).stdout.split()[:2] == ["5", "9"]


@pytest.mark.alone
@needs_simulation
def test_89_ctrl_c_ends_a_wait_and_closing_is_quick(shards):
    script = """
    signal_ = __import__("signal")
    signal_.signal(signal_.SIGINT, signal_.default_int_handler)
    loader = open_loader(2, shuffle=True)
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal_.SIGINT)).start()
    try:
        while True:
            for batch in loader:
                pass
    except KeyboardInterrupt:
        print("interrupted")
    began = time.monotonic()
    loader.close()
    print(time.monotonic() - began < 1)
    """
    assert run_simulated(script, shards).stdout.split() == ["interrupted", "True"]


@needs_simulation
@pytest.mark.parametrize("how", ["pass", "sys.exit(0)", "raise SystemExit(0)"])
def test_91_the_interpreter_ends_cleanly_with_batches_alive(shards, how):
    script = f"""
    loader = open_loader(2, shuffle=True, resident="auto")
    iterator = iter(loader)
    kept = [next(iterator) for _ in range(5)]
    capsule = kept[0]["npy"].__dlpack__(stream=1)
    other = open_loader(2, map=lambda batch: batch)
    generator = (batch for batch in other)
    next(generator)
    cycle = [loader, kept]
    cycle.append(cycle)
    {how}
    """
    done = run_simulated(script, shards)
    assert done.stderr == ""


@needs_simulation
def test_91_a_process_that_is_killed_by_ctrl_c_ends(shards):
    # Closed by `with`: an interrupt that meets a loader in __del__ is dropped by Python, and told.
    loop = """
for _ in range(10**6):
    with open_loader(2) as loader:
        for batch in loader:
            pass
"""
    process = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + loop, str(shards)],
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=20)
    assert "KeyboardInterrupt" in told
    assert process.returncode in (1, -signal.SIGINT)


@needs_simulation
def test_96_a_device_without_room_is_told_with_a_remedy(shards):
    script = """
    fail("cuMemAlloc_v2:1:2")
    try:
        next(iter(open_loader()))
    except stoker.StokerError as error:
        print(type(error).__name__, error.status, bool(error.remedy))
    fail(None)
    compare_epochs(open_loader(), on_cpu())
    """
    assert run_simulated(script, shards).stdout.split() == ["OutOfMemoryError", "MEMORY", "True"]


@needs_simulation
@pytest.mark.parametrize("call", ["cuMemcpyHtoDAsync_v2", "cuEventRecord", "*"])
def test_96_a_device_that_is_lost_is_an_error_and_nothing_crashes(shards, call):
    script = f"""
    loader = open_loader(2, shuffle=True)
    iterator = iter(loader)
    kept = [next(iterator) for _ in range(3)]
    fail("{call}:7:719")
    try:
        for _ in range(50):
            for batch in loader:
                pass
    except stoker.StokerError as error:
        print(error.status, bool(error.remedy))
    del kept
    loader.close()
    gc.collect()
    """
    assert run_simulated(script, shards).stdout.split() == ["RESOURCE", "True"]


@needs_simulation
def test_96_memory_that_cannot_be_locked_makes_it_slow_and_is_counted(shards):
    script = """
    logging.getLogger("stoker").setLevel(logging.ERROR)
    fail("cuMemHostRegister_v2:1:2")
    loader = open_loader(shuffle=True)
    compare_epochs(loader, on_cpu(shuffle=True))
    """
    run_simulated(script, shards)
