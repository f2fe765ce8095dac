"""What does an order-free sum cost inside one's own kernel, beside the float atomics of the same language?

Kernels of Triton, CuPy (C++ through NVRTC) and Numba add normal numbers of fp32 to few and many cells on a GPU: by the
float atomics of the language, to cells of samesum on a grid of 2^-40, and to exact ones. The indices are uniform, or
skewed: the cubes of uniform numbers. The calls take turns, and CUDA events time each while the GPU is busy, so that no
launch is waited for. The columns are the cells, the bytes of a cell, the number of different results of some launches,
the median time, and the method. Results of samesum are compared with those of samesum.scatter_add on the CPU, bit by
bit, before they are timed. Triton's float atomics have two rows: by its default, "acquire and release", and "relaxed".

Languages that are not installed, or cannot compile these kernels, are left out, and a line says so. Writes
DIR/own_kernels.jsonl, in the form that harness/results.schema.json describes. Exits with 0; with 1 if samesum broke its
promise or has other bits than scatter_add; with 2 for wrong usage, and if nothing can be measured.
"""

import fnmatch
import importlib
import sys
import textwrap

import study

QUESTION = "What does an order-free sum cost in one's own kernel, beside float atomics?"
# mode: elements, exponents of 2 of the numbers of cells, rounds
SIZES = {"quick": (2**20, (4, 10, 16), 5), "full": (2**24, (4, 10, 16, 20), 20)}
RUNS, GRID, BLOCK = 20, -40, 512
GRIDS = {"scatter_add/fixed_point/fp32@cuda": GRID, "scatter_add/exact/fp32@cuda": None}

try:
    import samesum
    import torch
    import triton
    import triton.language as tl

    import samesum.triton
except ImportError:
    triton = None
else:

    @triton.jit
    def triton_floats(i, x, out, n, BLOCK: tl.constexpr, SEM: tl.constexpr):
        k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.atomic_add(out + tl.load(i + k, k < n), tl.load(x + k, k < n), k < n, sem=SEM)

    @triton.jit
    def triton_cells(i, x, cells, n, BLOCK: tl.constexpr):
        k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        samesum.triton.atomic_add(cells, tl.load(i + k, k < n), tl.load(x + k, k < n), k < n)


# --- languages ------------------------------------------------------------------------------------------------------
# Each returns {(method, setting): function}; these get the indices and the numbers, tensors of PyTorch, and where they
# add: a tensor, or cells. All launch in the default stream.


def of_triton():
    if not triton:
        importlib.import_module("samesum.triton")

    def grid(n):
        return (triton.cdiv(n, BLOCK),)

    def floats(sem):
        return lambda i, x, out: triton_floats[grid(len(x))](i, x, out, len(x), BLOCK, sem)

    def cells(i, x, c):
        triton_cells[grid(len(x))](i, x, samesum.triton.cells(c), len(x), BLOCK)
    return {("triton/fp32@peer", "relaxed"): floats("relaxed"),
            ("triton/fp32@peer", "acquire and release"): floats("acq_rel"),
            **{(method, "relaxed"): cells for method in GRIDS}}


KERNELS = r"""
#include <samesum/states.cuh>

#define AT_ELEMENT const int k = blockIdx.x * blockDim.x + threadIdx.x; if (k < n)
extern "C" __global__ void floats(const int* i, const float* x, float* out, int n) {
  AT_ELEMENT atomicAdd(out + i[k], x[k]);
}
extern "C" __global__ void grid(const int* i, const float* x, samesum::FixedPointState* out, int n, int g) {
  AT_ELEMENT out[i[k]].atomic_add(x[k], g);
}
extern "C" __global__ void exact(const int* i, const float* x, samesum::ExactState<float>* out, int n) {
  AT_ELEMENT out[i[k]].atomic_add(x[k]);
}
"""


