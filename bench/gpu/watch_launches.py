"""watch_launches: as watch, for a loop that does nothing but launch tiny kernels."""

from bench.gpu import watch


def run(options):
    return watch.run(options, "watch_launches", ("tiny",))
