"""Numbers, names and sentences, for readers."""

import functools
import math

# precision, least exponent
FORMAT_BITS = {"fp16": (11, -14), "bf16": (8, -126), "fp32": (24, -126), "fp64": (53, -1022)}
ON_GPU = ("cub/", "thrust/")


@functools.cache
def parts(name):
    """'tree/kahan/bf16@cpu' -> ('tree/kahan', 'bf16', 'cpu'), with and without the "sum/" of a sum."""
    path, _, backend = name.removeprefix("sum/").partition("@")
    recipe, _, format = path.rpartition("/")
    return (recipe or path), (format if recipe else ""), backend


def accumulator(name):
    """'kahan', 'exact', … or 'peer'; 'read' is one too."""
    recipe, _, backend = parts(name)
    return "peer" if backend == "peer" else recipe.split("/")[-1]


def order(name):
    recipe, _, backend = parts(name)
    return recipe.split("/")[0] if "/" in recipe and backend != "peer" else ""


def is_peer(name):
    return name.endswith("@peer")


def runs_on(name):
    """Of speeds the rows tell, with threads = 0; of errors and spreads neither the rows nor the names of peers do.
    Hence ON_GPU, the peers of experiments/harness/peers.cu."""
    return "GPU" if name.endswith("@cuda") or name.startswith(ON_GPU) else "CPU"


def ulp(format, x):
    """The unit in the last place of x, a number of that format."""
    precision, least = FORMAT_BITS[format]
    exponent = max(math.frexp(x)[1] - 1, least) if x else least
    return math.ldexp(1.0, exponent - precision + 1)


def number(x, digits=3):
    if x is None:
        return "-"
    if x == 0:
        return "0"
    size = math.floor(math.log10(abs(x)))
    if digits <= size + 1 <= 7:
        return f"{round(x, digits - 1 - size):,.0f}"
    return f"{x:.{digits}g}"


def apart(x, y, least=6):
    """Both numbers, with as many digits as it takes to tell them apart."""
    digits = next((d for d in range(least, 17) if f"{x:.{d}g}" != f"{y:.{d}g}"), 17)
    return tuple(f"{v:.0f}" if v == int(v) and abs(v) < 1e7 else f"{v:.{digits}g}" for v in (x, y))


def superscript(n):
    return str(n).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def count(n):
    """2²⁰, or 1,000."""
    return "2" + superscript(n.bit_length() - 1) if n > 64 and n & (n - 1) == 0 else f"{n:,}"


def power_of_ten(x):
    """The one that is nearest: 10¹², 10⁻³, or 1."""
    exponent = round(math.log10(x))
    return "10" + superscript(exponent) if exponent else "1"


def plural(n, what, many=None):
    return f"{n:,} " + (what if n == 1 else many or what + "s")


def of(n, all, what="", many=None):
    """How many of them, and of what: 'all 12 files', 'none of 12 files', '3 of 12 files', '1 of 1 file'."""
    whole = f"{all:,}" + (f" {what if all == 1 else many or what + 's'}" if what else "")
    if all == 1:
        return f"{n} of {whole}"
    return f"all {whole}" if n == all else f"none of {whole}" if n == 0 else f"{n:,} of {whole}"


def verb(n, all, one="is", many="are"):
    """What goes with of(n, all): '1 of 12 files is', 'all 12 files are'."""
    return one if n == 1 or all == 1 else many


def names(some, most=3):
    """At most so many of them, and how many more."""
    some = list(dict.fromkeys(some))
    more = f" and {len(some) - most} more" if len(some) > most else ""
    return ", ".join(some[:most]) + more


def sentence(text):
    return text[:1].upper() + text[1:]


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
