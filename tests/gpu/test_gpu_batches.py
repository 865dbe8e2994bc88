"""What a loader with a device hands over is what the CPU's loader gives: bit by bit for tensors and
windows, within a level for images."""

import subprocess
import sys

import pytest
import stoker

torch = pytest.importorskip("torch")

from gpu_compare import compare_epoch, flatten, read_epoch  # noqa: E402

ORDER = {"shuffle": True, "seed": 7}


@pytest.mark.parametrize(
    "options",
    [
        {},
        ORDER,
        {**ORDER, "last": "mask"},
        {**ORDER, "drop_last": True},
        {**ORDER, "rank": 1, "world_size": 3},
        {**ORDER, "threads": 1, "depth": 1},
        {**ORDER, "device_memory": "6MiB"},
    ],
    ids=str,
)
def test_tensors_are_the_same(tensors, options):
    on_cpu = {name: value for name, value in options.items() if name != "device_memory"}
    device = stoker.Loader(tensors, 32, device="cuda", **options)
    cpu = stoker.Loader(tensors, 32, **on_cpu)
    assert device.device == f"cuda:{torch.cuda.current_device()}"
    for _ in range(3):
        assert compare_epoch(device, cpu) == len(cpu)
    stats = device.stats()["device"]
    assert stats["name"] == torch.cuda.get_device_name()
    assert stats["shipped_bytes"] > 0
    if "device_memory" in options:
        assert stats["peak_bytes"] <= 6 << 20


@pytest.mark.parametrize("layout", ["pad", "list", "flat"])
def test_unequal_shapes_and_missing_values_are_the_same(ragged, layout):
    options = {"fields": ["npy", "cls", "extra.npy?"], "ragged": layout, **ORDER}
    device = stoker.Loader(ragged, 16, device="cuda", **options)
    cpu = stoker.Loader(ragged, 16, **options)
    for _ in range(2):
        compare_epoch(device, cpu)


@pytest.mark.parametrize("resident", [False, True, "auto"])
def test_windows_are_the_same(series, resident):
    dataset = stoker.open(series, window=48, horizon=3)
    device = stoker.Loader(dataset, 256, device="cuda", resident=resident, **ORDER)
    cpu = stoker.Loader(dataset, 256, **ORDER)
    for _ in range(4):
        compare_epoch(device, cpu)
    assert bool(device.stats()["device"]["resident_batches"]) == bool(resident)


def test_resident_epochs_are_the_same(tensors):
    options = {"fields": ["npy", "cls"], **ORDER}  # text cannot live there
    device = stoker.Loader(tensors, 32, device="cuda", resident=True, **options)
    cpu = stoker.Loader(tensors, 32, **options)
    for _ in range(4):
        compare_epoch(device, cpu)
    stats = device.stats()["device"]
    assert stats["resident_samples"] == 600
    assert stats["resident_batches"] >= 2 * len(cpu)


CHAIN = "RandomResizedCrop(64) | RandomHorizontalFlip | Layout(CHW)"


def test_images_decoded_by_the_cpu_are_the_same_within_a_level(images):
    options = {"transforms": {"jpg": CHAIN}, **ORDER}
    device = stoker.Loader(images, 32, device="cuda", decode="cpu", **options)
    compare_epoch(device, stoker.Loader(images, 32, **options), tolerance=1)
    assert device.stats()["device"]["gpu_decoded"] == 0


def test_normalised_images_are_the_same_within_a_thousandth(images):
    options = {"transforms": {"jpg": CHAIN + " | Normalize(0, 255)"}, **ORDER}
    device = stoker.Loader(images, 32, device="cuda", decode="cpu", **options)
    compare_epoch(device, stoker.Loader(images, 32, **options), tolerance=1e-3)


@pytest.mark.parametrize("decode", ["gpu", "auto"])
def test_images_decoded_by_the_gpu_are_near(images, decode):
    """nvJPEG's pixels differ from libjpeg-turbo's by a level or two, a few by more: its upsampling
    of colours is another."""
    options = {"transforms": {"jpg": CHAIN}, **ORDER}
    device = stoker.Loader(images, 32, device="cuda", decode=decode, **options)
    cpu = stoker.Loader(images, 32, **options)
    far = total = 0.0
    for (samples, got, _), batch in zip(read_epoch(device), cpu, strict=True):
        assert samples == batch.samples.tolist()
        difference = (got["jpg"].cpu().int() - flatten(batch)["jpg"].int()).abs()
        assert difference.float().mean() < 1.5
        far += (difference > 8).sum().item()
        total += difference.numel()
    assert far / total < 0.01
    stats = device.stats()["device"]
    print(decode, stats["gpu_decoded"], stats["cpu_decoded"], stats["decode_share"])
    if decode == "gpu":
        assert stats["gpu_decoded"] > 0


@pytest.mark.parametrize("decode", ["gpu", "auto"])
def test_58_what_the_hardware_refuses_is_decoded_and_in_its_place(tmp_path, decode):
    words = ["gen", "images", "-o", tmp_path / "odd", "--samples", 64, "--size", "160x120"]
    words += ["--classes", 4, "--progressive"]
    subprocess.run([sys.executable, "-m", "stoker", *map(str, words)], check=True)
    options = {"transforms": {"jpg": CHAIN}, **ORDER}
    device = stoker.Loader(tmp_path / "odd", 16, device="cuda", decode=decode, **options)
    cpu = stoker.Loader(tmp_path / "odd", 16, **options)
    for (samples, got, _), batch in zip(read_epoch(device), cpu, strict=True):
        assert samples == batch.samples.tolist()
        difference = (got["jpg"].cpu().int() - batch["jpg"].int()).abs().float()
        assert difference.mean() < 1.5


@pytest.mark.parametrize("decode", ["cpu", "gpu", "auto"])
def test_a_run_resumes_with_the_same_pixels(images, decode):
    options = {"transforms": {"jpg": CHAIN}, "device": "cuda", "decode": decode, **ORDER}
    whole = stoker.Loader(images, 32, **options)
    iterator = iter(whole)
    for _ in range(3):
        next(iterator)
    state = whole.state_dict()
    rest = [(batch.samples.tolist(), batch["jpg"].clone()) for batch in iterator]
    again = stoker.Loader(images, 32, **options)
    again.load_state_dict(state)
    for batch, (samples, pixels) in zip(again, rest, strict=True):
        assert batch.samples.tolist() == samples
        assert torch.equal(batch["jpg"], pixels)


def test_a_map_works_on_the_device_ahead_of_the_caller(tensors):
    def double(batch):
        torch.cuda._sleep(1_000_000)
        return {"npy": batch["npy"] * 2, "same": batch["npy"], "cls": batch["cls"]}

    def double_on_cpu(batch):
        return {"npy": batch["npy"] * 2, "same": batch["npy"], "cls": batch["cls"]}

    device = stoker.Loader(tensors, 32, device="cuda", map=double, map_threads=3, **ORDER)
    cpu = stoker.Loader(tensors, 32, map=double_on_cpu, **ORDER)
    for _ in range(2):
        compare_epoch(device, cpu)
