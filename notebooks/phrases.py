"""Formats numbers, method names and sentences for readers, and defines the terms of the report."""

import functools
import math

# Precision p in bits and least exponent of each format.
FORMAT_BITS = {"fp16": (11, -14), "bf16": (8, -126), "fp32": (24, -126), "fp64": (53, -1022)}
NO_DIGIT = "no digit right"
# The GPU peers of experiments/harness/peers.cu and peers_cublas.cu, and of experiments/torch_speed.py.
ON_GPU = ("cub/", "thrust/", "cublas/", "torch/", "triton/", "cupy/", "numba/")

# The peers that are loops of the study itself, by the first words of their names. The others call a library.
LOOPS = ("loop", "fast_math", "openmp")

# What each promise says of the bits, for the report and the paper; lib/README.md has every case.
PROMISES = {"none": "they may differ per run",
            "run_to_run": "the same bits on the same machine with the same settings",
            "everywhere": "the same bits on any machine and backend, with any thread count, launch shape and alignment",
            "order_free": "the same bits for any order of the elements too"}

# A definition of each term that a section may use (Section.terms), in the order of the report.
TERMS = {
    "method": "operation/order/accumulator/format@backend, for example dot/tree/kahan/fp32@cpu; names of sums leave out the "
              "operation. exact is samesum's method that is correctly rounded for any order of the elements (for softmax "
              "only the denominator is exact). @peer marks a call of another library, or a loop of the study "
              f"({', '.join(LOOPS)}), measured for comparison",
    "order": "serial: one addition after the other, as in a loop. tree: each of 128 lanes adds 32 elements one after "
             "the other, then lanes, then leaves of 4096 elements, are added in pairs. pairwise: the same, but lanes "
             "add in pairs too. prefix: runs of 4 elements, rows of 128 and tiles of 4096, so that the first elements "
             "are added in the same way whatever follows. canonical16, canonical128: 16 or 128 lanes; only neighbours "
             "are added. atomic: threads add chunks of 4096 elements to one cell as they finish. atomic_element: the "
             "same for single elements",
    "accumulator": "what is kept of a partial sum. plain: the sum. kahan: also the rounding error of its last addition. "
                   "neumaier: also the sum of all its rounding errors. double_word: two numbers whose mathematical sum "
                   "is the value. exact: an integer that holds every partial sum without rounding. fixed_point: an integer "
                   "too, but of multiples of a power of two to which each term is rounded",
    "promise": f"what a method guarantees about its bits. {'. '.join(f'{name}: {bits}' for name, bits in PROMISES.items())}",
    "height": "largest number of additions between an element and the result",
    "ulp": "unit in the last place of the correctly rounded result: the distance to the next number of the format there",
    "unit roundoff": "u = 2⁻ᵖ for p bits of precision: the largest relative error of one rounding to nearest",
    "bound": "upper limit on |result - exact result|, proven for the given elements (rigorous bound). There is no "
             "finite bound if an overflow cannot be excluded",
    "probable bound": "limit on the error that holds with a given probability if rounding errors have mean 0; not "
                      "valid for elements that are equal, sorted, in a pattern or made to cancel",
    "condition number": "largest relative change of the result per relative change of the elements, to first order: Σ|x| / |Σx| "
                        "for a sum or a mean, Σ|xy| / |Σxy| for a dot product, 1 for a norm, n for a product. A sum has 1 "
                        "if all elements have the same sign, and more the more they cancel",
    "relative spread": "|1 - |S / S₁|| for the result S of a run and the result S₁ of the first run; |Vs| in "
                       "Shanmugavelu et al. 2024",
    "frontier": "the methods that are faster than every method that is more accurate, or as accurate with a stronger "
                "promise",
    "faster, as fast, not decided":
        "what the 95% interval of a ratio of speeds decides: one is faster or slower than another if the interval "
        "excludes 1, as fast if it lies within 3% of 1, no slower if it lies above 1/1.03; all else is not decided. "
        "The ratio is the median of the ratios of the rounds in which both took turns, with its percentile bootstrap "
        "(Efron 1981) over processes (Kalibera and Jones 2013) or, in one process, over rounds; rows without common "
        "rounds have the widest ratio that the intervals of both times allow. Older results have no rounds: in place of "
        "the intervals of their times are the 10th and 90th percentiles",
    "target": "a speed that a method should reach, as a multiple of the speed of another method or as a time limit; "
              "a missed target is not a failure",
    "reading alone": "a kernel or loop that reads all elements and adds nothing: about the speed of the memory. It is one "
                     "loop among others, so the sum of a long array may be a little faster; for short ones the start of the "
                     "loop or kernel decides",
    "hot, cold": "hot caches: the same array is summed repeatedly. Cold caches: each run reads data that no cache "
                 "holds",
    "cub": "NVIDIA's library of GPU primitives, part of CCCL. not_guaranteed, run_to_run and gpu_to_gpu are its "
           "determinism settings. gpu_to_gpu means the same bits on different GPUs, which is less than everywhere, so "
           "its promise is run_to_run here",
    "×N": "on a GPU each thread first adds 2N elements (N is the coarsening factor); on a CPU there are N partial sums",
    "uniform branches": "share of branches in which all threads of a warp agree, as counted by ncu",
    "L1 hits": "share of 32-byte sectors that were found in the L1 cache, as counted by ncu",
    "occupancy": "resident threads of a multiprocessor, divided by the most it can hold",
}

