"""The reductions, with the names and keywords of the array API standard."""

from __future__ import annotations

from typing import Any

from .._calls.arguments import Call, correction_of
from .._calls.methods import Axis, MethodName
from .._calls.reduction import reduce
from .._elements.layout import VECTOR
from .._elements.traced import square_root
from .._statistics.weights import require_kind, weighted_mean, weighted_sum, weighted_variance
from .cumulative import cumlogsumexp, cummax, cummin, cumprod, cumsum, cumulative_prod, cumulative_sum
from .exponentials import log_softmax, logsumexp, softmax
from .parameters import described


@described
def sum(
    x: Any, /, axis: Axis = None, *, dtype: Any = None, out: Any = None, keepdims: bool = False,
    method: MethodName = None, threads: int = 0, grid: int | None = None, check: bool = False,
    where: Any = None, skipna: bool = False, weights: Any = None,
    dim: Axis = None, keepdim: bool | None = None,
) -> Any:  # fmt: skip
    """Returns the sum of the elements over `axis`, by default correctly rounded.

    The sum of no elements is +0. Sums of integers and booleans are exact in 64 bits: beyond them, a sum on the
    host raises OverflowError; one on a GPU sets a status that `integer_overflow` reads, or with `check=True`
    waits for the GPU and raises. `method="exact/fp64"` rounds the exact sum of integers once, to fp64, whereas
    `dtype="float64"` rounds each integer, and then their sum.

    >>> sum([1e16, 1, 1, -1e16])
    2.0
    >>> sum([1e16, 1, 1, -1e16], method="tree/plain")
    0.0
    >>> sum([0.75, 0.75], method="fixed_point", grid=0)
    2.0
    >>> sum([1e16, 1.0, 1e16], weights=[1, 3, -1])
    3.0

    With weights it is a dot product, Σwx, by a method of dot, which converts integers to fp64.

    {parameters}
    """
    if weights is not None:
        if check:
            raise ValueError("samesum: check is for sums of integers without weights; leave it out")
        call = Call("sum", x, axis, dtype, out, keepdims, method, threads, where, skipna, dim, keepdim, grid)
        call.weights = weights
        return weighted_sum(call)
    return reduce(
        Call("sum", x, axis, dtype, out, keepdims, method, threads, where, skipna, dim, keepdim, grid, check)
    )


@described
def mean(
    x: Any, /, axis: Axis = None, *, dtype: Any = None, out: Any = None, keepdims: bool = False,
    method: MethodName = None, threads: int = 0, grid: int | None = None,
    where: Any = None, skipna: bool = False, weights: Any = None,
    dim: Axis = None, keepdim: bool | None = None,
) -> Any:  # fmt: skip
    """Returns the mean over `axis`, by default correctly rounded.

    The mean of no elements is NaN. That of integers is in fp64.

    >>> mean([0.1] * 10)
    0.1
    >>> mean([1.0, 2.0, 4.0], weights=[3, 0, 1])
    1.75

    With weights it is Σwx / Σw for exact sums, rounded once. Weights that sum to zero raise ZeroDivisionError.

    {parameters}
    """
    if weights is not None:
        call = Call("mean", x, axis, dtype, out, keepdims, method, threads, where, skipna, dim, keepdim, grid)
        call.weights = weights
        return weighted_mean(call)
    return reduce(Call("mean", x, axis, dtype, out, keepdims, method, threads, where, skipna, dim, keepdim, grid))


