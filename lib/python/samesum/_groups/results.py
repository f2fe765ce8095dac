"""Results of groups in the types of the caller's values: as columns beside the keys, or as arrays."""

from __future__ import annotations

import sys
from typing import Any

from .._arrays.converted import Converted
from .._elements.library import library_of
from .._frames.reading import require_different
from .columns import family_of, in_numpy


def in_frame(
    family: str, keys: list[tuple[Any, Any]], results: list[tuple[Any, Any]], has_many: bool, argument: str = "values",
    name: str = "",
) -> Any:  # fmt: skip
    """Returns named results as columns beside the keys. `name` is for one that does not have that of a column."""
    if family == "pandas":
        pandas, index = sys.modules["pandas"], pandas_index(keys)
        arrays = [getattr(result, "array", result) for _, result in results]
        if not has_many:
            return pandas.Series(arrays[0], index=index, name=None if name else results[0][0])
        frame = pandas.DataFrame(dict(enumerate(arrays)), index=index)
        frame.columns = pandas.Index([n for n, _ in results])
        return frame
    unnamed = [f"key_{place}" for place in range(len(keys))] if len(keys) > 1 else ["key"]
    named = [(other if n in (None, "") else str(n), c) for (n, c), other in zip(keys, unnamed)]
    values = [(name or str("values" if n in (None, "") else n), r) for n, r in results]
    names = [n for n, _ in values]
    require_different(
        [*(n for n, _ in named), *(names if family == "polars" else dict.fromkeys(names))], "the result of groupby",
        f"of the keys and {argument}; rename one, or leave it out of the values",
    )  # fmt: skip
    return table(family, named + values)


def in_library_of(column: Any, result: Any) -> Any:
    """Returns a result as an array of the library of a column."""
    library = library_of(column)
    if isinstance(library, Converted):
        return library.returned(result, column)
    is_numpys = isinstance(result, library_of([]).np.ndarray)
    return library.converted(result) if library.name == "torch" and is_numpys else result


def named_by(family: str, name: Any, operation: str) -> Any:
    """Returns the name of one of several results of a column."""
    if family != "pandas":
        return f"{name}_{operation}"
    return (*name, operation) if isinstance(name, tuple) else (name, operation)


def pandas_index(keys: list[tuple[Any, Any]]) -> Any:
    """Returns the index of pandas whose levels are keys with their names."""
    pandas = sys.modules["pandas"]
    columns = [  # from an array of objects, pandas makes an index of texts if it holds texts
        column if family_of(column) == "pandas" and column.dtype != object else in_numpy(column) for _, column in keys
    ]
    if len(keys) == 1:
        return pandas.Index(columns[0], name=keys[0][0], tupleize_cols=False)
    return pandas.MultiIndex.from_arrays(columns, names=[name for name, _ in keys])


def table(family: str, columns: list[tuple[str, Any]]) -> Any:
    """Returns a frame of polars, or a table of Arrow, with these columns."""
    if family == "polars":
        series = sys.modules["polars"].Series
        return sys.modules["polars"].DataFrame(
            [series(name, list(c) if _has_objects(c := _readable(family, column)) else c) for name, column in columns]
        )
    arrow = sys.modules["pyarrow"]
    arrays = [c if family_of(c := _readable(family, column)) else arrow.array(c) for _, column in columns]
    return arrow.table(arrays, names=[name for name, _ in columns])


def _has_objects(column: Any) -> bool:
    return bool(getattr(getattr(column, "dtype", None), "hasobject", False))


def _readable(family: str, column: Any) -> Any:
    """Returns a column as one that polars or Arrow reads."""
    if family_of(column) in ("", family) or (family == "polars" and family_of(column) == "pyarrow"):
        return column
    return in_numpy(column)
