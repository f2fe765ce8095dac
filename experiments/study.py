"""What the experiments in Python share: the times of calls that take turns, and the results file with its header.

Times vary from process to process. With --processes N, an experiment starts itself N times, one process after the other:
each adds its rounds to those in the rows of the results file, and computes all other fields of times from the rounds of all
processes.
"""

import argparse
import datetime
import itertools
import json
import os
import pathlib
import platform
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "notebooks"))
import timing  # noqa: E402

HOST = ("cpu", "processor", "hardware_threads", "os", "kernel")  # what tells hosts apart, in a provenance
GPU_CLOCKS = ("gpu_sm_mhz", "gpu_sm_max_mhz", "gpu_memory_mhz", "gpu_memory_max_mhz", "gpu_power_limit_w")


UNIT_ROUNDOFF = {"fp16": 2**-11, "bf16": 2**-8, "fp32": 2**-24, "fp64": 2**-53}


def prefix_sums(numpy, terms, u):
    """The sums s_k of the first terms along the last axis, and how far rounded ones may be from them: by
    4u (sqrt(n) max|s_k| + sum|x|), as harness/verify.hpp explains."""
    sums, count = terms.cumsum(-1), numpy.arange(1, terms.shape[-1] + 1)
    return sums, 4 * u * (numpy.sqrt(count) * numpy.maximum.accumulate(abs(sums), -1) + abs(terms).cumsum(-1))


def rounded(seconds):
    """Seconds with the five digits that results files have."""
    return [float(f"{s:.4e}") for s in seconds]


def times(*processes, turns):
    """The fields of times: those of one row, from the seconds of its rounds in each process. Only rows that were measured in
    turns share the number `turns`."""
    rounds = [rounded(seconds) for seconds in processes]
    middle, low, high = timing.median_interval(rounds)
    return {"seconds": middle, "low": low, "high": high, "turns": turns, "rounds": rounds}


def ratio_of_rounds(slow, fast):
    """The median of the ratios, round by round, of two rows that were measured in turns."""
    return timing.median_interval([[s / f for s, f in zip(*process)] for process in zip(slow, fast)])[0]


def identity(row):
    """The fields that identify a row, which precede its times."""
    return json.dumps({name: row[name] for name in itertools.takewhile("seconds".__ne__, row)})


class Turns:
    """The orders of the rounds of this process, and the rows of earlier processes."""

    def __init__(self, options, earlier, rounds=1):
        self.rounds, self.number = rounds, 0
        self.random = random.Random(f"{options.seed} {options.process}")
        self.earlier = {identity(r): r for r in earlier}

    def orders(self, calls):
        """Yields the names of the calls in another random order for each round. Their rows share a new number."""
        self.number += 1
        for _ in range(self.rounds):
            yield self.random.sample([*calls], len(calls))

    def row(self, key):
        """The row with this key of earlier processes; an empty one if there is none."""
        return self.earlier.get(identity(key), {})

    def completed(self, key, seconds):
        """The rounds of all processes in the row with this key, those of this process last."""
        return [*self.row(key).get("rounds", []), rounded(seconds)]


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


def header(experiment, question, options, versions, gpu=None):
    """The first line of a results file, but for what is left out."""
    return {"kind": "study", "schema": 2, "experiment": experiment, "question": question, "mode": options.mode,
            "seed": options.seed, "filter": options.filter,
            "options": versions | ({"processes": options.processes} if options.processes > 1 else {}),
            "provenance": provenance(versions, gpu)}


def earlier_rows(options, header):
    """The rows to which this process adds its rounds: those of a file with this header."""
    path = options.out and options.out / f"{header['experiment']}.jsonl"
    if not options.process or not path.exists():
        return []

    def settings(header):
        return header | {"left_out": [], "provenance": header["provenance"] | {"date": "", "clocks": {}}}
    try:
        old, *rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        return rows if settings(old) == settings(header) else []
    except (ValueError, LookupError):
        return []


