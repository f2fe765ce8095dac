"""Columns and frames of pandas, polars, pyarrow and all that have Arrow's protocols: their elements, and reductions.

A column is read as the pair of its elements and the mask of those that are there (`values_and_mask`), without a copy.
Nulls are missing values: reductions leave them out. NaN is a number. No library is imported for this but NumPy.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from typing import Any, Callable, NamedTuple, Sequence

from .._elements.carried import refuse_carried
from .._elements.formats import format_of
from .._elements.in_floats import in_floats
from .._elements.layout import normalised_axes
from .._elements.library import library, library_of
from . import arrow
from .arrow import Pair


class _Kind(NamedTuple):
    """How a type is read, the package in which its results are made, its methods that drop and that fill nulls, and
    whether it has columns."""

    name: str
    package: str
    drop: str
    fill: str
    is_frame: bool = False


_PANDAS, _POLARS, _ARROW = ("dropna", "fillna"), ("drop_nulls", "fill_null"), ("drop_null", "fill_null")
_TYPES: tuple[tuple[str, tuple[str, ...], _Kind | None], ...] = (
    ("pandas", ("DataFrame",), _Kind("frame", "pandas", *_PANDAS, True)),
    ("pandas", ("Series", "Index"), _Kind("pandas", "pandas", *_PANDAS)),
    ("pandas.api.extensions", ("ExtensionArray",), _Kind("pandas", "pandas", *_PANDAS)),
    ("polars", ("DataFrame",), _Kind("frame", "polars", *_POLARS, True)),
    ("polars", ("LazyFrame",), _Kind("lazy", "polars", *_POLARS, True)),
    ("polars", ("Series",), _Kind("arrow", "polars", *_POLARS)),
    ("pyarrow", ("Table", "RecordBatch"), _Kind("arrow", "pyarrow", *_ARROW, True)),
    ("pyarrow", ("Array", "ChunkedArray"), _Kind("arrow", "pyarrow", *_ARROW)),
    ("xarray", ("DataArray", "Dataset"), None),  # which Arrow would see as tables with columns of coordinates
    ("dask.dataframe", ("DataFrame", "Series", "Index"), _Kind("dask", "pandas", *_PANDAS)),
)
"""Types by the module that has them. An object of a module that the caller has not imported does not come here."""
_OTHER = _Kind("arrow", "", *_ARROW)
_kinds: dict[type, _Kind | None] = {}


def kind_of(x: Any) -> _Kind | None:
    """Returns how x is read if it is a column or a frame; else None."""
    if library_of(x).name != "numpy":  # so that torch.compile sees nothing of what follows
        return None
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


class Elements(NamedTuple):
    """The elements of an input, which of them are there (None: all), and the names of its columns, if it has any."""

    values: Any
    valid: Any = None
    names: list[Any] | None = None


class Table(NamedTuple):
    """The columns of a frame in chunks, and their names, which may be repeated."""

    names: list[Any]
    chunks: list[list[Pair]]
    rows: int = 0
    """Number of rows, which a table without columns may have."""

    def beside(self, names: list[Any], argument: str) -> Table:
        """Returns the columns in the order of these names of the columns of x, if they have the same names."""
        if self.names == names or {*self.names} != {*names} or len(self.names) != len(names):
            return self
        require_different(names, "x", f"and {argument} has them in another order; give them different names")
        return Table(names, [self.chunks[self.names.index(name)] for name in names])

    def matrix(self) -> Pair:
        """Returns the elements in a common type, with a row for each of the frame's."""
        np = library("numpy").np
        columns = [*map(_joined, self.chunks)]
        values = [column.values for column in columns]
        if not values:
            return Pair(np.empty((self.rows, 0)), None)
        common = np.result_type(*values)
        if common.kind == "f" and all(v.dtype.kind in "iub" for v in values):
            common = np.dtype(object)  # no type of 64 bits holds the integers of all columns
        valid = None
        if any(column.valid is not None for column in columns):
            valid = np.stack([_all_or(column) for column in columns], 1)
        return Pair(np.array([_as_type(column, common) for column in columns]).T, valid)


def _as_type(column: Pair, common: Any) -> Any:
    """Returns the elements of a column in the type of all columns. Raises OverflowError if it cannot hold one."""
    values, valid = column
    if common.kind != "f" or values.dtype.kind not in "iub":
        return values.astype(common, copy=False)
    return in_floats(library("numpy"), values if valid is None else values * valid, dtype=common.name)


def require_different(names: list[Any], owner: str, remedy: str) -> None:
    """Raises ValueError if columns have one name."""
    if len({*names}) < len(names):
        name, count = Counter(names).most_common(1)[0]
        raise ValueError(f"samesum: {owner} has {count} columns of the name {name!r}, {remedy}")


