"""Masks beside columns and frames: `where`, and what is no null."""

from __future__ import annotations

import sys
from typing import Any

from .._elements.library import library
from .kinds import kind_of
from .reading import elements, nulls_error


def require_same_axes(x: Any, y: Any) -> None:
    """Raises ValueError if inputs of which one has a mask or nulls differ in their number of axes."""
    ndim = library("numpy").np.ndim(y) if isinstance(y, (list, tuple)) else getattr(y, "ndim", 1)
    if ndim != x.ndim:
        raise ValueError(
            f"samesum: x has {x.ndim} axes and y {ndim}; inputs with masks or nulls must agree in their axes"
        )


def refuse_masked_flags(where: Any) -> None:
    """Raises TypeError if a mask is itself a masked array."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(where, numpy.ma.MaskedArray):
        raise TypeError(
            "samesum: where is a masked array, whose masked flags are neither true nor false; pass "
            "where.filled(False), which leaves out the elements at them"
        )


def _flags_of(where: Any) -> Any:
    refuse_masked_flags(where)
    return library("numpy").array(where, "where")


def flags_beside(where: Any, names: list[Any] | None) -> Any:
    """Returns a mask of a frame x with these names; one that is a frame itself as a matrix, with its columns in their
    order. Raises ValueError if it has other columns.
    """
    if names is None or not kind_of(where):
        return where
    flags, valid, own = elements(where, "where", names)
    if own is not None and own != names:
        raise ValueError(
            f"samesum: where has the columns {own} and x {names}; pass a mask with the columns of x, one column of "
            "flags for the rows, or an array, whose columns go by their places"
        )
    if valid is not None:
        raise nulls_error(where, "where", valid)
    return flags


def both(valid: Any, where: Any) -> Any:
    """Returns the elements that take part: those of both masks, each of which may be None for all."""
    if valid is None or where is None:
        return where if valid is None else valid
    np = library("numpy").np
    where = _flags_of(where)
    try:
        return valid & where if where.dtype == bool else where
    except ValueError as error:
        raise ValueError(
            f"samesum: where has shape {np.shape(where)}, and the mask of x {valid.shape}; pass masks of one shape"
        ) from error


def rows_of(where: Any, columns: int) -> Any:
    """Returns a mask of a frame as an array with a flag for each row, or for each element."""
    if where is None:
        return None
    where = _flags_of(where)
    if where.ndim > 2 or (where.ndim == 2 and where.shape[1] not in (1, columns)):
        raise ValueError(
            f"samesum: where has shape {where.shape} and x {columns} columns; pass a flag for each row, or for "
            "each element"
        )
    return where[:, None] if where.ndim == 1 else where


def column_of(where: Any, i: int) -> Any:
    """Returns the flags of a column."""
    if where is None or where.ndim == 0:
        return where
    return where[:, i if where.shape[1] > 1 else 0]
