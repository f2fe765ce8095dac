"""Measures PyTorch, NumPy and samesum's Python package side by side, on the arrays that experiments measured.

Reads DIR/EXPERIMENT.jsonl and writes rows of the same kinds, which the report compares with each other, not with those of
the experiment:
  speed_of_reductions  sums, variances and softmaxes of normal data on a GPU, to DIR/torch_speed.jsonl
  sums_by_key          index_add on a GPU and np.add.at, to DIR/torch_sums_by_key.jsonl
  prefix_sums          cumsum on a GPU and np.cumsum, to DIR/torch_prefix_sums.jsonl
An experiment without a results file is left out. Each call of PyTorch is measured as it is, under torch.compile and, if it
is a prefix sum or a sum by key, under torch.use_deterministic_algorithms; each method of samesum as a call of the Python
package, with one thread on a CPU. All calls of a cell reduce the same array and return new results of the same format. They
take turns, in another random order in each of 5 rounds, or of 11 for results of --full; a time is the median. On a GPU the
calls of a round are recorded in a CUDA graph, which is replayed, so that the times exclude the launches by Python. Sums by
key are called one by one, because samesum's waits for the GPU to check the keys; keys have 64 bits.

Before the timing, all results are compared with results in fp64, on a CPU in long double, within 4u (sqrt(n) max|s_k| +
sum|x|) for sums, where s_k are the partial sums and u is the unit roundoff of fp32, or of fp64 for fp64; for softmax within
4u (sqrt(n) + 2 + 2 max|x|) of the result, since the error of an exponential is relative to that of its argument. Results of
16 bits may differ by their rounding, too. A variance may differ by nκu + (nκu)² of itself, where κ² = 1 + mean² / variance.
Wrong results are marked, and the exit code is 1.

Of 30 results of the same call on a GPU, the distinct ones are counted, and all are compared with the first one by two
measures of Shanmugavelu and others (2024, arXiv 2408.05148): Vermv, the mean of |a - b| / |a| over the elements a and b
of both results, with their 1e-8 added to a; and Vc, the share of elements that differ. Rows of kind "repeats" have the
mean and the maximum of both over the results: vermv_mean, vermv_max, vc_mean and vc_max. With --repeats, no times are
measured.

Exits with 2 if there is nothing to measure, no PyTorch, or another host. Without samesum's Python package, or if that
has no CUDA, it measures the others alone.
"""

import argparse
import contextlib
import importlib
import json
import math
import pathlib
import statistics
import sys
import time

import study

ROUNDS, WARM_UP, RUNS = {"quick": 5, "full": 11}, 2, 30
DTYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}
BYTES = {"fp16": 2, "bf16": 2, "fp32": 4, "fp64": 8}
IN_NUMPY = ("fp32", "fp64")
KEY_BYTES = 4  # of the experiment, whose speeds the report compares
# Bytes moved / bytes of the array, for each operation.
MOVED = {"sum": 1, "moments": 1, "softmax": 2, "cumsum": 2, "scatter_add": 1}
OURS = ("plain", "exact", "fixed_point", "tree")  # accumulators of samesum's methods that are measured, or orders without one
FUNCTIONS = {"moments": "var"}  # of samesum's package and of PyTorch, where they have another name than the operation
KEY = ["operation", "input_format", "outer", "n", "inner", "seed", "threads"]
KEY_BY_KEY = ["keys", "bins"]
# For each experiment: name of the results, question, operations on a GPU, and on a CPU.
EXPERIMENTS = {
    "speed_of_reductions": ("torch_speed", "How fast are PyTorch's sums, variances and softmaxes beside samesum's?",
                            ("sum", "moments", "softmax"), ()),
    "sums_by_key": ("torch_sums_by_key", "How fast are sums by key of PyTorch and NumPy beside samesum's?", ("scatter_add",),
                    ("scatter_add",)),
    "prefix_sums": ("torch_prefix_sums", "How fast are prefix sums of PyTorch and NumPy beside samesum's?", ("cumsum",), ("cumsum",)),
}


class Refused(Exception):
    """One line that names what is missing, and the remedy."""


