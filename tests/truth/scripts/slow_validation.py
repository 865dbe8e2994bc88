"""After each short epoch the model is tried on a long held-out set."""

import time

import torch
from planted import Accelerator, Ledger, arguments, warm_up
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def train(model, loader, optimizer, pause, ledger):
    model.train()
    device = next(model.parameters()).device
    for x, y in loader:
        with ledger.step():
            pause()
        with ledger.model():
            loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def validate(model, loader):
    model.eval()
    total, device = 0.0, next(model.parameters()).device
    with torch.no_grad():
        for x, y in loader:
            time.sleep(0.015)  # metrics that are computed on the CPU
            total += float(nn.functional.mse_loss(model(x.to(device)), y.to(device)))
    model.train()
    return total


def main():
    options = arguments()
    pause = Accelerator(options.device, 0.015)
    rows = TensorDataset(torch.randn(960, 8), torch.randn(960, 1))
    training, held_out = random_split(rows, [640, 320])
    model = nn.Linear(8, 1).to(options.place)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    warm_up(model, optimizer, torch.randn(16, 8, device=options.place))
    ledger = Ledger("validation", options.device)
    for _epoch in range(4):
        train(model, DataLoader(training, 16), optimizer, pause, ledger)
        with ledger.during("validation"):
            validate(model, DataLoader(held_out, 8))
    ledger.tell()


if __name__ == "__main__":
    main()
