"""Names of data types, and the formats of samesum."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

FORMATS = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
"""Names of data types, and the formats of samesum."""
DTYPES = {format: dtype for dtype, format in FORMATS.items()}
INTEGERS = {"bool"} | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}

UNSIGNED = ("uint16", "uint32", "uint64")
"""Data types that PyTorch neither compares, nor selects or indexes everywhere."""


def dtype_name(dtype: Any) -> str:
    """Returns the name of a data type of any library: "float32", "int64"."""
    if isinstance(dtype, str):
        return DTYPES.get(dtype) or _numpys_name(dtype)
    if dtype is float:
        return "float64"
    if dtype is int:
        return "int64"
    if dtype is bool:
        return "bool"
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(dtype, numpy.dtype):
        return _name_in_numpy(dtype)
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or without_address(dtype, str(dtype))
    return name.rpartition(".")[2]


def without_address(value: Any, text: str) -> str:
    """Returns the text that stands for a value in a message: that of its type if it has an address in memory."""
    return f"of type {type(value).__name__}" if " at 0x" in text else text


@lru_cache(maxsize=256)  # NumPy composes the name anew, in 3 µs
def _name_in_numpy(dtype: Any) -> str:
    return str(dtype.name)


def _numpys_name(dtype: str) -> str:
    """Returns the name that NumPy, if it is in use, has for a type such as "f8"."""
    numpy = sys.modules.get("numpy")
    if dtype in FORMATS or numpy is None:
        return dtype
    try:
        return str(numpy.dtype(dtype).name)
    except (TypeError, ValueError):
        return dtype


def format_of(dtype: Any, argument: str = "x") -> str:
    """Returns the format of samesum for a data type, or "int" for integers and booleans.

    Raises TypeError for every other data type; the message names `argument`.
    """
    name = dtype_name(dtype)
    if name in FORMATS:
        return FORMATS[name]
    if name in INTEGERS:
        return "int"
    is_type = argument in ("dtype", "input")
    if name.startswith(("str", "bytes", "Str")) and not is_type:
        raise texts_error(argument)
    has = "is" if is_type else "has elements of type"
    raise TypeError(
        f"samesum: {argument} {has} {name}; use float16, bfloat16, float32, float64, an integer "
        "type or bool"
    )


def method_format(dtype: Any, argument: str = "x") -> str:
    """Returns the format in which methods take elements of a data type: fp64 for integers. Raises as `format_of`."""
    format = format_of(dtype, argument)
    return "fp64" if format == "int" else format


def no_integers(operation: str, selects: bool) -> ValueError:
    """Returns the error for an extremum of no integers, which have no number for it as floats have infinity."""
    remedy = "`where`, masks and nulls must leave at least one" if selects else "pass at least one element"
    error = ValueError(f"samesum: {operation} of no integers has no value; {remedy}")
    error.is_of_no_integers = True  # type: ignore[attr-defined]
    return error


def texts_error(argument: str) -> TypeError:
    """Returns the error for elements that are texts."""
    if argument.startswith("column "):
        return TypeError(f"samesum: {argument} has texts, not numbers; choose columns of numbers")
    return TypeError(
        f"samesum: {argument} has texts, not numbers; convert them first, for example by "
        f"numpy.asarray({argument}, float)"
    )
