"""Do queries of DuckDB and PostgreSQL return one result when they are repeated, and what does an exact sum cost?

Two published queries, whose results are known to change, run again and again on one table, on all cores. The engine's
function and that of samesum's extension take turns:
  tpch    TPC-H's query 15 in DuckDB: the supplier with the largest revenue. The columns follow TPC-H's rules for
          them, with NumPy's random numbers. Prices and discounts are DOUBLE; TPC-H's are DECIMAL, which adds
          exactly. The query reads its view of revenues twice, and compares a sum with the largest one. DuckDB
          computes the view once, or, after SET disabled_optimizers='common_subplan', twice, as two statements do
  bird    question 1473 of BIRD's mini_dev in PostgreSQL with parallel workers: the average of a column of type
          real, of made rows. A temporary copy of the installed server runs in a temporary folder
  groups  the sums of groups of normal numbers in DuckDB, for several numbers of groups: the time alone
The columns are the number of runs; of runs without a row; of different results; of runs with the correctly rounded
result, which Python computes; the median time; and the method. Exact sums of groups are compared with those of
samesum.groupby_sum, bit by bit, before they are timed.

What cannot be measured is left out, and a line says so. Writes DIR/databases.jsonl, in the form that
harness/results.schema.json describes. Exits with 0; with 1 if samesum broke its promise or did not round correctly;
with 2 for wrong usage, and if nothing can be measured.
"""

import contextlib
import fnmatch
import fractions
import importlib
import math
import re
import sys
import time

import postgresql_server
import study

QUESTION = "Do queries of databases return one result, and what does an exact sum cost?"
# mode: scale of TPC-H, runs of it, runs of BIRD's question, rows with groups, numbers of groups, rounds
SIZES = {"quick": (0.1, 20, 10, 1_000_000, (1, 1000, 100_000), 5),
         "full": (1, 100, 100, 20_000_000, tuple(10**i for i in range(8)), 11)}
ROWS_OF_BIRD = 600_000  # that fill enough pages for parallel workers
TPCH, BIRD = "TPC-H query 15", "BIRD question 1473"
EXACT = "sum/exact/fp64@cpu"
INSTALL = "pip install . --config-settings=cmake.define.SAMESUM_SQL_FETCH=ON"


# --- measuring ------------------------------------------------------------------------------------------------------


def in_turns(calls, turns, rounds):
    """{name: [(result, seconds) of each round, …]}, after a call of each that is not timed."""
    for call in calls.values():
        call()
    turns.rounds = rounds
    found = {name: [] for name in calls}
    for order in turns.orders(calls):
        for name in order:
            start = time.perf_counter()
            result = calls[name]()
            found[name].append((result, time.perf_counter() - start))
    return found


def of_method(method):
    return {"method": method, "promise": "none" if method.endswith("@peer") else "order_free"}


# How a row combines what the processes found; each process makes `runs` runs.
WORST = {"without_row": max, "distinct_bits": max, "correct": min, "workers": min, "broken": max}


def query_row(about, method, found, expected, workers, turns):
    """The row of a query with the results of its runs, which are None without a row."""
    results = [result for result, _ in found]
    distinct, key = {*results} - {None}, {"kind": "query", **of_method(method), **about}
    here = {"runs": len(found), "without_row": results.count(None), "distinct_bits": len(distinct),
            "correct": results.count(expected), "workers": workers,
            "broken": key["promise"] != "none" and len({*results}) > 1}
    times = study.times(*turns.completed(key, [seconds for _, seconds in found]), turns=turns.number)
    before = turns.row(key)
    here |= {name: worst(here[name], before.get(name, here[name])) for name, worst in WORST.items()}
    return {**key, **times, **here}


# --- TPC-H's query 15 -------------------------------------------------------------------------------------------------

FIRST, PAST = "1996-01-01", "1996-04-01"
REVENUE = ("CREATE VIEW revenue_{0} AS SELECT l_suppkey AS supplier_no, "
           "{0}(l_extendedprice * (1 - l_discount)) AS total_revenue FROM lineitem "
           f"WHERE l_shipdate >= DATE '{FIRST}' AND l_shipdate < DATE '{PAST}' GROUP BY l_suppkey")
