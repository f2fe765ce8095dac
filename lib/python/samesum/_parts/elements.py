"""Reductions element by element of arrays of which each rank contributes one."""

from __future__ import annotations

import math
from typing import Any, Callable

from .._calls.arguments import Call, check_grid
from .._calls.methods import Method
from .._calls.reduction import reduce
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


class _Exchange:
    """The contributions of all ranks to x, in rows, of which each rank gets and reduces one."""

    rows: Any
    received: Any
    result: Any
    """The results of this rank's row."""
    whole: Any = None
    """An array for the results of all rows; None if the ranks do not gather them."""

    def __init__(self, ranks: Ranks, call: Call, require: Callable[[str, Any], None]) -> None:
        """`require(name, array)` raises if the engine cannot take an array."""
        self._ranks, self._call, self._require = ranks, call, require

    def describe(self, shape_of_out: Callable[[tuple[int, ...]], tuple[int, ...]]) -> tuple[dict[str, Any], None]:
        """Makes the rows and memory for those received. Returns what all ranks must have the same."""
        x, out = self._call.x, self._call.out
        self._require("x", x)
        self._require("out", out)
        self._library, dtype = library_of(x), dtype_name(x.dtype)
        elements = self._library.contiguous(self._library.array(x)).reshape(-1)
        chosen = _method_for_elements(self._call.method, method_format(x.dtype), self._library.view(elements).device)
        self._call.operation = chosen.operation
        # The results for no columns have the type of all results.
        none = self._library.empty((self._ranks.size, 0), dtype, elements)
        _require_fit(out, shape_of_out(tuple(x.shape)), self._reduced(none))
        self.rows = _in_rows(self._library, elements, self._ranks.size)
        self.received = self._library.empty(tuple(self.rows.shape), dtype, self.rows)
        grid = check_grid(self._call.grid)
        return {"method": everywhere(chosen), "shape": tuple(x.shape), "data type": dtype, "grid": grid}, None

    def _reduced(self, rows: Any) -> Any:
        return reduce(Call(self._call.operation, rows, 0, method=self._call.method, grid=self._call.grid))

    def reduce_row(self, gathers: bool) -> None:
        """Reduces what was received, and makes memory for the results of all rows if the ranks gather them."""
        self.result = self._reduced(self.received)
        self.received = None
        if gathers:
            self.whole = self._library.empty(self.rows.shape, dtype_name(self.result.dtype), self.result)

    def write(self) -> None:
        """Writes the results to `out`."""
        results = self.result
        if self.whole is not None:
            self._ranks.all_gather_rows(self.result, self.whole)
            results = self.whole.reshape(-1)[: math.prod(self._call.x.shape)]
        self._library.copy_to(self._call.out, results.reshape(tuple(self._call.out.shape)))


    def make(
        self, function: str, shape_of_out: Callable[[tuple[int, ...]], tuple[int, ...]], gathers: bool
    ) -> Any:
        """Reduces the contributions of all ranks to x; each rank a row of their elements.

        Writes the result of this rank's row to `out`, or of all rows if it `gathers` them. Without `check`, the ranks
        exchange no more than the elements.
        """
        ranks, call = self._ranks, self._call
        if call.check:
            agreed(ranks, function, lambda: self.describe(shape_of_out))
        else:
            self.describe(shape_of_out)
        if math.prod(call.x.shape) == 0:
            return call.out
        ranks.all_to_all(self.rows, self.received)
        if call.check:
            on_all_ranks(ranks, function, lambda: self.reduce_row(gathers))
        else:
            self.reduce_row(gathers)
        self.write()
        return call.out


def all_reduce(ranks: Ranks, call: Call, require: Callable[[str, Any], None]) -> Any:
    """Writes the reductions of the contributions of all ranks to `out`. See the functions `all_reduce`.

    `require(name, array)` raises if the engine cannot take an array.
    """
    return _Exchange(ranks, call, require).make("all_reduce", lambda shape: shape, True)


def reduce_scatter(ranks: Ranks, call: Call, require: Callable[[str, Any], None]) -> Any:
    """Writes this rank's share of the reductions to `out`. See the functions `reduce_scatter`, and `all_reduce`."""

    def share(shape: tuple[int, ...]) -> tuple[int, ...]:
        if not shape or shape[0] % ranks.size:
            raise ValueError(
                f"samesum: x has shape {shape}, whose first axis {ranks.size} ranks cannot share evenly; pad it"
            )
        return (shape[0] // ranks.size, *shape[1:])

    return _Exchange(ranks, call, require).make("reduce_scatter", share, False)
