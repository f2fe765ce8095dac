"""Exact sums and partials: every way to add, merge, copy, store and send them."""

from __future__ import annotations

import array
import ast
import copy
import doctest
import math
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import samesum
from samesum import Exact, Partial, _core
from samesum._calls.arguments import Call
from samesum._elements.library import library
from samesum._parts import states

np = pytest.importorskip("numpy")

protocols = range(pickle.HIGHEST_PROTOCOL + 1)


def dtype_of(format: str) -> Any:
    if format == "bf16":
        return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    return np.dtype({"fp16": "float16", "fp32": "float32", "fp64": "float64"}[format])


def same(a: Any, b: Any) -> bool:
    """Whether two numbers are the same, signs of zeros included, or both NaN."""
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return (a != a and b != b) or (a == b and math.copysign(1, a) == math.copysign(1, b))


def test_the_examples_in_the_docstrings_are_right() -> None:
    result = doctest.testmod(states)
    assert result.attempted > 15 and result.failed == 0


def interrupted(call: Callable[[], Any]) -> None:
    """Calls with a signal handler that raises after some milliseconds."""

    class Interrupted(Exception):
        pass

    def interrupt(*_: Any) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(Interrupted):
            signal.setitimer(signal.ITIMER_REAL, 0.002)
            call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def in_another_process(program: str, data: bytes) -> bytes:
    """Runs a program that reads `data` from stdin, in a new interpreter, and returns its output."""
    package = str(Path(samesum.__file__).parent.parent)
    head = "import pickle, sys\nread, write = sys.stdin.buffer.read, sys.stdout.buffer.write\n"
    ran = subprocess.run(
        [sys.executable, "-c", head + program], input=data, stdout=subprocess.PIPE, check=True,
        env={**os.environ, "PYTHONPATH": package},
    )  # fmt: skip
    return ran.stdout


# --- exact sums ------------------------------------------------------------------------------------------

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(finite, max_size=50), st.integers(0, 50))
def test_an_exact_sum_is_the_sum_of_fractions_rounded_once(x: list[float], cut: int) -> None:
    e = Exact(x[:cut])
    e += np.array(x[cut:])
    whole = sum(map(Fraction, x))
    try:
        expected = float(whole)
    except OverflowError:
        expected = math.inf if whole > 0 else -math.inf
    assert e.value() == expected
    e.add([-v for v in x])
    assert e.value() == 0


@given(st.lists(st.floats(width=16), max_size=30))
def test_every_order_and_partition_gives_equal_states(x: list[float]) -> None:
    whole = Exact(np.array(x))
    for format in ("float16", "float32"):
        assert Exact(np.array(x, format)) == whole
    parts = Exact()
    for v in reversed(x):
        one = Exact(v)
        one.merge(parts)
        parts = one
    assert parts == whole and same(parts.value(), whole.value())


def test_integers_are_added_exactly() -> None:
    assert Exact(2**53 + 1) == Exact([2.0**53, 1.0])
    assert Exact([2**700 + 2**600 + 1, -(2**700), -(2**600)]).value() == 1.0
    assert Exact(-(10**30)) != Exact(-1e30)
    for dtype in ("int64", "uint64", "int8", "uint32", "bool"):
        least, most = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        e = Exact(np.array([least, most, most], dtype))
        e += -(int(least) + 2 * int(most))
        assert e.value() == 0, dtype
    assert Exact(np.int64(2**62 + 1)) == Exact(2**62 + 1)


def test_numbers_of_other_types_are_rounded_to_fp64_first() -> None:
    assert Exact(Fraction(1, 3)) == Exact(1 / 3) == Exact([Fraction(1, 3)])
    assert Exact(np.float32(0.1)).value("fp32") == float(np.float32(0.1))


def test_all_kinds_of_arrays_and_iterables_can_be_added() -> None:
    x = np.arange(24, dtype=float).reshape(2, 3, 4)
    whole = Exact(range(24))
    kinds = [
        x, x.T, x[::-1], np.asfortranarray(x), x.astype(np.float16), x.astype(">f8"), x.astype(np.int16),
        list(range(24)), tuple(x.ravel()), memoryview(x), array.array("d", range(24)),
        array.array("f", range(24)), iter(x.ravel()), (float(i) for i in range(24)),
        [np.float32(i) for i in range(24)], set(range(24)), dict.fromkeys(range(24)), whole,
        np.broadcast_to(np.float64(1), (23, 12)),
    ]  # fmt: skip
    for kind in kinds:
        e = Exact()
        e.add(kind)
        assert e == whole, kind
    bf16 = np.arange(24).astype(dtype_of("bf16"))
    assert Exact(bf16) == whole


