"""Reductions of Dask arrays, with the bits of the whole array in one memory.

>>> import dask.array, samesum.dask
>>> x = dask.array.from_array([1e16, 1.0, 1.0, -1e16], chunks=3)
>>> samesum.dask.sum(x).compute(), x.sum().compute()
(np.float64(2.0), np.float64(0.0))

This module has each function of `samesum` whose methods have partials (`samesum.Partial`), with the same parameters
except `out`, `threads`, `check`, and PyTorch's `dim` and `keepdim`. Results are Dask arrays, computed when Dask
computes them, by any of its schedulers. Neither the chunks nor the workers change a bit.

Chunks. Exact methods, extrema and fixed_point take any chunks. An order such as tree, and the index of argmin and
argmax, need chunks that hold consecutive elements: if several axes are reduced, only the first of them may be cut. All
other chunks raise ValueError, which names the remedy.

Masks. `where` is a Dask array, or one of NumPy; its chunks do not matter. Masked blocks use their mask, if Dask knows
that they are masked; otherwise they raise TypeError. Elements that take no part are packed away in each chunk, which
then takes three tasks: to pack, to count and to reduce.

Frames. Series and DataFrames of dask.dataframe are taken too, by functions of one input: each column is reduced over
all partitions, of which nothing is known but their order. A Series becomes a Dask array of no axes, a DataFrame a
Series of results by column. Nulls are missing values. They take no masks and weights.

Costs. A result whose elements lie in one chunk is computed by one call for all results of the chunk. Otherwise each
result of each chunk is a partial, a Python object: that suits few long reductions. For many short ones,
`x.rechunk({axis: -1})` first. Weighted means and variances divide integers of Python, which takes long if
there are many results and chunks.
"""

from __future__ import annotations

import inspect
from typing import Any, Callable

import dask.array as da

from .. import _core
from .._calls.arguments import arguments_by_name
from .._functions import reductions as _functions
from .._parts.states import Partial
from . import _arrays
from ._graph import operation_of


def _has_partials(operation: str) -> bool:
    for method in _core.methods():
        if method.operation == operation and method.backend == "cpu":
            try:
                Partial(method, grid=0 if method.accumulator == "fixed_point" else None)
                return True
            except ValueError:
                pass
    return False


_IN_MEMORY = ("out", "threads", "check", "dim", "keepdim")
"""Parameters that only the functions for arrays in memory have."""


def _for_dask(function: Callable[..., Any]) -> Callable[..., da.Array]:
    parameters = inspect.signature(function).parameters
    inputs = [p for p in parameters if p in ("x", "y")]
    shown = [p for n, p in parameters.items() if n not in _IN_MEMORY]
    shown.append(inspect.Parameter("split_every", inspect.Parameter.KEYWORD_ONLY, default=8, annotation=int))
    signature = inspect.Signature(shown, return_annotation=da.Array)

    def reduction(*arguments: Any, **options: Any) -> da.Array:
        given = arguments_by_name(function.__name__, signature, arguments, options)
        return _arrays.reduce(function, [given.pop(name) for name in inputs], {"dtype": None, **given})

    reduction.__name__ = reduction.__qualname__ = function.__name__
    reduction.__signature__ = signature  # type: ignore[attr-defined]
    summary = (function.__doc__ or "").partition("\n")[0]
    reduction.__doc__ = f"""{summary}

    Has the parameters and the bits of `samesum.{function.__name__}` for the whole array in memory.

    Parameters
    ----------
    {", ".join(inputs)}
        Dask arrays of NumPy's arrays, with chunks of known size: see the module for those that methods need, and for
        frames.
    {", ".join(p.name for p in shown[len(inputs):-1])}
        as for `samesum.{function.__name__}`. fixed_point needs a grid if the reduced axes are cut.
    split_every
        how many partials one task merges. It never changes the bits.

    Returns
    -------
    result
        a Dask array.
    """
    return reduction


_offered = {f.__name__: _for_dask(f) for f in _functions.FUNCTIONS if _has_partials(operation_of(f))}
__all__ = list(_offered)


def __getattr__(name: str) -> Callable[..., da.Array]:  # as globals, they would hide the sum and max of Python here
    if name in _offered:
        return _offered[name]
    raise AttributeError(f"module 'samesum.dask' has no attribute {name!r}; its functions are {', '.join(_offered)}")


def __dir__() -> list[str]:
    return __all__
