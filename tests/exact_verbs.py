"""Compares the tool's exact results with Python's fractions: exact_verbs.py TOOL

Each rational operation, and each extremum, reduces arrays with three axes in .npy files, as a whole and along every
axis. Its result must be that of fractions.Fraction, rounded once to the format of the elements; special values must
follow the rules in lib/REFERENCE.md. Prints each difference, and exits with 1 if there is one.
"""

import ast
import fractions
import itertools
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

# struct's letter, precision, and the exponents of the smallest subnormal and of the largest number
FORMATS = {"fp16": ("e", 11, -24, 15), "fp32": ("f", 24, -149, 127), "fp64": ("d", 53, -1074, 1023)}


def write_npy(path, letter, shape, x):
    header = repr({"descr": f"<f{struct.calcsize(letter)}", "fortran_order": False, "shape": shape})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode()
                     + struct.pack(f"<{len(x)}{letter}", *x))


def read_npy(path):
    """(shape, numbers)"""
    data = path.read_bytes()
    end = 10 + struct.unpack_from("<H", data, 8)[0]
    header = ast.literal_eval(data[10:end].decode())
    letter = {"<f2": "e", "<f4": "f", "<f8": "d", "<i8": "q"}[header["descr"]]
    return header["shape"], [x for x, in struct.iter_unpack("<" + letter, data[end:])]


def rounded(value, name):
    """The fraction, rounded to nearest, ties to even."""
    _, precision, least, greatest = FORMATS[name]
    magnitude = abs(fractions.Fraction(value))
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= magnitude < fractions.Fraction(2) ** exponent
    quantum = fractions.Fraction(2) ** max(exponent - precision + 1, least)
    result = round(magnitude / quantum) * quantum
    number = math.inf if result >= 2 ** (greatest + 1) else float(result)
    return -number if value < 0 else number


def sum_of(terms, name, divisor=1):
    """The quotient of the sum of (term, whether a zero is -0) and the divisor."""
    values = [value for value, _ in terms]
    special = [x for x in values if isinstance(x, float)]
    if special:
        return math.fsum(special) if len(set(special)) == 1 else math.nan
    total = sum(values)
    if total == 0:
        return -0.0 if terms and all(value == 0 and negative for value, negative in terms) else 0.0
    return rounded(total / divisor, name)


def exact(x):
    return fractions.Fraction(x) if math.isfinite(x) else x


def is_negative(x):
    return math.copysign(1, x) < 0


def product(x, y):
    finite = math.isfinite(x) and math.isfinite(y)
    return fractions.Fraction(x) * fractions.Fraction(y) if finite else x * y, is_negative(x) != is_negative(y)


def mean(x, _, name):
    return sum_of([(exact(e), is_negative(e)) for e in x], name, len(x)) if x else math.nan


def variance(x, name):
    if not x or not all(map(math.isfinite, x)):
        return math.nan
    values = [fractions.Fraction(e) for e in x]
    center = sum(values) / len(x)
    return rounded(sum((e - center) ** 2 for e in values) / len(x), name) if len(set(values)) > 1 else 0.0


def extremum(x, sign):
    """(value, index) of the largest element times sign; zeros differ in their signs, but have one rank."""
    if not x:
        return -sign * math.inf, -1
    for i, e in enumerate(x):
        if math.isnan(e):
            return e, i
    best = max(sign * e for e in x)
    return sign * max((sign * e for e in x), key=lambda e: (e, math.copysign(1, e))), [sign * e for e in x].index(best)


OPERATIONS = {
    "sum": lambda x, _, name: sum_of([(exact(e), is_negative(e)) for e in x], name),
    "mean": mean,
    "sum_of_magnitudes": lambda x, _, name: sum_of([(exact(abs(e)), False) for e in x], name),
    "squared_norm": lambda x, _, name: sum_of([product(e, e) for e in x], name),
    "dot": lambda x, y, name: sum_of([product(a, b) for a, b in zip(x, y)], name),
    "moments": lambda x, _, name: (mean(x, _, name), variance(x, name)),
    "max": lambda x, _, name: extremum(x, 1)[0],
    "min": lambda x, _, name: extremum(x, -1)[0],
    "argmax": lambda x, _, name: extremum(x, 1)[1],
    "argmin": lambda x, _, name: extremum(x, -1)[1],
}


