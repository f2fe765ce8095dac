"""Measures PyTorch's sums and softmaxes on the arrays that speed_of_reductions measured on a GPU.

Reads DIR/speed_of_reductions.jsonl and writes rows of the same kind to DIR/torch_speed.jsonl; the report compares both.
Run it on the same machine, directly afterwards: ratios are meaningful only if nothing else changed. Each array is
reduced 2 times to warm up and then 11 times; a time is the median. Calls are recorded in a CUDA graph, as many as
speed_of_reductions times at once, so that the times exclude the launches by Python. Exits with 0; with 2 if there is
nothing to measure, no PyTorch, or another GPU.
"""

import argparse
import datetime
import json
import os
import pathlib
import sys

REPEATS, WARM_UP = 11, 2
DTYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}
BYTES = {"fp16": 2, "bf16": 2, "fp32": 4, "fp64": 8}
MOVED = {"sum": 1, "softmax": 2}  # bytes moved / bytes of the array, for each operation
KEY = ["operation", "input_format", "outer", "n", "inner", "seed", "threads"]


class Refused(Exception):
    """One line that names what is missing, and the remedy."""


def read(path):
    """Returns the header, and the distinct keys of the rows to measure."""
    try:
        header, *rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError) as error:
        raise Refused(f"{path}: {error}: run speed_of_reductions --out {path.parent} first") from None
    keys = [tuple(r[name] for name in KEY) for r in rows
            if r["kind"] == "reduction" and r["threads"] == 0 and r["operation"] in MOVED]
    if not keys:
        raise Refused(f"{path}: has no sum or softmax on a GPU: run speed_of_reductions on a machine with a GPU")
    return header, [dict(zip(KEY, key)) for key in dict.fromkeys(keys)]


def own_header(header, version):
    """Returns a header with the machine and the build in the header of speed_of_reductions."""
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return header | {"experiment": "torch_speed", "question": "How fast are PyTorch's sums and softmaxes?",
                     "filter": "", "options": {"torch": version}, "provenance": header["provenance"] | {"date": date}}


def calls_at_once(bytes):
    """Returns the number of calls that are timed together, as gpu_place.cu does."""
    return 20 if bytes <= 4 << 20 else 8 if bytes <= 64 << 20 else 2 if bytes <= 1 << 30 else 1


def times(torch, key):
    """Returns the seconds of each repeat."""
    shape = [key["outer"], key["n"], key["inner"]][:2 if key["inner"] == 1 else 3]
    torch.manual_seed(key["seed"])
    x = torch.randn(shape, device="cuda", dtype=getattr(torch, DTYPES[key["input_format"]]))
    run = getattr(torch, key["operation"])
    out = run(x, dim=1)  # one-time initialisation
    calls = calls_at_once(x.numel() * x.element_size())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            run(x, dim=1, out=out)
    found = []
    for _ in range(WARM_UP + REPEATS):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        stop.record()
        stop.synchronize()
        found.append(start.elapsed_time(stop) * 1e-3 / calls)
    return found[WARM_UP:]


def row(key, seconds):
    ordered = sorted(seconds)
    low, middle, high = (ordered[round(share * (len(ordered) - 1))] for share in (0.1, 0.5, 0.9))
    bytes = key["outer"] * key["n"] * key["inner"] * BYTES[key["input_format"]] * MOVED[key["operation"]]
    return ({"kind": "reduction", "method": f"torch/{key['operation']}/{key['input_format']}@peer"} | key
            | {"seconds": middle, "low": low, "high": high, "gb_per_s": bytes / middle / 1e9, "verified": None,
               "bars": []})


def import_torch(gpu):
    try:
        import torch
    except ImportError as error:
        raise Refused(f"{error}: pip install torch") from None
    if not torch.cuda.is_available():
        raise Refused("PyTorch finds no GPU")
    if not (gpu or "").startswith(torch.cuda.get_device_name()):
        raise Refused(f"this GPU is {torch.cuda.get_device_name()}, but speed_of_reductions ran on {gpu}: run it here")
    return torch


def main(arguments):
    parser = argparse.ArgumentParser(prog="torch_speed.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="example:\n  speed_of_reductions --out build/study\n"
                                            "  torch_speed.py build/study")
    parser.add_argument("folder", metavar="DIR", type=pathlib.Path, help="folder with speed_of_reductions.jsonl")
    folder = parser.parse_args(arguments).folder
    try:
        header, keys = read(folder / "speed_of_reductions.jsonl")
        torch = import_torch(header["provenance"]["gpu"])
    except Refused as refusal:
        print(f"torch_speed.py: {refusal}", file=sys.stderr)
        return 2
    lines = [own_header(header, torch.__version__)]
    for key in keys:
        lines.append(row(key, times(torch, key)))
        print(f"{lines[-1]['method']:24} {key['outer']} x {key['n']} x {key['inner']}: "
              f"{lines[-1]['gb_per_s']:.0f} GB/s")
    path = folder / "torch_speed.jsonl"
    temporary = path.with_name(path.name + ".part")
    temporary.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8")
    os.replace(temporary, path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
