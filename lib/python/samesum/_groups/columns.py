"""Columns of arrays and of the frames of pandas, polars and Arrow: as keys, and as values.

Nothing here imports a library of frames: one whose column arrives has been imported by the caller.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from .._arrays.selection import is_masked, narrowed
from .._elements.carried import refuse_carried
from .._elements.library import library_of
from .._frames.kinds import kind_of
from .._frames.reading import named_columns, values_and_mask
from .._keys.canonical import canonical_keys, is_missing
from .._keys.equality import groups
from .._keys.reading import any_keys, read_array

_LAST = (1 << 63) - 1


def family_of(x: Any) -> str:
    """Returns the library of frames to which x belongs: pandas, polars or pyarrow; "" if there is none."""
    kind = kind_of(x)
    return kind.package if kind else ""


def is_frame(x: Any) -> bool:
    """Whether x has columns with names, and rows. Raises TypeError if its rows are not in memory."""
    kind = kind_of(x)
    if kind is not None and kind.name in ("dask", "lazy"):
        what, call = (" of Dask", "compute") if kind.name == "dask" else ("", "collect")
        raise TypeError(f"samesum: a {type(x).__name__}{what} has no rows yet; pass what its {call}() returns")
    return kind is not None and kind.is_frame and bool(kind.package)


def name_of(column: Any) -> Any:
    """Returns the name of a column; None if it has none."""
    return getattr(column, "name", None) if family_of(column) in ("pandas", "polars") else None


class Frame:
    """The columns of a frame, of which several may have one name."""

    def __init__(self, x: Any) -> None:
        self.family, self.columns = family_of(x), named_columns(x)
        self._named: dict[Any, list[tuple[Any, Any]]] = {}
        for column in self.columns:
            self._named.setdefault(column[0], []).append(column)

    def __contains__(self, name: Any) -> bool:
        try:
            return name in self._named
        except TypeError:  # without a hash
            return False

    def all(self, argument: str, name: Any) -> list[tuple[Any, Any]]:
        """Returns the columns of a name, with it. Raises ValueError if there is none."""
        if name not in self:
            raise ValueError(
                f"samesum: groupby: {argument} names the column {name!r}, which the frame does not have; use one of "
                f"{', '.join(map(repr, self._named))}"
            )
        return self._named[name]

    def one(self, argument: str, name: Any) -> Any:
        """Returns the only column of a name."""
        found = self.all(argument, name)
        if len(found) > 1:
            raise ValueError(
                f"samesum: groupby: {argument} names the column {name!r}, and the frame has {len(found)} of this name; "
                "rename all but one, or pass a column itself"
            )
        return found[0][1]

    def without(self, keys: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Returns the columns that are none of the keys: those of another name, or of other elements."""
        return [(n, c) for n, c in self.columns if not any(_is_key(n, c, *key) for key in keys)]


def _is_key(name: Any, column: Any, name_of_key: Any, key: Any) -> bool:
    """Whether a column of a frame is a key: in pandas and polars, each access to it makes an object."""
    return column is key or (name == name_of_key and type(column) is type(key) and column.equals(key))


def taken(column: Any, places: Any) -> Any:
    """Returns the elements of a column at some places, in a column of the same type."""
    family = family_of(column)
    if family == "polars":
        return column.gather(places)
    if family == "pyarrow":
        return column.take(sys.modules["pyarrow"].array(places))
    return column.take(places) if family == "pandas" else column[places]


# --- keys ---------------------------------------------------------------------------------------------------


class Ranks(NamedTuple):
    """Integers in the order of the keys of a column, equal where these are; `missing` for keys that are missing."""

    ranks: Any
    missing: int | None = None


def key_column(function: str, argument: str, keys: Any) -> Any:
    """Returns keys as a column of a frame, or as an array of NumPy with one axis."""
    family = family_of(keys)
    if is_frame(keys):
        raise TypeError(f"samesum: {function}: {argument} is a frame within a list; pass its columns")
    if family:
        return keys
    if isinstance(keys, (list, tuple)) and any(type(key) is tuple for key in keys):
        np = library_of([]).np
        return np.fromiter(keys, object, len(keys))  # a tuple is one key
    library, a = any_keys(function, keys)
    if library.name != "numpy":
        raise TypeError(
            f"samesum: {function}: {argument} is in the memory of a GPU; copy it to the host, or call groupby_sum"
        )
    return a


