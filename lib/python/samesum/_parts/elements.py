"""Reductions element by element of arrays of which each rank contributes one."""

from __future__ import annotations

import math
from typing import Any, Callable

from .._calls.arguments import check_grid
from .._calls.methods import Method
from .._calls.reduction import reduce as _reduce
from .._elements.formats import dtype_name, method_format
from .._elements.library import library_of
from .agreement import Ranks, agreed, on_all_ranks
from .blocks import everywhere, find_method


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
        names = {"method": everywhere(chosen), "shape": tuple(x.shape), "data type": dtype, "grid": check_grid(grid)}
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
