"""Threads of the script compute in Python: the loop has the interpreter every fourth time only."""

import threading

import torch
from planted import Accelerator, Ledger, arguments, burn

STEPS = 1200


def statistics(over):
    total = 0
    while not over.is_set():
        for number in range(1000):
            total += number * number % 7


def main():
    options = arguments()
    step = Accelerator(options.device, 0.0002)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(4))], lr=0.1)
    over = threading.Event()
    for _ in range(3):
        threading.Thread(target=statistics, args=(over,), daemon=True).start()
    optimizer.step()
    ledger = Ledger("gil", options.device)
    for number in range(STEPS):
        with ledger.step():
            step()
        burn(0.0005)
        if number % 10 == 9:
            optimizer.step()
    over.set()
    ledger.tell(share=lambda idle: None)  # who had the interpreter how long is not known here


if __name__ == "__main__":
    main()
