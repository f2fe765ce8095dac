"""What the experiments in Python share: the times of calls that take turns, and the results file with its header."""

import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess

ROOT = pathlib.Path(__file__).parents[1]


def times(seconds):
    """The fields of repeated times: the median, and the 10th and the 90th percentile."""
    ordered = sorted(seconds)
    low, high = (ordered[round(share * (len(ordered) - 1))] for share in (0.1, 0.9))
    return {"seconds": statistics.median(ordered), "low": low, "high": high}


def first_line(path, key):
    """The value of a line such as 'model name : AMD EPYC'; empty if there is none."""
    try:
        lines = pathlib.Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":" if ":" in line else "=")[2].strip(' "') for line in lines if line.startswith(key)), "")


def commit():
    """The commit of the clone; "unknown" outside of a clone or without git."""
    if not (ROOT / ".git").exists():
        return "unknown"
    try:
        done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
                              capture_output=True, text=True)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def provenance(versions, gpu=None):
    """The machine, the commit and the date; `versions` are those of the packages by name."""
    return {"cpu": first_line("/proc/cpuinfo", "model name") or platform.machine(), "hardware_threads": os.cpu_count(),
            "gpu": gpu, "os": first_line("/etc/os-release", "PRETTY_NAME") or platform.system(),
            "kernel": f"{platform.system()} {platform.release()}", "compiler": f"Python {platform.python_version()}",
            "flags": ", ".join(f"{package} {version}" for package, version in versions.items()),
            "library_version": versions.get("samesum", "0.0.0"), "commit": commit(),
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")}


def header(experiment, question, options, versions, left_out, gpu=None):
    """The first line of a results file."""
    return {"kind": "study", "schema": 2, "experiment": experiment, "question": question, "mode": options.mode,
            "seed": options.seed, "filter": options.filter, "options": versions,
            **({"left_out": left_out} if left_out else {}), "provenance": provenance(versions, gpu)}


def write(folder, experiment, objects):
    """Writes FOLDER/EXPERIMENT.jsonl completely, or leaves it as it was."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{experiment}.jsonl"
    temporary = path.with_name(path.name + ".part")
    temporary.write_text("".join(json.dumps(o, separators=(",", ":")) + "\n" for o in objects), encoding="utf-8")
    os.replace(temporary, path)


def add_options(parser, experiment, quick, full, filtered):
    """Adds the options of every experiment in Python; `quick`, `full` and `filtered` are the helps of three."""
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--quick", action="store_const", dest="mode", const="quick", help=f"{quick} (the default)")
    modes.add_argument("--full", action="store_const", dest="mode", const="full", help=full)
    parser.set_defaults(mode="quick")
    parser.add_argument("--seed", type=int, default=1, help="seed of the data and the orders (default: 1)")
    parser.add_argument("--filter", metavar="GLOB", default="", help=filtered)
    parser.add_argument("--out", metavar="DIR", type=pathlib.Path, help=f"write DIR/{experiment}.jsonl")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")


def parsed(parser, arguments):
    """The options, checked."""
    options = parser.parse_args(arguments)
    if options.seed < 0:
        parser.error("--seed must be 0 or more")
    return options
