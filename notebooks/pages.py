"""Makes the tables of results that pages such as README.md show, from the committed results.

A page has a table between two comments, of which the first names it. Each table ends with its files, their commits, dates
and machines.
"""

import dataclasses
import math
import os
import re

import by_data
import consequences
import data_frames
import glossary
import phrases
import prices
import published
import python_speed
import results
import section
import spread_over_runs
import timing

PAGES = "README.md", "experiments/*.md", "lib/**/*.md"
MARKED = re.compile(r"(<!-- (\w+), made by notebooks/make\.py -->\n).*?(<!-- end of \2 -->\n)", re.S)
ABSENT = "–"  # what the file does not have


class Files:
    """The results files by name. It remembers which were used."""

    def __init__(self, found):
        self.by_name = {}
        for s in (s for some in found.values() for s in some):
            self.by_name.setdefault(s.path.name, s)
        self.used = []

    def rows(self, file, **fields):
        """The rows with these fields; None matches a row that has no such field. Unless a launch is named, calls were launched
        one by one. Results that are known to be wrong have no place in a table, nor have those of another host than the other
        results for the question."""
        if file not in self.by_name:
            raise results.Refused(f"{file}: is missing, and a table of a page shows its results")
        if file not in self.used:
            self.used.append(file)
        fields = {"launch": None} | fields
        return [r for r in self.by_name[file].rows if not self.by_name[file].other_host
                and r.get("verified") is not False and all(r.get(name) == value for name, value in fields.items())]

    def found(self, *files):
        """{question: [source, …]} with the rows of these files, in CUDA graphs too."""
        found = {}
        for file in files:
            usable = [*self.rows(file), *self.rows(file, launch="graph")]
            source = dataclasses.replace(self.by_name[file], rows=usable)
            question = next((q for q, parts in results.PARTS.items() if source.question in parts), source.question)
            found.setdefault(question, []).append(source)
        return found

    def row(self, file, **fields):
        """The only row with these fields, or None."""
        found = self.rows(file, **fields)
        if len(found) > 1:
            raise results.Refused(f"{file}: has {len(found)} rows with {fields}, and a table of a page shows one")
        return found[0] if found else None

    def sources(self, folder):
        """A paragraph on the files that were used, with links from a folder."""
        by_machine = {}
        for name in self.used:
            s = self.by_name[name]
            about = s.header["provenance"]
            gpu = re.sub(", driver for CUDA [0-9.]+", "", about["gpu"] or "")
            threads = phrases.plural(about["hardware_threads"], "hardware thread")
            machine = ", ".join(filter(None, [gpu, results.cpu_of(about), threads]))
            by_machine.setdefault(phrases.printable(machine), []).append(
                f"[{name.removesuffix('.jsonl')}]({os.path.relpath(s.path, folder)}) ({s.commit}, {about['date'][:10]})")
        return f"Results: {'; '.join(f'{machine}: ' + ', '.join(files) for machine, files in by_machine.items())}."


def table(columns, rows, text_columns=1):
    """Lines of Markdown."""
    return [f"| {' | '.join(map(str, cells))} |" for cells in (
        columns, ["---" if i < text_columns else "---:" for i in range(len(columns))], *rows)]


def name_of(method):
    """'`tree/plain`' for sum/tree/plain/fp32@cuda; 'reading alone'."""
    return "reading alone" if method == "read" else f"`{phrases.parts(method)[0]}`"


def two_to_the(n):
    return f"2^{n.bit_length() - 1}" if n & (n - 1) == 0 else f"{n:,}"


def time(r):
    return phrases.duration(r["seconds"], 2) if r else ABSENT


def speed(r):
    return phrases.number(r["gb_per_s"]).replace(",", "") if r else ABSENT


def without_empty(lines, first):
    """The lines that have a figure after the first columns."""
    return [line for line in lines if set(line[first:]) != {ABSENT}]


# --- different results --------------------------------------------------------------------------------------------

