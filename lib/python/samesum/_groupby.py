"""Groups of equal keys, and the reductions of their values: `groupby`."""

from __future__ import annotations

import math
import sys
from functools import partial
from typing import Any, Callable

from . import _core
from ._arrays import DTYPES, Converted, dtype_name, format_of, library_of
from ._by_key import run_by_key
from ._calls import Method, check_grid, check_threads, common_type, correction_of, is_exact, method_of, run_call
from ._columns import (
    Values, family_of, frame_columns, is_frame, key_column, name_of, pandas_index, present, ranks_of, table, taken,
    values_of,
)  # fmt: skip
from ._integers import EXACT_OPERATIONS, beyond_64_bits, high_and_low
from ._keys import numbered
from ._layout import Layout
from ._traced import square_root

_BY_KEY = {"sum": "scatter_add", "mean": "scatter_mean", "min": "scatter_min", "max": "scatter_max"}


def groupby(keys: Any, by: Any = None, *, sort: bool = True, dropna: bool = True, threads: int = 0) -> GroupBy:
    """Returns the groups of rows with equal keys, whose values its methods reduce.

    Each result has the bits of the same reduction of the values of its group alone, in their order: whatever the
    threads, and whatever the other groups hold. Exact methods, the default, do not depend on the order either.

    >>> groups = groupby(["b", "a", "b", "b"])
    >>> groups.groups.tolist(), groups.sum([1e16, 5.0, 1.0, -1e16]).tolist()
    (['a', 'b'], [5.0, 1.0])
    >>> groupby([[1, 1, 2], ["x", "y", "x"]]).mean([1.0, 2.0, 3.0]).tolist()
    [1.0, 2.0, 3.0]

    Parameters
    ----------
    keys
        a key for each row: an array, a list, or a column of pandas, polars or Arrow, of numbers, texts, dates,
        categories or any objects with a hash. Of several columns, in a list, a tuple, a dict or a frame, a key is
        what they have in a row; tuples in a list are keys themselves.
    by
        name, or list of names, of the columns of the frame `keys` that are the keys. Methods then also take names
        of its columns in place of values, and reduce all its other columns if they are given none.
    sort
        whether groups are in the order of their keys (categories: in their order), or in that of their first rows.
    dropna
        whether rows whose key is missing (None, NaN, NaT, null) belong to no group. Otherwise they are a group, the
        last one if sorted.
    threads
        largest number of threads; 0 for one per processor.

    Returns
    -------
    groups
        an object with the attribute `groups`, the keys of all groups (several columns: a dict of them if they have
        names, else a tuple), and with the methods sum, mean, var, std, min, max, count, first and dot. They take an
        array of shape (n, ...), and return one of shape (number of groups, ...). They take columns and frames of
        pandas, and return such with the keys as index; columns and frames of polars, and tables of Arrow, and
        return frames in which the keys are the first columns.

    Raises
    ------
    ValueError
        if columns differ in length, or a frame does not have a column.
    TypeError
        if keys have no hash, do not compare and are to be sorted, or are in the memory of a GPU.
    """
    function, frame = "groupby", None
    if by is not None:
        if not is_frame(keys):
            raise TypeError(
                f"samesum: {function}: by names columns of a frame, and keys is a {type(keys).__name__}; pass a frame, "
                "or the columns as keys"
            )
        frame = dict(frame_columns(keys))
        names = by if isinstance(by, list) else [by]
        named = [(name, _column_of(function, "by", frame, name)) for name in names]
        is_one = not isinstance(by, list)
    elif is_frame(keys):
        named, is_one = frame_columns(keys), False
    elif isinstance(keys, dict):
        named, is_one = [*keys.items()], False
    elif isinstance(keys, (list, tuple)) and len(keys) and all(map(_is_column, keys)):
        named, is_one = [(name_of(column), column) for column in keys], False
    else:
        named, is_one = [(name_of(keys), keys)], True
    if not named:
        raise ValueError(f"samesum: {function}: keys has no columns; pass one or more")
    columns = [
        (name, key_column(function, "keys" if is_one else f"keys[{place if name is None else name!r}]", column))
        for place, (name, column) in enumerate(named)
    ]
    lengths = {name if name is not None else place: len(c) for place, (name, c) in enumerate(columns)}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f"samesum: {function}: the columns of keys have the lengths {lengths}; pass columns of one length"
        )
    return GroupBy(columns, is_one, frame, bool(sort), bool(dropna), check_threads(threads))


