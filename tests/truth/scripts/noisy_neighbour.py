"""A healthy script, until other programs take the CPUs: the test starts them, outside the run."""

import os

import torch
from planted import Accelerator, Ledger, arguments, burn, ready
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __len__(self):
        return 480

    def __getitem__(self, index):
        burn(0.0005)
        return torch.zeros(3, 8, 8)


def main():
    options = arguments()
    step = Accelerator(options.device, 0.020)
    loader = DataLoader(
        Pictures(),
        batch_size=8,
        num_workers=1,
        persistent_workers=True,
        worker_init_fn=low_priority,
    )
    ledger = Ledger("contention", options.device)
    for _batch in ledger.epoch(loader):
        ready(options)
        with ledger.step():
            step()
    ledger.tell()


def low_priority(worker):
    """As a job in the background of a shared machine."""
    os.nice(10)


if __name__ == "__main__":
    main()
