"""Reductions over ranks, whatever engine connects them: here the ranks are threads of this process."""

from __future__ import annotations

import pickle
import threading
from typing import Any, Callable

import pytest

np = pytest.importorskip("numpy")

import samesum  # noqa: E402
from samesum._arrays.numpy import NumPy  # noqa: E402
from samesum._calls.arguments import Call  # noqa: E402
from samesum._parts import agreement, blocks, elements  # noqa: E402


class Threads:
    """One rank of an engine that carries objects between threads. A rank that waits in vain raises after 10 s."""

    def __init__(self, rank: int, size: int, barrier: threading.Barrier, held: list[Any]) -> None:
        self.rank, self.size, self.barrier, self.held = rank, size, barrier, held

    def exchange(self, value: Any) -> list[Any]:
        self.held[self.rank] = value
        self.barrier.wait(10)
        found = list(self.held)
        self.barrier.wait(10)
        return found

    def all_gather(self, value: Any) -> list[Any]:
        return [pickle.loads(data) for data in self.exchange(pickle.dumps(value))]

    def all_to_all(self, rows: Any, received: Any) -> None:
        np.stack([sent[self.rank] for sent in self.exchange(rows)], out=received)

    def all_gather_rows(self, row: Any, rows: Any) -> None:
        np.stack(self.exchange(row), out=rows)


def on_ranks(size: int, call: Callable[[Threads], Any], engine: type[Threads] = Threads) -> list[Any]:
    """Returns what `call` returns, or raises, on each rank."""
    barrier, held, results = threading.Barrier(size), [None] * size, [None] * size

    def work(rank: int) -> None:
        try:
            results[rank] = call(engine(rank, size, barrier, held))
        except Exception as error:
            results[rank] = error

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def numbers(*shape: int, dtype="float32", seed: int = 0):
    return (np.random.default_rng(seed).standard_normal(shape) * 1000).astype(dtype)


def reduced(ranks, x, y=None, *, method=None, correction=0, grid=None):
    return blocks.reduce_blocks(ranks, Call("", x, method=method, threads=1, grid=grid, ddof=correction, y=y))


def all_reduced(ranks, x, *, out=None, method=None, grid=None, check=True):
    call = Call("", x, out=x if out is None else out, method=method, grid=grid, check=check)
    return elements.all_reduce(ranks, call, lambda name, a: None)


def scattered(ranks, x, out, *, method=None, grid=None, check=True):
    call = Call("", x, out=out, method=method, grid=grid, check=check)
    return elements.reduce_scatter(ranks, call, lambda name, a: None)


# --- blocks of a vector ---------------------------------------------------------------------------------------

CUTS = [[10_000], [1, 9_999], [5000, 0, 5000], [4096, 4096, 1808], [3, 17, 0, 9_980]]


@pytest.mark.parametrize(
    "method",
    ["exact", "tree/kahan", "pairwise/plain", "serial/plain", "mean/exact", "norm/tree", "argmax", "fixed_point"],
)
def test_blocks_on_ranks_have_the_bits_of_the_whole_vector(method):
    x = numbers(10_000)
    grid = -30 if method == "fixed_point" else None
    whole = samesum.Partial(f"{method}/fp32", grid=grid)
    whole.add(x)
    for sizes in CUTS:
        blocks = np.split(x, np.cumsum(sizes)[:-1])
        found = on_ranks(len(sizes), lambda ranks: reduced(ranks, blocks[ranks.rank], method=method, grid=grid))
        assert found == [whole.finish()] * len(sizes)


def test_blocks_of_two_inputs_and_moments_are_reduced_too():
    x, y = numbers(100), numbers(100, seed=1)
    halves = [slice(0, 30), slice(30, 100)]
    found = on_ranks(
        2, lambda ranks: reduced(ranks, x[halves[ranks.rank]], y[halves[ranks.rank]], method="dot/tree/plain")
    )
    assert found == [samesum.dot(x, y, method="tree/plain")] * 2
    found = on_ranks(2, lambda ranks: reduced(ranks, x[halves[ranks.rank]], method="moments/exact", correction=1))
    assert [m.variance for m in found] == [samesum.var(x, correction=1)] * 2


