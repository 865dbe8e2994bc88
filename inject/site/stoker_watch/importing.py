"""Does something with a module right after it was imported, and puts patches in and out."""

import sys


class Finder:
    """First on sys.meta_path. For a wanted name it asks the others, and has its module's own loader
    run `done(name, module)` after it. The loader stays what it was: only this one execution is
    wrapped."""

    def __init__(self, wanted, done):
        self._wanted = wanted
        self._done = done

    def find_spec(self, name, path=None, target=None):
        if name not in self._wanted:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                self._wrap(spec, name)
                return spec
        return None

    def _wrap(self, spec, name):
        loader, done = spec.loader, self._done
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module):
            try:
                del loader.exec_module
            except AttributeError:
                pass
            execute(module)
            done(name, module)

        try:
            loader.exec_module = exec_module
        except AttributeError:
            pass  # a loader of another kind, shared or without attributes: its module is not seen


_patches = []
_undo = []


def at_unpatch(call):
    """For what is put in otherwise, such as a registered callback."""
    _undo.append(call)


def patch(owner, name, make, over=None):
    """Puts make(original) in the place of owner.name, or what over() makes of the two. What is not
    there is left alone."""
    import functools

    original = vars(owner).get(name)
    if original is None or not callable(original):
        return None
    wrapper = functools.wraps(original)(make(original))
    if over is not None:
        wrapper = over(wrapper, original)
    setattr(owner, name, wrapper)
    _patches.append((owner, name, original, wrapper))
    return wrapper


def replace(wrapper, other):
    """Puts another wrapper where this one lies on top."""
    for number, (owner, name, original, there) in enumerate(_patches):
        if there is wrapper and vars(owner).get(name) is wrapper:
            setattr(owner, name, other)
            _patches[number] = owner, name, original, other


def unpatch():
    """Takes out all that still lies on top."""
    while _patches:
        owner, name, original, wrapper = _patches.pop()
        if vars(owner).get(name) is wrapper:
            setattr(owner, name, original)
    while _undo:
        _undo.pop()()
