"""Columns and frames of pandas, polars, pyarrow and all that have Arrow's protocols: their elements, and reductions.

A column is read as the pair of its elements and the mask of those that are there (`values_and_mask`), without a copy.
Nulls are missing values: reductions leave them out. NaN is a number. No library is imported for this but NumPy.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, NamedTuple, Sequence

from . import _arrow
from ._arrow import Pair
from ._formats import format_of
from ._layout import normalised_axes
from ._library import library


class _Kind(NamedTuple):
    """How a type is read, the package in which its results are made, and how its nulls are dropped or filled."""

    name: str
    package: str
    remedy: str


_PANDAS, _POLARS = "{0}.dropna(), or {0}.fillna(0)", "{0}.drop_nulls(), or {0}.fill_null(0)"
_ARROW = "{0}.drop_null(), or {0}.fill_null(0)"
_TYPES: tuple[tuple[str, tuple[str, ...], _Kind | None], ...] = (
    ("pandas", ("DataFrame",), _Kind("frame", "pandas", _PANDAS)),
    ("pandas", ("Series", "Index"), _Kind("pandas", "pandas", _PANDAS)),
    ("pandas.api.extensions", ("ExtensionArray",), _Kind("pandas", "pandas", _PANDAS)),
    ("polars", ("DataFrame",), _Kind("frame", "polars", _POLARS)),
    ("polars", ("LazyFrame",), _Kind("lazy", "polars", _POLARS)),
    ("polars", ("Series",), _Kind("arrow", "polars", _POLARS)),
    ("pyarrow", ("Table", "RecordBatch", "Array", "ChunkedArray"), _Kind("arrow", "pyarrow", _ARROW)),
    ("xarray", ("DataArray", "Dataset"), None),  # which Arrow would see as tables with columns of coordinates
    ("dask.dataframe", ("DataFrame", "Series", "Index"), _Kind("dask", "pandas", _PANDAS)),
)
"""Types by the module that has them. An object of a module that the caller has not imported does not come here."""
_OTHER = _Kind("arrow", "", _ARROW)
_kinds: dict[type, _Kind | None] = {}


def kind_of(x: Any) -> _Kind | None:
    """Returns how x is read if it is a column or a frame; else None."""
    kind = type(x)
    if kind not in _kinds:
        _kinds[kind] = _kind_of_type(kind)
    return _kinds[kind]


def _kind_of_type(kind: type) -> _Kind | None:
    for module, names, found in _TYPES:
        types = [getattr(sys.modules.get(module), name, None) for name in names]
        if any(isinstance(each, type) and issubclass(kind, each) for each in types):
            return found
    return _OTHER if has_arrow(kind) and not hasattr(kind, "__cuda_array_interface__") else None


def has_arrow(kind: type) -> bool:
    """Whether objects of a type have one of Arrow's protocols."""
    return hasattr(kind, "__arrow_c_array__") or hasattr(kind, "__arrow_c_stream__")


# --- reading --------------------------------------------------------------------------------------------------


class Table(NamedTuple):
    """The columns of a frame and their names."""

    names: list[Any]
    columns: list[Pair]

    def matrix(self) -> Pair:
        """Returns the elements in a common type, with a row for each of the frame's."""
        np = library("numpy").np
        values = [column.values for column in self.columns]
        if not values:
            return Pair(np.empty((0, 0)), None)
        common = np.result_type(*values)
        if common.kind == "f" and all(v.dtype.kind in "iub" for v in values):
            common = np.dtype(object)  # no type of 64 bits holds the integers of all columns
        valid = None
        if any(column.valid is not None for column in self.columns):
            valid = np.stack([_all_or(column) for column in self.columns], 1)
        return Pair(np.array([v.astype(common, copy=False) for v in values]).T, valid)


def _all_or(column: Pair) -> Any:
    return library("numpy").np.ones(len(column.values), bool) if column.valid is None else column.valid


def read(x: Any, argument: str = "x") -> Pair | Table:
    """Returns a column or a frame. Numbers in one chunk are read in place; several chunks are joined by a copy."""
    name, package, _ = kind_of(x) or _OTHER
    if name == "lazy":
        raise TypeError(f"samesum: {argument} is a lazy query; pass {argument}.collect()")
    if name == "dask":
        return read(x.compute(), argument)
    if name == "frame":
        named = x.items() if package == "pandas" else [(column.name, column) for column in x.get_columns()]
        columns = [(each, values_and_mask(column, f"column {each!r} of {argument}")) for each, column in named]
        return Table([each for each, _ in columns], [column for _, column in columns])
    if name == "pandas":
        return _of_pandas(x, argument)
    found = _arrow.read(x, argument)
    joined = [_joined(chunks) for chunks in found.columns]
    return Table(found.names, joined) if found.is_table else joined[0]


