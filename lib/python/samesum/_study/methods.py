"""Methods of this machine by their names."""

from __future__ import annotations

import fnmatch

from .. import _core
from .._calls.methods import Method
from .arguments import checked_text


def methods(pattern: str = "*") -> list[Method]:
    """Returns the methods of this machine that a text selects.

    A pattern with * and ? selects those whose full name matches it, perhaps none. Another text selects those whose
    full name begins with it as with whole fields, such as "dot" or "sum/tree", or else those that contain it.

    >>> [m.name for m in methods("dot/*/fp64@cpu")][:2]
    ['dot/tree/plain/fp64@cpu', 'dot/tree/kahan/fp64@cpu']
    >>> {m.accumulator for m in methods("kahan")}
    {'kahan'}

    Raises ValueError if a text without * and ? selects nothing; the message says why.
    """
    every = _core.methods()
    found = [m for m in every if fnmatch.fnmatchcase(m.name, checked_text(pattern, "pattern"))]
    if found or any(c in pattern for c in "*?["):
        return found
    found = [m for m in every if m.name.startswith((f"{pattern}/", f"{pattern}@"))]
    return found or [m for m in every if pattern in m.name] or [_core.find(pattern, "sum", "fp64", "cpu")]