def _is_column(x: Any) -> bool:
    """Whether an element of a list is a column of keys, and not a key."""
    return isinstance(x, list) or bool(family_of(x) and hasattr(x, "__len__")) or getattr(x, "ndim", 0) == 1


def _column_of(function: str, argument: str, frame: dict[Any, Any], name: Any) -> Any:
    if name not in frame:
        raise ValueError(
            f"samesum: {function}: {argument} names the column {name!r}, which the frame does not have; use one of "
            f"{', '.join(map(repr, frame))}"
        )
    return frame[name]


class GroupBy:
    """Groups of rows with equal keys: what `groupby` returns.

    Methods share these arguments. `values`: a number for each row, or the names of columns, as in `groupby`. `method`:
    name of a method of the operation, as for `samesum.sum`; default: exact. `skipna`: True skips NaN and null, False
    neither (a group with null then has NaN), None what the library of the values skips: pandas both, polars and Arrow
    null, arrays neither. `threads`: largest number of threads, 0 for one per processor. `grid`: for the accumulator
    fixed_point. The sum of no values is 0, other results for them are NaN.
    """

    groups: Any
    """The key of each group."""

    def __init__(
        self, columns: list[tuple[Any, Any]], is_one: bool, frame: dict[Any, Any] | None, sort: bool, dropna: bool,
        threads: int,
    ) -> None:  # fmt: skip
        self._np = np = library_of([]).np
        self._frame, self._names = frame, [name for name, _ in columns]
        self._rows = len(columns[0][1])
        ranks = []
        for place, (name, column) in enumerate(columns):
            argument = "keys" if is_one else f"keys[{place if name is None else name!r}]"
            ranks.append(ranks_of("groupby", argument, column, sort))
        numbers, first = numbered(np, ranks[0].ranks, sort, threads)
        for other, _ in ranks[1:]:
            pairs = numbers.astype(np.int64)
            of_other, first_of_other = numbered(np, other, sort, threads)
            pairs *= max(len(first_of_other), 1)
            pairs += of_other
            numbers, first = numbered(np, pairs, sort, threads)
        self._kept = None
        """Whether rows belong to a group; None if all do."""
        is_missing = np.zeros(len(first), bool)
        for each, missing in ranks:
            if missing is not None:
                is_missing |= each[first] == missing
        if dropna and is_missing.any():
            number = np.where(is_missing, -1, np.cumsum(~is_missing) - 1).astype(numbers.dtype)
            numbers, first = number[numbers], first[~is_missing]
            self._kept = numbers >= 0
            numbers = numbers[self._kept]
        self._numbers, self._first = numbers, first
        self._keys = [(name, taken(column, first)) for name, column in columns]
        self._sorted: tuple[Any, Any] | None = None
        if is_one:
            self.groups = self._keys[0][1]
            if family_of(self.groups) == "pandas":
                self.groups = pandas_index(self._keys)
        elif any(name is not None for name, _ in columns):
            self.groups = dict(self._keys)
        else:
            self.groups = tuple(column for _, column in self._keys)

    def __len__(self) -> int:
        return len(self._first)

    # --- reductions ---------------------------------------------------------------------------------------------

    def sum(
        self, values: Any = None, *, method: str | Method | None = None, skipna: bool | None = None, threads: int = 0,
        grid: int | None = None,
    ) -> Any:  # fmt: skip
        """Returns the sum of the values of each group, by default correctly rounded.

        Sums of integers are exact, and raise OverflowError beyond 64 bits. See `GroupBy` for the arguments.
        """
        return self._reduced("sum", values, method, skipna, threads, grid)

    def mean(
        self, values: Any = None, *, method: str | Method | None = None, skipna: bool | None = None, threads: int = 0,
        grid: int | None = None,
    ) -> Any:  # fmt: skip
        """Returns the mean of the values of each group, by default correctly rounded.

        See `GroupBy` for the arguments.
        """
        return self._reduced("mean", values, method, skipna, threads, grid)

    def var(
        self, values: Any = None, *, correction: float | None = None, ddof: float | None = None,
        method: str | Method | None = None, skipna: bool | None = None, threads: int = 0,
    ) -> Any:  # fmt: skip
        """Returns the variance of the values of each group, by default correctly rounded.

        The sum of squared deviations is divided by n - correction, as in `samesum.var`; the default of pandas and
        polars is 1. `ddof` is another name for it. See `GroupBy` for the other arguments.
        """
        divisor = correction_of(correction, ddof)
        return self._reduced("moments", values, method, skipna, threads, None, divisor, lambda m: m[..., 1].copy())

    def std(
        self, values: Any = None, *, correction: float | None = None, ddof: float | None = None,
        method: str | Method | None = None, skipna: bool | None = None, threads: int = 0,
    ) -> Any:  # fmt: skip
        """Returns the standard deviation of the values of each group: the rounded square root of `var`."""
        divisor = correction_of(correction, ddof)
        return self._reduced("moments", values, method, skipna, threads, None, divisor, self._root)

    def min(
        self, values: Any = None, *, method: str | Method | None = None, skipna: bool | None = None, threads: int = 0
    ) -> Any:
        """Returns the smallest value of each group. See `GroupBy` for the arguments."""
        return self._reduced("min", values, method, skipna, threads)

    def max(
        self, values: Any = None, *, method: str | Method | None = None, skipna: bool | None = None, threads: int = 0
    ) -> Any:
        """Returns the largest value of each group. See `GroupBy` for the arguments."""
        return self._reduced("max", values, method, skipna, threads)

    def count(self, values: Any = None, *, skipna: bool | None = None) -> Any:
        """Returns the number of values of each group, as int64; without values, the number of its rows."""
        np = self._np
        if values is None and self._frame is None:
            return np.bincount(self._numbers, minlength=len(self))

        def count(argument: str, column: Any) -> Any:
            takes = self._present(argument, column, skipna)
            inner = takes.shape[1:]
            counts = np.empty((len(self), math.prod(inner)), np.int64)
            for place, each in enumerate(takes.reshape(len(takes), counts.shape[1]).T):
                counts[:, place] = np.bincount(self._numbers[each], minlength=len(self))
            return counts.reshape(len(self), *inner)

        return self._assembled(values, count)

    def first(self, values: Any = None, *, skipna: bool | None = None) -> Any:
        """Returns the first value of each group, of any type; if all are skipped, the first of these."""
        np = self._np

        def first(argument: str, column: Any) -> Any:
            takes, places = self._present(argument, column, skipna), self._first
            if takes.ndim > 1 and not takes.all():
                raise ValueError(
                    f"samesum: groupby: {argument} has {takes.ndim} axes, whose first values are in different rows; "
                    "pass one column"
                )
            if takes.ndim == 1 and not takes.all():
                places = places.copy()
                rows = np.flatnonzero(takes)[::-1]
                places[self._numbers[rows]] = rows if self._kept is None else np.flatnonzero(self._kept)[rows]
            if not family_of(column) and library_of(column).name != "torch":
                column = np.asarray(column)
            return taken(column, places)

        return self._assembled(values, first)

    def dot(
        self, x: Any, y: Any, *, method: str | Method | None = None, skipna: bool | None = None, threads: int = 0,
        grid: int | None = None,
    ) -> Any:  # fmt: skip
        """Returns the dot product of the values x and y of each group, by default correctly rounded.

        See `GroupBy` for the arguments. x and y are numbers for each row, or names of columns.
        """
        y = self._named_column("y", y)
        for argument, a in (("x", x), ("y", y)):
            if is_frame(a) or (self._frame is not None and isinstance(a, list) and a and isinstance(a[0], str)):
                raise ValueError(f"samesum: groupby: {argument} is a frame; pass one column")

        def dot(argument: str, column: Any) -> Any:
            read = [self._rows_of(name, values_of("groupby", name, c)) for name, c in ((argument, column), ("y", y))]
            if read[0].array.shape != read[1].array.shape:
                raise ValueError(
                    f"samesum: groupby: x has shape {read[0].array.shape} and y {read[1].array.shape}; pass arrays of "
                    "one shape"
                )
            skips = [_skips(c, skipna) for c in (column, y)]
            return self._reduced_columns("dot", read, skips, method, threads, grid, 0)

        return self._assembled(x, dot, "x", "dot")

    def _root(self, moments: Any) -> Any:
        return square_root(self._np, moments[..., 1])

    # --- how they are computed ----------------------------------------------------------------------------------

    def _reduced(
        self, operation: str, values: Any, method: Any, skipna: bool | None, threads: int, grid: Any = None,
        ddof: float = 0, finish: Callable[[Any], Any] | None = None,
    ) -> Any:  # fmt: skip
        def reduce(argument: str, column: Any) -> Any:
            read = self._rows_of(argument, values_of("groupby", argument, column))
            skips = [_skips(column, skipna)]
            result = self._reduced_columns(operation, [read], skips, method, threads, grid, ddof)
            return result if finish is None else finish(result)

        return self._assembled(values, reduce)

    def _packed(self, read: list[Values], skips: list[tuple[bool, bool]], function: Any) -> Any:
        """Returns function(numbers, order, arrays) for what is not skipped: one column after another if it differs."""
        np = self._np
        takes = None
        for each, skipped in zip(read, skips):
            own = _takes(each, *skipped)
            takes = own if takes is None else takes if own is None else takes & own
        arrays = [_with_nan(np, each, skipped[0]) for each, skipped in zip(read, skips)]
        if takes is None:
            return function(self._numbers, self._order, arrays)
        if takes.ndim == 1:
            numbers = self._numbers[takes]
            return function(numbers, partial(self._order_of, numbers), [a[takes] for a in arrays])
        shape = takes.shape[1:]
        flat = [a.reshape(len(a), -1) for a in arrays]
        results = []
        for column, takes_row in enumerate(takes.reshape(len(takes), -1).T):
            numbers = self._numbers[takes_row]
            order = partial(self._order_of, numbers)
            results.append(function(numbers, order, [a[takes_row, column] for a in flat]))
        stacked = np.stack(results, 1)
        return stacked.reshape((len(self), *shape, *stacked.shape[2:]))

    def _order(self) -> tuple[Any, Any]:
        if self._sorted is None:
            self._sorted = self._order_of(self._numbers)
        return self._sorted

    def _order_of(self, numbers: Any) -> tuple[Any, Any]:
        """Returns the places of all numbers in the order of these, and where those of each group begin and end."""
        np = self._np
        order, offsets = np.empty(len(numbers), np.int64), np.empty(len(self) + 1, np.int64)
        _core.sort_by_group(
            numbers.dtype.name, numbers.ctypes.data, len(numbers), len(self), 0, order.ctypes.data, offsets.ctypes.data
        )
        return order, offsets

    def _reduced_columns(
        self, operation: str, read: list[Values], skips: list[tuple[bool, bool]], method: Any, threads: int, grid: Any,
        ddof: float,
    ) -> Any:  # fmt: skip
        threads, grid = check_threads(threads), check_grid(grid)

        def reduce(numbers: Any, order: Any, arrays: list[Any]) -> Any:
            formats = {format_of(a.dtype, "values") for a in arrays}
            if formats == {"int"} and operation in EXACT_OPERATIONS and is_exact(method, operation) and grid is None:
                return self._integers(operation, arrays[0], *order())
            if "int" in formats:
                arrays = [a.astype("float64") if format_of(a.dtype) == "int" else a for a in arrays]
            if len({format_of(a.dtype) for a in arrays}) > 1:
                wider = common_type(self._np, arrays[0].dtype, arrays[1].dtype)
                arrays = [a.astype(library_of([]).dtype(wider)) for a in arrays]
            arrays = [self._np.ascontiguousarray(a) for a in arrays]
            chosen = method_of(method, operation, format_of(arrays[0].dtype), -1)
            by_key = _method_by_key(chosen, grid)
            if by_key is None:
                return self._by_segments(chosen, arrays, *order(), threads, grid, ddof)
            numpy = library_of([])
            result = numpy.empty((len(self), *arrays[0].shape[1:]), DTYPES[by_key.format], arrays[0])
            run_by_key(by_key, (numpy, numbers), (numpy, arrays[0]), (numpy, result), threads, grid)
            if operation in ("min", "max") and len(numbers) < len(self._numbers):  # samesum.min of nothing is infinite
                result[self._np.bincount(numbers, minlength=len(self)) == 0] = math.nan
            return result

        return self._packed(read, skips, reduce)

    def _by_segments(
        self, method: Method, arrays: list[Any], order: Any, offsets: Any, threads: int, grid: Any, ddof: float
    ) -> Any:
        """Reduces the values in the order of their groups, in which those of a group are a segment."""
        np, numpy = self._np, library_of([])
        shape, n, groups = arrays[0].shape[1:], len(order), len(self)
        inner = math.prod(shape)
        columns = [np.ascontiguousarray(a.reshape(n, inner).T[:, order]) for a in arrays]
        ends = [offsets[:-1] + column * n for column in range(inner)]
        all_offsets = np.concatenate([*ends, np.array([inner * n], np.int64)])
        dtype = "int64" if method.returns_index else DTYPES[method.format]
        result = numpy.empty((inner, groups, method.results), dtype, arrays[0])
        if inner * groups:
            x, y = (numpy.view(columns[k]).address for k in (0, -1))
            run_call(
                method, format_of(arrays[0].dtype), x, inner * n, Layout(inner * groups, 0, 1, 0, 1),
                numpy.view(result).address, result.size, -1, 0, y=y, offsets=numpy.view(all_offsets).address,
                threads=threads, ddof=ddof, grid=grid,
            )  # fmt: skip
        last = (method.results,) if method.results > 1 else ()
        return np.ascontiguousarray(result.transpose(1, 0, 2)).reshape((groups, *shape, *last))

    def _integers(self, operation: str, a: Any, order: Any, offsets: Any) -> Any:
        """Returns the exact sums or extrema of integers: int64 or uint64; as floats if a group has no extremum."""
        np, numpy = self._np, library_of([])
        has_any = offsets[1:] > offsets[:-1]
        starts = offsets[:-1][has_any]
        name = dtype_name(a.dtype)

        def totals(x: Any) -> Any:
            result = np.zeros((len(self), *a.shape[1:]), x.dtype)
            if len(starts):
                result[has_any] = np.add.reduceat(x[order], starts, 0)
            return result

        if operation == "sum":
            unsigned = name.startswith("uint")
            if name not in ("int64", "uint64"):
                result = totals(a.astype(np.int64))
                return result.astype(np.uint64) if unsigned else result
            high, low = map(totals, high_and_low(numpy, a, name))
            high += low >> 32
            most, least = ((1 << 32) - 1, 0) if unsigned else ((1 << 31) - 1, -(1 << 31))
            if ((high > most) | (high < least)).any():
                raise beyond_64_bits("sum")
            return (((high & 0xFFFFFFFF) << 32) | (low & 0xFFFFFFFF)).astype(a.dtype)
        extremum = np.minimum if operation == "min" else np.maximum
        if not has_any.all():
            a = a.astype(np.float64)
        result = np.full((len(self), *a.shape[1:]), np.nan if a.dtype.kind == "f" else 0, a.dtype)
        if len(starts):
            result[has_any] = extremum.reduceat(a[order], starts, 0)
        return result

    # --- arguments and results ----------------------------------------------------------------------------------

    def _length_error(self, argument: str, n: Any) -> ValueError:
        return ValueError(
            f"samesum: groupby: {argument} has {n} rows, and there are {self._rows} keys; pass a row for each key"
        )

    def _rows_of(self, argument: str, read: Values) -> Values:
        """Returns the rows of values that belong to a group."""
        a = read.array
        if a.ndim == 0 or a.shape[0] != self._rows:
            raise self._length_error(argument, a.shape[0] if a.ndim else "no")
        if self._kept is None:
            return read
        return Values(a[self._kept], None if read.valid is None else read.valid[self._kept])

    def _present(self, argument: str, column: Any, skipna: bool | None) -> Any:
        """Returns which values in rows of groups are not skipped."""
        takes = present(column, *_skips(column, skipna))
        if takes.ndim == 0 or takes.shape[0] != self._rows:
            raise self._length_error(argument, takes.shape[0] if takes.ndim else "no")
        return takes if self._kept is None else takes[self._kept]

    def _named_column(self, argument: str, values: Any) -> Any:
        if self._frame is not None and isinstance(values, str):
            return _column_of("groupby", argument, self._frame, values)
        return values

    def _named(self, argument: str, values: Any) -> tuple[Any, list[tuple[Any, Any]], Any]:
        """Returns the library of frames to which values belong, their columns, and whether these are a frame."""
        frame = self._frame
        if values is None:
            if frame is None:
                raise TypeError(f"samesum: groupby: {argument} is None; pass the values, a number for each key")
            values = [name for name in frame if name not in self._names]
        if frame is not None and isinstance(values, list) and not any(isinstance(v, (int, float)) for v in values):
            columns = [(name, _column_of("groupby", argument, frame, name)) for name in values]
            return family_of(next(iter(frame.values()))), columns, True
        values = self._named_column(argument, values)
        if is_frame(values):
            return family_of(values), frame_columns(values), True
        family = family_of(values)
        return "" if family == "pyarrow" and frame is None else family, [(name_of(values), values)], False

    def _assembled(
        self, values: Any, reduce: Callable[[str, Any], Any], argument: str = "values", name: str = ""
    ) -> Any:
        """Returns reduce(argument, column) for the values, or for each of their columns, in the caller's type."""
        family, columns, has_many = self._named(argument, values)
        results = [reduce(f"{argument}[{n!r}]" if has_many else argument, column) for n, column in columns]
        if family == "pandas":
            pandas, index = sys.modules["pandas"], pandas_index(self._keys)
            arrays = [getattr(result, "array", result) for result in results]
            if not has_many:
                return pandas.Series(arrays[0], index=index, name=None if name else columns[0][0])
            frame = pandas.DataFrame(dict(enumerate(arrays)), index=index)
            frame.columns = pandas.Index([n for n, _ in columns])
            return frame
        if family:
            unnamed = [f"key_{place}" for place in range(len(self._keys))] if len(self._keys) > 1 else ["key"]
            named = [(str(n) if n else other, column) for (n, column), other in zip(self._keys, unnamed)]
            named += [(name or n or "values", result) for (n, _), result in zip(columns, results)]
            names = [n for n, _ in named]
            for repeated in (n for n in names if names.count(n) > 1):
                raise ValueError(
                    f"samesum: groupby: {argument} and the keys have the column {repeated!r} in common; rename one, or "
                    "leave it out of the values"
                )
            return table(family, named)
        library, result = library_of(columns[0][1]), results[0]
        if isinstance(library, Converted):
            return library.returned(result, columns[0][1])
        return library.converted(result) if library.name == "torch" and isinstance(result, self._np.ndarray) else result


