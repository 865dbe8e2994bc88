"""The C programs that measure what the machine can do at most; built with cc when first needed."""

import os
import shutil
import subprocess

from bench.measure import ROOT, Side

BUILD = ROOT / "build" / "bench"


def program(name):
    """The path of a limit program, built when its source is newer."""
    source, binary = ROOT / "bench" / f"{name}.c", BUILD / name
    newest = max(path.stat().st_mtime for path in (source, ROOT / "bench" / "limit.h"))
    if not binary.exists() or binary.stat().st_mtime < newest:
        compiler = os.environ.get("CC") or shutil.which("cc") or "gcc"
        BUILD.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [
                compiler,
                "-std=c11",
                "-D_GNU_SOURCE",
                "-O2",
                f"-I{ROOT / 'src'}",
                "-o",
                str(binary),
                str(source),
                str(ROOT / "src" / "base" / "copy.c"),
                "-lpthread",
            ],
            check=True,
        )
    return binary


def library(name):
    """The path of a shared library that is put before a program, built when its source is newer."""
    source, binary = ROOT / "bench" / f"{name}.c", BUILD / f"{name}.so"
    if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
        compiler = os.environ.get("CC") or shutil.which("cc") or "gcc"
        BUILD.mkdir(parents=True, exist_ok=True)
        command = [compiler, "-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared"]
        subprocess.run([*command, "-o", str(binary), str(source), "-ldl"], check=True)
    return binary


def side(name, *arguments, note=""):
    return Side("limit", [program(name), *arguments], note)


def section(entry, words):
    """The "limit" of a result file, from the limit's row."""
    return {"name": words, "value": entry["value"], "unit": entry["unit"], "runs": entry["runs"]}
