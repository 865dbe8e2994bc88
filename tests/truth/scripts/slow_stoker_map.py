"""Stoker's own loader, whose batches go through a slow Python function."""

import tempfile

import numpy
import stoker
from planted import Accelerator, Ledger, arguments, burn


def augment(sample):
    burn(0.005)
    sample["npy"] = sample["npy"] * 2
    return sample


def main():
    options = arguments()
    step = Accelerator(options.device, 0.010)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(400):
            numpy.save(f"{folder}/{number:04d}.npy", numpy.zeros(16, numpy.float32))
        loader = stoker.Loader(folder, batch_size=8, sample_map=augment)
        ledger = Ledger("input/transform", options.device)
        ledger.begin()
        for _batch in loader:
            with ledger.step():
                step()
        ledger.tell()
        loader.close()


if __name__ == "__main__":
    main()
