"""The scans, with the names and keywords of NumPy, PyTorch and the array API standard.

Each function passes its arguments, which are all its local names, to a call.
"""

from __future__ import annotations

from typing import Any

from .._calls.arguments import Call
from .._calls.methods import MethodName
from .parameters import described
from .scans import scan


@described
def cumsum(
    x: Any, /, axis: int | None = None, *, exclusive: bool = False, dtype: Any = None, out: Any = None,
    method: MethodName = None, threads: int = 0, grid: int | None = None, where: Any = None, skipna: bool = False,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """Returns the sums of the first elements along `axis`, by default correctly rounded.

    Each result has the bits of `sum` of the first elements, up to and including its own. With `exclusive`, each
    leaves out its own element, so the first result is +0.

    >>> cumsum([1e16, 1.0, 1.0, -1e16]).tolist()
    [1e+16, 1e+16, 1.0000000000000002e+16, 2.0]
    >>> cumsum([1.0, 2.0, 3.0], exclusive=True).tolist()
    [0.0, 1.0, 3.0]

    {parameters}
    """
    return scan(Call("cumsum", **locals()))


@described
def cumprod(
    x: Any, /, axis: int | None = None, *, exclusive: bool = False, dtype: Any = None, out: Any = None,
    method: MethodName = None, threads: int = 0, where: Any = None, skipna: bool = False,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """Returns the products of the first elements along `axis`.

    Intermediate results neither overflow nor underflow. With `exclusive`, each result leaves out its own element,
    so the first one is 1.

    >>> cumprod([1e200, 1e200, 1e-300]).tolist()
    [1e+200, inf, 1e+100]

    {parameters}
    """
    return scan(Call("cumprod", **locals()))


@described
def cummax(
    x: Any, /, axis: int | None = None, *, exclusive: bool = False, dtype: Any = None, out: Any = None,
    method: MethodName = None, threads: int = 0, where: Any = None, skipna: bool = False,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """Returns the maxima of the first elements along `axis`.

    Results are NaN from the first NaN on. With `exclusive`, each leaves out its own element, so the first is -inf.

    >>> cummax([1.0, 3.0, 2.0]).tolist()
    [1.0, 3.0, 3.0]

    {parameters}
    """
    return scan(Call("cummax", **locals()))


@described
def cummin(
    x: Any, /, axis: int | None = None, *, exclusive: bool = False, dtype: Any = None, out: Any = None,
    method: MethodName = None, threads: int = 0, where: Any = None, skipna: bool = False,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """Returns the minima of the first elements along `axis`.

    Results are NaN from the first NaN on. With `exclusive`, each leaves out its own element, so the first is +inf.

    >>> cummin([2.0, 1.0, 3.0]).tolist()
    [2.0, 1.0, 1.0]

    {parameters}
    """
    return scan(Call("cummin", **locals()))


@described
def cumlogsumexp(
    x: Any, /, axis: int | None = None, *, exclusive: bool = False, dtype: Any = None, out: Any = None,
    method: MethodName = None, threads: int = 0, where: Any = None, skipna: bool = False,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """Returns the log(Σ exp(x)) of the first elements along `axis`, in fp64 for elements in fp64, else in fp32.

    With `exclusive`, each result leaves out its own element, so the first is -inf.

    >>> cumlogsumexp([1000.0, 1000.0]).tolist()
    [1000.0, 1000.6931471805599]

    {parameters}
    """
    return scan(Call("cumlogsumexp", **locals()))


@described
def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False, out: Any = None,
    method: MethodName = None, threads: int = 0, grid: int | None = None, where: Any = None, skipna: bool = False,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """Returns what `cumsum` returns, with the arguments of the array API standard.

    An array of several axes needs `axis`. With `include_initial`, +0 comes first, and the result is one longer
    than x.

    >>> cumulative_sum([2.0, 3.0], include_initial=True).tolist()
    [0.0, 2.0, 5.0]

    {parameters}
    """
    return scan(Call("cumsum", function="cumulative_sum", **locals()))


@described
def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False, out: Any = None,
    method: MethodName = None, threads: int = 0, where: Any = None, skipna: bool = False,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """Returns what `cumprod` returns, with the arguments of the array API standard.

    An array of several axes needs `axis`. With `include_initial`, 1 comes first, and the result is one longer
    than x.

    >>> cumulative_prod([2.0, 3.0], include_initial=True).tolist()
    [1.0, 2.0, 6.0]

    {parameters}
    """
    return scan(Call("cumprod", function="cumulative_prod", **locals()))
