"""Everything is in time: the device computes, the workers wait for it."""

import time

import torch
from planted import Accelerator, Ledger, arguments
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 960

    def __getitem__(self, index):
        time.sleep(0.0005)
        return torch.zeros(16)


def main():
    options = arguments()
    step = Accelerator(options.device, 0.030)
    cuda = options.device == "cuda"
    loader = DataLoader(
        Rows(), batch_size=8, num_workers=2, pin_memory=cuda, persistent_workers=True
    )
    ledger = Ledger(None, options.device)
    for x in ledger.epoch(loader):
        x.to(options.place, non_blocking=True)
        with ledger.step():
            step()
    ledger.tell()


if __name__ == "__main__":
    main()
