"""Makes the modules for Fortran, samesum.f90 and samesum_mpi.f90, from samesum.h and samesum_mpi.h.

Usage: python3 lib/fortran.py [--check]. Writes the parts of the modules between lines that say so; with --check, only
compares them: the exit code is 1 if they differ. It reads what the headers declare, and their comments: an argument
that may be NULL is optional, and one in device memory is an address. A declaration that it does not know is an error.
"""

from __future__ import annotations

import itertools
import pathlib
import re
import sys
from typing import NamedTuple

FOLDER = pathlib.Path(__file__).parent / "samesum"
KINDS = {
    "size_t": "integer(c_size_t)", "uint64_t": "integer(c_int64_t)", "int64_t": "integer(c_int64_t)",
    "int32_t": "integer(c_int32_t)", "uint32_t": "integer(c_int32_t)", "uint8_t": "integer(c_int8_t)",
    "int": "integer(c_int)", "MPI_Fint": "integer(c_int)", "float": "real(c_float)", "double": "real(c_double)",
}  # fmt: skip
BYTES = {"size": 8, "int64": 8, "int32": 4, "double": 8, "ptr": 8, "funptr": 8}
OTHER_NAMES = {"samesum_segments": "samesum_of_segments"}
"""Constants with the names of functions, which in Fortran have other ones, since it ignores case."""

MADE = re.compile(r"( *! made from the header by lib/fortran[.]py {\n).*?( *! }\n)", re.S)
"""What the script writes, between lines of a module that say so."""


class Argument(NamedTuple):
    """An argument of a function of C."""

    name: str
    type: str
    stars: int
    is_const: bool
    is_list: bool
    """Whether it points to a list of pointers."""
    comment: str
    """What the header says about it."""

    @property
    def is_optional(self) -> bool:
        return "NULL" in self.comment or self.name == "message"

    @property
    def is_text(self) -> bool:
        return self.type == "char" and self.is_const and self.stars == 1


class Function(NamedTuple):
    """A function of C."""

    name: str
    result: str
    arguments: list[Argument]

    @property
    def has_message(self) -> bool:
        return any(a.name == "message" for a in self.arguments)


def comment_about(name: str, comment: str) -> str:
    """Returns what a comment says about an argument: its own paragraph, and where it names NULL."""
    text = " ".join(line[3:].strip() for line in comment.splitlines())
    paragraph = re.search(rf"@param {name} (.*?)(?=@param|@return|$)", text)
    return (paragraph[1] if paragraph else "") + ("NULL" if f"`{name}` is NULL" in text else "")


def functions_of(header: str) -> list[Function]:
    """Returns the exported functions of a header. A comment "- name: …" is about an argument of all functions of its
    section.
    """
    found = []
    pattern = r"((?:^///[^\n]*\n)*)^SAMESUM_API ([\w *]+?)\b(\w+)\(([^)]*)\);"
    for section in re.split(r"^// --- ", header, flags=re.M):
        shared = dict(re.findall(r"^// - (\w+): (.*(?:\n//   .*)*)", section, re.M))
        for comment, result, name, arguments in re.findall(pattern, section, re.M):
            parsed = []
            for argument in (a.strip() for a in re.sub(r"\s+", " ", arguments).split(",") if a != "void"):
                words = re.fullmatch(r"(const )?(\w+?)\b((?:[ *]|const\b)+)(\w+)", argument)
                is_const, kind, stars, of = words.groups()
                about = comment_about(of, comment) or shared.get(of, "")
                parsed.append(Argument(of, kind, stars.count("*"), bool(is_const), "const" in stars, about))
            found.append(Function(name, "pointer" if "*" in result else result.strip(), parsed))
    declared = re.findall(r"^SAMESUM_API [^(]*?(\w+)\(", header, re.M)
    assert [f.name for f in found] == declared, "fortran.py: it does not know how to read a declaration"
    return found


def wrapped(line: str, width: int = 118) -> str:
    """Returns a statement on lines that continue after a comma, or before bind."""
    continued = " " * (len(line) - len(line.lstrip()) + 2)
    text = ""
    while len(line) > width:
        at = line.rfind(" bind(", 0, width) if " bind(" in line[:width] else line.rfind(", ", 0, width) + 1
        text, line = text + line[:at] + " &\n", continued + line[at:].strip()
    return text + line + "\n"


def declarations(named: list[tuple[str, str]], indent: int) -> str:
    """Returns declarations of (type, name), those that follow each other with one type together."""
    return "".join(
        wrapped(" " * indent + f"{kind} :: {', '.join(name for _, name in group)}")
        for kind, group in itertools.groupby(named, lambda pair: pair[0])
    )