def _all_or(column: Pair) -> Any:
    return library("numpy").np.ones(len(column.values), bool) if column.valid is None else column.valid


def read(x: Any, argument: str = "x") -> Pair | Table:
    """Returns a column or a frame. Numbers in one chunk are read in place; a column of several is joined by a copy."""
    found = read_chunks(x, argument)
    return found if isinstance(found, Table) else _joined(found)


def read_chunks(x: Any, argument: str = "x") -> list[Pair] | Table:
    """Returns a column in chunks or a frame. Numbers are read in place."""
    name, package, *_ = kind_of(x) or _OTHER
    if name == "lazy":
        raise TypeError(f"samesum: {argument} is a lazy query; pass {argument}.collect()")
    if name == "dask":
        return read_chunks(x.compute(), argument)
    if name == "frame":
        named = named_columns(x)
        columns = [_chunks(c, f"column {each!r} of {argument}") for each, c in named]
        return Table([each for each, _ in named], columns, len(x))
    if name == "pandas":
        return [_of_pandas(x, argument)]
    found = arrow.read(x, argument)
    return Table(found.names, found.columns) if found.is_table else found.columns[0]


def _chunks(x: Any, argument: str) -> list[Pair]:
    found = read_chunks(x, argument)
    if isinstance(found, Table):
        raise TypeError(f"samesum: {argument} is a table; choose one of its columns")
    return found


def named_columns(x: Any) -> list[tuple[Any, Any]]:
    """Returns the names and the columns of a frame of pandas, polars or pyarrow."""
    package = (kind_of(x) or _OTHER).package
    if package == "pandas":
        return [*x.items()]
    return [(c.name, c) for c in x.get_columns()] if package == "polars" else [*zip(x.column_names, x.columns)]


def values_and_mask(x: Any, argument: str = "x") -> Pair:
    """Returns the elements of a column, and which of them are there: a boolean array, or None for all."""
    return _joined(_chunks(x, argument))


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


def require_same_axes(x: Any, y: Any) -> None:
    """Raises ValueError if inputs of which one has a mask or nulls differ in their number of axes."""
    ndim = library("numpy").np.ndim(y) if isinstance(y, (list, tuple)) else getattr(y, "ndim", 1)
    if ndim != x.ndim:
        raise ValueError(
            f"samesum: x has {x.ndim} axes and y {ndim}; inputs with masks or nulls must agree in their axes"
        )


def refuse_frame(function: str, x: Any) -> None:
    """Raises TypeError if x is known to be a frame, or is not in memory."""
    kind = kind_of(x)
    if kind is not None and (kind.is_frame or kind.name == "dask"):
        raise frame_error(function, x)


def frame_error(function: str, x: Any) -> TypeError:
    name, package, *_ = kind_of(x) or _OTHER
    what, remedy = "a frame", "one of its columns"
    if name == "dask":
        what = f"a {type(x).__name__} of Dask"
        remedy = "x.compute()" + (", or one of its columns" if x.ndim > 1 else "")
    elif name == "lazy":
        what, remedy = "a lazy query", "a column of x.collect()"
    elif name == "frame":
        remedy += ", or x.to_numpy() and an axis, such as axis=0"
    return TypeError(f"samesum: {function}: x is {what}; pass {remedy}")


def without_nulls(x: Any, argument: str) -> Any:
    """Returns a column as a vector, or a frame as a matrix. Raises ValueError if it has nulls."""
    values, valid, _ = elements(x, argument)
    if valid is not None:
        raise _nulls_error(x, argument, valid)
    return values


def elements(x: Any, argument: str = "x", names: list[Any] | None = None) -> Elements:
    """Returns the elements of a column as a vector, or of a frame as a matrix.

    `names` are those of a frame x beside which another argument is read. Columns of the same names have their order.
    """
    wide = _wide_matrix(x)
    if wide is not None and (names is None or names == [*x.columns]):
        return Elements(wide, None, [*x.columns])
    found = read(x, argument)
    if not isinstance(found, Table):
        return Elements(*found)
    if names is not None:
        found = found.beside(names, argument)
    return Elements(*found.matrix(), found.names)


def present(x: Any, argument: str = "x") -> Any:
    """Returns the elements of a column or a frame that are no nulls, or those of a masked vector that its mask shows; x
    itself if it is none of these."""
    if kind_of(x) is None:
        numpy = sys.modules.get("numpy")
        is_masked = numpy is not None and isinstance(x, numpy.ma.MaskedArray)
        return x.compressed() if is_masked and x.ndim == 1 else x
    values, valid, _ = elements(x, argument)
    return values if valid is None else values[valid]


