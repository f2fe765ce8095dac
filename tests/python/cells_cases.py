"""Random elements of cells, and the sums of each cell by Python's fractions."""

from __future__ import annotations

import math
import os
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import samesum

FORMATS = {
    "float16": (11, -24, 15), "bfloat16": (8, -133, 127), "float32": (24, -149, 127), "float64": (53, -1074, 1023),
}  # fmt: skip
"""Precision, and the exponents of the smallest and the largest power of 2."""
CELLS = 10**5 // 8 if os.environ.get("SAMESUM_LONG_TESTS") else 200
"""Cells of a case; there are 8 cases."""


def dtype_of(name: str) -> np.dtype:
    return np.dtype(__import__("ml_dtypes").bfloat16 if name == "bfloat16" else name)


def rounded(q: Fraction, dtype: str) -> float:
    """Returns the number of a format that is nearest to q, ties to even."""
    precision, least, most = FORMATS[dtype]
    if q == 0:
        return 0.0
    exponent = abs(q.numerator).bit_length() - q.denominator.bit_length()
    exponent -= abs(q) < Fraction(2) ** exponent
    quantum = max(exponent - precision + 1, least)
    m = round(q / Fraction(2) ** quantum)
    if abs(m) * Fraction(2) ** quantum >= Fraction(2) ** (most + 1):
        return math.copysign(math.inf, m)
    return math.copysign(math.ldexp(m, quantum), q)


def expected(elements: list[float], dtype: str, grid: int | None) -> float:
    """Returns what a cell gives that has these elements."""
    finite = [Fraction(x) for x in elements if math.isfinite(x)]
    total = sum(finite, Fraction(0))
    if grid is not None:
        units = [round(q / Fraction(2) ** grid) for q in finite]
        most = 2 ** (126 if dtype == "float64" else 62)
        if any(abs(u) > 2**62 for u in units) or abs(sum(units)) > most:
            return math.nan
        total = sum(units) * Fraction(2) ** grid
    if {math.inf, -math.inf} <= {*elements} or any(map(math.isnan, elements)):
        return math.nan
    for x in elements:
        if math.isinf(x):
            return x
    if grid is not None:
        return rounded(total, dtype) + 0.0  # without the sign of a zero
    if elements and all(x == 0 and math.copysign(1, x) < 0 for x in elements):
        return -0.0
    return rounded(total, dtype)


def _elements(random: np.random.Generator, n: int, dtype: str, grid: int | None) -> np.ndarray:
    precision, least, most = FORMATS[dtype]
    bits = random.integers(0, 2 ** min(63, 8 * dtype_of(dtype).itemsize), n, dtype=np.int64, endpoint=False)
    anything = bits.astype(f"u{dtype_of(dtype).itemsize}").view(dtype_of(dtype))
    middle = 0 if grid is None else grid + random.integers(0, 50)
    with np.errstate(all="ignore"):
        near = np.ldexp(random.standard_normal(n), random.integers(middle - 6, middle + 6, n)).astype(dtype_of(dtype))
        small = (np.ldexp(random.integers(-9, 9, n).astype(float), least) / 1).astype(dtype_of(dtype))
        ties = np.ldexp(random.integers(-9, 9, n) + 0.5, 0 if grid is None else grid).astype(dtype_of(dtype))
    special = np.array([0.0, -0.0, math.inf, -math.inf, math.nan], dtype_of(dtype))[random.integers(0, 5, n)]
    zeros = np.array([0.0, -0.0], dtype_of(dtype))[random.integers(0, 2, n)]
    kind = random.choice(7, n, p=[0.06, 0.45, 0.1, 0.15, 0.01, 0.08, 0.15])
    x = np.choose(kind, [a.view(f"u{a.dtype.itemsize}") for a in (anything, near, small, ties, special, zeros, near)])
    x = x.view(dtype_of(dtype))
    x[1::7] = -x[::7][: len(x[1::7])]  # that cancel
    return x


class Case(NamedTuple):
    dtype: str
    grid: int | None
    i: np.ndarray
    x: np.ndarray
    sums: np.ndarray
    """What each cell gives."""


def case(dtype: str, grid: int | None, cells: int = CELLS, seed: int = 0) -> Case:
    """Returns elements for cells, most of which have a few, one many, some none and some only zeros."""
    random = np.random.default_rng(seed)
    n = 6 * cells
    i = random.integers(0, cells - cells // 8, n)
    i[random.integers(0, n, n // 8)] = 1
    x = _elements(random, n, dtype, grid)
    x[i % 16 == 3] = np.copysign(0, x[i % 16 == 3])
    x[i % 32 == 3] = dtype_of(dtype).type(-0.0)
    x[1], i[1] = (0, 1)
    of_cell: list[list[float]] = [[] for _ in range(cells)]
    with np.errstate(all="ignore"):
        for at, value in zip(i.tolist(), x.astype(np.float64).tolist()):
            of_cell[at].append(value)
        sums = np.array([expected(f, dtype, grid) for f in of_cell]).astype(dtype_of(dtype))
    return Case(dtype, grid, i, x, sums)


CASES = [(dtype, grid) for dtype, grids in
         {"float16": (None, -30), "bfloat16": (None, -40), "float32": (None, -50), "float64": (None, -80)}.items()
         for grid in grids]  # fmt: skip


def filled(c: Case, i: np.ndarray, x: np.ndarray, cells: int | None = None) -> samesum.Cells:
    """Returns cells like those of a case, or another number of them, after additions by samesum's own calls."""
    result = samesum.cells(len(c.sums) if cells is None else cells, c.dtype, grid=c.grid)
    result.add(i, x)
    return result


def bits(a: np.ndarray) -> np.ndarray:
    """Returns the bit patterns of numbers, of which all NaN have the same."""
    a = np.asarray(a)
    integers = a.view(f"u{a.dtype.itemsize}").copy()
    integers[a != a] = -1 % 2 ** (8 * a.dtype.itemsize)
    return integers
