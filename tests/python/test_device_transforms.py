"""Transforms and decoding on a simulated device: what they take there, and what happens where
kernels cannot be loaded."""

import numpy
import pytest
import shard_making
from device_run import needs_simulation, run_simulated


@needs_simulation
@pytest.mark.parametrize("decode", ["cpu", "gpu"])
def test_every_byte_on_the_device_is_reported(tmp_path, decode):
    making = pytest.importorskip("media_making")
    making.write_images(tmp_path / "images", 24)
    script = f"""
    chain = "RandomResizedCrop(32) | GaussianBlur(3) | Normalize(imagenet)"
    loader = open_loader(8, decode="{decode}", transforms={{"jpg": chain}})
    assert len(list(loader)) == 3
    gc.collect()
    for _ in range(1000):  # a batch may be on its way
        device = loader.stats()["device"]
        told = device["held_bytes"] + device["caller_bytes"] + device["decode_bytes"]
        untold = counts()["allocated_bytes"] - told
        if not untold:
            break
        time.sleep(0.01)
    print(untold, device["decode_bytes"] > 0)
    """
    said = run_simulated(script, tmp_path / "images").stdout
    assert said.split() == ["0", str(decode == "gpu")]


@needs_simulation
@pytest.mark.parametrize("nvrtc", ["works", "refuse"])
def test_where_the_driver_refuses_the_kernels_nvrtc_makes_them_or_the_cpu_serves(tmp_path, nvrtc):
    making = pytest.importorskip("media_making")
    making.write_images(tmp_path / "images", 24)
    script = """
    logging.basicConfig(level=logging.INFO, stream=sys.stdout)
    options = {"transforms": {"jpg": "RandomResizedCrop(32) | ColorJitter(0.4) | Cast(float16)"},
               "batch_transforms": "MixUp(0.5, classes=10, image=jpg, label=cls)"}
    device = open_loader(8, decode="cpu", **options)
    compare_epochs(device, on_cpu(8, **options), tolerance=0.5)
    print("halves are made there:", counts()["launches"] > 0)
    try:
        open_loader(8, fields=["cls"], resident=True)
    except stoker.StokerError as error:
        print(error.status, error.remedy)
    """
    settings = {"SIM_CUDA_PTX": "refuse", "SIM_NVRTC": nvrtc, "XDG_CACHE_HOME": tmp_path}
    said = run_simulated(script, tmp_path / "images", **settings).stdout
    assert f"halves are made there: {nvrtc == 'works'}" in said
    assert ("transforms run on the CPU" in said) == (nvrtc == "refuse")
    assert ("stoker check" in said) == (nvrtc == "refuse")


@needs_simulation
def test_a_resize_behind_a_flip_is_right_for_every_crop_that_may_be_drawn(tmp_path):
    def tiny(number):
        values = numpy.random.default_rng(number).integers(0, 255, (2, 2, 3), numpy.uint8)
        return {"npy": values, "cls": number % 10}

    shard_making.write_shards(tmp_path / "tiny", 200, make=tiny)
    script = """
    crop = "RandomResizedCrop((1, 1), scale=(0.08, 0.43), interpolation=nearest)"  # mostly 1 x 1
    options = {"transforms": {"npy": "RandomHorizontalFlip(1) | " + crop}}
    compare_epochs(open_loader(resident="auto", **options), on_cpu(**options), epochs=3)
    try:
        open_loader(resident=True, **options)
    except stoker.StokerError as error:
        print(error.status)
    """
    assert run_simulated(script, tmp_path / "tiny").stdout.split() == ["UNSUPPORTED"]
