"""Workers make batches quickly, but each is a long list of small objects to pickle and unpickle."""

import sys

import torch
from planted import Accelerator, Ledger, arguments
from torch.utils.data import DataLoader, Dataset


class Words(Dataset):
    def __len__(self):
        return 80

    def __getitem__(self, index):
        return index


def as_lists(samples):
    return WORDS


# A GPU computes while the loop unpickles: there must be more of that than of computing.
COUNT = 45_000 if "cuda" in sys.argv else 15_000
WORDS = [{"word": str(number), "at": (number, number + 1)} for number in range(COUNT)]


def main():
    options = arguments()
    torch.set_num_threads(1)
    step = Accelerator(options.device, 0.015)
    loader = DataLoader(Words(), batch_size=2, num_workers=1, collate_fn=as_lists)
    ledger = Ledger("input/collate", options.device)
    for batch in ledger.epoch(loader):
        with ledger.step():
            step()
        del batch
    ledger.tell()


if __name__ == "__main__":
    main()
