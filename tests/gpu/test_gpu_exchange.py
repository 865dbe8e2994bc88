"""DLPack and CUDA's array interface, with the libraries that are installed. FAULTS 93."""

import ctypes
import gc

import numpy
import pytest
import stoker

torch = pytest.importorskip("torch")


@pytest.fixture
def drawn(tensors):
    """A plain tensor of the first batch, what it should hold, and its loader."""
    loader = stoker.Loader(tensors, 16, device="cuda", as_="dlpack")
    batch = next(iter(loader))
    expected = next(iter(stoker.Loader(tensors, 16)))["npy"]
    return batch["npy"], expected, loader


def test_93_torch_takes_it_without_a_copy(drawn):
    tensor, expected, _ = drawn
    taken = torch.from_dlpack(tensor)
    assert taken.data_ptr() == tensor.address
    assert taken.device == torch.device(tensor.device)
    assert torch.equal(taken.cpu(), expected)
    again = torch.as_tensor(tensor, device="cuda")  # by __cuda_array_interface__
    assert again.data_ptr() == tensor.address
    assert torch.equal(again.cpu(), expected)


def test_93_cupy_takes_it_without_a_copy(drawn):
    cupy = pytest.importorskip("cupy")
    tensor, expected, _ = drawn
    for taken in (cupy.from_dlpack(tensor), cupy.asarray(tensor)):
        assert taken.data.ptr == tensor.address
        numpy.testing.assert_array_equal(cupy.asnumpy(taken), expected.numpy())
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        doubled = cupy.from_dlpack(tensor) * 2
    stream.synchronize()
    numpy.testing.assert_array_equal(cupy.asnumpy(doubled), expected.numpy() * 2)


def test_93_jax_takes_it(drawn):
    jax = pytest.importorskip("jax")
    tensor, expected, _ = drawn
    try:
        taken = jax.numpy.from_dlpack(tensor)
    except RuntimeError as error:
        pytest.skip(f"jax has no GPU here: {error}")
    numpy.testing.assert_array_equal(numpy.asarray(taken), expected.numpy())


@pytest.mark.parametrize("stream", [None, 1, 2, -1, "own"])
def test_93_streams_of_the_protocol(drawn, stream):
    tensor, expected, _ = drawn
    if stream == "own":
        stream = torch.cuda.Stream().cuda_stream
    if stream == -1:
        torch.cuda.synchronize()
    taken = torch.utils.dlpack.from_dlpack(tensor.__dlpack__(stream=stream))
    torch.cuda.synchronize()
    assert torch.equal(taken.cpu(), expected)


def test_93_what_it_cannot_do_is_refused(drawn):
    tensor, _, _ = drawn
    for wish in ({"stream": 0}, {"dl_device": (1, 0)}, {"copy": True}):
        with pytest.raises(BufferError):
            tensor.__dlpack__(**wish)
    with pytest.raises(BufferError, match="to_host"):
        memoryview(tensor)
    with pytest.raises((BufferError, RuntimeError, TypeError, ValueError)):
        numpy.from_dlpack(tensor)


def test_93_a_capsule_is_taken_once_and_freed_once(drawn):
    tensor, expected, loader = drawn
    held = loader.stats()["device"]["caller_bytes"]
    assert held > 0
    for version in (None, (1, 0)):
        capsule = tensor.__dlpack__(stream=1, max_version=version)
        taken = torch.utils.dlpack.from_dlpack(capsule)
        with pytest.raises(RuntimeError):
            torch.utils.dlpack.from_dlpack(capsule)
        del capsule
        assert torch.equal(taken.cpu(), expected)
        del taken
    dropped = [tensor.__dlpack__(stream=1) for _ in range(5)]
    del dropped
    assert loader.stats()["device"]["caller_bytes"] == held


def test_93_the_producer_goes_first_and_the_data_stays(tensors):
    loader = stoker.Loader(tensors, 16, device="cuda")
    expected = next(iter(stoker.Loader(tensors, 16)))["npy"]
    iterator = iter(loader)
    part = next(iterator)["npy"][3:7]
    for _ in iterator:
        pass
    loader.close()
    del loader, iterator
    gc.collect()
    assert torch.equal(part.cpu(), expected[3:7])


def test_93_the_deleter_runs_in_a_thread_that_python_does_not_know(drawn):
    tensor, _, _ = drawn
    capsule = tensor.__dlpack__(stream=1)
    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_void_p]
    managed = api.PyCapsule_GetPointer(capsule, b"dltensor")
    name = ctypes.create_string_buffer(b"used_dltensor")
    api.PyCapsule_SetName(capsule, ctypes.addressof(name))
    deleter = ctypes.c_void_p.from_address(managed + 56).value
    libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
    libc.pthread_create.argtypes = [ctypes.c_void_p] * 4
    libc.pthread_join.argtypes = [ctypes.c_ulong, ctypes.c_void_p]
    assert libc.pthread_create(ctypes.addressof(thread), None, deleter, managed) == 0
    assert libc.pthread_join(thread, None) == 0
    assert tensor.to_host().shape == (16, 4, 32, 32, 3)  # one share was given back, not all
