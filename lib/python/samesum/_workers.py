"""Reductions whose elements lie on several workers, which an engine connects.

Two functions serve every engine: `merged` joins partials of consecutive blocks, and `reduced_over_ranks` reduces the
contributions of ranks element by element. An engine is given as a `Ranks`: it carries arrays and objects, and computes
nothing.
"""

from __future__ import annotations

import math
from functools import lru_cache
from importlib import metadata
from typing import Any, Callable, Iterable, Protocol

from . import _core
from ._arrays import dtype_name, format_of, library_of
from ._calls import Method, check_grid, method_of
from ._calls import reduce as _reduce
from ._states import Partial, array_of


class Ranks(Protocol):
    """Ranks that call the same functions in the same order."""

    rank: int
    size: int

    def all_gather(self, value: Any) -> list[Any]:
        """Returns the objects of all ranks, in rank order."""

    def all_to_all(self, rows: Any) -> Any:
        """Sends row r of an array to rank r, and returns the array of the rows received, in rank order."""

    def all_gather_rows(self, row: Any) -> Any:
        """Returns the array of the rows of all ranks, in rank order."""


# --- errors on all ranks --------------------------------------------------------------------------------------

_ERRORS: dict[str, type[Exception]] = {e.__name__: e for e in (TypeError, ValueError, OverflowError, MemoryError)}


def on_all_ranks(ranks: Ranks, function: str, step: Callable[[], Any]) -> list[Any]:
    """Returns what `step` returns on each rank. If it raises on one rank, every rank raises."""
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
    rank order. If a description differs, or `describe` raises on one rank, every rank raises.
    """

    def step() -> Any:
        description, value = describe()
        return {"version of samesum": _version(), "function": function} | description, value

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
        y = None if y is None else array_of(y)[1]
        format = format_of(x.dtype)
        chosen = find_method(method, "fp64" if format == "int" else format, library.view(x).device)
        Partial(chosen, grid=check_grid(grid))
        return {"method": _everywhere(chosen), "grid": grid, "correction": correction}, math.prod(x.shape)

    sizes = agreed(ranks, "reduce", describe)

    def part() -> bytes:
        block = Partial(chosen, sum(sizes[: ranks.rank]), grid=grid)
        block.add(x, y, threads=threads)
        return block.to_bytes()

    return merged_bytes(on_all_ranks(ranks, "reduce", part)).finish(correction=correction)


def merged_bytes(parts: Iterable[bytes]) -> Any:
    """Merges the serialised partials of all ranks."""

    def read(rank: int, data: bytes) -> Partial:
        try:
            return Partial.from_bytes(data)
        except ValueError as error:
            raise ValueError(
                f"samesum: the partial of rank {rank} did not arrive whole: {error}; reduce again"
            ) from error

    return merged(read(rank, data) for rank, data in enumerate(parts))


# --- element by element ---------------------------------------------------------------------------------------


def _piece(
    ranks: Ranks, function: str, rows: Any, method: str | Method | None, operation: str, grid: int | None, check: bool
) -> Any:
    """Exchanges rows and reduces those received: each rank gets the results of its own columns."""
    received = ranks.all_to_all(rows)
    result: Any = None

    def step() -> None:
        nonlocal result
        result = _reduce(operation, received, axis=0, method=method, grid=grid)

    if check:
        on_all_ranks(ranks, function, step)
    else:
        step()
    return result


def _prepared(
    ranks: Ranks, function: str, x: Any, out: Any, shape_of_out: Callable[[tuple[int, ...]], tuple[int, ...]],
    require: Callable[[str, Any], None], method: str | Method | None, grid: int | None, check: bool,
) -> tuple[Any, str]:  # fmt: skip
    """Returns the contiguous elements of x as a vector, and the operation, after all ranks have agreed on the call."""
    elements, operation = x, ""

    def describe() -> tuple[dict[str, Any], None]:
        nonlocal elements, operation
        require("x", x)
        require("out", out)
        library = library_of(x)
        elements = library.contiguous(library.array(x)).reshape(-1)
        format, device = format_of(x.dtype), library.view(elements).device
        chosen = find_method(method, "fp64" if format == "int" else format, device)
        if chosen.inputs != 1 or chosen.results != 1:
            raise ValueError(f"samesum: method {chosen.name} has not one input and one result; use another operation")
        operation = chosen.operation
        expected = shape_of_out(tuple(x.shape))
        if tuple(out.shape) != expected:
            raise ValueError(f"samesum: out has shape {tuple(out.shape)}; the result has shape {expected}")
        # The results for no columns have the type of all results.
        none = library.empty((ranks.size, 0), dtype_name(x.dtype), elements)
        dtype = dtype_name(_reduce(operation, none, axis=0, method=method, grid=grid).dtype)
        if dtype_name(out.dtype) != dtype:
            raise TypeError(
                f"samesum: the result has elements of type {dtype}, but those of out are {dtype_name(out.dtype)}; "
                "convert the input, or choose a method in its format"
            )
        names = {"method": _everywhere(chosen), "shape": tuple(x.shape), "data type": dtype_name(x.dtype), "grid": grid}
        return names, None

    if check:
        agreed(ranks, function, describe)
    else:
        describe()
    return elements, operation


def all_reduce(
    ranks: Ranks, x: Any, out: Any, *, require: Callable[[str, Any], None], method: str | Method | None,
    grid: int | None, check: bool,
) -> Any:  # fmt: skip
    """Writes the reductions of the contributions of all ranks to `out`. See the functions `all_reduce`.

    `require(name, array)` raises if the engine cannot take an array.
    """
    elements, operation = _prepared(ranks, "all_reduce", x, out, lambda shape: shape, require, method, grid, check)
    library, n = library_of(elements), math.prod(elements.shape)
    if n == 0:
        return out
    width = -(-n // ranks.size)
    if n < width * ranks.size:  # equal pieces, since not every engine gathers others
        padded = library.empty((width * ranks.size,), dtype_name(elements.dtype), elements)
        padded[:n] = elements
        padded[n:] = 0
        elements = padded
    piece = _piece(ranks, "all_reduce", elements.reshape(ranks.size, width), method, operation, grid, check)
    library.copy_to(out, ranks.all_gather_rows(piece).reshape(-1)[:n].reshape(tuple(out.shape)))
    return out


def reduce_scatter(
    ranks: Ranks, x: Any, out: Any, *, require: Callable[[str, Any], None], method: str | Method | None,
    grid: int | None, check: bool,
) -> Any:  # fmt: skip
    """Writes this rank's share of the reductions to `out`. See the functions `reduce_scatter`."""

    def share(shape: tuple[int, ...]) -> tuple[int, ...]:
        if not shape or shape[0] % ranks.size:
            raise ValueError(
                f"samesum: x has shape {shape}, whose first axis {ranks.size} ranks cannot share evenly; pad it"
            )
        return (shape[0] // ranks.size, *shape[1:])

    elements, operation = _prepared(ranks, "reduce_scatter", x, out, share, require, method, grid, check)
    if math.prod(elements.shape):
        rows = elements.reshape(ranks.size, -1)
        piece = _piece(ranks, "reduce_scatter", rows, method, operation, grid, check)
        library_of(elements).copy_to(out, piece.reshape(tuple(out.shape)))
    return out
