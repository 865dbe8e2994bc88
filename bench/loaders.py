"""The sides of the `tensors` benchmark, each set up as its own documentation advises.

    python -m bench.loaders SIDE DATA --workers N --seconds S

Every function returns a callable that begins an epoch and yields (tensor, labels): a batch of up to
32 samples as one contiguous torch tensor in host memory. All are consumed by the same loop, which
reads one byte of every 4 KiB page of the batch. The warm-up epoch also checks that each sample came
exactly once, and that the order is not the stored one.
"""

import argparse
import glob
import json
import os
import pathlib
import sys
import types
import warnings

import numpy

from bench import machine, measure

BATCH = 32
warnings.filterwarnings("ignore")  # read-only arrays, worker counts: peers are talkative


def stoker(data, workers):
    return _stoker(data, "2GiB")


def stoker_read(data, workers):
    """With a budget that has no room for maps: everything is read."""
    return _stoker(data, "256MiB")


def _stoker(data, memory):
    import stoker

    dataset = stoker.open(f"{data}/shard-*.tar")
    loader = stoker.Loader(dataset, batch_size=BATCH, shuffle=True, seed=0, memory=memory)

    def epoch():
        for batch in loader:
            yield batch["npy"], batch["cls"]

    return epoch, lambda: {
        "threads": loader.stats()["threads"],
        "pool_bytes": loader.stats()["peak_bytes"],
    }


def npy_dataloader(data, workers):
    from torch.utils.data import DataLoader

    loader = DataLoader(
        LooseFiles(f"{data}/loose"),
        batch_size=BATCH,
        shuffle=True,
        num_workers=workers,
        persistent_workers=workers > 0,
    )
    return lambda: iter(loader), None


