"""Who this process is: a rank, a worker of a loader, or a launcher; and how it ends."""

import os
import sys

LAUNCHERS = {"torchrun", "accelerate", "deepspeed", "composer"}
LAUNCHER_MODULES = {
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate.commands.launch",
    "accelerate.commands.accelerate_cli",
    "deepspeed.launcher.runner",
    "deepspeed.launcher.launch",
}


def main_ident():
    """Of the thread that runs the script."""
    import threading

    return threading.main_thread().ident


def multiprocessing_parent():
    """The process that started this one by multiprocessing, through a fork server too; or None."""
    process = sys.modules.get("multiprocessing.process")
    parent = process.parent_process() if process is not None else None
    return None if parent is None else parent.pid


def _module_run():
    """NAME of `python -m NAME`."""
    arguments = list(getattr(sys, "orig_argv", ()))[1:]
    for i, argument in enumerate(arguments):
        if argument == "-m" and i + 1 < len(arguments):
            return arguments[i + 1]
        if not argument.startswith("-"):
            return None
    return None


def is_launcher():
    if multiprocessing_parent() is not None:
        return False
    script = os.path.basename((getattr(sys, "argv", None) or [""])[0])
    return script in LAUNCHERS or _module_run() in LAUNCHER_MODULES


def name():
    """`python train.py`: no arguments, for they may hold anything."""
    module = _module_run()
    if module:
        return ("python -m " + module)[:120]
    script = (getattr(sys, "argv", None) or [""])[0]
    return ("python " + os.path.basename(script))[:120].rstrip()


def ranks():
    """(rank, world), (None, 1) where nothing is known."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
    except Exception:
        pass  # half imported
    try:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError):
        return None, 1


def describe(role, worker):
    """The process record. A worker's `main` is the process whose loader it serves."""
    torch = sys.modules.get("torch")
    version = getattr(torch, "__version__", None)
    pid = os.getpid()
    rank, world = ranks()
    if role == "main" and is_launcher():
        role, rank = "launcher", None
    return {
        "pid": pid,
        "ppid": os.getppid(),
        "role": role,
        "worker": worker,
        "main": (multiprocessing_parent() or os.getppid()) if role == "worker" else pid,
        "rank": rank,
        "world": world,
        "python": sys.version.split()[0],
        "torch": None if version is None else str(version),
        "name": name(),
    }


def at_end(call):
    """Calls it when this process ends in order. Children of multiprocessing run no atexit."""
    if multiprocessing_parent() is not None:
        from multiprocessing import util

        util.Finalize(None, call, exitpriority=-100)
    else:
        import atexit

        atexit.register(call)
