"""What docstrings say about the parameters that functions share."""

from __future__ import annotations

from typing import Any, Callable, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_PARAMETERS = {
    "x": "an array of NumPy, PyTorch, CuPy, JAX or any library with DLPack; a buffer, or a list. Its elements are\n"
    "fp16, bf16, fp32, fp64 or integers, taken in row-major order of the reduced axes. Where a correctly rounded\n"
    "function would have to round an integer to fp64 first, it raises OverflowError; pass dtype to round it.",
    "y": "the second input, in the same memory as x; it is broadcast against x.",
    "window": "number of elements of a window, which ends with the element whose result it gives. Beyond the first\n"
    "and the last element there are none. Columns with nulls need skipna=True.",
    "axis": "the axis to reduce, or a tuple of axes; None for all. A scan takes one axis, or None for all elements in\n"
    "row-major order. A rolling operation takes one axis, the last one by default.",
    "min_periods": "the result is NaN if a window has fewer elements; None for the length of the window, which then\n"
    "must not exceed that of the axis.",
    "center": "whether the element is in the middle of its window, which then has (window - 1) // 2 elements behind\n"
    "it.",
    "exclusive": "whether each result leaves out its own element.",
    "include_initial": "whether the result for no elements comes first.",
    "correction, ddof": "subtracted from n in the divisor.",
    "dtype": "elements are converted to this type first, each of them rounded.",
    "out": "an array of the shape and type of the result, to which the result is written.",
    "keepdims": "whether reduced axes stay, with length 1.",
    "method": "name of a method, such as 'tree/kahan' or 'pairwise/plain/fp64'; the result has the format of the\n"
    "method. Default: 'exact' if the operation has it, else 'tree/plain', else the operation's only one. `methods`\n"
    "lists them with their promises, `bound` and `estimate` give bounds on their errors.",
    "threads": "largest number of threads on the host; 0 for one per processor. It never changes the bits.",
    "grid": "for the accumulator fixed_point: terms are rounded to multiples of 2^grid. A sum that overflows the grid\n"
    "raises OverflowError on the host, and is NaN on a GPU. Default: a grid found for each result from its terms.",
    "where": "booleans that are broadcast to x: elements where it is false are as if absent. The result has the bits\n"
    "of the call on the elements that take part, packed in their order, whatever the others hold. For two inputs they\n"
    "are broadcast to the pairs; for a frame, those with one axis are of its rows.",
    "skipna": "whether NaN are as if absent, too. By default NaN is a number, in a column of pandas too, other than\n"
    "in the methods of `groupby`. Nulls are absent in any case.",
    "weights": "an array of the shape of x, in which axes that are not reduced may have length 1, or one of the\n"
    "lengths of x along `axis`. Only weighted sums read the memory of a GPU and have gradients.",
    "weights_are": "'frequencies' or 'reliabilities': see above.",
    "dim": "PyTorch's name of axis, for tensors only. As in PyTorch, () means all axes.",
    "keepdim": "PyTorch's name of keepdims, for tensors only.",
    "check": "whether a sum of integers on a GPU waits, and raises OverflowError.",
}


def described(function: F) -> F:
    """Returns a function whose docstring has the parameters that its signature has."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount + function.__code__.co_kwonlyargcount]
    lines = ["Parameters", "----------"]
    for title, text in _PARAMETERS.items():
        if title.split(",")[0] in names:
            lines += [title, *("    " + line for line in text.split("\n"))]
    lines += [
        "", "Returns", "-------", "result",
        "    an array of the library of x, on its device and in its current stream; for a list a number.",
    ]  # fmt: skip
    function.__doc__ = (function.__doc__ or "").replace("{parameters}", "\n    ".join(lines).strip())
    return function
