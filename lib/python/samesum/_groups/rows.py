"""Rows that are numbered by their group, and the reductions of the values of each group."""

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple, Sequence

from .. import _core
from .._calls.arguments import Call, check_grid, check_threads
from .._calls.inputs import floats_for, same_type
from .._calls.integers import EXACT_OPERATIONS, beyond_64_bits
from .._calls.methods import Method, is_exact, method_of
from .._elements.formats import DTYPES, dtype_name, format_of, method_format
from .._elements.in_floats import high_and_low, in_floats
from .._elements.layout import Layout
from .._elements.library import library_of
from .._keys.values import in_floats_by_key, run_by_key
from .columns import Values

_BY_KEY = {"sum": "scatter_add", "mean": "scatter_mean", "min": "scatter_min", "max": "scatter_max"}


class NumberedRows(NamedTuple):
    """The number of the group of each row, and the first row of each group."""

    numbers: Any
    first: Any
    kept: Any
    """Whether rows belong to a group; None if all do. The others have no number."""


class GroupRows:
    """The number of the group of each row, and the number of groups."""

    def __init__(self, numbers: Any, count: int) -> None:
        self.numbers, self.count = numbers, count
        self._order: tuple[Any, Any] | None = None

    @property
    def np(self) -> Any:  # no attribute, since modules cannot be pickled
        return library_of([]).np

    def __len__(self) -> int:
        return len(self.numbers)

    def order(self) -> tuple[Any, Any]:
        """Returns the places of the rows in the order of their groups, and where those of each group begin and end."""
        if self._order is None:
            n, numbers = len(self), self.numbers
            order, offsets = self.np.empty(n, self.np.int64), self.np.empty(self.count + 1, self.np.int64)
            _core.sort_by_group(
                numbers.dtype.name, numbers.ctypes.data, n, self.count, order.ctypes.data, offsets.ctypes.data
            )
            self._order = order, offsets
        return self._order

    def packed(
        self,
        read: Sequence[Values],
        skips: Sequence[tuple[bool, bool]],
        function: Callable[[GroupRows, list[Any]], Any],
    ) -> Any:
        """Returns function(rows, arrays) for what is not skipped: one column after another if that differs.

        `skips` tells for each array whether nulls, and whether NaN, are skipped.
        """
        np, takes = self.np, None
        for each, skipped in zip(read, skips):
            own = _takes(each, *skipped)
            takes = own if takes is None else takes if own is None else takes & own
        arrays = [_with_nan(np, each, skipped[0]) for each, skipped in zip(read, skips)]
        if takes is None:
            return function(self, arrays)
        if takes.ndim == 1:
            return function(GroupRows(self.numbers[takes], self.count), [a[takes] for a in arrays])
        shape = takes.shape[1:]
        flat = [a.reshape(len(a), -1) for a in arrays]
        results = []
        for column, taken in enumerate(takes.reshape(len(takes), -1).T):
            rows = GroupRows(self.numbers[taken], self.count)
            results.append(function(rows, [a[taken, column] for a in flat]))
        stacked = (np.ma if any(map(np.ma.isMaskedArray, results)) else np).stack(results, 1)
        return stacked.reshape((self.count, *shape, *stacked.shape[2:]))

    def reduced(
        self, call: Call, read: Sequence[Values], skips: Sequence[tuple[bool, bool]],
        names: tuple[str, str] = ("values", "weights"),
    ) -> Any:  # fmt: skip
        """Returns the results of an operation of one input or two, which messages call by these names."""
        call.threads, call.grid = check_threads(call.threads), check_grid(call.grid)
        np, numpy, operation, method, grid = self.np, library_of([]), call.operation, call.method, call.grid

        def reduce(rows: GroupRows, arrays: list[Any]) -> Any:
            formats = {format_of(a.dtype, name) for name, a in zip(names, arrays)}
            if formats == {"int"} and operation in EXACT_OPERATIONS and is_exact(method, operation) and grid is None:
                return rows._integers(operation, arrays[0])
            if len(arrays) > 1:
                arrays = [floats_for(numpy, operation, a, method, name) for name, a in zip(names, arrays)]
                arrays = same_type(numpy, *arrays)
            arrays = [np.ascontiguousarray(a) for a in arrays]
            chosen = method_of(method, operation, method_format(arrays[0].dtype), -1)
            by_key = _method_by_key(chosen, grid)
            run = Call(operation, method=by_key or chosen, threads=call.threads, grid=grid, ddof=call.ddof)
            if by_key is None:
                arrays = [floats_for(numpy, operation, a, method, name) for name, a in zip(names, arrays)]
                return rows._by_segments(run, arrays)
            run.x, run.keys = arrays[0], rows.numbers
            in_floats_by_key(run, names[0])
            run.result = result = numpy.empty((self.count, *run.x.shape[1:]), DTYPES[by_key.format], run.x)
            run_by_key(run)
            if operation == "mean" and len(run.keys) > len(rows):
                result *= 2
            if operation in ("min", "max") and len(rows) < len(self):  # samesum.min of nothing is infinite
                result[np.bincount(rows.numbers, minlength=self.count) == 0] = math.nan
            return result

        return self.packed(read, skips, reduce)

    def of_equal_sizes(self, arrays: Sequence[Any], function: Callable[..., Any]) -> Any:
        """Returns the results of all groups: function(*matrices) for all groups of a size, with a row for each group.

        It returns an array whose first axis is that of the groups. The arrays are vectors.
        """
        np = self.np
        order, offsets = self.order()
        sizes = np.diff(offsets)
        by_size = np.argsort(sizes, kind="stable")
        parts = np.split(by_size, np.flatnonzero(np.diff(sizes[by_size])) + 1)
        found = []
        for groups in parts:
            places = order[offsets[groups][:, None] + np.arange(sizes[groups[0]] if len(groups) else 0)]
            found.append(function(*(a[places] for a in arrays)))
        results = np.concatenate(found)
        results[by_size] = results.copy()
        return results

    def _by_segments(self, call: Call, arrays: list[Any]) -> Any:
        """Reduces the values in the order of their groups, in which those of a group are a segment."""
        np, numpy, method = self.np, library_of([]), call.method
        order, offsets = self.order()
        shape, n, groups = arrays[0].shape[1:], len(order), self.count
        inner = math.prod(shape)
        columns = [np.ascontiguousarray(a.reshape(n, inner).T[:, order]) for a in arrays]
        ends = [offsets[:-1] + column * n for column in range(inner)]
        all_offsets = np.concatenate([*ends, np.array([inner * n], np.int64)])
        dtype = "int64" if method.returns_index else DTYPES[method.format]
        result = numpy.empty((inner, groups, method.results), dtype, arrays[0])
        if inner * groups:
            call.library, call.format = numpy, format_of(arrays[0].dtype)
            call.layout = Layout(inner * groups, 0, 1, 0, 1)
            call.x, call.y, call.offsets, call.result = columns[0], columns[-1], all_offsets, result
            _core.run(call)
        last = (method.results,) if method.results > 1 else ()
        return np.ascontiguousarray(result.transpose(1, 0, 2)).reshape((groups, *shape, *last))

    def _integers(self, operation: str, a: Any) -> Any:
        """Returns the exact sums or extrema of integers; masked ones if a group has no extremum."""
        np, numpy = self.np, library_of([])
        order, offsets = self.order()
        has_any = offsets[1:] > offsets[:-1]
        starts = offsets[:-1][has_any]
        name = dtype_name(a.dtype)

        def totals(x: Any) -> Any:
            result = np.zeros((self.count, *a.shape[1:]), x.dtype)
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
        result = np.zeros((self.count, *a.shape[1:]), a.dtype)
        if len(starts):
            result[has_any] = extremum.reduceat(a[order], starts, 0)
        if not has_any.all():
            result = np.ma.array(result)
            result[~has_any] = np.ma.masked
        return result


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
    a = read.array.copy()
    if a.dtype.kind in "iub":
        a[~read.valid] = 0
        a = in_floats(library_of([]), a, "values")
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
