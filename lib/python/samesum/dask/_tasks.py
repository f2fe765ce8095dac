"""What the tasks of samesum.dask do: parts of reductions, and how they are merged and finished."""

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple, Sequence

import numpy as np

from .._calls.integers import beyond_64_bits
from .._elements.carried import refuse_carried
from .._elements.formats import no_integers
from .._elements.in_floats import in_floats
from .._elements.layout import axes_last, reduced_shape
from .._elements.library import library
from .._elements.traced import square_root
from .._frames.reading import values_and_mask
from .._frames.results import as_one_array, value_or_null
from .._functions import reductions as _functions
from .._parts.blocks import merged
from .._parts.states import Partial
from ._weights import WeightedPartial

FINISH = {"var": _functions._variance, "std": _functions._deviation}


def unmasked(name: str, block: Any) -> Any:
    """Returns a block of the input `name`. Raises TypeError if it is masked, which Dask did not know."""
    if isinstance(block, np.ma.MaskedArray):
        remedy = f"dask.array.ma.filled({name}, {'False' if name == 'where' else 0})"
        if name in ("x", "y"):
            remedy = f"dask.array.ma.masked_array({name}), or {remedy}, in which masked elements are 0"
        raise TypeError(f"samesum: {name} has masked blocks, but Dask takes them for plain ones; pass {remedy}")
    refuse_carried(block, name)
    return block


def in_common_type(name: str, dtype: str, block: Any, takes: Any = None) -> Any:
    """Returns a block of integers in a floating-point type. Raises OverflowError if it cannot hold one that counts."""
    return in_floats(library("numpy"), block, name, dtype=dtype, mask=takes)


class Call(NamedTuple):
    """What the tasks of one call need to know."""

    function: str
    operation: str
    method: str | None
    """Its name. None if Python reduces, not a partial of C++: integers, and indices where elements take no part."""
    grid: int | None
    correction: float
    dtype: Any
    """Type of the results."""
    weights_are: str = ""
    """Of weighted means and variances, whose operation is "weighted"."""


# --- parts ----------------------------------------------------------------------------------------------------


class _PythonPartial:
    """A reduction of consecutive elements, with the functions of `Partial`."""

    def __init__(self, operation: str, begin: int) -> None:
        self.operation, self.begin = operation, begin

    def copy(self) -> Any:
        new = type(self)(self.operation, self.begin)
        vars(new).update(vars(self))
        return new


class _IntegerPartial(_PythonPartial):
    """A sum or an extremum of integers. Python's integers do not overflow."""

    sum = 0
    best: int | None = None

    def add(self, x: Any, *, threads: int = 0) -> None:
        if self.operation != "sum":
            if x.size:
                self._meet(int(x.min() if self.operation == "min" else x.max()))
        elif x.dtype.itemsize == 8:  # two words, whose sums fit into 64 bits
            self.sum += int((x >> x.dtype.type(32)).sum()) << 32
            self.sum += int((x & x.dtype.type(0xFFFFFFFF)).sum(dtype=np.uint64))
        else:
            self.sum += int(x.sum())

    def _meet(self, other: int | None) -> None:
        if other is not None:
            both = [other] if self.best is None else [self.best, other]
            self.best = min(both) if self.operation == "min" else max(both)

    def merge(self, next: _IntegerPartial) -> None:
        self.sum += next.sum
        self._meet(next.best)

    def finish(self, *, correction: float = 0) -> int:
        if self.operation == "sum":
            return self.sum
        if self.best is None:
            raise no_integers(self.operation, True)
        return self.best


class _IndexPartial(_PythonPartial):
    """The index of an extremum, which counts the elements that take no part too."""

    best: tuple[Any, int] | None = None
    """The extremum and its index."""
    is_of_integers = False

    def add_flagged(self, x: Any, takes: Any) -> None:
        self.is_of_integers = x.dtype.kind in "iub"
        places = np.arange(len(x)) if takes is None else np.flatnonzero(takes)
        if len(places):
            at = places[getattr(_functions, self.operation)(x[places], threads=1)]
            self._meet((x[at], self.begin + int(at)))

    def _meet(self, other: tuple[Any, int] | None) -> None:
        """Takes a later extremum, unless the one so far is as good."""
        if other is not None:
            find = getattr(_functions, self.operation)
            if self.best is None or find(np.array([self.best[0], other[0]])) == 1:
                self.best = other

    def merge(self, next: _IndexPartial) -> None:
        self.is_of_integers |= next.is_of_integers
        self._meet(next.best)

    def finish(self, *, correction: float = 0) -> int:
        if self.best is None and self.is_of_integers:
            raise no_integers(self.operation, True)
        return -1 if self.best is None else self.best[1]


def _part(call: Call, begin: int, rows: Sequence[Any]) -> Any:
    if call.method is not None:
        part = Partial(call.method, begin, grid=call.grid)
    else:
        part = _IntegerPartial(call.operation, begin)
    part.add(*rows, threads=1)  # Dask uses the other processors
    return part


# --- tasks ----------------------------------------------------------------------------------------------------


def _rows(a: Any, axes: Sequence[int]) -> Any:
    """Returns the elements of each result as a row."""
    shape = math.prod(reduced_shape(a.shape, axes, False)), math.prod(a.shape[d] for d in axes)
    return np.ascontiguousarray(a.transpose(axes_last(a.ndim, axes)[0]).reshape(shape))


