"""The functions of the DuckDB extension have the bits of Python's fractions, in queries of every shape.

Usage: duckdb_extension.py EXTENSION [TABLES [SEED]]. Runs five random queries over each of so many random tables of up
to 25 rows (2000 take a minute), queries over a large one with several threads, wrong arguments, queries that are
cancelled or have too little memory, and a DuckDB of another version. Exits with 77 if Python has no package duckdb.
"""

import ctypes as c
import math
import random
import struct
import sys
import threading
import time

from exact_sql import COLUMNS, INTEGERS, ONE, REALS, TWO, bits, calls, expected, query, values

try:
    import duckdb
except ImportError:
    print("DuckDB: not tested: this Python has no package duckdb")
    sys.exit(77)

EXTENSION = sys.argv[1]


def connect(**options):
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true", **options})
    connection.load_extension(EXTENSION)
    return connection


def skip_other_versions():
    try:
        connect().close()
    except duckdb.Error as error:
        if "was not tested with DuckDB" not in str(error):
            raise
        print(f"DuckDB: not tested: {error}")
        sys.exit(77)


def as_float(value):
    return None if value is None else struct.unpack("f", struct.pack("f", value))[0]


def narrow(value):
    """The nearest float of 32 bits; that of a large number is infinite."""
    try:
        return as_float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def fill(connection, rng, n):
    """A table t of rows (k, g, x, y) of random types. Returns its rows."""
    columns, types = [list(range(n)), rng.choices(range(4), k=n)], ["INTEGER", "INTEGER"]
    for _ in "xy":
        types.append(rng.choice(["DOUBLE", "DOUBLE", "FLOAT", "BIGINT"]))
        columns.append(values(rng, n, INTEGERS if types[-1] == "BIGINT" else REALS))
        if types[-1] == "FLOAT":
            columns[-1] = list(map(narrow, columns[-1]))
    listed = ", ".join(f"unnest(${i + 1}::{t}[]) as {name}" for i, (name, t) in enumerate(zip(COLUMNS, types)))
    connection.execute(f"create or replace table t as select {listed}", columns)
    return [dict(zip(COLUMNS, row)) for row in zip(*columns)]


def compare(found, wanted, *what):
    assert [list(map(bits, row)) for row in found] == [list(map(bits, row)) for row in wanted], (*what, found, wanted)


def check_queries(connection, rng):
    connection.execute(f"set threads = {rng.randint(1, 4)}")
    rows = fill(connection, rng, rng.randint(0, 25))
    for _ in range(5):
        text, results = query(rng, lambda x: f"nullif({x}, 0)", lambda v: v != 0, is_duckdb=True)
        compare(connection.execute(text).fetchall(), results(rows), text, rows)


