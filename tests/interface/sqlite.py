"""The functions of the SQLite extension have the bits of Python's fractions, in queries of every shape.

Usage: sqlite.py EXTENSION [TABLES [SEED]]. Runs queries over so many random tables (2000 take half a minute): GROUP BY,
window frames, FILTER, another order of the rows, and five random ones; then wrong arguments, and a query in which each
allocation fails once.
Exits with 77 if Python's sqlite3 cannot load extensions.
"""

import ctypes as c
import math
import random
import sys

from exact_sql import COLUMNS, INTEGERS, ONE, REALS, TWO, bits, calls, expected, query, to_float, values

try:
    import sqlite3
except ImportError:
    print("SQLite: not tested: this Python has no module sqlite3")
    sys.exit(77)

def connect():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.enable_load_extension(True)
    connection.load_extension(sys.argv[1])
    connection.enable_load_extension(False)
    return connection


def of_sqlite(value):
    """What SQLite makes of a result: sums of integers that do not fit are REAL, and NaN is NULL."""
    if isinstance(value, int) and not -2**63 <= value < 2**63:
        return to_float(value)
    return None if value is not None and math.isnan(value) else value


def check(found, rows, what):
    """Compares a row of results of calls() with those of rows (x, y)."""
    for name, value in zip(ONE + TWO, found):
        wanted = of_sqlite(expected(name, [row[:1] for row in rows] if name in ONE else rows))
        assert bits(value) == bits(wanted), (what, name, value, wanted, rows)


# --- random tables -------------------------------------------------------------------------------------------------

def fill(connection, rng, n):
    """A table t of rows (k, g, x, y). Returns what SQLite reads from it."""
    def column():
        return [None if v is not None and math.isnan(v) else v for v in values(rng, n, {**REALS, **INTEGERS})]

    connection.execute("drop table if exists t")
    connection.execute("create table t(k integer primary key, g, x, y)")
    connection.executemany("insert into t values(?, ?, ?, ?)",
                           zip(range(n), rng.choices(range(4), k=n), column(), column()))
    return connection.execute("select k, g, x, y from t order by k").fetchall()


def check_table(connection, rng):
    rows = fill(connection, rng, rng.randint(0, 25))
    pairs = [row[2:] for row in rows]
    every = ", ".join(calls())
    found = connection.execute(f"select {every} from t").fetchone()
    check(found, pairs, "all rows")
    again = connection.execute(f"select {every} from (select * from t order by random() limit -1)").fetchone()
    assert list(map(bits, again)) == list(map(bits, found)), (again, found)

    for g, *found in connection.execute(f"select g, {every} from t group by g"):
        check(found, [row[2:] for row in rows if row[1] == g], "group")
    filtered = ", ".join(f"{call} filter (where g > 1)" for call in calls())
    check(connection.execute(f"select {filtered} from t").fetchone(), [r[2:] for r in rows if r[1] > 1], "filter")

    before, after = rng.choice([(0, 0), (1, 0), (2, 2), (5, -2), (-1, 4), (30, 0)])
    ends = [f"{abs(n)} {'preceding' if (n >= 0) == is_first else 'following'}"
            for n, is_first in ((before, True), (after, False))]
    window = f"over (partition by g & 1 order by k rows between {ends[0]} and {ends[1]})"
    frames = ", ".join(f"{call} filter (where g <> 3) {window}" for call in calls())
    found = {row[0]: row[1:] for row in connection.execute(f"select k, {frames} from t")}
    for parity in 0, 1:
        part = [row for row in rows if row[1] & 1 == parity]
        for i, row in enumerate(part):
            frame = part[max(0, i - before):max(0, i + after + 1)]
            check(found[row[0]], [r[2:] for r in frame if r[1] != 3], ends)


def check_queries(connection, rng):
    """Random queries over a table."""
    rows = [dict(zip(COLUMNS, row)) for row in fill(connection, rng, rng.randint(0, 25))]
    for _ in range(5):
        text, results = query(rng, lambda x: f"case when typeof({x}) = 'real' then nullif({x}, 0) end",
                              lambda v: isinstance(v, float) and v != 0, is_duckdb=False)
        found = connection.execute(text).fetchall()
        wanted = [tuple(map(of_sqlite, row)) for row in results(rows)]
        assert [list(map(bits, row)) for row in found] == [list(map(bits, row)) for row in wanted], (
            text, found, wanted, rows)


# --- given cases ---------------------------------------------------------------------------------------------------

def check_integers(connection):
    """INTEGER if all values are INTEGER and the sum fits, as of sum(), else REAL."""
    large = 2**63 - 1
    for column, wanted in (
        ([9007199254740993], 9007199254740993), ([9007199254740993, 1], 9007199254740994),
        ([large, 1, -1], large), ([large, 1], 2.0**63), ([-large, -1], -2**63), ([-large, -2], -2.0**63),
        ([large] * 4 + [-large] * 3, large), ([large] * 2 + [1] * 2, 2.0**64), ([large, large, 2 - 2**63, -1], large),
        ([1, 2.0], 3.0), ([9007199254740993, -9007199254740992.0], 1.0), ([None, 5], 5),
    ):
        connection.execute("create temp table i(x)")
        connection.executemany("insert into i values(?)", ((x,) for x in column))
        found, = connection.execute("select exact_sum(x) from i").fetchone()
        assert type(found) is type(wanted) and found == wanted, (column, found, wanted)
        connection.execute("drop table i")
    # A window whose last REAL has left is one of INTEGER.
    found = connection.execute("select exact_sum(column1) over (rows 1 preceding) from (values (1), (2.5), (3), (4))")
    assert [row[0] for row in found] == [1, 3.5, 5.5, 7] and type(found) is not None
    assert isinstance(connection.execute("select exact_sum(x) from (select 1 x union all select 2)").fetchone()[0], int)


