"""NumPy's functions that skip NaN: those of samesum with `skipna=True`."""

from __future__ import annotations

import inspect
from typing import Any, Callable

from . import _functions as functions
from ._arrays import format_of, library_of
from ._calls import read
from ._selection import mask_of, takes_part, without_mask


def _skipping(name: str, of_nothing: str, finish: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Returns the function nan<name>. finish(result, x, axis, keywords) replaces results for no elements."""
    function = getattr(functions, name)

    def skipping(x: Any, /, axis: Any = None, **keywords: Any) -> Any:
        result = function(x, axis, **keywords, skipna=True)
        return result if finish is None else finish(result, x, axis, keywords)

    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters.values() if p.name != "skipna"]
    skipping.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    skipping.__name__ = skipping.__qualname__ = f"nan{name}"
    skipping.__doc__ = f"""Returns what `{name}` returns with `skipna=True`: NaN are as if absent.

    {of_nothing} Its other arguments are those of `{name}`.
    """
    return skipping


def _any(flags: Any) -> bool:
    return bool(library_of(flags).namespace.asarray(flags).any())


def _or_nan(of_nothing: float) -> Callable[..., Any]:
    """Returns the function that replaces results for no elements, which are `of_nothing`, by NaN."""

    def finish(result: Any, x: Any, axis: Any, keywords: dict[str, Any]) -> Any:
        if not _any(result == of_nothing):
            return result
        x, where = without_mask(x, keywords.get("where"))
        library, a = read(x)
        takes = takes_part(library, mask_of(library, a, where), format_of(a.dtype) != "int", a)
        counts = functions.sum(library.astype(takes, "int64"), axis, keepdims=keywords.get("keepdims", False))
        if not getattr(result, "ndim", 0):
            return result if counts else type(result)(float("nan"))
        result[counts == 0] = float("nan")
        return result

    return finish


def _or_error(name: str) -> Callable[..., Any]:
    def finish(result: Any, x: Any, axis: Any, keywords: dict[str, Any]) -> Any:
        if _any(result < 0):
            raise ValueError(f"samesum: nan{name}: all elements of a result are NaN or left out; pass others")
        return result

    return finish


nansum = _skipping("sum", "The sum of no elements is +0.")
nanmean = _skipping("mean", "The mean of no elements is NaN.")
nanvar = _skipping("var", "The variance of no more than `correction` elements is NaN.")
nanstd = _skipping("std", "The deviation of no more than `correction` elements is NaN.")
nanprod = _skipping("prod", "The product of no elements is 1.")
nanmin = _skipping("min", "The minimum of no elements is NaN, as in NumPy.", _or_nan(float("inf")))
nanmax = _skipping("max", "The maximum of no elements is NaN, as in NumPy.", _or_nan(-float("inf")))
nanargmin = _skipping("argmin", "Raises ValueError if a result has no elements, as NumPy does.", _or_error("argmin"))
nanargmax = _skipping("argmax", "Raises ValueError if a result has no elements, as NumPy does.", _or_error("argmax"))
nancumsum = _skipping("cumsum", "A result at a NaN is that of the elements before it.")
nancumprod = _skipping("cumprod", "A result at a NaN is that of the elements before it.")

FUNCTIONS = (
    nansum, nanmean, nanvar, nanstd, nanprod, nanmin, nanmax, nanargmin, nanargmax, nancumsum, nancumprod,
)  # fmt: skip
