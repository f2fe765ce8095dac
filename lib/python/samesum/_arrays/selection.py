"""Which elements take part in a call: `where=`, `skipna=`, and the masks of masked arrays."""

from __future__ import annotations

import math
import sys
from typing import Any

from .._elements.formats import dtype_name
from .._elements.layout import axes_last, reduced_shape
from .._frames.flags import both, flags_beside, refuse_masked_flags, require_same_axes
from .._frames.kinds import frame_error, kind_of, refuse_frame
from .._frames.reading import Elements, elements
from .inputs import array_of


def is_masked(x: Any) -> bool:
    """Whether x is a masked array of NumPy."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(x, numpy.ma.MaskedArray)


def shown(x: Any, argument: str = "x", names: list[Any] | None = None) -> Elements:
    """Returns the elements of an input (`_frames.reading.elements`), and which are neither null nor hidden by masks."""
    if kind_of(x):
        return elements(x, argument, names)
    if not is_masked(x):
        return Elements(x)
    masks = sys.modules["numpy"].ma
    return Elements(masks.getdata(x), ~masks.getmaskarray(x))


def without_mask(x: Any, where: Any, function: str = "") -> tuple[Any, Any]:
    """Returns the elements of a masked array, or of a column with nulls, and `where` without those that are hidden.

    Raises TypeError if `function` is named and x is a frame.
    """
    if function:
        refuse_frame(function, x)
    values, valid, names = shown(x)
    if function and names is not None:
        raise frame_error(function, x)
    return values, both(valid, flags_beside(where, names))


def without_masks(x: Any, y: Any, where: Any) -> tuple[Any, Any, Any]:
    """Returns the elements of two inputs, and `where` without the pairs of which an element is hidden."""
    has_mask = any(is_masked(a) or kind_of(a) for a in (x, y))
    x, valid, names = shown(x)
    where = both(valid, flags_beside(where, names))
    y, valid, _ = shown(y, "y", names)
    where = both(valid, where)
    if has_mask and where is not None and hasattr(x, "ndim"):
        require_same_axes(x, y)
    return x, y, where


def require_flags(dtype: Any) -> None:
    """Raises TypeError if the elements of a mask are no booleans."""
    if dtype_name(dtype) != "bool":
        raise TypeError(f"samesum: where has elements of type {dtype_name(dtype)}; pass booleans, such as x > 0")


def require_fitting(mask: tuple[int, ...], shape: tuple[int, ...], argument: str = "x") -> None:
    """Raises ValueError if a mask of that shape is not broadcast to the shape of an argument."""
    if len(mask) > len(shape) or any(n not in (1, m) for n, m in zip(mask[::-1], shape[::-1])):
        raise ValueError(
            f"samesum: where has shape {mask} and {argument} {shape}; pass a mask whose axes agree with the last ones "
            f"of {argument}, or have length 1"
        )


def mask_of(library: Any, a: Any, where: Any, argument: str = "x") -> Any:
    """Returns `where` as an array of booleans of the library and the shape of a; None if it is not given.

    The caller knows a as `argument`.
    """
    if where is None:
        return None
    refuse_masked_flags(where)
    reader, mask = array_of(where, "where")
    require_flags(mask.dtype)
    if library.place(a) != reader.place(mask):
        raise ValueError(
            f"samesum: where is on {reader.place(mask)} and {argument} on {library.place(a)}; pass arrays on one device"
        )
    if reader is not library:
        mask = library.converted(mask)
    shape = tuple(a.shape)
    require_fitting(tuple(mask.shape), shape, argument)
    return library.namespace.broadcast_to(mask, shape)


def narrowed(library: Any, a: Any, mask: Any, argument: str = "x", wide: bool = False) -> Any:
    """Returns an array of NumPy's objects, numbers of any size, in the type that holds those that its mask shows; other
    arrays as they are. See `NumPy.array` for `wide`.
    """
    if not getattr(a.dtype, "hasobject", False) or (mask is None and wide):
        return a
    return library.array(a if mask is None else library.namespace.where(mask, a, 0), argument, wide)


def beside(library: Any, a: Any, mask: Any) -> Any:
    """Returns a mask of the shape of a whose flags lie as the elements of a do; as it is if they have gaps."""
    if tuple(library.strides(mask)) == tuple(library.strides(a)):
        return mask
    flags = library.empty_like(a, "bool")
    if tuple(library.strides(flags)) != tuple(library.strides(a)):
        return mask
    library.copy_to(flags, mask)
    return flags


def takes_part(library: Any, mask: Any, skipna: bool, *arrays: Any) -> Any:
    """Returns the flags of all elements: those of the mask, without NaN if these are skipped."""
    takes = mask
    for a in arrays if skipna else ():
        takes = a == a if takes is None else takes & (a == a)
    return takes


def counts_of(library: Any, takes: Any, axes: tuple[int, ...], keepdims: bool = False) -> Any:
    """Returns how many elements of each result take part, as int64."""
    counts = library.astype(takes, "int64")
    return counts.sum(axes, keepdims=keepdims) if axes else counts  # of no axes, PyTorch takes all


def packed_rows(library: Any, arrays: list[Any], takes: Any, axes: tuple[int, ...]) -> tuple[list[Any], Any, Any]:
    """Returns the elements of arrays that take part, packed; the offsets of the results in them; and the flags as rows.

    The results are those of reducing `axes`, in row-major order, and the flags have a row for each.
    """
    order = axes_last(takes.ndim, axes)[0]
    shape = tuple(takes.shape)
    count, n = math.prod(reduced_shape(shape, axes, False)), math.prod(shape[d] for d in axes)
    rows = library.contiguous(library.transposed(takes, order)).reshape((count, n))
    packed = [library.contiguous(library.transposed(a, order)).reshape((count, n))[rows] for a in arrays]
    return packed, starts_of_packed(library, library.astype(rows, "int64").sum(1)), rows


def starts_of_packed(library: Any, counts: Any) -> Any:
    """Returns how many elements take part before each place, and in all, from the counts or the flags of the places."""
    counts = library.astype(counts, "int64").reshape(-1)
    starts = library.empty((counts.shape[0] + 1,), "int64", counts)
    starts[:1] = 0
    starts[1:] = counts.cumsum(0)
    return starts


def places_of(library: Any, index: Any, offsets: Any, rows: Any) -> Any:
    """Returns the places of packed elements in their rows of flags; -1 stays."""
    xp = library.namespace
    places = xp.nonzero(rows) if library.name != "torch" else rows.nonzero(as_tuple=True)
    if places[1].shape[0] == 0:
        return index
    at = (offsets[:-1] + index.reshape(-1)).clip(0, places[1].shape[0] - 1)
    found = places[1][at].reshape(tuple(index.shape))
    return xp.where(index < 0, index, found)
