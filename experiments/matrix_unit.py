"""How a matrix unit of Hopper adds products, in NumPy, for finite numbers that do not overflow.

The model is that of lib/samesum/accumulator/fused_sum.hpp. A group of products and the addend, which is the sum of all
groups before it, are cut to some bits below the largest exponent, added, and rounded once. All numbers are float64,
which holds every product, every cut term and every sum of them exactly.
"""

import dataclasses

import numpy as np

# Precision in bits, and least exponent of a normal number. The results of fp8 products have 14 bits in fp32.
FORMATS = {"fp16": (11, -14), "bf16": (8, -126), "tf32": (11, -126), "fp32": (24, -126), "e4m3": (4, -6),
           "fp32 with 14 bits": (14, -126)}


@dataclasses.dataclass(frozen=True)
class Unit:
    factors: str  # their format
    group: int  # products that are added at once
    fraction_bits: int = 25  # that are kept below the largest exponent
    result: str = "fp32"
    cut: np.ufunc = np.trunc  # rounds the result
    least: int = -133  # the largest exponent is at least this


# By the formats of factors and sums. Those of fp32 are no matrix unit's: see fma_sums.
UNITS = {("fp16", "fp32"): Unit("fp16", 16), ("bf16", "fp32"): Unit("bf16", 16), ("tf32", "fp32"): Unit("tf32", 8),
         ("fp16", "fp16"): Unit("fp16", 16, result="fp16", cut=np.rint),
         ("e4m3", "fp32"): Unit("e4m3", 32, 13, "fp32 with 14 bits")}


def exponents(x, least):
    """The exponents of numbers; those of numbers below 2^least, and of 0, are `least`."""
    return np.maximum((x.view(np.int64) >> 52 & 0x7ff) - 1023, least)


def rounded(x, format, cut=np.rint):
    """Numbers rounded to a format, to nearest and ties to even by default."""
    precision, least = FORMATS[format]
    last = exponents(x, least) - (precision - 1)
    return np.ldexp(cut(np.ldexp(x, -last)), last)


def unit_sums(a, b, unit):
    """The sums of a[i, k] b[i, k] over k, as the unit adds them group by group."""
    products, least = a * b, FORMATS[unit.factors][1]
    of_products = np.where(products == 0, unit.least, exponents(a, least) + exponents(b, least))
    groups = (len(a), -1, unit.group)
    largest = np.maximum(of_products.reshape(groups).max(2), unit.least).T.copy()
    products = products.reshape(groups).transpose(1, 0, 2).copy()
    sums = np.zeros(len(a))
    for terms, exponent in zip(products, largest):
        of_sums = np.where(sums == 0, unit.least, exponents(sums, FORMATS[unit.result][1]))
        top = np.maximum(exponent, of_sums)
        scale = np.ldexp(1.0, unit.fraction_bits - top)
        total = np.trunc(terms * scale[:, None]).sum(1) + np.trunc(sums * scale)
        sums = rounded(total / scale, unit.result, unit.cut)
    return sums


def fma_sums(a, b):
    """The sums of a[i, k] b[i, k] over k, by one fused multiply-add of fp32 after the other."""
    sums = np.zeros(len(a))
    for product in (a * b).T.copy():
        total = sums + product
        part = total - sums
        error = (sums - (total - part)) + (product - part)
        # An inexact sum becomes odd, so that the second rounding sees on which side of it the exact one lies.
        is_even = (total.view(np.int64) & 1) == 0
        total = np.where((error != 0) & is_even, np.nextafter(total, np.copysign(np.inf, error)), total)
        sums = total.astype(np.float32).astype(np.float64)
    return sums


def sums(a, b, factors, format, parts=1, part_format="fp32"):
    """The sums over k, which is cut into equal parts: their sums are rounded to `part_format`, and added one after the
    other in fp32."""
    a, b = (x.reshape(len(x) * parts, -1) for x in (a, b))
    of_parts = fma_sums(a, b) if factors == "fp32" else unit_sums(a, b, UNITS[factors, format])
    first, *others = rounded(of_parts, part_format).reshape(-1, parts).T
    for part in others:
        first = rounded(first + part, "fp32")
    return first