@described
def var(
    x: Any, /, axis: Axis = None, *, correction: float | None = None, ddof: float | None = None, dtype: Any = None,
    out: Any = None, keepdims: bool = False, method: MethodName = None, threads: int = 0,
    where: Any = None, skipna: bool = False, weights: Any = None, weights_are: str = "frequencies",
    dim: Axis = None, keepdim: bool | None = None,
) -> Any:  # fmt: skip
    """Returns the variance over `axis`, by default correctly rounded.

    The sum of squared deviations is divided by n - correction: 0, the default, gives the variance of a
    population, 1 that of a sample. Exact methods need a whole number; method="tree" takes any. `ddof` is NumPy's name
    for `correction`. PyTorch's default is 1.

    >>> var([1.0, 2.0, 3.0, 4.0], correction=1)
    1.6666666666666667
    >>> var([1.0, 2.0, 4.0], weights=[2, 1, 1], correction=1)
    2.0

    With weights, which must not be negative, it is Σw(x - Σwx/Σw)² over a divisor, rounded once. The divisor for
    weights that are frequencies is Σw - correction, as for elements that occur w times; for reliabilities it is
    Σw - correction·Σw²/Σw. NumPy's `cov` calls them fweights and aweights. Weights that sum to zero raise
    ZeroDivisionError.

    {parameters}
    """
    if weights is not None:
        call = Call("var", x, axis, dtype, out, keepdims, method, threads, where, skipna, dim, keepdim)
        call.ddof = correction_of(correction, ddof)
        call.weights, call.weights_are = weights, weights_are
        return weighted_variance(call)
    require_kind(weights_are)
    divisor = correction_of(correction, ddof)
    return reduce(
        Call(
            "moments", x, axis, dtype, out, keepdims, method, threads, where, skipna, dim, keepdim, None, False,
            divisor, _variance,
        )
    )  # fmt: skip


def _variance(namespace: Any, moments: Any) -> Any:
    variances = moments[..., 1]
    return variances.clone() if hasattr(variances, "clone") else variances.copy()


@described
def std(
    x: Any, /, axis: Axis = None, *, correction: float | None = None, ddof: float | None = None, dtype: Any = None,
    out: Any = None, keepdims: bool = False, method: MethodName = None, threads: int = 0,
    where: Any = None, skipna: bool = False, weights: Any = None, weights_are: str = "frequencies",
    dim: Axis = None, keepdim: bool | None = None,
) -> Any:  # fmt: skip
    """Returns the standard deviation over `axis`: the rounded square root of `var`, whose arguments it has.

    >>> std([1.0, 1.0, 3.0, 3.0])
    1.0

    {parameters}
    """
    if weights is not None:
        call = Call("std", x, axis, dtype, out, keepdims, method, threads, where, skipna, dim, keepdim)
        call.ddof = correction_of(correction, ddof)
        call.weights, call.weights_are = weights, weights_are
        return weighted_variance(call)
    require_kind(weights_are)
    divisor = correction_of(correction, ddof)
    return reduce(
        Call(
            "moments", x, axis, dtype, out, keepdims, method, threads, where, skipna, dim, keepdim, None, False,
            divisor, _deviation,
        )
    )  # fmt: skip


def _deviation(namespace: Any, moments: Any) -> Any:
    return square_root(namespace, moments[..., 1])


@described
def prod(
    x: Any, /, axis: Axis = None, *, dtype: Any = None, out: Any = None, keepdims: bool = False,
    method: MethodName = None, threads: int = 0,
    where: Any = None, skipna: bool = False,
    dim: Axis = None, keepdim: bool | None = None,
) -> Any:  # fmt: skip
    """Returns the product over `axis`. Intermediate results neither overflow nor underflow.

    The product of no elements is 1. That of integers is in fp64.

    >>> prod([1e200, 1e200, 1e-300])
    1e+100

    {parameters}
    """
    return reduce(Call("prod", x, axis, dtype, out, keepdims, method, threads, where, skipna, dim, keepdim))


@described
def min(
    x: Any, /, axis: Axis = None, *, dtype: Any = None, out: Any = None, keepdims: bool = False,
    method: MethodName = None, threads: int = 0,
    where: Any = None, skipna: bool = False,
    dim: Axis = None, keepdim: bool | None = None,
) -> Any:  # fmt: skip
    """Returns the smallest element over `axis`; NaN if there is one.

    The minimum of no floating-point elements is +inf, where NumPy raises an error. Integers have no such number, so
    that of none raises ValueError, or is null in the results of a frame.

    >>> min([3.0, -1.0, 2.0])
    -1.0

    {parameters}
    """
    return reduce(Call("min", x, axis, dtype, out, keepdims, method, threads, where, skipna, dim, keepdim))


