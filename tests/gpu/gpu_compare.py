"""Draws batches from a loader with a device as a training loop does, and compares them with those
of the CPU. Values are read in the consumer's stream at once, nothing waits, and batches are dropped
as soon as the reading was asked for: a wait that is missing shows as wrong values."""

import torch

LATE = 2_000_000  # clock cycles, about a millisecond: the reading comes long after the drop


def flatten(batch):
    """Name -> tensor, of all that a batch holds as tensors."""
    found = {}
    for name, value in batch.items():
        items = value if isinstance(value, list) else [value]
        for i, item in enumerate(items):
            if isinstance(item, torch.Tensor):
                found[f"{name}[{i}]" if isinstance(value, list) else name] = item
    return found


def read_late(batch, device="cuda"):
    """Clones of a batch's tensors, made in the current stream, and late."""
    torch.cuda._sleep(LATE)
    tensors = flatten(batch)
    assert all(tensor.device.type == device for tensor in tensors.values())
    return {name: tensor.clone() for name, tensor in tensors.items()}


def read_epoch(loader, read=read_late):
    """[(samples, clones, texts)] of one epoch; the GPU was not waited for."""
    made = []
    for batch in loader:
        texts = {name: value for name, value in batch.items() if isinstance(value, list)}
        plain = {
            name: value
            for name, value in texts.items()
            if not any(isinstance(item, torch.Tensor) for item in value)
        }
        made.append((batch.samples.tolist(), read(batch), plain))
        del batch
    return made


def compare_epoch(loader, cpu, tolerance=0.0, read=read_late):
    """One epoch of both loaders; the number of batches."""
    got = read_epoch(loader, read)
    for (samples, tensors, texts), batch in zip(got, cpu, strict=True):
        assert samples == batch.samples.tolist()
        expected = flatten(batch)
        assert tensors.keys() == expected.keys()
        for name, tensor in tensors.items():
            compare(tensor.cpu(), expected[name], tolerance, name)
        for name, value in texts.items():
            assert [v for v in value if v is not None] == [v for v in batch[name] if v is not None]
    return len(got)


def compare(got, expected, tolerance, name="value"):
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype), name
    if tolerance and got.numel():
        difference = (got.double() - expected.double()).abs().max().item()
        assert difference <= tolerance, f"{name} differs by {difference}"
    else:
        assert torch.equal(got, expected), name