def of_cupy():
    cupy = importlib.import_module("cupy")
    import numpy as np
    options = ("-std=c++20", "-default-device", "-device-int128", *(f"-I{d}" for d in samesum.include_dirs()))

    def calling(name, *more):
        kernel = cupy.RawKernel(KERNELS, name, options=options)

        def add(i, x, out):
            words = out if isinstance(out, torch.Tensor) else out.words
            kernel((-(-len(x) // BLOCK),), (BLOCK,), (*map(cupy.asarray, (i, x, words)), np.int32(len(x)), *more))
        return add
    return {("cupy/fp32@peer", "relaxed"): calling("floats"),
            ("scatter_add/fixed_point/fp32@cuda", "relaxed"): calling("grid", np.int32(GRID)),
            ("scatter_add/exact/fp32@cuda", "relaxed"): calling("exact")}


def of_numba():
    importlib.import_module("numba.cuda.extending")
    import samesum.numba
    from numba import cuda

    @cuda.jit
    def add_floats(i, x, out):
        k = cuda.grid(1)
        if k < x.size:
            cuda.atomic.add(out, i[k], x[k])

    @cuda.jit
    def add_to_cells(i, x, cells):
        k = cuda.grid(1)
        if k < x.size:
            samesum.numba.atomic_add(cells, i[k], x[k])

    def floats(i, x, out):
        add_floats[-(-len(x) // BLOCK), BLOCK](*map(cuda.as_cuda_array, (i, x, out)))

    def cells(i, x, c):
        add_to_cells[-(-len(x) // BLOCK), BLOCK](*map(cuda.as_cuda_array, (i, x)), samesum.numba.cells(c))
    return {("numba/fp32@peer", "relaxed"): floats, **{(method, "relaxed"): cells for method in GRIDS}}


LANGUAGES = {"triton": of_triton, "cupy": of_cupy, "numba": of_numba}
PACKAGES = {"triton": "triton", "cupy": "cupy-cuda13x", "numba": "numba-cuda[cu13] numba"}


# --- measuring ------------------------------------------------------------------------------------------------------


def empty(call, count, x):
    """Where a call adds: cells, or a tensor of floats."""
    if call[0] in GRIDS:
        return samesum.cells(count, "float32", like=x, grid=GRIDS[call[0]])
    return torch.zeros(count, device="cuda")


def cleared(out):
    out.zero_() if isinstance(out, torch.Tensor) else out.reset()
    return out


def bits(out):
    return (out if isinstance(out, torch.Tensor) else out.finish()).cpu().numpy().tobytes()


def seconds(add, i, x, out):
    """The time of a call on the GPU, which is busy until the call has been enqueued."""
    cleared(out)
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(5_000_000)
    start.record()
    add(i, x, out)
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) / 1e3


def rows_of(calls, about, i, x, turns):
    """Yields the rows of a language for some indices."""
    import numpy as np
    count, host = about["bins"], (i.cpu().numpy(), x.cpu().numpy())
    outs = {call: empty(call, count, x) for call in calls}
    found, verified = {}, {}
    for call, add in calls.items():
        results = []
        for _ in range(RUNS):
            add(i, x, cleared(outs[call]))
            results.append(bits(outs[call]))
        found[call], verified[call] = len({*results}), None
        if call[0] in GRIDS:
            grid = {} if GRIDS[call[0]] is None else {"grid": GRID}
            zeros, method = np.zeros(count, np.float32), call[0].split("/")[1]
            expected = samesum.scatter_add(zeros, *host, method=method, **grid)
            verified[call] = results[0] == expected.tobytes()
    times = {call: [] for call in calls}
    for order in turns.orders(calls):
        for call in order:
            times[call].append(seconds(calls[call], i, x, outs[call]))
    for (method, setting), measured in times.items():
        out = outs[method, setting]
        key = {"kind": "kernel", "method": method, "promise": "order_free" if method in GRIDS else "none",
               "setting": setting, **about}
        yield {**key, **study.times(*turns.completed(key, measured), turns=turns.number), "runs": RUNS,
               "distinct_bits": found[method, setting], "verified": verified[method, setting],
               "cell_bytes": (out if isinstance(out, torch.Tensor) else out.words).nbytes // count,
               "broken": method in GRIDS and found[method, setting] > 1}


def measured(languages, options, turns):
    n, exponents, turns.rounds = SIZES[options.mode]
    torch.manual_seed(options.seed)
    x, u = torch.randn(n, device="cuda"), torch.rand(n, device="cuda", dtype=torch.float64)
    for keys in ("uniform", "skewed"):
        for exponent in exponents:
            i = ((u if keys == "uniform" else u * u * u) * 2**exponent).to(torch.int32)
            for language, calls in languages.items():
                about = {"case": language, "keys": keys, "data": "normal", "seed": options.seed, "n": n,
                         "bins": 2**exponent}
                yield from rows_of(calls, about, i, x, turns)


def text_of(r):
    return (f"{r['case']:7} {r['keys']:8} {r['bins']:8,} cells {r['cell_bytes']:4} bytes {r['distinct_bits']:3} "
            f"results {r['seconds'] * 1e3:9.4f} ms  {r['method']}, {r['setting']}")


def compiled(calls):
    """Calls, after one call of each, which compiles its kernel."""
    i, x = torch.zeros(1, dtype=torch.int32, device="cuda"), torch.ones(1, device="cuda")
    for call, add in calls.items():
        add(i, x, empty(call, 1, x))
    torch.cuda.synchronize()
    return calls


def available(wanted):
    """({language: its calls}, versions, lines on the languages that are left out)."""
    found, versions, left_out = {}, {}, []
    for language, calls in LANGUAGES.items():
        if fnmatch.fnmatch(language, wanted or "*"):
            try:
                version = importlib.import_module(language).__version__
                found[language] = compiled(calls())
                versions[language] = version
            except ImportError as error:
                left_out.append(f"{language}: {error}; pip install {PACKAGES[language]}")
            except Exception as error:  # a compiler may raise anything, with its input as the message
                left_out.append(f"{language}: " + textwrap.shorten(f"{type(error).__name__}: {error}", 200))
    return found, versions, left_out


def main(arguments):
    parser = study.parser_of("own_kernels", __doc__, "", "--filter triton", "--full --out build/study")
    study.add_options(parser, "own_kernels", "2^20 additions, seconds", "2^24 additions, a minute",
                      "measure only these languages: triton, cupy, numba")
    options = study.parsed(parser, arguments)
    if options.processes > 1 and not options.process:
        return study.in_processes(__file__, arguments, options.processes)
    try:
        for package in ("numpy", "torch", "samesum"):
            importlib.import_module(package)
    except ImportError as error:
        print(f"own_kernels.py: {error}; pip install numpy torch .", file=sys.stderr)
        return 2
    if not torch.cuda.is_available():
        print("own_kernels.py: PyTorch finds no GPU", file=sys.stderr)
        return 2
    languages, versions, left_out = available(options.filter)
    study.say_left_out(options, left_out)
    if not languages:
        return study.nothing_to_measure("own_kernels", left_out, f"no language is named {options.filter!r}")
    versions |= {"torch": torch.__version__, "samesum": samesum.__version__}
    header = study.header("own_kernels", QUESTION, options, versions)
    rows = study.complete(options, header, left_out, text_of, lambda earlier: measured(
        languages, options, study.Turns(options, earlier)))
    return int(any(r["broken"] or r["verified"] is False for r in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
