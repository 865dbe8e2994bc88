"""How busy the GPU is while a block of code runs.

with Watch("cuda") as watch:
    train()
print(watch.busy)      0 to 1, or None where nobody can tell
print(watch.curve)     [[seconds, share of that moment], ...]

Exact where CUPTI is there (PyTorch brings it): every kernel counts. Else it is what nvidia-smi
shows, ten times a second. Without a GPU nothing is measured.
"""

import threading
import time

import stoker
import torch

MOMENT = 0.02  # seconds: a step of the curve


class Watch:
    def __init__(self, device):
        self.device = torch.device(device)
        self.busy, self.curve, self.how = None, [], None
        self._activity = self._thread = None

    def __enter__(self):
        self._begun = time.perf_counter()
        if self.device.type == "cuda" and not self._start_exact():
            self._over = threading.Event()
            self._thread = threading.Thread(target=self._sample, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *error):
        if self._activity is not None:
            self._activity.__exit__(*error)
            if error[0] is None:
                starts, kernels, _ = self._activity.timeline()
                self.busy, self.how = self._activity.busy, "kernels"
                self.curve = [
                    [float(at), float(share)] for at, share in zip(starts, kernels, strict=True)
                ]
        elif self._thread is not None:
            self._over.set()
            self._thread.join()
            if self.curve:
                self.how = "nvidia-smi"
                self.busy = sum(share for _, share in self.curve) / len(self.curve)

    def _start_exact(self):
        try:
            from stoker import gpu

            activity = gpu.Activity(self.device, bin=MOMENT)
            activity.__enter__()
        except (ImportError, stoker.StokerError):
            return False
        self._activity = activity
        return True

    def _sample(self):
        try:
            from stoker import gpu

            while not self._over.wait(0.1):
                share = gpu.nvml_utilization(self.device)
                self.curve.append([time.perf_counter() - self._begun, share])
        except (ImportError, stoker.StokerError):
            pass