def read(path, on_gpu, on_cpu):
    """Returns the header, the methods of samesum for each key of rows to measure, and the keys of the calls to repeat."""
    try:
        header, *rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError) as error:
        raise Refused(f"{path}: {error}: run {path.stem} --out {path.parent} first") from None
    found, methods = [], {}
    for r in rows:
        operations = on_gpu if r.get("threads") == 0 else on_cpu if r.get("threads") == 1 else ()
        if r["kind"] == "reduction" and r["operation"] in operations and (
                r["threads"] == 0 or r["input_format"] in IN_NUMPY):
            key = {name: r[name] for name in KEY} | {name: r[name] for name in KEY_BY_KEY if name in r}
            found.append(key | {"grid": None} if "keys" in key else key)
            if is_ours(r):
                methods.setdefault(json.dumps(found[-1]), []).append(r["method"])
    repeated = [{name: r[name] for name in ("operation", "input_format", "data", "seed", "n", "keys", "bins") if name in r}
                for r in rows if r["kind"] == "repeats" and r["axis"] == "runs" and r["method"].endswith("@cuda")
                and r["operation"] in on_gpu and r["input_format"] == "fp32"]
    return header, [(key, list(dict.fromkeys(methods.get(json.dumps(key), [])))) for key in distinct(found)], distinct(repeated)


def is_ours(r):
    """Whether a row is of a method of samesum that is measured: in the format of the elements, of 16 bits in fp32, and with a
    grid that it finds."""
    name, _, backend = r["method"].partition("@")
    wide = "fp32" if BYTES[r["input_format"]] == 2 else r["input_format"]
    return (backend in ("cpu", "cuda") and r.get("grid") is None and "data" not in r
            and name.endswith(tuple(f"/{accumulator}/{wide}" for accumulator in OURS)))


def distinct(objects):
    return list({json.dumps(o): o for o in objects}.values())


def calls_at_once(bytes):
    """Returns the number of calls that are timed together, as gpu_place.cu does."""
    return 20 if bytes <= 4 << 20 else 8 if bytes <= 64 << 20 else 2 if bytes <= 1 << 30 else 1


def keys_of(key, u, places):
    """Returns keys with the distribution of harness/key_sets.cpp. `u` are uniform numbers in [0, 1), `places` counts them;
    both are arrays of NumPy or of PyTorch."""
    bins = key["bins"]
    x = {"uniform": lambda: u * bins, "skewed": lambda: u * u * u * bins,
         "zipf": lambda: (1 - u * (1 - (bins + 1) ** -0.1)) ** -10 - 1,
         "sorted": lambda: places * (bins / key["n"])}[key["keys"]]()
    return x.clip(0, bins - 1)


# --- calls that take turns ----------------------------------------------------------------------------------------

def our_calls(samesum, key, methods, inputs, **options):
    """{method: call} of samesum's Python package on x, or on the results so far, keys and x."""
    function = getattr(samesum, FUNCTIONS.get(key["operation"], key["operation"]))
    axis = {} if "keys" in key else {"axis": 1}

    def call_of(method):
        name = method.removeprefix(key["operation"] + "/").partition("@")[0]
        return lambda: function(*inputs, method=name, **axis, **options)
    return {method: call_of(method) for method in methods}


def in_turns(runs, turns, clock, calls):
    """{name: [seconds of a call in each round, …]}; a run makes several calls."""
    for run in [*runs.values()] * WARM_UP:
        clock(run)
    found = {name: [] for name in runs}
    for order in turns.orders(runs):
        for name in order:
            found[name].append(clock(runs[name]) / calls)
    return found


def repeated(call, calls):
    def run():
        for _ in range(calls):
            call()
    return run


# --- PyTorch on a GPU ---------------------------------------------------------------------------------------------

def torch_keys(torch, key):
    u, places = (f(key["n"], device="cuda", dtype=torch.float64) for f in (torch.rand, torch.arange))
    return keys_of(key, u, places).to(torch.int64)


