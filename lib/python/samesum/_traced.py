"""Calls that an array library must see itself: to differentiate, to compile, or to batch them."""

from __future__ import annotations

import sys
from typing import Any


def reduce_traced(operation: str, x: Any, y: Any, **arguments: Any) -> Any:
    """Makes the call by an operator that the library of x or y knows: of PyTorch or of JAX."""
    torch = sys.modules.get("torch")
    if torch is not None and (isinstance(x, torch.Tensor) or isinstance(y, torch.Tensor)):
        from . import _torch_operators as operators
    else:
        from . import jax as operators  # type: ignore[no-redef]
    return operators.reduce_traced(operation, x, y, **arguments)
