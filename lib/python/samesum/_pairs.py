"""Covariance, correlation and simple linear regression, from exact cross moments."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ._calls import check_threads, correction_of, delivered
from ._layout import paired, reduced_shape
from ._pair_masks import as_variables, masked_lines, masked_matrix, may_leave_out
from ._rational import Dyadic, Rows, Sum, as_rows, exact_sums, rounded_quotient, rounded_ratio_to_root
from ._weights import (
    as_array, as_correction, divided, per_element, read_inputs, require_kind, require_no_negative, sum_is_zero,
)  # fmt: skip


class _Moments:
    """The exact sums of weights w, of w·x and of w·x·y, for variables that are rows of n elements."""

    def __init__(self, library: Any, format: str, n: int, weights: Any, threads: int) -> None:
        self.library, self.format, self.n, self.threads = library, format, n, threads
        self.w = weights
        if weights is not None:
            require_no_negative(weights.elements)

    def sums(self, rows: int, *factors: Rows) -> list[Sum]:
        given = factors if self.w is None else (self.w, *factors)
        return exact_sums(self.library, self.format, given, rows, self.n, self.threads)

    def totals(self, rows: int) -> list[Sum]:
        """Returns the sums of the weights, n without any."""
        if self.w is None:
            return [Sum(Dyadic(self.n), 0)] * rows
        totals = self.sums(rows)
        if self.n > 0 and any(t.is_zero for t in totals):
            raise sum_is_zero()
        return totals


def _moment(total: Sum, of_x: Sum, of_y: Sum, of_xy: Sum) -> Dyadic:
    """Returns Σw·Σwxy - Σwx·Σwy."""
    return total.value * of_xy.value - of_x.value * of_y.value


def _are_finite(*sums: Sum) -> bool:
    return not any(s.is_special for s in sums)


class _Matrix:
    """The cross moments of all pairs of variables of cov and corrcoef."""

    def __init__(self, function: str, x: Any, y: Any, axis: int, weights: Any, dtype: Any, threads: int) -> None:
        threads = check_threads(threads)
        others = {name: a for name, a in (("y", y), ("weights", weights)) if a is not None}
        inputs = read_inputs(function, x, others, dtype)
        self.library, self.format = inputs.library, inputs.widest
        arrays = dict(zip(("x", *others), inputs.arrays))
        w = arrays.pop("weights", None)
        variables = [as_variables(self.library, name, a, axis) for name, a in arrays.items()]
        n = variables[0].shape[1]
        if variables[-1].shape[1] != n:
            raise ValueError(
                f"samesum: x has {n} observations and y {variables[-1].shape[1]}; pass as many, or another axis="
            )
        if w is not None and tuple(w.shape) != (n,):
            raise ValueError(
                f"samesum: weights has shape {tuple(w.shape)}; pass one weight for each of the {n} observations"
            )
        a = variables[0] if y is None else self.library.namespace.concatenate(variables)
        self.rows = self.library.contiguous(a)
        self.count = a.shape[0]
        self.shape = () if self.count == 1 else (self.count, self.count)
        weight_rows = None if w is None else Rows(self.library.contiguous(w), 0)
        self.moments = _Moments(self.library, inputs.format, n, weight_rows, threads)
        self.total = self.moments.totals(1)[0]
        self.squares = self.total if weight_rows is None else self.moments.sums(1, weight_rows)[0]
        of_x = self.moments.sums(self.count, Rows(self.rows, n)) if self.count else []
        self.is_finite = [_are_finite(self.total, s) for s in of_x]
        self.of_pairs: list[list[Dyadic]] = []
        """For each variable, its moments with itself and with those after it. They count if both are finite."""
        for i, of_i in enumerate(of_x):
            left = self.count - i
            products = self.moments.sums(left, Rows(self.rows[i], 0), Rows(self.rows[i:], n))
            self.of_pairs.append([_moment(self.total, of_i, of_j, p) for of_j, p in zip(of_x[i:], products)])

    def result(self, entry: Any, x: Any) -> Any:
        """Returns the symmetric matrix of entry(i, j, moment) for i <= j."""
        m = self.count
        values = [math.nan] * (m * m)
        for i, moments in enumerate(self.of_pairs):
            for j, moment in enumerate(moments, i):
                if self.is_finite[i] and self.is_finite[j]:
                    values[i * m + j] = values[j * m + i] = entry(i, j, moment)
        return delivered(self.library, as_array(self.library, values, self.shape, self.format), x)


def cov(
    x: Any, y: Any = None, /, *, axis: int = -1, correction: float | None = None, ddof: float | None = None,
    weights: Any = None, weights_are: str = "frequencies", dtype: Any = None, threads: int = 0, where: Any = None,
    skipna: bool = False,
) -> Any:  # fmt: skip
    """Returns the covariance matrix of variables, each entry correctly rounded.

    Entry (i, j) is (n·Σxy - Σx·Σy) / (n·(n - correction)) for the variables x = i and y = j, with weights
    (W·Σwxy - Σwx·Σwy) / (W·(W - correction)) for W = Σw. All sums are exact, and the quotient is rounded once: the
    error is at most half a unit in the last place, however large the means are. Promise: `order_free`. Diagonal entries
    have the bits of `samesum.var`. An entry takes some 20 µs, beside the time for the products of its elements.

    >>> cov([[1e9, 1e9 + 1, 1e9 + 2], [3.0, 2.0, 1.0]]).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    >>> float(cov([1.0, 2.0, 4.0], [1.0, 2.0, 4.0], weights=[2, 1, 1])[0, 1])
    2.0

    Parameters
    ----------
    x
        a matrix with a variable in each row and an observation in each column, or a vector: one variable. It is an
        array of NumPy, PyTorch (without gradients) or JAX in host memory, a buffer or a list. Integers are converted to
        fp64.
    y
        further variables with the same observations, which come after those of x.
    axis
        the axis of the observations: 0 if variables are columns, which NumPy calls rowvar=False.
    correction, ddof
        subtracted from the number of observations in the divisor. Default: 1, as for NumPy.
    weights
        a vector with a weight of 0 or more for each observation.
    weights_are
        'frequencies': how often an observation occurred, NumPy's fweights; the divisor is Σw - correction.
        'reliabilities': how much an observation counts, NumPy's aweights; it is Σw - correction·Σw²/Σw.
    dtype
        elements are converted to this type first.
    threads
        largest number of threads; 0 for one per processor. It never changes the bits.
    where
        booleans, one for each observation or, without y, for each element of x: elements where it is false are as if
        absent. Entry (i, j) then is that of the observations of which variables i and j both take part, as in pandas;
        so such a matrix may have negative eigenvalues.
    skipna
        whether elements that are NaN, or whose weight is, are as if absent, too.

    Returns
    -------
    result
        a matrix of the library of x, in the widest format of the arguments; without axes for one variable. Entries of
        variables with NaN or infinities, and all if nothing is left to divide by, are NaN.

    Raises
    ------
    ValueError
        if shapes do not fit, or a weight is negative.
    ZeroDivisionError
        if weights sum to zero.
    """
    require_kind(weights_are)
    subtracted = as_correction(1.0 if correction is None and ddof is None else correction_of(correction, ddof))
    if may_leave_out(x, y, where, skipna):
        options = {"correction": correction, "ddof": ddof, "weights_are": weights_are, "threads": threads}
        return masked_matrix(cov, x, y, axis, weights, dtype, where, skipna, **options)
    matrix = _Matrix("cov", x, y, axis, weights, dtype, threads)
    total = matrix.total.value
    squares = matrix.squares.value if weights_are == "reliabilities" else total
    return matrix.result(lambda i, j, moment: divided(moment, total, subtracted, squares, matrix.format), x)


def corrcoef(
    x: Any, y: Any = None, /, *, axis: int = -1, weights: Any = None, dtype: Any = None, threads: int = 0,
    where: Any = None, skipna: bool = False,
) -> Any:  # fmt: skip
    """Returns the matrix of Pearson's correlation coefficients of variables, each correctly rounded.

    Entry (i, j) is C(i, j) / √(C(i, i)·C(j, j)) for the moments C of `cov`. They are exact, and the quotient by the
    root is rounded once: the error is at most half a unit in the last place, so that no entry is beyond ±1, and those
    of variables on one line are ±1. Promise: `order_free`. An entry takes some 30 µs, beside the time for the products
    of its elements.

    >>> corrcoef([[0.1, 0.2, 0.4], [1e9 + 0.5, 1e9 + 0.25, 1e9]], axis=1).round(6).tolist()
    [[1.0, -0.981981], [-0.981981, 1.0]]

    Parameters
    ----------
    x, y, axis, weights, dtype, threads, where, skipna
        as for `cov`. The divisors cancel, so that both kinds of weights have one result.

    Returns
    -------
    result
        as for `cov`. Entries of a variable that is constant, or that has NaN or infinities, are NaN.

    Raises
    ------
    ValueError
        if shapes do not fit, or a weight is negative.
    ZeroDivisionError
        if weights sum to zero.
    """
    if may_leave_out(x, y, where, skipna):
        return masked_matrix(corrcoef, x, y, axis, weights, dtype, where, skipna, threads=threads)
    matrix = _Matrix("corrcoef", x, y, axis, weights, dtype, threads)

    def entry(i: int, j: int, moment: Dyadic) -> float:
        variances = matrix.of_pairs[i][0] * matrix.of_pairs[j][0]
        return rounded_ratio_to_root(moment, variances, matrix.format) if variances.integer > 0 else math.nan

    return matrix.result(entry, x)


class LinearRegression(NamedTuple):
    """The line y = slope·x + intercept."""

    slope: Any
    intercept: Any


def linear_regression(
    x: Any, y: Any, /, *, axis: Any = -1, weights: Any = None, dtype: Any = None, threads: int = 0, where: Any = None,
    skipna: bool = False,
) -> LinearRegression:  # fmt: skip
    """Returns slope and intercept of the line with the least squared distances from y, both correctly rounded.

    The slope is (n·Σxy - Σx·Σy) / (n·Σx² - (Σx)²), the intercept (Σy·Σx² - Σx·Σxy) over the same divisor. All sums
    are exact, and each quotient is rounded once, so that the intercept does not depend on the rounded slope: the error
    of both is at most half a unit in the last place. Promise: `order_free`. A line takes some 40 µs, beside the time
    for its elements.

    >>> linear_regression([0.0, 1.0, 2.0], [1.0, 3.0, 5.0])
    LinearRegression(slope=2.0, intercept=1.0)
    >>> linear_regression([1e9, 1e9 + 1, 1e9 + 2], [1.0, 3.0, 5.0]).intercept
    -1999999999.0

    Parameters
    ----------
    x
        an array of NumPy, PyTorch (without gradients) or JAX in host memory, a buffer or a list. Integers are converted
        to fp64.
    y
        the array of the dependent variable, whose length along `axis` is that of x. Other axes are broadcast.
    axis
        the axis of the observations, or a tuple of axes; None for all. Each index of the others has a line.
    weights
        weights of 0 or more for the squared distances: one for each observation, or for each element.
    dtype
        elements are converted to this type first.
    threads
        largest number of threads; 0 for one per processor. It never changes the bits.
    where
        booleans that are broadcast to the pairs of x and y: those where it is false are as if absent.
    skipna
        whether pairs with a NaN, or whose weight is NaN, are as if absent, too.

    Returns
    -------
    slope, intercept
        a named tuple of arrays of the library of x, in the widest format of the arguments; for lists of numbers. Both
        are NaN if all x are equal, or if an element is NaN or infinite.

    Raises
    ------
    ValueError
        if shapes do not fit, or a weight is negative.
    ZeroDivisionError
        if weights sum to zero.
    """
    if may_leave_out(x, y, where, skipna):
        return masked_lines(linear_regression, x, y, axis, weights, dtype, where, skipna, threads=threads)
    threads = check_threads(threads)
    inputs = read_inputs("linear_regression", x, {"y": y} if weights is None else {"y": y, "weights": weights}, dtype)
    library = inputs.library
    a, b, axes = paired(library.namespace, *inputs.arrays[:2], axis)
    a, b = library.broadcast(a, b)
    shape = tuple(a.shape)
    kept = reduced_shape(shape, axes, False)
    rows, n = math.prod(kept), math.prod(shape[d] for d in axes)
    w = None if weights is None else as_rows(library, per_element(library, inputs.arrays[2], shape, axis, axes), axes)
    moments = _Moments(library, inputs.format, n, w, threads)
    of_a, of_b = as_rows(library, a, axes), as_rows(library, b, axes)
    factors = ((of_a,), (of_b,), (of_a, of_a), (of_a, of_b))
    slopes, intercepts = [], []
    for total, sx, sy, sxx, sxy in zip(moments.totals(rows), *[moments.sums(rows, *f) for f in factors]):
        divisor = _moment(total, sx, sx, sxx)
        has_line = _are_finite(total, sx, sy) and divisor.integer > 0
        at_zero = sy.value * sxx.value - sx.value * sxy.value
        for values, moment in ((slopes, _moment(total, sx, sy, sxy)), (intercepts, at_zero)):
            values.append(rounded_quotient(moment, divisor, inputs.widest) if has_line else math.nan)
    return LinearRegression(
        *[delivered(library, as_array(library, v, kept, inputs.widest), x) for v in (slopes, intercepts)]
    )
