"""How fast are calls of the Python package beside those of NumPy, of math.fsum and of PyTorch?

Each row is the time of one call. All calls of a cell, which is a function and an array, take turns after warming up, so
that a change of the machine's clock affects all alike. A time is the median of 5 rounds, with --full of 21, which have random
orders; short calls are repeated for 2 ms in each round. The data are normal, and arrays of NumPy in C order. Calls have one
thread, NumPy's vecdot too. Sums of long vectors and of rows are also measured with two threads, and so is reading alone, which
two threads of Python do by NumPy's max of integers. GB/s counts the input, for cumsum also the output.

Before they are timed, results of at most 16 lines along the axis are compared with those in wider arithmetic, within
4u (sqrt(n) max|s_k| + sum|x|) for sums, where s_k are the sums of the first k elements and u is the unit roundoff; of
variances within n k u, k^2 = 1 + mean^2 / variance (Chan, Golub and LeVeque 1983).

The exact sums of xsum, bitrep and accupy, of requirements-exact.txt, are measured on a vector, and on rows if they take
those. All sums of these cells must be the correctly rounded ones, which math.fsum returns.

With PyTorch and a GPU: the host's time for a call on 8 elements, and the device's time for rows, beside the same calls in
C++ with their arguments prepared, and for a transformer block, forward and backward, under samesum.torch.deterministic.

The lines below a call are its targets: speeds that it should reach, as multiples of the speed of another call, which are
medians of the ratios of the rounds. A target of several threads is lower where reading alone is not that much faster; that
of the exact dot product is at most half the speed of samesum's in a tree. A missed target is not a failure.

Writes DIR/python_speed.jsonl, in the form that harness/results.schema.json describes. Exits with 0; with 1 if a result
is wrong; with 2 for wrong usage, and without NumPy or samesum.
"""

import collections
import concurrent.futures
import fnmatch
import importlib
import importlib.metadata
import json
import math
import os
import sys
import time

import study
import timing

QUESTION = "How fast is the Python package beside NumPy?"
ROUNDS = {"quick": 5, "full": 21}
LEAST = 2e-3  # seconds that the calls of a round take at least
SHAPES = [((100_000, 32), 1), ((10_000, 1024), 1), ((1024, 10_000), 0), ((100_000, 32), 0), ((10**7,), 0)]
ROWS, LONG = SHAPES[1], ((1 << 26,), 0)  # those that are also measured with two threads
LIST = 10**6  # numbers
OF_EXACT_SUMS = (1000, 1024)  # rows
LINES = 16  # whose results are verified
AS_SUM = (0.7, 0.7, 0.35, 0.35, 1)
# Functions, their operations, and for each method the targets on SHAPES: multiples of the speed of NumPy.
FUNCTIONS = {
    "sum": ("sum", {"tree/plain": (1, 1, 0.5, 1, 1), "exact": AS_SUM, "fixed_point": ()}),
    "mean": ("mean", {"exact": AS_SUM}),
    "var": ("moments", {"tree": (), "exact": (0.5, 1, 0.8, 0.8, 2)}),
    "vecdot": ("dot", {"tree/plain": (), "exact": (0.4,) * 5}),
    "cumsum": ("cumsum", {"prefix/plain": (1,) * 5, "exact": (0.8,) * 5}),
}
INPUTS = {"vecdot": 2}
MOVED = {"vecdot": 2, "cumsum": 2, "softmax": 2}  # bytes that count / bytes of an array, if they are not 1
READ_BY_TWO = ("read", 2)

# The call `of` should have `factor` times the speed of the call `against`, or `share` of that of the call `ceiling` in its
# best round, if that is less. A call is a pair (method, threads).
Target = collections.namedtuple("Target", "of against factor ceiling share", defaults=(None, None))


# --- measuring ------------------------------------------------------------------------------------------------------


