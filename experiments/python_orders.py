"""Reveals the orders in which NumPy and PyTorch add, beside those of reveal_order.

Reads the machine from DIR/reveal_order.jsonl and writes rows of the same kind to DIR/python_orders.jsonl: sums of 32
fp32 and fp64 numbers, by NumPy, and by PyTorch on the CPU and on a GPU if these are installed. The inputs are M and -M
among ones (FPRev, Xie et al. 2025). Exits with 0; with 2 if there are no results of reveal_order or no NumPy.
"""

import argparse
import datetime
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "notebooks"))
import reveal_order  # noqa: E402

DTYPES = {"fp32": "float32", "fp64": "float64"}


def totals():
    """Yields (method, format, sum of a list of numbers, version of the library)."""
    import numpy
    for format, dtype in DTYPES.items():
        yield (f"numpy/{format}@peer", format, lambda x, t=dtype: float(numpy.sum(numpy.array(x, dtype=t))),
               numpy.__version__)
    try:
        import torch
    except ImportError:
        return
    for device, name in (("cpu", "torch_cpu"), ("cuda", "torch")):
        if device == "cpu" or torch.cuda.is_available():
            for format, dtype in DTYPES.items():
                yield (f"{name}/{format}@peer", format, lambda x, d=device, t=getattr(torch, dtype): float(torch.sum(
                    torch.tensor(x, dtype=t, device=d))), torch.__version__)


def row(method, format, total):
    """A row of kind "tree"."""
    calls = 0

    def counted(x):
        nonlocal calls
        calls += 1
        return total(x)

    tree = reveal_order.reveal(counted, reveal_order.DRAWN)
    return {"kind": "tree", "method": method, "promise": "none", "input_format": format, "n": reveal_order.DRAWN,
            "seed": 1, "masks": "units" if tree else None, "sampled": 0, "tree": tree,
            "height": reveal_order.height(tree) if tree else None, "matches": None, "blind": None,
            "difference": None if tree else "the results fit no tree", "asked": calls}


def main(arguments):
    parser = argparse.ArgumentParser(prog="python_orders.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="example:\n  reveal_order --out build/study\n"
                                            "  python_orders.py build/study")
    parser.add_argument("folder", metavar="DIR", type=pathlib.Path, help="folder with the results of reveal_order")
    folder = parser.parse_args(arguments).folder
    try:
        with open(folder / "reveal_order.jsonl", encoding="utf-8") as file:
            header = json.loads(file.readline())
        sums = list(totals())
    except (OSError, ValueError, ImportError) as error:
        print(f"python_orders.py: {error}: run reveal_order --out {folder} first, with NumPy installed",
              file=sys.stderr)
        return 2
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    lines = [header | {"experiment": "python_orders", "question": "In which order do NumPy and PyTorch add?",
                       "filter": "", "options": {method.split("/")[0]: version for method, _, _, version in sums},
                       "provenance": header["provenance"] | {"date": date}}]
    for method, format, total, _ in sums:
        lines.append(row(method, format, total))
        print(f"{method}: {lines[-1]['tree'] or lines[-1]['difference']}")
    path = folder / "python_orders.jsonl"
    temporary = path.with_name(path.name + ".part")
    temporary.write_text("".join(json.dumps(o, separators=(",", ":")) + "\n" for o in lines), encoding="utf-8")
    os.replace(temporary, path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
