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

import threading
from collections import Counter
from contextlib import ContextDecorator
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any

from torch._compile import _disable_dynamo
from torch.overrides import _get_current_function_mode
from torch.utils._python_dispatch import _get_current_dispatch_mode

from .. import _core
from .._torch.methods import fields
from ._graphs import _Recording
from ._handlers import _HANDLERS
from ._operators import names_by_family
from ._routing import _Routing

__all__ = ["deterministic", "not_routed", "routed"]


def not_routed() -> dict[str, str]:
    """Returns what the manager leaves to PyTorch: names of the installed PyTorch's operators that add, by family.

    Some of them have the same bits in every run anyway, some only if PyTorch's own flag
    torch.use_deterministic_algorithms is set, which the manager does not touch. One that is routed is listed too if it
    is routed for some arguments only, such as norms of the orders 1 and 2. The last family adds nothing, but which of
    several elements is written to one place may depend on the run. Minima, maxima and sorting are not listed, since
    their values do not depend on an order, nor are elementwise functions such as exp and gelu, which add nothing,
    though the CPU's and a GPU's may round differently.
    """
    return names_by_family()


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


class _Entered(threading.local):
    """The modes that a manager has entered, by thread: a decorated function may run in several."""

    def __init__(self) -> None:
        self.modes: list[tuple[Any, Any]] = []


class deterministic(ContextDecorator):
    """Manager and decorator under which PyTorch's reductions have the same bits in every run and on every machine.

    Inside it, these operators are computed by methods of samesum, on the CPU and on NVIDIA GPUs, forward and
    backward: sum, mean, var, std, var_mean, std_mean, the 1-norm and the 2-norm of vectors and of lists of tensors
    (as in clip_grad_norm_), softmax, log_softmax, logsumexp, layer_norm, rms_norm, cumsum, index_add, scatter_add,
    index_put with accumulate, the gradients of embedding, gather, index_select and of indexing by tensors, and the
    sums and means of nll_loss, cross_entropy, mse_loss, l1_loss, smooth_l1_loss, huber_loss, kl_div and
    binary_cross_entropy. Sums that autograd itself makes, such as the gradient of a bias, are among them. `routed`
    lists the operators, `not_routed` what is left to PyTorch: matrix products and attention above all. `missed` counts
    the calls that were left, and with `strict` the first one raises RuntimeError. PyTorch's own flag for determinism
    is not touched.

    `method` is an order and an accumulator: "tree/plain", "tree/kahan", "pairwise/plain", "exact", … An
    operation that lacks it uses its closest method, for example norm/tree for "exact", cumsum/prefix/kahan for
    "tree/kahan", and an exact sum by key for all but "serial/plain" and "fixed_point". Elements of 16 bits
    are accumulated in fp32, and each result has the type, the strides and the memory format of PyTorch's. A
    reduction of complex numbers raises TypeError.

    Scope
    -----
    The manager acts in the thread that enters it, or that calls the function it decorates, and in autograd's threads
    during a backward pass that this thread starts. Managers nest: the innermost one counts and chooses the method;
    what it misses, the outer ones miss too. A backward pass of what was recorded inside must run inside a manager;
    outside, it raises RuntimeError. The watch covers results of calls and first arguments that a call changes, as in
    y += b. It does not cover what C++ code or an autograd.Function records, if no later operator of the graph was
    recorded inside.

    A function of torch.compile that was compiled outside is compiled again inside. Its graphs contain
    operators of samesum (torch.ops.samesum), and break where a call, or its gradient, would add in another
    way; where PyTorch cannot break a graph, the function runs eagerly, which is routed too.

    Parameters
    ----------
    method
        an order and an accumulator of sums whose bits are the same everywhere, or a method of sums.
    strict
        whether the first call that is left to PyTorch, and adds floating-point numbers, raises RuntimeError.

    Attributes
    ----------
    calls
        number of routed calls by operator, a Counter.
    missed
        number of calls that were left to PyTorch and add floating-point numbers, by operator, a Counter. It counts
        operators that samesum does not know, too: those of other packages.

    >>> import torch
    >>> with deterministic("tree/kahan") as routing:
    ...     print(torch.tensor([1e8, 1.0, -1e8]).sum())
    tensor(1.)
    >>> routing.calls
    Counter({'sum': 1})
    >>> with deterministic() as routing:
    ...     y = torch.ones(2, 2) @ torch.ones(2, 2)
    >>> routing.missed
    Counter({'mm': 1})
    >>> @deterministic("exact", strict=True)
    ... def total(x):
    ...     return x.sum()
    >>> total(torch.tensor([1e8, 1.0, -1e8]))
    tensor(1.)
    """

    def __init__(self, method: str | _core.Method = "tree/plain", *, strict: bool = False) -> None:
        self.method, self.strict = _validated(method), strict
        self.calls: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        self._entered = _Entered()

    def __call__(self, function: Any) -> Any:
        """Returns the function under the manager, whose counters then count all its calls."""
        name = getattr(function, "__qualname__", type(function).__name__)
        if isinstance(function, type):
            raise TypeError(f"samesum: deterministic decorates {name}, a class; decorate its methods")
        if isgeneratorfunction(function) or iscoroutinefunction(function) or isasyncgenfunction(function):
            raise TypeError(
                f"samesum: deterministic decorates {name}, whose body runs after the call; decorate the functions that "
                "it calls"
            )
        return super().__call__(function)

    @_disable_dynamo
    def __enter__(self) -> deterministic:
        routing = _Routing(self.method, self.calls, self.missed, self.strict)
        recording = _Recording(self.method)
        routing.__enter__()
        recording.__enter__()
        self._entered.modes.append((routing, recording))
        return self

    @_disable_dynamo
    def __exit__(self, *error: Any) -> None:
        if not self._entered.modes:
            raise RuntimeError("samesum: this manager was not entered; enter it by a with statement")
        routing, recording = self._entered.modes[-1]
        if _get_current_function_mode() is not recording or _get_current_dispatch_mode() is not routing:
            raise RuntimeError(
                "samesum: this manager is not the innermost mode of its thread; leave managers in the reverse "
                "order of entering them, as with statements do"
            )
        self._entered.modes.pop()
        recording.__exit__(*error)
        routing.__exit__(*error)

    def __repr__(self) -> str:
        return f"samesum.torch.deterministic({self.method!r}{', strict=True' * self.strict})"
