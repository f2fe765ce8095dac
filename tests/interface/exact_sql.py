"""The functions of the extensions of databases in Python's fractions, and random queries with their results."""

import math
import struct
from fractions import Fraction

ONE = "sum avg var_samp var_pop stddev_samp stddev_pop".split()
TWO = "dot covar_samp covar_pop corr".split()
COLUMNS = "kgxy"


def calls(x="x", y="y"):
    """Each function, as it is called."""
    return [f"exact_{name}({x})" for name in ONE] + [f"exact_{name}({x}, {y})" for name in TWO]


# --- the model -----------------------------------------------------------------------------------------------------

def to_float(number):
    """A fraction rounded once."""
    try:
        return number.numerator / number.denominator
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def total(terms, divisor=1):
    """The sum of exact numbers, of the floats -0.0, of infinities and of NaN, over a divisor."""
    special = [t for t in terms if isinstance(t, float) and not math.isfinite(t)]
    if special:
        return sum(special)
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
    """The result of exact_<name> for rows (x,) or (x, y): None for NULL, an integer for a sum of integers."""
    rows = [row for row in rows if None not in row]
    n, ddof = len(rows), int(name.endswith("samp"))
    if n <= ddof:
        return None
    columns = list(zip(*rows))
    if name == "sum":
        return sum(columns[0]) if all(isinstance(x, int) for x in columns[0]) else total(columns[0])
    if name == "avg":
        return total(columns[0], n)
    if name == "dot":
        return total([product(x, y) for x, y in rows])
    if not all(map(math.isfinite, columns[0] + columns[-1])):
        return math.nan
    a, b = ([Fraction(v) for v in column] for column in (columns[0], columns[-1]))
    if name == "corr":
        square = moment(a, a) * moment(b, b)
        return over_root(moment(a, b), square) if square else None
    value = to_float(moment(a, b) / (n * (n - ddof)))
    return math.sqrt(value) if name.startswith("stddev") else value


def bits(value):
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack("<d", value)
    return value


# --- random values -------------------------------------------------------------------------------------------------

REALS = {
    "normal": lambda rng: rng.gauss(0, 1),
    "any exponent": lambda rng: struct.unpack("<d", struct.pack("<Q", rng.getrandbits(64)))[0],
    "wide": lambda rng: math.ldexp(rng.choice([-1, 1]) * rng.random(), rng.randint(-400, 400)),
    "ends": lambda rng: rng.choice([-1, 1]) * rng.choice([5e-324, 1.7976931348623157e308, 2.0**53, 2.0**-1022]),
    "zeros": lambda rng: rng.choice([0.0, -0.0, -0.0, 1.0]),
    "infinities": lambda rng: rng.choice([math.inf, math.inf, -math.inf, 1.0, 0.0]),
}
INTEGERS = {
    "integers": lambda rng: rng.randint(-1000, 1000),
    "large integers": lambda rng: rng.choice([2**53 + 1, -2**53 - 1, 2**62 + 1, 2**63 - 1, -2**63,
                                              rng.getrandbits(63)]),
}


def values(rng, n, flavours):
    """Numbers of one flavour, or of two."""
    chosen = rng.sample(sorted(flavours), min(rng.choice([1, 1, 2]), len(flavours)))
    column = [flavours[rng.choice(chosen)](rng) for _ in range(n)]
    for i in range(n):  # some cancel earlier ones, some are NULL
        if i and column[i - 1] not in (None, -2**63) and rng.random() < 0.2:
            column[i] = -column[i - 1]
        elif rng.random() < 0.1:
            column[i] = None
    return column


# --- random queries ------------------------------------------------------------------------------------------------

def condition(rng):
    """An SQL condition, and the same one in Python."""
    return rng.choice([
        ("true", lambda r: True), ("g > 1", lambda r: r["g"] > 1), ("k % 3 <> 0", lambda r: r["k"] % 3 != 0),
        ("g in (0, 2)", lambda r: r["g"] in (0, 2)), ("x is not null", lambda r: r["x"] is not None),
        ("k < 12 and g <> 3", lambda r: r["k"] < 12 and r["g"] != 3), ("k < 0", lambda r: False)])


def source(rng, depth=2):
    """An SQL table of columns k, g, x, y, and a function of the rows of t that returns its rows."""
    kind = rng.choice(["t", "where", "order", "union", "twice"]) if depth else "t"
    if kind == "t":
        return "t", lambda rows: rows
    inner, rows_of = source(rng, depth - 1)
    if kind == "where":
        text, holds = condition(rng)
        return f"(select * from {inner} where {text})", lambda rows: [r for r in rows_of(rows) if holds(r)]
    if kind == "order":
        return f"(select * from {inner} order by random() limit 1000000)", rows_of
    if kind == "twice":
        return (f"(select k, g, x, y from {inner}, (select 1 union all select 2) as two)",
                lambda rows: [r for r in rows_of(rows) for _ in range(2)])
    other, others_of = source(rng, depth - 1)
    return (f"(select * from {inner} union all select * from {other})",
            lambda rows: rows_of(rows) + others_of(rows))