SPREAD, LENGTHS, REDUCTIONS, TORCH, SCANS, KEYS, TORCH_SCANS, TORCH_KEYS = (f"h200.{name}.jsonl" for name in (
    "spread_over_runs", "speed_vs_length", "speed_of_reductions", "torch_speed", "prefix_sums", "sums_by_key",
    "torch_prefix_sums", "torch_sums_by_key"))
# The results with prices.
ON_H200 = [f"h200.{name}.jsonl" for question in prices.KINDS for name in (question, *results.PARTS.get(question, []))]
PRICED = [*(f"epyc.{question}.jsonl" for question in prices.KINDS), *ON_H200]
SCAN = {"input_format": "fp32", "operation": "cumsum"}
BY_KEY = {"input_format": "fp32", "operation": "scatter_add", "keys": "uniform", "bins": 256}
# What is called, where its results were counted, where it was timed, and the methods of samesum beside CUB's.
CALLS = [("sum of {n} fp32 at {runs} addresses",
          (SPREAD, {"kind": "spread", "axis": "alignment", "data": "normal", "input_format": "fp32"}),
          (LENGTHS, {"kind": "speed", "caches": "hot", "data": "normal", "input_format": "fp32"}),
          ("tree/plain/fp32@cuda", "exact/fp32@cuda")),
         ("prefix sums of {n} fp32",
          (SCANS, {"kind": "repeats", "axis": "runs", "data": "normal"} | SCAN),
          (SCANS, {"kind": "reduction", "data": None, "grid": None} | SCAN),
          ("cumsum/prefix/plain/fp32@cuda", "cumsum/exact/fp32@cuda")),
         ("sums of {n} fp32 by 256 keys",
          (KEYS, {"kind": "repeats", "axis": "runs", "data": "normal"} | BY_KEY),
          (KEYS, {"kind": "reduction", "data": None, "grid": None, "inner": 1} | BY_KEY),
          ("scatter_add/exact/fp32@cuda",))]


def different_results(files):
    lines = []
    for what, (file, fields), (timed, of_times), ours in CALLS:
        rows = files.rows(file, **fields)
        for r in [r for r in rows if r["method"].startswith("cub/")] + [r for r in rows if r["method"] in ours]:
            when = files.row(timed, method=r["method"], n=r["n"], **of_times)
            lines.append([what.format(n=two_to_the(r["n"]), runs=r["runs"]), name_of(r["method"]),
                          f"{r['distinct_bits']} in {phrases.plural(r['runs'], 'call')}", time(when)])
    return table(["call", "method", "different results", "time"], lines, 2)


# --- speeds -------------------------------------------------------------------------------------------------------

HOT = {"kind": "speed", "caches": "hot", "input_format": "fp32", "data": "normal"}
MOST_PEERS = 4


def of_vectors(files, n, threads):
    """Rows of sums of fp32 in fp32."""
    return [r for r in files.rows(LENGTHS, n=n, threads=threads, **HOT) if r["method"] == "read" or "/fp32@" in r["method"]]


def of_reductions(files, **fields):
    return files.rows(REDUCTIONS, kind="reduction", input_format="fp32", data=None, grid=None, threads=0, **fields)


# Each row of the table: what is computed, its results, and how a cell shows one.
SPEEDS = [("sum of 2^20 fp32", lambda files: of_vectors(files, 1 << 20, 0), time),
          ("sum of 2^28 fp32", lambda files: of_vectors(files, 1 << 28, 0), speed),
          ("dot product of 2 × 2^28 fp32", lambda files: of_reductions(files, operation="dot", outer=1, n=1 << 28), speed),
          ("sums of 49152 rows of 1024 fp32", lambda files: of_reductions(files, operation="sum", outer=49152, n=1024), speed),
          ("prefix sums of 2^28 fp32", lambda files: files.rows(SCANS, kind="reduction", n=1 << 28, threads=0, data=None,
                                                                grid=None, **SCAN), time),
          ("sums of 2^26 fp32 by 256 keys", lambda files: files.rows(KEYS, kind="reduction", n=1 << 26, inner=1, threads=0,
                                                                     data=None, grid=None, **BY_KEY), time),
          ("one CPU core, sum of 2^26 fp32", lambda files: of_vectors(files, 1 << 26, 1), speed)]