def complete(options, header, left_out, text_of, measured, at_once=False):
    """Prints the rows that `measured` yields, and writes them to the file that --out names, `at_once` after each row;
    returns them. `measured` is given the rows of earlier processes. If these have the rounds of this process, nothing
    is measured."""
    rows, earlier = [], earlier_rows(options, header)

    def keep():
        write(options.out, header["experiment"], [header | ({"left_out": left_out} if left_out else {}), *rows])
    is_new = any(len(r["rounds"]) < options.process for r in earlier if "rounds" in r) or not earlier
    for r in measured(earlier) if is_new else earlier:
        rows.append(r)
        print(json.dumps(r) if options.json else text_of(r), flush=True)
        if options.out and at_once:
            keep()
    if options.out and is_new:
        keep()
    return rows


def in_processes(script, arguments, count):
    """Runs an experiment in fresh processes, one after the other, of which the last prints. Returns the exit code."""
    for process in range(1, count + 1):
        silent = {"stdout": subprocess.DEVNULL} if process < count else {}
        code = subprocess.run([sys.executable, script, *arguments, "--process", str(process)], **silent).returncode
        if code not in (0, 1):
            return 2
    return code


def is_last(options):
    return options.process in (0, options.processes)


def header_beside(other, experiment, question, options, versions):
    """The first line of results for the arrays of another file, which has the header `other`. Raises ValueError if that
    ran on another host."""
    here = provenance(versions, other["provenance"]["gpu"])
    for name in HOST:
        there = other["provenance"].get(name, here[name])  # older files lack "processor"
        if there != here[name]:
            raise ValueError(f"the {name.replace('_', ' ')} of this host is {here[name]}, but {other['experiment']} "
                             f"ran on {there}: run it here")
    options = argparse.Namespace(mode=other["mode"], seed=other["seed"], filter="", processes=options.processes)
    return header(experiment, question, options, versions) | {"provenance": here}


def write(folder, experiment, objects):
    """Writes FOLDER/EXPERIMENT.jsonl completely, or leaves it as it was."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{experiment}.jsonl"
    temporary = path.with_name(path.name + ".part")
    temporary.write_text("".join(json.dumps(o, separators=(",", ":")) + "\n" for o in objects), encoding="utf-8")
    os.replace(temporary, path)


def at_least(least):
    """The type of an option that is an integer."""
    def number(text):
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"must be {least} or more")
        return int(text)
    return number


def say_left_out(options, lines):
    """Prints what cannot be measured, once for all processes."""
    for line in lines if is_last(options) else ():
        print(f"without {line}", file=sys.stderr)


def nothing_to_measure(experiment, left_out, unknown):
    """Prints that nothing can be measured and, if nothing was left out, that the filter is `unknown`. Returns the exit
    code.
    """
    print(f"{experiment}.py: nothing can be measured" + ("" if left_out else f": {unknown}"), file=sys.stderr)
    return 2


def parser_of(experiment, description, *examples):
    """A parser of the arguments of an experiment, whose help shows what `examples` of arguments look like."""
    return argparse.ArgumentParser(prog=f"{experiment}.py", description=description,
                                   formatter_class=argparse.RawDescriptionHelpFormatter,
                                   epilog="\n".join(["examples:", *(f"  {experiment}.py {e}".rstrip() for e in examples)]))


def add_options(parser, experiment, quick, full, filtered, has_times=True):
    """Adds the options of every experiment in Python; `quick`, `full` and `filtered` are the helps of three. Only times
    vary from process to process."""
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--quick", action="store_const", dest="mode", const="quick", help=f"{quick} (the default)")
    modes.add_argument("--full", action="store_const", dest="mode", const="full", help=full)
    parser.set_defaults(mode="quick")
    parser.add_argument("--seed", type=at_least(0), default=1, help="seed of the data and the orders (default: 1)")
    parser.add_argument("--filter", metavar="GLOB", default="", help=filtered)
    parser.add_argument("--out", metavar="DIR", type=pathlib.Path, help=f"write DIR/{experiment}.jsonl")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    if has_times:
        add_processes(parser)
    else:
        parser.set_defaults(processes=1, process=0)


def add_processes(parser):
    parser.add_argument("--processes", metavar="N", type=at_least(1), default=1,
                        help="times from N processes, one after the other (default: 1; with --out)")
    parser.add_argument("--process", type=int, default=0, help=argparse.SUPPRESS)  # the number of this one of them


def parsed(parser, arguments):
    """The options, checked."""
    options = parser.parse_args(arguments)
    if options.processes > 1 and not options.out:
        parser.error("--processes needs --out DIR, whose rows the processes complete")
    return options