@pytest.mark.parametrize("name", ["torch", "cupy"])
def test_arrays_on_a_gpu_are_added_there(name: str) -> None:
    library = pytest.importorskip(name)
    if name == "torch" and not library.cuda.is_available():
        pytest.skip("no GPU")
    to_gpu = library.asarray if name == "cupy" else lambda x: library.from_numpy(x).cuda()
    x = np.random.default_rng(1).standard_normal((200, 301)) * 1e10
    y = np.random.default_rng(2).standard_normal((200, 301))
    assert Exact(to_gpu(x)) == Exact(x) == Exact(to_gpu(x).T)
    assert Exact(to_gpu(np.arange(2**60, 2**60 + 5))) == Exact(range(2**60, 2**60 + 5))
    for method in ("tree/kahan/fp64", "dot/exact/fp64", "argmax/fp64", "moments/tree/fp64", "exact/fp32"):
        pair = method.startswith("dot")
        on_cpu = Partial(method)
        on_cpu.add(x, *[y][:pair])
        for backend in ("cpu", "cuda"):
            mixed = Partial(f"{method}@{backend}")
            mixed.add(x[:50], *[y[:50]][:pair])
            mixed.add(to_gpu(x)[50:], *[to_gpu(y)[50:]][:pair])
            assert same(mixed.finish(), on_cpu.finish()), (method, backend)
            assert same(pickle.loads(pickle.dumps(mixed)).finish(), on_cpu.finish())


def test_a_torch_tensor_is_added() -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(24.0, requires_grad=True).reshape(4, 6)
    assert Exact(x) == Exact(x.T) == Exact(x.to(torch.bfloat16)) == Exact(range(24))


@pytest.mark.parametrize(
    "x",
    [None, "1", 1j, object(), [1.0, "x"], [[1.0]], np.array([1j]), np.array(["a"]), [None]],
    ids=["None", "text", "complex", "object", "list of text", "nested", "complex array", "text array", "list of None"],
)
def test_what_is_no_number_is_a_type_error_and_changes_nothing(x: Any) -> None:
    e = Exact(0.5)
    with pytest.raises(TypeError):
        e.add(x)
    with pytest.raises(TypeError):
        Exact(x)
    assert e == Exact(0.5)


def test_an_iterable_that_raises_adds_nothing() -> None:
    def numbers() -> Any:
        yield from [1.0] * 10000
        raise KeyError

    e = Exact(0.5)
    with pytest.raises(KeyError):
        e.add(numbers())
    with pytest.raises(OverflowError):
        e.add([1.0, 10**400])
    with pytest.raises(ValueError, match="threads"):
        e.add(1.0, threads=-1)
    with pytest.raises(TypeError, match="^samesum: other is a float; use an Exact"):
        e.merge(1.0)  # type: ignore[arg-type]
    assert e == Exact(0.5)


def test_values_are_rounded_once_to_every_format_by_any_name() -> None:
    e = Exact([1.0, 2.0**-11, 2.0**-60])  # above a tie in fp16: rounding twice would lose the last term
    assert e.value("fp16") == e.value(np.float16) == e.value(np.dtype("float16")) == 1 + 2.0**-10
    assert e.value() == e.value("fp64") == e.value(float) == e.value("float64") == 1 + 2.0**-11
    assert e.value("fp32") == 1 + 2.0**-11
    assert e.value("bf16") == e.value("bfloat16") == 1.0
    for wrong in ("int64", int, "fp8", "complex128"):
        with pytest.raises(TypeError, match="^samesum: dtype"):
            e.value(wrong)


def test_special_values_and_empty_sums() -> None:
    inf, nan = math.inf, math.nan
    assert Exact().is_empty and not Exact(0.0).is_empty
    for x, value in (
        ([], 0.0), ([-0.0], -0.0), ([-0.0, 0.0], 0.0), ([1.0, -1.0], 0.0), ([inf, 1e308], inf),
        ([-inf], -inf), ([inf, -inf], nan), ([nan], nan), ([1e308, 1e308], inf),
    ):  # fmt: skip
        assert same(Exact(x).value(), value), x
        assert same(Exact(np.array(x)).value(), value), x
    assert Exact([1e5]).value("fp16") == inf