# --- element by element ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize(
    "method", ["exact", "tree/kahan", "serial/plain", "mean/exact", "max", "norm/tree", "fixed_point"]
)
def test_contributions_have_the_bits_of_one_machine(method, size):
    for shape in ((7,), (3, 5), (), (0,), (5, 2)):
        x = numbers(size, *shape)
        function = getattr(samesum, method.split("/")[0], samesum.sum)
        name = method if method != "max" else None
        expected = np.asarray(function(x, axis=0, method=name))
        found = on_ranks(size, lambda ranks: all_reduced(ranks, np.array(x[ranks.rank]), method=method))
        assert [f.tobytes() for f in found] == [expected.tobytes()] * size


def test_results_are_written_to_the_array_itself_or_to_out():
    x = numbers(3, 4)
    expected = samesum.sum(x, axis=0)
    contributions = [x[rank].copy() for rank in range(3)]
    found = on_ranks(3, lambda ranks: all_reduced(ranks, contributions[ranks.rank]))
    assert all(f is c and (c == expected).all() for f, c in zip(found, contributions))
    wide = [np.empty(4) for _ in range(3)]
    found = on_ranks(3, lambda ranks: all_reduced(ranks, x[ranks.rank], out=wide[ranks.rank], method="exact/fp64"))
    assert all(f is w and (w == samesum.sum(x, axis=0, method="exact/fp64")).all() for f, w in zip(found, wide))