def check_errors(connection):
    def refused(query, *words):
        try:
            connection.execute(query).fetchall()
        except sqlite3.Error as error:
            assert all(word in str(error) for word in words), (query, error)
        else:
            raise AssertionError(f"{query}: no error")

    for value, name in (("'1'", "TEXT"), ("x'31'", "BLOB")):
        for i, call in enumerate(calls(value, 1) + calls(1, value)[6:]):
            refused(f"select {call}", call.split("(")[0], f"argument {1 if i < 10 else 2} is", name, "CAST")
            refused(f"select {call} over (rows 2 preceding) from (values (1), (2))", name)
        refused(f"select exact_dot(null, {value})", "argument 2", name)
    refused("select exact_sum(x) from (select 1e300 x union all select -1e-300 union all select 'a')", "TEXT")
    refused("select exact_sum(x) over (order by k rows 1 preceding) from "
            "(select 1 k, 1e300 x union all select 2, 1e-300 union all select 3, 'a')", "TEXT")
    refused("select exact_sum()", "number of arguments")
    refused("select exact_dot(1)", "number of arguments")
    refused("select exact_sum(distinct 1) over ()", "DISTINCT")
    for call in calls():
        for rows in "select 1 x, 1 y where 0", "select null x, null y union all select null, null":
            assert connection.execute(f"select {call} from ({rows})").fetchall() == [(None,)]
    assert connection.execute("select exact_sum(cast('2.5' as real))").fetchone() == (2.5,)


# --- memory --------------------------------------------------------------------------------------------------------

ALLOCATE, RESIZE = c.CFUNCTYPE(c.c_void_p, c.c_int), c.CFUNCTYPE(c.c_void_p, c.c_void_p, c.c_int)
ROW = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int, c.POINTER(c.c_char_p), c.c_void_p)
OK, OUT_OF_MEMORY = 0, 7


class Methods(c.Structure):
    """sqlite3_mem_methods"""
    _fields_ = [("malloc", ALLOCATE), ("free", c.c_void_p), ("realloc", RESIZE)] + [
        (f"other{i}", c.c_void_p) for i in range(5)]


class Memory:
    """SQLite's memory, of which one allocation can fail."""

    def __init__(self, sqlite):
        self.inner, self.left = Methods(), math.inf
        assert sqlite.sqlite3_shutdown() == OK
        assert sqlite.sqlite3_config(5, c.byref(self.inner)) == OK  # SQLITE_CONFIG_GETMALLOC
        self.outer = Methods.from_buffer_copy(self.inner)
        self.outer.malloc = ALLOCATE(lambda size: None if self.fails() else self.inner.malloc(size))
        self.outer.realloc = RESIZE(lambda old, size: None if self.fails() else self.inner.realloc(old, size))
        assert sqlite.sqlite3_config(4, c.byref(self.outer)) == OK  # SQLITE_CONFIG_MALLOC
        assert sqlite.sqlite3_initialize() == OK

    def fails(self):
        self.left -= 1
        return self.left == -1


def check_memory():
    """Each allocation of a query fails once: an error, nothing leaks, and the next query has its results.

    Without the module sqlite3, which calls SQLite while an exception is set: callbacks in Python would clear it.
    """
    try:
        sqlite = c.CDLL("libsqlite3.so.0")
    except OSError:
        return print("allocations that fail: not tested: no libsqlite3.so.0")
    sqlite.sqlite3_memory_used.restype = c.c_int64
    memory, database = Memory(sqlite), c.c_void_p()

    def run(sql):
        """Code and rows."""
        rows = []
        row = ROW(lambda _, n, texts, names: rows.append(texts[:n]) or 0)
        return sqlite.sqlite3_exec(database, sql.encode(), row, None, None), rows

    assert sqlite.sqlite3_open(b":memory:", c.byref(database)) == OK
    assert sqlite.sqlite3_enable_load_extension(database, 1) == OK
    assert sqlite.sqlite3_load_extension(database, sys.argv[1].encode(), None, None) == OK
    run("create table t(k integer primary key, g, x, y)")
    run("""insert into t values (0, 0, 1, 2), (1, 1, 1e300, 4611686018427387905), (2, 0, -1e-300, 1e200),
           (3, 1, 4611686018427387905, 3e-300), (4, 0, 1e999, 1.0), (5, 1, 5e-324, -1e300)""")
    window = "over (order by k rows 1 preceding)"
    failures = 0
    for call in calls() + [f"{call} {window}" for call in calls()] + ["exact_sum(x || 'a')"]:
        query = f"select {call} from t" + (" group by g" if "over" not in call else "")
        wanted = run(query)
        for allowed in range(10**6):
            memory.left = allowed
            found = run(query)
            has_failed, memory.left = memory.left < 0, math.inf
            assert found == wanted or (has_failed and found[0] == OUT_OF_MEMORY), (query, allowed, found)
            if not has_failed:
                break
            failures += found[0] == OUT_OF_MEMORY
    assert sqlite.sqlite3_close(database) == OK
    assert sqlite.sqlite3_memory_used() == 0, "memory is not released"
    assert failures > 300, failures
    print(f"{failures} queries without memory")


def main():
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        print("SQLite: not tested: the sqlite3 of this Python was built without enable_load_extension")
        sys.exit(77)
    tables, seed = int((sys.argv[2:] + [60])[0]), int((sys.argv[3:] + [0])[0])
    connection = connect()
    check_integers(connection)
    check_errors(connection)
    for k in range(tables):
        check_table(connection, random.Random(f"{seed} {k}"))
        check_queries(connection, random.Random(f"{seed} {k}"))
    connection.close()
    check_memory()


main()
