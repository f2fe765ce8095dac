"""fsum: math.fsum's documented behaviour, without intermediate overflow."""

from __future__ import annotations

import decimal
import itertools
import math
import os
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any, Callable, Iterable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import samesum
from samesum import fsum

ulp_of_largest = 2.0**971
largest = sys.float_info.max


def outcome(function: Callable[[Any], float], x: Any) -> tuple[str, str]:
    """Returns the bits of the result, or the type of the error."""
    try:
        result = function(x)
    except (ValueError, OverflowError, TypeError) as error:
        return "error", type(error).__name__
    return "value", "nan" if math.isnan(result) else result.hex()


def exact_outcome(x: list[float]) -> tuple[str, str]:
    """What the documentation says, computed with fractions."""
    if math.inf in x and -math.inf in x:
        return "error", "ValueError"
    if any(map(math.isnan, x)):
        return "value", "nan"
    if math.inf in x or -math.inf in x:
        return "value", (math.inf if math.inf in x else -math.inf).hex()
    if all(v == 0 for v in x):
        return outcome(math.fsum, x)  # the sign differs between Python versions
    return outcome(lambda numbers: float(sum(map(Fraction, numbers))), x)


@given(st.lists(st.floats(), max_size=60))
@example([])
@example([-0.0])
@example([-0.0, -0.0])
@example([-0.0, 0.0])
@example([1e308, 1e308, -1e308])
@example([largest, ulp_of_largest / 2])  # a tie, which rounds beyond the largest number
@example([largest, ulp_of_largest / 2, -5e-324])
@example([math.inf, math.nan, -math.inf])
@example([math.nan, math.inf])
@example([1e308, 1e308, math.inf])
def test_the_sum_is_correctly_rounded(x: list[float]) -> None:
    assert outcome(fsum, x) == exact_outcome(x)
    for kind in (tuple, iter, lambda x: (v for v in x)):
        assert outcome(fsum, kind(x)) == exact_outcome(x)


numbers = st.one_of(
    st.floats(min_value=-1e300, max_value=1e300),
    st.integers(min_value=-(2**900), max_value=2**900),
    st.booleans(),
    st.fractions(max_denominator=10**6),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9),
    st.sampled_from([math.inf, math.nan, -0.0, 5e-324]),
)


@given(st.lists(numbers, max_size=40))
def test_numbers_of_other_types_give_what_math_fsum_gives(x: list[Any]) -> None:
    assert outcome(fsum, x) == outcome(math.fsum, x)


@given(st.integers(0, 20000), st.integers(0, 2**32))
@settings(deadline=None, max_examples=40)
def test_long_lists_give_what_math_fsum_gives(n: int, seed: int) -> None:
    random = Random(seed)
    spread = random.choice([0, 30, 300])
    x = [random.gauss(0, 1) * 2.0 ** random.randint(-spread, spread) for _ in range(n)]
    if x:
        for _ in range(random.choice([0, 0, 3])):
            x[random.randrange(n)] = random.choice([math.inf, math.nan, 1, 2**70])
    assert outcome(fsum, x) == outcome(math.fsum, x)
    assert outcome(fsum, iter(x)) == outcome(math.fsum, x)


@pytest.mark.parametrize(
    "x", [None, 5, 1.5, ["1"], [None], [1j], [[1.0]], [1.0, "x"], (...,), {"a": 1}, "12", [b"1"]], ids=str
)
def test_other_objects_are_type_errors_as_in_math_fsum(x: Any) -> None:
    with pytest.raises(TypeError) as theirs:
        math.fsum(x)
    with pytest.raises(TypeError) as ours:
        fsum(x)
    assert str(ours.value) == str(theirs.value)


def test_a_call_without_an_argument_or_with_two_is_a_type_error() -> None:
    for arguments in ((), ([], [])):
        with pytest.raises(TypeError):
            fsum(*arguments)
    with pytest.raises(TypeError):
        fsum(iterable=[])


def test_infinities_of_both_signs_are_a_value_error_with_the_message_of_math_fsum() -> None:
    with pytest.raises(ValueError, match=r"^-inf \+ inf in fsum$"):
        fsum([math.inf, 1.0, -math.inf])


def test_an_int_beyond_double_is_an_overflow_error_as_in_math_fsum() -> None:
    for x in ([10**400], [1.0, -(10**400), 10**400]):
        with pytest.raises(OverflowError, match="int too large to convert to float"):
            fsum(x)
        assert outcome(math.fsum, x) == ("error", "OverflowError")


