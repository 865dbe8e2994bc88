"""One file in a hundred is huge: all workers but one have finished, and the order waits for it."""

import time

import torch
from planted import Accelerator, Ledger, arguments
from torch.utils.data import DataLoader, Dataset


class Volumes(Dataset):
    def __len__(self):
        return 800

    def __getitem__(self, index):
        time.sleep(0.5 if index % 128 == 77 else 0.0005)
        return torch.zeros(8)


def main():
    options = arguments()
    step = Accelerator(options.device, 0.010)
    loader = DataLoader(Volumes(), batch_size=8, num_workers=4, prefetch_factor=2)
    ledger = Ledger("input/slow-sample", options.device)
    for _batch in ledger.epoch(loader):
        with ledger.step():
            step()
    ledger.tell()


if __name__ == "__main__":
    main()
