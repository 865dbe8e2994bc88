"""watch: what `stoker run` costs a training on the GPU: epochs with and without it, in turn."""

from bench import watch

LOOPS = "slow", "stoker", "cnn3d"  # the others: watch_training, watch_launches


def run(options, name="watch", loops=LOOPS):
    parts = watch.run(options, loops)
    return {**parts, "command": f"python -m bench.gpu {name} --runs {options.runs}"}
