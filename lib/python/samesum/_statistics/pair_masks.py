"""Covariances, correlations and lines of the elements that take part, from the functions for all elements."""

from __future__ import annotations

import functools
import operator
from typing import Any

from .._arrays.inputs import array_of
from .._arrays.selection import is_masked, mask_of, shown, takes_part
from .._calls.arguments import Call
from .._elements.layout import normalised_axes, paired
from .._frames.flags import flags_beside, refuse_masked_flags
from .._frames.kinds import kind_of
from .inputs import Inputs, for_elements, in_one_format, read_arrays


def may_leave_out(call: Call) -> bool:
    """Whether some elements may take no part: by arguments, masks or nulls."""
    is_selected = call.where is not None or bool(call.skipna)
    return is_selected or any(is_masked(a) or kind_of(a) for a in (call.x, call.y))


def as_variables(library: Any, name: str, a: Any, axis: int | None) -> Any:
    """Returns a vector or a matrix with one row for each variable. `axis` is that of the observations of a matrix; None
    for the last one.
    """
    if a.ndim not in (1, 2):
        raise ValueError(
            f"samesum: {name} has {a.ndim} axes; pass a vector, or a matrix with one variable in each row"
        )
    along = normalised_axes(-1 if axis is None or a.ndim == 1 else axis, a.ndim)[0]
    if a.ndim == 1:
        return a.reshape((1, -1))
    return library.transposed(a, (1 - along, along))


def _refuse_frames(function: str, names: dict[str, Any], remedy: str) -> None:
    """Raises TypeError if an input has names of columns: then nothing tells what its observations are."""
    for name in (name for name, columns in names.items() if columns is not None):
        raise TypeError(f"samesum: {function}: {name} is a frame; pass {remedy}")


def without_masks_of_variables(call: Call) -> tuple[Any, Any, dict[str, Any], Any]:
    """Returns the elements of x and y, which of each are there, and `where`. A frame needs an axis."""
    x, of_x, names = shown(call.x)
    y, of_y, names_of_y = shown(call.y, "y")
    if call.axis is None:
        remedy = "rowvar=False if its columns are the variables, as in pandas, or rowvar=True if its rows are"
        _refuse_frames(call.operation, {"x": names, "y": names_of_y}, remedy)
    return x, y, {"x": of_x, "y": of_y}, flags_beside(call.where, names)


def takes_of_variables(
    call: Call, arrays: dict[str, Any], variables: dict[str, Any], w: Any, seen: dict[str, Any]
) -> dict[str, Any]:
    """Returns which elements of the variables, the rows of each array, take part; None for each array if all do."""
    library, axis, where = call.library, call.axis, call.where
    has_flags = where is not None and _has_flags_of_observations(where, variables)
    found = {}
    for name, rows in variables.items():
        masks = []
        if seen[name] is not None:
            masks.append(as_variables(library, "where", mask_of(library, arrays[name], seen[name]), axis))
        if has_flags:
            masks.append(mask_of(library, rows, where))
        elif where is not None:
            masks.append(as_variables(library, "where", mask_of(library, arrays[name], where), axis))
        mask = functools.reduce(operator.and_, masks) if masks else None
        found[name] = takes_part(library, mask, call.skipna, rows, *(() if w is None else (w,)))
    if all(takes is None for takes in found.values()):
        return found
    return {name: mask_of(library, variables[name], True) if f is None else f for name, f in found.items()}


def _has_flags_of_observations(where: Any, variables: dict[str, Any]) -> bool:
    """Whether a mask has a flag for each observation, not for each element. Raises ValueError if its shape is wrong."""
    refuse_masked_flags(where)
    shape, n = tuple(array_of(where, "where")[1].shape), variables["x"].shape[1]
    if len(shape) < 2 and shape not in ((), (1,), (n,)):
        raise ValueError(f"samesum: where has shape {shape}; pass one flag for each of the {n} observations")
    if len(shape) >= 2 and "y" in variables:
        raise ValueError("samesum: where has 2 axes or more; with y, pass one flag for each observation")
    return len(shape) < 2


def pairs_that_take_part(call: Call) -> tuple[Inputs, tuple[int, ...], Any]:
    """Returns the inputs of `linear_regression` in one shape, the axes of the observations, and which pairs take part;
    None if all do.
    """
    axis, seen = call.axis, {}
    x, seen["x"], names = shown(call.x)
    y, seen["y"], names_of_y = shown(call.y, "y", names)
    if axis == -1:
        remedy = "axis=0 for a line for each column, or axis=1 for each row"
        _refuse_frames(call.operation, {"x": names, "y": names_of_y}, remedy)
    where = flags_beside(call.where, names)
    given = {"x": x, "y": y} if call.weights is None else {"x": x, "y": y, "weights": call.weights}
    library, arrays = read_arrays(call.operation, given, call.dtype, has_mask=True)
    xp = library.namespace
    a, b, axes = paired(xp, arrays["x"], arrays["y"], axis)
    a, b = library.broadcast(a, b)
    pairs = {"x": a, "y": b}
    if call.weights is not None:
        pairs["weights"] = for_elements(library, arrays["weights"], tuple(a.shape), axis, axes)
    takes = takes_part(library, mask_of(library, a, where), call.skipna, *pairs.values())
    if any(flags is not None for flags in seen.values()):
        each = [mask_of(library, arrays[n], True if flags is None else flags, n) for n, flags in seen.items()]
        for mask in library.broadcast(*paired(xp, *each, axis)[:2]):
            takes = mask if takes is None else takes & mask
    return in_one_format(library, pairs, dict.fromkeys(pairs, takes)), axes, takes
