"""Large batches in ordinary memory: each is copied while the GPU does nothing else."""

import torch
from planted import Accelerator, Ledger, arguments, sim_gpu
from torch.utils.data import DataLoader, Dataset


class Volumes(Dataset):
    def __init__(self):
        self.volume = torch.zeros(32 << 20, dtype=torch.float32)  # 128 MiB

    def __len__(self):
        return 120

    def __getitem__(self, index):
        return self.volume


def to_device(volume, options):
    if options.device == "sim":
        return sim_gpu().copy(0.015, volume.nbytes)
    return volume.to(options.place)


def main():
    options = arguments()
    step = Accelerator(options.device, 0.010)
    loader = DataLoader(Volumes(), batch_size=None)
    ledger = Ledger("copy", options.device)
    for volume in loader:
        to_device(volume, options)
        with ledger.step():
            step()
    ledger.tell()


if __name__ == "__main__":
    main()
