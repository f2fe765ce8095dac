"""Sums of exponentials and softmax, with the names and keywords of PyTorch and SciPy."""

from __future__ import annotations

from typing import Any

from .._calls.arguments import Call
from .._calls.methods import Axis, MethodName
from .._calls.reduction import reduce
from .parameters import described


@described
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
    return reduce(Call("logsumexp", x, axis, dtype, out, keepdims, method, threads, where, skipna, dim, keepdim))


@described
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
    return reduce(Call("softmax", x, axis, dtype, out, True, method, threads, None, False, dim))


@described
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
    return reduce(Call("log_softmax", x, axis, dtype, out, True, method, threads, None, False, dim))
