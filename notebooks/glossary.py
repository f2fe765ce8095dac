"""Tables of the names in the results: generated data sets, cases of accumulator_formats, and peers."""

import re

import phrases
from section import Table, distinct

# Name and meaning of each data set, as in experiments/harness/dataset.cpp.
DATA = {
    "uniform": "uniform in [0, 1)",
    "uniform +-1": "uniform in (-1, 1)",
    "normal": "the standard normal distribution",
    "one outlier": "normal, but for one element of magnitude 2^14 to 2^15",
    "outliers": "normal, but each 65537th element times 2^14 (2^12 in fp16)",
    "around 1000": "normal with mean 1000 and standard deviation 0.001",
    "log-normal": "e^(3z), where z is normal",
    "60 binades": "either sign, log-uniform over 60 binades (24 in fp16)",
    "arbitrary bits": "all finite bit patterns, equally likely",
    "near 1": "uniform within 2^-6 of 1: long products stay in range",
    "ones": "all elements are 1",
    "1/i": "the harmonic series",
    "(-1)^i/i": "the alternating harmonic series",
    "sine": "one period of a sine: the sum is 0",
    "one big": "one element 2/u, the others uniform in [0, 1)",
    "N then -1": "N and then N - 1 times -1: the condition number is 2N - 1",
    "ascending": "uniform in [0, 1), sorted",
    "descending": "uniform in [0, 1), sorted in descending order",
    "kappa 1e4": "a sum of condition number 1e4",
    "kappa 1e8": "a sum of condition number 1e8",
    "kappa 1e16": "a sum of condition number 1e16",
}
# Name and meaning of each case, as in experiments/accumulator_formats.cpp.
CASES = {
    "ones": "100000 times 1",
    "0.1": "100000 times 0.1",
    "harmonic": "1/i for i up to 100000",
    "softmax": "exp(x - max x) of 32768 normal logits",
    "gradients": "100000 normal values, mean 1/8 of the deviation",
    "overflow": "4 times 32000, 4 times -32000",
    "beyond 65504": "2 times 40000",
    "nondeterminism forward": "10 times 1e-20, then 1e20, -1e20",
    "nondeterminism reversed": "the same in reverse order",
    "accuracy": "1000 + 1e-3",
}
# Names before "@peer", or their first words: calls of other libraries, and loops of the study (phrases.LOOPS).
LIBRARIES = {
    "loop": "a loop that adds one element after the other",
    "fast_math": "a loop compiled with -ffast-math, which lets the compiler reorder additions",
    "boost_kahan": "sum_kahan of Boost.Accumulators",
    "boost/mean": "mean of Boost.Math's univariate statistics",
    "boost/moments": "mean and variance of Boost.Math's univariate statistics",
    "std_reduce": "std::reduce of the C++ standard library, in one thread",
    "std_par": "std::reduce with std::execution::par_unseq, in several threads",
    "std/dot": "std::inner_product of the C++ standard library, in one thread",
    "std": "a scan of the C++ standard library, in one thread",
    "eigen": "sum, product, dot product and norm of Eigen",
    "tbb": "parallel_reduce of oneTBB",
    "openmp": "a loop with an OpenMP reduction",
    "cub": "cub::DeviceReduce, with one of its determinism settings",
    "cub/segmented": "cub::DeviceSegmentedReduce",
    "cub/max": "cub::DeviceReduce::Reduce, or of rows cub::DeviceSegmentedReduce::Reduce, with the maximum",
    "cub/inclusive_sum": "cub::DeviceScan::InclusiveSum",
    "cub/sort_reduce_by_key": "cub::DeviceRadixSort::SortPairs, then cub::DeviceReduce::ReduceByKey",
    "cublas": "dot product and norm of cuBLAS",
    "blas": "dot product, norm and sum of magnitudes (asum) of OpenBLAS, with one thread",
    "blas/gemv": "product of the matrix and a vector of ones by OpenBLAS: sums of rows or of columns",
    "thrust": "thrust::reduce",
    "loop/softmax": "a loop in three passes, compiled with -ffast-math",
    "torch": "PyTorch",
    "torch_cpu": "PyTorch on a CPU",
    "numpy": "NumPy",
    "math": "math.fsum of Python",
    "xsum": "xsum's large superaccumulator, called from Python",
    "bitrep": "bitrep's FastSumF64, called from Python",
    "accupy": "fsum of accupy",
    "samesum": "samesum's own call in C++, with its arguments prepared",
    "triton": "tl.atomic_add of Triton, in a kernel of the experiment",
    "cupy": "atomicAdd of CUDA C++, in a RawKernel of CuPy",
    "numba": "cuda.atomic.add of Numba, in a kernel of the experiment",
    "duckdb": "DuckDB, a database inside a process: SELECT sum(x), and GROUP BY",
    "postgresql": "PostgreSQL, a database server: SELECT avg(x)",
    "polars": "polars, data frames in Rust: Series.sum and group_by",
    "polars/streaming": "the same by polars' streaming engine",
    "pandas": "pandas, data frames on NumPy: Series.sum and groupby",
    "pyarrow": "pyarrow, Apache Arrow's columns: compute.sum and Table.group_by",
}
# Short names of the peers above, for figures.
NAMES = {"loop": "a loop", "fast_math": "a loop with -ffast-math", "boost_kahan": "Boost sum_kahan", "boost": "Boost",
         "std_reduce": "std::reduce", "std_par": "std::reduce(par_unseq)", "eigen": "Eigen", "tbb": "oneTBB",
         "openmp": "OpenMP", "blas": "OpenBLAS", "cub": "CUB", "cublas": "cuBLAS", "thrust": "Thrust", "torch": "PyTorch",
         "torch_cpu": "PyTorch on a CPU", "numpy": "NumPy", "duckdb": "DuckDB",
         "postgresql": "PostgreSQL", "triton": "Triton", "cupy": "CuPy", "numba": "Numba"}
