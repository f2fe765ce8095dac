"""Measures PyTorch and NumPy on the arrays that experiments measured.

Reads DIR/EXPERIMENT.jsonl and writes rows of the same kinds, which the report compares:
  speed_of_reductions  sums and softmaxes of PyTorch on a GPU, to DIR/torch_speed.jsonl
  sums_by_key          index_add of PyTorch on a GPU, in both modes, and np.add.at, to DIR/torch_sums_by_key.jsonl
  prefix_sums          cumsum of PyTorch on a GPU, and np.cumsum, to DIR/torch_prefix_sums.jsonl
An experiment without a results file is left out. Run the script on the same machine, directly afterwards: ratios are
meaningful only if nothing else changed. Each array is reduced 2 times to warm up and then 11 times; a time is the median.
Calls on a GPU except sums by key are recorded in a CUDA graph, as many as the experiments time at once, so that the times
exclude the launches by Python. index_add adds to an array that exists, and has keys of 64 bits. Of 30 results of the same
call on a GPU, the distinct ones are counted. Exits with 0; with 2 if there is nothing to measure, no PyTorch, or another
host.
"""

import argparse
import itertools
import json
import pathlib
import sys
import time

import study

REPEATS, WARM_UP, RUNS = 11, 2, 30
TURNS = itertools.count(1)  # each row is measured on its own
DTYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}
BYTES = {"fp16": 2, "bf16": 2, "fp32": 4, "fp64": 8}
IN_NUMPY = ("fp32", "fp64")
KEY_BYTES = 4  # of the experiment, whose speeds the report compares
MOVED = {"sum": 1, "softmax": 2, "cumsum": 2, "scatter_add": 1}  # bytes moved / bytes of the array, for each operation
KEY = ["operation", "input_format", "outer", "n", "inner", "seed", "threads"]
KEY_BY_KEY = ["keys", "bins"]
# For each experiment: name of the results, question, operations on a GPU, and on a CPU.
EXPERIMENTS = {
    "speed_of_reductions": ("torch_speed", "How fast are PyTorch's sums and softmaxes?", ("sum", "softmax"), ()),
    "sums_by_key": ("torch_sums_by_key", "How fast are PyTorch's and NumPy's sums by key?", ("scatter_add",),
                    ("scatter_add",)),
    "prefix_sums": ("torch_prefix_sums", "How fast are PyTorch's and NumPy's prefix sums?", ("cumsum",), ("cumsum",)),
}


class Refused(Exception):
    """One line that names what is missing, and the remedy."""


def read(path, on_gpu, on_cpu):
    """Returns the header, the distinct keys of the rows to measure, and those of the calls to repeat."""
    try:
        header, *rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError) as error:
        raise Refused(f"{path}: {error}: run {path.stem} --out {path.parent} first") from None
    found = []
    for r in rows:
        operations = on_gpu if r.get("threads") == 0 else on_cpu if r.get("threads") == 1 else ()
        if r["kind"] == "reduction" and r["operation"] in operations and (
                r["threads"] == 0 or r["input_format"] in IN_NUMPY):
            key = {name: r[name] for name in KEY} | {name: r[name] for name in KEY_BY_KEY if name in r}
            found.append(key | {"grid": None} if "keys" in key else key)
    repeated = [{name: r[name] for name in ("operation", "input_format", "data", "seed", "n", "keys", "bins") if name in r}
                for r in rows if r["kind"] == "repeats" and r["axis"] == "runs" and r["method"].endswith("@cuda")
                and r["operation"] in on_gpu and r["input_format"] == "fp32"]
    return header, distinct(found), distinct(repeated)


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


# --- PyTorch on a GPU ---------------------------------------------------------------------------------------------

def torch_keys(torch, key):
    u, places = (f(key["n"], device="cuda", dtype=torch.float64) for f in (torch.rand, torch.arange))
    return keys_of(key, u, places).to(torch.int64)


def torch_calls(torch, key):
    """Yields (method, call, bytes of the array, whether a graph can record the call)."""
    torch.manual_seed(key["seed"])
    by_key = key["operation"] == "scatter_add"
    shape = [key["n"], key["inner"]][:1 if key["inner"] == 1 else 2] if by_key else [
        key["outer"], key["n"], key["inner"]][:2 if key["inner"] == 1 else 3]
    dtype = getattr(torch, DTYPES[key["input_format"]])
    x = torch.randn(shape, device="cuda", dtype=dtype)
    bytes = x.numel() * x.element_size()
    if not by_key:
        run = getattr(torch, key["operation"])
        out = run(x, dim=1)  # one-time initialisation
        yield key["operation"], lambda: run(x, dim=1, out=out), bytes, True
        return
    keys, out = torch_keys(torch, key), torch.zeros([key["bins"], *shape[1:]], device="cuda", dtype=dtype)
    for name, mode in (("index_add", False), ("index_add_deterministic", True)):
        torch.use_deterministic_algorithms(mode)
        yield name, lambda: out.index_add_(0, keys, x), bytes, False
    torch.use_deterministic_algorithms(False)


def torch_times(torch, call, calls, in_graph):
    """Returns the seconds of each repeat."""
    def run():
        for _ in range(calls):
            call()

    if in_graph:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
        run = graph.replay
    found = []
    for _ in range(WARM_UP + REPEATS):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        stop.record()
        stop.synchronize()
        found.append(start.elapsed_time(stop) * 1e-3 / calls)
    return found[WARM_UP:]


