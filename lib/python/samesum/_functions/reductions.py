"""The reductions, with the names and keywords of the array API standard."""

from __future__ import annotations

from typing import Any, Callable, Sequence, Union

from .. import _core
from .._calls.reduction import MethodName, correction_of, names_of_torch, reduce
from .._elements.layout import VECTOR
from .._elements.library import library_of
from .._elements.traced import square_root, watches
from .._statistics.weights import require_kind, weighted_mean, weighted_sum, weighted_variance
from .cumulative import cumlogsumexp, cummax, cummin, cumprod, cumsum, cumulative_prod, cumulative_sum
from .rolling import rolling_max, rolling_mean, rolling_min, rolling_std, rolling_sum, rolling_var

Axis = Union[int, Sequence[int], None]
_fast = _core.fast


def _reduced(
    operation: str, x: Any, axis: Axis, dtype: Any, out: Any, keepdims: bool, method: MethodName, threads: int,
    grid: int | None = None, check: bool = False, ddof: float = 0.0, finish: Callable[[Any, Any], Any] | None = None,
    where: Any = None, skipna: bool = False, as_numpy: bool = False,
) -> Any:  # fmt: skip
    """Reduces x by the fast path, if that applies, else by `reduce`."""
    is_plain = dtype is None and out is None and grid is None and where is None and not check
    if is_plain and not (watches and watches[0]()):
        result = _fast(operation, x, method, threads, axis, keepdims, False, ddof, bool(skipna), as_numpy)
        if result is not None:
            if finish is None:
                return result
            library = library_of(x)
            return library.finished(finish(library.namespace, result), x)
    return reduce(
        operation, x, axis=axis, dtype=dtype, out=out, keepdims=keepdims, method=method, threads=threads, grid=grid,
        check=check, ddof=ddof, finish=finish, where=where, skipna=skipna, as_numpy=as_numpy,
    )  # fmt: skip


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
    if dim is not None or keepdim is not None:
        axis, keepdims = names_of_torch(x, axis, dim, keepdims, keepdim)
    if weights is not None:
        if check:
            raise ValueError("samesum: check is for sums of integers without weights; leave it out")
        return weighted_sum(
            x, weights, axis, dtype=dtype, out=out, keepdims=keepdims, method=method, threads=threads, grid=grid,
            where=where, skipna=skipna,
        )  # fmt: skip
    return _reduced("sum", x, axis, dtype, out, keepdims, method, threads, grid, check, where=where, skipna=skipna)


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
    if dim is not None or keepdim is not None:
        axis, keepdims = names_of_torch(x, axis, dim, keepdims, keepdim)
    if weights is not None:
        return weighted_mean(
            x, weights, axis, dtype=dtype, out=out, keepdims=keepdims, method=method, threads=threads, grid=grid,
            where=where, skipna=skipna,
        )  # fmt: skip
    return _reduced("mean", x, axis, dtype, out, keepdims, method, threads, grid, where=where, skipna=skipna)


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
    if dim is not None or keepdim is not None:
        axis, keepdims = names_of_torch(x, axis, dim, keepdims, keepdim)
    if weights is not None:
        return weighted_variance(
            x, weights, axis, weights_are, correction=correction_of(correction, ddof), dtype=dtype, out=out,
            keepdims=keepdims, method=method, threads=threads, where=where, skipna=skipna,
        )  # fmt: skip
    require_kind(weights_are)
    return _reduced(
        "moments", x, axis, dtype, out, keepdims, method, threads, ddof=correction_of(correction, ddof),
        finish=_variance,
        where=where, skipna=skipna,
    )  # fmt: skip


def _variance(namespace: Any, moments: Any) -> Any:
    variances = moments[..., 1]
    return variances.clone() if hasattr(variances, "clone") else variances.copy()


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
    if dim is not None or keepdim is not None:
        axis, keepdims = names_of_torch(x, axis, dim, keepdims, keepdim)
    if weights is not None:
        return weighted_variance(
            x, weights, axis, weights_are, correction=correction_of(correction, ddof), dtype=dtype, out=out,
            keepdims=keepdims, method=method, threads=threads, where=where, skipna=skipna, root=True,
        )  # fmt: skip
    require_kind(weights_are)
    return _reduced(
        "moments", x, axis, dtype, out, keepdims, method, threads, ddof=correction_of(correction, ddof),
        finish=_deviation,
        where=where, skipna=skipna,
    )  # fmt: skip