# The terms of figures, in a line.
SHORT = {"ulp": "the distance from a number of the format to the next",
         "condition number": "κ = Σ|x| / |Σx|: 1 if all elements have one sign, and more the more they cancel",
         "frontier": "the methods that are faster than every more accurate one"}


@functools.cache
def parts(name):
    """Splits a method name: 'tree/kahan/bf16@cpu' -> ('tree/kahan', 'bf16', 'cpu'). A leading "sum/" is dropped."""
    path, _, backend = name.removeprefix("sum/").partition("@")
    algorithm, _, format = path.rpartition("/")
    return (algorithm or path), (format if algorithm else ""), backend


def accumulator(name):
    """Accumulator of a method, such as 'kahan' or 'exact'; 'peer' for a peer; 'read' for reading alone."""
    algorithm, _, backend = parts(name)
    return "peer" if backend == "peer" else algorithm.split("/")[-1]


def order(name):
    """Order of a method; empty for 'exact', 'fixed_point', 'hopper' and peers."""
    algorithm, _, backend = parts(name)
    return algorithm.split("/")[0] if "/" in algorithm and backend != "peer" else ""


def is_peer(name):
    return name.endswith("@peer")


def is_loop(name):
    """Whether a peer is a loop of the study, and no library."""
    return parts(name)[0].split("/")[0] in LOOPS


def peers_in_words(names, many=False):
    """What the peers among these methods are: 'other library', 'loop' or 'other library or loop'; or, if many, 'other
    libraries and loops'."""
    kinds = {is_loop(name) for name in names if is_peer(name)} or {False}
    libraries, loops, word = ("other libraries", "loops", " and ") if many else ("other library", "loop", " or ")
    return word.join([libraries] * (False in kinds) + [loops] * (True in kinds))


def device(name):
    """'GPU' or 'CPU'. Rows of errors and spreads do not state the device of a peer, hence ON_GPU."""
    return "GPU" if name.endswith("@cuda") or name.startswith(ON_GPU) else "CPU"


def ulp(format, x):
    """Unit in the last place of x, a number of the format."""
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


def error_in_ulps(x, format=None):
    """'3.4', or 'no digit right' for an error of the size of the result or larger. Without a format that is so for every
    format."""
    if x is None:
        return "-"
    return NO_DIGIT if x >= 2.0**(FORMAT_BITS[format or "fp64"][0]) else number(x, 2)