def test_a_sum_beyond_that_of_2_to_64_elements_is_refused() -> None:
    e = Exact(sys.float_info.max)
    with pytest.raises(ValueError, match="2\\^64"):
        for _ in range(70):
            e += e
    assert e.value() == math.inf and pickle.loads(pickle.dumps(e)) == e


def test_copies_and_pickles_of_exact_sums_are_independent() -> None:
    class Own(Exact):
        pass

    for kind in (Exact, Own):
        e = kind([0.1, 1e300])
        before = e.to_bytes()
        copies = [e.copy(), copy.copy(e), copy.deepcopy(e), kind.from_bytes(bytes(e))]
        copies += [kind.from_bytes(bytearray(before))]
        if kind is Exact:
            copies += [pickle.loads(pickle.dumps(e, protocol)) for protocol in protocols]
        for c in copies:
            assert c == e and type(c) is kind
            c += 1.0
            assert c != e and e.to_bytes() == before
        e += 2.0
        assert all(c != e for c in copies)
    assert Exact() != 0 and Exact() != Partial("exact/fp64")
    with pytest.raises(TypeError):
        hash(e)
    assert repr(Exact([0.5])) == "<samesum.Exact, value 0.5>"


def test_exact_sums_travel_between_processes() -> None:
    e = Exact([0.1, 1e300])
    program = "e = pickle.loads(read())\ne += -1e300\nwrite(pickle.dumps(e))"
    assert pickle.loads(in_another_process(program, pickle.dumps(e))) == Exact(0.1)


@given(st.data())
@settings(max_examples=300)
def test_altered_states_and_pickles_are_refused(data: Any) -> None:
    exact, partial = Exact([0.1, 3.0]), Partial("tree/kahan/fp32")
    partial.add(np.arange(5.0))
    state = data.draw(st.sampled_from([exact, partial]))
    stored = state.to_bytes()
    place, bit = data.draw(st.integers(0, len(stored) - 1)), data.draw(st.integers(0, 7))
    damaged = bytearray(stored)
    damaged[place] ^= 1 << bit
    dumped = pickle.dumps(state)
    assert dumped.count(stored) == 1
    with pytest.raises(ValueError, match="samesum: "):
        pickle.loads(dumped.replace(stored, bytes(damaged)))
    for kept in (stored[:place], stored + b"\0"):
        with pytest.raises(ValueError, match="samesum: "):
            type(state).from_bytes(kept)
    if state is partial:
        with pytest.raises(ValueError, match="samesum: "):
            Partial.from_bytes(damaged)
    with pytest.raises((pickle.UnpicklingError, EOFError)):  # pickle itself refuses it
        pickle.loads(dumped[: data.draw(st.integers(0, len(dumped) - 1))])


def test_bytes_of_another_kind_are_refused() -> None:
    exact, partial = Exact(1.0), Partial("max/fp64")
    for read, wrong in ((Exact.from_bytes, bytes(partial)), (Partial.from_bytes, bytes(exact))):
        for data in (wrong, b"", b"SSUM"):
            with pytest.raises(ValueError, match="samesum: "):
                read(data)
        for data in (5, "text", None):
            with pytest.raises(TypeError):
                read(data)


def test_threads_can_add_to_one_exact_sum() -> None:
    e = Exact()
    x = np.full(3000, 0.1)

    def work() -> None:
        for _ in range(200):
            e.add(x)
            e.add([0.1, 0.1])
            e.merge(Exact(0.1))
            e.value(), bytes(e), e.copy()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    expected = Exact()
    for _ in range(800):
        expected.add(np.full(3003, 0.1))
    assert e == expected


zeros = np.zeros(12 << 24, np.float16)  # the operating system provides its pages when they are read


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_signals_are_noticed_during_long_additions_which_then_change_nothing() -> None:
    e, p = Exact(0.5), Partial("tree/plain/fp16")
    p.add([0.5])
    interrupted(lambda: e.add(zeros, threads=1))
    interrupted(lambda: p.add(zeros, threads=1))
    assert e == Exact(0.5) and len(p) == 1 and p.finish() == 0.5


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_a_signal_handler_may_use_the_partial_to_which_elements_are_added() -> None:
    # Virtual timers count ticks of the kernel, of up to 10 ms.
    p, seen, many = Partial("tree/plain/fp16"), [], np.zeros(4 * zeros.size, np.float16)

    def look(*_: Any) -> None:
        seen.append(len(p))

    def change(*_: Any) -> None:
        p.add([1.0])

    for handler in (look, change):
        before = signal.signal(signal.SIGVTALRM, handler)
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.002)  # of processor time, so that the addition has begun
            if handler is look:
                p.add(many, threads=1)
            else:
                with pytest.raises(RuntimeError, match="signal handler"):
                    p.add(many, threads=1)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)
    assert seen == [0] and len(p) == many.size + 1 and p.finish() == 1.0