def how_fast(files):
    lines = []
    for what, rows_of, shown in SPEEDS:
        rows = sorted(rows_of(files), key=lambda r: r["seconds"])

        def first(matches):
            return shown(next((r for r in rows if matches(r["method"])), None))
        peers = [f"{shown(r)}, {name_of(r['method'])}" for r in rows if phrases.is_peer(r["method"])]
        lines.append([what, first(lambda m: re.search(r"\b(tree|prefix)/plain/fp32@c", m)),
                      first(lambda m: re.search(r"\bexact/fp32@c", m)), "; ".join(peers[:MOST_PEERS]) or ABSENT,
                      first(lambda m: m == "read")])
    return table(["", "`tree/plain`", "`exact`", "other libraries and loops", "reading alone"], lines)


def sums_by_length(files):
    lengths = [1 << k for k in (12, 16, 20, 24, 26, 28, 30, 32)]
    by_length = {n: {r["method"]: r for r in of_vectors(files, n, 0)} for n in lengths}
    methods = list(dict.fromkeys(m for found in by_length.values() for m in found))
    lines = [[name_of(m), *((time if n <= 1 << 20 else speed)(by_length[n].get(m)) for n in lengths)] for m in methods]
    return table(["", *map(two_to_the, lengths)], without_empty(lines, 1))


def exact_by_format(files):
    data = "normal", "60 binades", "arbitrary bits"
    lines = []
    for format in results.FORMATS:
        fields = {"kind": "speed", "caches": "hot", "n": 1 << 28, "input_format": format}
        cells = [files.row(LENGTHS, method=f"exact/{format}@cuda", data=d, **fields) for d in data]
        lines.append([format, *map(speed, [*cells, files.row(LENGTHS, method="read", data="normal", **fields)])])
    return table(["", *data, "reading alone"], lines)


def beside_torch(files):
    """Speed as a multiple of that of PyTorch without torch.compile, a row for each operation, format and shape. All calls
    of a row took turns in one process, in CUDA graphs."""
    rows = files.rows(TORCH, kind="reduction", launch="graph")
    if not rows:
        return ["No committed results have samesum and PyTorch in one process: `experiments/torch_speed.py` measures them."]
    lines = []
    for operation, format, outer, n, inner in dict.fromkeys(
            tuple(r[name] for name in ("operation", "input_format", "outer", "n", "inner")) for r in rows):
        same = {"operation": operation, "input_format": format, "outer": outer, "n": n, "inner": inner,
                "launch": "graph"}
        wide = "fp64" if format == "fp64" else "fp32"
        function = {"moments": "var"}.get(operation, operation)
        torch = files.row(TORCH, method=f"torch/{function}/{format}@peer", **same)

        def cell(*names):
            found = (files.row(TORCH, method=name, **same) for name in names)
            return timing.short(next(filter(None, found), None), torch) or ABSENT
        shape = f"{n} × {inner}, columns" if inner > 1 else f"{outer} × {n}" if outer > 1 else two_to_the(n)
        ours = [cell(*(f"{operation}/{name}/{wide}@cuda" for name in names))
                for names in (("tree/plain", "tree"), ("pairwise/plain",), ("exact",))]
        lines.append([f"{operation}, {format}", shape, *ours, cell(f"torch/{function}_compiled/{format}@peer")])
    return table(["", "rows × columns", "`tree/plain`", "`pairwise/plain`", "`exact`", "PyTorch, compiled"],
                 without_empty(sorted(lines, key=lambda line: line[0]), 2), 2)


def vectors_beside_peers(files):
    rows = [r for r in of_reductions(files, outer=1, inner=1, n=1 << 28) if "/" in r["method"]]
    operations = dict.fromkeys(r["operation"] for r in rows if phrases.is_peer(r["method"]))
    return table(["operation", "method", "GB/s"], [
        [operation, name_of(r["method"]), speed(r)] for operation in operations for r in rows if r["operation"] == operation], 2)


