"""How these functions reduce: by the fast path of `_core`, if that applies."""

from __future__ import annotations

from typing import Any, Callable, Sequence, Union

from .. import _core
from .._calls.arguments import names_of_torch
from .._calls.methods import MethodName
from .._calls.reduction import reduce
from .._elements.library import library_of
from .._elements.traced import watches
from .._frames.reductions import PER_ELEMENT

Axis = Union[int, Sequence[int], None]
_fast = _core.fast


def reduced(
    operation: str, x: Any, axis: Axis, dtype: Any, out: Any, keepdims: bool, method: MethodName, threads: int,
    where: Any = None, skipna: bool = False, dim: Axis = None, keepdim: bool | None = None, grid: int | None = None,
    check: bool = False, ddof: float = 0.0, finish: Callable[[Any, Any], Any] | None = None, as_numpy: bool = False,
) -> Any:  # fmt: skip
    """Reduces x by the fast path, if that applies, else by `reduce`.

    Its callers pass arguments by their places, which takes less time than by their names.
    """
    if dim is not None or keepdim is not None:
        axis, keepdims = names_of_torch(x, axis, dim, keepdims, keepdim, -1 if operation in PER_ELEMENT else None)
    is_plain = dtype is None and out is None and grid is None and where is None and not check
    if is_plain and not (watches and watches[0]()):
        result = _fast(operation, x, method, threads, axis, keepdims, False, ddof, bool(skipna), as_numpy)
        if result is not None:
            if finish is None:
                return result
            library = library_of(x)
            return library.finished(finish(library.namespace, result), x)
    return reduce(
        operation, x, axis=axis, dtype=dtype, out=out, keepdims=keepdims, method=method, threads=threads, grid=grid,
        check=check, ddof=ddof, finish=finish, where=where, skipna=skipna, as_numpy=as_numpy,
    )  # fmt: skip


def weighted(
    function: Callable[..., Any], x: Any, weights: Any, axis: Axis, keepdims: bool, dim: Axis, keepdim: bool | None,
    **options: Any,
) -> Any:  # fmt: skip
    """Calls a function of x and its weights."""
    axis, keepdims = names_of_torch(x, axis, dim, keepdims, keepdim)
    return function(x, weights, axis, keepdims=keepdims, **options)
