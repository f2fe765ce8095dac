"""The Python files have lines of at most 120 characters, and import nothing that they do not use."""

from __future__ import annotations

import ast
import pathlib

ROOT = pathlib.Path(__file__).parents[2]
FILES = [
    *ROOT.glob("lib/**/*.py"), *ROOT.glob("tests/*.py"), *ROOT.glob("tests/python/*.py"),
    *ROOT.glob("tests/interface/*.py"),
]  # fmt: skip


def unused_imports(text: str) -> set[str]:
    """Returns the names that a file imports but does not use, except those on lines with noqa."""
    lines, tree = text.splitlines(), ast.parse(text)
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    kept = [node for node in imports if "noqa: F401" not in lines[node.lineno - 1]]
    names = {(a.asname or a.name.partition(".")[0]) for node in kept for a in node.names} - {"annotations", "*"}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {name for name in names if name not in used | texts}


def test_lines_are_at_most_120_characters_wide() -> None:
    wide = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in FILES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > 120
    ]
    assert len(FILES) > 80 and wide == []


def test_every_import_is_used() -> None:
    assert unused_imports("import a, b.c\nfrom d import e as f, g\nimport h  # noqa: F401\nb.c(f)\n") == {"a", "g"}
    unused = {path.relative_to(ROOT): unused_imports(path.read_text()) for path in FILES if path.name != "__init__.py"}
    assert {str(path): names for path, names in unused.items() if names} == {}
