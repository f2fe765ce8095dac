"""NumPy's functions that skip NaN: those of samesum with `skipna=True`."""

from __future__ import annotations

import inspect
from typing import Any, Callable

from . import _functions as functions
from ._calls import names_of_torch


def _skipping(name: str, of_nothing: str, as_numpy: bool = False) -> Callable[..., Any]:
    """Returns the function nan<name>. `as_numpy`: as in `_calls.Options`."""
    function = getattr(functions, name)

    def skipping(x: Any, /, axis: Any = None, **keywords: Any) -> Any:
        if as_numpy:
            given = signature.bind(x, axis, **keywords)  # raises for an unknown keyword
            given.apply_defaults()
            options = {"dtype": None, **given.arguments}
            dim, keepdim = options.pop("dim"), options.pop("keepdim")
            if dim is not None or keepdim is not None:
                options["axis"], options["keepdims"] = names_of_torch(x, axis, dim, options["keepdims"], keepdim)
            return functions._reduced(name, skipna=True, as_numpy=True, **options)
        return function(x, axis, **keywords, skipna=True)

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
nanmin = _skipping("min", "The minimum of no elements is NaN, as in NumPy.", True)
nanmax = _skipping("max", "The maximum of no elements is NaN, as in NumPy.", True)
nanargmin = _skipping("argmin", "Raises ValueError if a result has no elements, as NumPy does.", True)
nanargmax = _skipping("argmax", "Raises ValueError if a result has no elements, as NumPy does.", True)
nancumsum = _skipping("cumsum", "A result at a NaN is that of the elements before it.")
nancumprod = _skipping("cumprod", "A result at a NaN is that of the elements before it.")

FUNCTIONS = (
    nansum, nanmean, nanvar, nanstd, nanprod, nanmin, nanmax, nanargmin, nanargmax, nancumsum, nancumprod,
)  # fmt: skip
