"""Benchmarks of the GPU path: `python -m bench.gpu NAME|all`; see bench/README.md."""

NAMES = [
    "h2d",
    "tensors",
    "training",
    "jpeg",
    "windows",
    "kernels",
    "watch",
    "watch_training",
    "watch_launches",
    "hook",
    "cupti",
    "cupti_loop",
]
