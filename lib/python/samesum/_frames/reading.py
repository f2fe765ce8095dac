"""The elements of columns and frames of pandas, polars, pyarrow and all that have Arrow's protocols.

A column is read as the pair of its elements and the mask of those that are there (`values_and_mask`), without a copy.
Nulls are missing values: reductions leave them out. NaN is a number. No library is imported for this but NumPy.
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import lru_cache
from typing import Any, NamedTuple

from .._elements.carried import refuse_carried
from .._elements.formats import format_of
from .._elements.in_floats import in_floats
from .._elements.library import library, library_of
from .kinds import OTHER, Pair, has_arrow, kind_of


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
        columns = [*map(joined, self.chunks)]
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
    return found if isinstance(found, Table) else joined(found)


def read_chunks(x: Any, argument: str = "x") -> list[Pair] | Table:
    """Returns a column in chunks or a frame. Numbers are read in place."""
    name, package, *_ = kind_of(x) or OTHER
    if name == "lazy":
        raise TypeError(f"samesum: {argument} is a lazy query; pass {argument}.collect()")
    if name == "dask":
        return read_chunks(x.compute(), argument)
    if name == "frame":
        found = Table([], [], len(x))
        for each, column in named_columns(x):
            found.names.append(each)
            found.chunks.append(_chunks(column, f"column {each!r} of {argument}"))
        return found
    if name == "pandas":
        return [_of_pandas(x, argument)]
    found = _reader_of_arrow()(x, argument)
    return Table(found.names, found.columns) if found.is_table else found.columns[0]


@lru_cache(maxsize=None)
def _reader_of_arrow() -> Any:
    from .arrow import read  # needs ctypes, whose import takes a twentieth of the time of `import samesum`

    return read


def _chunks(x: Any, argument: str) -> list[Pair]:
    found = read_chunks(x, argument)
    if isinstance(found, Table):
        raise TypeError(f"samesum: {argument} is a table; choose one of its columns")
    return found


def named_columns(x: Any) -> list[tuple[Any, Any]]:
    """Returns the names and the columns of a frame of pandas, polars or pyarrow."""
    package = (kind_of(x) or OTHER).package
    if package == "pandas":
        return [*x.items()]
    return [(c.name, c) for c in x.get_columns()] if package == "polars" else [*zip(x.column_names, x.columns)]


def values_and_mask(x: Any, argument: str = "x") -> Pair:
    """Returns the elements of a column, and which of them are there: a boolean array, or None for all."""
    return joined(_chunks(x, argument))


def _of_pandas(x: Any, argument: str) -> Pair:
    np, elements = library("numpy").np, getattr(x, "array", x)
    if isinstance(x.dtype, sys.modules["pandas"].ArrowDtype):
        return values_and_mask(elements.__arrow_array__(), argument)
    values, missing = getattr(elements, "_data", None), getattr(elements, "_mask", None)
    if isinstance(values, np.ndarray) and isinstance(missing, np.ndarray):  # Float64, Int64, boolean
        return Pair(values, ~missing if missing.any() else None)
    values = np.asarray(x)
    if values.dtype.kind not in "iufb":
        values = library("numpy").array(values, argument, wide=True)
    if not values.dtype.hasobject and (values.dtype.itemsize > 8 or values.dtype.kind not in "iufb"):
        format_of(values.dtype, argument)  # raises for what has no numbers
    return Pair(values, None)


def joined(chunks: list[Pair]) -> Pair:
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
    values, valid, _ = elements(x, argument)
    if valid is not None:
        raise nulls_error(x, argument, valid)
    return values


def elements(x: Any, argument: str = "x", names: list[Any] | None = None) -> Elements:
    """Returns the elements of a column as a vector, or of a frame as a matrix.

    `names` are those of a frame x beside which another argument is read. Columns of the same names have their order.
    """
    wide = wide_matrix(x)
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


def nulls_error(x: Any, argument: str, valid: Any) -> ValueError:
    count = valid.size - int(valid.sum())
    kind = kind_of(x) or OTHER
    remedy = f"{argument}.{kind.fill}({'False' if argument == 'where' else 0})"
    if argument == "x":
        remedy = f"x.{kind.drop}(), or {remedy}"
    elif argument == "weights":
        remedy += ", with which elements that have no weight take no part"
    return ValueError(
        f"samesum: {argument} has {count} null{'s' * (count != 1)}, which this call cannot leave out; pass {remedy}"
    )


def wide_matrix(x: Any) -> Any:
    """Returns a frame of pandas with many columns of one type of NumPy, which are faster together, as a matrix."""
    kind = kind_of(x)
    if kind is None or kind.name != "frame" or kind.package != "pandas" or x.shape[1] < 32 or not len(x):
        return None
    dtype = x.dtypes.iloc[0]
    is_numpys = isinstance(dtype, library("numpy").np.dtype) and dtype.kind in "iubf"
    return x.to_numpy() if is_numpys and (x.dtypes == dtype).all() else None
