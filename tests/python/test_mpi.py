"""Reductions over the ranks of MPI, each of which is a process."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("mpi4py")

import samesum  # noqa: E402

# Open MPI starts more ranks than processors, and as root, only if it is told to.
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMP_NUM_THREADS": "1",
}  # fmt: skip
HEAD = """
import signal
import numpy as np, samesum, samesum.mpi
from mpi4py import MPI
comm, rank, size = MPI.COMM_WORLD, MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
def numbers(*shape, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * 1000).astype(np.float32)
def print_all(value):
    found = comm.gather(value)
    if rank == 0:
        for line in found:
            print(line)
"""


def launched(size: int, code: str) -> subprocess.CompletedProcess[str]:
    command = ["mpirun", "-n", str(size), sys.executable, "-c", HEAD + code]
    return subprocess.run(command, text=True, capture_output=True, timeout=120, env=os.environ | ENVIRONMENT)


@functools.lru_cache(maxsize=None)
def missing() -> str:
    """Returns why no ranks can be started; empty if they can."""
    done = launched(1, "print(1)")
    errors = [line for line in done.stderr.splitlines() if "Error" in line]
    return "" if done.returncode == 0 else f"MPI does not work: {(errors or [done.stderr])[0]}"


def run(size: int, code: str) -> list[str]:
    """Runs a program on ranks, and returns the lines that it prints."""
    if not shutil.which("mpirun"):
        pytest.skip("mpirun is not installed")
    done = launched(size, code)
    if done.returncode and missing():
        pytest.skip(missing())
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_number_of_ranks_changes_no_bit():
    code = """
x = numbers(20_011)
block = np.array_split(x, size)[rank]
results = [samesum.mpi.reduce(block, method=m).hex() for m in ("exact", "tree/kahan", "pairwise/plain", "mean/exact")]
results.append(samesum.mpi.reduce(block, block, method="dot/tree/plain").hex())
print_all(results)
"""
    lines = [*run(2, code), *run(3, code)]
    x = (np.random.default_rng(0).standard_normal(20_011) * 1000).astype(np.float32)
    methods = {
        "exact": samesum.sum,
        "tree/kahan": samesum.sum,
        "pairwise/plain": samesum.sum,
        "mean/exact": samesum.mean,
    }
    alone = [float(function(x, method=method)).hex() for method, function in methods.items()]
    alone.append(float(samesum.dot(x, x, method="dot/tree/plain")).hex())
    assert lines == [str(alone)] * 5


def test_contributions_have_the_bits_of_one_machine():
    pytest.importorskip("ml_dtypes")
    assert run(3, """
import ml_dtypes
checks = []
for shape in ((10,), (4, 3), (0,)):
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64):
        x = numbers(size, *shape).astype(dtype)
        for method in ("exact", "tree/kahan", "mean/exact"):
            function = samesum.mean if method.startswith("mean") else samesum.sum
            mine = x[rank].copy()
            found = samesum.mpi.all_reduce(mine, method=method)
            checks.append(found is mine and found.tobytes() == function(x, axis=0, method=method).tobytes())
x = numbers(size, 2 * size)
share = samesum.mpi.reduce_scatter(x[rank], np.empty(2, np.float32), method="tree/plain")
checks.append(share.tobytes() == samesum.sum(x, axis=0, method="tree/plain")[2 * rank :][:2].tobytes())
half = comm.Split(rank == 0)
found = samesum.mpi.all_reduce(x[rank].copy(), comm=half)
checks.append(found.tobytes() == samesum.sum(x[:1] if rank == 0 else x[1:], axis=0).tobytes())
print_all(all(checks))
""") == ["True"] * 3


def test_an_error_on_one_rank_is_raised_on_every_rank():
    lines = run(3, """
def raised(call):
    signal.alarm(10)  # a call that waits longer ends the program
    try:
        call()
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
read_only = numbers(9)
read_only.flags.writeable = rank != 1
print_all("|".join([
    raised(lambda: samesum.mpi.reduce(numbers(9), method="tree/plain" if rank == 2 else "exact")),
    raised(lambda: samesum.mpi.all_reduce(numbers(9 - rank))),
    raised(lambda: samesum.mpi.all_reduce([1.0] if rank == 1 else numbers(1))),
    raised(lambda: samesum.mpi.all_reduce(numbers(9), out=read_only)),
    raised(lambda: samesum.mpi.reduce(numbers(9), comm="world")),
    raised(lambda: samesum.mpi.reduce(numbers(9), method="moments/exact", correction=(lambda: 1) if rank == 1 else 1)),
]))
""")
    assert len(lines) == 3 and len(set(lines)) == 1
    method, shape, kind, out, comm, correction = lines[0].split("|")
    assert method == (
        "ValueError: samesum: reduce: the method is sum/exact/fp32 on rank 0 and sum/tree/plain/fp32 on rank 2; "
        "all ranks must have the same"
    )
    assert "the shape is (9,) on rank 0 and (8,) on rank 1" in shape
    assert kind == "TypeError: samesum: all_reduce failed on rank 1: x is a list; pass a NumPy array"
    assert "all_reduce failed on rank 1: out is read-only" in out
    assert "comm is 'world'; use an intracommunicator of mpi4py" in comm
    assert "reduce failed on rank 1: float() argument must be a string or a real number" in correction


def test_memory_that_one_rank_lacks_raises_on_every_rank():
    assert run(3, """
from samesum._arrays.numpy import NumPy
from samesum._parts import agreement
left = None  # how many more arrays rank 1 can allocate
def limited(function):
    def allocate(*arguments):
        global left
        if left is not None:
            left -= 1
            if left < 0:
                raise MemoryError("the memory is full")
        return function(*arguments)
    return allocate
NumPy.empty, agreement.bytearray, agreement._PIECE = limited(NumPy.empty), limited(bytearray), 40
x, share = numbers(10), np.empty(3, np.float32)
calls = [
    lambda: samesum.mpi.all_reduce(x.copy()),
    lambda: samesum.mpi.reduce_scatter(x[:9], share),
    lambda: samesum.mpi.reduce(x, method="serial/plain"),
]
counts = []
for call in calls:
    message, count = "", -1
    while message is not None:
        count += 1
        left = count if rank == 1 else None
        signal.alarm(10)
        try:
            call()
            message = None
        except MemoryError as error:
            message = str(error)
        left = None
        messages = comm.allgather(message)
        signal.alarm(0)
        assert len(set(messages)) == 1, messages
        assert message is None or "failed on rank 1: the memory is full" in message, message
    counts.append(count)
assert counts[0] >= 4 and counts[1] >= 2 and counts[2] >= 3, counts
print_all("done")
""") == ["done"] * 3
