"""A loop of bench.watch_loops that switches the hook of `stoker run` on and off, epoch by epoch.

python -m stoker run -- python -m bench.hook_loop tiny --device cpu --seconds 20

Prints one JSON object: what the hook's own work costs an epoch ("hook"), and what 100 samples of
stacks a second cost it ("samples"), each as a share of the epoch without, with its error. The rest
of the watcher stays as it is. One process tells that more exactly than two can: they differ by some
hundredths for as long as they live.
"""

import argparse
import json
import random
import statistics
import sys
import time

import torch

from bench import watch_loops

WARM_S = 4  # by then recording has ended where launches are many
SAMPLES_HZ = 100
EPOCHS = 3  # of a turn that count
FEWEST = 4  # pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("loop", choices=["cnn3d", "tiny"])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--seconds", type=float, default=20, metavar="S")
    options = parser.parse_args()
    torch.set_num_threads(1)
    epoch = watch_loops.LOOPS[options.loop](options.device)
    until = time.monotonic() + WARM_S
    while time.monotonic() < until:
        epoch()
    hook = Hook()
    answer = {"loop": options.loop, "samples_hz": SAMPLES_HZ}
    for name, switch in (("hook", hook.tell), ("samples", hook.sample)):
        answer[name] = compare(epoch, switch, options.seconds / 2)
    print(json.dumps(answer))


class Hook:
    """That of this process."""

    def __init__(self):
        modules = [sys.modules.get(f"stoker_watch.{name}") for name in ("recording", "stacks")]
        if None in modules or modules[1]._sampler is None:
            raise SystemExit("bench.hook_loop: nobody watches; see --help")
        self._state, self._pace = modules[0].state, modules[1]._sampler.pace
        self._pace.keep = lambda elapsed: None
        self.sample(False)

    def tell(self, is_on):
        """Whatever the loop comes by."""
        self._state.on = is_on

    def sample(self, is_on):
        """The thread wakes a few times a second all the same, for it writes the records."""
        self._pace.rate = self._pace.now = SAMPLES_HZ if is_on else 0


def compare(epoch, switch, seconds):
    """Epochs with and without, side by side, in an order that is another each time."""
    more, without = [], []  # of each pair
    until = time.monotonic() + seconds
    while time.monotonic() < until or len(more) < FEWEST:
        spent = {}
        for is_on in random.sample([True, False], 2):
            switch(is_on)
            epoch()  # what the other left in caches and queues
            start = time.perf_counter()
            for _ in range(EPOCHS):
                epoch()
            spent[is_on] = (time.perf_counter() - start) / EPOCHS
        more.append(spent[True] - spent[False])
        without.append(spent[False])
    switch(True)
    cut = len(more) // 10  # at both ends: what else went on in the machine met one of the two
    more = sorted(more)[cut : len(more) - cut]
    unit = statistics.median(without)
    return {
        "share": statistics.fmean(more) / unit,
        "error": statistics.stdev(more) / len(more) ** 0.5 / unit,
        "epoch_s": unit,
    }


if __name__ == "__main__":
    main()
