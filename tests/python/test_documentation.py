"""The examples in docstrings and Markdown files print what they show."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import json
import pathlib
import pkgutil
import re

import pytest

import samesum

ROOT = pathlib.Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n?```text\n(.*?)^```\n)?", re.M | re.S)

MODULES = ["samesum", *(module.name for module in pkgutil.walk_packages(samesum.__path__, "samesum."))]


def snippets():
    for file in (ROOT / "README.md", *sorted(ROOT.glob("lib/python/*.md")), ROOT / "lib/guides/recipes.md"):
        text = file.read_text()
        for block in BLOCK.finditer(text):
            line = text.count("\n", 0, block.start()) + 1
            yield pytest.param(*block.groups(), id=f"{file.relative_to(ROOT)}:{line}")


def imported(name: str):
    """Imports a module of the package; skips the test if that needs a library that is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if (error.name or "samesum").startswith("samesum"):
            raise
        pytest.skip(f"{error.name} is not installed, or does not work")


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings(name):
    failed, _ = doctest.testmod(imported(name))
    assert not failed


@pytest.mark.parametrize(("code", "shown"), list(snippets()))
def test_a_snippet_prints_what_is_shown(code, shown):
    # Snippets assume these two imports.
    names = {"np": pytest.importorskip("numpy"), "samesum": samesum}
    for library in re.findall(r"^import ([\w.]+)", code, re.M):
        imported(library)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "snippet", "exec"), names)
    assert shown is None or printed.getvalue() == shown


def test_the_tutorial_prints_what_it_shows():
    pytest.importorskip("numpy")
    notebook = json.loads((ROOT / "lib/python/tutorial.ipynb").read_text())
    names, outputs = {}, 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
            assert printed.getvalue() == "".join(text for output in cell["outputs"] for text in output["text"])
            outputs += len(cell["outputs"])
    assert outputs > 10


def test_there_are_snippets():
    assert len(list(snippets())) > 5