# --- partials --------------------------------------------------------------------------------------------


def has_partials(m: Any) -> bool:
    """Whether a method has partials without a grid."""
    if m.has_result_per_element or m.takes_keys or m.accumulator in ("fixed_point", "hopper"):
        return False
    return m.promise in ("everywhere", "order_free")


def undivided(m: Any, x: Any, y: Any, ddof: float) -> Any:
    """Returns what one call of the library returns."""
    out = np.zeros(2, np.int64 if m.returns_index else dtype_of(m.format))
    format = {np.dtype(dtype_of(f)): f for f in ("fp16", "bf16", "fp32", "fp64")}[x.dtype]
    n = x.size
    call = Call(m.operation, x, method=m, y=y, ddof=ddof, library=library("numpy"), format=format)
    call.layout, call.result = (1, n, 1, n, 1), out[: m.results]
    _core.run(call)
    if m.returns_index:
        return int(out[0])
    return float(out[0]) if m.results == 1 else (float(out[0]), float(out[1]))


def elements(n: int, dtype: Any, seed: int) -> Any:
    """Random elements over some binades; for some seeds with infinities, NaN, or only -0."""
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal(n) * 2.0 ** rng.integers(-6, 4, n)).astype(dtype)
    if seed % 5 == 1 and n:
        x[rng.integers(0, n, 2)] = [np.inf, rng.choice([np.nan, -np.inf, np.inf])]
    if seed % 7 == 1:
        x[:] = -0.0
    return x


def from_parts(m: Any, x: Any, y: Any, cuts: list[int], order: Any) -> Partial:
    """Reduces the parts between cuts, some of them in portions, and merges neighbours in any order."""
    edges = [0, *sorted(cuts), x.size]
    parts = []
    for first, last in zip(edges, edges[1:]):
        part = Partial(m, begin=first)
        middle = order.randint(first, last)
        for a, b in ((first, middle), (middle, last)):
            part.add(x[a:b], *[y[a:b]][: m.inputs - 1], threads=order.randint(0, 2))
        parts.append(pickle.loads(pickle.dumps(part)) if order.random() < 0.3 else part)
    while len(parts) > 1:
        i = order.randrange(len(parts) - 1)
        parts[i].merge(parts.pop(i + 1))
    return parts[0]


@pytest.mark.parametrize("grid", [-20, 0])
def test_partials_of_fixed_point_share_a_grid(grid):
    x = elements(1000, np.float64, 3)
    left, right = Partial("fixed_point/fp64", grid=grid), Partial("fixed_point/fp64", 400, grid=grid)
    right.add(x[400:])
    left.add(x[:400])
    left.merge(pickle.loads(pickle.dumps(right)))
    expected = samesum.scatter_add(np.zeros(1), np.zeros(1000, int), x, method="fixed_point", grid=grid)
    assert left.finish() == expected[0]
    with pytest.raises(ValueError, match="its grid is"):
        left.merge(Partial("fixed_point/fp64", 1000, grid=5))
    with pytest.raises(ValueError, match="a partial needs a grid"):
        Partial("fixed_point/fp64")
    with pytest.raises(ValueError, match="grid is"):
        Partial("fixed_point/fp64", grid=10**30)
    with pytest.raises(ValueError, match="grid is only for"):
        Partial("exact/fp64", grid=grid)
    with pytest.raises(TypeError, match="grid is 0.5"):
        Partial("fixed_point/fp64", grid=0.5)


@pytest.mark.parametrize("format", ["fp16", "bf16", "fp32", "fp64"])
def test_every_method_gives_the_same_bits_for_any_cut(format: str) -> None:
    dtype = dtype_of(format)
    tested = 0
    for m in _core.methods():
        if m.format != format or m.backend == "cuda":
            continue
        if not has_partials(m):
            with pytest.raises(ValueError, match="^samesum: Partial of "):
                Partial(m)
            continue
        seed = tested = tested + 1
        order = random.Random(seed)
        n = order.choice([0, 1, 100, 4096, 5000, 13000]) if m.backend == "cpu" else order.choice([3, 5000])
        x, y = elements(n, dtype, seed), elements(n, dtype, seed + 5)
        p = from_parts(m, x, y, [order.randint(0, n) for _ in range(order.randint(0, 3))], order)
        assert (p.begin, p.end, len(p), p.method) == (0, n, n, m)
        ddof = 1 if m.operation == "moments" else 0
        assert same(p.finish(correction=ddof), undivided(m, x, y, ddof)), m.name
    assert tested > 40