def ranks_of(function: str, argument: str, column: Any, sort: bool) -> Ranks:
    """Returns the ranks of the keys of a column; without `sort`, in any order if the keys do not compare."""
    np = library_of([]).np
    family = family_of(column)
    if family == "pandas":
        return _ranks_in_pandas(np, function, argument, column, sort)
    if family == "polars":
        if column.null_count() == 0 and (column.dtype.is_integer() or column.dtype.is_float()):
            return _ranks_of_array(np, function, argument, column.to_numpy(), sort)
        if column.dtype.is_float():
            column = column.fill_nan(None)  # NaN and null are missing keys
        return _coded(np, column.rank("dense").fill_null(0).to_numpy().astype(np.int64) - 1)
    if family == "pyarrow":
        return _ranks_in_arrow(np, function, argument, column, sort)
    return _ranks_of_array(np, function, argument, column, sort)


def _coded(np: Any, codes: Any, order: Any = None) -> Ranks:
    """Returns the ranks of codes, each a place in `order`, in which -1 is a missing key."""
    is_missing = codes < 0
    if order is not None and len(order):
        codes = order[codes]
    return Ranks(np.where(is_missing, _LAST, codes), _LAST) if is_missing.any() else Ranks(codes)


def _ranks_in_pandas(np: Any, function: str, argument: str, column: Any, sort: bool) -> Ranks:
    pandas = sys.modules["pandas"]
    if isinstance(column.dtype, pandas.CategoricalDtype):
        return _coded(np, np.asarray(getattr(column, "cat", column).codes, np.int64))
    if isinstance(column.dtype, np.dtype) and not column.dtype.hasobject:
        return _ranks_of_array(np, function, argument, column.to_numpy(), sort)
    try:
        codes, distinct = pandas.factorize(column)
    except TypeError as error:
        raise _no_hash(function, argument, error) from error
    if distinct.dtype == object:
        return _coded(np, codes, _order_of(np, function, argument, list(distinct), sort))
    order = np.empty(len(distinct), np.int64)
    order[np.asarray(distinct.argsort())] = np.arange(len(distinct))
    return _coded(np, codes, order)


def _ranks_in_arrow(np: Any, function: str, argument: str, column: Any, sort: bool) -> Ranks:
    arrow = sys.modules["pyarrow"]
    is_number = arrow.types.is_integer(column.type) or arrow.types.is_floating(column.type)
    if is_number and column.null_count == 0:
        a = column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(zero_copy_only=False)
        return _ranks_of_array(np, function, argument, a, sort)
    if not arrow.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if hasattr(column, "chunks"):
        column = column.unify_dictionaries().combine_chunks()
    if hasattr(column, "chunks"):  # of no chunks, pyarrow makes no array
        return Ranks(np.empty(0, np.int64))
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    distinct = column.dictionary.to_numpy(zero_copy_only=False)
    if distinct.size == 0:
        return _coded(np, codes)
    of_distinct = ranks_of(function, argument, distinct, sort)  # a dictionary may have nulls, and equal elements
    if of_distinct.missing is None:  # dense ranks, of which none is that of missing keys
        return _coded(np, codes, np.unique(of_distinct.ranks, return_inverse=True)[1])
    return Ranks(np.where(codes < 0, of_distinct.missing, of_distinct.ranks[codes]), of_distinct.missing)


def _ranks_of_array(np: Any, function: str, argument: str, a: Any, sort: bool) -> Ranks:
    kind = a.dtype.kind
    if not a.dtype.isnative:
        a = a.astype(a.dtype.newbyteorder("="))
    if kind in "bi" or (kind == "u" and a.dtype.itemsize < 8):
        return Ranks(a.astype(np.int64, copy=False))
    if kind == "u":
        return Ranks((a ^ np.uint64(1 << 63)).view(np.int64))
    if kind in "Mm":
        return Ranks(a.view(np.int64) - 1, _LAST)  # NaT, the least integer, becomes the largest one
    if kind == "f" and a.dtype.itemsize <= 8:
        bits = (a.astype(np.float64) + 0.0).view(np.int64)  # -0 + 0 is +0
        ranks = bits ^ ((bits >> 63) & _LAST)
        ranks[a != a] = _LAST
        return Ranks(ranks, _LAST)
    if kind in "OUS":
        return _ranks_of_objects(np, function, argument, a, sort)
    distinct, numbers = groups(function, library_of([]), a)
    return Ranks(numbers, distinct.size - 1 if distinct.size and bool(np.all(distinct[-1] != distinct[-1])) else None)