def torch_inputs(torch, key):
    """x, or the results so far, keys and x."""
    torch.manual_seed(key["seed"])
    by_key, dtype = "keys" in key, getattr(torch, DTYPES[key["input_format"]])
    shape = [key["n"], key["inner"]][:1 if key["inner"] == 1 else 2] if by_key else [
        key["outer"], key["n"], key["inner"]][:2 if key["inner"] == 1 else 3]
    x = torch.randn(shape, device="cuda", dtype=dtype)
    if not by_key:
        return x,
    return torch.zeros([key["bins"], *shape[1:]], device="cuda", dtype=dtype), torch_keys(torch, key), x


@contextlib.contextmanager
def deterministic(torch, mode=True):
    torch.use_deterministic_algorithms(mode)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def torch_calls(torch, key, inputs):
    """{method: call} of PyTorch: as it is, compiled, and in its deterministic mode if that may differ."""
    operation = key["operation"]
    wide = torch.float32 if BYTES[key["input_format"]] == 2 else None  # sums of 16 bits are in fp32, as samesum's
    name, function = {
        "sum": ("sum", lambda x: torch.sum(x, 1, dtype=wide)), "moments": ("var", lambda x: torch.var(x, 1, correction=0)),
        "softmax": ("softmax", lambda x: torch.softmax(x, 1)),
        "cumsum": ("cumsum", lambda x: torch.cumsum(x, 1)),
        "scatter_add": ("index_add", lambda out, keys, x: torch.index_add(out, 0, keys, x))}[operation]
    torch.compiler.reset()
    compiled = torch.compile(function, dynamic=False)

    def in_mode():
        with deterministic(torch):
            return function(*inputs)
    calls = {"": lambda: function(*inputs), "_compiled": lambda: compiled(*inputs)}
    if operation in ("cumsum", "scatter_add"):
        calls["_deterministic"] = in_mode
    return {f"torch/{name}{mode}/{key['input_format']}@peer": call for mode, call in calls.items()}


def torch_clock(torch):
    def seconds(run):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) * 1e-3
    return seconds


def recorded(torch, run):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def torch_expected(torch, key, inputs):
    """The results in fp64, and their tolerances."""
    u, root = 4 * study.UNIT_ROUNDOFF["fp64" if key["input_format"] == "fp64" else "fp32"], math.sqrt(key["n"])
    x = inputs[-1].double()
    if key["operation"] == "softmax":
        value = torch.softmax(x, 1)
        return value, value * (u * (root + 2 + 2 * x.abs().max()))
    if key["operation"] == "moments":
        return expected_variance(x, u / 4)
    if key["operation"] == "scatter_add":
        return torch_expected_by_key(torch, u, *inputs[:2], x)
    sums = x.cumsum(1)
    if key["operation"] == "cumsum":
        count = torch.arange(1, key["n"] + 1, device=x.device, dtype=x.dtype)
        return sums, u * (count.sqrt() * sums.abs().cummax(1).values + x.abs().cumsum(1))
    return sums.select(1, -1).clone(), u * (root * sums.abs().amax(1) + x.abs().sum(1))


def expected_variance(x, u):
    """The variances in the format of x, and the tolerances of harness/verify.hpp."""
    n = x.shape[1]
    mean = x.sum(1) / n
    value = ((x - mean[:, None]) ** 2).sum(1) / n
    error = (n + 3) * u * (value + mean * mean) ** 0.5  # nκu √variance
    return value, error * (value ** 0.5 + error)


def torch_expected_by_key(torch, u, out, keys, x):
    """Sums the elements in the order of their keys, and finds the largest partial sum of each key."""
    order = keys.argsort(stable=True)
    keys, x = keys[order], x[order].reshape(len(keys), -1)
    shape = (len(out), x.shape[1])
    counts = torch.bincount(keys, minlength=len(out))
    before = torch.cat([x.new_zeros(1, x.shape[1]), x.cumsum(0)])
    sums = before[1:] - before[counts.cumsum(0) - counts][keys]
    farthest = x.new_zeros(shape).scatter_reduce(0, keys.unsqueeze(1).expand_as(x), sums.abs(), "amax")
    total, magnitudes = (x.new_zeros(shape).index_add(0, keys, terms) for terms in (x, x.abs()))
    tolerance = u * (counts.sqrt().unsqueeze(1) * farthest + magnitudes)
    return total.reshape(out.shape), tolerance.reshape(out.shape)


