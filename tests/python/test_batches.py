"""Memory of batches: shared without a copy, valid as long as somebody holds it, given back once.
FAULTS 92 and 93."""

import copy
import ctypes
import gc
import sys
import threading

import numpy
import pytest
import stoker
from stoker import Batch, _core

torch = pytest.importorskip("torch")


def raw_tensor(dataset):
    """The library's own tensor of the first field of a fresh batch, and its loader."""
    loader = stoker.Loader(dataset, 10)
    fields = loader._core.next(0)[7]
    return fields[0][0], loader


def test_tensors_share_the_loaders_memory(dataset):
    tensor, _ = raw_tensor(dataset)
    assert isinstance(tensor, _core.Tensor)
    one = torch.utils.dlpack.from_dlpack(tensor.capsule())
    two = numpy.asarray(tensor)
    assert one.data_ptr() == two.__array_interface__["data"][0]
    one[0, 0, 0] = 42
    assert two[0, 0, 0] == 42
    assert (tensor.shape, tensor.dtype) == ((10, 4, 4), "float32")


def test_93_numpy_and_torch_take_it_through_the_protocol_itself(dataset):
    tensor, _ = raw_tensor(dataset)
    assert tensor.__dlpack_device__() == (1, 0)
    assert torch.from_dlpack(tensor).shape == (10, 4, 4)
    assert numpy.from_dlpack(tensor).shape == (10, 4, 4)
    view = memoryview(tensor)
    assert (view.format, view.shape, view.strides) == ("f", (10, 4, 4), (64, 16, 4))


def test_93_what_the_memory_cannot_do_is_refused(dataset):
    tensor, _ = raw_tensor(dataset)
    for wish in ({"stream": 1}, {"dl_device": (2, 0)}, {"copy": True}):
        with pytest.raises(BufferError):
            tensor.__dlpack__(**wish)


def test_93_a_capsule_that_nobody_takes_frees_its_share_once(dataset):
    tensor, loader = raw_tensor(dataset)
    assert loader.stats()["caller_bytes"] > 0
    capsules = [tensor.capsule() for _ in range(5)]
    del tensor
    gc.collect()
    assert loader.stats()["caller_bytes"] > 0
    del capsules
    gc.collect()
    assert loader.stats()["caller_bytes"] == 0


def test_93_a_capsule_is_taken_once(dataset):
    tensor, _ = raw_tensor(dataset)
    capsule = tensor.capsule()
    torch.utils.dlpack.from_dlpack(capsule)
    with pytest.raises(RuntimeError):
        torch.utils.dlpack.from_dlpack(capsule)


def test_93_data_is_valid_after_the_loader_and_the_dataset_are_gone(shards):
    ds = stoker.open(shards)
    loader = stoker.Loader(ds, 10)
    batch = next(iter(loader))
    view = batch["npy"][3]
    expected = ds[3]["npy"].clone()
    loader.close()
    del loader, ds, batch
    gc.collect()
    assert torch.equal(view, expected)


def test_93_the_deleter_runs_in_a_thread_that_python_does_not_know(dataset):
    """A C thread (pthread_create on the deleter) frees the memory, without Python's lock."""
    tensor, loader = raw_tensor(dataset)
    capsule = tensor.capsule()
    del tensor
    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_void_p]
    managed = api.PyCapsule_GetPointer(capsule, b"dltensor")
    name = ctypes.create_string_buffer(b"used_dltensor")
    api.PyCapsule_SetName(capsule, ctypes.addressof(name))
    deleter = ctypes.c_void_p.from_address(managed + 56).value
    libc = ctypes.CDLL(None)
    thread = ctypes.c_ulong()
    libc.pthread_create.argtypes = [ctypes.c_void_p] * 4
    libc.pthread_join.argtypes = [ctypes.c_ulong, ctypes.c_void_p]
    assert libc.pthread_create(ctypes.addressof(thread), None, deleter, managed) == 0
    assert libc.pthread_join(thread, None) == 0
    assert loader.stats()["caller_bytes"] == 0
    del capsule


def test_a_batch_is_given_back_when_its_last_tensor_is_gone(dataset):
    loader = stoker.Loader(dataset, 10)
    iterator = iter(loader)
    batch = next(iterator)
    held = loader.stats()["caller_bytes"]
    assert held > 0
    part = batch["npy"][2:4]
    del batch
    assert loader.stats()["caller_bytes"] == held
    del part
    assert loader.stats()["caller_bytes"] == 0


def test_a_batch_may_be_given_back_by_another_thread(dataset):
    loader = stoker.Loader(dataset, 10)
    held = list(loader)
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert loader.stats()["caller_bytes"] == 0


def test_92_a_caller_that_keeps_every_batch_does_not_stop_the_loader(dataset):
    loader = stoker.Loader(dataset, 1, shuffle=True, memory="1MiB")
    kept = []
    for _ in range(10):
        kept += list(loader)
    assert len(kept) == 1000
    stats = loader.stats()
    assert stats["peak_bytes"] <= 2**20
    assert stats["caller_bytes"] >= 1000 * 64
    for batch in kept[::97]:
        number = int(batch.samples[0])
        assert torch.equal(batch["npy"][0], dataset[number]["npy"])


def test_a_kept_batch_is_not_written_over(dataset):
    loader = stoker.Loader(dataset, 10, shuffle=True, depth=2)
    kept = next(iter(loader))
    before = kept["npy"].clone()
    for _ in range(5):
        list(loader)
    assert torch.equal(kept["npy"], before)


def test_a_batch_is_a_dict_that_movers_can_rebuild(dataset):
    batch = next(iter(stoker.Loader(dataset, 10)))
    assert isinstance(batch, dict)
    moved = type(batch)({name: value.to("cpu") for name, value in batch.items()})
    assert type(moved) is Batch
    assert moved.samples is None
    twin = copy.copy(batch)
    assert twin.samples is batch.samples
    assert list(twin) == ["npy", "cls"]


def test_torchs_own_collation_and_pinning_know_it(dataset):
    from torch.utils.data._utils.collate import default_collate

    batches = list(stoker.Loader(dataset, 50))
    assert default_collate(batches)["npy"].shape == (2, 50, 4, 4)


def test_accelerates_and_lightnings_movers_keep_it(dataset):
    operations = pytest.importorskip("accelerate.utils.operations")
    batch = next(iter(stoker.Loader(dataset, 10)))
    moved = operations.send_to_device(batch, "cpu")
    assert torch.equal(moved["npy"], batch["npy"])
    apply = pytest.importorskip("lightning.fabric.utilities.apply_func")
    moved = apply.move_data_to_device(batch, torch.device("cpu"))
    assert torch.equal(moved["npy"], batch["npy"])


def test_no_reference_leaks_in_a_thousand_batches(dataset):
    loader = stoker.Loader(dataset, 1)

    def blocks():
        gc.collect()
        return sys.getallocatedblocks()

    for _ in range(3):
        list(loader)
    before = blocks()
    for _ in range(10):
        for _batch in loader:
            pass
    assert blocks() - before < 200