def on_the_host(call, count):
    """Seconds of each of several calls."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def in_turns(calls, turns, clock, fewest=1):
    """{name: [seconds of a call in each round, …]}"""
    counts = {}
    for name, call in calls.items():
        first = clock(call, 1)  # of a short call, this warms up
        counts[name] = max(fewest, math.ceil(LEAST / (first if first > 10 * LEAST else clock(call, 1))))
    found = {name: [] for name in calls}
    for order in turns.orders(calls):
        for name in order:
            found[name].append(clock(calls[name], counts[name]))
    return found


def verdict(rounds, target):
    """The target with what was reached; `rounds` are those of all processes, by the names of the calls."""
    factor = target.factor
    if target.ceiling:
        best = min(map(min, rounds[target.ceiling]))
        factor = min(factor, target.share * timing.median_interval(rounds[target.against])[0] / best)
    reached = study.ratio_of_rounds(rounds[target.against], rounds[target.of])
    method, threads = target.against
    return {"against": method + (", one thread" if threads < target.of[1] else ""), "factor": factor, "reached": reached,
            "holds": reached >= factor}


def rows(about, calls, targets, turns, clock=on_the_host, fewest=1, verified=None):
    """Yields a row per call. `about` has the fields of the array; `verified` those of the calls whose results were checked.
    Calls are compared with the first one of another library."""
    found = in_turns(calls, turns, clock, fewest)
    keys = {call: {"kind": "reduction", "method": call[0], **about, "threads": call[1]} for call in calls}
    rounds = {name: turns.completed(keys[name], seconds) for name, seconds in found.items()}
    bytes = (about["outer"] * about["n"] * about["inner"] * {"fp32": 4, "fp64": 8}[about["input_format"]]
             * MOVED.get(about["operation"], 1))
    peers = {name[1]: name for name in reversed(calls) if name[0].endswith("@peer")}  # one for each number of threads
    for name, key in keys.items():
        times = study.times(*rounds[name], turns=turns.number)
        peer = peers.get(name[1], name)
        yield {**key, **times, "gb_per_s": bytes / times["seconds"] / 1e9, "verified": (verified or {}).get(name),
               "bars": [verdict(rounds, target) for target in targets if target.of == name],
               **({"peer": peer[0], "times_peer": study.ratio_of_rounds(rounds[name], rounds[peer])} if peer != name else {})}


def about(function, format, shape, axis, seed, **more):
    outer, n, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1:])
    return {"operation": function, "input_format": format, "outer": outer, "n": n, "inner": inner, "seed": seed, **more}


# --- beside NumPy ---------------------------------------------------------------------------------------------------


def in_both(samesum, np, function, methods, inputs, axis, format):
    """The calls of a function, by samesum with one thread and by NumPy, and the method of NumPy's."""
    ours, theirs, operation = getattr(samesum, function), getattr(np, function), FUNCTIONS[function][0]
    calls = {(f"{operation}/{method}/{format}@cpu", 1): lambda method=method: ours(*inputs, axis=axis, method=method, threads=1)
             for method in methods}
    peer = (f"numpy/{function}/{format}@peer", 1)
    return calls | {peer: lambda: theirs(*inputs, axis=axis)}, peer


def with_two_threads(samesum, np, pool, x, axis, format):
    """Sums with two threads, reading alone, and the targets of the sums."""
    names = [f"sum/{method}/{format}@cpu" for method in ("tree/plain", "exact")]
    calls = {(name, 2): lambda method=method: samesum.sum(x, axis=axis, method=method, threads=2)
             for name, method in zip(names, ("tree/plain", "exact"))}
    halves = np.array_split(x.reshape(-1).view(np.int64), 2)
    return (calls | {READ_BY_TWO: lambda: [*pool.map(np.max, halves)]},
            [Target((name, 2), (name, 1), 1.6, READ_BY_TWO, 0.95) for name in names])


