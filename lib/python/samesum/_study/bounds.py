"""Rigorous bounds on errors: for given elements, and from their number and magnitude."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Sequence

from .. import _core
from .._calls.methods import Method, default_method, find_method
from .._elements.formats import format_of, method_format
from .._elements.in_floats import adds_exactly, held_floats, in_floats, in_two_floats
from .._elements.library import library_of
from .arguments import checked_count, pair_on_host


class Estimate(NamedTuple):
    """A result with a rigorous bound on its error."""

    value: float
    """What the method returns; a float holds it exactly in every format."""
    bound: float
    """At least |value - exact result|; infinity if an overflow cannot be excluded."""
    magnitudes: float
    """Σ|x|, for dot Σ|xy|, rounded up."""
    method: Method


def estimate(x: Any, method: str | Method | None = None, y: Any = None) -> Estimate:
    """Returns the bits that a method returns for all elements of x, and a bound on their error.

    The bound is rigorous: |value - exact result for x as given| <= bound, also where a method rounds integers to fp64.
    For plain sums it is u·Σ|partial sum| over the nodes of the tree (Higham, Accuracy and Stability, §4.2, eq. 4.3), or
    the a-priori bound if that is smaller; for other methods it is the a-priori bound (`bound`) for Σ|x| of the data.
    Elements on a GPU are copied to the host, whose bits are the same.

    >>> e = estimate([0.1] * 10, "tree/plain")
    >>> abs(e.value - 1) <= e.bound < 1e-15
    True

    Raises ValueError for a method that promises nothing, since it has no fixed tree, and OverflowError for integers
    that fp64 does not hold, if no bound is known for what rounding them changes.
    """
    a, b = pair_on_host("estimate", x, y)
    format = method_format(a.dtype)
    operation = "sum" if y is None else "dot"
    if isinstance(method, Method):
        method = method.name
    if method is not None and method.split("/")[0] in {m.operation for m in _core.methods()}:
        operation = method.split("/")[0]
    found = find_method(method, operation, format, "cpu") if method else default_method(operation, format, "cpu")
    if format_of(a.dtype) == "int":
        return _estimate_of_integers(found, a, b)
    return _estimate_of_floats(found, a, b)


def _estimate_of_floats(method: Method, a: Any, b: Any) -> Estimate:
    numpy = library_of(a)
    addresses = numpy.view(a).address, 0 if b is None else numpy.view(b).address
    return Estimate(*_core.estimate(method.name, format_of(a.dtype), *addresses, a.size), method)


_STEADY = ("sum", "mean", "norm", "sum_of_magnitudes", "logsumexp")
"""Operations whose result changes by no more than the sum of the changes of the elements."""


def _estimate_of_integers(method: Method, a: Any, b: Any) -> Estimate:
    """Returns an estimate whose bound covers the rounding of integers to fp64. Raises OverflowError if it cannot."""
    numpy = library_of(a)
    if adds_exactly(method) and held_floats(numpy, a) is None:
        e = _estimate_of_floats(method, numpy.np.concatenate(in_two_floats(numpy, a)), None)
        return e if method.operation != "mean" else e._replace(value=2 * e.value, bound=2 * e.bound)
    is_covered = b is None and method.operation in _STEADY
    floats = in_floats(numpy, a, method=method if is_covered else None)
    e = _estimate_of_floats(method, floats, None if b is None else in_floats(numpy, b, "y"))
    if not is_covered or a.dtype.itemsize < 8:
        return e
    changes = float(numpy.np.abs(in_two_floats(numpy, a)[1]).sum())  # exact: of integers below 2^10
    if changes == 0:
        return e
    bound, magnitudes = (math.nextafter(x + changes, math.inf) for x in (e.bound, e.magnitudes))
    return e._replace(bound=bound, magnitudes=magnitudes)


def bound(
    method: str | Method, n: int, result: float | Sequence[float] = 0.0, *, input: str | None = None,
    magnitudes: float | None = None, probability: float = 1.0, index: int = 0, ddof: float = 0.0,
) -> float:  # fmt: skip
    """Returns a rigorous bound on |result - exact result| for n elements.

    >>> bound("tree/plain/fp32", 1000, magnitudes=1000) < 0.003
    True

    Parameters
    ----------
    method
        name with a format, such as "sum/tree/kahan/fp32".
    n
        number of elements.
    result
        what the method returned; for moments mean and variance. Bounds that depend on Σ|x| do not need it.
    input
        format of the elements; default: that of the method.
    magnitudes
        an upper bound on Σ|x|, for dot on Σ|xy|, for softmax on the largest minus the smallest element. The bounds
        of sum, mean and dot need it: without it, ValueError.
    probability
        below 1, for sums: the error exceeds the bound with a probability of at most 1 - probability if each
        rounding has mean 0 whatever the earlier ones were (Connolly, Higham and Mary 2021; Hallman and Ipsen 2022).
    index
        which result: for moments 0 is the mean and 1 the variance.
    ddof
        for moments, as in `var`.
    """
    if not isinstance(method, Method):
        method = _core.find(method, "sum", "", "cpu")
    n, index = checked_count(n, "n"), checked_count(index, "index")
    results = [float(r) for r in result] if isinstance(result, (tuple, list)) else [float(result)]
    if len(results) == 1:
        results *= method.results
    return _core.bound(method, input or method.format, n, results, magnitudes, probability, index, ddof)
