"""Which keys are equal: their numbers in sorted order, and the starts of their runs."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from .. import _core
from .._elements.formats import dtype_name
from .canonical import canonical_keys
from .reading import taken

_FIRST_ADDED_TYPE = 256
"""NumPy's number of the first data type that another package has added, such as the bfloat16 of ml_dtypes."""


# --- groups ---------------------------------------------------------------------------------------------------


def groups(function: str, library: Any, keys: Any) -> tuple[Any, Any]:
    """Returns the different keys and, for each key, the place of its equal among them, as int64.

    Different keys are sorted; those that do not compare, such as NaN and None, come last. If the others do not
    compare with each other, all are in order of first appearance.
    """
    if library.name != "numpy":
        return _groups_on_gpu(function, library, keys)
    np, type_ = library.np, keys.dtype
    if type_.names and keys.size:
        return _groups_of_records(function, library, keys)
    if type_.hasobject:
        return _groups_of_objects(function, np, keys)
    if type_.num >= _FIRST_ADDED_TYPE:  # NumPy's sort takes the NaN of such types for equal to everything
        wide = next((t for t in (np.float64, np.complex128) if np.can_cast(type_, t)), object)
        unique, numbers = groups(function, library, keys.astype(wide))
        return unique.astype(type_), numbers
    if type_.kind == "i":
        numbers, first = numbered(np, keys.astype(np.int64, copy=False))
        return keys[first], numbers.astype(np.int64, copy=False)
    unique, numbers = np.unique(keys, return_inverse=True)
    return unique, numbers.astype(np.int64, copy=False)


def numbered(np: Any, keys: Any, sort: bool = True, threads: int = 0) -> tuple[Any, Any]:
    """Returns the number of the group of each key, int32 if that holds the number of keys, and the first key of each.

    Keys are int64 in host memory. Groups are in the order of their keys, or of their first keys.
    """
    keys = np.ascontiguousarray(keys)
    numbers = np.empty(len(keys), np.int32 if len(keys) < 2**31 else np.int64)
    first = _core.number_groups(keys.ctypes.data, len(keys), sort, threads, numbers.dtype.name, numbers.ctypes.data)
    return numbers, np.frombuffer(first, np.int64).copy()  # which can be written


def _groups_of_records(function: str, library: Any, keys: Any) -> tuple[Any, Any]:
    """Returns groups that agree in each field, in the order of the first field, then of the second, and so on."""
    np = library.np
    numbers = np.zeros(keys.shape, np.int64)
    for column in _columns(keys):
        different, places = groups(function, library, column)
        numbers = np.unique(numbers * different.size + places, return_inverse=True)[1].astype(np.int64, copy=False)
    return keys[np.unique(numbers, return_index=True)[1]], numbers


def _columns(records: Any) -> list[Any]:
    """Returns the elements of all fields, each with one axis."""
    return [column for name in records.dtype.names for column in records[name].reshape(len(records), -1).T]


def _groups_of_objects(function: str, np: Any, keys: Any) -> tuple[Any, Any]:
    objects = canonical_keys(function, keys)
    first: dict[Any, int] = {}
    try:
        for place, key in enumerate(objects):
            first.setdefault(key, place)
    except TypeError as error:
        raise TypeError(
            f"samesum: {function}: keys[{place}] has no hash ({error}); pass numbers, texts, dates, or tuples of these"
        ) from error
    number = {key: i for i, key in enumerate(_in_order([*first]))}
    return keys[[first[key] for key in number]], np.array([number[key] for key in objects], np.int64)


def _in_order(keys: list[Any]) -> list[Any]:
    """Returns different keys in the order that `groups` describes."""
    comparable, others = [], []
    for key in keys:
        try:
            key < key
            comparable.append(key)
        except TypeError:
            others.append(key)
    try:
        comparable.sort()
        if all(a < b for a, b in pairwise(comparable)):  # sets of which none contains the other are not sorted
            return comparable + others
    except TypeError:
        pass
    return keys


def _groups_on_gpu(function: str, library: Any, keys: Any) -> tuple[Any, Any]:
    xp = library.namespace
    if library.name == "torch" and keys.is_floating_point() and keys.dtype.itemsize == 1:
        unique, numbers = groups(function, library, keys.float())
        return unique.to(keys.dtype), numbers
    is_nan = keys != keys
    has_nan = bool(is_nan.any())
    try:
        if has_nan:
            keys = xp.where(is_nan, math.nan, keys)  # a negative NaN would come first
        unique, numbers = xp.unique(keys, return_inverse=True)
    except (NotImplementedError, TypeError) as error:
        raise TypeError(
            f"samesum: {function}: keys has elements of type {dtype_name(keys.dtype)}, which are not sorted on a GPU "
            f"({error}); copy keys to the host"
        ) from error
    if has_nan:
        place = int((unique == unique).sum())
        unique, numbers = unique[: place + 1], xp.clip(numbers, None, place)
    return unique, library.contiguous(library.astype(numbers, "int64"))


# --- runs -----------------------------------------------------------------------------------------------------


def starts_of_runs(function: str, library: Any, keys: Any) -> Any:
    """Returns the places where runs of equal keys begin, as an array of int64 of the library of the keys."""
    changes = _changes(function, library, keys)
    starts = library.empty((min(1, keys.shape[0]) + changes.shape[0],), "int64", keys)
    starts[:1] = 0
    starts[1:] = changes + 1
    return starts


def _changes(function: str, library: Any, keys: Any) -> Any:
    """Returns the places of the keys that differ from the next key."""
    if library.name == "numpy" and keys.dtype.names and keys.size:
        places = [_changes(function, library, column) for column in _columns(keys)]
        return library.np.unique(library.np.concatenate(places))
    if library.name == "numpy" and keys.dtype.hasobject:
        return _changes_of_objects(function, library.np, keys.astype(object, copy=False))
    places = library.namespace.nonzero(keys[1:] != keys[:-1])
    places = places.reshape(-1) if library.name == "torch" else places[0]
    if library.name == "numpy" and keys.dtype.kind in "biuSU":
        return places
    here, next_ = taken(library, keys, places), taken(library, keys, places + 1)
    return places[(here == here) | (next_ == next_)]  # elsewhere, NaN follows NaN


def _changes_of_objects(function: str, np: Any, keys: Any) -> Any:
    try:
        places = np.nonzero(keys[1:] != keys[:-1])[0]
        doubtful = [i for i, key in enumerate(keys[places].tolist()) if key != key or type(key) is tuple]
    except (TypeError, ValueError):  # pandas.NA, or what `canonical_keys` refuses
        places = np.arange(max(0, len(keys) - 1))
        doubtful = [*range(len(places))]
    if not doubtful:
        return places
    doubtful = np.array(doubtful, np.int64)
    pairs = zip(*(canonical_keys(function, keys[places[doubtful] + next_]) for next_ in (0, 1)))
    return np.delete(places, doubtful[np.array([a is b or a == b for a, b in pairs], bool)])
