"""The cheapest method within a tolerance."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import _core
from .._calls.methods import Method
from .._elements.formats import format_of
from .arguments import checked_count, checked_number, checked_text
from .bounds import bound


class Candidate(NamedTuple):
    """A method, and what `choose` knows of it."""

    method: Method
    bound: float
    """Relative to |result|; infinity if there is none."""
    ulps: float
    """The same bound in units in the last place of the result, in the format of the elements."""
    seconds: float | None
    """Measured time on the machine whose costs the library ships; None if unknown."""
    reason: str


class Choice(NamedTuple):
    """The cheapest method that fulfils the requirements, and all others with the reasons against them."""

    method: Method
    bound: float
    ulps: float
    seconds: float | None
    reason: str
    others: list[Candidate]

    def __repr__(self) -> str:
        time = "" if self.seconds is None else f", {self.seconds:.3g} s"
        return (
            f"{self.method.name}: {self.reason}\n"
            f"error of at most {self.bound:.3g} relative to |result|, {self.ulps:.3g} ulps{time}\n"
            f"others: {len(self.others)} methods"
        )


def choose(
    n: int, *, relative_error: float | None = None, ulps: float | None = None, operation: str = "sum",
    input: Any = "fp64", promise: str = "everywhere", condition: float = 1.0, magnitudes: float | None = None,
    probability: float = 1.0, backend: str = "cpu",
) -> Choice:  # fmt: skip
    """Returns the cheapest method whose error bound and promise suffice for n elements.

    Exactly one of `relative_error` (of the result) and `ulps` (units in the last place of the result) is given.

    >>> choose(10**6, relative_error=1e-12).method.name
    'sum/pairwise/plain/fp64@cpu'

    Parameters
    ----------
    input
        type of the elements: "fp32", or a data type of an array library.
    promise
        the least promise about the bits: "none", "run_to_run", "everywhere" or "order_free".
    condition
        upper bound on Σ|x| / |Σx|; 1 if all terms have one sign. The more they cancel, the larger it is.
    magnitudes
        Σ|x|; matters only if a sum may overflow or elements are subnormal. Default: n.
    probability
        1 for rigorous bounds; below 1 as for `bound`.
    backend
        "cpu", "cuda", or "" for both.

    Raises ValueError if no method fulfils the requirements; the message names the one with the smallest bound.
    """
    error, units, size = (
        None if x is None else checked_number(x, name)
        for x, name in ((relative_error, "relative_error"), (ulps, "ulps"), (magnitudes, "magnitudes"))
    )
    best, others = _core.choose(
        checked_text(operation, "operation"), checked_count(n, "n"), format_of(input, "input"),
        checked_text(promise, "promise"), error, units, checked_number(probability, "probability"),
        checked_text(backend, "backend"), checked_number(condition, "condition"), size,
    )  # fmt: skip
    return Choice(*best, [Candidate(*c) for c in others])