def is_right(found, expected):
    """Whether all results, arrays of PyTorch or of NumPy, are within the tolerance; None if it cannot tell them from zeros."""
    value, tolerance = expected
    format = next(f for f, name in DTYPES.items() if name == str(found.dtype).removeprefix("torch."))
    if BYTES[format] == 2:
        tolerance = tolerance + study.UNIT_ROUNDOFF[format] * abs(value) + (format == "fp16") * 2**-25  # fp16 may be subnormal
    found = found.double() if hasattr(found, "double") else found.astype(value.dtype)
    if not bool((abs(found - value) <= tolerance).all()):
        return False
    return True if bool((tolerance <= abs(value) / 2).any()) else None


def torch_rows(torch, samesum, turns, key, methods):
    inputs = torch_inputs(torch, key)
    bytes = inputs[-1].numel() * inputs[-1].element_size()
    calls = torch_calls(torch, key, inputs) | (our_calls(samesum, key, methods, inputs) if samesum else {})
    in_graph = "keys" not in key
    more = {"launch": "graph"} if in_graph else {}
    expected, verified, runs = torch_expected(torch, key, inputs), {}, {}
    for name, call in calls.items():
        try:
            verified[name] = is_right(call(), expected)
            run = repeated(call, calls_at_once(bytes))
            runs[name] = recorded(torch, run) if in_graph else run
        except (RuntimeError, ValueError) as error:  # no deterministic implementation, or no capture
            yield declined(key, name, error, more)
    del expected
    for name, seconds in in_turns(runs, turns, torch_clock(torch), calls_at_once(bytes)).items():
        yield row(turns, key | more, name, seconds, verified[name])
    runs.clear()
    torch.cuda.empty_cache()  # the graphs had memory of their own


def torch_repeats(torch, key):
    """Yields a row for each call that is repeated."""
    inputs = torch_inputs(torch, key | {"outer": 1, "inner": 1})
    calls = {"cumsum": lambda x: torch.cumsum(x, 1)} if key["operation"] == "cumsum" else {
        "index_add": lambda out, keys, x: torch.index_add(out, 0, keys, x),
        "index_add_deterministic": lambda out, keys, x: torch.index_add(out, 0, keys, x),
        "scatter_reduce": lambda out, keys, x: torch.scatter_reduce(out, 0, keys, x, "sum")}
    weights = torch.randint(1 << 62, inputs[0].shape, device="cuda")

    def digest(result):
        return int((result.view(torch.int32).to(torch.int64) * weights).sum())  # integers: the same for the same bits

    for name, call in calls.items():
        with deterministic(torch, name.endswith("_deterministic")):
            found = repeats((call(*inputs) for _ in range(RUNS)), digest)
        yield ({"kind": "repeats", "method": f"torch/{name}/fp32@peer", "promise": "none"} | key | {"axis": "runs"}
               | found)


def repeats(results, digest):
    """The measured fields of a row of repeats, from the results of its calls."""
    first = next(results)
    digests, measures = {digest(first)}, []
    for result in results:
        digests.add(digest(result))
        measures.append(variability(first, result))
    vermv, vc = zip(*measures)
    return {"runs": 1 + len(measures), "distinct_bits": len(digests), "broken": False,
            "vermv_mean": statistics.fmean(vermv), "vermv_max": max(vermv),
            "vc_mean": statistics.fmean(vc), "vc_max": max(vc)}


def variability(first, other):
    """Vermv and Vc of two arrays of NumPy or of PyTorch."""
    def wide(x):
        return x.double() if hasattr(x, "double") else x.astype("float64")
    a, b = wide(first), wide(other)
    return float((abs(a - b) / abs(a + 1e-8)).mean()), float(wide(first != other).mean())


