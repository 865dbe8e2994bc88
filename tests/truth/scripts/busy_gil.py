"""Threads of the script compute in Python: the loop has the interpreter every sixth time only."""

import threading
import time

import torch
from planted import Accelerator, Ledger, arguments, burn

STEPS = {"cpu": 1200, "sim": 1200, "cuda": 200}  # each call of CUDA gives the interpreter away
THREADS = 5


def statistics(over):
    total = 0
    while not over.is_set():
        for number in range(1000):
            total += number * number % 7


def stood():
    """Seconds for which this thread has neither run nor been kept from running by other threads
    that use its CPU: here it waits for the interpreter alone."""
    with open("/proc/thread-self/schedstat") as file:
        ran, delayed = file.read().split()[:2]
    return time.perf_counter() - (int(ran) + int(delayed)) / 1e9


def main():
    options = arguments()
    step = Accelerator(options.device, 0.0002)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(4))], lr=0.1)
    over = threading.Event()
    for _ in range(THREADS):
        threading.Thread(target=statistics, args=(over,), daemon=True).start()
    optimizer.step()
    ledger = Ledger("gil", options.device)
    ledger.begin()
    waited = stood()
    for number in range(STEPS[options.device]):
        with ledger.step():
            step()
        burn(0.0005)
        if number % 10 == 9:
            optimizer.step()
    waited = stood() - waited
    over.set()
    ledger.tell(share=lambda idle: waited / idle)


if __name__ == "__main__":
    main()
