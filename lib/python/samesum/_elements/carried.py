"""Arrays of other packages that carry more than numbers: masks and units of measurement.

NumPy drops these when it reads such an array, so all that samesum does not understand is refused by name.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any, Callable

from .library import library_of

_REMEDIES = {
    "mask": "pass numpy.ma.array(numpy.asarray({0}.unmasked), mask={0}.mask), whose mask samesum reads",
    "unit": "pass {0}.value, and give the result its unit",
    "units": "pass {0}.magnitude, and give the results their units",
}
_KEEP_UNIT = {
    "sum", "mean", "norm", "min", "max", "cumsum", "cummin", "cummax", "rolling_sum", "rolling_mean", "rolling_min",
    "rolling_max",
}  # fmt: skip
"""Operations whose results have the unit of the elements."""


@lru_cache(maxsize=None)
def _names_of(kind: type) -> tuple[str, ...]:
    """Returns which of the attributes an object of a type may have."""
    numpy = sys.modules["numpy"]
    names = [name for name in _REMEDIES if name != "mask" or not issubclass(kind, numpy.ma.MaskedArray)]
    # An array of xarray has the attributes of a data set, such as units, as attributes of its own.
    is_subclass = issubclass(kind, numpy.ndarray) and kind is not numpy.ndarray
    return tuple(name for name in names if is_subclass or hasattr(kind, name))


def _carries(x: Any, name: str) -> bool:
    value = getattr(x, name, None)
    # A mask may be a method, as in pandas, or tell whether reading makes masked arrays.
    return value is not None and not callable(value) and not isinstance(value, bool)


def refuse_carried(x: Any, argument: str = "x") -> None:
    """Raises TypeError if x, or what it wraps, or an element of a list, has a mask or a unit."""
    if type(x) in (list, tuple):
        for kind in set(map(type, x)) if x and type(x[0]) is not float else ():
            if kind in (list, tuple) or _names_of(kind):
                for place, each in enumerate(x):
                    refuse_carried(each, f"{argument}[{place}]")
        return
    for name in _names_of(type(x)):
        if _carries(x, name):
            raise TypeError(
                f"samesum: {argument} is a {type(x).__name__} with the attribute {name}, which would be lost; "
                + _REMEDIES[name].format(argument)
            )
    numpy = sys.modules["numpy"]
    if hasattr(type(x), "__array__") and not isinstance(x, (numpy.ndarray, numpy.generic)):
        wrapped = getattr(x, "data", None)
        if type(wrapped) is not type(x):  # the data of a tensor are a tensor
            refuse_carried(wrapped, f"{argument}.data")


def in_its_unit(call: Any, make: Callable[[Any], Any]) -> Any:
    """Returns make(call), in the unit of x if `has_unit` is true of the call."""
    numpy, x = sys.modules["numpy"], call.x
    call.x = x.view(numpy.ndarray)
    return x.__array_wrap__(numpy.asarray(make(call)))


def has_unit(call: Any) -> bool:
    """Whether the results have the unit of x: an array of a subclass of NumPy's with a unit and without a mask."""
    x = call.x
    if call.operation not in _KEEP_UNIT or call.out is not None or library_of(x).name != "numpy":
        return False
    names = _names_of(type(x))
    return hasattr(x, "__array_wrap__") and "unit" in names and _carries(x, "unit") and not _carries(x, "mask")
