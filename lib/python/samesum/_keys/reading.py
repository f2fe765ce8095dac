"""Keys as arrays that the library or NumPy compares."""

from __future__ import annotations

from typing import Any

from .._elements.carried import refuse_carried
from .._elements.formats import INTEGERS, UNSIGNED, dtype_name
from .._elements.library import library_of
from .._frames.kinds import kind_of
from .._frames.reading import values_and_mask
from .canonical import canonical_keys, is_missing

_FORMATS = ("int32", "uint32", "int64")
"""Data types of keys that the library reads in place."""


def read_array(function: str, argument: str, x: Any, wide: bool = False) -> tuple[Any, Any]:
    """Returns the library that reads x, and its array of the same memory. See `NumPy.array` for `wide`."""
    library = library_of(x)
    library.refuse_traced(function, x, argument)
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


def taken(library: Any, keys: Any, places: Any) -> Any:
    """Returns the keys at these places."""
    name = dtype_name(keys.dtype)
    if library.name == "torch" and name in UNSIGNED:
        return keys.view(library.dtype(name[1:]))[places].view(keys.dtype)
    return keys[places]