def values_and_mask(x: Any, argument: str = "x") -> Pair:
    """Returns the elements of a column, and which of them are there: a boolean array, or None for all."""
    found = read(x, argument)
    if isinstance(found, Table):
        raise TypeError(f"samesum: {argument} is a table; choose one of its columns")
    return found


def _of_pandas(x: Any, argument: str) -> Pair:
    np, elements = library("numpy").np, getattr(x, "array", x)
    if isinstance(x.dtype, sys.modules["pandas"].ArrowDtype):
        return values_and_mask(elements.__arrow_array__(), argument)
    values, missing = (getattr(elements, name, None) for name in ("_data", "_mask"))
    if isinstance(values, np.ndarray) and isinstance(missing, np.ndarray):  # Float64, Int64, boolean
        return Pair(values, ~missing if missing.any() else None)
    values = np.asarray(x)
    if values.dtype.kind not in "iufb":
        values = library("numpy").array(values, argument, wide=True)
    if not values.dtype.hasobject:
        format_of(values.dtype, argument)  # raises for what has no numbers
    return Pair(values, None)


def _joined(chunks: list[Pair]) -> Pair:
    np = library("numpy").np
    if len(chunks) == 1:
        return chunks[0]
    if not chunks:
        return Pair(np.empty(0), None)
    has_nulls = any(chunk.valid is not None for chunk in chunks)
    return Pair(
        np.concatenate([chunk.values for chunk in chunks]),
        np.concatenate([_all_or(chunk) for chunk in chunks]) if has_nulls else None,
    )


def without_nulls(x: Any, argument: str) -> Any:
    """Returns a column as a vector, or a frame as a matrix. Raises ValueError if it has nulls."""
    return _whole(x, read(x, argument), argument)


def _whole(x: Any, found: Pair | Table, argument: str) -> Any:
    values, valid = found.matrix() if isinstance(found, Table) else found
    if valid is not None:
        raise _nulls_error(x, argument, valid)
    return values


def present(x: Any, argument: str = "x") -> Any:
    """Returns the elements of a column or a frame that are no nulls; x itself if it is neither."""
    if kind_of(x) is None:
        return x
    found = read(x, argument)
    values, valid = found.matrix() if isinstance(found, Table) else found
    return values if valid is None else values[valid]


def _nulls_error(x: Any, argument: str, valid: Any) -> ValueError:
    count = valid.size - int(valid.sum())
    return ValueError(
        f"samesum: {argument} has {count} null{'s' * (count != 1)}, which this call cannot leave out; pass "
        + (kind_of(x) or _OTHER).remedy.format(argument)
    )


# --- reductions -----------------------------------------------------------------------------------------------

Reduce = Callable[..., Any]
_PER_ELEMENT = ("softmax", "log_softmax")


def reduce_frames(reduce: Reduce, operation: str, x: Any, y: Any, options: dict[str, Any]) -> Any:
    """Makes a call of which x or y is a column or a frame, by `reduce` for arrays."""
    if y is not None:
        return _reduce_pair(reduce, operation, x, y, options)
    if (kind_of(x) or _OTHER).name == "dask":
        x = x.compute()
    wide = _wide_matrix(x)
    found = Table([], []) if wide is not None else read(x)
    if isinstance(found, Pair):
        return _reduce_column(reduce, operation, x, found, options)
    if operation in _PER_ELEMENT:
        return reduce(operation, _whole(x, found, "x") if wide is None else wide, **options)
    axes = (0,) if options.get("axis") is None else normalised_axes(options["axis"], 2, "a frame")
    given = {"out": options.get("out") is not None, "keepdims": options.get("keepdims")}
    for name in (name for name, is_given in given.items() if is_given):
        raise TypeError(f"samesum: {name} does not go with a frame, whose results have names; leave it out")
    if wide is not None and axes:
        results = reduce(operation, wide, **{**options, "axis": axes})
        return results if len(axes) == 2 else sys.modules["pandas"].Series(results, index=x.axes[1 - axes[0]])
    options = {**options, "axis": None}
    if axes == (0,):
        results = [_reduce_column(reduce, operation, x, column, options) for column in found.columns]
        return _named(x, found.names, results)
    values, valid = found.matrix()
    if axes == (1,):
        return _as_column(x, _reduce_rows(reduce, operation, values, valid, options))
    if axes == (0, 1):
        return reduce(operation, values if valid is None else values[valid], **options)
    raise ValueError("samesum: axis is (); a frame is reduced over rows (0, the default), columns (1) or both (0, 1)")


