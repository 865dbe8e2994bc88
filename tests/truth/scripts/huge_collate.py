"""Padding sentences to one length takes far longer than reading them; no workers, no optimizer."""

import time

import torch
from planted import Accelerator, Ledger, arguments, burn, end
from torch.utils.data import DataLoader


class Sentences:
    """A data set need not be a torch.utils.data.Dataset."""

    def __init__(self, count, ledger):
        self.count, self.ledger = count, ledger

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        with self.ledger.during("input/fetch"):
            time.sleep(0.001)
        return torch.arange(index % 50 + 1)


class Pad:
    def __call__(self, samples):
        burn(0.040)
        return torch.nn.utils.rnn.pad_sequence(samples, batch_first=True)


def main():
    options = arguments()
    step = Accelerator(options.device, 0.020)
    ledger = Ledger("input/collate", options.device)
    loader = DataLoader(Sentences(400, ledger), batch_size=8, collate_fn=Pad())
    for _epoch in range(1):
        for _batch in loader:
            with ledger.step():
                step()
    ledger.tell()
    end(options)


if __name__ == "__main__":
    main()
