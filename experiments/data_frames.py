"""How many answers do DuckDB, polars, pandas, pyarrow and NumPy give for sums and group sums of a table, how wrong are
they, and how fast? samesum takes part beside them.

Each row is one sum, or one call for the sums of all groups, of fp64 numbers, called repeatedly while one thing
changes:
  runs         nothing; the library chooses its threads
  threads      the number of threads: 1, 2 and all, where the library has such a setting
  chunks       the number of chunks of the column: 1, 7 and 61, where the library has columns in chunks
  permutation  the order of the rows of the table
The columns are the number of calls; the number of different results (the sums of all groups together are one result);
the largest error of a result in units in the last place (ulps) of the correctly rounded one; the median time of a call,
which has run once before; and the method. Exact results are sums of integers, made by NumPy and Python. Data: "normal",
the standard normal distribution, and "log-normal", e^(3z) for normal z, which are positive as prices are. Keys are
uniform integers.

A library that is not installed is left out, and a line says so. Writes DIR/data_frames.jsonl, in the form that
harness/results.schema.json describes. Exits with 0; with 1 if samesum broke its promise or did not round correctly;
with 2 for wrong usage.
"""

import argparse
import contextlib
import fnmatch
import fractions
import importlib
import importlib.metadata
import json
import math
import os
import subprocess
import sys
import time

import study

QUESTION = "How many answers do data frames give for a sum, how wrong are they, and how fast?"
THREADS, CHUNKS = sorted({1, 2, os.cpu_count() or 1}), (1, 7, 61)
# mode: elements, keys, calls for a sum, calls for group sums, calls in another order
SIZES = {"quick": (1_000_000, 1000, 20, 8, 3), "full": (20_000_000, 1000, 20, 8, 4)}
SUM, GROUPS = "sum", "group_sum"


# --- the libraries: each makes calls for the sum of x, and for the sums of x by k in the order of the keys -------------


class NumPy:
    """np.sum, and np.bincount with weights."""

    name, package, has_threads, has_chunks = "numpy", "numpy", False, False

    def __init__(self):
        self.lib = importlib.import_module(self.package)

    @contextlib.contextmanager
    def threads(self, count):
        yield

    def calls(self, k, x, groups, chunks):
        return {SUM: lambda: self.lib.sum(x), GROUPS: lambda: self.lib.bincount(k, x, groups)}


class Pandas(NumPy):
    """Series.sum and groupby(…).sum."""

    name = package = "pandas"

    def calls(self, k, x, groups, chunks):
        frame = self.lib.DataFrame({"k": k, "x": x})
        return {SUM: lambda: frame["x"].sum(), GROUPS: lambda: frame.groupby("k")["x"].sum().to_numpy()}


class Arrow(NumPy):
    """pyarrow.compute.sum and Table.group_by."""

    name, package, has_threads, has_chunks = "pyarrow", "pyarrow", True, True

    def __init__(self):
        super().__init__()
        self.compute = importlib.import_module("pyarrow.compute")

    @contextlib.contextmanager
    def threads(self, count):
        before = self.lib.cpu_count()
        self.lib.set_cpu_count(count)
        yield
        self.lib.set_cpu_count(before)

    def table(self, k, x, chunks):
        columns = {"k": pieces(k, chunks), "x": pieces(x, chunks)}
        return self.lib.table({name: self.lib.chunked_array(parts) for name, parts in columns.items()})

    def calls(self, k, x, groups, chunks):
        table = self.table(k, x, chunks)

        def by_key():
            found = table.group_by("k").aggregate([("x", "sum")])
            return found["x_sum"].to_numpy()[found["k"].to_numpy().argsort()]
        return {SUM: lambda: self.compute.sum(table["x"]).as_py(), GROUPS: by_key}


class Polars(NumPy):
    """Series.sum and group_by(…).agg(…sum()). The number of its threads is fixed when it is imported, so another one needs
    another process."""

    name, package, has_threads, has_chunks = "polars", "polars", True, True

    def calls(self, k, x, groups, chunks):
        pl = self.lib
        parts = [pl.DataFrame({"k": a, "x": b}) for a, b in zip(pieces(k, chunks), pieces(x, chunks))]
        frame = pl.concat(parts, rechunk=False)

        def by_key():
            return frame.group_by("k").agg(pl.col("x").sum()).sort("k")["x"].to_numpy()
        return {SUM: lambda: frame["x"].sum(), GROUPS: by_key}


class StreamingPolars(Polars):
    """The same queries by polars' streaming engine."""

    name = "polars/streaming"

    def calls(self, k, x, groups, chunks):
        pl = self.lib
        parts = [pl.DataFrame({"k": a, "x": b}) for a, b in zip(pieces(k, chunks), pieces(x, chunks))]
        sums, frame = pl.col("x").sum(), pl.concat(parts, rechunk=False).lazy()
        total, by_key = frame.select(sums), frame.group_by("k").agg(sums)
        return {SUM: lambda: total.collect(engine="streaming").item(),
                GROUPS: lambda: by_key.collect(engine="streaming").sort("k")["x"].to_numpy()}


