"""Sides that are a module with a function each: a peer in all its variants, the best one kept."""

import subprocess

from bench import machine, measure, media_data, peers


def own(module, name, data, seconds, note, threads=None):
    """A side of Stoker's."""
    command = _command(module, name, data, "", threads or machine.cores(), seconds)
    return measure.Side(name, command, note)


def peer(module, name, data, options, seconds, facts):
    """A peer, with the variant that suits it best here; quick runs try the first alone.

    facts: the modules it needs, the form of the data that it reads or None, (variant, words) pairs
    and a note.
    """
    modules, form, variants, note = facts
    why = next(filter(None, map(peers.missing, modules)), None) or make_form(form, data)
    if why:
        return measure.Side(name, [], note, missing=why)
    version = ", ".join(filter(None, map(peers.version, modules)))
    tried = []
    for variant, words in variants[:1] if options.quick else variants:
        command = _command(
            module, name, data, variant, machine.cores(), seconds / 2, interpreter=peers.PYTHON
        )
        words = ", ".join(filter(None, (version, words)))
        tried.append(measure.Side(name, command, f"{words}: {note}"))
    best = measure.best_of(tried) if len(tried) > 1 else tried[0]
    best.command[-1] = str(seconds)
    return best


def _command(module, name, data, variant, threads, seconds, **more):
    words = ("--variant", variant, "--threads", threads, "--seconds", seconds)
    return measure.python(module, name, data, *words, **more)


def make_form(form, data, writer=media_data):
    """Writes the form of the samples that a peer wants. None, or why it cannot."""
    if form is None or (data / writer.FORMS[form]).exists():
        return None
    print(f"  writing the samples as {form}", flush=True)
    command = measure.python(writer.__name__, form, str(data), interpreter=str(peers.PYTHON))
    done = subprocess.run(command, cwd=measure.ROOT, capture_output=True, text=True)
    return (done.stderr.strip().splitlines() or ["?"])[-1][:300] if done.returncode else None
