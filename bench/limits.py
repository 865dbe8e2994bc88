"""The C programs that measure what the machine can do at most; built with cc when first needed."""

import os
import shutil
import subprocess

from bench.measure import ROOT, Side

BUILD = ROOT / "build" / "bench"
LIBRARIES = {
    "limit_jpeg": ["-ljpeg"],
    "limit_audio": ["-lsndfile"],
    "limit_http": ["-lcurl"],
    "limit_curl": ["-lcurl"],
    "limit_video": ["-lavformat", "-lavcodec", "-lavutil"],
    "limit_cupti": ["-ldl"],
}
CUPTI = ["inject/inject_cupti.c", "inject/inject_find.c"]
SOURCES = {"limit_cupti": CUPTI, "cupti_ways": CUPTI}  # besides its own


def program(name):
    """The path of a limit program, built when its source is newer."""
    source, binary = ROOT / "bench" / f"{name}.c", BUILD / name
    headers = (ROOT / "bench").glob("limit*.h")
    newest = max(path.stat().st_mtime for path in (source, *headers))
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
                f"-I{ROOT / 'inject'}",
                "-o",
                str(binary),
                str(source),
                *(str(ROOT / more) for more in SOURCES.get(name, ["src/base/copy.c"])),
                *LIBRARIES.get(name, ()),
                "-lpthread",
            ],
            check=True,
        )
    return binary


def library(name):
    """The path of a shared library that is put into a program, built when its source is newer."""
    source, binary = ROOT / "bench" / f"{name}.c", BUILD / f"{name}.so"
    if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
        compiler = os.environ.get("CC") or shutil.which("cc") or "gcc"
        BUILD.mkdir(parents=True, exist_ok=True)
        command = [compiler, "-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared"]
        command += [f"-I{ROOT / 'src'}", f"-I{ROOT / 'inject'}", "-o", str(binary), str(source)]
        command += [str(ROOT / more) for more in SOURCES.get(name, [])]
        subprocess.run([*command, "-ldl", "-lpthread"], check=True)
    return binary


def side(name, *arguments, note=""):
    """A side that cannot be built, for want of a library, says so and is not measured."""
    try:
        return Side("limit", [program(name), *arguments], note)
    except subprocess.CalledProcessError:
        libraries = " ".join(LIBRARIES.get(name, ()))
        return Side("limit", [], note, missing=f"cc does not build bench/{name}.c {libraries}")


def section(entry, words):
    """The "limit" of a result file, from the limit's row."""
    return {"name": words, "value": entry["value"], "unit": entry["unit"], "runs": entry["runs"]}