def lines_of(x, shape, axis):
    """The elements of each result."""
    if axis is None:
        return [x]
    n, inner = shape[axis], math.prod(shape[axis + 1:])
    return [[x[(o * n + i) * inner + k] for i in range(n)]
            for o in range(math.prod(shape[:axis])) for k in range(inner)]


def kinds(name):
    """Functions that draw an element: of ordinary arrays, of arbitrary bits, of edges, of zeros, with special values"""
    letter, precision, least, greatest = FORMATS[name]
    draw = random.Random(1)
    size = struct.calcsize(letter)
    largest = (2 - 2.0 ** (1 - precision)) * 2.0 ** greatest
    edges = [0.0, -0.0, 2.0 ** least, -2.0 ** least, 2.0 ** (least + precision), 1.0, -1.0, 2.0 ** -precision,
             1 + 2.0 ** (1 - precision), largest, -largest]

    def normal():
        return struct.unpack(letter, struct.pack(letter, draw.gauss(0, 1)))[0]

    def bits():
        x = struct.unpack(letter, draw.randbytes(size))[0]
        return x if math.isfinite(x) else bits()

    return [normal, bits, lambda: draw.choice(edges), lambda: draw.choice(edges[:2]),
            lambda: draw.choice(edges + [math.inf, -math.inf, math.nan])]


def arrays(name):
    """(shape, axes to reduce it along, numbers, as many others), with None for a reduction to one number. Arrays of
    several kinds are stacked along the first axis, since each run of the tool takes longer than its work."""
    drawn = kinds(name)

    def pair(shape, draws):
        n = math.prod(shape) // len(draws)
        return [[draw() for draw in draws for _ in range(n)] for _ in range(2)]

    for draw in drawn:
        yield (5, 2, 7), [None, 0], *pair((5, 2, 7), [draw])
    stacked = (len(drawn), 3, 5, 7)
    yield stacked, [1, 2, 3], *pair(stacked, drawn)
    yield (3, 4, 50), [0, 2], *pair((3, 4, 50), drawn[:1])
    yield (2, 0, 3), [None, 0, 1, 2], [], []


def same(a, b):
    return a == b and is_negative(a) == is_negative(b) or a != a and b != b


def main(tool, folder):
    x_file, y_file, out = (folder / name for name in ("x.npy", "y.npy", "out.npy"))
    compared = wrong = 0
    for name, operation in itertools.product(FORMATS, OPERATIONS):
        for shape, axes, x, y in arrays(name):
            write_npy(x_file, FORMATS[name][0], shape, x)
            write_npy(y_file, FORMATS[name][0], shape, y)
            files = [x_file, y_file] if operation == "dot" else [x_file]
            for axis in axes:
                subprocess.run([tool, operation, *files, "--output", out,
                                *(() if axis is None else ("--axis", str(axis)))], check=True)
                expected_shape = () if axis is None else shape[:axis] + shape[axis + 1:]
                expected = [OPERATIONS[operation](a, b, name)
                            for a, b in zip(lines_of(x, shape, axis), lines_of(y, shape, axis))]
                if operation == "moments":
                    expected_shape += 2,
                    expected = list(itertools.chain(*expected))
                found_shape, found = read_npy(out)
                compared += len(found)
                if found_shape != expected_shape or not all(map(same, found, expected)):
                    wrong += 1
                    print(f"{operation} of {name} {shape}, axis {axis}: {found_shape} {found}\n"
                          f"  instead of {expected_shape} {expected}")
    print(f"{compared} results compared, {wrong} arrays differ")
    return wrong > 0 or compared < 5000


with tempfile.TemporaryDirectory() as temporary:
    sys.exit(main(sys.argv[1], pathlib.Path(temporary)))
