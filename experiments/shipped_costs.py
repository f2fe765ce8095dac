"""Writes the costs that samesum::choose uses on machines that are not calibrated.

  experiments/shipped_costs.py experiments/shipped_costs.jsonl > lib/samesum/catalogue/shipped_costs.cpp

The input is a file of `samesum calibrate --out`. A cost is the time of a sum of normal data without transfers, in
seconds: on one thread of the CPU, and on the GPU with hot caches.
"""

import itertools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "notebooks"))
import results  # noqa: E402

HEAD = """// clang-format off
/// Written by experiments/shipped_costs.py from {file}: change that instead.
#include <array>

#include "samesum/catalogue/choose.hpp"

namespace samesum {{
namespace {{

constexpr auto costs = std::to_array<Cost>({{
"""
TAIL = """}});

}}  // namespace

Costs shipped_costs() {{ return {{"{machine}", costs}}; }}

}}  // namespace samesum
"""


def is_cost(row):
    return (row["data"] == "normal" and row["threads"] <= 1 and row["caches"] == "hot"
            and row["method"].rpartition("@")[2] in ("cpu", "cuda"))


def text(path):
    source = results.read_experiment(pathlib.Path(path), results.HERE, "speed_vs_length")
    if source.skipped or not source.rows:
        raise results.Refused(f"{path}: is incomplete: {results.REMEDY}")
    costs = sorted((row["method"], row["input_format"], row["n"], row["seconds"])
                   for row in source.of("speed") if is_cost(row))
    where = source.header["provenance"]
    machine = ", ".join(filter(None, [where["cpu"], where["gpu"]]))
    return (HEAD.format(file=path)
            + "".join("  " + " ".join(f'{{"{method}", "{input}", {n}, {seconds:.4g}}},' for *_, n, seconds in curve)
                      + "\n" for (method, input), curve in itertools.groupby(costs, key=lambda c: c[:2]))
            + TAIL.format(machine=machine))


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        sys.exit(2 if len(sys.argv) != 2 else 0)
    try:
        sys.stdout.write(text(sys.argv[1]))
    except results.Refused as refusal:
        print(f"shipped_costs.py: {refusal}", file=sys.stderr)
        sys.exit(2)
