"""Calls that an array library must see itself: to differentiate, to compile, or to batch them.

The modules that make such calls lie above this one. The package enters them in `modules`.
"""

from __future__ import annotations

import sys
from typing import Any, Callable

modules: dict[str, Callable[[], Any]] = {}
"""Functions that import the module with the operators of a library, by its name. They run when a call needs it."""
watches: list[Callable[[], bool]] = []
"""Functions that tell whether a library must see every call, one for each such library in use."""


def reduce_traced(call: Any) -> Any:
    """Makes the call by an operator that the library of x or y knows: of PyTorch or of JAX."""
    torch = sys.modules.get("torch")
    is_torch = torch is not None and (isinstance(call.x, torch.Tensor) or isinstance(call.y, torch.Tensor))
    return modules["torch" if is_torch else "jax"]().reduce_traced(call)


def square_root(namespace: Any, x: Any) -> Any:
    """Returns square roots of numbers of a library: rounded correctly, unless XLA computes them."""
    return modules["torch"]().square_root(x) if namespace.__name__ == "torch" else namespace.sqrt(x)
