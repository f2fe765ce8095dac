"""The imports between the Python files of a folder, and the circles among them."""

from __future__ import annotations

import ast
import graphlib
import pathlib
import symtable


def modules_in(folder: pathlib.Path, package: str = "") -> dict[str, pathlib.Path]:
    """Returns the files of a folder and its subfolders by the name under which they are imported, `package` first."""
    found = {}
    for file in sorted(folder.rglob("*.py")):
        parts = [*package.split("."), *file.relative_to(folder).with_suffix("").parts]
        found[".".join(part for part in parts if part and part != "__init__")] = file
    return found


def _packages_of(module: str) -> set[str]:
    parts = module.split(".")
    return {".".join(parts[:i]) for i in range(1, len(parts))}


def _names_of(file: pathlib.Path) -> set[str]:
    return set(symtable.symtable(file.read_text(), str(file), "exec").get_identifiers())


def imported_by(module: str, modules: dict[str, pathlib.Path]) -> set[str]:
    """Returns those of the modules that one of them imports, at its top or inside a function, by a name in its text.

    A module of another package stands for that package, too, whose __init__ is executed first.
    """
    is_package = modules[module].name == "__init__.py"
    found = set()
    for node in ast.walk(ast.parse(modules[module].read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                parts = parts[: len(parts) - node.level + is_package]
                base = ".".join([*parts, *([base] if base else [])])
            for alias in node.names:
                name = f"{base}.{alias.name}"
                # A name that the package does not have is that of a compiled module.
                if name in modules or base not in _packages_of(module) | {module} or base not in modules:
                    found.add(name if name in modules else base)
                elif alias.name in _names_of(modules[base]):
                    found.add(base)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
            found |= {a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)}
    executed = {package for name in found for package in _packages_of(name)} - _packages_of(module) - {module}
    return (found | executed) & modules.keys()


def _circle_of(graph: dict[str, set[str]]) -> list[str]:
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def circle_in(folder: pathlib.Path, package: str = "") -> list[str]:
    """Returns the modules of one circle, the first one also last; an empty list if there is none."""
    modules = modules_in(folder, package)
    return _circle_of({module: imported_by(module, modules) for module in modules})


def circle_of_rooms_in(folder: pathlib.Path, package: str) -> list[str]:
    """Returns the rooms of one circle, as `circle_in`. A room is what lies at one place of the folder, but for its
    __init__: a file, or a folder with all its files.
    """
    modules = modules_in(folder, package)

    def room_of(module: str) -> str:
        return module.removeprefix(f"{package}.").partition(".")[0]

    graph: dict[str, set[str]] = {}
    for module in modules.keys() - {package}:
        rooms = {room_of(name) for name in imported_by(module, modules) - {package}}
        graph.setdefault(room_of(module), set()).update(rooms - {room_of(module)})
    return _circle_of(graph)
