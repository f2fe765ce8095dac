"""Which objects are columns and frames, by their types, and what a column is read as."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from .._elements.library import library_of


class Kind(NamedTuple):
    """How a type is read, the package in which its results are made, its methods that drop and that fill nulls, and
    whether it has columns."""

    name: str
    package: str
    drop: str
    fill: str
    is_frame: bool = False


_PANDAS, _POLARS, _ARROW = ("dropna", "fillna"), ("drop_nulls", "fill_null"), ("drop_null", "fill_null")
_TYPES: tuple[tuple[str, tuple[str, ...], Kind | None], ...] = (
    ("pandas", ("DataFrame",), Kind("frame", "pandas", *_PANDAS, True)),
    ("pandas", ("Series", "Index"), Kind("pandas", "pandas", *_PANDAS)),
    ("pandas.api.extensions", ("ExtensionArray",), Kind("pandas", "pandas", *_PANDAS)),
    ("polars", ("DataFrame",), Kind("frame", "polars", *_POLARS, True)),
    ("polars", ("LazyFrame",), Kind("lazy", "polars", *_POLARS, True)),
    ("polars", ("Series",), Kind("arrow", "polars", *_POLARS)),
    ("pyarrow", ("Table", "RecordBatch"), Kind("arrow", "pyarrow", *_ARROW, True)),
    ("pyarrow", ("Array", "ChunkedArray"), Kind("arrow", "pyarrow", *_ARROW)),
    ("xarray", ("DataArray", "Dataset"), None),  # which Arrow would see as tables with columns of coordinates
    ("dask.dataframe", ("DataFrame", "Series", "Index"), Kind("dask", "pandas", *_PANDAS)),
)
"""Types by the module that has them. An object of a module that the caller has not imported does not come here."""
OTHER = Kind("arrow", "", *_ARROW)
_kinds: dict[type, Kind | None] = {}


def kind_of(x: Any) -> Kind | None:
    """Returns how x is read if it is a column or a frame; else None."""
    if library_of(x).name != "numpy":  # so that torch.compile sees nothing of what follows
        return None
    kind = type(x)
    if kind not in _kinds:
        _kinds[kind] = _kind_of_type(kind)
    return _kinds[kind]


def _kind_of_type(kind: type) -> Kind | None:
    for module, names, found in _TYPES:
        types = [getattr(sys.modules.get(module), name, None) for name in names]
        if any(isinstance(each, type) and issubclass(kind, each) for each in types):
            return found
    return OTHER if has_arrow(kind) and not hasattr(kind, "__cuda_array_interface__") else None


def has_arrow(kind: type) -> bool:
    """Whether objects of a type have one of Arrow's protocols."""
    return hasattr(kind, "__arrow_c_array__") or hasattr(kind, "__arrow_c_stream__")


def refuse_frame(function: str, x: Any) -> None:
    """Raises TypeError if x is known to be a frame, or is not in memory."""
    kind = kind_of(x)
    if kind is not None and (kind.is_frame or kind.name == "dask"):
        raise frame_error(function, x)


def frame_error(function: str, x: Any) -> TypeError:
    name, package, *_ = kind_of(x) or OTHER
    what, remedy = "a frame", "one of its columns"
    if name == "dask":
        what = f"a {type(x).__name__} of Dask"
        remedy = "x.compute()" + (", or one of its columns" if x.ndim > 1 else "")
    elif name == "lazy":
        what, remedy = "a lazy query", "a column of x.collect()"
    elif name == "frame":
        remedy += ", or x.to_numpy() and an axis, such as axis=0"
    return TypeError(f"samesum: {function}: x is {what}; pass {remedy}")


class Pair(NamedTuple):
    """The elements of a column, and which of them are there: a boolean array, or None for all."""

    values: Any
    valid: Any
