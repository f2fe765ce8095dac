"""Reveals the orders in which NumPy and PyTorch add, beside those of reveal_order.

Writes rows of the kind of reveal_order to DIR/python_orders.jsonl: sums of 32 fp32 and fp64 numbers, by NumPy, and by
PyTorch on the CPU and on a GPU if these are installed. The inputs are M and -M among ones (FPRev, Xie et al. 2025).
Exits with 0; with 2 if there is no NumPy.
"""

import argparse
import pathlib
import sys

import study

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "notebooks"))
import reveal_order  # noqa: E402

SEED = 1
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
            "seed": SEED, "masks": "units" if tree else None, "sampled": 0, "tree": tree,
            "height": reveal_order.height(tree) if tree else None, "matches": None, "blind": None,
            "difference": None if tree else "the results fit no tree", "asked": calls}


def main(arguments):
    parser = argparse.ArgumentParser(prog="python_orders.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="example:\n  python_orders.py build/study")
    parser.add_argument("folder", metavar="DIR", type=pathlib.Path, help="folder for the results")
    options = parser.parse_args(arguments, argparse.Namespace(mode="quick", seed=SEED, filter="", processes=1))
    try:
        sums = list(totals())
    except ImportError as error:
        print(f"python_orders.py: {error}: pip install numpy", file=sys.stderr)
        return 2
    lines = [study.header("python_orders", "In which order do NumPy and PyTorch add?", options,
                          {method.split("/")[0]: version for method, _, _, version in sums})]
    for method, format, total, _ in sums:
        lines.append(row(method, format, total))
        print(f"{method}: {lines[-1]['tree'] or lines[-1]['difference']}")
    study.write(options.folder, "python_orders", lines)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
