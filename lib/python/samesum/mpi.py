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

from ._calls.arguments import Call
from ._calls.methods import Method
from ._parts import blocks, elements
from ._parts.rank_docs import documented

__all__ = ["all_reduce", "reduce", "reduce_scatter"]

_documented = documented("an array", "comm\n        an intracommunicator. Default: MPI.COMM_WORLD.")
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


@_documented
def reduce(
    x: Any, y: Any = None, /, *, method: str | Method | None = None, comm: Any = None, correction: float = 0,
    grid: int | None = None, threads: int = 0,
) -> Any:  # fmt: skip
    """Reduces a vector of which each rank holds a block: rank 0 the first elements, rank 1 the next ones.

    {details}
    """
    call = Call("", x, method=method, threads=threads, grid=grid, y=y, ddof=correction)
    return blocks.reduce_blocks(_Ranks(comm), call)


def _require_array(name: str, a: Any) -> None:
    if not isinstance(a, numpy.ndarray):
        raise TypeError(f"samesum: {name} is a {type(a).__name__}; pass a NumPy array")
    if name != "x" and not a.flags.writeable:
        raise ValueError(f"samesum: {name} is read-only; pass an array that can be written")


@_documented
def all_reduce(
    x: Any, /, *, out: Any = None, method: str | Method | None = None, comm: Any = None, grid: int | None = None,
    check: bool = True,
) -> Any:  # fmt: skip
    """Reduces the arrays of all ranks element by element; every rank gets the results.

    {details}
    """
    call = Call("", x, out=x if out is None else out, method=method, grid=grid, check=check)
    return elements.all_reduce(_Ranks(comm), call, _require_array)


@_documented
def reduce_scatter(
    x: Any, out: Any, /, *, method: str | Method | None = None, comm: Any = None, grid: int | None = None,
    check: bool = True,
) -> Any:  # fmt: skip
    """Reduces the arrays of all ranks element by element; each rank gets its share of the results.

    {details}
    """
    call = Call("", x, out=out, method=method, grid=grid, check=check)
    return elements.reduce_scatter(_Ranks(comm), call, _require_array)
