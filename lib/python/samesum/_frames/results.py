"""Results in the types of the columns and frames that were reduced."""

from __future__ import annotations

import math
import operator
import sys
from typing import Any, Callable, Sequence

from .._elements.library import library
from .kinds import OTHER, kind_of
from .reading import require_different


def value_or_null(compute: Callable[[], Any], dtype: Any) -> Any:
    """Returns the result of a column, or a masked number if it is an extremum of no integers, which has no value."""
    try:
        return compute()
    except ValueError as error:
        return null_for(error, dtype)


def null_for(error: ValueError, dtype: Any) -> Any:
    """Returns a masked number in place of an extremum of no integers. Raises every other error."""
    if not getattr(error, "is_of_no_integers", False):
        raise error
    return library("numpy").np.ma.masked_all((), dtype)


def as_one_array(results: Sequence[Any]) -> Any:
    """Returns results as one array: of their common type if that holds all, else of objects. Masked ones are NaN."""
    np = library("numpy").np
    if any(map(np.ma.isMaskedArray, results)):
        results = [np.float64(math.nan) if np.ma.isMaskedArray(r) else r for r in results]
    together = np.array(results) if results else np.empty(0)
    if len({*map(operator.attrgetter("dtype"), results)}) > 1 and any(
        r.dtype.kind in "iu" and int(r) != int(t) for r, t in zip(results, together)
    ):
        together = np.array([r.item() for r in results], object)
    return together


def named_results(x: Any, names: list[Any], results: list[Any]) -> Any:
    """Returns the results of columns: a Series of pandas, a frame of one row, or a dict."""
    package = (kind_of(x) or OTHER).package
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


def as_column(x: Any, results: Any) -> Any:
    """Returns the results of rows as a column of the library of x."""
    package = (kind_of(x) or OTHER).package
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