def test_integers_are_summed_exactly_and_an_overflow_on_one_rank_raises_on_all():
    x = np.array([[1, 2**62], [5, 2**62]])
    assert on_ranks(2, lambda ranks: all_reduced(ranks, x[ranks.rank] // 2).tolist()) == [[2, 2**62]] * 2
    for error in on_ranks(2, lambda ranks: all_reduced(ranks, x[ranks.rank])):  # the overflow is in the piece of rank 1
        assert isinstance(
            error, OverflowError
        ) and "all_reduce failed on rank 1: the sum of integers is beyond 64 bits" in str(error)


def test_each_rank_gets_its_share_of_the_results():
    x = numbers(3, 6, 2)
    expected = samesum.sum(x, axis=0, method="tree/kahan")
    found = on_ranks(
        3, lambda ranks: scattered(ranks, x[ranks.rank], np.empty((2, 2), np.float32), method="tree/kahan")
    )
    assert [f.tobytes() for f in found] == [e.tobytes() for e in np.split(expected, 3)]


def test_long_partials_travel_in_pieces(monkeypatch):
    x = numbers(1000)
    blocks = np.split(x, [300, 300, 900])
    expected = on_ranks(4, lambda ranks: reduced(ranks, blocks[ranks.rank], method="serial/kahan"))
    monkeypatch.setattr(agreement, "_PIECE", 77)
    assert on_ranks(4, lambda ranks: reduced(ranks, blocks[ranks.rank], method="serial/kahan")) == expected
    found = on_ranks(3, lambda ranks: agreement.gathered(ranks, "reduce", lambda: bytes(range(77 * ranks.rank))))
    assert found == [[b"", bytes(range(77)), bytes(range(154))]] * 3


def test_without_checks_the_results_are_the_same():
    x = numbers(3, 10)
    found = on_ranks(3, lambda ranks: all_reduced(ranks, x[ranks.rank].copy(), check=False))
    assert [f.tobytes() for f in found] == [samesum.sum(x, axis=0).tobytes()] * 3


# --- errors ---------------------------------------------------------------------------------------------------


def differing(rank: int, usual: Any, other: Any) -> Any:
    return other if rank == 2 else usual


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda r, x: reduced(r, x, method=differing(r.rank, "exact", "tree/plain")), ValueError,
         "reduce: the method is sum/exact/fp32 on rank 0 and sum/tree/plain/fp32 on rank 2"),
        (lambda r, x: reduced(r, x.astype(differing(r.rank, "f4", "f8"))), ValueError,
         "the method is sum/exact/fp32 on rank 0 and sum/exact/fp64 on rank 2"),
        (lambda r, x: reduced(r, x, method="fixed_point", grid=differing(r.rank, -30, -20)), ValueError,
         "the grid is -30 on rank 0 and -20 on rank 2"),
        (lambda r, x: reduced(r, x, method=differing(r.rank, "exact", "exakt")), ValueError,
         "reduce failed on rank 2: no method 'exakt'"),
        (lambda r, x: reduced(r, x.astype(differing(r.rank, "f4", "c8"))), TypeError,
         "reduce failed on rank 2: x has elements of type complex64"),
        (lambda r, x: reduced(r, x, method="dot/exact"), ValueError, "reduce failed on rank 0"),
        (lambda r, x: reduced(r, x, differing(r.rank, x, x[1:]), method="dot/exact"), ValueError,
         "reduce failed on rank 2: y has shape"),
        (lambda r, x: all_reduced(r, x[: differing(r.rank, 9, 8)]), ValueError,
         r"all_reduce: the shape is \(9,\) on rank 0 and \(8,\) on rank 2"),
        (lambda r, x: all_reduced(r, x.astype(differing(r.rank, "f4", "f2")), method="exact/fp32"), TypeError,
         "all_reduce failed on rank 2: the result has elements of type float32, but those of out are float16"),
        (lambda r, x: all_reduced(r, x, method="dot/exact"), ValueError, "has not one input and one result"),
        (lambda r, x: all_reduced(r, x, method="atomic/plain"), ValueError, "differ from run to run"),
        (lambda r, x: all_reduced(r, x, method="argmax"), TypeError, "the result has elements of type int64"),
        (lambda r, x: all_reduced(r, x, out=np.empty(3, np.float32)), ValueError, r"out has shape \(3,\)"),
        (lambda r, x: scattered(r, x[:8], x[:2]), ValueError, "whose first axis 3 ranks cannot share evenly; pad it"),
        (lambda r, x: differing(r.rank, reduced, all_reduced)(r, x), ValueError,
         "the function is reduce on rank 0 and all_reduce on rank 2"),
        (lambda r, x: reduced(r, x, method="moments/tree", correction=differing(r.rank, 1, 0)), ValueError,
         "the correction is 1.0 on rank 0 and 0.0 on rank 2"),
        (lambda r, x: reduced(r, x, method="moments/tree", correction=differing(r.rank, 1, lambda: 1)), TypeError,
         "reduce failed on rank 2"),
        (lambda r, x: reduced(r, x, method="fixed_point", grid=differing(r.rank, -30, lambda: -30)), TypeError,
         "reduce failed on rank 2"),
        (lambda r, x: reduced(r, x, method=differing(r.rank, None, lambda: "exact")), TypeError,
         "reduce failed on rank 2"),
    ],
)  # fmt: skip
def test_an_error_on_one_rank_is_raised_on_every_rank(call, error, message):
    x = numbers(3, 9)
    found = on_ranks(3, lambda ranks: call(ranks, x[ranks.rank]))
    for raised in found:
        with pytest.raises(error, match=message):
            raise raised


class Local(float):
    def __index__(self):
        return int(self)

    def __reduce__(self):
        raise TypeError("this object cannot be sent")


def test_arguments_are_compared_by_value_whatever_their_type():
    x = numbers(3, 9)
    for options in ({"correction": 1}, {"method": "fixed_point", "grid": -30}):
        method = options.pop("method", "moments/tree")
        (name, value), = options.items()
        found = on_ranks(
            3, lambda r: reduced(r, x[r.rank], method=method, **{name: differing(r.rank, value, Local(value))})
        )
        assert found == on_ranks(3, lambda r: reduced(r, x[r.rank], method=method, **{name: value}))


