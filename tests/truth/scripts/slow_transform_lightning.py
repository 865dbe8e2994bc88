"""Lightning, no workers: each sample is augmented in the loop's own thread, and read a little."""

import time
import warnings

import lightning
import torch
from planted import Ledger, arguments, burn
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
LEDGER = Ledger("input/transform", counted=True)


class Pictures(Dataset):
    def __len__(self):
        return 320

    def __getitem__(self, index):
        with LEDGER.during("input/fetch"):
            time.sleep(0.001)
        with LEDGER.during("input/transform"):
            return augment(torch.full((16,), index / 320)), index % 4


def augment(picture):
    burn(0.004)
    return picture.flip(0)


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 4)

    def training_step(self, batch, number):
        time.sleep(0.02)
        x, y = batch
        return nn.functional.cross_entropy(self.layer(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main():
    arguments()
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Classifier(), DataLoader(Pictures(), batch_size=8, num_workers=0))
    LEDGER.tell()


if __name__ == "__main__":
    main()