def addends(x: Any) -> Any:
    """Returns what fsum adds up: the elements of a column that are no nulls, or those that a mask shows; else x."""
    if not (hasattr(type(x), "__array__") or has_arrow(type(x))):
        return x
    try:
        owner = library_of(x)
    except ImportError:  # without NumPy
        return x
    owner.require_strided(x, "x")
    refuse_carried(x)
    try:
        kind = kind_of(x)
        is_frame = kind is not None and (kind.is_frame or getattr(x, "ndim", 1) > 1)
        return x if is_frame else present(x)
    except TypeError:  # a column of decimal numbers, which x itself iterates over
        return x


def _nulls_error(x: Any, argument: str, valid: Any) -> ValueError:
    count = valid.size - int(valid.sum())
    kind = kind_of(x) or _OTHER
    remedy = f"{argument}.{kind.fill}({'False' if argument == 'where' else 0})"
    if argument == "x":
        remedy = f"x.{kind.drop}(), or {remedy}"
    elif argument == "weights":
        remedy += ", with which elements that have no weight take no part"
    return ValueError(
        f"samesum: {argument} has {count} null{'s' * (count != 1)}, which this call cannot leave out; pass {remedy}"
    )


# --- reductions -----------------------------------------------------------------------------------------------

_PER_ELEMENT = ("softmax", "log_softmax")


def reduce_frames(
    reduce: Callable[..., Any], reduce_chunks: Callable[..., Any], operation: str, x: Any, options: dict[str, Any]
) -> Any:
    """Makes a call for a column or a frame by `reduce`, which makes it for arrays.

    `reduce_chunks` makes it for a column in several chunks; it returns None for other options than it has.
    """
    if (kind_of(x) or _OTHER).name == "dask":
        x = x.compute()
    where = options.pop("where", None)
    wide = _wide_matrix(x)
    if operation in _PER_ELEMENT:
        return like_column(x, reduce(operation, without_nulls(x, "x"), **options))

    def reduced(chunks: list[Pair], where: Any, **options: Any) -> Any:
        result = reduce_chunks(operation, chunks, options) if len(chunks) > 1 and where is None else None
        if result is not None:
            return result
        values, valid = _joined(chunks)
        return reduce(operation, values, **options, where=both(valid, where))

    found = read_chunks(x) if wide is None else Table([*x.columns], [])
    if not isinstance(found, Table):
        return reduced(found, where, **options)
    axis = options.pop("axis", None)
    axes = (0,) if axis is None else normalised_axes(axis, 2, "a frame")
    given = {"out": options.get("out") is not None, "keepdims": options.get("keepdims")}
    for name in (name for name, is_given in given.items() if is_given):
        raise TypeError(f"samesum: {name} does not go with a frame, whose results have names; leave it out")
    if not axes:
        raise ValueError(
            "samesum: axis is (); a frame is reduced over its rows (0, the default), its columns (1), or both (0, 1)"
        )
    where = _rows_of(flags_beside(where, found.names), len(found.names))
    if wide is None and axes == (0,):

        def of_column(i: int, chunks: list[Pair]) -> Any:
            dtype = "int64" if operation.startswith("arg") else chunks[0].values.dtype
            return value_or_null(lambda: reduced(chunks, _column_of(where, i), **options), dtype)

        return _named(x, found.names, [of_column(i, chunks) for i, chunks in enumerate(found.chunks)])
    values, valid = found.matrix() if wide is None else Pair(wide, None)
    result = reduce(operation, values, **options, axis=axes, where=both(valid, where))
    if len(axes) == 2:
        return result
    return _as_column(x, result) if axes == (1,) else sys.modules["pandas"].Series(result, index=x.columns)


