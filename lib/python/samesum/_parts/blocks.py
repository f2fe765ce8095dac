"""Reductions of a vector of which each rank, or worker, holds a block: partials, merged in the order of the blocks."""

from __future__ import annotations

import math
from typing import Any, Iterable

from .. import _core
from .._arrays.inputs import array_of, second_array
from .._calls.arguments import check_grid
from .._calls.methods import Method, method_of
from .._elements.formats import method_format
from .agreement import Ranks, agreed, are_long, gathered, on_all_ranks
from .states import Partial


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


def everywhere(method: Method) -> str:
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
        names = {"method": everywhere(chosen), "grid": check_grid(grid), "correction": float(correction)}
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

    if are_long(parts):
        on_all_ranks(ranks, "reduce", finish)
    else:  # needs hardly any memory: all ranks succeed, or all raise
        finish()
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
