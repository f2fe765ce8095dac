"""Covariance, correlation and simple linear regression, from exact cross moments."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._calls.arguments import Call, check_threads, correction_of
from .._calls.results import delivered
from .._elements.formats import DTYPES
from .._elements.layout import paired, reduced_shape
from .inputs import Inputs, as_rows, compute, for_elements, in_one_format, read_arrays
from .pair_masks import (
    as_variables, may_leave_out, pairs_that_take_part, takes_of_variables, without_masks_of_variables,
)  # fmt: skip
from .weights import require_finite, require_kind


def _matrix(call: Call) -> Any:
    """Returns the covariances, or the correlations, of all pairs of variables."""
    source, threads, has_mask = call.x, check_threads(call.threads), may_leave_out(call)
    x, y, seen, call.where = without_masks_of_variables(call)
    others = {name: a for name, a in (("y", y), ("weights", call.weights)) if a is not None}
    library, arrays = read_arrays(call.operation, {"x": x, **others}, call.dtype, has_mask=has_mask)
    call.library = library
    w, xp = arrays.pop("weights", None), library.namespace
    variables = {name: as_variables(library, name, a, call.axis) for name, a in arrays.items()}
    n, of_y = variables["x"].shape[1], variables.get("y", variables["x"]).shape[1]
    if of_y != n:
        raise ValueError(f"samesum: x has {n} observations and y {of_y}; pass as many, or another axis=")
    if w is not None and tuple(w.shape) != (n,):
        raise ValueError(
            f"samesum: weights has shape {tuple(w.shape)}; pass one weight for each of the {n} observations"
        )
    masks = takes_of_variables(call, arrays, variables, w, seen)
    takes = None if masks["x"] is None else xp.concatenate([*masks.values()])
    if w is not None:
        variables["weights"], masks["weights"] = w, None if takes is None else takes.any(0)
    inputs = in_one_format(library, variables, masks)
    rows = inputs.arrays[0] if y is None else xp.concatenate(inputs.arrays[:2])
    w, count = None if w is None else inputs.arrays[-1], rows.shape[0]
    if takes is not None and count and bool((takes == takes[:1]).all()):  # all have the same observations
        rows, w, takes = rows[:, takes[0]], None if w is None else w[takes[0]], None
    statistic = "covariance_matrix" if call.operation == "cov" else "correlation_matrix"
    of_rows = Call(
        statistic, library.contiguous(rows), threads=threads, ddof=call.ddof, weights_are=call.weights_are,
        library=library, format=inputs.format, result_format=inputs.widest,
    )  # fmt: skip
    of_rows.weights = None if w is None else library.contiguous(w)
    of_rows.where = None if takes is None or not count else library.contiguous(takes)
    matrix = library.empty(() if count == 1 else (count, count), DTYPES[inputs.widest], rows)
    compute(of_rows, matrix)
    return delivered(library, matrix, source)


def covariances_of_rows(call: Call) -> Any:
    """Returns the covariances, or the correlations, of x and y over axis 1: entries (0, 1) of `cov` or `corrcoef`."""
    inputs = in_one_format(*read_arrays("cov", _inputs_of(call)))
    library, a = inputs.library, inputs.arrays[0]
    x, y, *w = [as_rows(library, each, (1,)) for each in inputs.arrays]
    statistic = "correlation" if call.operation == "corrcoef" else "covariance"
    of_rows = Call(
        statistic, x, threads=check_threads(call.threads), ddof=call.ddof, y=y, weights=w[0] if w else None,
        weights_are=call.weights_are, library=library, format=inputs.format, result_format=inputs.widest,
    )  # fmt: skip
    results = library.empty((*a.shape[:1], *a.shape[2:]), DTYPES[inputs.widest], a)
    compute(of_rows, results)
    return results


def _inputs_of(call: Call) -> dict[str, Any]:
    given = {"x": call.x, "y": call.y}
    return given if call.weights is None else {**given, "weights": call.weights}


def subtracted(correction: float | None, ddof: float | None) -> float:
    """Returns what is subtracted from the number of observations in the divisor of a covariance."""
    found = 1.0 if correction is None and ddof is None else correction_of(correction, ddof)
    require_finite(found)
    return found


def _axis_of_observations(axis: int | None, rowvar: bool | None) -> int | None:
    """Returns the axis that `axis` or `rowvar` tells; None if neither is given."""
    if axis is None or rowvar is None:
        return axis if rowvar is None else -1 if rowvar else 0
    if axis in (-2, 0) if rowvar else axis in (-1, 1):
        raise ValueError(
            f"samesum: axis is {axis} and rowvar {rowvar}; axis, of the observations, is 0 if variables are columns "
            "(rowvar=False), and 1 if they are rows (rowvar=True)"
        )
    return axis


def cov(
    x: Any, y: Any = None, /, *, axis: int | None = None, rowvar: bool | None = None, correction: float | None = None,
    ddof: float | None = None, weights: Any = None, weights_are: str = "frequencies", dtype: Any = None,
    threads: int = 0, where: Any = None, skipna: bool = False,
) -> Any:  # fmt: skip
    """Returns the covariance matrix of variables, each entry correctly rounded.

    Entry (i, j) is (n·Σxy - Σx·Σy) / (n·(n - correction)) for the variables x = i and y = j, with weights
    (W·Σwxy - Σwx·Σwy) / (W·(W - correction)) for W = Σw. All sums are exact, and the quotient is rounded once: the
    error is at most half a unit in the last place, however large the means are. Promise: `order_free`. Diagonal entries
    have the bits of `samesum.var`.

    >>> cov([[1e9, 1e9 + 1, 1e9 + 2], [3.0, 2.0, 1.0]]).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    >>> float(cov([1.0, 2.0, 4.0], [1.0, 2.0, 4.0], weights=[2, 1, 1])[0, 1])
    2.0

    Parameters
    ----------
    x
        a matrix with a variable in each row and an observation in each column, or a vector: one variable. It is an
        array of NumPy, PyTorch (without gradients) or JAX in host memory, a buffer or a list; or a frame, for which
        `rowvar` or `axis` must tell what its variables are. Integers are converted to fp64.
    y
        further variables with the same observations, which come after those of x.
    axis
        the axis of the observations: 0 if variables are columns. Default: the last one.
    rowvar
        another way to tell it, as in NumPy: whether variables are rows. In pandas, the variables of a frame are its
        columns: rowvar=False.
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
        if shapes do not fit, a weight is negative, or axis and rowvar contradict each other.
    TypeError
        if x or y is a frame, and neither axis nor rowvar is given.
    ZeroDivisionError
        if weights sum to zero.
    """
    require_kind(weights_are)
    ddof, axis = subtracted(correction, ddof), _axis_of_observations(axis, rowvar)
    call = Call(
        "cov", x, axis, dtype, threads=threads, where=where, skipna=skipna, ddof=ddof, y=y, weights=weights,
        weights_are=weights_are,
    )  # fmt: skip
    return _matrix(call)


def corrcoef(
    x: Any, y: Any = None, /, *, axis: int | None = None, rowvar: bool | None = None, weights: Any = None,
    dtype: Any = None, threads: int = 0, where: Any = None, skipna: bool = False,
) -> Any:  # fmt: skip
    """Returns the matrix of Pearson's correlation coefficients of variables, each correctly rounded.

    Entry (i, j) is C(i, j) / √(C(i, i)·C(j, j)) for the moments C of `cov`. They are exact, and the quotient by the
    root is rounded once: the error is at most half a unit in the last place, so that no entry is beyond ±1, and those
    of variables on one line are ±1. Promise: `order_free`.

    >>> corrcoef([[0.1, 0.2, 0.4], [1e9 + 0.5, 1e9 + 0.25, 1e9]], axis=1).round(6).tolist()
    [[1.0, -0.981981], [-0.981981, 1.0]]

    Parameters
    ----------
    x, y, axis, rowvar, weights, dtype, threads, where, skipna
        as for `cov`. The divisors cancel, so that both kinds of weights have one result.

    Returns
    -------
    result
        as for `cov`. Entries of a variable that is constant, or that has NaN or infinities, are NaN.

    Raises
    ------
    ValueError, TypeError, ZeroDivisionError
        as `cov`.
    """
    axis = _axis_of_observations(axis, rowvar)
    call = Call("corrcoef", x, axis, dtype, threads=threads, where=where, skipna=skipna, y=y, weights=weights)
    return _matrix(call)


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
    of both is at most half a unit in the last place. Promise: `order_free`.

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
        the axis of the observations, or a tuple of axes; None for all. Each index of the others has a line. Frames
        need it.
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
    call = Call(
        "linear_regression", x, axis, dtype, threads=threads, where=where, skipna=skipna, y=y, weights=weights
    )
    count = check_threads(threads)
    inputs, axes, takes = pairs_that_take_part(call) if may_leave_out(call) else _all_pairs(call)
    library, shape = inputs.library, tuple(inputs.arrays[0].shape)
    weights = [library.namespace.broadcast_to(w, shape) for w in inputs.arrays[2:]]
    x_rows, y_rows, *w = [as_rows(library, a, axes, takes) for a in (*inputs.arrays[:2], *weights)]
    flags = None if takes is None else as_rows(library, takes, axes, takes)
    of_rows = Call(
        "linear_regression", x_rows, threads=count, where=flags, y=y_rows, weights=w[0] if w else None, library=library,
        format=inputs.format, result_format=inputs.widest,
    )  # fmt: skip
    kept = reduced_shape(shape, axes, False)
    slope, intercept = (library.empty(kept, DTYPES[inputs.widest], x_rows) for _ in range(2))
    compute(of_rows, slope, intercept)
    return LinearRegression(delivered(library, slope, x), delivered(library, intercept, x))


def _all_pairs(call: Call) -> tuple[Inputs, tuple[int, ...], Any]:
    """Returns what `pairs_that_take_part` does, if all do."""
    inputs = in_one_format(*read_arrays("linear_regression", _inputs_of(call), call.dtype))
    library = inputs.library
    *pair, axes = paired(library.namespace, *inputs.arrays[:2], call.axis)
    inputs.arrays[:2] = library.broadcast(*pair)
    if call.weights is not None:
        inputs.arrays[2] = for_elements(library, inputs.arrays[2], tuple(inputs.arrays[0].shape), call.axis, axes)
    return inputs, axes, None
