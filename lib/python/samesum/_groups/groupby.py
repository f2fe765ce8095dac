"""Groups of equal keys, and the reductions of their values: `groupby`."""

from __future__ import annotations

from typing import Any

from .._calls.arguments import check_threads
from .._elements.library import library_of
from .._frames.reading import named_columns
from .._keys.equality import numbered
from .columns import Frame, Ranks, family_of, is_frame, key_column, name_of, ranks_of
from .groups import GroupBy
from .rows import NumberedRows


def groupby(keys: Any, by: Any = None, *, sort: bool = True, dropna: bool = True, threads: int = 0) -> GroupBy:
    """Returns the groups of rows with equal keys, whose values its methods reduce.

    Each result has the bits of the same reduction of the values of its group alone, in their order: whatever the
    threads, and whatever the other groups hold. Exact methods, the default, do not depend on the order either.

    >>> groups = groupby(["b", "a", "b", "b"])
    >>> groups.groups.tolist(), groups.sum([1e16, 5.0, 1.0, -1e16]).tolist()
    (['a', 'b'], [5.0, 1.0])
    >>> groupby([[1, 1, 2], ["x", "y", "x"]]).mean([1.0, 2.0, 3.0]).tolist()
    [1.0, 2.0, 3.0]

    Parameters
    ----------
    keys
        a key for each row: an array, a list, or a column of pandas, polars or Arrow, of numbers, texts, dates,
        categories or any objects with a hash. Of several columns, in a list, a tuple, a dict or a frame, a key is
        what they have in a row; tuples in a list are keys themselves.
    by
        what the keys of the rows of the frame `keys` are: the name of one of its columns, a column, or a list of these.
        Methods then also take names of its columns in place of values, and reduce all its other columns if they are
        given none. Of several columns with one name, a list of names means all; a name alone is refused.
    sort
        whether groups are in the order of their keys (categories: in their order), or in that of their first rows.
    dropna
        whether rows whose key is missing (None, NaN, NaT, null) belong to no group. Otherwise they are a group, the
        last one if sorted.
    threads
        largest number of threads; 0 for one per processor.

    Returns
    -------
    groups
        an object with the attribute `groups`, the keys of all groups (several columns: a dict of them if they have
        different names, else a tuple), and with the methods sum, mean, var, std, min, max, count, size, first, agg,
        dot, cov, corrcoef and linear_regression. They take an array of shape (n, ...), and return one of shape
        (number of groups, ...). They take columns and frames of pandas, and return such with the keys as index;
        columns and frames of polars, and tables of Arrow, and return frames in which the keys are the first columns.

    Raises
    ------
    ValueError
        if columns differ in length, or a frame does not have a column.
    TypeError
        if keys have no hash, do not compare and are to be sorted, or are in the memory of a GPU.
    """
    function, frame = "groupby", None
    if by is not None:
        if not is_frame(keys):
            raise TypeError(
                f"samesum: {function}: by names columns of a frame, and keys is a {type(keys).__name__}; pass a frame, "
                "or the columns as keys"
            )
        frame = Frame(keys)
        named = [
            (name_of(key), key) if _is_column(key) else (key, frame.one("by", key))
            for key in (by if isinstance(by, list) else [by])
        ]
        is_one = not isinstance(by, list)
    elif is_frame(keys):
        named, is_one = named_columns(keys), False
    elif isinstance(keys, dict):
        named, is_one = [*keys.items()], False
    elif isinstance(keys, (list, tuple)) and len(keys) and all(map(_is_column, keys)):
        named, is_one = [(name_of(column), column) for column in keys], False
    else:
        named, is_one = [(name_of(keys), keys)], True
    if not named:
        raise ValueError(f"samesum: {function}: keys has no columns; pass one or more")
    arguments = ["keys" if is_one else f"keys[{at if name is None else name!r}]" for at, (name, _) in enumerate(named)]
    columns = [(name, key_column(function, argument, column)) for argument, (name, column) in zip(arguments, named)]
    lengths = {name if name is not None else place: len(c) for place, (name, c) in enumerate(columns)}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f"samesum: {function}: the columns of keys have the lengths {lengths}; pass columns of one length"
        )
    ranks = [ranks_of(function, argument, column, sort) for argument, (_, column) in zip(arguments, columns)]
    return GroupBy(columns, is_one, frame, _numbered_rows(ranks, bool(sort), bool(dropna), check_threads(threads)))


def _numbered_rows(ranks: list[Ranks], sort: bool, dropna: bool, threads: int) -> NumberedRows:
    """Numbers rows by the ranks of their keys in each column."""
    np = library_of([]).np
    numbers, first = numbered(np, ranks[0].ranks, sort, threads)
    for other, _ in ranks[1:]:
        pairs = numbers.astype(np.int64)
        of_other, first_of_other = numbered(np, other, sort, threads)
        pairs *= max(len(first_of_other), 1)
        pairs += of_other
        numbers, first = numbered(np, pairs, sort, threads)
    is_missing = np.zeros(len(first), bool)
    for each, missing in ranks:
        if missing is not None:
            is_missing |= each[first] == missing
    if not (dropna and is_missing.any()):
        return NumberedRows(numbers, first, None)
    number = np.where(is_missing, -1, np.cumsum(~is_missing) - 1).astype(numbers.dtype)
    numbers, first = number[numbers], first[~is_missing]
    kept = numbers >= 0
    return NumberedRows(numbers[kept], first, kept)


def _is_column(x: Any) -> bool:
    """Whether an element of a list is a column of keys, and not a key."""
    return isinstance(x, list) or bool(family_of(x) and hasattr(x, "__len__")) or getattr(x, "ndim", 0) == 1