def sums_on_a_cpu(files):
    cases = [(64, 1), (1 << 18, 1), (1 << 26, 1), (1 << 26, 2)]
    by_case = [{r["method"]: r for r in of_vectors(files, n, threads)} for n, threads in cases]
    methods = list(dict.fromkeys(m for found in by_case for m in found))
    lines = [[name_of(m), *((time if n == 64 else speed)(found.get(m)) for (n, _), found in zip(cases, by_case))]
             for m in methods]
    for data in ("60 binades", "arbitrary bits"):
        found = [files.row(LENGTHS, method="exact/fp32@cpu", n=n, threads=threads, **HOT | {"data": data})
                 for n, threads in cases]
        lines.append([f"`exact`, {data}", *map(speed, found)])
    return table(["", "64 elements", "2^18, in L2", "2^26, in DRAM", "2^26, two threads"], without_empty(lines, 1))


# --- prices -------------------------------------------------------------------------------------------------------

def priced(files):
    return files.found(*PRICED)


def prices_by_operation(files):
    """Of each place and operation: the median of each price on normal numbers, the worst, and in how many cases it is
    none."""
    lines = []
    for at, some in prices.cells_of(priced(files)).items():
        of_exact = prices.by_operation(some)
        for name in [*of_exact, *sorted({prices.operation(c.row) for c in some} - of_exact.keys())]:
            every = [c for c in some if prices.operation(c.row) == name]
            cells = [f"{value:.2f}" if value else ABSENT
                     for value in (prices.median(every, price) for price in ("everywhere_price", "exact_price"))]
            free = [prices.free(every, price) or ABSENT for price in ("everywhere_price", "exact_price")]
            lines.append([at, prices.name_of(name), cells[0], free[0], cells[1], free[1],
                          prices.in_words(prices.worst(of_exact[name]), count=two_to_the) if name in of_exact else ABSENT])
    return table(["machine", "operation", "same bits everywhere: median", "no longer in", "exact: median",
                  "no longer in", "exact: at most"], lines, 2)


def exact_by_data(files):
    """Time of exact methods relative to normal numbers: the largest ratio of each operation, device and data set."""
    pairs = prices.on_other_data(files.found(*ON_H200))
    sets = [data for data in glossary.DATA if any(by_data.data_of(r) == data for r, _ in pairs)]
    measured = {(*prices.kind(r), by_data.data_of(r)) for r, _ in pairs}
    slowest = prices.slowest(pairs, lambda r: (*prices.kind(r), by_data.data_of(r)))

    def shown(*key):
        if key in slowest:
            return f"{timing.ratio(*slowest[key]).of_times}, {prices.elements(slowest[key][0], two_to_the)}"
        return "none" if key in measured else ABSENT
    return table(["device", "operation", *sets], [
        [device, prices.name_of(operation), *(shown(device, operation, data) for data in sets)]
        for device, operation in sorted({key[:2] for key in measured})], 2)


def price_in_short(files):
    """In how many cases a promise costs no time, the worst, and the medians."""
    found = priced(files)
    return [prices.answer(found), "", *(f"- {phrases.capitalised(at)}. {prices.medians(some)}"
                                        + (f" {text}" if (text := prices.on_each_data([(at, some)])) else "")
                                        for at, some in prices.cells_of(found).items())]


def worst_prices(files):
    """The worst case of each operation, for each place."""
    cells = prices.cells_of(priced(files))
    return [f"- {phrases.capitalised(at)}. {text}" for at, some in cells.items()
            for text in [prices.worst_sentence(some)] if text]


# --- what others measured -----------------------------------------------------------------------------------------

ERRORS, CONSEQUENCES = "h200.error_vs_length.jsonl", "h200.consequences.jsonl"


def others_measured(files):
    return table(["question", "published", "here"], [
        ["By which power of n do runs of an fp64 sum with atomic additions move apart (largest relative spread; ± the "
         "standard error of a fit without spreads of 0)?",
         published.SPREAD_GROWTH.cited(), spread_growth(files)],
        ["How many results does a sum by key with atomic additions have?", published.SCATTER.cited(),
         results_by_key(files)],
        *variability(files),
        ["By which power of n does the error of a loop grow, relative to the sum of magnitudes?",
         published.ROUNDING_GROWTH.cited(), rounding_growth(files)],
        ["How long does a sum of 10^6 doubles take on one thread, relative to a simple loop?",
         published.EXACT_SUMS.cited(relative_times(published.EXACT_SUMS_SECONDS)), exact_sums(files)],
        ["How long does a dot product of doubles take with the same bits in any order, relative to the fastest?",
         published.REPRODUCIBLE_DOT.cited(), exact_dot(files)],
        ["How many iterations does a solver need when its sums depend on the run?", published.SOLVER.cited(),
         iterations(files)]], 3)