def import_torch(gpu, experiment):
    try:
        import torch
    except ImportError as error:
        raise Refused(f"{error}: pip install torch") from None
    if not torch.cuda.is_available():
        raise Refused("PyTorch finds no GPU")
    if not (gpu or "").startswith(torch.cuda.get_device_name()):
        raise Refused(f"this GPU is {torch.cuda.get_device_name()}, but {experiment} ran on {gpu}: run it here")
    return torch


# --- NumPy on a CPU -----------------------------------------------------------------------------------------------

def numpy_inputs(numpy, key):
    """x, or the results so far, keys and x."""
    random = numpy.random.default_rng(key["seed"])
    shape = (key["n"], key["inner"])[:1 if key["inner"] == 1 else 2]
    x = random.standard_normal(shape if "keys" in key else (1, *shape)).astype(DTYPES[key["input_format"]])
    if "keys" not in key:
        return x,
    keys = keys_of(key, random.random(key["n"]), numpy.arange(key["n"])).astype(numpy.int64)
    return numpy.zeros((key["bins"], *shape[1:]), x.dtype), keys, x


def numpy_call(numpy, key, inputs):
    """(name, call)"""
    def add_at():
        out, keys, x = inputs
        result = out.copy()
        numpy.add.at(result, keys, x)
        return result
    return ("add_at", add_at) if "keys" in key else ("cumsum", lambda: numpy.cumsum(*inputs, axis=1))


def numpy_expected(numpy, key, inputs):
    """The results in long double, and their tolerances."""
    u = study.UNIT_ROUNDOFF[key["input_format"]]
    x = inputs[-1].astype(numpy.longdouble)
    if "keys" not in key:
        return study.prefix_sums(numpy, x, u)
    out, keys, _ = inputs
    order = keys.argsort(kind="stable")
    keys, x = keys[order], x[order].reshape(len(keys), -1)
    used, starts, counts = numpy.unique(keys, return_index=True, return_counts=True)
    before = numpy.concatenate([0 * x[:1], x.cumsum(0)])
    farthest = numpy.maximum.reduceat(abs(before[1:] - numpy.repeat(before[starts], counts, 0)), starts)
    value, tolerance = (numpy.zeros((len(out), x.shape[1]), x.dtype) for _ in range(2))
    value[used] = numpy.add.reduceat(x, starts)
    tolerance[used] = 4 * u * (numpy.sqrt(counts)[:, None] * farthest + numpy.add.reduceat(abs(x), starts))
    return value.reshape(out.shape), tolerance.reshape(out.shape)


