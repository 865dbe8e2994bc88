"""No loader: the loop iterates over a generator that reads a slow disk, and decodes a little."""

import tempfile

import torch
from planted import Accelerator, Ledger, arguments, warm_up
from slow_read import Files, computing
from torch import nn

BATCH = 4


def batches(files):
    for first in range(0, len(files), BATCH):
        yield torch.stack([files[number] for number in range(first, first + BATCH)])


def train_on(source, options, ledger):
    model = nn.Linear(4096, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = Accelerator(options.device, 0.020)
    warm_up(model, optimizer, torch.zeros(1, 4096))
    ledger.begin()
    for x in source:
        with ledger.step():
            step()
        with ledger.model():
            model(x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()


def main(source=batches):
    options = arguments()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        files = Files(folder, 480)
        ledger = Ledger("input/fetch", options.device, {"input/transform": computing(files)})
        train_on(source(files), options, ledger)
    ledger.tell()


if __name__ == "__main__":
    main()
