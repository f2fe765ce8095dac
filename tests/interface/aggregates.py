"""Aggregate states that grow have the bits of Python's fractions, whatever is added, merged and subtracted.

Usage: aggregates.py LIBRARY [SEQUENCES [SEED]]. For each format, runs so many random sequences of additions, merges,
subtractions, copies, moves and round trips through bytes, some of them with an allocator that fails, and compares the
results, the counts and the bytes of the states with a model of exact fractions. 10^5 sequences take minutes.
"""

import ctypes as c
import math
import random
import struct
import sys
import zlib
from fractions import Fraction

# precision, exponent of the largest binade, of the smallest subnormal
FORMATS = {1: (11, 15, -24), 2: (8, 127, -133), 3: (24, 127, -149), 4: (53, 1023, -1074)}
FP64, INT64 = 4, 5
SUM, PRODUCTS, MOMENTS, COMOMENTS = 1, 2, 3, 4
NAMES = {SUM: b"aggregate_sum", PRODUCTS: b"aggregate_products", MOMENTS: b"aggregate_moments",
         COMOMENTS: b"aggregate_comoments"}
OK, INVALID, OUT_OF_MEMORY = 0, 1, 2
RESULTS = {SUM: 2, PRODUCTS: 2, MOMENTS: 3, COMOMENTS: 10}


class Values(c.Structure):
    _fields_ = [("data", c.c_void_p), ("size", c.c_size_t), ("format", c.c_int32)]


ALLOCATE = c.CFUNCTYPE(c.c_void_p, c.c_void_p, c.c_size_t)
RELEASE = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p, c.c_size_t)


class Allocator(c.Structure):
    _fields_ = [("allocate", ALLOCATE), ("release", RELEASE), ("context", c.c_void_p)]


class Memory:
    """An allocator that can fail, and knows what has not been released."""

    def __init__(self):
        self.held, self.left = {}, math.inf
        self.struct = Allocator(ALLOCATE(self.allocate), RELEASE(self.release), None)

    def allocate(self, _, size):
        if self.left <= 0:
            return None
        self.left -= 1
        room = c.create_string_buffer(size)
        self.held[c.addressof(room)] = room
        return c.addressof(room)

    def release(self, _, address, size):
        assert len(self.held.pop(address)) == size


# --- numbers -------------------------------------------------------------------------------------------------------

def bits_of(value, code):
    """The bit pattern of a float in a format that holds it."""
    if code == FP64:
        return struct.unpack("<Q", struct.pack("<d", value))[0]
    if code == 1:
        return struct.unpack("<H", struct.pack("<e", value))[0]
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return bits if code == 3 else bits >> 16


def nan_bits(code):
    return {1: 0x7e00, 2: 0x7fc0, 3: 0x7fc00000, 4: 0x7ff8000000000000}[code]


