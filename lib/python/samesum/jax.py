"""Reductions in JAX: under jit, vmap and grad, through JAX's foreign function interface.

The functions of samesum accept JAX arrays, and this module exports the same functions. They read arrays in
host memory in place. Under a transformation, and for arrays on a GPU, they become calls that XLA makes on the
device of the computation, in its stream. A method's name without a backend means that device.

Formats. JAX has 64-bit types only after `jax.config.update("jax_enable_x64", True)`. Without it, a call whose
result is fp64, or whose elements must be converted to fp64, raises TypeError, and indices are int32, as JAX's
are. Sums of integers are int32 then, or raise OverflowError; under a transformation they raise TypeError,
since a compiled function cannot raise OverflowError. For the same reason, a sum beyond 64 bits wraps under a
transformation.

Gradients. Reverse mode, to any order. They consist of reductions of samesum, with the promise of their
methods, and of elementwise operations and sums over broadcast axes by XLA, whose bits samesum does not
promise. min and max divide the gradient equally among equal elements, as JAX does.

>>> import jax, samesum
>>> jax.jit(samesum.sum)(jax.numpy.array([1e8, 1.0, -1e8]))
Array(1., dtype=float32)
>>> jax.grad(samesum.norm)(jax.numpy.array([3.0, 4.0]))
Array([0.6, 0.8], dtype=float32)
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple, Sequence

import jax
import jax.numpy as jnp
import numpy

from . import _core
from ._arrays import DTYPES, dtype_name, format_of, library_of
from ._calls import Method, check_threads, common_type, method_of
from ._functions import (
    argmax, argmin, dot, log_softmax, logsumexp, max, mean, min, norm, prod, softmax, std, sum, var, vecdot,
)  # fmt: skip
from ._integers import EXACT_OPERATIONS
from ._layout import normalised_axes, paired

__all__ = [
    "argmax", "argmin", "dot", "log_softmax", "logsumexp", "max", "mean", "min", "norm", "prod", "softmax",
    "std", "sum", "var", "vecdot",
]  # fmt: skip

_TARGET = "samesum_reduce"


class Call(NamedTuple):
    """What XLA calls: a method for the last axis of arrays. A name without a backend means the device's."""

    operation: str
    name: str
    format: str  # of the result
    results: int
    returns_index: bool
    has_result_per_element: bool
    threads: int
    ddof: float


@lru_cache(maxsize=None)
def _register() -> None:
    """Registers the handlers with JAX. Raises ImportError if this installation has none."""
    try:
        from . import _jax
    except ImportError as error:
        raise ImportError(
            "samesum: this installation has no handler for JAX, since JAX was absent when it was built; "
            "build it again with --config-settings=cmake.define.SAMESUM_JAX_INCLUDE=DIR, where DIR is what "
            "jax.ffi.include_dir() returns"
        ) from error
    jax.ffi.register_ffi_target(_TARGET, _jax.cpu, platform="cpu")
    if _core.has_cuda:
        jax.ffi.register_ffi_target(_TARGET, _jax.cuda, platform="CUDA")


@lru_cache(maxsize=None)
def has_handler(platform: str) -> bool:
    """Whether XLA can call samesum on a platform, such as "cpu" or "gpu"."""
    try:
        _register()
    except ImportError:
        return False
    return platform == "cpu" or bool(platform in ("gpu", "cuda") and _core.has_cuda)


def _require_x64(dtype: str, why: str) -> None:
    if dtype in ("float64", "int64", "uint64") and not jax.config.jax_enable_x64:
        raise TypeError(
            f"samesum: {why} {dtype}, which JAX has only after jax.config.update('jax_enable_x64', True); "
            "enable it, or choose a 32-bit type by dtype= or method="
        )


# --- calls and their gradients -----------------------------------------------------------------------------


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _reduced(call: Call, *arrays: Any) -> Any:
    """Reduces the last axis of arrays of one shape."""
    shape = tuple(arrays[0].shape)
    if not call.has_result_per_element:
        shape = shape[:-1] + ((2,) if call.results == 2 else ())
    dtype = "int64" if call.returns_index else DTYPES[call.format]
    # vmap adds axes in front; the handler takes any number of them.
    run = jax.ffi.ffi_call(
        _TARGET, jax.ShapeDtypeStruct(shape, jnp.dtype(dtype)), vmap_method="broadcast_all"
    )
    result = run(*arrays, method=call.name, threads=call.threads, ddof=call.ddof)
    if call.returns_index and not jax.config.jax_enable_x64:
        return jax.lax.convert_element_type(result, jnp.int32)
    return result


def _forward(call: Call, *arrays: Any) -> tuple[Any, Any]:
    result = _reduced(call, *arrays)
    return result, (arrays, result)


