"""Two ranks by torchrun: rank 1 has three times the work, rank 0 waits for it in each step."""

import time

import torch
import torch.distributed as distributed
from planted import Ledger, arguments
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    arguments()
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    rows = TensorDataset(torch.randn(640, 16), torch.randint(0, 4, (640,)))
    loader = DataLoader(rows, batch_size=8, sampler=DistributedSampler(rows))
    model = DistributedDataParallel(nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ledger = Ledger("rank", counted=True)
    distributed.barrier()
    for x, y in loader:
        with ledger.during("compute"):
            time.sleep(0.060 if rank == 1 else 0.020)
        loss = nn.functional.cross_entropy(model(x), y)
        with ledger.during("rank"):
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    if rank == 0:
        ledger.tell(share=lambda idle: 1.0, busy=0.667, slowest_rank=1)
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
