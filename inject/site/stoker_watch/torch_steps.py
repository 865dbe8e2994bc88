"""What the loop does besides loading: steps, backward, checkpoints, validation, collectives."""

import os
import sys
from _thread import get_ident, get_native_id
from functools import partial, wraps

from . import moments, process, recording, stacks
from . import ring as rings
from .importing import at_unpatch, patch, replace
from .recording import clock, cpu_clock, share, span, state, write_mark, write_span

part = recording.Part("steps")

NOTE = "_stoker_watch"  # in an optimizer: its number

CHECKPOINTS = {
    "torch.distributed.checkpoint.state_dict_saver": ("save", "save_state_dict"),
    "safetensors.torch": ("save_file", "save_model"),
    "accelerate.accelerator": ("Accelerator.save_state", "Accelerator.save_model"),
    "lightning.pytorch.trainer.trainer": ("Trainer.save_checkpoint",),
    "pytorch_lightning.trainer.trainer": ("Trainer.save_checkpoint",),
    "transformers.trainer": ("Trainer._save_checkpoint",),
}

# What else scripts write their own checkpoints with, once they train.
WRITERS = {"pickle": ("dump",), "numpy": ("save", "savez", "savez_compressed")}

COLLECTIVES = (
    "all_reduce",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "gather_object",
    "monitored_barrier",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
)

HELPERS = (  # in the command of a process that multiprocessing starts for itself
    "from multiprocessing.forkserver import main",
    "from multiprocessing.resource_tracker import main",
    "from multiprocessing.spawn import spawn_main",
)

_under = set()  # kinds of span that the main thread is in: only the outermost is told


def listens():
    return part.on and state.on and state.worker is None


def in_loop():
    """It listens, and this is the thread that trains. Before there is a ring, that is not known."""
    return (
        part.on
        and state.on
        and state.worker is None
        and (state.ring or recording.get()) is not None
        and get_ident() == state.main_thread
    )


def between_batches():
    """What is written while a batch is made is a cache of the data set's."""
    return steps.any and in_loop() and not state.next_begun and not moments.next_begun()


def timed(what, when=in_loop):
    """Makes wrappers that tell the outermost call on the main thread as a span."""

    def make(original):
        def wrapper(*arguments, **options):
            if _compiling() or what in _under or not when():
                return original(*arguments, **options)
            _under.add(what)
            state.open[what] = start = clock()
            cpu = cpu_clock()
            try:
                return original(*arguments, **options)
            finally:
                _under.discard(what)
                tell(what, start, cpu)

        return wrapper

    return make


def tell(what, start, cpu):
    try:
        state.open.pop(what, None)
        end = clock()
        span(what, start, end, 0, 0, share(cpu_clock() - cpu, end - start))
    except Exception:
        part.failed()


# Steps


class Steps:
    """Of this process."""

    __slots__ = ("any", "backward", "begun", "count", "loader", "ring")

    def __init__(self):
        self.count = 0  # optimizers seen
        self.loader = 0  # whose batch was trained on
        self.ring = None  # that the stacks go to
        self.fork()

    def fork(self):
        self.begun = ()  # steps under way: one may take others
        self.backward = 0  # when the last backward ended
        self.any = False


steps = Steps()
_compiling = bool  # torch.compiler.is_dynamo_compiling, once torch is whole


# What runs at each step of the loop is short, and most of the time does not run: see
# torch_loader.Iteration.


def before_step(optimizer, arguments, options):
    if _compiling():  # traced into a graph, which must stay free of us
        return
    if part.on and state.on and state.worker is None:
        steps.begun = (*steps.begun, clock())


def after_step(optimizer, arguments, options):
    if _compiling() or not (part.on and state.on and state.worker is None):
        return
    try:
        end, begun = clock(), steps.begun
        start, steps.begun = (begun[-1], begun[:-1]) if begun else (end, begun)
        number = optimizer.__dict__.get(NOTE) or meet(optimizer)
        if steps.ring is None or steps.ring is not state.ring:
            begin_steps()
        if Validation.start:
            Validation.trained()
        steps.loader = state.loader
        moments.arm_step(optimizer, number)
        steps.backward = max(steps.backward, moments.backward_ended())
        thread = state.pid if get_ident() == state.main_thread else get_native_id()
        state.soon((write_step, start, end, steps.backward, number, thread))
    except Exception:
        part.failed()


def begin_steps():
    """In this ring."""
    steps.any = True
    stacks.first_step(sys._getframe())
    stacks.start()
    steps.ring = state.ring


def meet(optimizer):
    steps.count += 1
    optimizer.__dict__[NOTE] = steps.count
    return steps.count


def write_step(ring, start, end, backward, number, thread):
    # A closure runs forward and backward in step(): they are not the optimizer's.
    start = max(start, min(backward, end))
    write_span(ring, rings.SPAN_OPTIMIZER, start, end, thread, number)
    write_mark(ring, rings.MARK_STEP, end, thread, number, 0)