def _rows_and_flags(
    axes: Sequence[int], skipna: bool, takes: Any, inputs: Sequence[Any], names: Sequence[str] = ("x", "y")
) -> tuple[list[Any], Any]:
    """Returns the elements of each result of all inputs as rows, and which of them take part; None for all."""
    rows = [_rows(np.asarray(unmasked(name, a)), axes) for name, a in zip(names, inputs)]
    flags = None if takes is None else _rows(np.asarray(takes), axes)
    for row in rows if skipna else ():
        flags = row == row if flags is None else flags & (row == row)
    return rows, flags


def reduce_chunk(call: Call, axes: Sequence[int], begin: int, *inputs: Any) -> list[Any]:
    """Returns a partial for each result of elements that all take part."""
    rows, _ = _rows_and_flags(axes, False, None, inputs)
    return [_part(call, begin, each) for each in zip(*rows)]


def index_chunk(call: Call, axes: Sequence[int], skipna: bool, begin: int, takes: Any, *inputs: Any) -> list[Any]:
    """Returns a partial of an index for each result."""
    (rows,), flags = _rows_and_flags(axes, skipna, takes, inputs)
    parts = [_IndexPartial(call.operation, begin) for _ in rows]
    for k, part in enumerate(parts):
        part.add_flagged(rows[k], None if flags is None else flags[k])
    return parts


def pack_chunk(axes: Sequence[int], skipna: bool, takes: Any, *inputs: Any) -> list[list[Any]]:
    """Returns the elements of each result that take part, of each input."""
    rows, flags = _rows_and_flags(axes, skipna, takes, inputs)
    return [[row[k] if flags is None else row[k][flags[k]] for row in rows] for k in range(len(rows[0]))]


def weigh_chunk(call: Call, axes: Sequence[int], skipna: bool, takes: Any, x: Any, w: Any) -> list[Any]:
    """Returns a partial for each result of weighted elements."""
    rows, flags = _rows_and_flags(axes, skipna, takes, (x, w), ("x", "weights"))
    parts = [WeightedPartial(call.function, call.weights_are, call.dtype) for _ in rows[0]]
    for k, part in enumerate(parts):
        part.add(*(row[k] if flags is None else row[k][flags[k]] for row in rows))
    return parts


def begins_after(begins: list[int] | None, packed: list[list[Any]]) -> list[int]:
    """Returns where the elements of each result in the next chunk begin."""
    return [begin + len(each[0]) for begin, each in zip(begins or [0] * len(packed), packed)]


def reduce_packed(call: Call, begins: list[int] | None, packed: list[list[Any]]) -> list[Any]:
    """Returns a partial for each result."""
    return [_part(call, begin, each) for begin, each in zip(begins or [0] * len(packed), packed)]


def reduce_whole(function: Callable[..., Any], names: Sequence[str], options: dict[str, Any], *inputs: Any) -> Any:
    """Returns the results of blocks that hold all their elements. The first ones are x and y, others have names."""
    count = len(inputs) - len(names)
    named = dict(zip(names, inputs[count:]))
    return function(*(unmasked(name, a) for name, a in zip("xy", inputs[:count])), threads=1, **named, **options)


def merge_chunks(chunks: Sequence[list[Any]]) -> list[Any]:
    """Merges the partials of consecutive chunks, result by result."""
    return [merged(parts) for parts in zip(*chunks)]


def finish_chunks(call: Call, shape: tuple[int, ...], chunks: Sequence[list[Any]]) -> Any:
    """Returns the results of the last chunks."""
    numbers = [part.finish(correction=call.correction) for part in merge_chunks(chunks)]
    if call.method is None and call.operation == "sum":
        limits = np.iinfo(call.dtype)
        if not all(limits.min <= n <= limits.max for n in numbers):
            raise beyond_64_bits("sum")
    moments = (2,) if call.operation == "moments" else ()
    results = np.array(numbers, call.dtype).reshape((*shape, *moments))
    if moments:
        results = FINISH[call.function](np, results)
    elif call.operation == "weighted" and call.function == "std":
        results = square_root(np, results)
    return np.asarray(results)[()]  # one result as a scalar


# --- tasks of frames ------------------------------------------------------------------------------------------


def elements_of_partition(dtype: Any, partition: Any) -> tuple[Any, Any]:
    """Returns the elements of a partition of a column, and which of them are there; None for all."""
    values, valid = values_and_mask(partition)
    return values if dtype is None else values.astype(dtype), valid


def pack_partition(dtype: Any, skipna: bool, partition: Any) -> list[list[Any]]:
    """Returns the elements of a partition of a column that take part."""
    values, valid = elements_of_partition(dtype, partition)
    return pack_chunk((0,), skipna, valid, values)


def index_partition(call: Call, dtype: Any, skipna: bool, begin: int, partition: Any) -> list[Any]:
    """Returns a partial of an index."""
    values, valid = elements_of_partition(dtype, partition)
    return index_chunk(call, (0,), skipna, begin, valid, values)


def finish_column(call: Call, chunks: Sequence[list[Any]]) -> Any:
    """Returns the result of a column of a frame from its last partitions."""
    return value_or_null(lambda: finish_chunks(call, (), chunks), call.dtype)


def by_column(names: Any, results: Sequence[Any]) -> Any:
    """Returns the results of columns as a Series."""
    import pandas

    return pandas.Series(as_one_array(results), index=names)