class DuckDB(NumPy):
    """SELECT sum(x), and GROUP BY, of a table of the database."""

    name, package, has_threads, has_chunks = "duckdb", "duckdb", True, False

    def __init__(self):
        super().__init__()
        self.connection = self.lib.connect()

    @contextlib.contextmanager
    def threads(self, count):
        self.connection.execute(f"SET threads = {count}")
        yield
        self.connection.execute("RESET threads")

    def calls(self, k, x, groups, chunks):
        columns = {"k": k, "x": x}  # noqa: F841, DuckDB finds it by its name
        self.connection.execute("CREATE OR REPLACE TABLE t AS SELECT * FROM columns")

        def by_key():
            return self.connection.execute("SELECT k, sum(x) AS s FROM t GROUP BY k ORDER BY k").fetchnumpy()["s"]
        return {SUM: lambda: self.connection.execute("SELECT sum(x) FROM t").fetchone()[0], GROUPS: by_key}


class Samesum(NumPy):
    """samesum.sum and samesum.groupby_sum, exact."""

    name, package, has_threads, has_chunks = "samesum", "samesum", True, True
    count = 0

    def __init__(self):
        super().__init__()
        try:
            self.pyarrow = importlib.import_module("pyarrow")
        except ImportError:
            self.has_chunks = False

    @contextlib.contextmanager
    def threads(self, count):
        self.count = count
        yield
        self.count = 0

    def calls(self, k, x, groups, chunks):
        column = self.pyarrow.chunked_array(pieces(x, chunks)) if chunks > 1 else x
        calls = {SUM: lambda: self.lib.sum(column, threads=self.count)}
        if chunks == 1:
            calls[GROUPS] = lambda: self.lib.groupby_sum(k, x)[1]
        return calls


LIBRARIES = (DuckDB, Polars, StreamingPolars, Pandas, Arrow, NumPy, Samesum)


def method(library, operation):
    if library.name == "samesum":
        return "sum/exact/fp64@cpu" if operation == SUM else "scatter_add/exact/fp64@cpu"
    return f"{library.name}/fp64@peer"


def pieces(a, count):
    """Consecutive parts of an array, of about one length."""
    cuts = [len(a) * i // count for i in range(count + 1)]
    return [a[i:j] for i, j in zip(cuts, cuts[1:])]


# --- data and exact results -----------------------------------------------------------------------------------------


def made(name, n, groups, seed):
    """Keys and elements."""
    import numpy as np
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n)
    return rng.integers(0, groups, n), np.exp(3 * x) if name == "log-normal" else x


def exact_sums(k, x, groups):
    """The exact sum of each group, as fractions: integers are added for each exponent that occurs."""
    import numpy as np
    scaled, exponents = np.frexp(x)
    integers = (scaled * 2**53).astype(np.int64)
    sums = [fractions.Fraction(0)] * groups
    for exponent in np.unique(exponents):
        here = exponents == exponent
        keys = k[here]
        for part, shift in ((integers[here] >> 27, 27), (integers[here] & (2**27 - 1), 0)):
            added = np.bincount(keys, part, groups)  # of fewer than 2^26 integers below 2^27, hence exact
            unit = fractions.Fraction(2) ** (int(exponent) - 53 + shift)
            sums = [s + int(a) * unit for s, a in zip(sums, added)]
    return sums


def errors_of(found, exact):
    """(number of correctly rounded results, largest error in ulps)"""
    correct, largest = 0, 0.0
    for value, wanted in zip(found, exact, strict=True):
        rounded = float(wanted)
        correct += value == rounded
        largest = max(largest, float(abs(fractions.Fraction(value) - wanted) / fractions.Fraction(math.ulp(rounded))))
    return correct, largest


# --- measuring ------------------------------------------------------------------------------------------------------


def called(call, times):
    """[(results as bytes, seconds), …] of several calls, after one that is not timed."""
    import numpy as np
    call()
    found = []
    for _ in range(times):
        start = time.perf_counter()
        result = call()
        found.append((np.atleast_1d(np.asarray(result, np.float64)).tobytes(), time.perf_counter() - start))
    return found


# How a row combines what the processes found; each process makes `runs` calls.
WORST = {"distinct_bits": max, "correct": min, "largest_ulps": max, "broken": max}


def row(library, operation, about, exact, axis, found, turns):
    import numpy as np
    results = {bits for bits, _ in found}
    errors = [errors_of(np.frombuffer(bits).tolist(), exact) for bits in results]
    promise = "order_free" if library.name == "samesum" else "none"
    key = {"kind": "frame", "method": method(library, operation), "promise": promise, "operation": operation,
           "input_format": "fp64", **about, "axis": axis}
    here = {"runs": len(found), "distinct_bits": len(results), "results": len(exact), "correct": min(c for c, _ in errors),
            "largest_ulps": max(u for _, u in errors), "broken": promise != "none" and len(results) > 1}
    turns.number += 1
    times = study.times(*turns.completed(key, [seconds for _, seconds in found]), turns=turns.number)
    before = turns.row(key)
    return {**key, **times, **here, **{name: worst(here[name], before.get(name, here[name])) for name, worst in WORST.items()}}


