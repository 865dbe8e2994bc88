#!/usr/bin/env python3
"""Checks what no formatter does: lengths of functions, files and lines, and forbidden words."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUNCTION_LINES = 60
FILE_LINES = 700
COLUMNS = 100
# Paths of one machine, and marks of unfinished work.
FORBIDDEN = re.compile(
    r"(?<![\w.])/(?:work|home|root|Users)/[\w.]|/tmp/(?:brief|build-)"
    r"|\b(?:TODO|FIXME|XXX|HACK|placeholder)\b"
)
TEXT = {".c", ".h", ".py", ".pyi", ".sh", ".md", ".txt", ".cmake", ".toml", ".json", ".in", ".map"}
SELF = {"tools/check_source.py"}
LENGTH_CHECKED = (
    "src/",
    "inject/",
    "include/",
    "cli/",
    "plugins/",
    "python/",
    "tests/",
    "tools/",
    "bench/",
    "examples/",
)


def tracked():
    """Every file of the project that git would keep."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted({name for name in names.splitlines() if (ROOT / name).is_file()})


def long_functions(lines):
    """Yields (line, length) of C functions that are too long, from brace to brace in column 0."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            if number - start - 1 > FUNCTION_LINES:
                yield start, number - start - 1
            start = None


def check_file(name):
    """Yields what is wrong with one file."""
    path = ROOT / name
    lines = path.read_text(errors="replace").splitlines()
    for number, line in enumerate(lines, 1):
        if name not in SELF and (match := FORBIDDEN.search(line)):
            yield f"{name}:{number}: must not be here: {match[0]}"
    if path.suffix not in (".c", ".h", ".py", ".sh") or not name.startswith(LENGTH_CHECKED):
        return
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS:
            yield f"{name}:{number}: {len(line)} columns, {COLUMNS} are allowed"
    if len(lines) > FILE_LINES:
        yield f"{name}: {len(lines)} lines, {FILE_LINES} are allowed"
    if path.suffix == ".c":
        for start, length in long_functions(lines):
            yield f"{name}:{start}: a function of {length} lines, {FUNCTION_LINES} are allowed"


def main():
    names = [name for name in tracked() if Path(name).suffix in TEXT or "/" not in name]
    problems = [problem for name in names for problem in check_file(name)]
    print("\n".join(problems) or f"source: {len(names)} files, lengths and words are fine")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