def ulps(x, format=None):
    """'3.4 ulps', '1 ulp' or 'no digit right'."""
    text = error_in_ulps(x, format)
    return f"{text} ulp" if text == "1" else text if text == NO_DIGIT else f"{text} ulps"


def share(part, of=""):
    """Share of the speed of reading alone, such as '98.4%'. A sum may be a little faster; 10% more is the speed of a cache.
    `of` follows the number."""
    return f"{percent(part)}{of}" + (" (the data came from a cache)" if part > 1.1 else "")


def percent(part):
    """A percentage; '-' for None."""
    return "-" if part is None else f"{part:.1%}" if part < 0.1 or 0.9 < part < 1 else f"{part:.0%}"


def duration(seconds, digits=3):
    """A time with a unit, such as '4.2 µs'."""
    return next((f"{number(seconds * scale, digits)} {unit}" for scale, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs"))
                 if seconds * scale >= 1), f"{number(seconds * 1e9, digits)} ns")


def number_pair(x, y, least=6):
    """Both numbers, with at least `least` digits and enough to tell them apart."""
    digits = next((d for d in range(least, 17) if f"{x:.{d}g}" != f"{y:.{d}g}"), 17)
    return tuple(f"{v:.0f}" if v == int(v) and abs(v) < 1e7 else f"{v:.{digits}g}" for v in (x, y))


def superscript(n):
    return str(n).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def count(n):
    """'2²⁰' for a power of two above 64, otherwise '1,000'."""
    return "2" + superscript(n.bit_length() - 1) if n > 64 and n & (n - 1) == 0 else f"{n:,}"


def power_of_ten(x):
    """Nearest power of ten: '10¹²', '10⁻³' or '1'; '0' for 0."""
    if not x:
        return "0"
    exponent = round(math.log10(x))
    return "10" + superscript(exponent) if exponent else "1"


def plural(n, noun, many=None):
    return f"{n:,} " + (noun if n == 1 else many or noun + "s")


def out_of(n, total, noun="", many=None):
    """'all 12 files', 'none of 12 files', '3 of 12 files', 'both files', 'neither of the two files', 'the only file' or
    '0 of 1 file'."""
    nouns = f" {noun if total == 1 else many or noun + 's'}" if noun else ""
    whole = f"{total:,}{nouns}"
    if total == 1:
        return (f"the only{nouns}" if noun else "the only one") if n else f"0 of {whole}"
    if total == 2 and n != 1:
        return f"both{nouns}" if n else f"neither of the two{nouns}" if noun else "neither"
    return f"all {whole}" if n == total else f"none of {whole}" if n == 0 else f"{n:,} of {whole}"


def verb(n, total, one="is", many="are"):
    """Verb form for out_of(n, total): '1 of 12 files is', 'neither of the two files is', 'all 12 files are'."""
    return one if n == 1 or total == 1 or (n, total) == (0, 2) else many


def listed(items):
    """'a, b and c'."""
    items = list(items)
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))


def names(items, most=3):
    """The first `most` distinct items, and the number of the others."""
    items = list(dict.fromkeys(items))
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more


def exceptions(items):
    """End of a sentence that names exceptions: '; exceptions: a, b.', or '.' if there are none."""
    listed = names(items)
    return f"; exceptions: {listed}." if listed else "."


def printable(text):
    """The text on one line. Characters that are not printable are escaped, such as those with which a file name would
    control the terminal."""
    return "".join(c if c.isprintable() else " " if c == "\n" else c.encode("unicode_escape").decode() for c in str(text))


def capitalised(text):
    return text[:1].upper() + text[1:]


FEWEST = 3  # values that have a median worth a name


def middle(values, text):
    """The median in words; of fewer than FEWEST values the range, '0.27 to 1.6'. text(x) formats a number."""
    if len(values) >= FEWEST:
        return text(median(values))
    return " to ".join(dict.fromkeys(text(end(values)) for end in (min, max)))


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