def _skips(column: Any, skipna: bool | None) -> tuple[bool, bool]:
    """Whether null elements of a column are skipped, and whether NaN are."""
    if skipna is not None:
        return bool(skipna), bool(skipna)
    return bool(family_of(column)), family_of(column) == "pandas"


def _takes(read: Values, skips_null: bool, skips_nan: bool) -> Any:
    """Returns which elements are not skipped; None if all are."""
    takes = read.valid if skips_null else None
    if skips_nan and read.array.dtype.kind not in "iub":
        numbers = read.array == read.array
        if not numbers.all():
            takes = numbers if takes is None else takes & numbers
    return takes


def _with_nan(np: Any, read: Values, skips_null: bool) -> Any:
    """Returns the elements, with NaN for those that are null and not skipped."""
    if read.valid is None or skips_null:
        return read.array
    a = read.array.astype(np.float64) if read.array.dtype.kind in "iub" else read.array.copy()
    a[~read.valid] = np.nan
    return a


def _method_by_key(method: Method, grid: Any) -> Method | None:
    """Returns the method by key whose results have the bits of a method for each group alone; None if there is none.

    By key, fixed_point finds one grid for all groups, and there is no order but serial.
    """
    operation = _BY_KEY.get(method.operation)
    if operation is None or (method.accumulator == "fixed_point" and grid is None) or method.backend != "cpu":
        return None
    try:
        return _core.find(operation + method.name[len(method.operation) :], operation, method.format, method.backend)
    except ValueError:
        return None
