"""Reads columns and tables by the Arrow C data interface (`__arrow_c_array__`, `__arrow_c_stream__`).

Numbers stay where they are: the arrays returned keep the memory of the producer alive, and are read-only. Only booleans
and the bits that tell which elements are null are unpacked. https://arrow.apache.org/docs/format/CDataInterface.html
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from .._elements.formats import texts_error
from .._elements.library import library
from .kinds import Pair

TYPES = {
    "b": "bool", "c": "int8", "C": "uint8", "s": "int16", "S": "uint16", "i": "int32", "I": "uint32", "l": "int64",
    "L": "uint64", "e": "float16", "f": "float32", "g": "float64",
}  # fmt: skip
"""Data types by their format strings in Arrow."""
_OTHERS = {"d": "decimal numbers", "t": "dates or times", "z": "bytes", "Z": "bytes", "w": "bytes", "v": "bytes"}
_TEXTS = ("u", "U", "vu")


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("get_schema", "get_next", "get_last_error", "release", "data")]


_Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.c_void_p), ("release", ctypes.c_void_p), ("data", ctypes.c_void_p),
]  # fmt: skip
_Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))), ("dictionary", ctypes.c_void_p),
    ("release", ctypes.c_void_p), ("data", ctypes.c_void_p),
]  # fmt: skip

_release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_get = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_last_error = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class _Owner:
    """A structure that this module has received, and releases with the last array of its memory."""

    def __init__(self, kind: Any) -> None:
        self.held = kind()

    @property
    def address(self) -> int:
        return ctypes.addressof(self.held)

    def __del__(self) -> None:
        if self.held.release:
            _release(self.held.release)(self.address)


class _Memory:
    """Memory that NumPy reads in place, and what keeps it alive."""

    def __init__(self, address: int, n: int, dtype: Any, owner: Any) -> None:
        self.owner = owner
        self.__array_interface__ = {"data": (address, True), "shape": (n,), "typestr": dtype.str, "version": 3}


class Read(NamedTuple):
    """Columns in chunks. A column that is no part of a table has the name None."""

    names: list[str | None]
    columns: list[list[Pair]]

    @property
    def is_table(self) -> bool:
        return self.names != [None]


def read(x: Any, argument: str = "x") -> Read:
    """Returns the columns of an object with `__arrow_c_array__` or `__arrow_c_stream__`.

    Raises TypeError, which names the argument, for elements that are no numbers.
    """
    if hasattr(x, "__arrow_c_array__"):
        schema, array = x.__arrow_c_array__()
        structure = _Array.from_address(_pointer(array, b"arrow_array"))
        return _columns(_Schema.from_address(_pointer(schema, b"arrow_schema")), [(structure, array)], argument)
    capsule = x.__arrow_c_stream__()
    address = _pointer(capsule, b"arrow_array_stream")
    stream = _Stream.from_address(address)

    def received(kind: Any, get: int) -> _Owner:
        owner = _Owner(kind)
        code = _get(get)(address, owner.address)
        if code:
            text = _last_error(stream.get_last_error)(address) or b""
            raise OSError(code, f"samesum: {argument} could not be read: {text.decode(errors='replace')}")
        return owner

    schema = received(_Schema, stream.get_schema)
    chunks = []
    while (owner := received(_Array, stream.get_next)).held.release:  # null at the end
        chunks.append((owner.held, owner))
    return _columns(schema.held, chunks, argument)


def _columns(schema: Any, chunks: list[tuple[Any, Any]], argument: str) -> Read:
    """Returns the columns of arrays, each with what owns its memory."""
    if schema.format != b"+s":
        return Read([None], [[_pair(schema, a, owner, 0, a.length, argument) for a, owner in chunks]])
    names: list[str | None] = []
    columns = []
    for i in range(schema.n_children):
        child = schema.children[i].contents
        name = (child.name or b"").decode()
        names.append(name)
        columns.append([_child(schema, a, owner, i, f"column {name!r} of {argument}") for a, owner in chunks])
    return Read(names, columns)


def _child(schema: Any, a: Any, owner: Any, i: int, argument: str) -> Pair:
    """Returns a column of a table, in which the rows of the table that are null are null too."""
    child = schema.children[i].contents
    values, valid = _pair(child, a.children[i].contents, owner, a.offset, a.length, argument)
    rows = _valid(a, owner, a.offset, a.length)
    return Pair(values, valid if rows is None else rows if valid is None else valid & rows)


def _pair(schema: Any, a: Any, owner: Any, start: int, n: int, argument: str) -> Pair:
    """Returns the n elements from `start` on."""
    np, format, first = library("numpy").np, schema.format.decode(), a.offset + start
    if format == "n":  # nulls of no type
        return Pair(np.zeros(n), np.zeros(n, bool))
    if schema.dictionary:
        raise TypeError(f"samesum: {argument} is dictionary-encoded; decode it first, or pass its codes")
    if format in _TEXTS:
        raise texts_error(argument)
    if format not in TYPES:
        what = _OTHERS.get(format[:1], "values") if format[:1] != "+" else "lists or records"
        raise TypeError(f"samesum: {argument} has {what} of Arrow's type {format!r}; cast them to float64 or int64")
    dtype = np.dtype(TYPES[format])
    valid = _valid(a, owner, first, n)
    if n == 0:
        return Pair(np.empty(0, dtype), valid)
    if format == "b":
        return Pair(_bits(a.buffers[1], first, n, owner), valid)
    memory = _Memory(a.buffers[1] + first * dtype.itemsize, n, dtype, owner)
    return Pair(np.asarray(memory), valid)


def _valid(a: Any, owner: Any, first: int, n: int) -> Any:
    if a.null_count == 0 or n == 0 or not a.n_buffers or not a.buffers[0]:
        return None
    valid = _bits(a.buffers[0], first, n, owner)
    return None if valid.all() else valid


def _bits(address: int, first: int, n: int, owner: Any) -> Any:
    """Returns n bits as booleans, from bit `first` on."""
    np = library("numpy").np
    skipped = first % 8
    size = (skipped + n + 7) // 8
    packed = np.asarray(_Memory(address + first // 8, size, np.dtype("uint8"), owner))
    return np.unpackbits(packed, count=skipped + n, bitorder="little")[skipped:].view(bool)