def torch_rows(torch, key):
    for name, call, bytes, in_graph in torch_calls(torch, key):
        yield row(key, f"torch/{name}", torch_times(torch, call, calls_at_once(bytes), in_graph))


def torch_repeats(torch, key):
    """Yields a row with the number of distinct results of each call."""
    torch.manual_seed(key["seed"])
    x = torch.randn(key["n"], device="cuda")
    by_key = key["operation"] == "scatter_add"
    keys = torch_keys(torch, key) if by_key else None
    weights = torch.randint(1 << 62, (key["bins"] if by_key else key["n"],), device="cuda")

    def digest(result):
        return int((result.view(torch.int32).to(torch.int64) * weights).sum())  # integers: the same for the same bits

    for name, mode in (("index_add", False), ("index_add_deterministic", True)) if by_key else (("cumsum", False),):
        torch.use_deterministic_algorithms(mode)
        found = {digest(torch.zeros(key["bins"], device="cuda").index_add_(0, keys, x) if by_key else x.cumsum(0))
                 for _ in range(RUNS)}
        yield ({"kind": "repeats", "method": f"torch/{name}/fp32@peer", "promise": "none"} | key
               | {"axis": "runs", "runs": RUNS, "distinct_bits": len(found), "broken": False})
    torch.use_deterministic_algorithms(False)


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

def numpy_rows(numpy, key):
    random = numpy.random.default_rng(key["seed"])
    shape = (key["n"], key["inner"])[:1 if key["inner"] == 1 else 2]
    x = random.standard_normal(shape).astype(DTYPES[key["input_format"]])
    if key["operation"] == "cumsum":
        out, name = numpy.empty_like(x), "cumsum"

        def call():
            numpy.cumsum(x, out=out)
    else:
        keys = keys_of(key, random.random(key["n"]), numpy.arange(key["n"])).astype(numpy.int64)
        out, name = numpy.zeros((key["bins"], *shape[1:]), x.dtype), "add_at"

        def call():
            numpy.add.at(out, keys, x)

    calls, seconds = calls_at_once(x.nbytes), []
    for _ in range(WARM_UP + REPEATS):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        seconds.append((time.perf_counter() - start) / calls)
    yield row(key, f"numpy/{name}", seconds[WARM_UP:])


# --- rows ---------------------------------------------------------------------------------------------------------

def row(key, name, seconds):
    measured = study.times(seconds, turns=next(TURNS))
    bytes = (key["outer"] * key["n"] * key["inner"] * BYTES[key["input_format"]] * MOVED[key["operation"]]
             + ("keys" in key) * key["n"] * KEY_BYTES)
    return ({"kind": "reduction", "method": f"{name}/{key['input_format']}@peer"} | key
            | measured | {"gb_per_s": bytes / measured["seconds"] / 1e9, "verified": None, "bars": []})


def measure(experiment, header, keys, repeated):
    """Yields the header and the rows for an experiment."""
    name, question, *_ = EXPERIMENTS[experiment]
    torch = numpy = None
    versions = {}
    if any(key["threads"] == 0 for key in keys):
        torch = import_torch(header["provenance"]["gpu"], experiment)
        versions["torch"] = torch.__version__
    if any(key["threads"] for key in keys):
        import numpy
        versions["numpy"] = numpy.__version__
    try:
        yield study.header_beside(header, name, question, versions)
    except ValueError as other_host:
        raise Refused(str(other_host)) from None
    for key in keys:
        yield from torch_rows(torch, key) if key["threads"] == 0 else numpy_rows(numpy, key)
    for key in repeated if torch else []:
        yield from torch_repeats(torch, key)


def in_words(r):
    what = " x ".join(str(r[name]) for name in ("outer", "n", "inner") if name in r)
    what += f", {r['bins']} {r['keys']} keys" if "keys" in r else ""
    return f"{r['method']:36} {what}: " + (f"{r['gb_per_s']:.0f} GB/s" if r["kind"] == "reduction" else
                                          f"{r['distinct_bits']} distinct results in {r['runs']} runs")


def main(arguments):
    parser = argparse.ArgumentParser(prog="torch_speed.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="example:\n  speed_of_reductions --out build/study\n"
                                            "  torch_speed.py build/study")
    parser.add_argument("folder", metavar="DIR", type=pathlib.Path, help="folder with the results of the experiments")
    folder = parser.parse_args(arguments).folder
    try:
        there = [e for e in EXPERIMENTS if (folder / f"{e}.jsonl").exists()] or ["speed_of_reductions"]
        found = [(e, *read(folder / f"{e}.jsonl", *EXPERIMENTS[e][2:])) for e in there]
        found = [about for about in found if about[2]]
        if not found:
            raise Refused(f"{folder}: has no sum or softmax on a GPU, no prefix sum and no sum by key: run "
                          "speed_of_reductions, prefix_sums or sums_by_key first")
        for experiment, *about in found:
            lines = []
            for line in measure(experiment, *about):
                lines.append(line)
                if len(lines) > 1:
                    print(in_words(line))
            study.write(folder, EXPERIMENTS[experiment][0], lines)
    except Refused as refusal:
        print(f"torch_speed.py: {refusal}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