def _backward(call: Call, saved: Any, gradient: Any) -> tuple[Any, ...]:
    arrays, result = saved
    if call.returns_index:
        return tuple(jnp.zeros_like(x) for x in arrays)
    # In the format of the result, at least fp32.
    dtype = jnp.promote_types(result.dtype, jnp.float32)
    values = [x.astype(dtype) for x in arrays]
    found = _GRADIENTS[call.operation](call, gradient.astype(dtype), result.astype(dtype), *values)
    return tuple(g.astype(x.dtype) for g, x in zip(found, arrays))


_reduced.defvjp(_forward, _backward)


def _like(call: Call, operation: str, x: Any, *others: Any) -> Any:
    """Reduces x by another operation: exactly if the call is exact, else in the order tree."""
    accumulator = "exact" if "/exact/" in call.name else "tree/plain"
    method = method_of(accumulator, operation, format_of(x.dtype), -1)
    return _reduced(_call_of(operation, method, "", call.threads, 0, x.dtype), x, *others)


def _of_sum(call: Call, g: Any, r: Any, x: Any) -> tuple[Any, ...]:
    return (jnp.broadcast_to(g[..., None], x.shape),)


def _of_mean(call: Call, g: Any, r: Any, x: Any) -> tuple[Any, ...]:
    return (jnp.broadcast_to(g[..., None] / x.shape[-1], x.shape),)


def _of_moments(call: Call, g: Any, r: Any, x: Any) -> tuple[Any, ...]:
    n = x.shape[-1]
    return (
        g[..., :1] / n + g[..., 1:] * (2 / (n - call.ddof) if n > call.ddof else jnp.nan) * (x - r[..., :1]),
    )


def _of_prod(call: Call, g: Any, r: Any, x: Any) -> tuple[Any, ...]:
    return (g[..., None] * _products_of_others(x),)


def _products_of_others(x: Any) -> Any:
    """Returns for each element the product of the others, from a tree of products; zeros need no division."""
    n = x.shape[-1]
    if n <= 1:
        return jnp.ones_like(x)
    pairs = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n % 2)], constant_values=1)
    left, right = pairs[..., ::2], pairs[..., 1::2]
    others = _products_of_others(left * right)
    return jnp.stack([others * right, others * left], axis=-1).reshape(pairs.shape)[..., :n]


def _of_extremum(call: Call, g: Any, r: Any, x: Any) -> tuple[Any, ...]:
    found = (x == r[..., None]).astype(x.dtype)
    return (g[..., None] * found / found.sum(-1, keepdims=True),)


def _of_dot(call: Call, g: Any, r: Any, x: Any, y: Any) -> tuple[Any, ...]:
    return g[..., None] * y, g[..., None] * x


def _of_norm(call: Call, g: Any, r: Any, x: Any) -> tuple[Any, ...]:
    zero = r == 0
    return (jnp.where(zero, 0, g / jnp.where(zero, 1, r))[..., None] * x,)


def _of_logsumexp(call: Call, g: Any, r: Any, x: Any) -> tuple[Any, ...]:
    # The derivative is exp(x - result). If the result is inf, it is 0 for finite elements, the softmax NaN for all.
    is_zero = (x < jnp.inf) & (r[..., None] == jnp.inf)
    return (g[..., None] * jnp.where(is_zero, 0, _like(call, "softmax", x)),)


def _of_softmax(call: Call, g: Any, r: Any, x: Any) -> tuple[Any, ...]:
    return (r * (g - _like(call, "dot", g, r)[..., None]),)


def _of_log_softmax(call: Call, g: Any, r: Any, x: Any) -> tuple[Any, ...]:
    return (g - _like(call, "softmax", x) * _like(call, "sum", g)[..., None],)


_GRADIENTS = {
    "sum": _of_sum,
    "mean": _of_mean,
    "moments": _of_moments,
    "prod": _of_prod,
    "min": _of_extremum,
    "max": _of_extremum,
    "dot": _of_dot,
    "norm": _of_norm,
    "sum_of_magnitudes": lambda call, g, r, x: (g[..., None] * jnp.sign(x),),
    "squared_norm": lambda call, g, r, x: (g[..., None] * 2 * x,),
    "logsumexp": _of_logsumexp,
    "softmax": _of_softmax,
    "log_softmax": _of_log_softmax,
}


# --- from the arguments of a function to a call ------------------------------------------------------------


