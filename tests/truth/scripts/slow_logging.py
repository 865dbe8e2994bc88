"""After each step the loop computes metrics and sends them to a slow place."""

import time

import torch
from planted import Accelerator, Ledger, arguments, burn, warm_up
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def log_metrics(loss):
    burn(0.010)
    time.sleep(0.020)
    return loss


def main():
    options = arguments()
    torch.set_num_threads(1)
    step = Accelerator(options.device, 0.020)
    model = nn.Linear(64, 4, device=options.place)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.randn(1200, 64)), batch_size=8)
    warm_up(model, optimizer, torch.zeros(1, 64, device=options.place))
    ledger = Ledger("sync", options.device, {"launch": 1.0})
    for (x,) in ledger.epoch(loader):
        with ledger.step():
            step()
        loss = model(x.to(options.place)).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        with ledger.during("sync"):
            log_metrics(loss)
    ledger.tell()


if __name__ == "__main__":
    main()
