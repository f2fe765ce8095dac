"""Reductions whose elements lie on several workers, which an engine connects.

`merged` joins partials of consecutive blocks. `reduce_blocks`, `all_reduce` and `reduce_scatter` serve every engine
that connects ranks. An engine is given as a `Ranks`: it carries arrays and objects, and computes nothing.

If a rank raised while others wait for its data, they would wait for ever. So before each exchange of data, the ranks do
all that may fail on one of them, the allocation of what they will receive included, in a step of `on_all_ranks`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from importlib import metadata
from typing import Any, Callable, Iterable, Protocol

from .. import _core
from .._arrays.inputs import array_of, second_array
from .._calls.reduction import Method, check_grid, method_of
from .._calls.reduction import reduce as _reduce
from .._elements.formats import dtype_name, method_format
from .._elements.library import library_of
from .states import Partial


class Ranks(Protocol):
    """Ranks that call the same functions in the same order."""

    rank: int
    size: int

    def all_gather(self, value: Any) -> list[Any]:
        """Returns the objects of all ranks, in rank order. They are small, and consist of built-in types."""

    def all_to_all(self, rows: Any, received: Any) -> None:
        """Sends row r of an array to rank r, and writes the rows that it gets to `received`, in rank order."""

    def all_gather_rows(self, row: Any, rows: Any) -> None:
        """Writes the rows of all ranks to `rows`, in rank order."""


# --- errors on all ranks --------------------------------------------------------------------------------------

_ERRORS: dict[str, type[Exception]] = {e.__name__: e for e in (TypeError, ValueError, OverflowError, MemoryError)}


def on_all_ranks(ranks: Ranks, function: str, step: Callable[[], Any]) -> list[Any]:
    """Returns what `step` returns on each rank: small objects of built-in types, which every rank can read.

    If it raises on one rank, every rank raises.
    """
    value, failure = None, None
    try:
        value = step()
    except Exception as error:  # the other ranks wait for this one: they must learn of any error
        failure = error
    found = ranks.all_gather((value, failure and (type(failure).__name__, str(failure))))
    for rank, (_, failed) in enumerate(found):
        if failed:
            kind, message = failed
            message = f"samesum: {function} failed on rank {rank}: {message.removeprefix('samesum: ')}"
            raise _ERRORS.get(kind, RuntimeError)(message) from failure
    return [value for value, _ in found]


@lru_cache(maxsize=None)
def _version() -> str:
    return metadata.version("samesum")


def agreed(ranks: Ranks, function: str, describe: Callable[[], tuple[dict[str, Any], Any]]) -> list[Any]:
    """Checks that all ranks describe their call in the same way.

    `describe` returns this rank's description, and a value that may differ between ranks. Returns these values, in
    rank order. If the text of a description differs, or `describe` raises on one rank, every rank raises.
    """

    def step() -> Any:
        description, value = describe()
        names = {"version of samesum": _version(), "function": function} | description
        return {argument: str(value) for argument, value in names.items()}, value

    found = on_all_ranks(ranks, function, step)
    first = found[0][0]
    for argument, value in first.items():
        for rank, (other, _) in enumerate(found):
            if other.get(argument) != value:
                raise ValueError(
                    f"samesum: {function}: the {argument} is {value} on rank 0 and {other.get(argument)} on rank "
                    f"{rank}; all ranks must have the same"
                )
    return [value for _, value in found]


_PIECE = 1 << 20  # bytes of each rank that an engine carries at once


def gathered(ranks: Ranks, function: str, step: Callable[[], bytes]) -> list[Any]:
    """Returns the bytes that `step` returns on each rank.

    Long ones travel in pieces, once all ranks have memory for them. If `step` raises on one rank, every rank raises.
    """
    mine = b""

    def begin() -> tuple[int, bytes]:
        nonlocal mine
        mine = step()
        return len(mine), mine if len(mine) <= _PIECE else b""

    found = on_all_ranks(ranks, function, begin)
    longest = max(size for size, _ in found)
    if longest <= _PIECE:
        return [data for _, data in found]
    whole: list[bytearray] = []
    on_all_ranks(ranks, function, lambda: whole.extend(bytearray(size) for size, _ in found))
    for at in range(0, longest, _PIECE):
        for data, piece in zip(whole, ranks.all_gather(mine[at : at + _PIECE])):
            data[at : at + len(piece)] = piece
    return whole


# --- blocks of a vector ---------------------------------------------------------------------------------------


def merged(parts: Iterable[Any]) -> Any:
    """Merges partials of consecutive blocks, in their order."""
    first, *others = parts
    whole = first.copy()
    for part in others:
        whole.merge(part)
    return whole


def find_method(name: str | Method | None, format: str, device: int) -> Method:
    """Returns the method for a call whose operation is that of the method's name, by default sum.

    Raises ValueError if the method has no partials: its results then depend on more than the elements.
    """
    if isinstance(name, str):
        operation = _core.find(name, "sum", format, "cuda" if device >= 0 else "cpu").operation
    else:
        operation = name.operation if isinstance(name, Method) else "sum"
    method = method_of(name, operation, format, device)
    Partial(method, grid=0 if method.accumulator == "fixed_point" else None)
    return method


def _everywhere(method: Method) -> str:
    """Returns the name of a method without its backend: methods that promise `everywhere` agree on all."""
    return method.name.partition("@")[0]


def reduce_blocks(
    ranks: Ranks, x: Any, y: Any, *, method: str | Method | None, correction: float, grid: int | None, threads: int
) -> Any:
    """Reduces a vector, or two, of which each rank holds a block, in rank order. See the functions `reduce`."""
    chosen: Any = None

    def describe() -> tuple[dict[str, Any], int]:
        nonlocal x, y, chosen
        library, x = array_of(x)
        y = None if y is None else second_array(library, x, y)
        chosen = find_method(method, method_format(x.dtype), library.view(x).device)
        Partial(chosen, grid=check_grid(grid))
        names = {"method": _everywhere(chosen), "grid": check_grid(grid), "correction": float(correction)}
        return names, math.prod(x.shape)

    sizes = agreed(ranks, "reduce", describe)

    def part() -> bytes:
        block = Partial(chosen, sum(sizes[: ranks.rank]), grid=grid)
        block.add(x, y, threads=threads)
        return block.to_bytes()

    parts = gathered(ranks, "reduce", part)
    result: Any = None

    def finish() -> None:
        nonlocal result
        result = merged_bytes(parts).finish(correction=correction)

    if max(map(len, parts)) <= _PIECE:  # needs hardly any memory: all ranks succeed, or all raise
        finish()
    else:
        on_all_ranks(ranks, "reduce", finish)
    return result


def merged_bytes(parts: Iterable[Any]) -> Any:
    """Merges the serialised partials of all ranks."""

    def read(rank: int, data: Any) -> Partial:
        try:
            return Partial.from_bytes(data)
        except ValueError as error:
            raise ValueError(
                f"samesum: the partial of rank {rank} did not arrive whole: {error}; reduce again"
            ) from error

    return merged(read(rank, data) for rank, data in enumerate(parts))


# --- element by element ---------------------------------------------------------------------------------------


def _method_for_elements(name: str | Method | None, format: str, device: int) -> Method:
    chosen = find_method(name, format, device)
    if chosen.inputs != 1 or chosen.results != 1:
        raise ValueError(f"samesum: method {chosen.name} has not one input and one result; use another operation")
    return chosen


def _require_fit(out: Any, shape: tuple[int, ...], results: Any) -> None:
    """Checks that `out` has that shape, and the type of the results."""
    if tuple(out.shape) != shape:
        raise ValueError(f"samesum: out has shape {tuple(out.shape)}; the result has shape {shape}")
    if dtype_name(out.dtype) != dtype_name(results.dtype):
        raise TypeError(
            f"samesum: the result has elements of type {dtype_name(results.dtype)}, but those of out are "
            f"{dtype_name(out.dtype)}; convert the input, or choose a method in its format"
        )


def _in_rows(library: Any, a: Any, count: int) -> Any:
    """Returns a vector in rows of one length, since not every engine gathers others. Zeros fill the last one."""
    n, width = a.shape[0], -(-a.shape[0] // count)
    if n < width * count:
        padded = library.empty((width * count,), dtype_name(a.dtype), a)
        padded[:n] = a
        padded[n:] = 0
        a = padded
    return a.reshape(count, width)


def _reduce_elements(
    ranks: Ranks, function: str, x: Any, out: Any, shape_of_out: Callable[[tuple[int, ...]], tuple[int, ...]],
    gathers: bool, require: Callable[[str, Any], None], method: str | Method | None, grid: int | None, check: bool,
) -> Any:  # fmt: skip
    """Reduces the contributions of all ranks to x; each rank a row of their elements.

    Writes the result of this rank's row to `out`, or of all rows if it `gathers` them. `require(name, array)` raises if
    the engine cannot take an array.
    """
    library: Any = None
    rows: Any = None
    received: Any = None
    results: Any = None
    operation = ""

    def describe() -> tuple[dict[str, Any], None]:
        nonlocal library, rows, received, operation
        require("x", x)
        require("out", out)
        library, dtype = library_of(x), dtype_name(x.dtype)
        rows = library.contiguous(library.array(x)).reshape(-1)
        chosen = _method_for_elements(method, method_format(x.dtype), library.view(rows).device)
        operation = chosen.operation
        # The results for no columns have the type of all results.
        none = library.empty((ranks.size, 0), dtype, rows)
        _require_fit(out, shape_of_out(tuple(x.shape)), _reduce(operation, none, axis=0, method=method, grid=grid))
        rows = _in_rows(library, rows, ranks.size)
        received = library.empty(tuple(rows.shape), dtype, rows)
        names = {"method": _everywhere(chosen), "shape": tuple(x.shape), "data type": dtype, "grid": check_grid(grid)}
        return names, None

    def reduce_row() -> None:
        nonlocal received, results
        row = _reduce(operation, received, axis=0, method=method, grid=grid)
        received = None
        results = row, library.empty(rows.shape, dtype_name(row.dtype), row) if gathers else row

    if check:
        agreed(ranks, function, describe)
    else:
        describe()
    n = math.prod(x.shape)
    if n == 0:
        return out
    ranks.all_to_all(rows, received)
    if check:
        on_all_ranks(ranks, function, reduce_row)
    else:
        reduce_row()
    row, whole = results
    if gathers:
        ranks.all_gather_rows(row, whole)
        whole = whole.reshape(-1)[:n]
    library.copy_to(out, whole.reshape(tuple(out.shape)))
    return out


def all_reduce(ranks: Ranks, x: Any, out: Any, **options: Any) -> Any:
    """Writes the reductions of the contributions of all ranks to `out`. See the functions `all_reduce`."""
    return _reduce_elements(ranks, "all_reduce", x, out, lambda shape: shape, True, **options)


def reduce_scatter(ranks: Ranks, x: Any, out: Any, **options: Any) -> Any:
    """Writes this rank's share of the reductions to `out`. See the functions `reduce_scatter`."""

    def share(shape: tuple[int, ...]) -> tuple[int, ...]:
        if not shape or shape[0] % ranks.size:
            raise ValueError(
                f"samesum: x has shape {shape}, whose first axis {ranks.size} ranks cannot share evenly; pad it"
            )
        return (shape[0] // ranks.size, *shape[1:])

    return _reduce_elements(ranks, "reduce_scatter", x, out, share, False, **options)
