"""The SQL functions in exact arithmetic, and random numbers, for the tests of databases."""

import math
import struct
from fractions import Fraction

ONE = "sum avg var_samp var_pop stddev_samp stddev_pop".split()
TWO = "dot covar_samp covar_pop corr".split()


def calls(x="x", y="y"):
    """Each function, as it is called."""
    return [f"exact_{name}({x})" for name in ONE] + [f"exact_{name}({x}, {y})" for name in TWO]


def to_float(number):
    """A fraction rounded once."""
    try:
        return number.numerator / number.denominator
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def total(terms, divisor=1):
    """The sum of exact numbers, of the floats -0.0, and of infinities."""
    special = [t for t in terms if isinstance(t, float) and not math.isfinite(t)]
    if special:
        return special[0] if len(set(special)) == 1 else math.nan
    if terms and all(isinstance(t, float) and math.copysign(1, t) < 0 and t == 0 for t in terms):
        return -0.0
    return to_float(sum(map(Fraction, terms)) / divisor)


def product(x, y):
    if isinstance(x, int) and isinstance(y, int):
        return x * y
    if x and y and math.isfinite(x) and math.isfinite(y):
        return Fraction(x) * Fraction(y)
    a, b = (math.copysign(1, v) if v and math.isfinite(v) else float(v) for v in (x, y))
    return a * b


def moment(a, b):
    """n² times the covariance."""
    return len(a) * sum(x * y for x, y in zip(a, b)) - sum(a) * sum(b)


def over_root(number, square):
    """number/√square, rounded once: at most 1, so no subnormal of interest."""
    if number == 0:
        return 0.0
    ratio = number * number / square
    shift = 140 + max(0, ratio.denominator.bit_length() - ratio.numerator.bit_length())
    scaled = (ratio.numerator << (2 * shift)) // ratio.denominator
    root = math.isqrt(scaled)
    sticky = root * root != scaled or (ratio.numerator << (2 * shift)) % ratio.denominator != 0
    size = to_float(Fraction(2 * root + sticky, 2 << shift))
    return size if number > 0 else -size


def expected(name, rows):
    """The result of exact_<name> for rows (x,) or (x, y): None for NULL; an int for a sum of integers."""
    rows = [row for row in rows if None not in row]
    n = len(rows)
    if n == 0:
        return None
    columns = list(zip(*rows))
    if name == "sum":
        return sum(columns[0]) if all(isinstance(x, int) for x in columns[0]) else total(columns[0])
    if name == "avg":
        return total(columns[0], n)
    if name == "dot":
        return total([product(x, y) for x, y in rows])
    ddof = int(name.endswith("samp"))
    if n <= ddof:
        return None
    if not all(map(math.isfinite, columns[0] + columns[-1])):
        return math.nan
    a, b = ([Fraction(v) for v in column] for column in (columns[0], columns[-1]))
    if name == "corr":
        square = moment(a, a) * moment(b, b)
        return over_root(moment(a, b), square) if square else None
    value = to_float(moment(a, b) / (n * (n - ddof)))
    return math.sqrt(value) if name.startswith("stddev") else value


def bits(value):
    """What is equal for equal bits; one value for all NaN."""
    return struct.pack("<d", math.nan if value != value else value) if isinstance(value, float) else value


def flavours(rng):
    """Functions that each return a random number of their kind."""
    return {
        "normal": lambda: rng.gauss(0, 1),
        "any exponent": lambda: struct.unpack("<d", struct.pack("<Q", rng.getrandbits(64)))[0],
        "wide": lambda: math.ldexp(rng.choice([-1, 1]) * rng.random(), rng.randint(-400, 400)),
        "ends": lambda: rng.choice([-1, 1]) * rng.choice([5e-324, 1.7976931348623157e308, 2.0**53, 2.0**-1022]),
        "zeros": lambda: rng.choice([0.0, -0.0, -0.0, 0, 1.0]),
        "infinities": lambda: rng.choice([math.inf, math.inf, -math.inf, 1.0, 0.0, 7]),
        "integers": lambda: rng.randint(-1000, 1000),
        "large integers": lambda: rng.choice([2**53 + 1, -2**53 - 1, 2**62 + 1, 2**63 - 1, -2**63,
                                              rng.getrandbits(63)]),
    }
