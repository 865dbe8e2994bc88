"""What the hook of `stoker run` costs a step when none of it is in the processor's caches.

python -m stoker run -- python -m bench.hook_cold

In a loop that trains, batches go through the caches between one step and the next, so the hook is
always run cold: an order of magnitude slower than in a loop of nothing else. Here 64 MiB are copied
before each part of a step, which then runs with the hook or without it. The parts are a next() of a
DataLoader without workers, a backward pass and a step of the optimizer. Prints one JSON object:
microseconds that each part takes longer by; "asked" with the kernel's clock of the thread, which is
asked 20 times a second at most, "unasked" without, as it is most of the time. Lower quartiles: what
else runs on the machine makes it slower, never faster.
"""

import argparse
import json
import random
import statistics
import sys
import time

import numpy
import torch
from torch.optim import optimizer
from torch.utils.data import DataLoader, TensorDataset, default_collate
from torch.utils.data.dataloader import _BaseDataLoaderIter

PARTS = "next", "backward", "step"
CACHE = 64 << 20


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=500, metavar="N", help="of each kind")
    options = parser.parse_args()
    torch.set_num_threads(1)
    recording = sys.modules.get("stoker_watch.recording")
    if recording is None:
        raise SystemExit("bench.hook_cold: nobody watches; see --help")
    loop = Loop(4 * options.steps + 100)
    answer = {}
    for name, every in ("asked", 0), ("unasked", 1 << 60):
        recording.ASK_EVERY = every
        answer[name] = loop.compare(options.steps)
    print(json.dumps(answer))


class Loop:
    def __init__(self, steps):
        data = TensorDataset(torch.zeros(8 * steps, 4), torch.zeros(8 * steps))
        self._batches = iter(DataLoader(data, batch_size=8))
        self._model = torch.nn.Linear(4, 1)
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.1)
        self._from, self._to = numpy.ones(CACHE, numpy.uint8), numpy.zeros(CACHE, numpy.uint8)
        self._hooks = (
            optimizer._global_optimizer_pre_hooks,
            optimizer._global_optimizer_post_hooks,
        )
        for _ in range(20):
            self._step(True)

    def compare(self, steps):
        spent = {True: [], False: []}
        for _ in range(steps):
            for is_on in random.sample([True, False], 2):
                spent[is_on].append(self._step(is_on))
        low = {
            is_on: [statistics.quantiles(part, n=4)[0] for part in zip(*some, strict=True)]
            for is_on, some in spent.items()
        }
        more = [(on - off) / 1000 for on, off in zip(low[True], low[False], strict=True)]
        return {**dict(zip(PARTS, more, strict=True)), "all": sum(more)}

    def _step(self, is_on):
        """Nanoseconds of each part."""
        draw, backward = _BaseDataLoaderIter.__next__, torch.Tensor.backward
        fetcher = self._batches._dataset_fetcher
        collate = fetcher.collate_fn
        if not is_on:
            draw, backward = draw.__wrapped__, backward.__wrapped__
            fetcher.collate_fn = default_collate
        (x, y), first = self._timed(lambda: draw(self._batches))
        fetcher.collate_fn = collate
        loss = (self._model(x) - y).square().mean()
        _, second = self._timed(lambda: backward(loss))
        kept = [dict(hooks) for hooks in self._hooks]
        for hooks in () if is_on else self._hooks:
            hooks.clear()
        _, third = self._timed(self._optimizer.step)
        for hooks, all_of_them in zip(self._hooks, kept, strict=True):
            hooks.update(all_of_them)
        self._optimizer.zero_grad()
        return first, second, third

    def _timed(self, call):
        numpy.copyto(self._to, self._from)
        start = time.perf_counter_ns()
        answer = call()
        return answer, time.perf_counter_ns() - start


if __name__ == "__main__":
    main()
