"""Docstrings of the functions that reduce over ranks, in the words of the engine that connects them."""

from __future__ import annotations

from typing import Any, Callable

_DETAILS = {
    "reduce": """Every rank gets the bits that the method returns for the whole vector in one memory, wherever it is
    cut. The ranks exchange the sizes of their blocks and their partials, whose size grows with the logarithm of the
    length; in the order serial, with the length.{gpu_waits}

    Parameters
    ----------
    x
        this rank's block, as for `samesum.Partial.add`, which says what becomes of integers. It may be empty. Blocks
        may differ in length, but not in format.
    y
        block of the second input of dot.
    method
        name of a method, with its operation unless that is sum: "mean/exact", "tree/kahan", "dot/tree/plain/fp64".
        Every method that `samesum.Partial` takes. Default: "exact".
    {group}
    correction
        for moments, as in `samesum.var`.
    grid
        for the accumulator fixed_point, which needs it.
    threads
        most threads of each rank on the host; 0 for one per processor. They never change the bits.

    Returns
    -------
    result
        as `samesum.Partial.finish`: a float, which holds numbers of every format exactly; an int for argmin and argmax;
        a named tuple for moments.""",
    "all_reduce": """For each element, the result has the bits of `samesum.sum(contributions, axis=0, method=method)`,
    or of another operation's function, for the contributions of all ranks in rank order. Each rank reduces one of as
    many pieces: an all-to-all brings it the contributions, an all-gather sends the results, together the volume of a
    ring.

    Parameters
    ----------
    x
        {array} of one shape and type on all ranks.
    out
        the {kind} to which the result is written, of the shape of x and the type of the result. Default: x itself.
    method
        name of a method of one input and one result, with its operation unless that is sum: "exact", "mean/exact",
        "max". Default: "exact".
    {group}
    grid
        for the accumulator fixed_point, as in `samesum.sum`.
    check
        whether the ranks compare their arguments first, and raise together. Without it, calls that differ hang or give
        wrong results{gpu_goes_on}.

    Returns
    -------
    out
        the {kind} with the results.""",
    "reduce_scatter": """The results are those of `all_reduce`. Rank r gets the r-th of as many equal parts of the first
    axis{use}.

    Parameters
    ----------
    x
        {array} of one shape and type on all ranks. The number of ranks divides the length of its first axis.
    out
        the {kind} to which this rank's share is written, of the type of the result. It is returned.
    method, {group_name}, grid, check
        as in `all_reduce`.""",
}


def documented(array: str, group: str, on_gpu: bool = False) -> Callable[[Any], Any]:
    """Returns a decorator that puts the details into the docstring of a function of that name.

    `array` is "an array" or "a tensor", `group` the name of the argument for the ranks and its text.
    """
    words = {
        "array": array,
        "kind": array.split()[1],
        "group": group,
        "group_name": group.split()[0],
        "gpu_waits": " On a GPU the call waits." if on_gpu else "",
        "gpu_goes_on": ", and a call for a GPU does not wait" if on_gpu else "",
        "use": ", as FSDP and\n    ZeRO share gradients" if on_gpu else "",
    }

    def describe(function: Any) -> Any:
        function.__doc__ = function.__doc__.replace("{details}", _DETAILS[function.__name__].format(**words))
        return function

    return describe
