"""Threads of the script compute in Python: the loop has the interpreter every fourth time only."""

import threading
import time

import torch
from planted import Accelerator, Ledger, arguments, burn

STEPS, KERNEL_S = 1200, 0.0002


def statistics(over):
    total = 0
    while not over.is_set():
        for number in range(1000):
            total += number * number % 7


def main():
    options = arguments()
    step = Accelerator(options.device, KERNEL_S)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(4))], lr=0.1)
    over = threading.Event()
    for _ in range(3):
        threading.Thread(target=statistics, args=(over,), daemon=True).start()
    optimizer.step()
    ledger = Ledger("gil", options.device)
    cpu = time.thread_time()
    for number in range(STEPS):
        with ledger.step():
            step()
        burn(0.0005)
        if number % 10 == 9:
            optimizer.step()
    cpu = time.thread_time() - cpu
    over.set()
    launching = cpu - STEPS * KERNEL_S  # while it had the interpreter, the GPU waited so long
    ledger.tell(share=lambda idle: 1 - launching / idle)


if __name__ == "__main__":
    main()
