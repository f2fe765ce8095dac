"""Compares the speed of the Python package with NumPy, math.fsum and PyTorch.

Each row is one comparison in one run: the median time of samesum, that of the other, and the quotient other / samesum,
which is above 1 where samesum is faster. Times of a GPU are device time per call, over at least 100 calls that are
enqueued without waiting; overheads are host time per call. The "C++ call" is the same call of the library with its
arguments prepared. Exits with 0; with 2 for wrong usage. Whether a bar is met is shown and does not change that.
"""

import argparse
import json
import math
import pathlib
import platform
import statistics
import sys
import time

import numpy as np

import samesum
from samesum import _core


def timed(call, count, repeats=7):
    """Returns the median seconds per call."""
    call()
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(count):
            call()
        found.append((time.perf_counter() - start) / count)
    return statistics.median(found)


def compared(name, bar, ours, other, other_name, time_of):
    """Returns a row. Both calls are timed in turns, so that both see the same machine."""
    pairs = [(time_of(ours), time_of(other)) for _ in range(3)]
    mine, theirs = (statistics.median(p[i] for p in pairs) for i in (0, 1))
    return {"what": name, "peer": other_name, "samesum_seconds": mine, "peer_seconds": theirs,
            "ratio": theirs / mine, "bar": bar, "met": theirs / mine >= bar}


def on_the_host(repeats):
    rng = np.random.default_rng(1)
    x = rng.standard_normal(10**7)
    y, few, many = x.astype(np.float32), np.ones(8), x[: 10**6].tolist()

    def of(count):
        return lambda call: timed(call, count, repeats)

    yield compared("exact sum, 10^7 fp64, 1 thread", 0.65, lambda: samesum.sum(x, threads=1), lambda: np.sum(x),
                   "numpy.sum", of(5))
    yield compared("exact sum, 10^7 fp64, 1 thread", 60, lambda: samesum.sum(x, threads=1), lambda: math.fsum(x),
                   "math.fsum", lambda call: timed(call, 1, 3))
    yield compared("exact sum, list of 10^6", 1, lambda: samesum.sum(many), lambda: math.fsum(many), "math.fsum", of(2))
    yield compared("fsum, list of 10^6", 1, lambda: samesum.fsum(many), lambda: math.fsum(many), "math.fsum", of(2))
    yield compared("tree/plain/fp32, 10^7 fp32, 1 thread", 1,
                   lambda: samesum.sum(y, method="tree/plain/fp32", threads=1), lambda: np.sum(y), "numpy.sum", of(10))
    yield compared("overhead, 8 fp64", 0.5, lambda: samesum.sum(few), lambda: np.sum(few), "numpy.sum", of(10_000))
    for dtype in (np.float32, np.float64):
        for shape, axis, bars in SHAPES:
            yield from beside_numpy(rng.standard_normal(shape, dtype), rng.standard_normal(shape, dtype), axis, bars, of(1))


# Shapes, axes, and the quotients that are wanted: tree, exact, variance.
SHAPES = [((100_000, 32), 1, (1, 0.7, 0.5)), ((10_000, 1024), 1, (1, 0.7, 1)), ((1024, 10_000), 0, (0.5, 0.35, 0.8)),
          ((100_000, 32), 0, (1, 0.35, 0.8)), ((10**7,), 0, (1, 1, 2))]


def beside_numpy(x, y, axis, bars, time_of):
    """The functions of NumPy along an axis, on one thread."""
    of_tree, of_exact, of_variance = bars
    name = f"{' x '.join(map(str, x.shape))} fp{8 * x.itemsize}, axis {axis}"

    def row(what, bar, function, method):
        ours, theirs = getattr(samesum, function), getattr(np, function)
        return compared(f"{what}, {name}", bar, lambda: ours(x, axis=axis, method=method, threads=1),
                        lambda: theirs(x, axis=axis), f"numpy.{function}", time_of)

    yield row("tree/plain", of_tree, "sum", "tree/plain")
    yield row("exact sum", of_exact, "sum", "exact")
    yield row("exact mean", of_exact, "mean", "exact")
    yield row("exact variance", of_variance, "var", "exact")
    if x.ndim == 1 or axis == 1:
        yield compared(f"exact dot, {name}", 0.4,
                       lambda: samesum.vecdot(x, y, axis=axis, method="exact", threads=1),
                       lambda: np.vecdot(x, y, axis=axis), "numpy.vecdot", time_of)
        yield row("exact cumsum", 0.8, "cumsum", "exact")
        yield row("prefix/plain", 1, "cumsum", "prefix/plain")


