"""How numbers and the words of cells are laid out, for kernels of other languages."""

from __future__ import annotations

from .. import _core
from .._elements.formats import FORMATS

FIELDS = {"float16": (10, 15), "bfloat16": (7, 127), "float32": (23, 127), "float64": (52, 1023)}
"""Bits of the fraction of each type, and the bias of its exponent."""


def exponents_of(dtype: str) -> tuple[int, int]:
    """Returns the exponents of the smallest and the largest power of 2 of a type."""
    fraction, bias = FIELDS[dtype]
    return 1 - bias - fraction, bias


def digits_of(dtype: str) -> tuple[int, int]:
    """Returns how many digits an exact sum of a type has, and the exponent of the unit of digit 0."""
    least, (smallest, _) = exponents_of("float64")[0], exponents_of(dtype)
    return _core.cell_words(FORMATS[dtype], False) - 1, least + (smallest - least) // 32 * 32