def rounded(number, code, root_of=None):
    """The bits of a fraction, or of one over the root of another, rounded once, ties to even; +0 for zero."""
    precision, top, lowest = FORMATS[code]
    if number == 0:
        return 0
    negative, square = number < 0, None
    size = abs(number)
    if root_of is not None:
        square = size * size / root_of
        exponent = math.floor((square.numerator.bit_length() - square.denominator.bit_length()) / 2)
    else:
        exponent = size.numerator.bit_length() - size.denominator.bit_length()
    quantum = max(exponent - precision - 2, lowest - 2)  # two bits more than the result, and a sticky one
    if square is not None:
        scaled = square / Fraction(2) ** (2 * quantum)
        units = math.isqrt(scaled.numerator // scaled.denominator)
        exact = units * units == scaled
    else:
        scaled = size / Fraction(2) ** quantum
        units = scaled.numerator // scaled.denominator
        exact = units == scaled
    units, quantum = units * 2 + (not exact), quantum - 1
    drop = max(units.bit_length() - precision, lowest - quantum)
    half = 1 << (drop - 1)
    kept, rest = units >> drop, units & ((1 << drop) - 1)
    kept += rest > half or (rest == half and kept & 1)
    value = Fraction(kept) * Fraction(2) ** (quantum + drop)
    sign = -1.0 if negative else 1.0
    return bits_of(sign * (math.inf if value >= Fraction(2) ** (top + 1) else float(value)), code)


# --- the model -----------------------------------------------------------------------------------------------------

class ExactSum:
    """Counts of terms, of -0, NaN and infinities, and the sum of the finite ones."""

    def __init__(self):
        self.counts, self.sum = [0] * 5, Fraction(0)

    def take(self, term, sign):
        self.counts[0] += sign
        if isinstance(term, float) and not math.isfinite(term):
            self.counts[2 if math.isnan(term) else 3 if term > 0 else 4] += sign
        elif isinstance(term, float) and term == 0:
            self.counts[1] += sign * (math.copysign(1, term) < 0)
        else:
            self.sum += sign * Fraction(term)

    def merge(self, other, sign):
        self.counts = [a + sign * b for a, b in zip(self.counts, other.counts)]
        self.sum += sign * other.sum

    def bytes(self, counted, lowest):
        size = int(abs(self.sum) * 2 ** -lowest)
        words, first = [], 0
        while size:
            words.append(size & (2**64 - 1))
            size >>= 64
        while words and words[0] == 0:
            words, first = words[1:], first + 1
        return (struct.pack("<5q", *self.counts) if counted else b"") + bytes(
            [self.sum < 0, first, len(words)]) + struct.pack(f"<{len(words)}Q", *words)

    def is_possible(self):
        numbers = self.counts[0] - sum(self.counts[1:])
        return min(self.counts[1:]) >= 0 and (numbers > 0 or (numbers == 0 and self.sum == 0))

    def is_finite(self):
        return not any(self.counts[2:])

    def quotient(self, divisor, code):
        n, zeros, nan, plus, minus = self.counts
        if divisor == 0 or nan or (plus and minus):
            return nan_bits(code)
        if plus or minus:
            return bits_of(math.inf if plus else -math.inf, code)
        if n and n == zeros:
            return bits_of(-0.0, code)
        bits = rounded(self.sum / divisor, code)
        # A negative sum that rounds to zero is -0.
        return bits if bits or self.sum >= 0 else bits_of(-0.0, code)


def like(x):
    """A number of the same sign that is zero, infinite or NaN if x is, else 1 or -1."""
    return math.copysign(1, x) if math.isfinite(x) and x else x


def product(x, y):
    """The exact product of two elements, or what it is if it is no finite number other than 0."""
    if isinstance(x, int):
        return x * y
    if math.isfinite(x) and math.isfinite(y) and x and y:
        return Fraction(x) * Fraction(y)
    return like(x) * like(y)


class Model:
    def __init__(self, kind):
        self.kind = kind
        names = {SUM: "x", PRODUCTS: "p", MOMENTS: "x xx", COMOMENTS: "x y xx xy yy"}[kind]
        self.sums = {name: ExactSum() for name in names.split()}

    def take(self, x, y, sign):
        for name, total in self.sums.items():
            if name == "p":
                total.take(product(x, y), sign)
            elif len(name) == 1:
                total.take(x if name == "x" else y, sign)
            else:
                a, b = ({"x": x, "y": y}[n] for n in name)
                if all(isinstance(v, int) or math.isfinite(v) for v in (a, b)):
                    total.sum += sign * Fraction(a) * Fraction(b)

    def merge(self, other, sign):
        for name, total in self.sums.items():
            total.merge(other.sums[name], sign)

    def size(self):
        return next(iter(self.sums.values())).counts[0]

    def bytes(self):
        name = NAMES[self.kind]
        all = b"SSUM" + bytes([1, len(name)]) + name
        for key, total in self.sums.items():
            all += total.bytes(len(key) == 1, -1088 if key in ("x", "y") else -2176)
        return all + struct.pack("<I", zlib.crc32(all))

    def moment(self, a, b):
        n = self.size()
        return n * self.sums[a + b].sum - self.sums[a].sum * self.sums[b].sum

    def is_possible(self, names):
        for name in names:
            total = self.sums[name]
            if not total.is_possible():
                return False
            if 2 * name in self.sums and total.is_finite():
                numbers = total.counts[0] - sum(total.counts[1:])
                squares = self.sums[2 * name].sum
                if (numbers and self.moment(name, name) < 0) or (not numbers and squares):
                    return False
        return True

    def result(self, which, ddof, code):
        """The bits, or nothing if no elements have these sums."""
        n = self.size()
        if which in (1, 2, 4, 5):
            total = list(self.sums.values())[which > 3]
            if not total.is_possible():
                return None
            return total.quotient(1 if which in (1, 4) else n, code)
        names = {3: "x", 6: "y"}.get(which, "xy")
        if not self.is_possible(names):
            return None
        if not all(self.sums[name].is_finite() for name in names):
            return nan_bits(code)
        over = n * (n - ddof)
        if which in (3, 6, 7):
            return rounded(self.moment(names[0], names[-1]) / over, code) if n > ddof else nan_bits(code)
        x, y, xy = self.moment("x", "x"), self.moment("y", "y"), self.moment("x", "y")
        if which == 8:
            return rounded(xy, code, x * y) if x * y > 0 else nan_bits(code)
        if x <= 0:
            return nan_bits(code)
        sums = {name: total.sum for name, total in self.sums.items()}
        return rounded((xy if which == 9 else sums["y"] * sums["xx"] - sums["x"] * sums["xy"]) / x, code)


# --- sequences -----------------------------------------------------------------------------------------------------

def to_format(value, code):
    """A float or an integer that the format holds, near a value."""
    if code == INT64:
        return max(-2**63, min(2**63 - 1, int(value))) if math.isfinite(value) else 7
    if not math.isfinite(value) or value == 0:
        return value
    bits = rounded(Fraction(value), code)
    return {1: lambda b: struct.unpack("<e", struct.pack("<H", b))[0],
            2: lambda b: struct.unpack("<f", struct.pack("<I", b << 16))[0],
            3: lambda b: struct.unpack("<f", struct.pack("<I", b))[0],
            4: lambda b: struct.unpack("<d", struct.pack("<Q", b))[0]}[code](bits)


class Elements:
    """Random elements of one flavour."""

    def __init__(self, rng, code):
        self.rng, self.code = rng, code
        self.flavour = rng.choice("normal normal near wide far ends few zeros special integers".split())
        self.centre = rng.uniform(-1000, 1000)

    def one(self):
        rng = self.rng
        x = {
            "normal": lambda: rng.gauss(0, 1),
            "near": lambda: rng.gauss(0, 1) * 2.0 ** rng.randint(-20, 20),
            "wide": lambda: rng.gauss(0, 1) * 2.0 ** rng.randint(-500, 500),
            "far": lambda: math.ldexp(rng.gauss(0, 1), int(self.centre) + rng.randint(-40, 20)),
            "ends": lambda: rng.choice([-1, 1]) * rng.choice([5e-324, 1.7976931348623157e308, 1.0, 2.0**62]),
            "few": lambda: rng.choice([1.0, -1.0, 0.1, -0.1, 3.0]),
            "zeros": lambda: rng.choice([0.0, -0.0, -0.0, 1.0, -1.0]),
            "special": lambda: rng.choice([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, 1e300, -1e-300]),
            "integers": lambda: float(rng.randint(-1000, 1000)),
        }[self.flavour]()
        if self.code == INT64:
            is_wide = self.flavour in ("wide", "far", "ends")
            return rng.randint(-2**63, 2**63 - 1) if is_wide else to_format(100 * x, INT64)
        return to_format(x, self.code)


def array_of(elements, code):
    if code == INT64:
        data = struct.pack(f"<{len(elements)}q", *elements)
    else:
        size = {1: "H", 2: "H", 3: "I", 4: "Q"}[code]
        data = struct.pack(f"<{len(elements)}{size}", *(
            bits_of(x, code) if not math.isnan(x) else nan_bits(code) for x in elements))
    room = (c.c_uint64 * (len(data) // 8 + 1)).from_buffer_copy(data.ljust(len(data) // 8 * 8 + 8))
    return room, Values(c.addressof(room), len(elements), code)


class Sequence:
    """States and their models."""

    def __init__(self, library, seed, code):
        self.library, self.rng, self.code, self.seed = library, random.Random(seed), code, seed
        self.kind = self.rng.randint(1, 4)
        self.words = library.samesum_aggregate_bytes(self.kind) // 8
        # Slow, so that few sequences have it.
        self.memory = Memory() if self.rng.random() < 0.2 else None
        self.allocator = c.byref(self.memory.struct) if self.memory else None
        self.states = [(c.c_uint64 * self.words)() for _ in range(3)]
        self.models = [Model(self.kind) for _ in self.states]
        self.elements, self.taken, self.message = Elements(self.rng, code), [], c.create_string_buffer(300)

    def call(self, name, *arguments, allowed=(OK,)):
        status = getattr(self.library, name)(self.kind, *arguments, self.message, 300)
        assert status in allowed, (self.seed, name, status, self.message.value)
        return status

    def fails(self):
        """Lets the next allocation fail, sometimes. Returns the codes that are allowed then."""
        if self.memory is None or self.rng.random() < 0.5:
            return (OK,)
        self.memory.left = self.rng.randint(0, 2)
        return OK, OUT_OF_MEMORY

    def take(self, i, sign):
        rng = self.rng
        if sign < 0 and self.taken and rng.random() < 0.8:
            xs, ys = self.taken.pop(rng.randrange(len(self.taken)))
        else:
            n = rng.choice([0, 1, 1, 2, 3, 7] if rng.random() < 0.97 else [60, 130])
            xs, ys = ([self.elements.one() for _ in range(n)] for _ in "xy")
            self.taken.append((xs, ys))
        allowed = self.fails()
        status = OK
        if len(xs) == 1 and self.code in (FP64, INT64) and rng.random() < 0.7:
            name = ("samesum_aggregate_add" if sign > 0 else "samesum_aggregate_subtract") + (
                "_fp64" if self.code == FP64 else "_int64")
            status = getattr(self.library, name)(self.kind, self.states[i], xs[0], ys[0], self.allocator)
            assert status in allowed, (self.seed, name, status)
        elif sign > 0 and rng.random() < 0.3:
            return self.take_each(xs, ys, allowed)
        else:
            (room_x, x), (room_y, y) = array_of(xs, self.code), array_of(ys, self.code)
            status = self.call("samesum_aggregate_add" if sign > 0 else "samesum_aggregate_subtract", self.states[i],
                               c.byref(x), c.byref(y), self.allocator, allowed=allowed)
        if status == OK:
            for x, y in zip(xs, ys):
                self.models[i].take(x, y, sign)

    def take_each(self, xs, ys, allowed):
        (room_x, x), (room_y, y) = array_of(xs, self.code), array_of(ys, self.code)
        places = [self.rng.randrange(-1, 3) for _ in xs]
        states = (c.c_void_p * len(xs))(*(c.addressof(self.states[p]) if p >= 0 else None for p in places))
        done = c.c_size_t(99)
        self.call("samesum_aggregate_add_each", states, c.byref(x), c.byref(y), self.allocator, c.byref(done),
                  allowed=allowed)
        for p, a, b in list(zip(places, xs, ys))[:done.value]:
            if p >= 0:
                self.models[p].take(a, b, 1)

    def merge(self, i, sign):
        k = self.rng.randrange(3)
        name = "samesum_aggregate_merge" if sign > 0 else "samesum_aggregate_unmerge"
        if self.call(name, self.states[i], self.states[k], self.allocator, allowed=self.fails()) == OK:
            self.models[i].merge(self.models[k], sign)

    def serialised(self, i):
        room, size = c.create_string_buffer(4000), c.c_size_t()
        self.call("samesum_aggregate_serialise", self.states[i], room, 4000, c.byref(size))
        assert size.value <= self.library.samesum_aggregate_serialised_bytes(self.kind)
        return room.raw[:size.value]

    def check_bytes(self, i):
        ours, expected = self.serialised(i), self.models[i].bytes()
        assert ours == expected, (self.seed, i, ours.hex(), expected.hex())

    def travel(self, i):
        """Replaces a state by one that was serialised, or copied, or moved."""
        way, other = self.rng.randrange(3), (c.c_uint64 * self.words)(*([0x5555] * self.words))
        if way == 0:
            c.memmove(other, self.states[i], 8 * self.words)
            self.states[i] = other
            return
        if way == 1:
            status = self.call("samesum_aggregate_copy", self.states[i], other, self.allocator, allowed=self.fails())
        else:
            data = self.serialised(i)
            at = self.rng.randrange(len(data))
            damaged = data[:at] + bytes([data[at] ^ (1 << self.rng.randrange(8))]) + data[at + 1:]
            for bad in (damaged, data[:at], data + b"\0"):
                self.call("samesum_aggregate_deserialise", bad, len(bad), other, self.allocator, allowed=(INVALID,))
            status = self.call("samesum_aggregate_deserialise", data, len(data), other, self.allocator,
                               allowed=self.fails())
        if status == OK:
            self.library.samesum_aggregate_destroy(self.kind, self.states[i], self.allocator)
            self.states[i] = other
        else:
            assert list(other) == [0x5555] * self.words

    def check_results(self, i):
        ddof, code = self.rng.randint(0, 2), self.rng.randint(1, 4)
        for which in range(1, RESULTS[self.kind] + 1):
            out, expected = c.c_uint64(), self.models[i].result(which, ddof, code)
            allowed = (OK,) if expected is not None else (INVALID,)
            self.call("samesum_aggregate_finish", self.states[i], which, ddof, code, c.byref(out), allowed=allowed)
            assert out.value == (expected or 0), (self.seed, i, "result", which, "format", code, out.value, expected)
        assert self.library.samesum_aggregate_size(self.kind, self.states[i]) == self.models[i].size()

    def run(self):
        for _ in range(self.rng.randint(1, 12)):
            i, what = self.rng.randrange(3), self.rng.random()
            if what < 0.4:
                self.take(i, 1)
            elif what < 0.6:
                self.take(i, -1)
            elif what < 0.75:
                self.merge(i, 1 if self.rng.random() < 0.7 else -1)
            elif what < 0.9:
                self.travel(i)
            else:
                self.check_results(i)
            if self.memory:
                self.memory.left = math.inf
                self.check_bytes(i)
        for i in range(3):
            self.check_bytes(i)
            self.check_results(i)
            self.library.samesum_aggregate_destroy(self.kind, self.states[i], self.allocator)
            assert not any(self.states[i])
        assert not self.memory or not self.memory.held, (self.seed, "not released")


def main():
    library = c.CDLL(sys.argv[1])
    sequences, seed = int((sys.argv[2:] + [60])[0]), int((sys.argv[3:] + [0])[0])
    library.samesum_aggregate_bytes.restype = library.samesum_aggregate_serialised_bytes.restype = c.c_size_t
    library.samesum_aggregate_size.restype = c.c_int64
    library.samesum_aggregate_destroy.restype = None
    library.samesum_aggregate_finish.argtypes = [c.c_int32, c.c_void_p, c.c_int32, c.c_uint64, c.c_int32, c.c_void_p,
                                                 c.c_char_p, c.c_size_t]
    for name in "add", "subtract":
        for kind, suffix in ((c.c_double, "_fp64"), (c.c_int64, "_int64")):
            function = getattr(library, f"samesum_aggregate_{name}{suffix}")
            function.argtypes = [c.c_int32, c.c_void_p, kind, kind, c.c_void_p]
    library.samesum_aggregate_deserialise.argtypes = [c.c_int32, c.c_char_p, c.c_size_t, c.c_void_p, c.c_void_p,
                                                      c.c_char_p, c.c_size_t]
    for code in (*FORMATS, INT64):
        for k in range(sequences):
            Sequence(library, f"{seed} {code} {k}", code).run()


main()
