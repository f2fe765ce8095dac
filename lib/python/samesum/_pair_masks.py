"""Covariances, correlations and lines of the elements that take part, from the functions for all elements."""

from __future__ import annotations

from typing import Any, Callable

from ._arrays import DTYPES, array_of
from ._calls import delivered
from ._frames import flags_beside, kind_of, refuse_masked_flags
from ._layout import normalised_axes, paired
from ._selection import counts_of, is_masked, mask_of, shown, takes_part
from ._weights import per_element, read_inputs


def may_leave_out(x: Any, y: Any, where: Any, skipna: bool) -> bool:
    """Whether some elements may take no part: by arguments, masks or nulls."""
    return where is not None or bool(skipna) or any(is_masked(a) or kind_of(a) for a in (x, y))


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


def without_masks_of_variables(
    function: str, x: Any, y: Any, axis: int | None, where: Any
) -> tuple[Any, Any, dict[str, Any], Any]:
    """Returns the elements of x and y, which of each are there, and `where`. A frame needs an axis."""
    x, of_x, names = shown(x)
    y, of_y, names_of_y = shown(y, "y")
    if axis is None:
        remedy = "rowvar=False if its columns are the variables, as in pandas, or rowvar=True if its rows are"
        _refuse_frames(function, {"x": names, "y": names_of_y}, remedy)
    return x, y, {"x": of_x, "y": of_y}, flags_beside(where, names)


def takes_of_variables(
    library: Any, arrays: dict[str, Any], axis: int | None, rows: Any, w: Any, seen: dict[str, Any], where: Any,
    skipna: bool,
) -> Any:  # fmt: skip
    """Returns which elements of the variables, the rows of `arrays` one after another, take part; None for all."""
    takes = takes_part(library, None, skipna, rows, *(() if w is None else (w,)))
    masks = []
    if any(flags is not None for flags in seen.values()):
        each = [mask_of(library, a, True if seen[name] is None else seen[name]) for name, a in arrays.items()]
        masks.append(library.namespace.concatenate([as_variables(library, "where", flags, axis) for flags in each]))
    if where is not None:
        refuse_masked_flags(where)
        shape, n = tuple(array_of(where, "where")[1].shape), rows.shape[1]
        if len(shape) < 2:
            if shape not in ((), (1,), (n,)):
                raise ValueError(f"samesum: where has shape {shape}; pass one flag for each of the {n} observations")
            masks.append(mask_of(library, rows, where))
        elif "y" not in arrays:
            masks.append(as_variables(library, "where", mask_of(library, arrays["x"], where), axis))
        else:
            raise ValueError("samesum: where has 2 axes or more; with y, pass one flag for each observation")
    for mask in masks:
        takes = mask if takes is None else takes & mask
    return takes if rows.shape[0] else None


def masked_lines(
    function: Callable[..., Any], x: Any, y: Any, axis: Any, weights: Any, dtype: Any, where: Any, skipna: bool,
    **options: Any,
) -> Any:  # fmt: skip
    """Returns what function(x, y, weights=…) returns for the pairs that take part."""
    source, seen = x, {}
    x, seen["x"], names = shown(x)
    y, seen["y"], names_of_y = shown(y, "y", names)
    if axis == -1:
        remedy = "axis=0 for a line for each column, or axis=1 for each row"
        _refuse_frames(function.__name__, {"x": names, "y": names_of_y}, remedy)
    where = flags_beside(where, names)
    others = {"y": y} if weights is None else {"y": y, "weights": weights}
    inputs = read_inputs(function.__name__, x, others, dtype)
    library, xp = inputs.library, inputs.library.namespace
    a, b, axes = paired(xp, *inputs.arrays[:2], axis)
    a, b = library.broadcast(a, b)
    masks = []
    if any(flags is not None for flags in seen.values()):
        each = [mask_of(library, i, True if seen[n] is None else seen[n], n) for n, i in zip("xy", inputs.arrays)]
        masks = library.broadcast(*paired(xp, *each, axis)[:2])
    w = None if weights is None else per_element(library, inputs.arrays[2], tuple(a.shape), axis, axes)
    takes = takes_part(library, mask_of(library, a, where), skipna, a, b, *(() if w is None else (w,)))
    for mask in masks:
        takes = mask if takes is None else takes & mask
    if takes is not None:
        # A weight of 0 is as good as absence, except where no weight is left: there, equal points have no line.
        a, b = (xp.where(takes, each, xp.zeros_like(each)) for each in (a, b))
        w = xp.where(takes, xp.ones_like(a) if w is None else w, xp.zeros_like(a))
        w = xp.where(counts_of(library, takes, axes, keepdims=True) > 0, w, xp.ones_like(w))
    found = function(a, b, axis=axes, weights=w, dtype=DTYPES[inputs.widest], **options)
    return type(found)(*[delivered(library, each, source) for each in found])