names = [m.name for m in _core.methods() if has_partials(m) and m.backend == "cpu" and m.format != "bf16"]
places = st.integers(0, 9000)


@given(st.sampled_from(names), places, st.lists(places, max_size=5), st.integers(0, 2**32))
@settings(deadline=None, max_examples=500)
def test_partials_of_random_cuts_finish_to_the_bits_of_the_undivided_vector(
    name: str, n: int, cuts: list[int], seed: int
) -> None:
    m = _core.find(name, "", "", "")
    x, y = (elements(n, dtype_of(m.format), seed + i) for i in range(2))
    p = from_parts(m, x, y, [min(c, n) for c in cuts], random.Random(seed))
    assert same(p.finish(), undivided(m, x, y, 0))


def test_elements_are_taken_in_row_major_order_whatever_their_layout_and_type() -> None:
    x = np.random.default_rng(3).standard_normal((30, 40, 50)).astype(np.float32)
    converted = x.astype(np.float64), x.astype(np.float16)[5]
    for a in (x, x.T, x[::-1, ::2], np.asfortranarray(x), x[:, :, 7], *converted):
        p, q = Partial("serial/plain/fp32"), Partial("serial/plain/fp32")
        p.add(a)
        q.add(np.array(a, order="C").ravel())
        assert p == q and len(p) == a.size
    p, q = Partial("dot/tree/plain/fp64"), Partial("dot/tree/plain/fp64")
    p.add(x.T, x[::-1].T.astype(np.float64))
    q.add(x.T.astype(np.float64).ravel(), x[::-1].T.astype(np.float64).ravel())
    assert p == q


def test_lists_integers_and_single_numbers_are_elements_in_fp64() -> None:
    p = Partial("tree/plain/fp64")
    integers = np.arange(3, dtype=np.uint8), np.array([True])
    for x in ([1, 2], (3.0,), *integers, 5, np.float32(0.5), [[1.0], [2.0]], []):
        p.add(x)
    assert len(p) == 11 and p.finish() == 18.5


def test_results_are_floats_ints_or_mean_and_variance() -> None:
    x = np.array([3.0, 7.0, 7.0, 1.0], np.float32)
    for name, result in (("max/fp32", 7.0), ("argmax/fp32", 1), ("argmin/fp32", 3), ("mean/exact/fp32", 4.5)):
        p = Partial(name)
        p.add(x)
        assert p.finish() == result and type(p.finish()) is type(result), name
    p = Partial("moments/exact/fp64")
    p.add(x.astype(float))
    assert p.finish().mean == 4.5 and p.finish().variance == 6.75 and p.finish(correction=1).variance == 9.0
    assert Partial("argmax/fp32").finish() == -1 and Partial("sum/tree/plain/fp32").finish() == 0.0
    assert Partial("tree/plain/fp32")  # also without elements


def test_wrong_arguments_are_refused_and_change_nothing() -> None:
    p = Partial("tree/plain/fp32")
    p.add([1.0])
    before = bytes(p)
    other = Partial("tree/kahan/fp32", begin=1)
    for call, error, message in (
        (lambda: Partial("tree/plain"), ValueError, "samesum: "),
        (lambda: Partial("nothing/fp32"), ValueError, "samesum: "),
        (lambda: Partial("softmax/tree/plain/fp32"), ValueError, "a number per element"),
        (lambda: Partial(5), TypeError, "samesum: method is 5"),
        (lambda: Partial("tree/plain/fp32", -1), ValueError, "begin is -1"),
        (lambda: Partial("tree/plain/fp32", 2**63), ValueError, "begin"),
        (lambda: Partial("tree/plain/fp32", 1.5), TypeError, "integer"),
        (lambda: Partial("tree/plain/fp32", 1).finish(), ValueError, "begins at element 1"),
        (lambda: p.add([1j]), TypeError, "complex128"),
        (lambda: p.add([1.0], [1.0]), ValueError, "samesum: "),
        (lambda: p.add([1.0], threads=-1), ValueError, "threads"),
        (lambda: p.merge(p), ValueError, "begins at element 0"),
        (lambda: p.merge(other), ValueError, "kahan"),
        (lambda: p.merge(Partial("tree/plain/fp32", 5)), ValueError, "begins at element 5"),
        (lambda: p.merge([1.0]), TypeError, "samesum: next is a list"),
        (lambda: Partial("dot/tree/plain/fp32").add(np.ones(2, np.float32)), ValueError, "samesum: "),
        (lambda: Partial("dot/tree/plain/fp64").add([1.0], [1.0, 2.0]), ValueError, "y has shape"),
        (lambda: Partial("max/fp32").add([1.0]), ValueError, "samesum: "),
        (lambda: Partial("tree/plain/fp32", 2**63 - 1).add([1.0]), ValueError, "beyond element"),
        (lambda: Partial.from_bytes(before, backend="abacus"), ValueError, "abacus"),
    ):
        with pytest.raises(error, match=message):
            call()
        assert bytes(p) == before