def on_the_host(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def numpy_rows(numpy, samesum, turns, key, methods):
    inputs = numpy_inputs(numpy, key)
    name, call = numpy_call(numpy, key, inputs)
    calls = {f"numpy/{name}/{key['input_format']}@peer": call}
    calls |= our_calls(samesum, key, methods, inputs, threads=1) if samesum else {}
    expected, at_once = numpy_expected(numpy, key, inputs), calls_at_once(inputs[-1].nbytes)
    verified = {name: is_right(call(), expected) for name, call in calls.items()}
    runs = {name: repeated(call, at_once) for name, call in calls.items()}
    for name, seconds in in_turns(runs, turns, on_the_host, at_once).items():
        yield row(turns, key, name, seconds, verified[name])


# --- rows ---------------------------------------------------------------------------------------------------------

def row(turns, key, method, seconds, verified):
    key = {"kind": "reduction", "method": method} | key
    measured = study.times(*turns.completed(key, seconds), turns=turns.number)
    bytes = (key["outer"] * key["n"] * key["inner"] * BYTES[key["input_format"]] * MOVED[key["operation"]]
             + ("keys" in key) * key["n"] * KEY_BYTES)
    return (key | measured
            | {"gb_per_s": bytes / measured["seconds"] / 1e9, "verified": verified, "bars": []})


def declined(key, method, error, more):
    reason = " ".join(str(error).split()) or type(error).__name__
    key = {name: value for name, value in key.items() if name != "grid"}
    return {"kind": "declined", "method": method} | key | more | {"reason": reason[:200]}


def import_samesum(on_gpu):
    """The package, if it computes on the processor; else None, with a line on standard error."""
    try:
        import samesum
    except ImportError as error:
        why = f"{error}: pip install . in the root of samesum"
    else:
        why = on_gpu and samesum._core.absent().get("cuda")
    if not why:
        return samesum
    print(f"torch_speed.py: without samesum: {why}", file=sys.stderr)
    return None


def measure(experiment, other, cells, to_repeat, options):
    """Writes the results for the arrays of an experiment, whose header is `other`; returns the rows."""
    name, question, *_ = EXPERIMENTS[experiment]
    on_gpu, on_cpu = (any((key["threads"] > 0) == cpu for key, _ in cells) for cpu in (False, True))
    torch = import_torch(other["provenance"]["gpu"], experiment) if on_gpu or to_repeat else None
    numpy = importlib.import_module("numpy") if on_cpu else None
    versions = {package.__name__: package.__version__ for package in (torch, numpy) if package}
    try:
        header = study.header_beside(other, name, question, options, versions)
    except ValueError as other_host:
        raise Refused(str(other_host)) from None
    ours = {gpu: import_samesum(gpu) for gpu, any_cell in ((True, on_gpu), (False, on_cpu)) if any_cell}
    options = argparse.Namespace(**vars(options), seed=header["seed"], json=False)

    def rows(earlier):
        turns = study.Turns(options, earlier, ROUNDS[header["mode"]])
        for key, methods in cells:
            if key["threads"] == 0:
                yield from torch_rows(torch, ours[True], turns, key, methods)
            else:
                yield from numpy_rows(numpy, ours[False], turns, key, methods)
        for key in to_repeat:
            yield from torch_repeats(torch, key)
    if options.repeats:
        header["options"]["repeats"] = True
        path = options.out / f"{name}.jsonl"
        lines = study.read(path).splitlines()
        if lines and not json.loads(lines[0]).get("options", {}).get("repeats"):
            raise Refused(f"{path} has times, which --repeats would replace; use another folder")
    return study.complete(options, header, [], in_words, rows)


def in_words(r):
    what = " x ".join(str(r[name]) for name in ("outer", "n", "inner") if name in r)
    what += f", {r['bins']} {r['keys']} keys" if "keys" in r else ""
    how = {"reduction": lambda: f"{r['gb_per_s']:.0f} GB/s" + " WRONG" * (r["verified"] is False),
           "repeats": lambda: f"{r['distinct_bits']} distinct results in {r['runs']} runs, "
                             f"Vermv up to {r['vermv_max']:.2g}, Vc up to {r['vc_max']:.2%}",
           "declined": lambda: f"declined: {r['reason']}"}[r["kind"]]()
    return f"{r['method']:40} {what}: {how}"


def main(arguments):
    parser = argparse.ArgumentParser(prog="torch_speed.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="example:\n  speed_of_reductions --out build/study\n"
                                            "  torch_speed.py build/study")
    parser.add_argument("out", metavar="DIR", type=pathlib.Path, help="folder with the results of the experiments")
    parser.add_argument("--repeats", action="store_true", help="only compare the results of repeated calls: seconds")
    study.add_processes(parser)
    options = study.parsed(parser, arguments)
    if options.processes > 1 and not options.process:
        return study.in_processes(__file__, arguments, options.processes)
    folder = options.out
    try:
        there = [e for e in EXPERIMENTS if (folder / f"{e}.jsonl").exists()] or ["speed_of_reductions"]
        found = [(e, *read(folder / f"{e}.jsonl", *EXPERIMENTS[e][2:])) for e in there]
        if options.repeats:
            found = [(e, header, [], to_repeat) for e, header, _, to_repeat in found]
        found = [about for about in found if about[2] or options.repeats and about[3]]
        if not found:
            raise Refused(f"{folder}: has no sum, variance or softmax on a GPU, no prefix sum and no sum by key: run "
                          "speed_of_reductions, prefix_sums or sums_by_key first")
        rows = [r for about in found for r in measure(*about, options)]
    except Refused as refusal:
        print(f"torch_speed.py: {refusal}", file=sys.stderr)
        return 2
    return int(any(r.get("verified") is False for r in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