def _deviation(namespace: Any, moments: Any) -> Any:
    return square_root(namespace, moments[..., 1])


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
    if dim is not None or keepdim is not None:
        axis, keepdims = names_of_torch(x, axis, dim, keepdims, keepdim)
    return _reduced("prod", x, axis, dtype, out, keepdims, method, threads, where=where, skipna=skipna)


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
    if dim is not None or keepdim is not None:
        axis, keepdims = names_of_torch(x, axis, dim, keepdims, keepdim)
    return _reduced("min", x, axis, dtype, out, keepdims, method, threads, where=where, skipna=skipna)


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
    if dim is not None or keepdim is not None:
        axis, keepdims = names_of_torch(x, axis, dim, keepdims, keepdim)
    return _reduced("max", x, axis, dtype, out, keepdims, method, threads, where=where, skipna=skipna)


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
    if dim is not None or keepdim is not None:
        axis, keepdims = names_of_torch(x, axis, dim, keepdims, keepdim)
    return _reduced("argmin", x, axis, None, out, keepdims, method, threads, where=where, skipna=skipna)


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
    if dim is not None or keepdim is not None:
        axis, keepdims = names_of_torch(x, axis, dim, keepdims, keepdim)
    return _reduced("argmax", x, axis, None, out, keepdims, method, threads, where=where, skipna=skipna)


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
    if dim is not None or keepdim is not None:
        axis, keepdims = names_of_torch(x, axis, dim, keepdims, keepdim, default=-1)
    return reduce(
        "dot", x, y, axis=axis, dtype=dtype, out=out, keepdims=keepdims, method=method, threads=threads, grid=grid,
        where=where, skipna=skipna,
    )  # fmt: skip


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
    return reduce(
        "dot", x, y, axis=VECTOR, dtype=dtype, out=out, method=method, threads=threads, grid=grid, where=where,
        skipna=skipna,
    )  # fmt: skip


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
    if dim is not None or keepdim is not None:
        axis, keepdims = names_of_torch(x, axis, dim, keepdims, keepdim)
    return _reduced("norm", x, axis, dtype, out, keepdims, method, threads, where=where, skipna=skipna)


def logsumexp(
    x: Any, /, axis: Axis = None, *, dtype: Any = None, out: Any = None, keepdims: bool = False,
    method: MethodName = None, threads: int = 0,
    where: Any = None, skipna: bool = False,
    dim: Axis = None, keepdim: bool | None = None,
) -> Any:  # fmt: skip
    """Returns log(Σ exp(x)) over `axis`, computed in fp64 for elements in fp64, else in fp32.

    The result for no elements is -inf.

    >>> float(logsumexp([1000.0, 1000.0]))
    1000.6931471805599

    {parameters}
    """
    if dim is not None or keepdim is not None:
        axis, keepdims = names_of_torch(x, axis, dim, keepdims, keepdim)
    return _reduced("logsumexp", x, axis, dtype, out, keepdims, method, threads, where=where, skipna=skipna)


def softmax(
    x: Any, /, axis: Axis = -1, *, dtype: Any = None, out: Any = None, method: MethodName = None, threads: int = 0,
    dim: Axis = None,
) -> Any:  # fmt: skip
    """Returns exp(x) / Σ exp(x) over `axis`: an array of the shape and format of x.

    Elements in fp64 are computed in fp64, others in fp32.

    >>> softmax([[0.0, 0.0], [1000.0, 0.0]]).tolist()
    [[0.5, 0.5], [1.0, 0.0]]

    {parameters}
    """
    if dim is not None:
        axis, _ = names_of_torch(x, axis, dim, default=-1)
    return _reduced("softmax", x, axis, dtype, out, True, method, threads)


def log_softmax(
    x: Any, /, axis: Axis = -1, *, dtype: Any = None, out: Any = None, method: MethodName = None, threads: int = 0,
    dim: Axis = None,
) -> Any:  # fmt: skip
    """Returns x - log(Σ exp(x)) over `axis`: an array of the shape and format of x.

    Elements in fp64 are computed in fp64, others in fp32.

    >>> log_softmax([[1000.0, 0.0]]).tolist()
    [[0.0, -1000.0]]

    {parameters}
    """
    if dim is not None:
        axis, _ = names_of_torch(x, axis, dim, default=-1)
    return _reduced("log_softmax", x, axis, dtype, out, True, method, threads)


