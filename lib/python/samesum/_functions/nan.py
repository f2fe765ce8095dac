"""NumPy's functions that skip NaN: those of samesum with `skipna=True`."""

from __future__ import annotations

import inspect
from typing import Any, Callable

from .._calls.arguments import Call, arguments_by_name
from .._calls.reduction import reduce
from . import reductions as functions
from .scans import scan


def _extremum(call: Call) -> Any:
    """Returns an extremum or its index, without elements as NumPy does."""
    call.as_numpy = True
    return reduce(call)


def _skipping(name: str, of_nothing: str, call: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Returns the function nan<name>: that of a call with skipna=True, or the function `name` with it."""
    function = getattr(functions, name)

    def skipping(*arguments: Any, **keywords: Any) -> Any:
        if call is not None:
            given = arguments_by_name(f"nan{name}", signature, arguments, keywords)
            return call(Call(name, skipna=True, function=f"nan{name}", **given))
        try:
            return function(*arguments, skipna=True, **keywords)
        except TypeError:
            arguments_by_name(f"nan{name}", signature, arguments, keywords)  # raises under the name of this function
            raise

    whole = inspect.signature(function)
    signature = whole.replace(parameters=[p for p in whole.parameters.values() if p.name != "skipna"])
    skipping.__signature__ = signature  # type: ignore[attr-defined]
    skipping.__name__ = skipping.__qualname__ = f"nan{name}"
    skipping.__doc__ = f"""Returns what `{name}` returns with `skipna=True`: NaN are as if absent.

    {of_nothing} Its other arguments are those of `{name}`.
    """
    return skipping


nansum = _skipping("sum", "The sum of no elements is +0.")
nanmean = _skipping("mean", "The mean of no elements is NaN.")
nanvar = _skipping("var", "The variance of no more than `correction` elements is NaN.")
nanstd = _skipping("std", "The deviation of no more than `correction` elements is NaN.")
nanprod = _skipping("prod", "The product of no elements is 1.")
nanmin = _skipping("min", "The minimum of no elements is NaN, as in NumPy.", _extremum)
nanmax = _skipping("max", "The maximum of no elements is NaN, as in NumPy.", _extremum)
nanargmin = _skipping("argmin", "Raises ValueError if a result has no elements, as NumPy does.", _extremum)
nanargmax = _skipping("argmax", "Raises ValueError if a result has no elements, as NumPy does.", _extremum)
nancumsum = _skipping("cumsum", "A result at a NaN is that of the elements before it.", scan)
nancumprod = _skipping("cumprod", "A result at a NaN is that of the elements before it.", scan)

FUNCTIONS = (
    nansum, nanmean, nanvar, nanstd, nanprod, nanmin, nanmax, nanargmin, nanargmax, nancumsum, nancumprod,
)  # fmt: skip