class Call:
    """A random call of a function. SQLite has DISTINCT only for one argument outside windows, and no ORDER BY."""

    def __init__(self, rng, nonzero, is_window, is_duckdb):
        self.name = rng.choice(ONE + TWO)
        arguments = [rng.choice("xy") for _ in range(1 + (self.name in TWO))]
        self.is_distinct = rng.random() < 0.2 and (is_duckdb or (len(arguments) == 1 and not is_window))
        self.takes = self.holds = None
        if rng.random() < 0.3:
            takes, self.takes = condition(rng)
        self.arguments = arguments
        texts = [nonzero(a) if self.is_distinct else a for a in arguments]
        if self.takes:
            texts = [f"case when {takes} then {t} end" for t in texts]
        order = " order by k desc" if is_duckdb and not self.is_distinct and rng.random() < 0.2 else ""
        self.text = f"exact_{self.name}({'distinct ' * self.is_distinct}{', '.join(texts)}{order})"
        if rng.random() < 0.3:
            holds, self.holds = condition(rng)
            self.text += f" filter (where {holds})"

    def result(self, rows, is_nonzero):
        rows = [r for r in rows if not self.holds or self.holds(r)]
        pairs = [tuple(r[a] for a in self.arguments) for r in rows if not self.takes or self.takes(r)]
        if self.is_distinct:
            pairs = [p for p in pairs if all(v is not None and is_nonzero(v) for v in p)]
            pairs = {tuple(map(bits, p)): p for p in pairs}.values()
        return expected(self.name, list(pairs))


def window(rng):
    """A random window, and a function that returns the frame of a row of sorted rows of its partition."""
    part, key = rng.choice([("", lambda r: 0), ("partition by g ", lambda r: r["g"]),
                            ("partition by k % 2 ", lambda r: r["k"] % 2)])
    if rng.random() < 0.15:
        return f"over ({part})", key, lambda rows, i: rows
    first, last = sorted(rng.sample(range(-6, 7), 2))
    unbounded = rng.choice(["", "", "first", "last"])
    spell = lambda n: "current row" if n == 0 else f"{abs(n)} {'preceding' if n < 0 else 'following'}"
    ends = ("unbounded preceding" if unbounded == "first" else spell(first),
            "unbounded following" if unbounded == "last" else spell(last))
    mode, excluded = rng.choice(["rows", "range", "groups"]), rng.random() < 0.2
    text = f"over ({part}order by k {mode} between {ends[0]} and {ends[1]}{' exclude current row' * excluded})"

    def frame(rows, i):
        place = (lambda j: rows[j]["k"] - rows[i]["k"]) if mode == "range" else (lambda j: j - i)
        return [r for j, r in enumerate(rows) if (unbounded == "first" or place(j) >= first) and
                (unbounded == "last" or place(j) <= last) and not (excluded and j == i)]
    return text, key, frame


def query(rng, nonzero, is_nonzero, is_duckdb):
    """A random query and a function that returns its rows, of which the first column is a key, for those of t.

    nonzero(column) is SQL for its values that are not 0, and is_nonzero(value) the same in Python: zeros of both signs
    are not distinct.
    """
    is_window = rng.random() < 0.4
    listed = [Call(rng, nonzero, is_window, is_duckdb) for _ in range(rng.randint(1, 4))]
    if is_window:
        text, key, frame = window(rng)
        where, holds = condition(rng)
        every = ", ".join(f"{call.text} {text}" for call in listed)

        def windows(rows):
            rows = [r for r in rows if holds(r)]
            parts = {}
            for r in sorted(rows, key=lambda r: r["k"]):
                parts.setdefault(key(r), []).append(r)
            found = [(r["k"], *(c.result(frame(part, i), is_nonzero) for c in listed))
                     for part in parts.values() for i, r in enumerate(part)]
            return sorted(found, key=lambda row: row[0])
        return f"select k, {every} from t where {where} order by k", windows

    table, rows_of = source(rng)
    every = ", ".join(call.text for call in listed)
    group, key = rng.choice([(None, lambda r: 0), ("g", lambda r: r["g"]), ("k % 5", lambda r: r["k"] % 5),
                             ("g * 10 + k % 2", lambda r: r["g"] * 10 + r["k"] % 2)])

    def groups(rows):
        parts = {} if group else {0: []}
        for r in rows_of(rows):
            parts.setdefault(key(r), []).append(r)
        return [(k, *(c.result(parts[k], is_nonzero) for c in listed)) for k in sorted(parts)]
    if group is None:
        return f"select 0, {every} from {table} as s", groups
    return f"select {group}, {every} from {table} as s group by {group} order by 1", groups
