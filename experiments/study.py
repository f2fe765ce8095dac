"""What the experiments in Python share: the times of calls that take turns, and the results file with its header."""

import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess

ROOT = pathlib.Path(__file__).parents[1]
HOST = ("cpu", "processor", "hardware_threads", "os", "kernel")  # what tells hosts apart, in a provenance
GPU_CLOCKS = ("gpu_sm_mhz", "gpu_sm_max_mhz", "gpu_memory_mhz", "gpu_memory_max_mhz", "gpu_power_limit_w")


def times(seconds):
    """The fields of repeated times: the median, and the 10th and the 90th percentile."""
    ordered = sorted(seconds)
    low, high = (ordered[round(share * (len(ordered) - 1))] for share in (0.1, 0.9))
    return {"seconds": statistics.median(ordered), "low": low, "high": high}


def read(path):
    """The text of a file; empty if it cannot be read."""
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return ""


def first_line(path, key):
    """The value of a line such as 'model name : AMD EPYC'; with an empty key, the first line. Empty if none."""
    return next((line[len(key):].strip(' \t:="') for line in read(path).splitlines() if line.startswith(key)), "")


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


def integer(text):
    """The number at the beginning of a text, rounded; None if there is none."""
    try:
        return int(text, 16) if text.startswith("0x") else round(float(text))
    except ValueError:
        return None


def processor(cpuinfo):
    """The identity of the CPU in the text of /proc/cpuinfo, whose names may be as short as "AMD EPYC"; None for what it
    does not tell."""
    lines = [[part.strip() for part in line.partition(":")[::2]] for line in cpuinfo.splitlines()]
    first, cores, socket = dict(reversed(lines)), set(), ""
    for key, value in lines:
        socket = value if key == "physical id" else socket
        cores |= {(socket, value)} if key == "core id" else set()

    def either(name, other):  # the other name is that of Arm processors
        return first.get(name) or first.get(other) or ""

    return {"vendor": either("vendor_id", "CPU implementer") or None,
            "family": integer(either("cpu family", "CPU architecture")), "model": integer(either("model", "CPU part")),
            "stepping": integer(either("stepping", "CPU revision")),
            "sockets": len({value for key, value in lines if key == "physical id"}) or None,
            "cores": len(cores) or None}


def clocks():
    """The clocks of the CPU, of which a virtual machine tells the first at most."""
    folder = pathlib.Path("/sys/devices/system/cpu/cpu0/cpufreq")
    most = integer(first_line(folder / "cpuinfo_max_freq", ""))  # in kHz
    return {"cpu_mhz": integer(first_line("/proc/cpuinfo", "cpu MHz")), "cpu_max_mhz": most and most // 1000,
            "cpu_governor": first_line(folder / "scaling_governor", "") or None}


def gpu_line():
    """The name of the first GPU, its driver and GPU_CLOCKS, as nvidia-smi prints them; empty if there is none."""
    try:
        done = subprocess.run(["nvidia-smi", "--format=csv,noheader,nounits", "--query-gpu=name,driver_version,"
                               "clocks.sm,clocks.max.sm,clocks.mem,clocks.max.mem,power.limit"],
                              capture_output=True, text=True)
    except OSError:
        return ""
    return "" if done.returncode else done.stdout.partition("\n")[0]


def provenance(versions, gpu=None):
    """The machine, the commit and the date. `versions` are those of the packages by name; `gpu` describes the GPU, if
    its name is not enough."""
    name, driver, *speeds = (gpu_line().split(", ") + [""] * 7)[:7]
    gpu = gpu or name or None
    return {"cpu": first_line("/proc/cpuinfo", "model name") or platform.machine(), "hardware_threads": os.cpu_count(),
            "gpu": gpu, "os": first_line("/etc/os-release", "PRETTY_NAME") or platform.system(),
            "kernel": f"{platform.system()} {platform.release()}", "processor": processor(read("/proc/cpuinfo")),
            "clocks": clocks() | (dict(zip(GPU_CLOCKS, map(integer, speeds))) if gpu else {}),
            **({"gpu_driver": driver if driver[:1].isdigit() else None} if gpu else {}),
            "libraries": {package: version for package, version in versions.items() if package != "samesum"},
            "compiler": f"Python {platform.python_version()}", "flags": "none",
            "library_version": versions.get("samesum") or first_line(ROOT / "CITATION.cff", "version") or "0.0.0",
            "commit": commit(),
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")}


def header(experiment, question, options, versions, left_out, gpu=None):
    """The first line of a results file."""
    return {"kind": "study", "schema": 2, "experiment": experiment, "question": question, "mode": options.mode,
            "seed": options.seed, "filter": options.filter, "options": versions,
            **({"left_out": left_out} if left_out else {}), "provenance": provenance(versions, gpu)}


def header_beside(other, experiment, question, versions):
    """The first line of results that are compared with those of another file, which has the header `other`. Raises
    ValueError if they were measured on another host."""
    here = provenance(versions, other["provenance"]["gpu"])
    for name in HOST:
        there = other["provenance"].get(name, here[name])  # older files lack "processor"
        if there != here[name]:
            raise ValueError(f"the {name.replace('_', ' ')} of this host is {here[name]}, but {other['experiment']} "
                             f"ran on {there}: run it here")
    return other | {"experiment": experiment, "question": question, "filter": "", "options": versions,
                    "provenance": here}


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
