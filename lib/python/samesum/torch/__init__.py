"""PyTorch under samesum: a context manager that routes PyTorch's own reductions.

>>> import torch, samesum.torch
>>> model = torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.Linear(8, 8), torch.nn.Softmax(-1))
>>> with samesum.torch.deterministic() as routing:
...     loss = model(torch.ones(2, 8)).square().mean()
...     loss.backward()
>>> sorted(routing.calls)
['layer_norm', 'layer_norm_backward', 'mean', 'softmax', 'softmax_backward', 'sum']

Importing this module also imports the operators torch.ops.samesum.*, which the functions of `samesum` use for
tensors that require gradients.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from torch._compile import _disable_dynamo
from torch.overrides import _get_current_function_mode
from torch.utils._python_dispatch import _get_current_dispatch_mode

from .. import _core
from .._torch_methods import fields
from ._graphs import _Recording
from ._handlers import _HANDLERS
from ._routing import _Routing

__all__ = ["deterministic", "not_routed", "routed"]

_NOT_ROUTED = {
    "matrix products": "mm, bmm, addmm, matmul, linear, einsum, dot, vdot, outer products' gradients",
    "attention": "scaled_dot_product_attention and its fused kernels, MultiheadAttention's fast path",
    "convolutions": "conv1d, conv2d, conv3d, their transposes and gradients",
    "products and cumulative operators": "prod, cumprod, logcumsumexp, trace, nansum, nanmean",
    "scatters": "scatter_reduce, segment_reduce, put with accumulate, bincount, histc, gradients of "
    "embedding_bag, sparse gradients of embedding",
    "other normalisations": "batch_norm, group_norm, instance_norm, weight_norm, local_response_norm",
    "other norms": "vector norms other than the 1-norm and the 2-norm, nuclear norm, cdist, pdist, dist, "
    "renorm",
    "pooling and resampling": "avg_pool, adaptive_avg_pool, interpolate, grid_sample, fold",
    "losses with kernels of their own": "ctc_loss, multi_margin_loss, multilabel_margin_loss",
    "recurrent layers, FFTs, sparse tensors": "lstm, gru, fft, torch.sparse",
    "minima and maxima": "min, max, amin, amax, argmin, argmax, median, sort: their results do not depend on "
    "an order",
}


def not_routed() -> dict[str, str]:
    """Returns what the manager leaves to PyTorch: operators that add, by family.

    Some of them have the same bits in every run anyway, some only if PyTorch's own flag
    torch.use_deterministic_algorithms is set, which the manager does not touch. Elementwise functions such as
    exp and gelu add nothing, but the CPU's and a GPU's may round differently.
    """
    return dict(_NOT_ROUTED)


def routed() -> list[str]:
    """Returns the names of PyTorch's operators that the manager routes."""
    return sorted(str(operator) for operator in _HANDLERS)


def _validated(method: str | _core.Method) -> str:
    if isinstance(method, _core.Method):
        method = "/".join(filter(None, (method.operation, fields(method))))
    unknown = f"samesum: method is {method!r}; use an order and an accumulator, such as 'tree/kahan', or 'exact'"
    if not isinstance(method, str):
        raise TypeError(unknown)
    like = method.removeprefix("sum/")
    promises = [m.promise for m in _core.methods() if m.operation == "sum" and m.backend == "cpu" and fields(m) == like]
    if not promises:
        raise ValueError(unknown)
    if promises[0] not in ("everywhere", "order_free"):
        raise ValueError(
            f"samesum: method {method!r} has the promise {promises[0]}; use one whose bits are the same "
            "everywhere"
        )
    return like


class deterministic:
    """Context manager under which PyTorch's reductions have the same bits in every run and on every machine.

    Inside it, these operators are computed by methods of samesum, on the CPU and on NVIDIA GPUs, forward and
    backward: sum, mean, var, std, var_mean, std_mean, the vector 1-norm and 2-norm, softmax, log_softmax,
    logsumexp, layer_norm, rms_norm, cumsum, index_add, scatter_add, index_put with accumulate, the gradients
    of embedding, gather, index_select and of indexing by tensors, and the sums and means of nll_loss,
    cross_entropy, mse_loss, l1_loss, smooth_l1_loss, huber_loss, kl_div and binary_cross_entropy. Sums that
    autograd itself makes, such as the gradient of a bias, are among them. `routed` lists the operators,
    `not_routed` what is left to PyTorch: matrix products and attention above all. PyTorch's own flag for
    determinism is not touched.

    `method` is an order and an accumulator: "tree/plain", "tree/kahan", "pairwise/plain", "exact", … An
    operation that lacks it uses its closest method, for example norm/tree for "exact", cumsum/prefix/kahan for
    "tree/kahan", and an exact sum by key for all but "serial/plain" and "fixed_point". Elements of 16 bits
    are accumulated in fp32, and each result has the type, the strides and the memory format of PyTorch's. A
    reduction of complex numbers raises TypeError.

    Scope
    -----
    The manager acts in the thread that enters it, and in autograd's threads during a backward pass that this
    thread starts. Managers nest: the innermost one counts and chooses the method. A backward pass of what was
    recorded inside must run inside a manager; outside, it raises RuntimeError. The watch covers results of
    calls and first arguments that a call changes, as in y += b. It does not cover what C++ code or an
    autograd.Function records, if no later operator of the graph was recorded inside.

    A function of torch.compile that was compiled outside is compiled again inside. Its graphs contain
    operators of samesum (torch.ops.samesum), and break where a call, or its gradient, would add in another
    way; where PyTorch cannot break a graph, the function runs eagerly, which is routed too.

    Parameters
    ----------
    method
        an order and an accumulator of sums whose bits are the same everywhere, or a method of sums.

    Attributes
    ----------
    calls
        number of calls by operator, a Counter.

    >>> import torch
    >>> with deterministic("tree/kahan") as routing:
    ...     print(torch.tensor([1e8, 1.0, -1e8]).sum())
    tensor(1.)
    >>> routing.calls
    Counter({'sum': 1})
    """

    def __init__(self, method: str | _core.Method = "tree/plain") -> None:
        self.method = _validated(method)
        self.calls: Counter[str] = Counter()
        self._entered: list[tuple[Any, Any]] = []

    @_disable_dynamo
    def __enter__(self) -> deterministic:
        routing, recording = _Routing(self.method, self.calls), _Recording(self.method)
        routing.__enter__()
        recording.__enter__()
        self._entered.append((routing, recording))
        return self

    @_disable_dynamo
    def __exit__(self, *error: Any) -> None:
        if not self._entered:
            raise RuntimeError("samesum: this manager was not entered; enter it by a with statement")
        routing, recording = self._entered[-1]
        if _get_current_function_mode() is not recording or _get_current_dispatch_mode() is not routing:
            raise RuntimeError(
                "samesum: this manager is not the innermost mode of its thread; leave managers in the reverse "
                "order of entering them, as with statements do"
            )
        self._entered.pop()
        recording.__exit__(*error)
        routing.__exit__(*error)

    def __repr__(self) -> str:
        return f"samesum.torch.deterministic({self.method!r})"
