"""Docstrings are there, their examples run, the page made from them is current, stubs tell the
truth."""

import ast
import doctest
import importlib
import importlib.util
import inspect
import re
from pathlib import Path

import numpy
import pytest
import stoker
from shard_making import write_shards
from stoker import _core

torch = pytest.importorskip("torch")
pyarrow = pytest.importorskip("pyarrow")

ROOT = Path(__file__).resolve().parents[2]
MODULES = ["stoker", "stoker.dataset", "stoker.errors", "stoker.loader", "stoker._map_stage"]
MODULES += ["stoker.__main__", "stoker.series", "stoker.transforms", "stoker.pipeline"]
MODULES += ["stoker._chain"]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_docstrings_run(name, tmp_path, monkeypatch):
    import pyarrow.parquet

    write_shards(tmp_path / "data", 100)
    table = pyarrow.table(
        {"key": [f"{n:06d}" for n in range(100)], "label": [n % 10 for n in range(100)]}
    )
    pyarrow.parquet.write_table(table, tmp_path / "data" / "metadata.parquet")
    monkeypatch.chdir(tmp_path)
    ds = stoker.open("data/shard-*.tar")
    with stoker.Loader(ds, 32) as loader:
        names = {"stoker": stoker, "ds": ds, "loader": loader, "numpy": numpy}
        module = importlib.import_module(name)
        result = doctest.testmod(module, extraglobs=names)
    assert result.attempted > 0
    assert result.failed == 0


def public():
    for name in stoker.__all__:
        thing = getattr(stoker, name)
        yield name, thing
        if inspect.isclass(thing):
            for member, value in vars(thing).items():
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    yield f"{name}.{member}", value


@pytest.mark.parametrize(("name", "thing"), list(public()))
def test_everything_public_has_a_docstring(name, thing):
    assert inspect.getdoc(thing), name


FUNCTIONS = [stoker.open, stoker.Loader, stoker.Pipeline, stoker.pack_series, stoker.rescale]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_argument_is_described(function):
    words = inspect.getdoc(function)
    for name in inspect.signature(function).parameters:
        assert re.search(rf"^    (.*, )?{name}(, .*)?:", words, re.MULTILINE), name


def test_the_api_page_is_current():
    path = ROOT / "python" / "make_api_page.py"
    spec = importlib.util.spec_from_file_location("make_api_page", path)
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    assert maker.PAGE.read_text() == maker.page(), "run python/make_api_page.py"


def test_the_stubs_name_what_the_module_has():
    stubs = ast.parse((ROOT / "python" / "stoker" / "_core.pyi").read_text())
    for node in stubs.body:
        if isinstance(node, ast.FunctionDef):
            assert callable(getattr(_core, node.name))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            kind = getattr(_core, node.name)
            stubbed = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            real = {name for name in vars(kind) if not name.startswith("_")}
            assert {name for name in stubbed if not name.startswith("_")} == real
    names = {name for name in vars(_core) if not name.startswith("_")}
    stubbed = {node.name for node in stubs.body if hasattr(node, "name")}
    assert names == {name for name in stubbed if not name.startswith("_")}


def test_the_package_says_that_it_is_typed():
    assert (Path(stoker.__file__).parent / "py.typed").exists()
