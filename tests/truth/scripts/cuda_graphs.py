"""A step captured as a CUDA graph: the GPU is busy, and launches are few."""

import torch
from planted import Accelerator, Ledger, arguments, sim_gpu
from torch.utils.data import DataLoader, TensorDataset


def capture(options):
    """What replays the step."""
    if options.device == "sim":
        return lambda: sim_gpu().launch_graph([0.004] * 5)
    kernel = Accelerator(options.device, 0.004)
    still = torch.zeros(64, 16, device=options.place)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(5):
            kernel()
            still.add_(1)
    return graph.replay


def main():
    options = arguments()
    replay = capture(options)
    loader = DataLoader(TensorDataset(torch.randn(8000, 16)), batch_size=64)
    ledger = Ledger(None, options.device)
    for (x,) in ledger.epoch(loader):
        x.to(options.place, non_blocking=True)
        with ledger.step():
            replay()
    ledger.tell(graphs=True)


if __name__ == "__main__":
    main()
