"""Reductions of a vector of which each rank, or worker, holds a block: partials, merged in the order of the blocks."""

from __future__ import annotations

import math
from typing import Any, Iterable

from .. import _core
from .._arrays.inputs import array_of, second_array
from .._calls.arguments import Call, check_grid
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


def reduce_blocks(ranks: Ranks, call: Call) -> Any:
    """Reduces a vector, or two, of which each rank holds a block, in rank order. See the functions `reduce`."""

    def describe() -> tuple[dict[str, Any], int]:
        library, x = array_of(call.x)
        call.x, call.y = x, None if call.y is None else second_array(library, x, call.y)
        call.method = find_method(call.method, method_format(x.dtype), library.view(x).device)
        Partial(call.method, grid=check_grid(call.grid))
        names = {"method": everywhere(call.method), "grid": check_grid(call.grid), "correction": float(call.ddof)}
        return names, math.prod(x.shape)

    sizes = agreed(ranks, "reduce", describe)

    def part() -> bytes:
        block = Partial(call.method, sum(sizes[: ranks.rank]), grid=call.grid)
        block.add(call.x, call.y, threads=call.threads)
        return block.to_bytes()

    parts = gathered(ranks, "reduce", part)
    result: Any = None

    def finish() -> None:
        nonlocal result
        result = merged_bytes(parts).finish(correction=call.ddof)

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