def test_copies_and_pickles_of_partials_are_independent() -> None:
    for name in ("tree/kahan/fp32", "exact/fp64", "argmax/fp16@reference", "serial/plain/fp64"):
        p = Partial(name, begin=7)
        p.add(np.arange(5000, dtype=dtype_of(p.method.format)))
        before = bytes(p)
        copies = [p.copy(), copy.copy(p), copy.deepcopy(p), Partial.from_bytes(memoryview(before))]
        copies += [pickle.loads(pickle.dumps(p, protocol)) for protocol in protocols]
        for c in copies:
            assert c == p and (c.begin, c.end) == (7, 5007)
            c.add(np.ones(3, dtype_of(p.method.format)))
            assert c != p and bytes(p) == before and p.end == 5007
        assert pickle.loads(pickle.dumps(p)).method == p.method
        with pytest.raises(TypeError):
            hash(p)


def test_partials_travel_between_processes() -> None:
    x = np.random.default_rng(4).standard_normal(10000)
    program = """
import numpy as np
from samesum import Partial
x = np.random.default_rng(4).standard_normal(10000)
p = pickle.loads(read())
right = Partial(p.method, begin=6001)
right.add(x[6001:])
p.add(x[1234:6001])
p.merge(right)
write(pickle.dumps(p))
"""
    p, whole = Partial("pairwise/neumaier/fp64"), Partial("pairwise/neumaier/fp64")
    p.add(x[:1234])
    whole.add(x)
    assert pickle.loads(in_another_process(program, pickle.dumps(p))) == whole


def test_threads_can_add_to_one_partial() -> None:
    p = Partial("exact/fp64")
    x = np.full(3000, 0.1)

    def work() -> None:
        for _ in range(100):
            p.add(x)
            p.finish(), bytes(p), p.copy().add(x), repr(p)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(p) == 1200000
    assert p.finish() == Exact(np.full(1200000, 0.1)).value()


def test_other_threads_run_while_elements_are_added() -> None:
    p, done = Partial("tree/plain/fp16"), threading.Event()
    adding = threading.Thread(target=lambda: (p.add(zeros, threads=1), done.set()))
    adding.start()
    steps = 0
    while not done.is_set():
        steps += 1
    adding.join()
    assert steps > 1000 and len(p) == zeros.size


@pytest.mark.parametrize("state", [samesum.Exact(), samesum.Partial("exact/fp64")])
def test_states_take_any_number_of_threads(state: Any) -> None:
    state.add(np.ones(3), threads=2**40)
    with pytest.raises(ValueError, match="threads is -1"):
        state.add(np.ones(3), threads=-1)
    assert (state.value() if isinstance(state, samesum.Exact) else state.finish()) == 3


def test_the_stub_names_everything_that_the_extension_module_has() -> None:
    stub = ast.parse(Path(samesum.__file__).with_name("_core.pyi").read_text())

    def names(body: Any) -> set[str]:
        defined = {n.name for n in body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
        return defined | {n.target.id for n in body if isinstance(n, ast.AnnAssign)}

    def public(names: Any) -> set[str]:
        return {name for name in names if not name.startswith("_")}

    assert public(names(stub.body)) == public(vars(_core))
    for kind in (n for n in stub.body if isinstance(n, ast.ClassDef)):
        assert public(names(kind.body)) == public(vars(getattr(_core, kind.name))), kind.name
