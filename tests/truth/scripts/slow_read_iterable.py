"""Accelerate over an IterableDataset whose source is slow, in the loop itself."""

import time

import torch
from accelerate import Accelerator as Accelerate
from planted import Ledger, arguments
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Lines(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        for number in range(first, 320, step):
            yield from_socket(number)


def from_socket(number):
    time.sleep(0.010)
    return torch.full((16,), float(number)), number % 4


def main():
    options = arguments()
    accelerate = Accelerate(cpu=options.device == "cpu")
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Lines(), batch_size=8, num_workers=1)
    model, optimizer, loader = accelerate.prepare(model, optimizer, loader)
    ledger = Ledger("input/fetch", options.device)
    for x, y in ledger.epoch(loader):
        with ledger.step():
            time.sleep(0.01)
            loss = nn.functional.cross_entropy(model(x), y)
            accelerate.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    ledger.tell()


if __name__ == "__main__":
    main()