def on_a_gpu(torch, repeats):
    def device_time(calls):
        def time_of(call):
            call()
            found = []
            for _ in range(repeats):
                start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                start.record()
                for _ in range(calls):
                    call()
                stop.record()
                stop.synchronize()
                found.append(start.elapsed_time(stop) * 1e-3 / calls)
            return statistics.median(found)
        return time_of

    def host_time(call):
        found = []
        for _ in range(repeats):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(1000):
                call()
            found.append((time.perf_counter() - start) / 1000)
            torch.cuda.synchronize()
        return statistics.median(found)

    few = torch.ones(8, device="cuda")
    for method in (None, "tree/plain"):
        yield compared(f"overhead, CUDA tensor of 8 fp32, {method or 'exact'}", 1 / 1.3,
                       lambda method=method: samesum.sum(few, method=method), few.sum, "torch.sum", host_time)
    for n in (512, 4096, 32768):
        x = torch.randn(49152, n, device="cuda")
        stream = torch.cuda.current_stream().cuda_stream
        for operation, method, size in (("sum", "tree/plain", 1), ("sum", "exact", 1), ("softmax", "tree/plain", n)):
            out = torch.empty(49152, size, device="cuda")
            m = _core.find(method, operation, "fp32", "cuda")
            arguments = (m, "fp32", x.data_ptr(), 0, x.numel(), "", 0, (49152, n, 1, n, 1), 0, out.data_ptr(),
                         out.numel(), 0 if operation == "sum" else n, 0, stream, 0, 0.0, False, None, False)
            function = getattr(samesum, operation)
            yield compared(f"{operation} of 49152 x {n} fp32, {method}", 0.97,
                           lambda f=function, x=x, m=method: f(x, -1, method=m),
                           lambda a=arguments: _core.run(*a), "the C++ call", device_time(100))
        del x, out
    yield from block_rows(torch, compared, device_time(100))


def block_rows(torch, compared, time_of):
    """A transformer block, forward and backward, under the context manager and without it."""
    from samesum import torch as routing

    torch.manual_seed(0)
    block = torch.nn.TransformerEncoderLayer(1024, 16, 4096, dropout=0, batch_first=True, norm_first=True).cuda()
    x = torch.randn(8, 512, 1024, device="cuda", requires_grad=True)

    def step():
        block(x).square().mean().backward()

    def routed():
        with routing.deterministic():
            step()

    yield compared("transformer block, 8 x 512 x 1024 fp32, forward and backward", 1 / 1.05, routed, step,
                   "eager torch", time_of)


def main(arguments):
    parser = argparse.ArgumentParser(prog="python_speed.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="examples:\n  python_speed.py\n  python_speed.py --out build/study")
    parser.add_argument("--out", metavar="DIR", type=pathlib.Path, help="also write DIR/python_speed.json")
    parser.add_argument("--repeats", metavar="N", type=int, default=7, help="timings per median (default: 7)")
    options = parser.parse_args(arguments)
    if options.repeats < 1:
        parser.error("--repeats must be 1 or more")
    found = {"python": platform.python_version(), "numpy": np.__version__, "cpu": platform.processor()}
    rows = list(on_the_host(options.repeats))
    try:
        import torch
        if torch.cuda.is_available() and "cuda" not in _core.absent():
            found |= {"torch": torch.__version__, "gpu": torch.cuda.get_device_name()}
            rows += on_a_gpu(torch, options.repeats)
        else:
            print("skipped: rows of a GPU, since there is none")
    except ImportError as error:
        print(f"skipped: rows of a GPU: {error}")
    for r in rows:
        print(f"{r['what']:58} {r['samesum_seconds'] * 1e6:12.2f} us {r['peer_seconds'] * 1e6:12.2f} us "
              f"{r['ratio']:8.2f} x {r['peer']}, bar {r['bar']:.2f}{'' if r['met'] else ': MISSED'}")
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "python_speed.json").write_text(json.dumps(found | {"rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
