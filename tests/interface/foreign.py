"""The layouts and functions that other languages write down are those of the headers for C, and of the library.

Usage: foreign.py SOURCES FOLDER LIBRARY. Compares the structures in lib/samesum/samesum.f90 and in
lib/examples/from_python.py with lib/samesum/samesum.h, by programs in C and Fortran that print the place of each field.
Exits with 77 if there is no compiler for Fortran, after it has compared the rest. lib/fortran.py makes functions and
constants of the modules for Fortran.
"""

import ctypes
import pathlib
import re
import shutil
import subprocess
import sys


def header_without_comments(path):
    return re.sub(r"///?.*", "", path.read_text())


def structures(header):
    """The fields of each structure."""
    return {name: [re.sub(r"\[.*|^.*[ *]", "", field.strip()) for statement in body.split(";") if statement.strip()
                   for field in statement.split(",")]
            for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", header, re.S)}


def functions(header):
    """The names of the exported functions."""
    return re.findall(r"^SAMESUM_API [\w *]+[ *](\w+)\(", header, re.M)


def lines_of(program):
    return subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()


def run_c(folder, header, fields, library):
    """The lines "structure.field place bytes", and the size of each structure, which is that of the library."""
    lines = [f'printf("{s}.{f} %zu %zu\\n", offsetof({s}, {f}), sizeof (({s}*)0)->{f});'
             for s, all in fields.items() for f in all]
    lines += [
        f'printf("{s} %zu%s\\n", sizeof({s}), samesum_sizeof("{s}") == sizeof({s}) ? "" : ", not in samesum_sizeof");'
        for s in fields
    ]
    (folder / "layouts.c").write_text("\n".join(
        [f'#include "{header}"', "#include <stdio.h>", "int main(void) {", *lines, "}", ""]))
    subprocess.run(["cc", "-std=c11", folder / "layouts.c", library, f"-Wl,-rpath,{library.parent}", "-o",
                    folder / "layouts_in_c"], check=True)
    return lines_of(folder / "layouts_in_c")


def run_fortran(folder, module, fields, library):
    """The same, as the types of the module have it."""
    lines = ["program layouts", "use samesum", "implicit none"]
    lines += [f"type({s}), target :: {s}_" for s in fields]
    for s, all in fields.items():
        lines += [f"print '(a,2(1x,i0))', '{s}.{f}', place(c_loc({s}_%{f})) - place(c_loc({s}_)), c_sizeof({s}_%{f})"
                  for f in all]
    lines += [f"print '(a,1x,i0)', '{s}', c_sizeof({s}_)" for s in fields]
    lines += [f"if ({s}_%struct_size /= c_sizeof({s}_)) print '(a)', '{s}: struct_size is wrong'"
              for s, all in fields.items() if "struct_size" in all]
    lines += ["contains", "integer(c_intptr_t) function place(address)", "type(c_ptr), intent(in) :: address",
              "place = transfer(address, place)", "end function", "end program"]
    (folder / "layouts.f90").write_text("\n".join(lines) + "\n")
    subprocess.run(["gfortran", "-ffree-line-length-none", module, folder / "layouts.f90", library,
                    f"-Wl,-rpath,{library.parent}", f"-J{folder}", "-o", folder / "layouts_in_fortran"], check=True)
    return lines_of(folder / "layouts_in_fortran")


def layouts_in_python(example):
    """The same, as the classes of the example have it."""
    known = {}
    exec(example.read_text().replace('c.CDLL("libsamesum.so.0")', "None").split("def call(")[0], known)
    classes = {f"samesum_{name.lower()}": kind for name, kind in known.items()
               if isinstance(kind, type) and issubclass(kind, ctypes.Structure)}
    return [f"{name}.{field} {getattr(kind, field).offset} {getattr(kind, field).size}"
            for name, kind in classes.items() for field, *_ in kind._fields_] + [
            f"{name} {ctypes.sizeof(kind)}" for name, kind in classes.items()]


def main():
    sources, folder, library = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    header, module = sources / "lib/samesum/samesum.h", sources / "lib/samesum/samesum.f90"
    text = header_without_comments(header)
    fields, wrong = structures(text), []

    def same(what, ours, theirs):
        wrong.extend(f"{what}: {key} is {theirs.get(key, 'missing')}, but in the header {ours.get(key, 'missing')}"
                     for key in sorted(ours.keys() | theirs.keys()) if ours.get(key, "") != theirs.get(key, ""))

    def by_name(lines):
        return dict(line.split(" ", 1) for line in lines)

    in_c = by_name(run_c(folder, header, fields, library))
    in_python = by_name(layouts_in_python(sources / "lib/examples/from_python.py"))
    assert len(fields) > 5 and len(functions(text)) > 50 and len(in_python) > 30, "there is nothing to compare"
    structures_in_python = {name.split(".")[0] for name in in_python}
    same("from_python.py", {k: v for k, v in in_c.items() if k.split(".")[0] in structures_in_python}, in_python)
    same("tests/abi_symbols.txt", dict.fromkeys(functions(text), "there"),
         dict.fromkeys((sources / "tests/abi_symbols.txt").read_text().split(), "there"))
    has_fortran = shutil.which("gfortran")
    if has_fortran:
        same("samesum.f90", in_c, by_name(run_fortran(folder, module, fields, library)))
    else:
        print("Fortran's layouts: not tested: there is no gfortran")
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0 if has_fortran else 77)


main()
