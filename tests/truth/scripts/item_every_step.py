"""The loss is read after each step, and written to a log: the GPU runs dry each time."""

import os

import torch
from planted import Accelerator, Ledger, arguments, burn, sim_gpu
from torch import nn


def read(loss, options):
    if options.device == "sim":
        sim_gpu().synchronize()
    return loss.item()


def main():
    options = arguments()
    torch.set_num_threads(1)
    step = Accelerator(options.device, 0.002)
    weight = nn.Parameter(torch.zeros(1024, device=options.place))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    batches = [torch.randn(1024, device=options.place) for _ in range(8)]
    with open(os.devnull, "w") as log:
        step()
        ledger = Ledger("sync", options.device)
        for number in range(1000):
            with ledger.step():
                step()
                loss = ((weight - batches[number % 8]) ** 2).mean()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            value = read(loss, options)
            burn(0.0005)
            print(f"step {number}: loss {value:.4f}", file=log, flush=True)
    ledger.tell()


if __name__ == "__main__":
    main()
