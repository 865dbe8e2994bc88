#!/usr/bin/env python3
"""check_includes.py [ROOT]: the include law; tools/include_law.txt says who may include whom."""

import re
import sys
from pathlib import Path

ROOT = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
LAW = ROOT / "tools" / "include_law.txt"
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def read_law():
    """Returns folder -> allowed names, and system header -> the places that may include it."""
    groups, folders, only = {}, {}, {}
    for number, line in enumerate(LAW.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        if match := re.fullmatch(r"(\w+) = (.*)", line):
            groups[match[1]] = match[2].split()
        elif match := re.fullmatch(r"only (\S+): (.*)", line):
            only[match[1]] = match[2].split()
        elif match := re.fullmatch(r"(\S+): (.*)", line):
            names = match[2].split()
            folders[match[1]] = [name for word in names for name in groups.get(word, [word])]
        else:
            sys.exit(f"{LAW}:{number}: not understood: {line}")
    return folders, only


def own_name(folder):
    """How a folder's own headers are spelled: src/base is base/..., include/stoker is stoker/..."""
    return folder.split("/")[-1] if "/" in folder else ""


def allowed(name, folder, names):
    """Whether a file of folder may include the header so named."""
    own = own_name(folder)
    if "/" not in name:  # cli and python include headers by bare name
        return (ROOT / folder / name).exists() or any(e.endswith("/" + name) for e in names)
    return any(name == entry or name.startswith(entry + "/") for entry in [own, *names] if entry)


def check_file(path, folder, names, only):
    """Yields what is wrong with the includes of one file."""
    where = path.relative_to(ROOT).as_posix()
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        name = match[2].removeprefix("../")
        if match[1] == "<":
            places = only.get(name)
            if places and not any(where == p or where.startswith(p + "/") for p in places):
                yield f"{where}:{number}: <{name}> belongs to {' '.join(places)}"
        elif not allowed(name, folder, names):
            yield f'{where}:{number}: {folder} may not include "{name}"'


def main():
    folders, only = read_law()
    problems, count = [], 0
    present = {path.parent.relative_to(ROOT).as_posix() for path in ROOT.glob("src/*/*.[ch]")}
    for folder in sorted(present - set(folders)):
        problems.append(f"{folder}: {LAW.name} has no line for it")
    for folder, names in folders.items():
        for path in sorted((ROOT / folder).glob("*.[ch]")):
            problems += check_file(path, folder, names, only)
            count += 1
    print("\n".join(problems) or f"includes: {count} files keep the law")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
