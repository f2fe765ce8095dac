"""Reductions in JAX: under jit, vmap and grad, through JAX's foreign function interface.

The functions of samesum accept JAX arrays, and this module exports the same functions. They read arrays in
host memory in place. Under a transformation, and for arrays on a GPU, they become calls that XLA makes on the
device of the computation, in its stream. A method's name without a backend means that device.

Formats. JAX has 64-bit types only after `jax.config.update("jax_enable_x64", True)`. Without it, a call whose
result is fp64, or whose elements must be converted to fp64, raises TypeError, and indices are int32, as JAX's
are. Sums of integers are int32 then, or raise OverflowError; under a transformation they raise TypeError,
since a compiled function cannot raise OverflowError. For the same reason, a sum beyond 64 bits wraps under a
transformation, and integers that fp64 does not hold are rounded to it.

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

import math
from functools import lru_cache, partial
from typing import Any, NamedTuple, Sequence

import jax
import jax.numpy as jnp
import numpy

from . import _core
from ._calls.arguments import Call as PublicCall
from ._calls.arguments import check_threads
from ._calls.inputs import common_type
from ._calls.integers import EXACT_OPERATIONS
from ._calls.methods import Method, method_of
from ._elements.formats import DTYPES, dtype_name, format_of, no_integers
from ._elements.layout import axes_last, normalised_axes, paired, reduced_shape
from ._elements.library import library_of
from ._functions.exponentials import log_softmax, logsumexp, softmax
from ._functions.reductions import argmax, argmin, dot, max, mean, min, norm, prod, std, sum, var, vecdot

__all__ = [
    "argmax", "argmin", "dot", "log_softmax", "logsumexp", "max", "mean", "min", "norm", "prod", "softmax",
    "std", "sum", "var", "vecdot",
]  # fmt: skip

_TARGET = "samesum_reduce"


class Call(NamedTuple):
    """What XLA calls: a method for the last axis of arrays. A name without a backend means the device's."""

    method: Method
    name: str
    format: str  # of the result
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
    if not call.method.has_result_per_element:
        shape = shape[:-1] + ((2,) if call.method.results == 2 else ())
    dtype = "int64" if call.method.returns_index else DTYPES[call.format]
    # vmap adds axes in front; the handler takes any number of them.
    run = jax.ffi.ffi_call(
        _TARGET, jax.ShapeDtypeStruct(shape, jnp.dtype(dtype)), vmap_method="broadcast_all"
    )
    result = run(*arrays, method=call.name, threads=call.threads, ddof=call.ddof)
    if call.method.returns_index and not jax.config.jax_enable_x64:
        return jax.lax.convert_element_type(result, jnp.int32)
    return result


def _forward(call: Call, *arrays: Any) -> tuple[Any, Any]:
    result = _reduced(call, *arrays)
    return result, (arrays, result)


def _backward(call: Call, saved: Any, gradient: Any) -> tuple[Any, ...]:
    arrays, result = saved
    if call.method.returns_index:
        return tuple(jnp.zeros_like(x) for x in arrays)
    # In the format of the result, at least fp32.
    dtype = jnp.promote_types(result.dtype, jnp.float32)
    values = [x.astype(dtype) for x in arrays]
    g, r = (_kept(call, a.astype(dtype)) for a in (gradient, result))
    found = _GRADIENTS[call.method.operation](call, g, r, *values)
    return tuple(g.astype(x.dtype) for g, x in zip(found if isinstance(found, tuple) else (found,), arrays))


def _kept(call: Call, a: Any) -> Any:
    """Returns results, or their gradients, with a last axis for the reduced one."""
    return a if call.method.has_result_per_element or call.method.results == 2 else a[..., None]


_reduced.defvjp(_forward, _backward)


def _like(call: Call, operation: str, x: Any, *others: Any) -> Any:
    """Reduces x by another operation: exactly if the call is exact, else in the order tree."""
    accumulator = "exact" if "/exact/" in call.name else "tree/plain"
    method = method_of(accumulator, operation, format_of(x.dtype), -1)
    return _reduced(_call_of(method, "", call.threads, 0, x.dtype), x, *others)


# Each gradient is that of the inputs: one array, or one for each of two inputs.


def _of_moments(call: Call, g: Any, r: Any, x: Any) -> Any:
    n = x.shape[-1]
    return g[..., :1] / n + g[..., 1:] * (2 / (n - call.ddof) if n > call.ddof else jnp.nan) * (x - r[..., :1])


def _products_of_others(x: Any) -> Any:
    """Returns for each element the product of the others, from a tree of products; zeros need no division."""
    n = x.shape[-1]
    if n <= 1:
        return jnp.ones_like(x)
    pairs = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n % 2)], constant_values=1)
    left, right = pairs[..., ::2], pairs[..., 1::2]
    others = _products_of_others(left * right)
    return jnp.stack([others * right, others * left], axis=-1).reshape(pairs.shape)[..., :n]


def _of_extremum(call: Call, g: Any, r: Any, x: Any) -> Any:
    found = (x == r).astype(x.dtype)
    return g * found / found.sum(-1, keepdims=True)