def _wide_matrix(x: Any) -> Any:
    """Returns a frame of pandas with many columns of one type of NumPy, which are faster together, as a matrix."""
    kind = kind_of(x)
    if kind is None or kind.name != "frame" or kind.package != "pandas" or x.shape[1] < 32:
        return None
    dtype = x.dtypes.iloc[0]
    is_numpys = isinstance(dtype, library("numpy").np.dtype) and dtype.kind in "iubf"
    return x.to_numpy() if is_numpys and (x.dtypes == dtype).all() else None


def _reduce_column(reduce: Reduce, operation: str, x: Any, column: Pair, options: dict[str, Any]) -> Any:
    """Reduces the elements that are there."""
    values, valid = column
    if valid is None:
        return reduce(operation, values, **options)
    if operation in _PER_ELEMENT or not normalised_axes(options.get("axis"), 1):
        raise _nulls_error(x, "x", valid)
    result = reduce(operation, values[valid], **options)
    if not operation.startswith("arg") or not valid.any():
        return result
    places = library("numpy").np.flatnonzero(valid)[result]  # an index counts the nulls too
    if options.get("out") is None:
        return places
    result[...] = places
    return result


def _reduce_rows(reduce: Reduce, operation: str, values: Any, valid: Any, options: dict[str, Any]) -> Any:
    """Reduces each row; rows with the same places of nulls together."""
    options = {**options, "axis": 1}
    if valid is None:
        return reduce(operation, values, **options)
    np = library("numpy").np
    patterns, rows = np.unique(valid, axis=0, return_inverse=True)
    results = None
    for i, pattern in enumerate(patterns):
        columns, here = np.flatnonzero(pattern), rows.reshape(-1) == i
        found = reduce(operation, values[here][:, columns], **options)
        if operation.startswith("arg") and len(columns):
            found = columns[found]
        if results is None:
            results = np.empty(len(values), found.dtype)
        results[here] = found
    return results


def _reduce_pair(reduce: Reduce, operation: str, x: Any, y: Any, options: dict[str, Any]) -> Any:
    """Reduces two inputs; of two columns the pairs without a null."""
    a, b = _one_of_two(x, "x"), _one_of_two(y, "y")
    masks = [column.valid for column in (a, b) if column.valid is not None]
    if not masks:
        return reduce(operation, a.values, b.values, **options)
    np = library("numpy").np
    if np.shape(a.values) != np.shape(b.values):
        raise ValueError(
            f"samesum: x has shape {np.shape(a.values)} and y {np.shape(b.values)}; pass columns of one length, since "
            "one has nulls"
        )
    both = masks[0] & masks[-1]
    return reduce(operation, np.asarray(a.values)[both], np.asarray(b.values)[both], **options)


def _one_of_two(x: Any, argument: str) -> Pair:
    if kind_of(x) is None:
        return Pair(x, None)
    found = read(x, argument)
    return found if isinstance(found, Pair) else Pair(_whole(x, found, argument), None)


# --- results --------------------------------------------------------------------------------------------------


def as_one_array(results: Sequence[Any]) -> Any:
    """Returns results as one array: in their common type if that holds all of them, else as objects."""
    np = library("numpy").np
    together = np.array(results) if results else np.empty(0)
    if len({r.dtype for r in results}) > 1 and any(
        r.dtype.kind in "iu" and int(r) != int(t) for r, t in zip(results, together)
    ):
        together = np.array([r.item() for r in results], object)
    return together


def _named(x: Any, names: list[Any], results: list[Any]) -> Any:
    """Returns the results of columns: a Series of pandas, a frame of one row, or a dict."""
    package = (kind_of(x) or _OTHER).package
    if package == "pandas":
        return sys.modules["pandas"].Series(as_one_array(results), index=x.columns)
    rows = [library("numpy").np.reshape(result, 1) for result in results]
    if package == "polars":
        return type(x)([sys.modules["polars"].Series(name, row) for name, row in zip(names, rows)])
    if package == "pyarrow":
        pyarrow = sys.modules["pyarrow"]
        kind = pyarrow.RecordBatch if isinstance(x, pyarrow.RecordBatch) else pyarrow.Table
        return kind.from_arrays([pyarrow.array(row) for row in rows], names=names)
    return dict(zip(names, results))


def _as_column(x: Any, results: Any) -> Any:
    """Returns the results of rows as a column of the library of x."""
    package = (kind_of(x) or _OTHER).package
    if package == "pandas":
        return sys.modules["pandas"].Series(results, index=x.index)
    if package == "polars":
        return sys.modules["polars"].Series(results)
    return sys.modules["pyarrow"].array(results) if package == "pyarrow" else results