def _call_of(
    operation: str, method: Method, given: str | Method | None, threads: int, ddof: float, dtype: Any
) -> Call:
    # A backend that the caller has named stays; otherwise the device decides.
    named = method.name if isinstance(given, str) and "@" in given else method.name.partition("@")[0]
    format = format_of(dtype) if method.keeps_format else method.format
    return Call(
        operation,
        named,
        format,
        method.results,
        method.returns_index,
        method.has_result_per_element,
        threads,
        float(ddof),
    )


def _array(x: Any, argument: str) -> Any:
    library = library_of(x)
    if library.name == "numpy" and hasattr(x, "__array__"):
        x = library.array(x, argument)
        format_of(x.dtype, argument)
    if hasattr(x, "dtype"):
        _require_x64(dtype_name(x.dtype), f"{argument} has elements of type")
    try:
        return jnp.asarray(x)
    except (TypeError, OverflowError) as error:
        kind = OverflowError if isinstance(error, OverflowError) else TypeError
        raise kind(
            f"samesum: {argument} is a {type(x).__name__}, which JAX cannot read; pass an array of JAX"
        ) from error


def reduce_traced(
    operation: str,
    x: Any,
    y: Any = None,
    *,
    axis: int | Sequence[int] | None = None,
    dtype: Any = None,
    keepdims: bool = False,
    out: Any = None,
    method: str | Method | None = None,
    threads: int = 0,
    ddof: float = 0,
    finish: Any = None,
) -> Any:
    """Reduces the axes `axis` of x (of x and y, for dot) by a method of `operation`, as a JAX function.

    `finish(namespace, result)` computes further from the results, in jax.numpy.
    """
    if out is not None:
        raise TypeError("samesum: out is given, but JAX arrays cannot be written; use the result")
    _register()
    check_threads(threads)
    arrays = [_array(x, "x")] + ([] if y is None else [_array(y, "y")])
    if dtype is not None:
        name = dtype_name(dtype)
        format_of(name, "dtype")
        _require_x64(name, "dtype is")
        arrays = [a.astype(name) for a in arrays]
    if y is None:
        axes = normalised_axes(axis, arrays[0].ndim)
    else:
        for a, argument in zip(arrays, "xy"):
            format_of(a.dtype, argument)
        wider = common_type(numpy, *(a.dtype for a in arrays))  # as outside transformations
        _require_x64(wider, "the common type of x and y is")
        *arrays, axes = paired(jnp, *(a.astype(wider) for a in arrays), axis)
        arrays = list(jnp.broadcast_arrays(*arrays))
    shape = tuple(arrays[0].shape)
    kept = [d for d in range(len(shape)) if d not in axes]
    if format_of(arrays[0].dtype) == "int":
        if operation in EXACT_OPERATIONS:
            return _reduced_integers(operation, arrays[0], axes, kept, keepdims)
        if operation == "prod":
            raise TypeError(
                "samesum: prod of integers is not supported; pass dtype='float64' for a rounded product"
            )
        _require_x64("float64", "integers are converted to")
        arrays = [a.astype("float64") for a in arrays]
    chosen = method_of(method, operation, format_of(arrays[0].dtype), -1)
    if not chosen.returns_index and not chosen.has_result_per_element:
        _require_x64(DTYPES[chosen.format], f"method {chosen.name} returns")
    call = _call_of(operation, chosen, method, threads, ddof, arrays[0].dtype)
    order = (*kept, *axes)
    n = 1
    for d in axes:
        n *= shape[d]
    rows = [a.transpose(order).reshape(*(shape[d] for d in kept), n) for a in arrays]
    result = _reduced(call, *rows)
    if call.has_result_per_element:
        back = tuple(order.index(d) for d in range(len(shape)))
        result = result.reshape(tuple(shape[d] for d in order)).transpose(back)
    elif keepdims:
        result = result.reshape(_with_ones(shape, axes) + ((2,) if call.results == 2 else ()))
    return result if finish is None else finish(jnp, result)


def _with_ones(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if d in axes else size for d, size in enumerate(shape))


def _reduced_integers(operation: str, a: Any, axes: tuple[int, ...], kept: list[int], keepdims: bool) -> Any:
    """Reduces integers by XLA's integer operations, whose order cannot change the result."""
    shape = tuple(a.shape)
    if operation == "sum":
        wide = "uint64" if dtype_name(a.dtype).startswith("uint") else "int64"
        _require_x64(wide, "a sum of integers is")
        result = a.astype(wide).sum(axes)
    else:
        n = 1
        for d in axes:
            n *= shape[d]
        if n == 0:
            raise ValueError(f"samesum: {operation} of no integers has no value; pass at least one element")
        rows = a.transpose((*kept, *axes)).reshape(*(shape[d] for d in kept), n)
        result = getattr(jnp, operation)(rows, axis=-1)
    return result.reshape(_with_ones(shape, axes)) if keepdims else result
