"""The files of the package lie in layers: each imports only files below it, also inside functions."""

from __future__ import annotations

import pathlib

import import_circles
import pytest

PACKAGE = pathlib.Path(__file__).parents[2] / "lib/python/samesum"


def test_no_file_of_the_package_imports_one_that_imports_it():
    assert len(import_circles.modules_in(PACKAGE, "samesum")) > 20
    assert import_circles.circle_in(PACKAGE, "samesum") == []


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
