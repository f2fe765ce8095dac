"""Reductions over the ranks of an MPI communicator of mpi4py, which carries the data.

>>> import numpy, samesum.mpi
>>> block = numpy.array([0.1, 0.2, 0.3])  # of this rank
>>> samesum.mpi.reduce(block, method="tree/kahan")
0.6

All ranks of the communicator call the same function with the same method. If a method, a type, a shape or a version of
samesum differs between ranks, or a rank fails, every rank raises.
"""

from __future__ import annotations

from typing import Any

import numpy

try:
    from mpi4py import MPI
except RuntimeError as error:  # mpi4py is there, and no MPI
    raise ImportError(
        f"samesum: mpi4py does not work: {error}; install MPI, such as Debian's openmpi-bin", name="mpi4py"
    ) from error

from . import _workers
from ._calls import Method

__all__ = ["all_reduce", "reduce", "reduce_scatter"]

_WORDS = {1: numpy.uint8, 2: numpy.uint16, 4: numpy.uint32, 8: numpy.uint64}


def _words(a: Any) -> Any:
    """Returns the elements as integers: MPI has no types for 16-bit floats."""
    return a.view(_WORDS[a.dtype.itemsize])


class _Ranks:
    def __init__(self, comm: Any) -> None:
        self.comm = MPI.COMM_WORLD if comm is None else comm
        if not isinstance(self.comm, MPI.Intracomm):
            raise TypeError(f"samesum: comm is {comm!r}; use an intracommunicator of mpi4py, such as MPI.COMM_WORLD")
        self.rank, self.size = self.comm.Get_rank(), self.comm.Get_size()

    def all_gather(self, value: Any) -> list[Any]:
        return self.comm.allgather(value)

    def all_to_all(self, rows: Any, received: Any) -> None:
        self.comm.Alltoall(_words(rows), _words(received))

    def all_gather_rows(self, row: Any, rows: Any) -> None:
        self.comm.Allgather(_words(row), _words(rows))


def reduce(
    x: Any, y: Any = None, /, *, method: str | Method | None = None, comm: Any = None, correction: float = 0,
    grid: int | None = None, threads: int = 0,
) -> Any:  # fmt: skip
    """Reduces a vector of which each rank holds a block: rank 0 the first elements, rank 1 the next ones.

    Every rank gets the bits that the method returns for the whole vector in one memory, wherever it is cut. The ranks
    exchange the sizes of their blocks and their partials, whose size grows with the logarithm of the length; in the
    order serial, with the length.

    Parameters
    ----------
    x
        this rank's block, as for `Partial.add`. It may be empty. Blocks may differ in length, but not in format.
    y
        block of the second input of dot.
    method
        name of a method, with its operation unless that is sum: "mean/exact", "tree/kahan", "dot/tree/plain/fp64".
        Every method that `Partial` takes. Default: "exact".
    comm
        an intracommunicator. Default: MPI.COMM_WORLD.
    correction
        for moments, as in `samesum.var`.
    grid
        for the accumulator fixed_point, which needs it.
    threads
        most threads of each rank; 0 for one per processor. They never change the bits.

    Returns
    -------
    result
        as `Partial.finish`: a float, which holds numbers of every format exactly; an int for argmin and argmax; a named
        tuple for moments.
    """
    return _workers.reduce_blocks(
        _Ranks(comm), x, y, method=method, correction=correction, grid=grid, threads=threads
    )


def _require_array(name: str, a: Any) -> None:
    if not isinstance(a, numpy.ndarray):
        raise TypeError(f"samesum: {name} is a {type(a).__name__}; pass a NumPy array")
    if name != "x" and not a.flags.writeable:
        raise ValueError(f"samesum: {name} is read-only; pass an array that can be written")


def all_reduce(
    x: Any, /, *, out: Any = None, method: str | Method | None = None, comm: Any = None, grid: int | None = None,
    check: bool = True,
) -> Any:  # fmt: skip
    """Reduces the arrays of all ranks element by element; every rank gets the results.

    For each element, the result has the bits of `samesum.sum(contributions, axis=0, method=method)`, or of another
    operation's function, for the contributions of all ranks in rank order. Each rank reduces one of as many pieces: an
    all-to-all brings it the contributions, an all-gather sends the results, together the volume of a ring.

    Parameters
    ----------
    x
        an array of one shape and type on all ranks.
    out
        the array to which the result is written, of the shape of x and the type of the result. Default: x itself.
    method
        name of a method of one input and one result, with its operation unless that is sum: "exact", "mean/exact",
        "max". Default: "exact".
    comm
        an intracommunicator. Default: MPI.COMM_WORLD.
    grid
        for the accumulator fixed_point, as in `samesum.sum`.
    check
        whether the ranks compare their arguments first, and raise together. Without it, calls that differ hang or give
        wrong results.

    Returns
    -------
    out
        the array with the results.
    """
    return _workers.all_reduce(
        _Ranks(comm), x, x if out is None else out, require=_require_array, method=method, grid=grid, check=check
    )


def reduce_scatter(
    x: Any, out: Any, /, *, method: str | Method | None = None, comm: Any = None, grid: int | None = None,
    check: bool = True,
) -> Any:  # fmt: skip
    """Reduces the arrays of all ranks element by element; each rank gets its share of the results.

    The results are those of `all_reduce`. Rank r gets the r-th of as many equal parts of the first axis.

    Parameters
    ----------
    x
        an array of one shape and type on all ranks. The number of ranks divides the length of its first axis.
    out
        the array to which this rank's share is written, of the type of the result. It is returned.
    method, comm, grid, check
        as in `all_reduce`.
    """
    return _workers.reduce_scatter(
        _Ranks(comm), x, out, require=_require_array, method=method, grid=grid, check=check
    )