def spread_growth(files):
    rows = section.rows_with_place(files.found(SPREAD)["spread_over_runs"], "growth")
    powers = {}
    for (_, axis, format, data, method), (_, law) in spread_over_runs.growths(rows).items():
        if law and (axis, format) == ("runs", "fp64"):
            powers.setdefault(name_of(method), []).append(f"{law.exponent:.2f} ± {law.error:.2f} ({data})")
    texts = [f"{name} {phrases.listed(found)}" for name, found in powers.items()]
    return "; ".join([*texts, f"n up to {two_to_the(max(r['n'] for _, r in rows))}"]) if texts else ABSENT


def results_by_key(files):
    rows = files.rows(KEYS, kind="repeats", axis="runs", data="normal", **BY_KEY)
    methods = "scatter_add/atomic_element/plain/fp32@cuda", "scatter_add/exact/fp32@cuda"
    counts = [f"{r['distinct_bits']} in {phrases.plural(r['runs'], 'call')} of {name_of(m)}"
              for m in methods for r in rows if r["method"] == m]
    return f"{', '.join(counts)}, {two_to_the(rows[0]['n'])} fp32 by {BY_KEY['bins']} keys" if counts else ABSENT


def variability(files):
    """A line on the calls of PyTorch that were repeated; none without such results."""
    here = []
    for file in (TORCH_KEYS, TORCH_SCANS):
        rows = files.rows(file, kind="repeats", axis="runs") if file in files.by_name else []
        rows = [r for r in rows if "vermv_mean" in r]
        if rows:
            texts = [f"{name_of(r['method'])} {r['vermv_mean']:.2g} and {r['vc_mean']:.2g}" for r in rows]
            by = f" by {rows[0]['bins']} keys" if "bins" in rows[0] else ""
            here.append(f"{', '.join(texts)}, {two_to_the(rows[0]['n'])} fp32{by}")
    question = ("How far apart are results of an operator of PyTorch: mean relative difference (Vermv), and share "
                "of elements that differ (Vc)?")
    return [[question, "; ".join(p.cited() for p in published.VARIABILITY),
             f"against the first result: {'; '.join(here)}"]] if here else []


def rounding_growth(files):
    """The power of n between the least and the greatest length, from medians over seeds, which are shares of a bound
    that is proportional to √n."""
    powers = {}
    for format in ("fp32", "fp64"):
        for data in ("uniform", "uniform +-1"):
            rows = sorted(files.rows(ERRORS, kind="coverage", method=f"serial/plain/{format}@cuda", data=data,
                                     probability=0.9, marked=None), key=lambda r: r["n"])
            if len(rows) > 1 and all(r["median_share"] for r in rows):
                first, last = rows[0], rows[-1]
                power = 0.5 + math.log(last["median_share"] / first["median_share"]) / math.log(last["n"] / first["n"])
                powers.setdefault(format, []).append(f"{power:.2f} ({data})")
    return "; ".join(f"{format} {phrases.listed(found)}" for format, found in powers.items()) + (
        f"; medians of {phrases.plural(last['seeds'], 'seed')}, n from {two_to_the(first['n'])} to "
        f"{two_to_the(last['n'])}" if powers else ABSENT)


def relative_times(seconds):
    """'Kahan 4.03, xsum 3.33' for times by name, relative to the first."""
    first, *others = seconds
    return ", ".join(f"{name} {seconds[name] / seconds[first]:.3g}" for name in others)