_traceable = []  # what puts traceable functions in the place of moments


def patch_optimizer(module):
    for name, hook in (("pre", before_step), ("post", after_step)):
        register = getattr(module, f"register_optimizer_step_{name}_hook", None)
        if register is None:
            recording.notice("This torch has no hook for steps: none are counted.")
            return
        moment = hook
        if tells_compiling():
            moment = moments.over("BEFORE_STEP" if name == "pre" else "AFTER_STEP", hook, None)
        handle = register(moment)
        at_unpatch(handle.remove)
        if moment is not hook:
            _traceable.append(partial(replace_hook, handle, moment))


def tells_compiling():
    """Whether this torch tells before it compiles anything (from 2.6 on): see make_traceable(). To
    import what tells it would take seconds."""
    torch = getattr(sys.modules["torch"], "__file__", None) or ""
    try:
        with open(os.path.join(os.path.dirname(torch), "_dynamo", "callback.py"), "rb") as file:
            return b"def install_callbacks" in file.read()
    except OSError:
        return False


def replace_hook(handle, moment):
    hooks = handle.hooks_dict_ref()
    if hooks is not None and hooks.get(handle.id) is moment:
        hooks[handle.id] = traceable(moment, lambda *_: None)


def traceable(moment, original):
    """For torch.compile, which follows Python alone, and must not see more than the original."""

    @wraps(moment)
    def wrapper(*arguments, **options):
        if _compiling():
            return original(*arguments, **options)
        return moment(*arguments, **options)

    return wrapper


def make_traceable():
    """Something is compiled for the first time. Functions cost more than moments, so not before."""
    while _traceable:
        _traceable.pop()()


def timed_backward(original):
    def backward(self, *arguments, **options):
        if _compiling() or state.worker is not None or not (part.on and state.on):
            return original(self, *arguments, **options)
        if state.ring is None:
            recording.get()
        start = clock()
        try:
            return original(self, *arguments, **options)
        finally:
            try:
                end = clock()
                if get_ident() == state.main_thread:
                    steps.backward = end
                    if Validation.start:
                        Validation.trained()
                    state.soon((write_span, rings.SPAN_BACKWARD, start, end, state.pid))
            except Exception:
                part.failed()

    return backward


def over_backward(careful, original):
    moment = moments.over("BACKWARD", careful, original)
    if moment is not careful:
        _traceable.append(lambda: replace(moment, traceable(moment, original)))
    return moment


def patch_tensor(module):
    over = over_backward if tells_compiling() else None
    patch(module.Tensor, "backward", timed_backward, over)


# Validation


class Validation:
    """From eval() to train(), once something was trained. A module that is trained on in eval mode
    (frozen layers, a teacher) is none. Long ones are told in pieces, as they go on."""

    start = 0
    depth = 0

    @classmethod
    def mode(cls, training):
        now = clock()
        if not training:
            moments.disarm_steps()
            if cls.start == 0 and steps.any:
                cls.start = now
                if cls.piece not in state.on_second:
                    state.on_second.append(cls.piece)
                    state.on_end.append(cls.over)
        elif cls.start:
            start, cls.start = cls.start, 0
            span(rings.SPAN_VALIDATION, start, now)

    @classmethod
    def trained(cls):
        """A backward or a step while it seemed to go on: train() was forgotten, or done in another
        way. If the loop had gone to another loader and back, or one came to its end, that was
        validation, until then."""
        start, cls.start = cls.start, 0
        end = cls.seen_end(start)
        if end:
            span(rings.SPAN_VALIDATION, start, end)

    @classmethod
    def seen_end(cls, start):
        if state.loader == steps.loader and state.switched > start:
            return state.switched
        return state.epoch_end if state.epoch_end > start else 0

    @classmethod
    def over(cls):
        """The script ends in it."""
        if cls.start and state.loader != steps.loader and state.handed > cls.start:
            span(rings.SPAN_VALIDATION, cls.start, max(state.handed, state.epoch_end))
            cls.start = 0
        if cls.start:
            cls.trained()

    @classmethod
    def piece(cls):
        start = cls.start
        end = cls.seen_end(start) or clock()
        if start and end - start > 1000000000:
            cls.start = end
            span(rings.SPAN_VALIDATION, start, end, thread=state.pid)


def noted_train(original):
    def train(self, mode=True):
        if _compiling() or Validation.depth or state.ring is None or not in_loop():
            return original(self, mode)
        Validation.depth = 1
        try:
            return original(self, mode)
        finally:
            Validation.depth = 0
            try:
                Validation.mode(mode)
            except Exception:
                part.failed()

    return train


class Model:
    made = False

    @classmethod
    def tell(cls):
        if cls.made and state.worker is None:
            recording.mark(rings.MARK_MODULE)