class LooseFiles:
    """One .npy and one .cls file a sample: a torch map-style dataset."""

    def __init__(self, folder):
        self.paths = sorted(glob.glob(f"{folder}/*.npy"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, number):
        path = self.paths[number]
        with open(path[:-3] + "cls") as label:
            return numpy.load(path), int(label.read())


def webdataset(data, workers):
    import torch
    import webdataset as wds

    shards = sorted(glob.glob(f"{data}/shard-*.tar"))
    dataset = (
        wds.WebDataset(shards, shardshuffle=len(shards))
        .shuffle(100)
        .decode()
        .to_tuple("npy", "cls")
        .batched(BATCH, collation_fn=torch.utils.data.default_collate)
    )
    loader = wds.WebLoader(
        dataset, batch_size=None, num_workers=workers, persistent_workers=workers > 0
    )
    return lambda: iter(loader), None


def mosaic(data, workers):
    import_streaming()
    from streaming import StreamingDataLoader, StreamingDataset

    dataset = StreamingDataset(local=f"{data}/mds", shuffle=True, batch_size=BATCH)
    loader = StreamingDataLoader(
        dataset, batch_size=BATCH, num_workers=workers, persistent_workers=workers > 0
    )

    def epoch():
        for batch in loader:
            yield batch["x"], batch["y"]

    return epoch, None


def import_streaming():
    """Imports mosaicml-streaming, with an empty torchvision where the real one does not load."""
    try:
        import torchvision  # noqa: F401
    except Exception:
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        for name in "", ".datasets", ".transforms", ".transforms.functional":
            module = types.ModuleType("torchvision" + name)
            module.__spec__ = types.SimpleNamespace(name=module.__name__, loader=None)
            module.__path__ = []
            sys.modules[module.__name__] = module
        sys.modules["torchvision.datasets"].VisionDataset = object
        sys.modules["torchvision.transforms.functional"].to_tensor = None
    import streaming

    return streaming


def litdata(data, workers):
    from litdata import StreamingDataLoader, StreamingDataset

    dataset = StreamingDataset(f"{data}/litdata", shuffle=True, drop_last=False)
    loader = StreamingDataLoader(
        dataset, batch_size=BATCH, num_workers=workers, persistent_workers=workers > 0
    )

    def epoch():
        for batch in loader:
            yield batch["x"], batch["y"]

    return epoch, None


def dali_tar(data, workers):
    from nvidia.dali import fn, pipeline_def

    shards = sorted(glob.glob(f"{data}/shard-*.tar"))

    @pipeline_def(batch_size=BATCH, num_threads=max(1, workers), device_id=None)
    def pipeline():
        encoded, label = fn.readers.webdataset(
            paths=shards,
            index_paths=[f"{data}/dali/{os.path.basename(s)}.idx" for s in shards],
            ext=["npy", "cls"],
            random_shuffle=True,
            initial_fill=100,
            name="reader",
            missing_component_behavior="error",
        )
        return fn.decoders.numpy(encoded), label

    return _dali(pipeline(), ["npy", "cls"])


def dali_npy(data, workers):
    from nvidia.dali import fn, pipeline_def

    files = sorted(glob.glob(f"{data}/loose/*.npy"))

    @pipeline_def(batch_size=BATCH, num_threads=max(1, workers), device_id=None)
    def pipeline():
        return fn.readers.numpy(device="cpu", files=files, shuffle_after_epoch=True, name="reader")

    return _dali(pipeline(), ["npy"])


def _dali(pipeline, names):
    from nvidia.dali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

    pipeline.build()
    loader = DALIGenericIterator(
        pipeline,
        names,
        reader_name="reader",
        auto_reset=True,
        last_batch_policy=LastBatchPolicy.PARTIAL,
    )

    def epoch():
        for (batch,) in loader:
            labels = batch.get("cls")
            yield batch["npy"], None if labels is None else labels.view(-1) - ord("0")

    return epoch, None


SIDES = {
    side.__name__: side
    for side in (
        stoker,
        stoker_read,
        npy_dataloader,
        webdataset,
        mosaic,
        litdata,
        dali_tar,
        dali_npy,
    )
}


def consume(batches, check=None):
    """Takes every batch of an epoch; returns samples and bytes."""
    import torch

    samples = size = 0
    for tensor, labels in batches:
        if not torch.is_tensor(tensor) or not tensor.is_contiguous():
            raise SystemExit("a batch is not one contiguous tensor")
        tensor.view(torch.uint8).view(-1)[::4096].sum(dtype=torch.int64)
        samples += len(tensor)
        size += tensor.nbytes
        if check is not None:
            check.add(tensor, labels)
    return samples, size


class Check:
    """Each sample once, each with its own label, and not in the stored order."""

    def __init__(self, facts):
        self.words = facts["words"]
        self.label_of = dict(zip(facts["words"], facts["labels"], strict=True))
        self.order = []

    def add(self, tensor, labels):
        words = tensor.reshape(len(tensor), -1)[:, :4].contiguous().numpy().view(numpy.uint64)
        came = [int(word) for word in words[:, 0]]
        self.order += came
        if labels is None:
            return
        if [int(label) for label in labels] != [self.label_of.get(word) for word in came]:
            raise SystemExit("labels are not those of their samples")

    def finish(self):
        if sorted(self.order) != sorted(self.words):
            raise SystemExit(f"{len(self.order)} samples came, not each of {len(self.words)} once")
        if self.order == self.words:
            raise SystemExit("the order is the stored one")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("side", choices=SIDES)
    parser.add_argument("data")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=2.0)
    arguments = parser.parse_args()
    facts = json.loads((pathlib.Path(arguments.data) / "facts.json").read_text())
    epoch, more = SIDES[arguments.side](arguments.data, arguments.workers)
    check = Check(facts)
    consume(epoch(), check)
    check.finish()
    result = measure.timed_epochs(lambda: consume(epoch()), arguments.seconds)
    result.update(value=result["bytes_per_s"], workers=arguments.workers, bytes_in=facts["bytes"])
    result.update(threads=machine.cores())
    if more:
        result.update(more())
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
