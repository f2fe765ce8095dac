"""Keys of any type: how they are read, and which are equal. NaN, NaT and pandas.NA equal themselves here."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from .. import _core
from .._elements.carried import refuse_carried
from .._elements.formats import INTEGERS, UNSIGNED, dtype_name
from .._elements.library import library_of
from .._frames.frames import kind_of, values_and_mask

_FORMATS = ("int32", "uint32", "int64")
"""Data types of keys that the library reads in place."""
_FIRST_ADDED_TYPE = 256
"""NumPy's number of the first data type that another package has added, such as the bfloat16 of ml_dtypes."""


# --- reading --------------------------------------------------------------------------------------------------


def read_array(function: str, argument: str, x: Any, wide: bool = False) -> tuple[Any, Any]:
    """Returns the library that reads x, and its array of the same memory. See `NumPy.array` for `wide`."""
    library = library_of(x)
    if library.is_traced(x):
        library.require_strided(x, argument)
        raise NotImplementedError(
            f"samesum: {function} has no gradient, and is not traced or compiled; pass a detached {argument}, or call "
            "it outside of transformations"
        )
    return library.reader(x, argument, wide)


def integer_keys(function: str, keys: Any) -> tuple[Any, Any]:
    """Returns the library of keys, and an array of type int32, uint32 or int64 with one contiguous axis."""
    library = library_of(keys)
    if library is library_of([]):
        np, a = library.np, _of_numpy(function, keys)
        is_list = isinstance(keys, (list, tuple))
        if a.dtype.hasobject or (is_list and a.dtype.kind == "f"):  # NumPy makes floats of large integers
            objects = keys if is_list else a
            if all(isinstance(key, (int, np.integer)) and not isinstance(key, bool) for key in objects):
                _require_64_bits(function, objects)
                a = np.array(objects, np.int64)
    else:
        library, a = read_array(function, "keys", keys)
    name = dtype_name(a.dtype)
    if name not in INTEGERS - {"bool"}:
        nulls = sum(map(is_missing, canonical_keys(function, a))) if name == "object" else 0
        remedy = (
            f", of which {nulls} is null; leave out such rows of all arguments" if nulls else "; use an integer type"
        )
        raise TypeError(f"samesum: {function}: keys has elements of type {name}{remedy}")
    _require_one_axis(function, a)
    if library.name == "numpy":
        a = library.array(a, "keys")  # in the byte order of the machine
    signed = a if name in _FORMATS else library.astype(a, "int64")
    if name == "uint64" and (signed < 0).any():
        _require_64_bits(function, [key % 2**64 for key in signed.tolist()])
    return library, library.contiguous(signed)


def any_keys(function: str, keys: Any) -> tuple[Any, Any]:
    """Returns the library of keys of any type, and an array with one axis: NumPy's, unless they are on a GPU."""
    numpy = library_of([])
    if library_of(keys) is not numpy:
        library, keys = read_array(function, "keys", keys)
        if library.view(keys).device >= 0:
            _require_one_axis(function, keys)
            return library, keys
        if library.name == "torch" and dtype_name(keys.dtype) not in ("float16", "float32", "float64"):
            keys = keys.float() if keys.is_floating_point() else keys  # NumPy has no bfloat16
    return numpy, _of_numpy(function, keys)


def _of_numpy(function: str, keys: Any) -> Any:
    """Returns keys as an array of NumPy with one axis: of objects if NumPy would make other keys of a list."""
    numpy = library_of([])
    if numpy.is_masked(keys):
        raise TypeError(
            f"samesum: {function}: keys is a masked array; pass keys.compressed(), and the values of those keys"
        )
    np = numpy.np
    if not kind_of(keys):
        refuse_carried(keys, "keys")
    a = _nullable_integers(keys)
    a = np.asarray(keys) if a is None else a
    if a.ndim == 0 and a.dtype.hasobject:
        raise TypeError(f"samesum: {function}: keys is a {type(keys).__name__}; pass a list or an array")
    if isinstance(keys, (list, tuple)) and a.ndim == 1 and a.dtype.kind in "fcUS" and not _holds(a, keys):
        a = np.empty(len(keys), object)
        a[:] = keys
    _require_one_axis(function, a)
    return a


def _nullable_integers(keys: Any) -> Any:
    """Returns a column of integers or booleans with nulls as objects, of which NumPy would make floats; else None."""
    if not kind_of(keys):
        return None
    try:
        values, valid = values_and_mask(keys, "keys")
    except (TypeError, ValueError):  # texts, dates, tuples and others, which NumPy leaves as they are
        return None
    if valid is None or values.dtype.kind not in "iub":
        return None
    objects = values.astype(object)
    objects[~valid] = None
    return objects


def _holds(a: Any, keys: Any) -> bool:
    """Whether the array that NumPy made of a list has its keys: not texts for numbers, or floats for large integers."""
    types = {*map(type, keys)}
    if types == {float} or (types <= {bool, int, float, complex, str, bytes} and a.tolist() == [*keys]):
        return True
    values = (key.item() if hasattr(key, "item") else key for key in keys)
    return all(x == key or (x != x and key != key) for x, key in zip(a.tolist(), values))


def _require_one_axis(function: str, keys: Any) -> None:
    if keys.ndim != 1:
        raise ValueError(
            f"samesum: {function}: keys has shape {tuple(keys.shape)}; pass one axis, with a key per element"
        )


def _require_64_bits(function: str, keys: Any) -> None:
    """Checks that integers are in the range of int64."""
    for place, key in enumerate(keys):
        if not -(2**63) <= key < 2**63:
            remedy = "be less than 2^63" if key > 0 else "not be negative"
            raise ValueError(f"samesum: {function}: keys[{place}] is {key}; it must {remedy}")


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


def taken(library: Any, keys: Any, places: Any) -> Any:
    """Returns the keys at these places."""
    name = dtype_name(keys.dtype)
    if library.name == "torch" and name in UNSIGNED:
        return keys.view(library.dtype(name[1:]))[places].view(keys.dtype)
    return keys[places]
