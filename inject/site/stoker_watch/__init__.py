"""Tells `stoker run` what a training script does: its loaders, steps and stacks.

Python without a dependency, and a module in C that it can do without: it is unpacked beside a run
and works in any environment. It touches what the script imports, after it was imported, and
nothing before.
"""

import sys

# module -> (part of ours, function that patches it)
_ACTIONS = {
    "torch": ("torch_steps", "patch_torch"),
    "torch._tensor": ("torch_steps", "patch_tensor"),
    "torch.serialization": ("torch_steps", "patch_save"),
    "torch.cuda": ("torch_steps", "patch_cuda"),
    "torch.cuda.graphs": ("gpu_library", "patch_graphs"),
    "torch.nn.modules.module": ("torch_steps", "patch_module"),
    "torch.optim.optimizer": ("torch_steps", "patch_optimizer"),
    "torch.distributed.distributed_c10d": ("torch_steps", "patch_collectives"),
    "torch.distributed.checkpoint.state_dict_saver": ("torch_steps", "patch_checkpoints"),
    "safetensors.torch": ("torch_steps", "patch_checkpoints"),
    "accelerate.accelerator": ("torch_steps", "patch_checkpoints"),
    "lightning.pytorch.trainer.trainer": ("torch_steps", "patch_checkpoints"),
    "pytorch_lightning.trainer.trainer": ("torch_steps", "patch_checkpoints"),
    "transformers.trainer": ("torch_steps", "patch_checkpoints"),
    "torch._dynamo.callback": ("torch_steps", "patch_compile"),
    "torch.autograd.profiler": ("torch_profiler", "patch_profiler"),
    "torch.utils.data.dataloader": ("torch_loader", "patch_loader"),
    "torch.utils.data._utils.worker": ("torch_worker", "patch_worker"),
    "torch.utils.data._utils.pin_memory": ("torch_worker", "patch_pin"),
    "torchdata.stateful_dataloader.stateful_dataloader": ("torch_loader", "patch_stateful"),
    "torchdata.stateful_dataloader.worker": ("torch_worker", "patch_worker"),
    "stoker.loader": ("stoker_loader", "patch_stoker"),
    "stoker.gpu": ("torch_profiler", "patch_activity"),
    "tensorflow": ("torch_steps", "see_tensorflow"),
}

_finder = None
_folder = ""  # of a run that nothing was told to yet


def start(folder):
    """Will tell the run whose folder this is, as soon as there is something to tell. Until then it
    costs next to nothing: most Pythons that a script starts never train."""
    global _finder, _folder
    from . import importing

    if _finder is not None:
        stop()
    _finder, _folder = importing.Finder(_ACTIONS, _imported), folder
    sys.meta_path.insert(0, _finder)
    for name in _ACTIONS:
        module = sys.modules.get(name)
        if module is not None:
            _imported(name, module)


def _imported(name, module):
    """A wanted module has been executed. What goes wrong here costs a part of the report."""
    global _folder
    from importlib import import_module

    from . import recording

    if _folder:
        recording.begin(_folder)
        _folder = ""
    if not recording.state.on:
        return
    part, function = _ACTIONS[name]
    try:
        getattr(import_module("." + part, __name__), function)(module)
    except Exception:
        recording.Part(name).failed()


def stop():
    """Ends telling, and takes the hook out of the modules that it touched."""
    global _finder, _folder
    from . import importing, recording

    if _finder is not None and _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    _finder, _folder = None, ""
    recording.end()
    recording.state.on = False
    importing.unpatch()
