"""Files and rooms of the package lie in layers: each imports only what is below it, also inside functions."""

from __future__ import annotations

import ast
import pathlib

import import_circles
import pytest

PACKAGE = pathlib.Path(__file__).parents[2] / "lib/python/samesum"


def test_no_file_of_the_package_imports_one_that_imports_it():
    assert len(import_circles.modules_in(PACKAGE, "samesum")) > 20
    assert import_circles.circle_in(PACKAGE, "samesum") == []


def test_no_room_of_the_package_imports_one_that_imports_it():
    assert import_circles.circle_of_rooms_in(PACKAGE, "samesum") == []


def test_a_circle_of_rooms_whose_files_form_none_is_found(tmp_path):
    files = {
        "__init__": "from .upper import f", "upper": "from .a.first import f",
        "a/__init__": "", "a/first": "from ..b.first import f", "a/second": "",
        "b/__init__": "", "b/first": "", "b/second": "def f():\n    from ..a import second",
    }  # fmt: skip
    for name, text in files.items():
        file = tmp_path / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert import_circles.circle_in(tmp_path, "package") == []
    assert sorted({*import_circles.circle_of_rooms_in(tmp_path, "package")}) == ["a", "b"]


def room_fault(text: str) -> str:
    """Returns what is wrong with the first file of a room; "" if nothing is."""
    tree = ast.parse(text)
    if ast.get_docstring(tree) is None:
        return "has no docstring"
    if len(tree.body) > 1:
        return "has more than a docstring"
    return "" if len(ast.get_docstring(tree).splitlines()) == 3 else "has a docstring of other than three lines"


def test_each_room_says_in_three_lines_what_happens_there_and_who_calls_it():
    rooms = [*PACKAGE.glob("_*/__init__.py")]
    assert len(rooms) > 8
    assert {r.parent.name: room_fault(r.read_text()) for r in rooms} == {r.parent.name: "" for r in rooms}
    assert [room_fault(text) for text in ('"""One."""', "import a", '"""One.\n\nTwo.\n"""\nimport a')] == [
        "has a docstring of other than three lines", "has no docstring", "has more than a docstring",
    ]  # fmt: skip


def test_a_file_of_the_package_has_at_most_400_lines():
    lengths = {str(file.relative_to(PACKAGE)): len(file.read_text().splitlines()) for file in PACKAGE.rglob("*.py")}
    assert {name: n for name, n in lengths.items() if n > 400} == {}


@pytest.mark.parametrize(
    ("upper", "lower"),
    [
        ("from . import lower", "from . import upper"),
        ("from .lower import f", "def f():\n    from .upper import g"),
        ("import package.lower", "def f():\n    import package.upper"),
        ("from package.lower import f", "class C:\n    def f(self):\n        from package import upper"),
        ("from . import lower", "import importlib\nimportlib.import_module('package.upper')"),
        ("from .inner import f", "from .inner import g\nfrom .upper import h"),
        ("", "from . import f"),  # of __init__
        ("from .inner.part import f", ""),  # of inner/__init__, which is executed first
    ],
)
def test_circles_are_found(tmp_path, upper, lower):
    (tmp_path / "inner").mkdir()
    files = {
        "__init__": "from .lower import f",
        "upper": upper,
        "lower": lower,
        "inner/__init__": "from .. import upper",
    }
    for name, text in {**files, "inner/part": ""}.items():
        (tmp_path / f"{name}.py").write_text(text)
    assert import_circles.circle_in(tmp_path, "package")


def test_compiled_modules_make_no_circle(tmp_path):
    (tmp_path / "__init__.py").write_text("from .lower import f")
    (tmp_path / "lower.py").write_text("from . import _compiled\nimport os.path")
    assert import_circles.circle_in(tmp_path, "package") == []
