"""Weighted sums, means and variances: exact sums of exact products, of which each result is rounded once."""

from __future__ import annotations

import math
from typing import Any

from .._arrays.inputs import second_array
from .._arrays.selection import counts_of, mask_of, takes_part, without_mask
from .._calls.arguments import Call, check_threads, names_of_torch
from .._calls.inputs import read
from .._calls.reduction import reduce
from .._calls.results import delivered
from .._elements.formats import DTYPES
from .._elements.layout import normalised_axes, reduced_shape
from .._elements.library import library_of
from .._elements.traced import square_root
from .inputs import as_rows, compute, exact_format, for_elements, in_one_format, read_arrays


def _computed(call: Call, function: str, number: int = 1) -> list[Any]:
    """Returns the mean, the variance or its root of elements with weights. The second of two results is that of Σw."""
    threads = check_threads(call.threads)
    if call.grid is not None:
        raise ValueError(f"samesum: {function} has exact methods, which take no grid; leave it out")
    source, where = without_mask(call.x, call.where, function)
    has_mask = where is not None or bool(call.skipna)
    library, arrays = read_arrays(function, {"x": source, "weights": call.weights}, call.dtype, call.out, has_mask)
    a = arrays["x"]
    axes, shape = normalised_axes(call.axis, a.ndim), tuple(a.shape)
    w = for_elements(library, arrays["weights"], shape, call.axis, axes)
    takes = takes_part(library, mask_of(library, a, where), call.skipna, a, w)
    _, (a, w), format, widest = in_one_format(library, {"x": a, "weights": w}, {"x": takes, "weights": takes})
    statistic = "mean" if call.operation == "mean" else "variance"
    of_results = exact_format(call.method, "mean" if statistic == "mean" else "moments", widest)
    x, w = (as_rows(library, each, axes, takes) for each in (a, library.namespace.broadcast_to(w, shape)))
    flags = None if takes is None else as_rows(library, takes, axes, takes)
    rows = Call(
        statistic, x, threads=threads, where=flags, ddof=call.ddof, weights=w, weights_are=call.weights_are,
        library=library, format=format, result_format=of_results,
    )  # fmt: skip
    kept = reduced_shape(shape, axes, call.keepdims)
    results = [library.empty(kept, DTYPES[of_results], a) for _ in range(number)]
    compute(rows, *results)
    if call.operation == "std":
        results = [square_root(library.namespace, results[0])]
    return [delivered(library, result, source, call.out) for result in results]


def require_no_negative(weights: Any) -> None:
    if bool((weights < 0).any()):
        raise ValueError("samesum: weights has negative numbers; pass weights of 0 or more")


def require_finite(correction: float) -> None:
    if not 0 <= correction < math.inf:
        raise ValueError(f"samesum: correction is {correction}; it must be a finite number of 0 or more")


def require_kind(weights_are: str) -> None:
    if weights_are not in ("frequencies", "reliabilities"):
        raise ValueError(
            f"samesum: weights_are is {weights_are!r}; use 'frequencies', which count elements, or 'reliabilities'"
        )


def weighted_sum(call: Call) -> Any:
    """Returns Σwx, a dot product."""
    names_of_torch(call)
    call.x, call.where = without_mask(call.x, call.where, "sum with weights")
    x, weights = call.x, call.weights
    call.operation, call.second, call.y = "dot", "weights", weights
    if library_of(x).is_traced(x) or library_of(weights).is_traced(weights):
        if tuple(getattr(weights, "shape", ())) != tuple(x.shape):
            raise ValueError(
                "samesum: with tracing or gradients, weights must be an array of the shape of x; broadcast them first"
            )
        return reduce(call)
    wide = call.where is not None or call.dtype is not None
    library, a = read(x, call.out, wide)
    w = second_array(library, a, library_of(x).second(weights), "weights", wide)
    axes, shape = normalised_axes(call.axis, a.ndim), tuple(a.shape)
    call.y = library.namespace.broadcast_to(for_elements(library, w, shape, call.axis, axes), shape)
    call.axis = axes
    return reduce(call)


def weighted_mean(call: Call) -> Any:
    """Returns Σwx / Σw, rounded once."""
    names_of_torch(call)
    return _computed(call, "mean with weights")[0]


def weighted_variance(call: Call) -> Any:
    """Returns Σw(x - mean)² over its divisor, rounded once, or the root of that. `ddof` is the correction."""
    names_of_torch(call)
    require_kind(call.weights_are)
    require_finite(call.ddof)
    return _computed(call, f"{call.operation} with weights")[0]


def average(
    x: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False, where: Any = None,
    skipna: bool = False, dim: Any = None, keepdim: bool | None = None,
) -> Any:  # fmt: skip
    """Returns the mean over `axis`, of weighted elements if there are weights: Σwx / Σw, correctly rounded.

    Both sums are exact, and their quotient is rounded once: the error is at most half a unit in the last place.
    Promise: `order_free`. Products neither overflow nor underflow. Integers are converted to fp64 first.

    >>> average([1.0, 2.0, 4.0], weights=[3, 0, 1])
    1.75
    >>> average([1e308, 1e308], weights=[2, 2])
    1e+308
    >>> average([1.0, 2.0, 4.0], weights=[3, 0, 1], returned=True)
    (1.75, 4.0)
    >>> average([1.0, float("nan"), 4.0], weights=[3, 5, 1], skipna=True)
    1.75

    Parameters
    ----------
    x
        an array of NumPy, PyTorch (without gradients) or JAX in host memory, a buffer or a list, as for `samesum.mean`.
        Without weights, arrays may be on a GPU and have gradients.
    axis
        the axis to reduce, or a tuple of axes; None for all.
    weights
        an array of the shape of x, in which axes that are not reduced may have length 1; or of the lengths of x along
        `axis`, one weight for each index. They may be negative. Default: all 1.
    returned
        whether to return the mean and Σw, rounded once.
    keepdims
        whether reduced axes stay, with length 1.
    where
        booleans that are broadcast to x: elements where it is false are as if absent, and their weights too.
    skipna
        whether elements that are NaN, or whose weight is, are as if absent, too.
    dim, keepdim
        PyTorch's names of axis and keepdims, for tensors only.

    Returns
    -------
    result
        an array of the library of x; for a list a number. Its format is the widest of x and weights. With `returned`,
        a tuple of two.

    Raises
    ------
    ZeroDivisionError
        if weights sum to zero for any result. The mean of no elements is NaN.
    ValueError
        if the shapes do not fit.
    """
    call = Call("mean", x, axis, keepdims=keepdims, where=where, skipna=skipna, dim=dim, keepdim=keepdim)
    names_of_torch(call)
    axis = call.axis
    if weights is None:
        mean = reduce(call)
        if not returned:
            return mean
        source, where = without_mask(x, where, "average with returned=True")
        library, a = read(source, wide=True)
        axes = normalised_axes(axis, a.ndim)
        takes = takes_part(library, mask_of(library, a, where), skipna, a)
        counts = library.namespace.full_like(mean, math.prod(a.shape[d] for d in axes))
        if takes is not None:
            library.copy_to(counts, counts_of(library, takes, axes).reshape(tuple(counts.shape)))
        return mean, delivered(library, counts, source)
    call.weights = weights
    results = _computed(call, "average", 2 if returned else 1)
    return tuple(results) if returned else results[0]
