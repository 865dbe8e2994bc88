"""`stoker stream --device`: usage, and the same digests on a simulated GPU as on the CPU."""

import os
from pathlib import Path

import pytest
from places import BINARY

SIMULATED = Path(os.environ.get("SIM_CUDA", BINARY.parent / "sim_cuda"))
needs_simulation = pytest.mark.skipif(
    not (SIMULATED / "libcuda.so.1").exists(), reason=f"{SIMULATED} is not there"
)


@pytest.fixture(scope="module")
def source(tensors):
    return tensors / "shards"


@pytest.fixture
def simulated(stoker, monkeypatch):
    """The command, where it finds the simulated driver: simulated(SIM_CUDA_DEVICES=2)."""
    before = dict(stoker.environment)

    def settings(**more):
        stoker.environment = {**before, "LD_LIBRARY_PATH": str(SIMULATED), **more}
        return stoker

    yield settings
    stoker.environment = before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--device", "gpu"], "cpu, cuda, cuda:N or auto"),
        (["--device", "cuda:"], "cpu, cuda, cuda:N or auto"),
        (["--device", "cuda:1x"], "cpu, cuda, cuda:N or auto"),
        (["--resident", "yes"], "--resident needs --device"),
        (["--resident", "maybe", "--device", "cuda"], "no|auto|yes"),
        (["--decode", "gpu"], "--decode gpu needs --device"),
        (["--decode", "nvjpeg", "--device", "cuda"], "auto|cpu|gpu"),
        (["--device-memory", "1GiB", "--device", "cpu"], "--device-memory needs --device"),
        (["--device-memory", "much", "--device", "cuda"], "a size"),
    ],
    ids=" ".join,
)
def test_bad_usage_is_told(stoker, source, options, words):
    done = stoker("stream", source, "--batch-size", 8, *options, status=2)
    assert words in done.stderr


def test_help_tells_of_it(stoker):
    told = stoker("stream", "--help").stdout
    for option in ("--device ", "--device-memory ", "--resident ", "--decode "):
        assert option in told


@needs_simulation
@pytest.mark.parametrize("more", [(), ("--resident", "yes"), ("--shuffle", "--seed", 3)], ids=str)
def test_the_digest_is_the_cpus(simulated, source, more):
    stoker = simulated()
    common = ["stream", source, "--batch-size", 8, "--epochs", 3]
    order = [word for word in more if word not in ("--resident", "yes")]
    cpu = stoker.json(*common, *order)
    device = stoker.json(*common, *more, "--device", "cuda")
    assert device["digest"] == cpu["digest"]
    assert device["samples"] == cpu["samples"]
    assert device["device"]["name"]
    assert (device["device"]["resident_batches"] > 0) == ("--resident" in more)
    assert "device    " in stoker(*common, "--device", "cuda").stdout


@needs_simulation
def test_a_run_is_resumed_on_another_device(simulated, source, tmp_path):
    stoker = simulated()
    common = ["stream", source, "--batch-size", 8, "--shuffle"]
    whole = stoker.json(*common)["digest"]
    state = tmp_path / "state"
    stoker.json(*common, "--stop-after", 2, "--save-state", state, "--device", "cuda")
    assert stoker.json(*common, "--resume", state)["run_digest"] == whole
    assert stoker.json(*common, "--resume", state, "--device", "cuda")["run_digest"] == whole


@needs_simulation
def test_without_a_device_cuda_fails_and_auto_goes_on_with_a_note(simulated, source):
    stoker = simulated(SIM_CUDA_DEVICES="0")
    done = stoker("stream", source, "--batch-size", 8, "--device", "cuda", status=1)
    assert done.stderr.startswith("stoker: ")
    assert len(done.stderr.splitlines()) >= 2  # why, and what to do
    done = stoker("stream", source, "--batch-size", 8, "--device", "auto", "--resident", "auto")
    assert "note: " in done.stderr
    assert "37 in 5 batches" in done.stdout
