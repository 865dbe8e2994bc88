"""Makes docs/api.md from the docstrings of the package.

python python/make_api_page.py            writes docs/api.md
python python/make_api_page.py --check    exit status 1 when it is not up to date
"""

import inspect
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:] = [folder for folder in sys.path if Path(folder).resolve() != HERE]  # the installed one

import stoker  # noqa: E402
import stoker.errors  # noqa: E402
import stoker.transforms  # noqa: E402

PAGE = HERE.parent / "docs" / "api.md"

# All else comes from these.
CALLED = (
    "open",
    "Loader",
    "Pipeline",
    "Transform",
    "load_plugin",
    "pack_series",
    "rescale",
    "profile",
)

HEAD = """# The Python package

Made from the docstrings by `python/make_api_page.py`; change them there.

"""


def signature(thing, name):
    """name(arguments), one argument a line where it is long."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return f"{name}()"
    shown = [p for p in found.parameters.values() if p.name != "self"]
    parts = []
    star = False
    for one in shown:
        if one.kind is one.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        written = str(one.replace(annotation=one.empty)).replace(" = ", "=")
        parts.append(written.replace("'", '"'))
    line = f"{name}({', '.join(parts)})"
    if len(line) <= 88:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + ")"


def prose(text):
    """A docstring in Markdown: roles and double backticks become code, examples become blocks, Args
    and Attributes become lists."""
    text = re.sub(r":(?:class|func|meth|attr):`(.+?)`", r"`\1`", text)
    text = text.replace("``", "`")
    blocks = []
    for block in text.split("\n\n"):
        lines = block.splitlines()
        if lines[0].lstrip().startswith(">>>"):
            blocks.append("```python\n" + block + "\n```")
        elif lines[0] in ("Args:", "Attributes:"):
            blocks.append("\n".join(entries(lines[1:])))
        else:
            blocks.append(block)
    return "\n\n".join(blocks)


def entries(lines):
    """`    name: words` with deeper lines that go on -> a Markdown list."""
    made = []
    for line in lines:
        found = re.match(r"    (\S[^:]*): (.*)", line)
        if found and not line.startswith("     "):
            names = ", ".join(f"`{name.strip()}`" for name in found[1].split(","))
            made.append(f"- {names}: {found[2]}")
        else:
            made.append(f"  {line.strip()}")
    return made


def members(kind):
    """The public methods and properties that the class itself defines, in its own order."""
    for name, member in vars(kind).items():
        if not name.startswith("_") and isinstance(
            member, property | classmethod | staticmethod | type(members)
        ):
            yield name, member


def section(name, thing):
    """One public name."""
    words = prose(inspect.getdoc(thing) or "")
    if inspect.isclass(thing) and issubclass(thing, BaseException):
        bases = ", ".join(f"`{base.__name__}`" for base in thing.__bases__)
        return f"### {name}\n\nBases: {bases}.\n\n{words}\n"
    is_made = name in CALLED
    code = f"```python\nstoker.{signature(thing, name)}\n```\n\n" if is_made else ""
    text = f"## stoker.{name}\n\n{code}{words}\n"
    if not inspect.isclass(thing):
        return text
    for member_name, member in members(thing):
        target = member.fget if isinstance(member, property) else getattr(thing, member_name)
        title = member_name if isinstance(member, property) else signature(target, member_name)
        text += f"\n### {name}.{title}\n\n{prose(inspect.getdoc(target) or '')}\n"
    return text


def transform_section(kind):
    """One transform: how it is called, and what its arguments are."""
    name = kind.__name__
    code = f"```python\nstoker.{signature(kind, name)}\n```"
    return f"### {name}\n\n{code}\n\n{prose(inspect.getdoc(kind))}\n"


def page():
    """The whole page."""
    parts = [HEAD + prose(inspect.getdoc(stoker)) + "\n"]
    names = ("open", "Dataset", "Field", "Loader", "Batch")
    for name in (*names, "pack_series", "PackedSeries", "rescale", "Scaler"):
        parts.append(section(name, getattr(stoker, name)))
    parts.append("## stoker.transforms\n\n" + prose(inspect.getdoc(stoker.transforms)) + "\n")
    parts += [transform_section(kind) for kind in stoker.transforms.NAMED]
    for name in ("Transform", "Pipeline", "PipelineResult", "load_plugin", "profile"):
        parts.append(section(name, getattr(stoker, name)))
    parts.append("## stoker.errors\n\n" + prose(inspect.getdoc(stoker.errors)) + "\n")
    names = sorted(stoker.errors.__all__, key=lambda name: (name != "StokerError", name))
    parts += [section(name, getattr(stoker.errors, name)) for name in names]
    return "\n".join(parts)


def main():
    text = page()
    if "--check" not in sys.argv:
        PAGE.write_text(text)
        return 0
    current = PAGE.exists() and PAGE.read_text() == text
    if not current:
        print(f"{PAGE.name} is not up to date: run python/make_api_page.py", file=sys.stderr)
    return 0 if current else 1


if __name__ == "__main__":
    sys.exit(main())
