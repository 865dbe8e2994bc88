"""A heavy filter in the workers, more than all CPUs together can do in time."""

import torch
from planted import Accelerator, Ledger, arguments, burn
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __len__(self):
        return 480

    def __getitem__(self, index):
        picture = torch.full((3, 32, 32), float(index))
        return sharpen(picture), index % 10


def sharpen(picture):
    burn(0.012)
    return picture * 2


def main():
    options = arguments()
    step = Accelerator(options.device, 0.010)
    loader = DataLoader(
        Pictures(), batch_size=8, num_workers=2, persistent_workers=True, prefetch_factor=4
    )
    ledger = Ledger("input/transform", options.device)
    for _x, _y in ledger.epoch(loader):
        with ledger.step():
            step()
    ledger.tell()


if __name__ == "__main__":
    main()