_PARAMETERS = {
    "x": "an array of NumPy, PyTorch, CuPy, JAX or any library with DLPack; a buffer, or a list. Its elements are\n"
    "fp16, bf16, fp32, fp64 or integers, taken in row-major order of the reduced axes. Where a correctly rounded\n"
    "function would have to round an integer to fp64 first, it raises OverflowError; pass dtype to round it.",
    "y": "the second input, in the same memory as x; it is broadcast against x.",
    "window": "number of elements of a window, which ends with the element whose result it gives. Beyond the first\n"
    "and the last element there are none. Columns with nulls need skipna=True.",
    "axis": "the axis to reduce, or a tuple of axes; None for all. A scan takes one axis, or None for all elements in\n"
    "row-major order. A rolling operation takes one axis, the last one by default.",
    "min_periods": "the result is NaN if a window has fewer elements; None for the length of the window, which then\n"
    "must not exceed that of the axis.",
    "center": "whether the element is in the middle of its window, which then has (window - 1) // 2 elements behind\n"
    "it.",
    "exclusive": "whether each result leaves out its own element.",
    "include_initial": "whether the result for no elements comes first.",
    "correction, ddof": "subtracted from n in the divisor.",
    "dtype": "elements are converted to this type first, each of them rounded.",
    "out": "an array of the shape and type of the result, to which the result is written.",
    "keepdims": "whether reduced axes stay, with length 1.",
    "method": "name of a method, such as 'tree/kahan' or 'pairwise/plain/fp64'; the result has the format of the\n"
    "method. Default: 'exact' if the operation has it, else 'tree/plain', else the operation's only one. `methods`\n"
    "lists them with their promises, `bound` and `estimate` give bounds on their errors.",
    "threads": "largest number of threads on the host; 0 for one per processor. It never changes the bits.",
    "grid": "for the accumulator fixed_point: terms are rounded to multiples of 2^grid. A sum that overflows the grid\n"
    "raises OverflowError on the host, and is NaN on a GPU. Default: a grid found for each result from its terms.",
    "where": "booleans that are broadcast to x: elements where it is false are as if absent. The result has the bits\n"
    "of the call on the elements that take part, packed in their order, whatever the others hold. For two inputs they\n"
    "are broadcast to the pairs; for a frame, those with one axis are of its rows.",
    "skipna": "whether NaN are as if absent, too. By default NaN is a number, in a column of pandas too, other than\n"
    "in the methods of `groupby`. Nulls are absent in any case.",
    "weights": "an array of the shape of x, in which axes that are not reduced may have length 1, or one of the\n"
    "lengths of x along `axis`. Only weighted sums read the memory of a GPU and have gradients.",
    "weights_are": "'frequencies' or 'reliabilities': see above.",
    "dim": "PyTorch's name of axis, for tensors only. As in PyTorch, () means all axes.",
    "keepdim": "PyTorch's name of keepdims, for tensors only.",
    "check": "whether a sum of integers on a GPU waits, and raises OverflowError.",
}


def _describe_parameters(function: Any) -> None:
    names = function.__code__.co_varnames[: function.__code__.co_argcount + function.__code__.co_kwonlyargcount]
    lines = ["Parameters", "----------"]
    for title, text in _PARAMETERS.items():
        if title.split(",")[0] in names:
            lines += [title, *("    " + line for line in text.split("\n"))]
    lines += [
        "", "Returns", "-------", "result",
        "    an array of the library of x, on its device and in its current stream; for a list a number.",
    ]  # fmt: skip
    function.__doc__ = function.__doc__.replace("{parameters}", "\n    ".join(lines).strip())


FUNCTIONS = (
    sum, mean, var, std, prod, min, max, argmin, argmax, vecdot, dot, norm, logsumexp, softmax, log_softmax,
    cumsum, cumprod, cummax, cummin, cumlogsumexp, cumulative_sum, cumulative_prod,
)  # fmt: skip
ROLLING = (rolling_sum, rolling_mean, rolling_var, rolling_std, rolling_min, rolling_max)
for _function in FUNCTIONS + ROLLING:
    _describe_parameters(_function)