def _ranks_of_objects(np: Any, function: str, argument: str, a: Any, sort: bool) -> Ranks:
    objects = canonical_keys(function, a) if a.dtype.hasobject else a.tolist()
    numbers: dict[Any, int] = {}
    try:
        codes = np.fromiter((numbers.setdefault(key, len(numbers)) for key in objects), np.int64, len(objects))
    except TypeError as error:
        raise _no_hash(function, argument, error) from error
    distinct = [*numbers]
    missing = [code for code, key in enumerate(distinct) if is_missing(key)] if a.dtype.hasobject else []
    if missing:
        number = np.arange(len(distinct))
        distinct = [key for key in distinct if not is_missing(key)]
        number[missing] = len(distinct)
        number[[code for code in range(len(number)) if code not in missing]] = np.arange(len(distinct))
        codes = number[codes]
        codes[codes == len(distinct)] = -1
    return _coded(np, codes, _order_of(np, function, argument, distinct, sort))


def _no_hash(function: str, argument: str, error: TypeError) -> TypeError:
    return TypeError(
        f"samesum: {function}: {argument} has elements without a hash ({error}); pass numbers, texts, dates, or tuples "
        "of these"
    )


def _order_of(np: Any, function: str, argument: str, distinct: list[Any], sort: bool) -> Any:
    """Returns the rank of each of some different keys: as they are, unless they are to be sorted."""
    ranks = np.arange(len(distinct))
    if sort:
        try:
            order = sorted(range(len(distinct)), key=distinct.__getitem__)
        except TypeError as error:
            raise TypeError(
                f"samesum: {function}: {argument} has elements that do not compare ({error}); pass keys of one kind, "
                "or sort=False"
            ) from error
        ranks[order] = np.arange(len(distinct))
    return ranks


# --- values -------------------------------------------------------------------------------------------------


class Values(NamedTuple):
    """A column of values: an array of NumPy, and which of its elements are not null; None if all are not."""

    array: Any
    valid: Any = None


def values_of(function: str, argument: str, column: Any) -> Values:
    """Returns the numbers of a column in host memory. What stands at nulls means nothing."""
    numpy, valid = library_of([]), None
    if kind_of(column):
        column, valid = values_and_mask(column, argument)
    elif is_masked(column):
        masks = numpy.np.ma
        column, valid = masks.getdata(column), ~masks.getmaskarray(column)
    library, a = read_array(function, argument, column, wide=valid is not None)
    if library.view(a).device >= 0:
        raise TypeError(
            f"samesum: {function}: {argument} is in the memory of a GPU; copy it to the host, or call groupby_sum"
        )
    a = numpy.converted(a) if library is not numpy else narrowed(numpy, a, valid, argument)
    return Values(numpy.array(a, argument), valid)


def not_skipped(column: Any, skips_null: bool, skips_nan: bool) -> Any:
    """Returns which elements of a column of any type are not skipped."""
    np, family = library_of([]).np, family_of(column)
    takes = np.ones(len(column) if family else np.shape(column), bool)
    if is_masked(column):
        column, takes = np.ma.getdata(column), ~np.ma.getmaskarray(column) if skips_null else takes
    if not family:
        refuse_carried(column, "values")
    if family == "pandas":
        return np.asarray(column.notna()) if skips_null else takes
    if family == "polars" and skips_null:
        takes &= column.is_not_null().to_numpy()
    elif family == "pyarrow" and skips_null:
        takes &= in_numpy(column.is_valid())
    if not skips_nan:
        return takes
    a = in_numpy(column) if family else np.asarray(column)
    if a.dtype.hasobject and not family:
        return ~np.array([is_missing(key) for key in canonical_keys("groupby", a.ravel())], bool).reshape(a.shape)
    return takes & (a == a) if a.dtype.kind in "fcmM" else takes


def in_numpy(column: Any) -> Any:
    """Returns a column as an array of NumPy, or as it is if it belongs to no library of frames."""
    family = family_of(column)
    if family == "pyarrow" and not hasattr(column, "chunks"):
        return column.to_numpy(zero_copy_only=False)
    return column.to_numpy() if family else column