QUERY_15 = ("SELECT s_suppkey, s_name, s_address, s_phone, total_revenue FROM supplier, revenue_{0} "
            "WHERE s_suppkey = supplier_no AND total_revenue = (SELECT max(total_revenue) FROM revenue_{0}) "
            "ORDER BY s_suppkey")
SETTINGS = {"view computed once": "", "view computed twice": "common_subplan"}


def line_items(scale, seed):
    """The columns of lineitem that the query needs, and the number of suppliers (TPC-H 3.0.1, section 4.2.3)."""
    import numpy as np
    rng, suppliers = np.random.default_rng(seed), round(10_000 * scale)
    n = 600 * suppliers
    part, which = rng.integers(1, 20 * suppliers + 1, n), rng.integers(0, 4, n)
    retail = 90_000 + part // 10 % 20_001 + 100 * (part % 1000)
    ordered = np.datetime64("1992-01-01") + rng.integers(0, 2406, n)
    return {"l_suppkey": ((part + which * (suppliers // 4 + (part - 1) // suppliers)) % suppliers + 1).astype(np.int32),
            "l_extendedprice": rng.integers(1, 51, n) * retail / 100, "l_discount": rng.integers(0, 11, n) / 100,
            "l_shipdate": (ordered + rng.integers(1, 122, n)).astype("datetime64[us]")}, suppliers


def largest_revenue(items):
    """(supplier, revenue) with the largest correctly rounded sum."""
    import numpy as np
    chosen = (items["l_shipdate"] >= np.datetime64(FIRST)) & (items["l_shipdate"] < np.datetime64(PAST))
    keys, terms = items["l_suppkey"][chosen], (items["l_extendedprice"] * (1 - items["l_discount"]))[chosen]
    order = np.argsort(keys)
    found, starts = np.unique(keys[order], return_index=True)
    return max(((int(key), math.fsum(part)) for key, part in zip(found, np.split(terms[order], starts[1:]))),
               key=lambda pair: pair[1])


def query_15(connection, options, turns):
    """Yields the rows of both settings."""
    scale, runs, *_ = SIZES[options.mode]
    items, suppliers = line_items(scale, options.seed)
    connection.execute("CREATE TABLE lineitem AS SELECT * REPLACE (l_shipdate::DATE AS l_shipdate) FROM items")
    connection.execute("CREATE TABLE supplier AS SELECT i::INTEGER AS s_suppkey, printf('Supplier#%09d', i) AS s_name, "
                       "printf('Street %d', i) AS s_address, printf('11-%07d', i) AS s_phone "
                       f"FROM range(1, {suppliers + 1}) AS r(i)")
    methods, expected = {"sum": "duckdb/fp64@peer", "exact_sum": EXACT}, largest_revenue(items)
    [(threads,)] = connection.execute("SELECT current_setting('threads')").fetchall()
    for function in methods:
        connection.execute(REVENUE.format(function))

    def run(function):
        found = connection.execute(QUERY_15.format(function)).fetchall()
        return (found[0][0], found[0][-1]) if found else None
    for setting, disabled in SETTINGS.items():
        connection.execute(f"SET disabled_optimizers = '{disabled}'")
        about = {"case": TPCH, "setting": setting, "seed": options.seed, "n": len(items["l_suppkey"]),
                 "bins": suppliers}
        found = in_turns({f: lambda f=f: run(f) for f in methods}, turns, runs)
        for function, method in methods.items():
            yield query_row(about, method, found[function], expected, threads, turns)
    connection.execute("RESET disabled_optimizers")


# --- BIRD's question 1473 ---------------------------------------------------------------------------------------------

QUESTION_1473 = ("SELECT {}(T2.Consumption) / NULLIF(12, 0) FROM customers AS T1 INNER JOIN yearmonth AS T2 "
                 "ON T1.CustomerID = T2.CustomerID WHERE SUBSTR(T2.Date, 1, 4) = '2013' AND T1.Segment = 'SME'")


def consumptions(seed):
    """The rows of both tables; consumptions are floats."""
    import numpy as np
    rng, customers = np.random.default_rng(seed), ROWS_OF_BIRD // 12
    segments = rng.choice(["SME", "LAM", "KAM"], customers, p=[0.8, 0.15, 0.05])
    who = rng.integers(0, customers, ROWS_OF_BIRD)
    dates = [f"{year}{month:02}" for year in (2012, 2013) for month in range(1, 13)]
    when = rng.integers(0, len(dates), ROWS_OF_BIRD)
    values = np.exp(7 + 2 * rng.standard_normal(ROWS_OF_BIRD)).astype(np.float32)
    yearmonth = [(int(w), dates[d], float(v)) for w, d, v in zip(who, when, values)]
    return list(enumerate(segments.tolist())), yearmonth


def average(customers, yearmonth):
    """The answer with the correctly rounded average."""
    segment = dict(customers)
    terms = [v for who, date, v in yearmonth if date.startswith("2013") and segment[who] == "SME"]
    total = sum(int(math.ldexp(v, 149)) for v in terms)  # of multiples of the smallest float
    return float(fractions.Fraction(total, len(terms) << 149)) / 12


def copied(session, folder, table, rows):
    """Fills a table from a file in the folder of the server."""
    path = folder / f"{table}.csv"
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    session.run(f"COPY {table} FROM '{path}' (FORMAT csv)")


def question_1473(server, options, turns):
    """Yields the rows of the query."""
    customers, yearmonth = consumptions(options.seed)
    session = postgresql_server.Session(server)
    session.run("CREATE EXTENSION samesum")
    session.run("SET jit = off")  # compiling takes longer than the query, and changes no result
    session.run("CREATE TABLE customers (CustomerID bigint PRIMARY KEY, Segment text)")
    session.run("CREATE TABLE yearmonth (CustomerID bigint, Date text, Consumption real)")
    copied(session, server.folder, "customers", customers)
    copied(session, server.folder, "yearmonth", yearmonth)
    session.run("ANALYZE")
    methods, workers = {"avg": "postgresql/fp64@peer", "exact_avg": "mean/exact/fp64@cpu"}, {}
    for function in methods:
        plan = session.run("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) " + QUESTION_1473.format(function))
        workers[function] = int((re.search(r"Workers Launched: (\d+)", str(plan)) or [0, 0])[1])
    about = {"case": BIRD, "setting": "parallel workers", "seed": options.seed, "n": len(yearmonth), "bins": 1}
    found = in_turns({f: lambda f=f: float(session.run(QUESTION_1473.format(f))[0][0]) for f in methods}, turns,
                     SIZES[options.mode][2])
    session.close()
    expected = average(customers, yearmonth)
    for function, method in methods.items():
        yield query_row(about, method, found[function], expected, workers[function], turns)


# --- sums of groups ---------------------------------------------------------------------------------------------------


def sums_of_groups(connection, options, turns):
    """Yields the rows of each number of groups."""
    import numpy as np
    import samesum
    *_, n, numbers, rounds = SIZES[options.mode]
    rng = np.random.default_rng(options.seed)
    x = rng.standard_normal(n)
    for groups in numbers:
        k = rng.integers(0, groups, n, np.int32)
        columns = {"k": k, "x": x}  # noqa: F841, DuckDB finds it by its name
        connection.execute("CREATE OR REPLACE TABLE t AS SELECT * FROM columns")
        found = connection.execute("SELECT exact_sum(x) AS s FROM t GROUP BY k ORDER BY k").fetchnumpy()["s"]
        is_right = np.asarray(found).tobytes() == samesum.groupby_sum(k, x)[1].tobytes()
        queries = {"sum": "duckdb/fp64@peer", "exact_sum": EXACT}
        times = in_turns({f: lambda f=f: connection.execute(
            f"SELECT max(s) FROM (SELECT {f}(x) AS s FROM t GROUP BY k)").fetchall() for f in queries}, turns, rounds)
        for function, method in queries.items():
            key = {"kind": "grouping", **of_method(method), "data": "normal", "seed": options.seed, "n": n,
                   "bins": groups}
            seconds = study.times(*turns.completed(key, [s for _, s in times[function]]), turns=turns.number)
            yield {**key, **seconds, "verified": is_right if method == EXACT else None}
    connection.execute("DROP TABLE IF EXISTS t")


# --- the experiment ---------------------------------------------------------------------------------------------------


class Engines:
    """The engines that are there, their versions, and a line for each part that is left out."""

    def __init__(self, wanted, stack):
        self.connection = self.server = None
        self.versions, self.left_out = {}, []
        self.parts = [part for part in ("tpch", "groups", "bird") if fnmatch.fnmatch(part, wanted or "*")]
        if {"tpch", "groups"} & {*self.parts}:
            self.try_duckdb(stack)
        if "bird" in self.parts:
            self.try_postgresql(stack)
        self.parts = [part for part in self.parts if (self.server if part == "bird" else self.connection)]

    def try_duckdb(self, stack):
        package, how = "duckdb", "pip install -r experiments/requirements-frames.txt"
        try:
            duckdb = importlib.import_module(package)
            package, how = "samesum", INSTALL
            samesum = importlib.import_module(package)
            connection = stack.enter_context(duckdb.connect(config={"allow_unsigned_extensions": "true"}))
            samesum.sql.load(connection)
        except ImportError as error:
            self.left_out.append(f"DuckDB: {error}; {how}")
        except (RuntimeError, duckdb.Error) as error:  # they name the remedy
            self.left_out.append(f"DuckDB: {error}")
        else:
            self.connection = connection
            self.versions |= {"duckdb": duckdb.__version__, "samesum": samesum.__version__}

    def try_postgresql(self, stack):
        if not (study.ROOT / "build/postgresql/extension/samesum.so").exists():
            print("building the extension of PostgreSQL, once", file=sys.stderr)
        try:
            self.server = postgresql_server.Server()
        except (postgresql_server.Absent, RuntimeError) as why:
            self.left_out.append(f"PostgreSQL: {why}")
        else:
            stack.callback(self.server.stop)
            self.versions["postgresql"] = self.server.version

    def measured(self, options, turns):
        for part in self.parts:
            if part == "tpch":
                yield from query_15(self.connection, options, turns)
            elif part == "groups":
                yield from sums_of_groups(self.connection, options, turns)
            else:
                yield from question_1473(self.server, options, turns)


def text_of(r):
    if r["kind"] == "grouping":
        about = f"sums of {r['bins']:,} groups of {r['n']:,} numbers"
        return f"{about:90}{r['seconds'] * 1e3:10.3f} ms  {r['method']}"
    return (f"{r['case']:18} {r['setting']:19} {r['runs']:4} runs {r['without_row']:4} without a row "
            f"{r['distinct_bits']:4} results {r['correct']:4} correct {r['seconds'] * 1e3:10.3f} ms  {r['method']}")


def main(arguments):
    parser = study.parser_of("databases", __doc__, "", "--filter tpch", "--full --out build/study")
    study.add_options(parser, "databases", "seconds", "20 million rows in up to 10 million groups, minutes",
                      "measure only these parts: tpch, bird, groups")
    options = study.parsed(parser, arguments)
    if options.processes > 1 and not options.process:
        return study.in_processes(__file__, arguments, options.processes)
    try:
        numpy = importlib.import_module("numpy")
    except ImportError as error:
        print(f"databases.py: {error}; pip install numpy", file=sys.stderr)
        return 2
    with contextlib.ExitStack() as stack:
        engines = Engines(options.filter, stack)
        study.say_left_out(options, engines.left_out)
        if not engines.parts:
            return study.nothing_to_measure("databases", engines.left_out, f"no part is named {options.filter!r}")
        header = study.header("databases", QUESTION, options, engines.versions | {"numpy": numpy.__version__})
        rows = study.complete(options, header, engines.left_out, text_of, lambda earlier: engines.measured(
            options, study.Turns(options, earlier)))
    wrong = [r for r in rows if r["promise"] != "none"
             and (not r["verified"] if r["kind"] == "grouping" else r["broken"] or r["correct"] < r["runs"])]
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
