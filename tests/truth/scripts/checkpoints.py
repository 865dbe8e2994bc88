"""A checkpoint every few steps, to a disk that takes its time; and an input that waits a little."""

import io
import time

import torch
from planted import Accelerator, Ledger, arguments, end, warm_up
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, ledger):
        self.ledger = ledger

    def __len__(self):
        return 480

    def __getitem__(self, index):
        with self.ledger.during("input/fetch"):
            time.sleep(0.001)
        return torch.randn(32), index % 2


class SlowFile(io.BytesIO):
    def write(self, data):
        time.sleep(0.0008)
        return super().write(data)


def main():
    options = arguments()
    model = nn.Sequential(*(nn.Linear(32, 32) for _ in range(8)), nn.Linear(32, 2))
    model.to(options.place)
    optimizer = torch.optim.AdamW(model.parameters())
    pause = Accelerator(options.device, 0.020)
    warm_up(model, optimizer, torch.randn(8, 32, device=options.place))
    ledger = Ledger("checkpoint", options.device)
    loader = DataLoader(Rows(ledger), batch_size=8)
    for number, (x, y) in enumerate(loader):
        with ledger.step():
            pause()
        with ledger.model():
            loss = nn.functional.cross_entropy(model(x.to(options.place)), y.to(options.place))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if number % 4 == 3:
            with ledger.during("checkpoint"):
                torch.save({"model": model.state_dict(), "step": number}, SlowFile())
    ledger.tell()
    end(options)


if __name__ == "__main__":
    main()