def exact_sums(files):
    n = 1 << 20
    methods = "loop/fp64@peer", "boost_kahan/fp64@peer", "exact/fp64@cpu"
    found = {r["method"]: r for r in files.rows(LENGTHS, n=n, threads=1, **HOT | {"input_format": "fp64"})}
    if not set(methods) <= set(found):
        return ABSENT
    loop, *others = (found[m] for m in methods)
    times = ", ".join(f"{name_of(r['method'])} {timing.ratio(r, loop).of_times}" for r in others)
    return f"{times}; {two_to_the(n)} normal numbers"


def exact_dot(files):
    rows = files.rows(REDUCTIONS, kind="reduction", operation="dot", input_format="fp64", outer=1, n=1 << 20, inner=1,
                      threads=1, data=None)
    peers = [r for r in rows if phrases.is_peer(r["method"])]
    exact = [r for r in rows if r["method"] == "dot/exact/fp64@cpu"]
    if not peers or not exact:
        return ABSENT
    fastest = min(peers, key=lambda r: r["seconds"])
    return (f"{timing.ratio(exact[0], fastest).of_times} times with {name_of(exact[0]['method'])} as with "
            f"{name_of(fastest['method'])}, one thread; {two_to_the(fastest['n'])} normal numbers")


def iterations(files):
    rows = section.rows_with_place(files.found(CONSEQUENCES)["consequences"], "solver")
    at, r = consequences.widest(rows) or (None, None)
    if not r:
        return ABSENT
    same = phrases.listed(f"{n} ({', '.join(f'`{m}`' for m in methods)})"
                          for n, methods in consequences.steady(rows, at, r).items())
    return (f"{r['least_iterations']} to {r['most_iterations']} in {phrases.plural(r['runs'], 'run')} of conjugate "
            f"gradients with {name_of(r['method'])} in {r['input_format']}; in every run {same}")


# --- pages --------------------------------------------------------------------------------------------------------

def samesum_beside_numpy(files):
    sources = [s for s in files.by_name.values() if s.question == "python_speed"]
    files.used += [s.path.name for s in sources]
    return [python_speed.page_tables(sources)]


def group_sums(files):
    """Sums of groups, and of all elements, beside libraries of frames."""
    rows = files.rows("epyc.data_frames.jsonl", kind="frame", axis="runs", data="normal")
    sums = {data_frames.name(r): r for r in rows if r["bins"] == 1}
    groups = sorted((r for r in rows if r["bins"] > 1), key=lambda r: r["seconds"])
    return table(["", *(f"{r['n']:,} numbers in {r['bins']:,} groups" for r in groups[:1]), "in one sum"],
                 [[data_frames.name(r), time(r), time(sums.get(data_frames.name(r)))] for r in groups])


TABLES = {f.__name__: f for f in (different_results, how_fast, sums_by_length, exact_by_format, beside_torch,
                                  vectors_beside_peers, sums_on_a_cpu, prices_by_operation, exact_by_data,
                                  price_in_short, worst_prices, group_sums, samesum_beside_numpy, others_measured)}


def paths():
    """The pages that have a table of results."""
    return [path for pattern in PAGES for path in sorted(results.ROOT.glob(pattern))
            if MARKED.search(path.read_text(encoding="utf-8"))]


def text(path, found):
    """The text of a page with the tables of these results."""
    def made(mark):
        files = Files(found)
        lines = "\n".join(TABLES[mark[2]](files)).strip()
        dash = f" {ABSENT}: no comparable result in these files." if f"| {ABSENT} " in lines else ""
        about = timing.ends if re.search(r"\d \[\d", lines) else timing.age
        dash += f" {about([files.by_name[name] for name in files.used])}".rstrip()
        dash += f" {timing.UNDECIDED}: {timing.OPEN}." if re.search(rf"\d{re.escape(timing.UNDECIDED)}", lines) else ""
        return f"{mark[1]}\n{lines}\n\n{files.sources(path.parent)}{dash}\n\n{mark[3]}"
    return MARKED.sub(made, path.read_text(encoding="utf-8"))


def main():
    found = results.read(None, results.ROOT / "experiments/results")
    for path in paths():
        path.write_text(text(path, found), encoding="utf-8")


if __name__ == "__main__":
    main()
