"""Files lie on a slow disk: two workers wait for it, and decode a little."""

import os
import tempfile
import time

import torch
from planted import Accelerator, Ledger, arguments, burn
from torch.utils.data import DataLoader, Dataset

READ_S, DECODE_S = 0.010, 0.002  # of one sample


class Files(Dataset):
    def __init__(self, folder, count):
        self.paths = []
        for number in range(count):
            self.paths.append(os.path.join(folder, f"{number:05d}.bin"))
            with open(self.paths[-1], "wb") as file:
                file.write(os.urandom(4096))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return self.decode(self.read(self.paths[index]))

    def read(self, path):
        time.sleep(READ_S)
        with open(path, "rb") as file:
            return file.read()

    def decode(self, data):
        burn(DECODE_S)
        return torch.frombuffer(bytearray(data), dtype=torch.uint8).float() / 255


def computing(files):
    """Which part of the time a sample takes on the CPU."""
    start, cpu = time.perf_counter(), time.thread_time()
    for index in range(20):
        files[index]
    return (time.thread_time() - cpu) / (time.perf_counter() - start)


def main():
    options = arguments()
    torch.set_num_threads(1)
    step = Accelerator(options.device, 0.012)
    with tempfile.TemporaryDirectory() as folder:
        files = Files(folder, 480)
        others = {"input/transform": computing(files)}
        ledger = Ledger("input/fetch", options.device, others)
        loader = DataLoader(files, batch_size=8, num_workers=2, shuffle=True)
        for _batch in ledger.epoch(loader):
            with ledger.step():
                step()
    ledger.tell()


if __name__ == "__main__":
    main()
