"""A healthy script, until other programs take the CPUs: the test starts them, outside the run."""

import os
from multiprocessing import active_children

import torch
from planted import Accelerator, Ledger, arguments, burn, ready
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __len__(self):
        return 480

    def __getitem__(self, index):
        burn(0.0005)
        return torch.zeros(3, 8, 8)


def main(begin=ready):
    """begin: called when training has begun."""
    options = arguments()
    step = Accelerator(options.device, 0.020)
    loader = DataLoader(
        Pictures(),
        batch_size=8,
        num_workers=1,
        persistent_workers=True,
        worker_init_fn=low_priority,
    )
    ledger = Ledger("contention", options.device)
    waits = None
    for _batch in ledger.epoch(loader):
        waits = waits or schedule_of(active_children()[0].pid)
        begin(options)
        with ledger.step():
            step()
    now = schedule_of(active_children()[0].pid)
    ran, waited = (after - before for before, after in zip(waits, now, strict=True))
    # Some of what it ran would have been hidden by the step, had it had a CPU: half is taken.
    ledger.others = {"input/transform": ran / (ran + waited) / 2}
    ledger.tell()


def schedule_of(pid):
    """How long a process ran, and how long it could have run but had no CPU."""
    with open(f"/proc/{pid}/schedstat") as file:
        return [int(word) for word in file.read().split()[:2]]


def low_priority(worker):
    """As a job in the background of a shared machine."""
    os.nice(10)


if __name__ == "__main__":
    main()
