"""Weighted sums, means and variances: exact sums of exact products, of which each result is rounded once."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple, Sequence

from ._arrays import DTYPES, format_of, library_of, second_array
from ._calls import MethodName, check_threads, common_type, delivered, in_type, method_of, read, reduce
from ._formats import dtype_name
from ._layout import axes_last, normalised_axes, reduced_shape
from ._rational import Dyadic, Rows, Sum, as_rows, exact_sums, rounded_quotient
from ._selection import counts_of, mask_of, takes_part, without_mask
from ._traced import square_root


class Inputs(NamedTuple):
    """Arrays of one library in host memory, with elements of one format."""

    library: Any
    arrays: list[Any]
    format: str
    widest: str
    """The format of results: the widest one of the arrays as they came."""


def read_inputs(function: str, x: Any, others: dict[str, Any], dtype: Any = None, out: Any = None) -> Inputs:
    """Reads x and the other arguments of a function. Integers are converted to fp64."""
    owner = library_of(x)
    for name, a in {"x": x, **others}.items():
        if library_of(a).is_traced(a):
            raise NotImplementedError(
                f"samesum: {function} has no gradient, and is not traced or compiled; pass {name}.detach(), call it "
                "outside of transformations, or use samesum.vecdot, which has gradients"
            )
    library, first = read(x, out)
    if library.view(first).device >= 0:
        raise ValueError(f"samesum: {function} does not read the memory of a GPU; copy x to the host")
    arrays = [first, *(second_array(library, first, owner.second(a), name) for name, a in others.items())]
    arrays = [in_type(library, a, dtype) for a in arrays]
    for i, name in enumerate(("x", *others)):
        if format_of(arrays[i].dtype, name) == "int":
            arrays[i] = library.astype(arrays[i], "float64")
    names = {dtype_name(a.dtype) for a in arrays}
    widest = functools.reduce(
        lambda one, other: common_type(library.namespace, library.dtype(one), library.dtype(other)), sorted(names)
    )
    if len(names) > 1:  # fp64 holds the numbers of all formats
        arrays = [library.astype(a, "float64") for a in arrays]
    return Inputs(library, arrays, format_of(arrays[0].dtype), format_of(widest))


def exact_format(method: MethodName, operation: str, widest: str) -> str:
    """Returns the format of results by an exact method. Raises ValueError for other methods."""
    chosen = method_of(method, operation, widest, -1)
    if chosen.accumulator != "exact":
        raise ValueError(
            f"samesum: method {chosen.name} takes no weights; leave it out or pass 'exact', or divide two sums"
        )
    return chosen.format


def per_element(library: Any, weights: Any, shape: Sequence[int], axis: Any, axes: tuple[int, ...]) -> Any:
    """Returns weights for each element of an array: they come for each one, or for those along `axis`."""
    given = tuple(weights.shape)
    has_all_axes = len(given) == len(shape)
    if has_all_axes and all(m == n or (m == 1 and d not in axes) for d, (m, n) in enumerate(zip(given, shape))):
        return library.namespace.broadcast_to(weights, tuple(shape))
    named = [a % len(shape) for a in axis] if isinstance(axis, (tuple, list)) else list(axes)
    along = tuple(shape[a] for a in named)
    if given == along:
        ascending = library.transposed(weights, [named.index(a) for a in axes])
        whole = [n if d in axes else 1 for d, n in enumerate(shape)]
        return library.namespace.broadcast_to(ascending.reshape(whole), tuple(shape))
    other = "" if len(along) == len(shape) else f", or of the shape {along}: one for each index along axis {axis}"
    raise ValueError(
        f"samesum: weights has shape {given} and x {tuple(shape)}; pass weights of the shape of x{other}"
    )


class Weighted:
    """The elements of each result and their weights."""

    def __init__(
        self, function: str, operation: str, x: Any, weights: Any, axis: Any, *, dtype: Any = None, out: Any = None,
        keepdims: bool, method: MethodName = None, threads: int = 0, grid: Any = None, where: Any = None,
        skipna: bool = False,
    ) -> None:  # fmt: skip
        self.threads = check_threads(threads)
        if grid is not None:
            raise ValueError(f"samesum: {function} has exact methods, which take no grid; leave it out")
        self.source, where = without_mask(x, where, function)
        self.out, self.keepdims = out, keepdims
        self.library, (a, w), self.input, widest = read_inputs(function, self.source, {"weights": weights}, dtype, out)
        self.format = exact_format(method, operation, widest)
        self.axes = normalised_axes(axis, a.ndim)
        self.shape = tuple(a.shape)
        w = per_element(self.library, w, self.shape, axis, self.axes)
        self.takes = takes_part(self.library, mask_of(self.library, a, where), skipna, a, w)
        if self.takes is not None:  # a weight -0 leaves every sum as it is
            xp = self.library.namespace
            a, w = xp.where(self.takes, a, xp.zeros_like(a)), xp.where(self.takes, w, -xp.zeros_like(w))
        self.n = math.prod(self.shape[d] for d in self.axes)
        self.rows = math.prod(reduced_shape(self.shape, self.axes, False))
        self.x, self.w = (as_rows(self.library, b, self.axes) for b in (a, w))

    def sums(self, *factors: Rows) -> list[Sum]:
        return exact_sums(self.library, self.input, factors, self.rows, self.n, self.threads)

    def totals(self) -> list[Sum]:
        """Returns the sums of the weights. They are zero only for results without elements."""
        totals = self.sums(self.w)
        if any(t.is_zero and has_elements for t, has_elements in zip(totals, self._have_elements(totals))):
            raise sum_is_zero()
        return totals

    def _have_elements(self, totals: list[Sum]) -> list[bool]:
        if self.takes is None or not any(t.is_zero for t in totals):
            return [self.n > 0] * self.rows
        takes = self.library.contiguous(self.library.transposed(self.takes, axes_last(len(self.shape), self.axes)[0]))
        return takes.reshape((self.rows, self.n)).any(1).tolist()

    def delivered(self, values: list[float], finish: Any = None) -> Any:
        array = as_array(self.library, values, reduced_shape(self.shape, self.axes, self.keepdims), self.format)
        if finish:
            array = finish(self.library.namespace, array)
        return delivered(self.library, array, self.source, self.out)


def sum_is_zero() -> ZeroDivisionError:
    return ZeroDivisionError("samesum: weights sum to zero, which divides nothing; pass weights with another sum")


def as_array(library: Any, values: list[float], shape: tuple[int, ...], format: str) -> Any:
    """Returns numbers of a format as an array of a library."""
    xp = library.namespace
    return library.astype(xp.asarray(values, dtype=xp.float64).reshape(shape), DTYPES[format])


def require_no_negative(weights: Any) -> None:
    if bool((weights < 0).any()):
        raise ValueError("samesum: weights has negative numbers; pass weights of 0 or more")


def as_correction(correction: float) -> Dyadic:
    if not 0 <= correction < math.inf:
        raise ValueError(f"samesum: correction is {correction}; it must be a finite number of 0 or more")
    return Dyadic.of(correction)


def require_kind(weights_are: str) -> None:
    if weights_are not in ("frequencies", "reliabilities"):
        raise ValueError(
            f"samesum: weights_are is {weights_are!r}; use 'frequencies', which count elements, or 'reliabilities'"
        )


def divided(moment: Dyadic, total: Dyadic, correction: Dyadic, squares: Dyadic, format: str) -> float:
    """Returns the moment Σw·Σwxy - Σwx·Σwy over Σw·(Σw - correction·squares/Σw); NaN if that is not positive.

    `squares` is Σw for frequencies, Σw² for reliabilities.
    """
    divisor = total * total - correction * squares
    return rounded_quotient(moment, divisor, format) if divisor.integer > 0 else math.nan


# --- the functions --------------------------------------------------------------------------------------------


def weighted_sum(x: Any, weights: Any, axis: Any, *, where: Any, **options: Any) -> Any:
    """Returns Σwx, a dot product. See `_calls.Options` for the keywords."""
    x, where = without_mask(x, where, "sum with weights")
    if library_of(x).is_traced(x) or library_of(weights).is_traced(weights):
        if tuple(getattr(weights, "shape", ())) != tuple(x.shape):
            raise ValueError(
                "samesum: with tracing or gradients, weights must be an array of the shape of x; broadcast them first"
            )
        return reduce("dot", x, weights, axis=axis, where=where, **options)
    library, a = read(x, options["out"])
    w = second_array(library, a, library_of(x).second(weights), "weights")
    axes = normalised_axes(axis, a.ndim)
    return reduce("dot", x, per_element(library, w, tuple(a.shape), axis, axes), axis=axes, where=where, **options)


def _means(w: Weighted) -> tuple[list[float], list[Sum]]:
    """Returns the means, and the sums of the weights."""
    totals = w.totals()

    def mean(terms: Sum, total: Sum) -> float:
        if total.is_zero:
            return math.nan
        if terms.is_special or total.is_special or terms.is_zero:
            return terms.representative() / total.representative()
        return rounded_quotient(terms.value, total.value, w.format)

    return [mean(s, t) for s, t in zip(w.sums(w.w, w.x), totals)], totals


def weighted_mean(x: Any, weights: Any, axis: Any, **options: Any) -> Any:
    """Returns Σwx / Σw, rounded once. See `Weighted` for the keywords."""
    w = Weighted("mean with weights", "mean", x, weights, axis, **options)
    return w.delivered(_means(w)[0])


def weighted_variance(
    x: Any, weights: Any, axis: Any, weights_are: str, *, correction: float, root: bool = False, **options: Any
) -> Any:
    """Returns Σw(x - mean)² over its divisor, rounded once, or the root of that. See `Weighted` for the keywords."""
    require_kind(weights_are)
    subtracted = as_correction(correction)
    w = Weighted(f"{'std' if root else 'var'} with weights", "moments", x, weights, axis, **options)
    require_no_negative(w.w.elements)
    totals = w.totals()
    squares = w.sums(w.w, w.w) if weights_are == "reliabilities" else totals

    def variance(total: Sum, of_x: Sum, of_xx: Sum, square: Sum) -> float:
        if total.is_special or of_x.is_special:
            return math.nan
        moment = total.value * of_xx.value - of_x.value * of_x.value
        return divided(moment, total.value, subtracted, square.value, w.format)

    values = [*map(variance, totals, w.sums(w.w, w.x), w.sums(w.w, w.x, w.x), squares)]
    return w.delivered(values, square_root if root else None)


def average(
    x: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False, where: Any = None,
    skipna: bool = False,
) -> Any:  # fmt: skip
    """Returns the mean over `axis`, of weighted elements if there are weights: Σwx / Σw, correctly rounded.

    Both sums are exact, and their quotient is rounded once: the error is at most half a unit in the last place.
    Promise: `order_free`. Products neither overflow nor underflow. Integers are converted to fp64 first. Results
    take some 15 µs each, beside the time for the elements.

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
    if weights is None:
        mean = reduce("mean", x, axis=axis, keepdims=keepdims, where=where, skipna=skipna)
        if not returned:
            return mean
        source, where = without_mask(x, where, "average with returned=True")
        library, a = read(source)
        axes = normalised_axes(axis, a.ndim)
        takes = takes_part(library, mask_of(library, a, where), skipna, a)
        counts = library.namespace.full_like(mean, math.prod(a.shape[d] for d in axes))
        if takes is not None:
            library.copy_to(counts, counts_of(library, takes, axes).reshape(tuple(counts.shape)))
        return mean, delivered(library, counts, source)
    w = Weighted("average", "mean", x, weights, axis, keepdims=keepdims, where=where, skipna=skipna)
    values, totals = _means(w)
    if not returned:
        return w.delivered(values)
    one = Dyadic(1)
    sums = [t.representative() if t.is_special else rounded_quotient(t.value, one, w.format) for t in totals]
    return w.delivered(values), w.delivered(sums)