@described
def max(
    x: Any, /, axis: Axis = None, *, dtype: Any = None, out: Any = None, keepdims: bool = False,
    method: MethodName = None, threads: int = 0,
    where: Any = None, skipna: bool = False,
    dim: Axis = None, keepdim: bool | None = None,
) -> Any:  # fmt: skip
    """Returns the largest element over `axis`; NaN if there is one.

    The maximum of no floating-point elements is -inf, where NumPy raises an error. Integers have no such number, so
    that of none raises ValueError, or is null in the results of a frame.

    >>> max([3.0, -1.0, 2.0])
    3.0

    {parameters}
    """
    return reduce(Call("max", x, axis, dtype, out, keepdims, method, threads, where, skipna, dim, keepdim))


@described
def argmin(
    x: Any, /, axis: Axis = None, *, out: Any = None, keepdims: bool = False, method: MethodName = None,
    threads: int = 0,
    where: Any = None, skipna: bool = False,
    dim: Axis = None, keepdim: bool | None = None,
) -> Any:  # fmt: skip
    """Returns the first index (int64) of the smallest element over `axis`, or of the first NaN.

    Over several axes, the index counts their elements in row-major order. Without elements it is -1.

    >>> argmin([3.0, -1.0, -1.0])
    1

    {parameters}
    """
    return reduce(Call("argmin", x, axis, None, out, keepdims, method, threads, where, skipna, dim, keepdim))


@described
def argmax(
    x: Any, /, axis: Axis = None, *, out: Any = None, keepdims: bool = False, method: MethodName = None,
    threads: int = 0,
    where: Any = None, skipna: bool = False,
    dim: Axis = None, keepdim: bool | None = None,
) -> Any:  # fmt: skip
    """Returns the first index (int64) of the largest element over `axis`, or of the first NaN.

    Over several axes, the index counts their elements in row-major order. Without elements it is -1.

    >>> argmax([3.0, 7.0, 7.0])
    1

    {parameters}
    """
    return reduce(Call("argmax", x, axis, None, out, keepdims, method, threads, where, skipna, dim, keepdim))


@described
def vecdot(
    x: Any, y: Any, /, *, axis: int = -1, dtype: Any = None, out: Any = None, keepdims: bool = False,
    method: MethodName = None, threads: int = 0, grid: int | None = None,
    where: Any = None, skipna: bool = False,
    dim: int | None = None, keepdim: bool | None = None,
) -> Any:  # fmt: skip
    """Returns the dot products of x and y over `axis`, by default correctly rounded.

    Both inputs have one length along `axis`, which counts the axes of each; their other axes are broadcast.

    >>> vecdot([[1.0, 2.0], [3.0, 4.0]], [1e20, 1.0], method="exact").tolist()
    [1e+20, 3e+20]

    {parameters}
    """
    return reduce(
        Call("dot", x, axis, dtype, out, keepdims, method, threads, where, skipna, dim, keepdim, grid, y=y)
    )


@described
def dot(
    x: Any, y: Any, /, *, dtype: Any = None, out: Any = None, method: MethodName = None, threads: int = 0,
    grid: int | None = None,
    where: Any = None, skipna: bool = False,
) -> Any:  # fmt: skip
    """Returns the dot product of two vectors, by default correctly rounded.

    For arrays of more axes, use `vecdot`. samesum has no matrix product.

    >>> dot([1e20, 1.0, -1e20], [1.0, 3.0, 1.0])
    3.0

    {parameters}
    """
    return reduce(Call("dot", x, VECTOR, dtype, out, False, method, threads, where, skipna, grid=grid, y=y))


@described
def norm(
    x: Any, /, axis: Axis = None, *, dtype: Any = None, out: Any = None, keepdims: bool = False,
    method: MethodName = None, threads: int = 0,
    where: Any = None, skipna: bool = False,
    dim: Axis = None, keepdim: bool | None = None,
) -> Any:  # fmt: skip
    """Returns the Euclidean norm over `axis`, the square root of the sum of squares.

    Squares neither overflow nor underflow. Over two axes it is the Frobenius norm of a matrix.

    >>> norm([3.0, 4.0])
    5.0

    {parameters}
    """
    return reduce(Call("norm", x, axis, dtype, out, keepdims, method, threads, where, skipna, dim, keepdim))


FUNCTIONS = (
    sum, mean, var, std, prod, min, max, argmin, argmax, vecdot, dot, norm, logsumexp, softmax, log_softmax,
    cumsum, cumprod, cummax, cummin, cumlogsumexp, cumulative_sum, cumulative_prod,
)  # fmt: skip