def in_process(threads, options):
    """What `worker` returns in a process whose polars has that number of threads."""
    done = subprocess.run([sys.executable, __file__, "--worker", json.dumps(options)], capture_output=True, text=True,
                          env=os.environ | {"POLARS_MAX_THREADS": str(threads)}, check=True)
    return [[(bytes.fromhex(bits), seconds) for bits, seconds in found] for found in json.loads(done.stdout)]


def worker(options):
    """The results of polars for the numbers of calls, as JSON."""
    name, data, n, groups, seed, *times = options
    k, x = made(data, n, groups, seed)
    calls = next(kind for kind in LIBRARIES if kind.name == name)().calls(k, x, groups, 1)
    print(json.dumps([[(bits.hex(), seconds) for bits, seconds in called(calls[operation], count)]
                      for operation, count in zip((SUM, GROUPS), times)]))


def measured(library, data, size, seed, k, x, of_groups, turns):
    """Yields the rows of a library on a data set, of which the sums of groups are known."""
    n, groups, *times, orders = size
    exact = {SUM: [sum(of_groups)], GROUPS: of_groups}
    about = {operation: {"data": data, "seed": seed, "n": n, "bins": bins}
             for operation, bins in ((SUM, 1), (GROUPS, groups))}

    def rows(axis, found):
        for operation in found:
            yield row(library, operation, about[operation], exact[operation], axis, found[operation], turns)

    calls = library.calls(k, x, groups, 1)
    yield from rows("runs", {o: called(calls[o], count) for o, count in zip((SUM, GROUPS), times)})
    if library.has_threads:
        found = {SUM: [], GROUPS: []}
        for count in THREADS:
            if library.package == "polars":
                by_operation = in_process(count, [library.name, data, n, groups, seed, 2, 2])
            else:
                with library.threads(count):
                    by_operation = [called(calls[o], 2) for o in (SUM, GROUPS)]
            for operation, results in zip((SUM, GROUPS), by_operation):
                found[operation] += results
        if library.name == "samesum":
            del found[GROUPS]  # groupby_sum has no such option
        yield from rows("threads", found)
    if library.has_chunks:
        found = {}
        for count in CHUNKS:
            for operation, call in library.calls(k, x, groups, count).items():
                found.setdefault(operation, []).extend(called(call, 2))
        yield from rows("chunks", {o: f for o, f in found.items() if len(f) == 2 * len(CHUNKS)})
    rng, found = importlib.import_module("numpy").random.default_rng(seed + 1), {SUM: [], GROUPS: []}
    for _ in range(orders):
        order = rng.permutation(n)
        for operation, call in library.calls(k[order], x[order], groups, 1).items():
            found[operation] += called(call, 1)
    yield from rows("permutation", found)


# --- the experiment ---------------------------------------------------------------------------------------------------


def loaded(names):
    """The libraries that are installed, and a line for each that is not."""
    found, left_out = [], []
    for kind in LIBRARIES:
        if not fnmatch.fnmatch(kind.name, names or "*"):
            continue
        try:
            library = kind()
            library.version = getattr(library.lib, "__version__", None) or importlib.metadata.version(kind.package)
            found.append(library)
        except ImportError as error:
            how = "pip install ." if kind.name == "samesum" else "pip install -r experiments/requirements-frames.txt"
            left_out.append(f"{kind.name}: {error}; {how}")
    return found, left_out


def measured_on_all_data(libraries, options, turns):
    n, groups, *_ = size = SIZES[options.mode]
    for data in ("normal", "log-normal"):
        k, x = made(data, n, groups, options.seed)
        exact = exact_sums(k, x, groups)
        for library in libraries:
            yield from measured(library, data, size, options.seed, k, x, exact, turns)


def text_of(r):
    return (f"{r['data']:10} {r['operation']:9} {r['axis']:11} {r['runs']:4} calls {r['distinct_bits']:4} results "
            f"{r['largest_ulps']:12.3g} ulps {r['seconds'] * 1e3:10.3f} ms  {r['method']}")


def main(arguments):
    parser = study.parser_of("data_frames", __doc__, "", "--full --out build/study")
    study.add_options(parser, "data_frames", "a million rows", "20 million rows, minutes", "measure only these libraries")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = study.parsed(parser, arguments)
    if options.worker:
        worker(json.loads(options.worker))
        return 0
    if options.processes > 1 and not options.process:
        return study.in_processes(__file__, arguments, options.processes)
    libraries, left_out = loaded(options.filter)
    study.say_left_out(options, left_out)
    if not libraries:
        print("data_frames.py: no library is there to be measured; install NumPy and others: "
              "pip install -r experiments/requirements-frames.txt", file=sys.stderr)
        return 2
    header = study.header("data_frames", QUESTION, options,
                          {library.package: str(library.version) for library in libraries})
    rows = study.complete(options, header, left_out, text_of, lambda earlier: measured_on_all_data(
        libraries, options, study.Turns(options, earlier)))
    ours = [r for r in rows if r["promise"] != "none"]
    return int(any(r["broken"] or r["correct"] < r["results"] for r in ours))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