class Module:
    """A module for Fortran, and the header that it is made from."""

    def __init__(self, header: str, included: str = "") -> None:
        self.header, self.has_arrays = header, bool(included)
        whole = included + header
        self.structures = dict(
            (name, body) for body, name in re.findall(r"^typedef struct \w+ \{\n(.*?)^\} (\w+);", whole, re.M | re.S)
        )
        integers = re.findall(r"^typedef int32_t (\w+);", whole, re.M)
        pointers = re.findall(r"^typedef [\w *]+\(\*(\w+)\)\(", whole, re.M)
        self.kinds = KINDS | dict.fromkeys(integers, KINDS["int32_t"]) | dict.fromkeys(pointers, "type(c_funptr)")
        self.opaque = {"void", *re.findall(r"^typedef struct (\w+) \1;", whole, re.M)}

    def kind_of(self, name: str) -> str:
        if name in self.structures:
            return f"type({name})"
        if name not in self.kinds:
            raise ValueError(f"fortran.py: unknown type {name}; add it to KINDS")
        return self.kinds[name]

    def declared(self, a: Argument) -> tuple[str, str]:
        """Returns type and name of an argument of a function of C."""
        optional = ", optional" if a.is_optional else ""
        if a.type == "char":
            intent = "in" if a.is_const else "inout"
            return f"character(kind=c_char), intent({intent}){optional}", f"{a.name}(*)"
        if a.is_list:
            return "type(c_ptr), intent(in)", f"{a.name}(*)"
        if a.stars == 2:
            return f"type(c_ptr), intent(out){optional}", a.name
        if a.stars == 1 and (a.type in self.opaque or "device memory" in a.comment):
            return "type(c_ptr), value", a.name
        if a.stars == 0:
            return f"{self.kind_of(a.type)}, value", a.name
        is_array = self.has_arrays and a.type in KINDS
        is_written = a.type not in self.structures or a.comment.startswith("receives")
        intent = "in" if a.is_const else "out" if is_written and not is_array else "inout"
        return f"{self.kind_of(a.type)}, intent({intent}){optional}", a.name + ("(*)" if is_array else "")

    def interface(self, f: Function) -> str:
        """Returns the declaration of a function of C."""
        named = [self.declared(a) for a in f.arguments]
        answer = "" if f.result == "void" else "type(c_ptr)" if f.result == "pointer" else self.kind_of(f.result)
        used = {*re.findall(r"\((?:kind=)?([cs]\w+)\)", " ".join([*(kind for kind, _ in named), answer]))}
        what = "function" if answer else "subroutine"
        bound = f"bind(c, name='{f.name}')" if f.has_message else "bind(c)"
        name, names = private_name(f) if f.has_message else f.name, ", ".join(a.name for a in f.arguments)
        text = wrapped(f"    {what} {name}({names}) {bound}{' result(answer)' if answer else ''}")
        text += wrapped(f"      import :: {', '.join(sorted(used))}") + declarations(named, 6)
        return text + (f"      {answer} :: answer\n" if answer else "") + f"    end {what}\n"

    def interfaces(self, functions: list[Function]) -> str:
        return "  interface\n" + "\n".join(map(self.interface, functions)) + "  end interface\n"

    def caller(self, f: Function) -> str:
        """Returns the function of Fortran that calls one of C with a message."""
        name = re.sub("_f$", "", f.name)
        named, local, before, passed = [], [], [], []
        for a in f.arguments:
            kind, of = self.declared(a)
            actual = a.name
            if a.name == "message_bytes":
                passed.append("samesum_room(message)")
                continue
            if a.name == "message":
                kind, of = "character(len=*), intent(out), optional", "message"
            elif a.is_text:
                kind, of = f"character(len=*), intent(in){', optional' if a.is_optional else ''}", a.name
                actual = f"trim({a.name}) // c_null_char"
                if a.is_optional:  # a variable that is not allocated is no argument of C
                    local.append(("character(len=:), allocatable", f"{a.name}_of_c"))
                    before.append(f"    if (present({a.name})) {a.name}_of_c = {actual}\n")
                    actual = f"{a.name}_of_c"
            elif self.has_arrays and a.type == "uint8_t":
                kind, of = f"logical, intent(in){', optional' if a.is_optional else ''}", f"{a.name}(n)"
                actual = "flags"
                local.append(("integer(c_int8_t), allocatable", "flags(:)"))
                allocated = f"allocate (flags, source=merge(1_c_int8_t, 0_c_int8_t, {a.name}))"
                before.append(f"    if (present({a.name})) {allocated}\n")
            elif self.has_arrays and a.stars == 0:
                actual = f"int({a.name}, {re.search(r'[(](.*?)[)]', kind)[1]})"
                kind = "integer, intent(in)"
            elif self.has_arrays and a.is_const and a.type in KINDS:
                of = f"{a.name}(n, *)"
            named.append((kind.replace(", value", ", intent(in)"), of))
            passed.append(actual)
        arguments = [a.name for a in f.arguments if a.name != "message_bytes"]
        # The sizes of arrays are declared before them.
        named.sort(key=lambda pair: pair[0] != "integer, intent(in)") if self.has_arrays else None
        return (
            wrapped(f"  function {name}({', '.join(arguments)}) result(answer)") + declarations(named, 4)
            + "    integer(c_int32_t) :: answer\n" + declarations(local, 4) + "".join(before)
            + wrapped(f"    answer = {private_name(f)}({', '.join(passed)})")
            + "    call samesum_pad(message)\n  end function\n"
        )  # fmt: skip

    def constants(self) -> str:
        """Returns the constants of the header."""
        version = re.search(r"#define SAMESUM_ABI_VERSION (\d+)", self.header)[1]
        text = f"  integer(c_int), parameter :: samesum_abi = {version}  ! SAMESUM_ABI_VERSION\n"
        for values in re.findall(r"^enum \{\n(.*?)^\};", self.header, re.M | re.S):
            named = ((name.lower(), value) for name, value in re.findall(r"^ +(\w+) = (\d+)", values, re.M))
            given = ", ".join(f"{OTHER_NAMES.get(name, name)} = {value}" for name, value in named)
            text += wrapped(f"  integer(c_int32_t), parameter :: {given}")
        return text

    def fields(self, body: str) -> list[tuple[str, str, int]]:
        """Returns type, name and number of the fields of a structure."""
        found = []
        for statement in re.findall(r"([^;]+);", re.sub(r"///?<?.*", "", body)):
            kind, names = re.fullmatch(r"\s*(?:const )?(\w+\b(?: ?\*)?)\s*(.*)", statement, re.S).groups()
            for name in names.split(","):
                name, count = re.fullmatch(r"\s*(\w+)(?:\[(\d+)\])?", name).groups()
                of = "type(c_ptr)" if "*" in kind else self.kind_of(kind)
                found.append((of, name, int(count or 1)))
        return found

    def size_of(self, kind: str) -> tuple[int, int]:
        """Returns size and alignment of a type."""
        name = re.search(r"\((?:c_)?(\w+?)(?:_t)?\)", kind)[1]
        if name in BYTES:
            return BYTES[name], BYTES[name]
        size, alignment = 0, 1
        for of, _, count in self.fields(self.structures[re.search(r"\((\w+)\)", kind)[1]]):
            bytes_, aligned = self.size_of(of)
            size, alignment = -(-size // aligned) * aligned + count * bytes_, max(alignment, aligned)
        return -(-size // alignment) * alignment, alignment

    def types(self) -> str:
        """Returns the structures of the header, with the first sentence of their comments."""
        text = ""
        pattern = r"((?:^///[^\n]*\n)*)^typedef struct (\w+) \{"
        for comment, name in re.findall(pattern, self.header, re.M):
            sentence = re.match(r".*?[.](?= |$)", " ".join(line[3:].strip() for line in comment.splitlines()))
            named = []
            for kind, field, count in self.fields(self.structures[name]):
                default = {"type(c_ptr)": " = c_null_ptr", "type(c_funptr)": " = c_null_funptr"}.get(kind, " = 0")
                if field == "struct_size":
                    default = f" = {self.size_of(f'type({name})')[0]}"
                elif kind[5:-1] in self.structures:
                    default = ""
                named.append((kind, field + (f"({count})" if count > 1 else "") + default))
            text += f"  !> {sentence[0]}\n  type, bind(c) :: {name}\n{declarations(named, 4)}  end type\n"
        return text


def private_name(f: Function) -> str:
    """Returns the name of a function of C in the module, for which it has one with a shorter list of arguments."""
    return re.sub("_f$", "", f.name).replace("samesum_", "c_", 1)


def private(callers: list[Function]) -> str:
    return wrapped(f"  private :: {', '.join(map(private_name, callers))}")


def parts_of_samesum(header: str) -> list[str]:
    """Returns the parts of samesum.f90: what it declares, and the functions that call those with a message."""
    module, functions = Module(header), functions_of(header)
    callers = [f for f in functions if f.has_message]
    declared = [module.constants(), module.types(), module.interfaces(functions)]
    return [private(callers) + "\n" + "\n".join(declared), "\n".join(map(module.caller, callers))]


def parts_of_mpi(header: str, included: str) -> list[str]:
    """Returns the parts of samesum_mpi.f90, which has the functions for handles of Fortran."""
    module, functions = Module(header, included), [f for f in functions_of(header) if f.name.endswith("_f")]
    return [private(functions) + "\n" + module.interfaces(functions), "\n".join(map(module.caller, functions))]


def main() -> int:
    header, of_mpi = ((FOLDER / name).read_text() for name in ("samesum.h", "samesum_mpi.h"))
    parts = {"samesum.f90": parts_of_samesum(header), "samesum_mpi.f90": parts_of_mpi(of_mpi, header)}
    is_stale = False
    for name, made in parts.items():
        found = (FOLDER / name).read_text()
        left = iter(made)
        text = MADE.sub(lambda marks: marks[1] + next(left) + marks[2], found)
        if text == found:
            continue
        is_stale = True
        if sys.argv[1:] != ["--check"]:
            (FOLDER / name).write_text(text)
        else:
            print(f"lib/samesum/{name} differs from its header; run python3 lib/fortran.py, and commit the module")
    return int(is_stale and sys.argv[1:] == ["--check"])


if __name__ == "__main__":
    sys.exit(main())
