"""Measures what an order-free sum costs inside one's own kernel: cells of samesum beside the language's float atomics.

Adds 2^24 normal numbers of fp32 to 2^4 to 2^20 cells, with uniform and with skewed indices, on a GPU: by float atomics, by
cells on a grid and by exact cells. Each call is recorded in a CUDA graph, of which the fastest of some replays counts. Also
counts the different results of 20 launches, and gives the bytes of a cell. Languages that are not installed are left out.

  python3 experiments/own_kernels.py [--quick] [--languages triton,cupy,numba]

Prints a table and, with --json, a row per line.
"""

import argparse
import json

import samesum
import torch

try:
    import samesum.triton
    import triton
    import triton.language as tl
except ImportError:
    triton = None

GRID = -40
REPLAYS, RUNS = 20, 20

if triton:

    @triton.jit
    def add_floats(i, x, out, n, BLOCK: tl.constexpr, SEM: tl.constexpr):
        k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.atomic_add(out + tl.load(i + k, k < n), tl.load(x + k, k < n), k < n, sem=SEM)

    @triton.jit
    def add_to_cells(i, x, cells, n, BLOCK: tl.constexpr):
        k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        samesum.triton.atomic_add(cells, tl.load(i + k, k < n), tl.load(x + k, k < n), k < n)


def triton_calls(i, x, count):
    """Yields the name of a way to add, where it adds, and a function that enqueues the additions of all elements."""
    out, n = torch.zeros(count, device="cuda"), len(x)
    for sem in ("relaxed", "acq_rel"):  # the second is Triton's default
        yield f"float atomics, {sem}", out, lambda sem=sem: add_floats[(triton.cdiv(n, 512),)](i, x, out, n, 512, sem)
    for name, grid in (("grid", GRID), ("exact", None)):
        cells = samesum.cells(count, "float32", like=x, grid=grid)
        argument = samesum.triton.cells(cells)
        for block in (128, 256, 512, 1024):
            yield f"{name}, {block}", cells, lambda a=argument, block=block: add_to_cells[(triton.cdiv(n, block),)](
                i, x, a, n, block)


LANGUAGES = {"triton": triton and triton_calls}


def clear(out):
    out.zero_() if isinstance(out, torch.Tensor) else out.reset()


def milliseconds(out, add):
    """Returns the time of the additions, which are replayed from a graph."""
    add()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        add()
    times = []
    for _ in range(REPLAYS):
        clear(out)
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop))
    return min(times)


def results(out, add):
    """Returns the number of different results of some launches."""
    found = set()
    for _ in range(RUNS):
        clear(out)
        add()
        found.add((out if isinstance(out, torch.Tensor) else out.words).cpu().numpy().tobytes())
    return len(found)


def rows(languages, n):
    torch.manual_seed(1)
    x = torch.randn(n, device="cuda")
    for keys in ("uniform", "skewed"):
        u = torch.rand(n, device="cuda", dtype=torch.float64)
        for log2_cells in (4, 10, 16, 20):
            i = ((u if keys == "uniform" else u * u * u) * 2**log2_cells).to(torch.int32)
            for language in languages:
                floats = None
                for method, out, add in LANGUAGES[language](i, x, 2**log2_cells):
                    time = milliseconds(out, add)
                    floats = floats or time
                    yield {"language": language, "keys": keys, "log2_cells": log2_cells, "method": method,
                           "ms": round(time, 4), "of_float_atomics": round(time / floats, 2),
                           "bytes": (out if isinstance(out, torch.Tensor) else out.words).nbytes >> log2_cells,
                           "results": results(out, add)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2^20 additions")
    parser.add_argument("--json", action="store_true", help="a row per line")
    parser.add_argument("--languages", default=",".join(LANGUAGES))
    arguments = parser.parse_args()
    languages = [name for name in arguments.languages.split(",") if LANGUAGES[name]]
    names = ["language", "keys", "log2_cells", "method", "ms", "of_float_atomics", "bytes", "results"]
    if not arguments.json:
        print("", *names, "", sep="|")
    for row in rows(languages, 2 ** (20 if arguments.quick else 24)):
        print(json.dumps(row) if arguments.json else "|".join(["", *map(str, row.values()), ""]), flush=True)


if __name__ == "__main__":
    main()
