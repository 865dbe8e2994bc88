"""Short epochs, and workers that open a large index each time they are started."""

import time

import torch
from planted import Accelerator, Ledger, arguments
from torch.utils.data import DataLoader, TensorDataset


def open_index(worker):
    time.sleep(0.25)


def main():
    options = arguments()
    step = Accelerator(options.device, 0.020)
    loader = DataLoader(
        TensorDataset(torch.randn(64, 8)), batch_size=8, num_workers=2, worker_init_fn=open_index
    )
    ledger = Ledger("input/start", options.device)
    for _epoch in range(10):
        for (_x,) in ledger.epoch(loader):
            with ledger.step():
                step()
    ledger.tell()


if __name__ == "__main__":
    main()