def test_a_sum_beyond_double_is_an_overflow_error_and_an_intermediate_one_is_not() -> None:
    with pytest.raises(OverflowError, match="^samesum: the exact sum"):
        fsum([1e308, 1e308])
    assert fsum([1e308] * 100 + [-1e308] * 99) == 1e308
    assert fsum([largest, ulp_of_largest / 4]) == largest


class Float:
    def __init__(self, number: float, before: Callable[[], Any] = lambda: None) -> None:
        self.number, self.before = number, before

    def __float__(self) -> float:
        self.before()
        return self.number


class Index:
    def __index__(self) -> int:
        return 7


class OwnFloat(float):
    def __float__(self) -> float:
        return 99.0


class OwnInt(int):
    def __float__(self) -> float:
        return 99.0


class OwnList(list):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        return iter([1.0, 2.0])


class Sequence:
    def __getitem__(self, i: int) -> float:
        if i > 2:
            raise IndexError
        return i + 0.5


@pytest.mark.parametrize(
    "x",
    [
        [Float(0.25), 1.0],
        [Index(), 0.5],
        [OwnFloat(2.0)],
        [OwnInt(2)],
        OwnList([5.0]),
        Sequence(),
        [True, False, True],
        [2**53 + 1, 1],
        [Fraction(1, 3), decimal.Decimal("0.1")],
        {1.5: "a", 2.5: "b"},
        {1.5, 2.5},
        range(10),
        b"ab",
    ],
    ids=lambda x: type(x).__name__,
)
def test_numbers_and_iterables_of_other_classes_are_read_as_by_math_fsum(x: Any) -> None:
    assert fsum(x) == math.fsum(x)


def test_errors_of_elements_and_generators_pass_through() -> None:
    class Wrong(Exception):
        pass

    def fail() -> None:
        raise Wrong

    def generator() -> Iterable[float]:
        yield 1.0
        raise Wrong

    for x in (generator(), [1.0, Float(1.0, fail)], (Float(1.0, fail),), iter([Float(1.0, fail)])):
        with pytest.raises(Wrong):
            fsum(x)
    for x in ([Float("a")], [Float(1)]):  # type: ignore[arg-type]
        assert outcome(fsum, x) == outcome(math.fsum, x) == ("error", "TypeError")


def test_a_list_may_change_while_it_is_read() -> None:
    def list_that(change: Callable[[list[Any]], Any]) -> list[Any]:
        x: list[Any] = [1.0] * 5000
        x[100] = Float(0.5, lambda: change(x))
        return x

    def grow(x: list[Any]) -> None:
        x.extend([2.0] * 100000)

    def replace(x: list[Any]) -> None:
        x[:] = [float(i) for i in range(300)]

    for change in (list.clear, grow, replace, list.pop, lambda x: x.__delitem__(0)):
        assert fsum(list_that(change)) == math.fsum(list_that(change))


def test_an_element_that_removes_itself_stays_alive() -> None:
    x: list[Any] = []

    x.extend([1.0, Float(0.125, x.clear)])
    assert fsum(x) == 1.125 and not x


def test_a_generator_is_read_to_its_end_and_no_further() -> None:
    numbers = iter([1.0, 2.0, 3.0, 4.0])
    assert fsum(itertools.islice(numbers, 3)) == 6.0
    assert next(numbers) == 4.0


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
@pytest.mark.parametrize(
    "kind", [lambda: [1.0] * 10**7, lambda: itertools.repeat(1.0, 10**9)], ids=["list", "iterator"]
)
def test_signals_are_noticed_during_long_sums(kind: Callable[[], Any]) -> None:
    class Interrupted(Exception):
        pass

    def interrupt(*_: Any) -> None:
        raise Interrupted

    x = kind()
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(Interrupted):
            signal.setitimer(signal.ITIMER_REAL, 0.002)
            fsum(x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_fsum_and_exact_sums_of_numbers_need_no_numpy() -> None:
    program = """
import sys
for library in ("numpy", "torch", "cupy", "jax"):
    sys.modules[library] = None
from samesum import Exact, fsum
assert fsum([0.1] * 10) == 1.0
e = Exact([0.1] * 10)
e += 2
assert e.value() == 3.0, e
"""
    package = str(Path(samesum.__file__).parent.parent)
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "PYTHONPATH": package})


def test_sums_that_contain_themselves_are_a_recursion_error():
    class Endless:
        def __float__(self):
            return self.sum([self])

    for function in (samesum.fsum, samesum.Exact):
        Endless.sum = staticmethod(function)
        with pytest.raises(RecursionError):
            function([Endless()])