BINADE = "A binade is the numbers with the same exponent; u is the unit roundoff."


def library(method):
    """The key of a peer in LIBRARIES; its name without format and backend if it has none."""
    name = phrases.parts(method)[0]
    return next((key for key in (name, name.split("/")[0]) if key in LIBRARIES), name)


def libraries(methods):
    """The libraries of peers: the calls of one, such as std_reduce and std/dot, count once. Loops of the study and samesum's
    own calls are none."""
    return distinct(re.split("[/_]", phrases.parts(m)[0])[0] for m in methods
                    if phrases.is_peer(m) and not phrases.is_loop(m) and not m.startswith("samesum/"))


def peers(methods):
    """'CUB, cuBLAS and a loop': the libraries among the peers, and whether there are loops of the study."""
    methods = [m for m in methods if phrases.is_peer(m)]
    loops = ["a loop"] * any(map(phrases.is_loop, methods))
    return phrases.listed([NAMES.get(name, name) for name in libraries(methods)] + loops)


def in_words(algorithm):
    """'CUB run_to_run' for the algorithm 'cub/run_to_run' of a peer."""
    library, _, setting = algorithm.partition("/")
    return " ".join(filter(None, [NAMES.get(library, library), setting.replace("/", " ")]))


def tables(found):
    """Yields a folded table for each kind of name that occurs in the results."""
    rows = [r for some in found.values() for source in some for r in source.rows]
    methods = [r["method"] for r in rows if "method" in r]
    methods += [m["method"] for r in rows if r["kind"] == "comparison" for m in r["methods"]]
    data, cases = ({r[field] for r in rows if isinstance(r.get(field), str)} for field in ("data", "case"))
    keys = {library(m) for m in methods if phrases.is_peer(m)}
    for caption, head, lines, note in (
            ("Generated data sets", "data", [[name, DATA[name]] for name in DATA if name in data], BINADE),
            ("Cases of sums with 16-bit accumulators", "case", [[name, CASES[name]] for name in CASES if name in cases],
             ""),
            ("Other libraries and loops, marked @peer", "name",
             [[name, LIBRARIES[name]] for name in LIBRARIES if name in keys], "")):
        if lines:
            yield Table(caption, [head, "meaning"], lines, text_columns=2, folded=True, note=note)