state.on_open.append(Model.tell)


def patch_module(module):
    def make(original):
        def __init__(self, *arguments, **options):
            if vars(module.Module).get("__init__") is wrapper[0]:
                module.Module.__init__ = original  # once is enough
            try:
                Model.made = True
                if state.ring is not None:
                    Model.tell()
            except Exception:
                part.failed()
            original(self, *arguments, **options)

        return __init__

    patch(module.Module, "train", noted_train)
    wrapper = [None]
    wrapper[0] = patch(module.Module, "__init__", make)


# Checkpoints, collectives, compilation


def patch_save(module):
    patch(module, "save", timed(rings.SPAN_CHECKPOINT))


def patch_writers():
    for name, functions in WRITERS.items():
        module = sys.modules.get(name)
        for function in functions if module is not None else ():
            wrapper = patch(module, function, timed(rings.SPAN_CHECKPOINT, between_batches))
            if wrapper is not None:
                wrapper.__module__ = name  # where pickle finds it, not the one in C


def patch_checkpoints(module):
    for path in CHECKPOINTS[module.__name__]:
        owner = module
        *classes, name = path.split(".")
        for one in classes:
            owner = getattr(owner, one)
        patch(owner, name, timed(rings.SPAN_CHECKPOINT))


def told_ranks(original):
    def init_process_group(*arguments, **options):
        made = original(*arguments, **options)
        if listens():
            try:
                tell_again()
            except Exception:
                part.failed()
        return made

    return init_process_group


def tell_again():
    if state.ring is None:
        recording.get()
    else:
        recording.tell_process()


def patch_collectives(module):
    package = sys.modules.get("torch.distributed")
    for name in (*COLLECTIVES, "init_process_group"):
        make = told_ranks if name == "init_process_group" else timed(rings.SPAN_COLLECTIVE)
        original = vars(module).get(name)
        wrapper = patch(module, name, make)
        if wrapper is not None and vars(package or module).get(name) is original:
            patch(package, name, lambda _, wrapper=wrapper: wrapper)


class Compiling:
    start = 0


def compile_begins(*_):
    try:
        make_traceable()
    except Exception:
        part.failed()
    Compiling.start = state.open[rings.SPAN_COMPILE] = clock()


def compile_ends(*_):
    start, Compiling.start = Compiling.start, 0
    state.open.pop(rings.SPAN_COMPILE, None)
    if start and listens():
        try:
            span(rings.SPAN_COMPILE, start, clock())
        except Exception:
            part.failed()


def patch_compile(module):
    """torch._dynamo.reset() throws out whoever listens: we come back."""
    handler = getattr(module, "callback_handler", None)
    if handler is None:
        return
    ours = ("start_callbacks", compile_begins), ("end_callbacks", compile_ends)

    def listen():
        for name, call in ours:
            if call not in getattr(handler, name):
                getattr(handler, name).append(call)

    def leave():
        for name, call in ours:
            if call in getattr(handler, name):
                getattr(handler, name).remove(call)

    def cleared(original):
        def clear(self):
            original(self)
            listen()

        return clear

    listen()
    at_unpatch(leave)
    patch(type(handler), "clear", cleared)


# What tells that this process is worth watching


def patch_cuda(module):
    def make(original):
        def _lazy_init(*arguments):
            if vars(module).get("_lazy_init") is wrapper[0]:
                module._lazy_init = original  # once is enough
            told = listens()
            if told:
                stacks.start()
            result = original(*arguments)
            if told:  # it did not raise: there is a device, and the script uses it
                recording.mark(rings.MARK_CUDA)
            return result

        return _lazy_init

    wrapper = [None]
    wrapper[0] = patch(module, "_lazy_init", make)


def patch_torch(module):
    """Torch is there. A child of multiprocessing tells of itself when it turns out to be a worker
    or a rank."""
    global _compiling
    compiler = getattr(module, "compiler", None)
    for name in ("is_dynamo_compiling", "is_compiling"):  # the latter asks more, and costs more
        if hasattr(compiler, name):
            _compiling = getattr(compiler, name)
            break
    serialization = sys.modules.get("torch.serialization")
    if serialization is not None and module.save is not serialization.save:
        patch(module, "save", timed(rings.SPAN_CHECKPOINT))
    patch_writers()
    if process.multiprocessing_parent() is None and not is_helper():
        recording.get()


def is_helper():
    """A process of multiprocessing itself: a fork server, a tracker, a child being spawned. Newer
    Pythons import sys before."""
    arguments = getattr(sys, "orig_argv", ())
    return any(words in argument for argument in arguments[1:] for words in HELPERS)


def see_tensorflow(module):
    recording.notice("TensorFlow is not looked into: GPU busy and host figures only.")


def _forked():
    steps.fork()
    Validation.start = Validation.depth = 0
    _under.clear()


state.on_fork.append(_forked)
