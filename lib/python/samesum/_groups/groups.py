"""Groups of rows with equal keys, and their methods: what `groupby` returns."""

from __future__ import annotations

import math
from typing import Any, Callable, Sequence

from .._calls.arguments import Call, correction_of
from .._calls.methods import Method
from .._elements.library import library_of
from .._elements.traced import square_root
from .._frames.results import nullable
from .._functions import reductions as functions
from .._statistics import pairs
from .._statistics.weights import require_kind
from .arguments import GroupColumns, skipped
from .columns import Frame, family_of, taken
from .results import in_frame, in_library_of, named_by, pandas_index
from .rows import GroupRows, NumberedRows

Reduction = Callable[[str, Any], Any]
"""A function of the name of an argument and a column, which returns the results of all groups."""


class GroupBy:
    """Groups of rows with equal keys: what `groupby` returns.

    Methods share these arguments. `values`: a number for each row, or the names of columns, as in `groupby`. `weights`:
    a number for each row or for each value, or the name of a column; a value whose weight is skipped takes no part.
    `method`: name of a method of the operation, as for `samesum.sum`; default: exact. `skipna`: True skips NaN and
    null, False neither (a group with null then has NaN), None what the library of the values skips: pandas both, polars
    and Arrow null, masked arrays what they hide, other arrays nothing; functions such as `samesum.sum` keep NaN, of
    pandas too. `threads`: largest number of threads, 0 for one per processor. `grid`: for the accumulator fixed_point.
    The sum of no values is 0, other results for them are NaN; extrema of integers are null, and masked in an array.
    """

    groups: Any
    """The key of each group."""

    def __init__(
        self, columns: list[tuple[Any, Any]], is_one: bool, frame: Frame | None, rows: NumberedRows
    ) -> None:
        self._columns = GroupColumns(frame, columns, rows.kept)
        self._groups, self._first = GroupRows(rows.numbers, len(rows.first)), rows.first
        self._keys = [(name, taken(column, self._first)) for name, column in columns]
        names = [name for name, _ in columns]
        if is_one:
            self.groups = self._keys[0][1]
            if family_of(self.groups) == "pandas":
                self.groups = pandas_index(self._keys)
        elif names != [None] and len({*names}) == len(names):
            self.groups = dict(self._keys)
        else:
            self.groups = tuple(column for _, column in self._keys)

    @property
    def _np(self) -> Any:  # no attribute, since modules cannot be pickled
        return library_of([]).np

    def __len__(self) -> int:
        return len(self._first)

    # --- reductions ---------------------------------------------------------------------------------------------

    def sum(
        self, values: Any = None, *, weights: Any = None, method: str | Method | None = None,
        skipna: bool | None = None,
        threads: int = 0, grid: int | None = None,
    ) -> Any:  # fmt: skip
        """Returns the sum of the values of each group, by default correctly rounded.

        Sums of integers are exact, and raise OverflowError beyond 64 bits. With weights it is the dot product Σwx, by a
        method of dot. See `GroupBy` for the arguments.
        """
        if weights is None:
            return self._reduced(Call("sum", values, method=method, skipna=skipna, threads=threads, grid=grid))
        call = Call("dot", method=method, threads=threads, grid=grid)
        return self._weighted(
            values, weights, lambda read, skips: self._groups.reduced(call.copy(), read, skips), skipna
        )

    def mean(
        self, values: Any = None, *, weights: Any = None, method: str | Method | None = None,
        skipna: bool | None = None,
        threads: int = 0, grid: int | None = None,
    ) -> Any:  # fmt: skip
        """Returns the mean of the values of each group, by default correctly rounded.

        With weights it is Σwx / Σw, by the exact method alone. See `GroupBy` for the arguments.
        """
        if weights is None:
            return self._reduced(Call("mean", values, method=method, skipna=skipna, threads=threads, grid=grid))
        options = {"method": method, "threads": threads, "grid": grid}
        return self._weighted(values, weights, self._by_size(functions.mean, options), skipna)

    def var(
        self, values: Any = None, *, correction: float | None = None, ddof: float | None = None, weights: Any = None,
        weights_are: str = "frequencies", method: str | Method | None = None, skipna: bool | None = None,
        threads: int = 0,
    ) -> Any:  # fmt: skip
        """Returns the variance of the values of each group, by default correctly rounded.

        The sum of squared deviations is divided by n - correction, as in `samesum.var`; the default of pandas and
        polars is 1. `ddof` is another name for it. `weights_are` is 'frequencies' or 'reliabilities', as there. See
        `GroupBy` for the other arguments.
        """
        divisor = correction_of(correction, ddof)
        if weights is None:
            require_kind(weights_are)
            call = Call("moments", values, method=method, skipna=skipna, threads=threads, ddof=divisor)
            return self._reduced(call, _variance)
        options = {"correction": divisor, "weights_are": weights_are, "method": method, "threads": threads}
        return self._weighted(values, weights, self._by_size(functions.var, options), skipna)

    def std(
        self, values: Any = None, *, correction: float | None = None, ddof: float | None = None, weights: Any = None,
        weights_are: str = "frequencies", method: str | Method | None = None, skipna: bool | None = None,
        threads: int = 0,
    ) -> Any:  # fmt: skip
        """Returns the standard deviation of the values of each group: the rounded square root of `var`."""
        divisor = correction_of(correction, ddof)
        if weights is None:
            require_kind(weights_are)
            call = Call("moments", values, method=method, skipna=skipna, threads=threads, ddof=divisor)
            return self._reduced(call, _deviation)
        options = {"correction": divisor, "weights_are": weights_are, "method": method, "threads": threads}
        return self._weighted(values, weights, self._by_size(functions.std, options), skipna)

    def min(
        self, values: Any = None, *, method: str | Method | None = None, skipna: bool | None = None, threads: int = 0
    ) -> Any:
        """Returns the smallest value of each group. See `GroupBy` for the arguments."""
        return self._reduced(Call("min", values, method=method, skipna=skipna, threads=threads))

    def max(
        self, values: Any = None, *, method: str | Method | None = None, skipna: bool | None = None, threads: int = 0
    ) -> Any:
        """Returns the largest value of each group. See `GroupBy` for the arguments."""
        return self._reduced(Call("max", values, method=method, skipna=skipna, threads=threads))

    def count(self, values: Any = None, *, skipna: bool | None = None) -> Any:
        """Returns the number of values of each group, as int64; without values, the number of its rows."""
        if values is None and self._columns.frame is None:
            return self._sizes()
        return self._assembled(values, self._counting(skipna))

    def size(self) -> Any:
        """Returns the number of rows of each group, as int64, whatever they hold."""
        families = [family_of(column) for _, column in self._keys]
        family = self._columns.frame.family if self._columns.frame else next(filter(None, families), "")
        sizes = self._sizes()
        return in_frame(family, self._keys, [("size", sizes)], False, "size", "size") if family else sizes

    def first(self, values: Any = None, *, skipna: bool | None = None) -> Any:
        """Returns the first value of each group, of any type; if all are skipped, the first of these."""
        return self._assembled(values, self._first_of(skipna))

    def agg(
        self, operations: Any, values: Any = None, *, correction: float | None = None, ddof: float | None = None,
        skipna: bool | None = None, threads: int = 0,
    ) -> Any:  # fmt: skip
        """Returns the results of several operations, each of them what the method of its name returns.

        `operations`: the name of a method (sum, mean, var, std, min, max, count, size or first), a list of such names,
        or a dict of these by the names of columns. As in pandas, the results of lists have both names: there in two
        levels, in polars and Arrow joined to "column_operation". A list for one column has the names of the operations,
        which for arrays are the keys of a dict. `correction`, or `ddof`, is for var and std, and is 0 unless given. See
        `GroupBy` for the other arguments.

        >>> import samesum
        >>> groups = samesum.groupby(["b", "a", "b"])
        >>> {name: result.tolist() for name, result in groups.agg(["sum", "max"], [1.0, 5.0, 2.0]).items()}
        {'sum': [5.0, 3.0], 'max': [5.0, 2.0]}
        """
        reductions = self._reductions(skipna, threads, correction_of(correction, ddof))
        if isinstance(operations, dict):
            if self._columns.frame is None or values is not None:
                raise TypeError(
                    "samesum: groupby: operations is a dict of names of columns, which only groupby(frame, by) has; "
                    "leave out values, or pass a list of operations"
                )
            frame, has_many = self._columns.frame, True
            family = frame.family
            each = [(column, of) for name, of in operations.items() for column in frame.all("operations", name)]
        else:
            family, columns, has_many = self._columns.named("values", values)
            each = [(column, operations) for column in columns]
        is_list = any(not isinstance(of, str) for _, of in each)
        results = []
        for (name, column), of in each:
            for operation in _names_of_operations(of, reductions):
                result = nullable(family, reductions[operation](f"values[{name!r}]" if has_many else "values", column))
                shown = named_by(family, name, operation) if is_list and has_many else operation if is_list else name
                results.append((shown, result))
        if family:
            return in_frame(family, self._keys, results, has_many or is_list)
        found = {label: in_library_of(each[0][0][1], result) for label, result in results}
        return found if is_list else next(iter(found.values()))

    def dot(
        self, x: Any, y: Any, *, method: str | Method | None = None, skipna: bool | None = None, threads: int = 0,
        grid: int | None = None,
    ) -> Any:  # fmt: skip
        """Returns the dot product of the values x and y of each group, by default correctly rounded.

        See `GroupBy` for the arguments. x and y are numbers for each row, or names of columns.
        """
        x, read = self._columns.read_pair(x, y, None, skipna)
        call = Call("dot", method=method, threads=threads, grid=grid)
        result = self._groups.reduced(call, read.values, read.skips, names=("x", "y"))
        return self._assembled(x, lambda *_: result, "x", "dot")

    def cov(
        self, x: Any, y: Any, *, correction: float | None = None, ddof: float | None = None, weights: Any = None,
        weights_are: str = "frequencies", skipna: bool | None = None, threads: int = 0,
    ) -> Any:  # fmt: skip
        """Returns the covariance of the values x and y of each group, correctly rounded: entry (0, 1) of `samesum.cov`.

        The default of `correction`, or `ddof`, is 1, as there. A pair of which a value, or the weight, is skipped takes
        no part. See `GroupBy` for the other arguments, and `dot` for x and y.
        """
        require_kind(weights_are)
        return self._paired(
            Call(
                "cov", x, y=y, weights=weights, skipna=skipna, threads=threads,
                ddof=pairs.subtracted(correction, ddof), weights_are=weights_are,
            )
        )  # fmt: skip

    def corrcoef(
        self, x: Any, y: Any, *, weights: Any = None, skipna: bool | None = None, threads: int = 0
    ) -> Any:  # fmt: skip
        """Returns the correlation of the values x and y of each group, correctly rounded: entry (0, 1) of
        `samesum.corrcoef`. See `cov` for the arguments.
        """
        return self._paired(Call("corrcoef", x, y=y, weights=weights, skipna=skipna, threads=threads))

    def linear_regression(
        self, x: Any, y: Any, *, weights: Any = None, skipna: bool | None = None, threads: int = 0
    ) -> pairs.LinearRegression:
        """Returns slopes and intercepts of the lines through the points (x, y) of each group, correctly rounded.

        They are those of `samesum.linear_regression`. See `cov` for the arguments.
        """
        x, read = self._columns.read_pair(x, y, weights, skipna)

        def lines(x: Any, y: Any, w: Any = None) -> Any:
            found = pairs.linear_regression(x, y, axis=1, weights=w, threads=threads)
            return self._np.stack(found, -1)

        both = self._groups.packed(read.values, read.skips, lambda rows, arrays: rows.of_equal_sizes(arrays, lines))
        results = zip(pairs.LinearRegression._fields, self._np.moveaxis(both, -1, 0))
        return pairs.LinearRegression(*[self._assembled(x, lambda *_: r.copy(), "x", name) for name, r in results])

    # --- how they are computed ----------------------------------------------------------------------------------

    def _reduced(self, call: Call, finish: Callable[[Any], Any] | None = None) -> Any:
        return self._assembled(call.x, self._reducing(call, finish))

    def _reducing(self, call: Call, finish: Callable[[Any], Any] | None = None) -> Reduction:
        def reduce(argument: str, column: Any) -> Any:
            read = [self._columns.read(argument, column)]
            result = self._groups.reduced(call.copy(), read, [skipped(column, call.skipna)])
            return result if finish is None else finish(result)

        return reduce

    def _sizes(self) -> Any:
        return self._np.bincount(self._groups.numbers, minlength=len(self))

    def _counting(self, skipna: bool | None) -> Reduction:
        np = self._np

        def count(argument: str, column: Any) -> Any:
            takes = self._columns.not_skipped(argument, column, skipna)
            inner = takes.shape[1:]
            counts = np.empty((len(self), math.prod(inner)), np.int64)
            for place, each in enumerate(takes.reshape(len(takes), counts.shape[1]).T):
                counts[:, place] = np.bincount(self._groups.numbers[each], minlength=len(self))
            return counts.reshape(len(self), *inner)

        return count

    def _first_of(self, skipna: bool | None) -> Reduction:
        np = self._np

        def first(argument: str, column: Any) -> Any:
            takes, places = self._columns.not_skipped(argument, column, skipna), self._first
            if takes.ndim > 1 and not takes.all():
                raise ValueError(
                    f"samesum: groupby: {argument} has {takes.ndim} axes, whose first values are in different rows; "
                    "pass one column"
                )
            if takes.ndim == 1 and not takes.all():
                places = places.copy()
                rows, kept = np.flatnonzero(takes)[::-1], self._columns.kept
                places[self._groups.numbers[rows]] = rows if kept is None else np.flatnonzero(kept)[rows]
            if not family_of(column) and library_of(column).name != "torch":
                column = np.asarray(column)
            return taken(column, places)

        return first

    def _reductions(self, skipna: bool | None, threads: int, ddof: float) -> dict[str, Reduction]:
        """Returns the operations of `agg` by their names."""
        plain = ("sum", "mean", "min", "max")
        found = {name: self._reducing(Call(name, skipna=skipna, threads=threads)) for name in plain}
        moments = Call("moments", skipna=skipna, threads=threads, ddof=ddof)
        found |= {"var": self._reducing(moments, _variance), "std": self._reducing(moments, _deviation)}
        found |= {"count": self._counting(skipna), "size": lambda *_: self._sizes(), "first": self._first_of(skipna)}
        return found

    def _by_size(self, function: Any, options: dict[str, Any]) -> Any:
        """Returns a function of values and weights, with what is skipped, that reduces all groups of a size at once."""

        def reduce(x: Any, w: Any) -> Any:
            return function(x, 1, weights=w, **options)

        return lambda read, skips: self._groups.packed(
            read, skips, lambda rows, arrays: rows.of_equal_sizes(arrays, reduce)
        )

    def _weighted(self, values: Any, weights: Any, function: Any, skipna: bool | None) -> Any:
        left_out = [weights] if self._columns.is_name(weights) else []
        weights = self._columns.column("weights", weights)
        w = self._columns.read("weights", weights)

        def reduce(argument: str, column: Any) -> Any:
            x = self._columns.read(argument, column)
            return function([x, self._columns.spread(w, x)], [skipped(column, skipna), skipped(weights, skipna)])

        return self._assembled(values, reduce, left_out=left_out)

    def _paired(self, call: Call) -> Any:
        """Returns the covariances or correlations of all groups."""
        x, read = self._columns.read_pair(call.x, call.y, call.weights, call.skipna)

        def reduce(x: Any, y: Any, w: Any = None) -> Any:
            of_size = call.copy()
            of_size.x, of_size.y, of_size.weights = x, y, w
            return pairs.covariances_of_rows(of_size)

        result = self._groups.packed(read.values, read.skips, lambda rows, a: rows.of_equal_sizes(a, reduce))
        return self._assembled(x, lambda *_: result, "x", call.operation)

    def _assembled(
        self, values: Any, reduce: Reduction, argument: str = "values", name: str = "", left_out: Sequence[Any] = ()
    ) -> Any:
        """Returns reduce(argument, column) for the values, or for each of their columns, in the caller's type."""
        family, columns, has_many = self._columns.named(argument, values, left_out)
        results = [
            (n, nullable(family, reduce(f"{argument}[{n!r}]" if has_many else argument, column)))
            for n, column in columns
        ]
        if family:
            return in_frame(family, self._keys, results, has_many, argument, name)
        return in_library_of(columns[0][1], results[0][1])


def _variance(moments: Any) -> Any:
    return moments[..., 1].copy()


def _deviation(moments: Any) -> Any:
    return square_root(library_of([]).np, moments[..., 1])


def _names_of_operations(operations: Any, known: dict[str, Reduction]) -> list[str]:
    """Returns the names of operations. Raises ValueError if one is unknown or repeated, TypeError if one is no name."""
    names = [operations] if isinstance(operations, str) else operations
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"samesum: groupby: operations is {operations!r}; pass names such as 'sum', or a list of them")
    for name in names:
        if name not in known:
            raise ValueError(f"samesum: groupby: operations names {name!r}; use {', '.join(known)}")
        if list(names).count(name) > 1:
            raise ValueError(f"samesum: groupby: operations names {name!r} twice; leave one out")
    return list(names)
