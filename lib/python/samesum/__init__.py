"""Reductions with the same bits on every machine, and with rigorous bounds on their errors.

>>> import samesum
>>> samesum.sum([1e16, 1, 1, -1e16])
2.0
"""

from ._calls.integers import integer_overflow
from ._calls.methods import Method
from ._cells.cells import Cells, cells
from ._cells.headers import include_dirs
from ._elements import traced as _traced
from ._functions.cumulative import cumlogsumexp, cummax, cummin, cumprod, cumsum, cumulative_prod, cumulative_sum
from ._functions.exponentials import log_softmax, logsumexp, softmax
from ._functions.nan import (
    nanargmax, nanargmin, nancumprod, nancumsum, nanmax, nanmean, nanmin, nanprod, nanstd, nansum, nanvar,
)  # fmt: skip
from ._functions.reductions import argmax, argmin, dot, max, mean, min, norm, prod, std, sum, var, vecdot
from ._functions.rolling import rolling_max, rolling_mean, rolling_min, rolling_std, rolling_sum, rolling_var
from ._groups.groupby import groupby
from ._keys.runs import reduce_by_key
from ._keys.sums import bincount, groupby_sum, scatter_add
from ._parts.states import Exact, Partial, fsum
from ._statistics.pairs import LinearRegression, corrcoef, cov, linear_regression
from ._statistics.weights import average
from ._study.bounds import Estimate, bound, estimate
from ._study.choice import Choice, choose
from ._study.comparison import compare
from ._study.methods import methods

__all__ = [
    "Cells", "Choice", "Estimate", "Exact", "LinearRegression", "Method", "Partial", "argmax", "argmin", "average",
    "bincount", "bound", "cells", "choose", "compare", "corrcoef", "cov", "cumlogsumexp", "cummax", "cummin", "cumprod",
    "cumsum", "cumulative_prod", "cumulative_sum", "dot", "estimate", "fsum", "groupby", "groupby_sum",
    "include_dirs", "integer_overflow", "linear_regression", "log_softmax", "logsumexp", "max", "mean", "methods",
    "min", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd",
    "nansum", "nanvar", "norm", "prod", "reduce_by_key", "rolling_max", "rolling_mean", "rolling_min",
    "rolling_std", "rolling_sum", "rolling_var", "scatter_add", "softmax", "std", "sum", "var", "vecdot",
]  # fmt: skip


def _for_torch() -> object:
    from ._torch import traced

    return traced


def _for_jax() -> object:
    from . import jax

    return jax


_traced.modules.update(torch=_for_torch, jax=_for_jax)


def __getattr__(name: str) -> object:
    if name in ("torch", "jax", "dask", "mpi", "sql", "triton", "numba", "warp"):  # imported on first use
        import importlib

        return importlib.import_module(f"samesum.{name}")
    if name == "__version__":
        from importlib.metadata import version

        return version("samesum")
    raise AttributeError(f"module 'samesum' has no attribute {name!r}")