class Failing:
    """Lets a function work some times in a thread, and then raise MemoryError."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.left = function, threading.local()

    def __call__(self, *arguments: Any) -> Any:
        left = getattr(self.left, "calls", None)
        if left is not None:
            self.left.calls = left - 1
            if left == 0:
                raise MemoryError("the memory is full")
        return self.function(*arguments)


def raised_by_failing(failing: Failing, size: int, call: Callable[[Threads], Any]) -> int:
    """Lets each call of a function on rank 1 fail in turn; returns how many there are."""
    calls = 0
    while True:

        def work(ranks: Threads) -> Any:
            if ranks.rank == 1:
                failing.left.calls = calls
            return call(ranks)

        found = on_ranks(size, work)
        if not any(isinstance(f, Exception) for f in found):
            return calls
        assert all(isinstance(f, MemoryError) and "failed on rank 1: the memory is full" in str(f) for f in found), (
            found
        )
        calls += 1


def test_memory_that_one_rank_lacks_raises_on_every_rank(monkeypatch):
    empty = Failing(NumPy.empty)
    monkeypatch.setattr(NumPy, "empty", lambda *arguments: empty(*arguments))
    x = numbers(3, 10)  # 3 ranks pad it
    expected = samesum.sum(x, axis=0).tobytes()
    # The type of the results, the padded elements, those received, and the results of all ranks.
    assert raised_by_failing(empty, 3, lambda ranks: all_reduced(ranks, x[ranks.rank].copy())) >= 4
    found = on_ranks(3, lambda ranks: all_reduced(ranks, x[ranks.rank].copy()))
    assert [f.tobytes() for f in found] == [expected] * 3
    shares = [np.empty(3, np.float32) for _ in range(3)]
    assert raised_by_failing(empty, 3, lambda ranks: scattered(ranks, x[ranks.rank][:9], shares[ranks.rank])) >= 2


def test_memory_for_long_partials_that_one_rank_lacks_raises_on_every_rank(monkeypatch):
    allocate = Failing(bytearray)
    monkeypatch.setattr(agreement, "bytearray", allocate, raising=False)
    monkeypatch.setattr(agreement, "_PIECE", 77)
    x = numbers(3, 50)
    assert raised_by_failing(allocate, 3, lambda ranks: reduced(ranks, x[ranks.rank], method="serial/plain")) == 3


def test_other_versions_are_named_on_every_rank(monkeypatch):
    class Newer(Threads):
        def all_gather(self, value):
            if self.rank == 1:
                value[0][0]["version of samesum"] = "9.9.9"
            return super().all_gather(value)

    for raised in on_ranks(2, lambda ranks: reduced(ranks, numbers(9)), Newer):
        with pytest.raises(ValueError, match="the version of samesum is .* on rank 0 and 9.9.9 on rank 1"):
            raise raised


def test_a_damaged_partial_raises_on_every_rank():
    class Damaging(Threads):
        def all_gather(self, value):
            if self.rank == 1 and isinstance(value[0][1], bytes):
                size, data = value[0]
                value = (size, data[:40] + bytes([data[40] ^ 1]) + data[41:]), None
            return super().all_gather(value)

    for raised in on_ranks(3, lambda ranks: reduced(ranks, numbers(9)), Damaging):
        with pytest.raises(ValueError, match="the partial of rank 1 did not arrive whole: .*; reduce again"):
            raise raised


def test_an_error_that_is_not_of_samesum_is_raised_on_every_rank():
    def call(ranks: Threads) -> None:
        def step() -> None:
            if ranks.rank == 1:
                raise KeyError("lost")

        agreement.on_all_ranks(ranks, "reduce", step)

    found = on_ranks(2, call)
    assert [type(e) for e in found] == [RuntimeError] * 2
    assert all("reduce failed on rank 1: 'lost'" in str(e) for e in found)
    assert isinstance(found[1].__cause__, KeyError)