def some_lines(np, a, axis):
    """At most LINES lines along the axis, evenly spaced, in a wider format."""
    a = np.moveaxis(a, axis, -1).reshape(-1, a.shape[axis])
    return a[::-(-len(a) // LINES)].astype(wider(np, a))


def wider(np, a):
    return np.float64 if a.dtype == np.float32 else np.longdouble


def expected(np, function, inputs, axis, format):
    """The results of some lines in a wider format, and their tolerances."""
    x, u = some_lines(np, inputs[0], axis), study.UNIT_ROUNDOFF[format]
    terms = x * some_lines(np, inputs[1], axis) if function == "vecdot" else x
    n, (sums, tolerance) = x.shape[-1], study.prefix_sums(np, terms, u)
    if function == "cumsum":
        return sums, tolerance
    value, tolerance = sums[:, -1], tolerance[:, -1]
    if function in ("mean", "var"):
        value, tolerance = value / n, tolerance / n
    if function == "var":
        variance = ((x - value[:, None]) ** 2).mean(-1)
        error = (n + 3) * u * np.sqrt(variance + value ** 2)
        value, tolerance = variance, error * (np.sqrt(variance) + error)
    return value, tolerance


def is_right(np, function, found, axis, value, tolerance):
    """Whether the results of some lines are those that are expected, within the tolerance."""
    if function == "cumsum":
        found = some_lines(np, found, axis)
    else:
        found = np.asarray(found).reshape(-1)
        found = found[::-(-len(found) // LINES)].astype(wider(np, found))
    return bool((abs(found - value) <= tolerance).all())


def on_arrays(samesum, np, pool, functions, seed, turns):
    """The rows on SHAPES, and on long vectors; with two threads if there is a pool of two."""
    rng = np.random.default_rng(seed)
    for format, dtype in (("fp32", np.float32), ("fp64", np.float64)):
        for place, (shape, axis) in enumerate(SHAPES):
            x, y = (rng.standard_normal(shape, dtype) for _ in range(2))
            for function in functions:
                methods = FUNCTIONS[function][1]
                calls, peer = in_both(samesum, np, function, methods, (x, y)[:INPUTS.get(function, 1)], axis, format)
                of = dict(zip(methods, calls))
                targets = [Target(of[method], peer, factors[place]) for method, factors in methods.items() if factors]
                if function == "vecdot":
                    targets = [t._replace(ceiling=of["tree/plain"], share=0.5) for t in targets]
                if function == "sum" and (shape, axis) == ROWS and pool:
                    more, of_two = with_two_threads(samesum, np, pool, x, axis, format)
                    calls, targets = calls | more, targets + of_two
                wanted = expected(np, function, (x, y), axis, format)
                verified = {name: is_right(np, function, call(), axis, *wanted)
                            for name, call in calls.items() if name != READ_BY_TWO}
                yield from rows(about(function, format, shape, axis, seed), calls, targets, turns, verified=verified)
    if "sum" in functions and pool:
        (n,), axis = LONG
        x = np.resize(rng.standard_normal(1 << 20, np.float32), n)
        calls, _ = in_both(samesum, np, "sum", ("tree/plain", "exact"), (x,), axis, "fp32")
        more, targets = with_two_threads(samesum, np, pool, x, axis, "fp32")
        yield from rows(about("sum", "fp32", x.shape, axis, seed), calls | more, targets, turns)


def on_few_elements_and_on_lists(samesum, np, libraries, seed, turns):
    exact, numpy, fsum = ("sum/exact/fp64@cpu", 1), ("numpy/sum/fp64@peer", 1), ("math/fsum/fp64@peer", 1)
    few, x = np.ones(8), np.random.default_rng(seed).standard_normal(LIST)
    many = x.tolist()
    yield from rows(about("sum", "fp64", few.shape, 0, seed),
                    {exact: lambda: samesum.sum(few, threads=1), numpy: lambda: np.sum(few)},
                    [Target(exact, numpy, 0.5)], turns)
    yield from exact_sums(about("sum", "fp64", x.shape, 0, seed),
                          {exact: lambda: samesum.sum(x, threads=1), fsum: lambda: math.fsum(x)} | calls_of(libraries, x),
                          math.fsum(x), [Target(exact, fsum, 60)], turns)
    of_a_list = {name: call for name, call in calls_of(libraries, many).items() if name[0].startswith("bitrep/")}
    for function, call in (("sum", lambda: samesum.sum(many, threads=1)), ("fsum", lambda: samesum.fsum(many))):
        yield from exact_sums(about(function, "fp64", x.shape, 0, seed, given="list"),
                              {exact: call, fsum: lambda: math.fsum(many)} | (of_a_list if function == "sum" else {}),
                              math.fsum(many), [Target(exact, fsum, 1)], turns)
    if libraries:
        array = np.random.default_rng(seed).standard_normal(OF_EXACT_SUMS)
        yield from exact_sums(about("sum", "fp64", array.shape, 1, seed),
                              {exact: lambda: samesum.sum(array, axis=1, threads=1)} | calls_of(libraries, array),
                              [math.fsum(row) for row in array], [], turns)


# --- exact sums of other libraries ----------------------------------------------------------------------------------


def sum_of_xsum(xsum, x):
    accumulator = xsum.xsum_large_accumulator()
    xsum.xsum_add(accumulator, x)
    return xsum.xsum_round(accumulator)


def sum_of_bitrep(bitrep, x):
    accumulator = bitrep.FastSumF64()
    accumulator.extend(x)
    return accumulator.finish().value()


def sum_of_accupy(accupy, x):
    return accupy.fsum(x.T)  # of the first axis


# Packages, their call, and whether it takes rows.
EXACT = {"xsum": ("xsum/large", sum_of_xsum, False), "bitrep": ("bitrep/fast_sum", sum_of_bitrep, False),
         "accupy": ("accupy/fsum", sum_of_accupy, True)}


def exact_libraries(left_out):
    """{name: package} of those that can be imported; says in `left_out` which cannot."""
    found = {}
    for name in EXACT:
        try:
            found[name] = importlib.import_module(name)
        except ImportError as error:
            left_out.append(f"{name}: {error}; pip install -r experiments/requirements-exact.txt")
    return found


def calls_of(libraries, x):
    """{(method, threads): call}, which is None for a library that does not take rows."""
    is_vector = not hasattr(x, "ndim") or x.ndim == 1
    return {(f"{EXACT[name][0]}/fp64@peer", 1): (lambda call=EXACT[name][1], library=library: call(library, x))
            if is_vector or EXACT[name][2] else None for name, library in libraries.items()}


def exact_sums(about, calls, expected, targets, turns):
    """Yields the rows of calls whose results must be the expected ones."""
    for name in [name for name, call in calls.items() if call is None]:
        del calls[name]
        yield {"kind": "declined", "method": name[0], **about, "threads": name[1], "reason": "it sums one vector per call"}
    verified = {name: (list(call()) if isinstance(expected, list) else call()) == expected for name, call in calls.items()}
    yield from rows(about, calls, targets, turns, verified={name: bool(right) for name, right in verified.items()})


# --- beside PyTorch -------------------------------------------------------------------------------------------------


def on_a_gpu(samesum, torch, seed, turns):
    def on_the_device(call, count):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(count):
            call()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) * 1e-3 / count

    def until_launched(call, count):
        torch.cuda.synchronize()
        seconds = on_the_host(call, count)
        torch.cuda.synchronize()
        return seconds

    torch.manual_seed(seed)
    few, peer = torch.ones(8, device="cuda"), ("torch/sum/fp32@peer", 0)
    of = {method: (f"sum/{method}/fp32@cuda", 0) for method in ("exact", "tree/plain")}
    yield from rows(about("sum", "fp32", few.shape, 0, seed),
                    {of[m]: lambda m=m: samesum.sum(few, method=m) for m in of} | {peer: few.sum},
                    [Target(name, peer, 1 / 1.3) for name in of.values()], turns, until_launched, 1000)
    for n in (512, 4096, 32768):
        x = torch.randn(49152, n, device="cuda")
        for operation, method, results in (("sum", "tree/plain", 1), ("sum", "exact", 1), ("softmax", "tree/plain", n)):
            names = (f"{operation}/{method}/fp32@cuda", 0), (f"samesum/{operation}_{method.split('/')[0]}/fp32@peer", 0)
            yield from rows(about(operation, "fp32", x.shape, 1, seed, given="tensor"),
                            dict(zip(names, twice(samesum, torch, x, operation, method, results))),
                            [Target(*names, 0.97)], turns, on_the_device, 100)
        del x
    yield from transformer_block(samesum, torch, seed, turns, on_the_device)


def twice(samesum, torch, x, operation, method, results):
    """A call on the rows of a tensor, and the same call in C++ with its arguments prepared; `results` are those of a row."""
    core, function = samesum._core, getattr(samesum, operation)
    out, found = torch.empty(len(x), results, device="cuda"), core.find(method, operation, "fp32", "cuda")
    n = x.shape[1]
    arguments = (found, "fp32", x.data_ptr(), x.numel(), (len(x), n, 1, n, 1), out.data_ptr(), out.numel(), 0,
                 torch.cuda.current_stream().cuda_stream)
    return lambda: function(x, -1, method=found), lambda: core.run(*arguments, out_stride=n if results > 1 else 0)


def transformer_block(samesum, torch, seed, turns, clock):
    """A block, forward and backward, under the context manager and without it."""
    from samesum import torch as routing

    block = torch.nn.TransformerEncoderLayer(1024, 16, 4096, dropout=0, batch_first=True, norm_first=True).cuda()
    x = torch.randn(8, 512, 1024, device="cuda", requires_grad=True)

    def step():
        block(x).square().mean().backward()

    def routed():
        with routing.deterministic():
            step()

    ours, theirs = ("sum/tree/plain/fp32@cuda", 0), ("torch/eager/fp32@peer", 0)
    yield from rows(about("transformer_block", "fp32", x.shape, 1, seed), {ours: routed, theirs: step},
                    [Target(ours, theirs, 1 / 1.05)], turns, clock, 20)


# --- the experiment -------------------------------------------------------------------------------------------------


def text_of(r):
    if r["kind"] == "declined":
        return f"{r['operation']:8} {r['input_format']} {r['method']} declines {r['outer']} x {r['n']}: {r['reason']}"
    shape = " x ".join(str(r[name]) for name in ("outer", "n", "inner"))
    lines = [f"{r['operation']:8} {r['input_format']} {shape:18} {r.get('given', 'array'):6} {r['threads']} threads "
             f"{r['seconds'] * 1e6:12.2f} us {r['gb_per_s']:8.2f} GB/s  {r['method']}"
             + "  WRONG" * (r["verified"] is False)]
    lines += [f"    {'pass' if bar['holds'] else 'MISS'} {bar['reached']:.3g} >= {bar['factor']:.3g} x {bar['against']}"
              for bar in r["bars"]]
    return "\n".join(lines)


def measured(samesum, np, torch, libraries, options, turns, left_out):
    """Yields all rows; says in `left_out` what is not measured."""
    filtered = options.filter or "*"
    wanted = [name for name in FUNCTIONS if fnmatch.fnmatch(name, filtered)]
    functions = [name for name in wanted if hasattr(np, name)]
    left_out += [f"{name}: NumPy {np.__version__} lacks it; pip install -U numpy" for name in wanted if name not in functions]
    several = len(os.sched_getaffinity(0)) > 1
    if not several:
        left_out.append("two threads: there is one processor")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        yield from on_arrays(samesum, np, several and pool, functions, options.seed, turns)
    if not options.filter:
        yield from on_few_elements_and_on_lists(samesum, np, libraries, options.seed, turns)
    if torch and not options.filter:
        yield from on_a_gpu(samesum, torch, options.seed, turns)


def version_of(samesum):
    """The version of the package, or of the sources if the package was copied, not installed."""
    try:
        return samesum.__version__
    except importlib.metadata.PackageNotFoundError:
        return study.first_line(study.ROOT / "CITATION.cff", "version")


def with_gpu(samesum, left_out):
    """PyTorch, if it has a GPU that samesum can use; else says in `left_out` why not."""
    try:
        import torch
    except ImportError as error:
        left_out.append(f"a GPU: {error}")
        return None
    absent = "PyTorch finds none" if not torch.cuda.is_available() else samesum._core.absent().get("cuda")
    if absent:
        left_out.append(f"a GPU: {absent}")
    return None if absent else torch


def main(arguments):
    parser = study.parser_of("python_speed", __doc__, "", "--full --out build/study", "--filter 'cum*'")
    study.add_options(parser, "python_speed", "5 rounds, seconds", "21 rounds, a minute",
                      "measure only these functions: " + ", ".join(FUNCTIONS))
    options = study.parsed(parser, arguments)
    if options.filter and not fnmatch.filter(FUNCTIONS, options.filter):
        parser.error(f"--filter: {options.filter!r} matches none of {', '.join(FUNCTIONS)}")
    if options.processes > 1 and not options.process:
        return study.in_processes(__file__, arguments, options.processes)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # NumPy reads it when it is imported
    try:
        import numpy as np
        import samesum
    except ImportError as error:
        print(f"python_speed.py: {error}; pip install numpy, then pip install . in the root of samesum", file=sys.stderr)
        return 2
    left_out = []
    torch, libraries = with_gpu(samesum, left_out), {} if options.filter else exact_libraries(left_out)
    versions = {"samesum": version_of(samesum), "numpy": np.__version__}
    versions |= {"torch": torch.__version__} if torch else {}
    versions |= {name: importlib.metadata.version(name) for name in libraries}
    gpu = torch.cuda.get_device_name() if torch else None
    header = study.header("python_speed", QUESTION, options, versions, gpu)
    found = study.complete(options, header, left_out, text_of, lambda earlier: measured(
        samesum, np, torch, libraries, options, study.Turns(options, earlier, ROUNDS[options.mode]), left_out))
    study.say_left_out(options, left_out)
    return int(any(r.get("verified") is False for r in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
