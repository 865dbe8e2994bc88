"""watch: what `stoker run` costs a training on the GPU: epochs with and without it, in turn."""

from bench import watch


def run(options):
    parts = watch.run(options)
    return {**parts, "command": parts["command"].replace("bench.run", "bench.gpu")}