def _of_norm(call: Call, g: Any, r: Any, x: Any) -> Any:
    zero = r == 0
    return jnp.where(zero, 0, g / jnp.where(zero, 1, r)) * x


def _of_logsumexp(call: Call, g: Any, r: Any, x: Any) -> Any:
    # The derivative is exp(x - result). If the result is inf, it is 0 for finite elements, the softmax NaN for all.
    return g * jnp.where((x < jnp.inf) & (r == jnp.inf), 0, _like(call, "softmax", x))


_GRADIENTS = {
    "sum": lambda call, g, r, x: jnp.broadcast_to(g, x.shape),
    "mean": lambda call, g, r, x: jnp.broadcast_to(g / x.shape[-1], x.shape),
    "moments": _of_moments,
    "prod": lambda call, g, r, x: g * _products_of_others(x),
    "min": _of_extremum,
    "max": _of_extremum,
    "dot": lambda call, g, r, x, y: (g * y, g * x),
    "norm": _of_norm,
    "sum_of_magnitudes": lambda call, g, r, x: g * jnp.sign(x),
    "squared_norm": lambda call, g, r, x: g * 2 * x,
    "logsumexp": _of_logsumexp,
    "softmax": lambda call, g, r, x: r * (g - _like(call, "dot", g, r)[..., None]),
    "log_softmax": lambda call, g, r, x: g - _like(call, "softmax", x) * _like(call, "sum", g)[..., None],
}


# --- from the arguments of a function to a call ------------------------------------------------------------


def _call_of(method: Method, given: str | Method | None, threads: int, ddof: float, dtype: Any) -> Call:
    # A backend that the caller has named stays; otherwise the device decides.
    named = method.name if isinstance(given, str) and "@" in given else method.name.partition("@")[0]
    return Call(method, named, format_of(dtype) if method.keeps_format else method.format, threads, float(ddof))


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


def _inputs(given: PublicCall) -> tuple[list[Any], tuple[int, ...]]:
    """Returns the inputs in one type and shape, and the reduced axes."""
    y, axis, dtype, second = given.y, given.axis, given.dtype, given.second
    arrays = [_array(given.x, "x")] + ([] if y is None else [_array(y, second)])
    if dtype is not None:
        name = dtype_name(dtype)
        format_of(name, "dtype")
        _require_x64(name, "dtype is")
        arrays = [a.astype(name) for a in arrays]
    if y is None:
        return arrays, normalised_axes(axis, arrays[0].ndim)
    for a, argument in zip(arrays, ("x", second)):
        format_of(a.dtype, argument)
    wider = common_type(numpy, *(a.dtype for a in arrays))  # as outside transformations
    _require_x64(wider, f"the common type of x and {second} is")
    *arrays, axes = paired(jnp, *(a.astype(wider) for a in arrays), axis)
    return list(jnp.broadcast_arrays(*arrays)), axes


def _in_rows(a: Any, axes: Sequence[int]) -> Any:
    """Returns an array whose last axis has the elements of the axes."""
    n = math.prod(a.shape[d] for d in axes)
    return a.transpose(axes_last(a.ndim, axes)[0]).reshape(*reduced_shape(a.shape, axes, False), n)


def reduce_traced(given: PublicCall) -> Any:
    """Makes one call of a public function as a JAX function."""
    operation = given.operation
    if given.out is not None:
        raise TypeError("samesum: out is given, but JAX arrays cannot be written; use the result")
    _register()
    check_threads(given.threads)
    arrays, axes = _inputs(given)
    shape = tuple(arrays[0].shape)
    if format_of(arrays[0].dtype) == "int":
        if operation in EXACT_OPERATIONS:
            return _reduced_integers(operation, arrays[0], axes, given.keepdims)
        _require_x64("float64", "integers are converted to")
        arrays = [a.astype("float64") for a in arrays]
    chosen = method_of(given.method, operation, format_of(arrays[0].dtype), -1)
    if not chosen.returns_index and not chosen.has_result_per_element:
        _require_x64(DTYPES[chosen.format], f"method {chosen.name} returns")
    call = _call_of(chosen, given.method, given.threads, given.ddof, arrays[0].dtype)
    result = _reduced(call, *(_in_rows(a, axes) for a in arrays))
    if call.method.has_result_per_element:
        order, back = axes_last(len(shape), axes)
        result = result.reshape(tuple(shape[d] for d in order)).transpose(back)
    elif given.keepdims:
        result = result.reshape(reduced_shape(shape, axes, True) + ((2,) if call.method.results == 2 else ()))
    return result if given.finish is None else given.finish(jnp, result)


def _reduced_integers(operation: str, a: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Reduces integers by XLA's integer operations, whose order cannot change the result."""
    shape = tuple(a.shape)
    if operation == "sum":
        wide = "uint64" if dtype_name(a.dtype).startswith("uint") else "int64"
        _require_x64(wide, "a sum of integers is")
        result = a.astype(wide).sum(axes)
    else:
        if math.prod(shape[d] for d in axes) == 0:
            raise no_integers(operation, False)
        result = getattr(jnp, operation)(_in_rows(a, axes), axis=-1)
    return result.reshape(reduced_shape(shape, axes, True)) if keepdims else result
