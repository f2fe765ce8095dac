"""Objects as keys of a dict: what is equal as a key becomes equal as an object."""

from __future__ import annotations

from typing import Any

_NAN = object()
_NAMED = {"NaT": object(), "<NA>": object()}


def is_missing(canonical: Any) -> bool:
    """Whether an object that `canonical_keys` returns stands for a missing key: None, NaN, NaT or pandas.NA."""
    return canonical is None or canonical is _NAN or any(canonical is named for named in _NAMED.values())


def canonical_keys(function: str, keys: Any) -> list[Any]:
    """Returns objects as a list in which one object stands for all NaN, one for all NaT, and one for all pandas.NA."""
    try:
        return [_canonical(key) for key in keys.tolist()]
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"samesum: {function}: keys has elements that do not compare ({error}); pass numbers, texts, dates, or "
            "tuples of these"
        ) from error


def _canonical(key: Any) -> Any:
    if type(key) is tuple:
        return tuple(map(_canonical, key))
    try:
        if key == key:
            return key
    except TypeError:  # pandas.NA == pandas.NA is neither true nor false
        if str(key) not in _NAMED:
            raise
    return _NAMED.get(str(key), _NAN)
