"""watch_training: as watch, for the 3D-CNN of the training benchmark, fed by Stoker."""

from bench.gpu import watch


def run(options):
    return watch.run(options, "watch_training", ("training",))
