"""The loop filters each batch itself before it gives it to the model; the loader is quick."""

import time

import numpy
import torch
from planted import Accelerator, Ledger, arguments, burn, warm_up
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Denoise:
    def __call__(self, batch):
        burn(0.060)
        return numpy.clip(batch.numpy(), -3, 3)


class Trainer:
    def __init__(self, options):
        self.device = options.place
        self.model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
        self.model.to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.wait = Accelerator(options.device, 0.020)
        warm_up(self.model, self.optimizer, torch.randn(32, 64, device=self.device))
        self.ledger = Ledger("input/transform", options.device)

    def train(self, loader, epochs):
        denoise = Denoise()
        for _ in range(epochs):
            for x, y in loader:
                with self.ledger.during("input/transform"):
                    x = torch.from_numpy(denoise(x))
                self.train_step(x.to(self.device), y.to(self.device))

    def train_step(self, x, y):
        with self.ledger.step():
            self.wait()
        with self.ledger.model():
            loss = nn.functional.cross_entropy(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()


def main():
    options = arguments()
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(640, 64), torch.randint(0, 10, (640,)))
    trainer = Trainer(options)
    time.sleep(0.5)  # what comes before training is not judged
    trainer.train(DataLoader(data, batch_size=32, shuffle=True), epochs=2)
    trainer.ledger.tell()


if __name__ == "__main__":
    main()