def check_large_tables(connection, rng):
    """Any number of threads and any order of the rows give the same bits, and those of fractions."""
    n = 300_000
    normal = [rng.gauss(0, 1) for _ in range(n)]
    wide = [math.ldexp(rng.random() - 0.5, rng.randint(-30, 30)) for _ in range(n)]
    connection.execute("create or replace table large as select unnest($1::DOUBLE[]) x, unnest($2::DOUBLE[]) y, "
                       "unnest(range($3)) k", [normal, wide, n])
    some = list(zip(normal, wide))[:1000]
    every = ", ".join(calls())
    compare(connection.execute(f"select {every} from (from large limit 1000)").fetchall(),
            [[expected(name, [row[:1] for row in some] if name in ONE else some) for name in ONE + TWO]])
    results = set()
    for threads in 1, 2, 4:
        connection.execute(f"set threads = {threads}")
        for order in "", "where k % 2 = 0 union all select * from large where k % 2 = 1", "order by hash(k)":
            results.add(tuple(connection.execute(f"select {every} from (select * from large {order})").fetchone()))
        sums = connection.execute("select exact_sum(x), exact_sum(y), exact_sum(x::FLOAT) from large").fetchone()
        assert sums == (math.fsum(normal), math.fsum(wide), math.fsum(map(as_float, normal))), sums
        for count in 7, 20_000:
            text = f"select k % {count}, exact_sum(y), exact_avg(-y) from large group by 1"
            found = connection.execute(text).fetchall()
            assert len(found) == count
            for key, total, mean in found[::count // 7]:
                group = wide[key::count]
                assert total == math.fsum(group), (threads, key, total)
                if len(group) < 100:
                    compare([[mean]], [[expected("avg", [(-y,) for y in group])]], threads, key)
    assert len(results) == 1, results


def check_types(connection):
    large = 2**63 - 1
    for text, wanted in (
        ("exact_sum(x) from (values (9007199254740993::BIGINT), (1)) t(x)", 9007199254740994),
        (f"exact_sum(x) from (select {large} x from range(1000))", 1000 * large),
        ("exact_sum(x) from (select -9223372036854775808 x from range(3))", -3 * 2**63),
        ("exact_avg(x) from (values (9007199254740993::BIGINT), (9007199254740995)) t(x)", 9007199254740994.0),
        ("exact_sum(x::UINTEGER) from range(10) t(x)", 45), ("exact_sum(x::TINYINT) from range(10) t(x)", 45),
        ("exact_sum(0.1::FLOAT)", as_float(0.1)), ("exact_sum(1e300::DOUBLE)", 1e300), ("exact_sum(NULL)", None),
        ("exact_dot(x, 2::DOUBLE) from (values (9007199254740993::BIGINT)) t(x)", 18014398509481986.0),
        ("exact_dot(x, y) from (values (9007199254740993::BIGINT, 0.5::FLOAT)) t(x, y)", 4503599627370496.5),
        ("exact_dot(x, y) from (values (3::UTINYINT, 0.5::DOUBLE)) t(x, y)", 1.5),
    ):
        found, = connection.execute(f"select {text}").fetchone()
        assert type(found) is type(wanted) and found == wanted, (text, found, wanted)
    running = connection.execute("select exact_sum(x) over (rows unbounded preceding) from range(5000) t(x)").fetchall()
    assert sorted(running) == [(x * (x + 1) // 2,) for x in range(5000)]
    for name, result in ("DOUBLE", "DOUBLE"), ("FLOAT", "DOUBLE"), ("BIGINT", "HUGEINT"):
        found = connection.execute(f"select typeof(exact_sum(1::{name})), typeof(exact_avg(1::{name}))").fetchone()
        assert found == (result, "DOUBLE"), (name, found)


def refused(connection, text, *words, error=duckdb.Error):
    try:
        connection.execute(text).fetchall()
    except error as raised:
        assert all(word.lower() in str(raised).lower() for word in words), (text, raised)
    else:
        raise AssertionError(f"{text}: no error")


def check_errors(connection):
    connection.execute("create or replace table none(h HUGEINT, u UHUGEINT, b UBIGINT, d DECIMAL(9, 2), "
                       "e DECIMAL(38, 9), v VARCHAR, l BOOLEAN, x DOUBLE, n BIGNUM)")
    for column in "hubden":
        for call in calls(column, "x") + calls("x", column)[len(ONE):] + calls(column, column)[len(ONE):]:
            refused(connection, f"select {call} from none", call.split("(")[0], "Cast")
    refused(connection, "select exact_sum(0.1)", "exact_sum", "Cast")
    for column in "vl":
        for call in calls(column, "x"):
            refused(connection, f"select {call} from none", "No function matches", call.split("(")[0])
    refused(connection, "select exact_sum('a')")
    refused(connection, "select exact_dot(1::DOUBLE)", "No function matches")
    refused(connection, "select exact_sum()", "No function matches")
    refused(connection, "select exact_sum(x) EXPORT_STATE from none", "export")
    for call in calls():
        for rows in "where false", "from range(3)":
            text = f"select {call} from (select NULL::DOUBLE x, NULL::DOUBLE y {rows})"
            assert connection.execute(text).fetchall() == [(None,)], text
    # Equal callbacks and arguments do not make functions equal.
    found = connection.execute("select exact_sum(x), exact_avg(x), exact_var_pop(x), exact_var_samp(x) "
                               "from (values (1::DOUBLE), (3)) t(x)").fetchone()
    assert found == (4, 2, 1, 2), found


def check_trouble(connection):
    """Queries that are cancelled or lack memory are DuckDB's errors, and the next ones have their results."""
    connection.execute("set threads = 4")
    connection.execute("create or replace table many as "
                       "select (k % 7)::DOUBLE * 1e300 x, 1e-300 y, k from range(200000) t(k)")
    wanted = [(math.fsum(k % 7 * 1e300 for k in range(200000)), 200000)]
    cancelled = 0
    for wait in 0.01, 0.03, 0.1:
        timer = threading.Timer(wait, connection.interrupt)
        timer.start()
        try:
            connection.execute("select k, exact_sum(x), exact_dot(x, y), exact_corr(x, y) from "
                               "(from many, range(30)) group by k order by 2 limit 1").fetchall()
        except duckdb.InterruptException:
            cancelled += 1
        timer.join()
        assert connection.execute("select exact_sum(x), count(*) from many").fetchall() == wanted
    assert cancelled > 0
    connection.execute("set memory_limit = '20MB'; set max_temp_directory_size = '0KB'")
    refused(connection, "select k, exact_corr(x, y) from many group by k order by 2", error=duckdb.OutOfMemoryException)
    connection.execute("set memory_limit = '4GB'")
    assert connection.execute("select exact_sum(x), count(*) from many").fetchall() == wanted


def check_version():
    """A DuckDB with which the extension was not tested is refused. It is one whose functions all return a version."""
    library = c.CDLL(EXTENSION)
    version = c.CFUNCTYPE(c.c_void_p)(lambda: c.cast(c.c_char_p(b"v9.9.9"), c.c_void_p).value)
    functions = (c.c_void_p * 2000)(*[c.cast(version, c.c_void_p).value] * 2000)
    errors, database = [], c.c_void_p(1)

    class Access(c.Structure):
        """duckdb_extension_access"""
        _fields_ = [("set_error", c.CFUNCTYPE(None, c.c_void_p, c.c_char_p)),
                    ("get_database", c.CFUNCTYPE(c.c_void_p, c.c_void_p)),
                    ("get_api", c.CFUNCTYPE(c.c_void_p, c.c_void_p, c.c_char_p))]

    access = Access(Access._fields_[0][1](lambda info, error: errors.append(error.decode())),
                    Access._fields_[1][1](lambda info: c.addressof(database)),
                    Access._fields_[2][1](lambda info, version: c.addressof(functions)))
    library.samesum_init_c_api.restype = c.c_bool
    assert not library.samesum_init_c_api(None, c.byref(access))
    assert len(errors) == 1 and "not tested with DuckDB v9.9.9" in errors[0], errors


def main():
    tables, seed = int((sys.argv[2:] + [60])[0]), int((sys.argv[3:] + [0])[0])
    skip_other_versions()
    start = time.monotonic()
    connection = connect()
    check_types(connection)
    check_errors(connection)
    for k in range(tables):
        check_queries(connection, random.Random(f"{seed} {k}"))
    check_large_tables(connection, random.Random(seed))
    check_trouble(connection)
    connection.close()
    check_version()
    print(f"DuckDB {duckdb.__version__}: {5 * tables} random queries, {time.monotonic() - start:.1f} s")


main()