def refuse_masked_flags(where: Any) -> None:
    """Raises TypeError if a mask is itself a masked array."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(where, numpy.ma.MaskedArray):
        raise TypeError(
            "samesum: where is a masked array, whose masked flags are neither true nor false; pass "
            "where.filled(False), which leaves out the elements at them"
        )


def _flags_of(where: Any) -> Any:
    refuse_masked_flags(where)
    return library("numpy").array(where, "where")


def flags_beside(where: Any, names: list[Any] | None) -> Any:
    """Returns a mask of a frame x with these names; one that is a frame itself as a matrix, with its columns in their
    order. Raises ValueError if it has other columns.
    """
    if names is None or not kind_of(where):
        return where
    flags, valid, own = elements(where, "where", names)
    if own is not None and own != names:
        raise ValueError(
            f"samesum: where has the columns {own} and x {names}; pass a mask with the columns of x, one column of "
            "flags for the rows, or an array, whose columns go by their places"
        )
    if valid is not None:
        raise _nulls_error(where, "where", valid)
    return flags


def both(valid: Any, where: Any) -> Any:
    """Returns the elements that take part: those of both masks, each of which may be None for all."""
    if valid is None or where is None:
        return where if valid is None else valid
    np = library("numpy").np
    where = _flags_of(where)
    try:
        return valid & where if where.dtype == bool else where
    except ValueError as error:
        raise ValueError(
            f"samesum: where has shape {np.shape(where)}, and the mask of x {valid.shape}; pass masks of one shape"
        ) from error


def _rows_of(where: Any, columns: int) -> Any:
    """Returns a mask of a frame as an array with a flag for each row, or for each element."""
    if where is None:
        return None
    where = _flags_of(where)
    if where.ndim > 2 or (where.ndim == 2 and where.shape[1] not in (1, columns)):
        raise ValueError(
            f"samesum: where has shape {where.shape} and x {columns} columns; pass a flag for each row, or for "
            "each element"
        )
    return where[:, None] if where.ndim == 1 else where


def _column_of(where: Any, i: int) -> Any:
    """Returns the flags of a column."""
    if where is None or where.ndim == 0:
        return where
    return where[:, i if where.shape[1] > 1 else 0]


def _wide_matrix(x: Any) -> Any:
    """Returns a frame of pandas with many columns of one type of NumPy, which are faster together, as a matrix."""
    kind = kind_of(x)
    if kind is None or kind.name != "frame" or kind.package != "pandas" or x.shape[1] < 32 or not len(x):
        return None
    dtype = x.dtypes.iloc[0]
    is_numpys = isinstance(dtype, library("numpy").np.dtype) and dtype.kind in "iubf"
    return x.to_numpy() if is_numpys and (x.dtypes == dtype).all() else None


# --- results --------------------------------------------------------------------------------------------------


def value_or_null(compute: Callable[[], Any], dtype: Any) -> Any:
    """Returns the result of a column, or a masked number if it is an extremum of no integers, which has no value."""
    try:
        return compute()
    except ValueError as error:
        if not getattr(error, "is_of_no_integers", False):
            raise
        return library("numpy").np.ma.masked_all((), dtype)


def as_one_array(results: Sequence[Any]) -> Any:
    """Returns results as one array: of their common type if that holds all, else of objects. Masked ones are NaN."""
    np = library("numpy").np
    results = [np.float64(math.nan) if np.ma.isMaskedArray(r) else r for r in results]
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
    rows = [nullable(package, library("numpy").np.reshape(result, 1)) for result in results]
    if package == "polars":
        return type(x)([sys.modules["polars"].Series(name, row) for name, row in zip(names, rows)])
    if package == "pyarrow":
        pyarrow = sys.modules["pyarrow"]
        kind = pyarrow.RecordBatch if isinstance(x, pyarrow.RecordBatch) else pyarrow.Table
        return kind.from_arrays([pyarrow.array(row) for row in rows], names=names)
    require_different(names, "x", "and its results are a dict; give them different names")
    return dict(zip(names, results))


def like_column(x: Any, results: Any) -> Any:
    """Returns a result for each element of a Series as a Series with its name and index; others as they are.

    Results that are more than the elements have no index of pandas, and stay an array.
    """
    kind = kind_of(x)
    if kind is None or kind.is_frame or not hasattr(x, "name"):
        return results
    if kind.package == "polars":
        return sys.modules["polars"].Series(x.name, results)
    if not hasattr(x, "index") or len(results) != len(x):
        return results
    return sys.modules["pandas"].Series(results, index=x.index, name=x.name)


def _as_column(x: Any, results: Any) -> Any:
    """Returns the results of rows as a column of the library of x."""
    package = (kind_of(x) or _OTHER).package
    if package == "pandas":
        return sys.modules["pandas"].Series(results, index=x.index)
    if package == "polars":
        return sys.modules["polars"].Series(results)
    return sys.modules["pyarrow"].array(results) if package == "pyarrow" else results


def nullable(package: str, results: Any) -> Any:
    """Returns results of which some are masked as a column of a library of frames; others as they are."""
    if not package or not isinstance(results, library("numpy").np.ma.MaskedArray):
        return results
    if package == "polars":
        polars = sys.modules["polars"]
        return polars.Series(results.tolist(), dtype=polars.Series(results.data[:0]).dtype)
    if package == "pyarrow":
        return sys.modules["pyarrow"].array(results.data, mask=results.mask)
    arrays = sys.modules["pandas"].arrays
    kind = arrays.BooleanArray if results.dtype.kind == "b" else arrays.IntegerArray
    return kind(results.data, results.mask)
