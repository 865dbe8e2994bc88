"""What comes again at each step is timed without Python, where that can be: see _moments.c.

A loop without it is told the same, but feels it more.
"""

import sys

_quick = None
# A Python without the GIL would load it all the same, and its objects are laid out otherwise.
if "t" not in getattr(sys, "abiflags", ""):
    try:
        from . import _moments as _quick
    except Exception:  # a Python that it was not built for, or a folder from which nothing is run
        pass

TAKEN, ENDED, BROKE = 1, 2, 3  # how a next() ended that was timed there and was no common one

_allowed = False
_armed = None  # the Iteration whose next() is timed there


def over(kind, careful, original, late=None):
    """What takes the place of `original`: it times common calls, and leaves others to `careful`."""
    if _quick is None:
        return careful
    return _quick.Moment(getattr(_quick, "MOMENT_" + kind), original, careful, late)


def begin(thread, number):
    """Tells of this process: its loop runs in this thread, of this number in Linux."""
    global _armed, _allowed
    _armed, _allowed = None, False
    if _quick is not None:
        _quick.begin(thread, number)


def allow(append, write):
    """Somebody takes what is told. Returns what entries are to be given to instead of `append`:
    (write, records) goes before them, of records that were made here."""
    global _allowed
    if _quick is None:
        return append
    _quick.give_to(append, write)
    _allowed = True
    return _quick.tell


def forbid():
    global _allowed
    _allowed = False
    forget()


def forget():
    """All that is armed: another object may lie where one of them was."""
    disarm_next()
    disarm_steps()


def give():
    """Gives away what was recorded until now."""
    if _quick is not None:
        _quick.give_all()


def arm_next(iteration, *what):
    """The iteration's took() hears later what was told of it."""
    global _armed
    if _allowed and not _quick.next_begun():  # else it is within another one
        disarm_next()  # another thread's, which draws from the same loader
        _armed = iteration
        _quick.arm_next(*what)


def disarm_next():
    global _armed
    if _armed is not None:
        iteration, _armed = _armed, None
        iteration.took(*_quick.disarm_next())


def arm_step(optimizer, number):
    if _allowed:
        _quick.arm_step(optimizer, number)


def disarm_steps():
    if _quick is not None:
        _quick.disarm_steps()


def next_begun():
    """Since when a next() is under way; 0: none is."""
    return 0 if _quick is None else _quick.next_begun()


def backward_ended():
    return 0 if _quick is None else _quick.backward_ended()
