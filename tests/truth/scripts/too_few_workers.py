"""One worker cannot decode as fast as the device computes; two could."""

import torch
from planted import Accelerator, Ledger, arguments, burn, end
from torch.utils.data import DataLoader, Dataset


class Clips(Dataset):
    def __len__(self):
        return 320

    def __getitem__(self, index):
        burn(0.010)
        return {"clip": torch.zeros(4, 16), "label": index % 3}


def main():
    options = arguments()
    step = Accelerator(options.device, 0.060)
    loader = DataLoader(Clips(), batch_size=8, num_workers=1, pin_memory=options.device == "cuda")
    ledger = Ledger("input/workers", options.device)
    for batch in ledger.epoch(loader):
        batch["clip"].to(options.place)
        with ledger.step():
            step()
    ledger.tell()
    end(options)


if __name__ == "__main__":
    main()
