"""The functions of the PostgreSQL extension have the bits of Python's fractions, in queries of every shape.

Usage: postgresql.py MAKE PG_CONFIG STATES, where STATES is libsamesum_states.a beside the extension. Installs it into a
temporary copy of the server, which it starts as an unprivileged user. Runs wrong arguments, damaged states, and random
queries over random tables: GROUP BY, window frames, FILTER, DISTINCT, joins, partitions, workers; then queries without
memory, cancelled queries and terminated backends. SAMESUM_SQL_QUERIES is the number of random queries, SAMESUM_SQL_SEED
their seed. Exits with 77 if there is no server.
"""

import math
import os
import pathlib
import random
import re
import resource
import struct
import subprocess
import sys
import time

from exact_sql import INTEGERS as INTEGER_FLAVOURS, ONE, REALS, TWO, bits, calls, expected

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE.parents[1] / "experiments"))
import postgresql_server  # noqa: E402
from postgresql_server import Failure, Session  # noqa: E402

QUERIES = int(os.environ.get("SAMESUM_SQL_QUERIES", "150"))
SEED = os.environ.get("SAMESUM_SQL_SEED", "0")


def refused(session, sql, code, *words):
    try:
        found = session.run(sql)
    except Failure as failure:
        assert failure.code == code and all(word in failure.text for word in words), (sql, failure)
    else:
        raise AssertionError(f"{sql}: no error, but {found}")


# --- random tables -------------------------------------------------------------------------------------------------

FLOATS, INTEGERS = {"float4": "f", "float8": "d"}, {"int2": 16, "int4": 32, "int8": 64}


def values(rng, kind, n):
    """Values of a type, or None."""
    kinds = INTEGER_FLAVOURS if kind in INTEGERS else {**REALS, "integers": INTEGER_FLAVOURS["integers"]}
    names = sorted(kinds)
    chosen = rng.sample(names, rng.choice([1, 1, 2]))

    def value():
        x = kinds[rng.choice(chosen)](rng)
        if kind in INTEGERS:
            half = 2 ** (INTEGERS[kind] - 1)
            return (x + half) % (2 * half) - half
        try:
            return struct.unpack(FLOATS[kind], struct.pack(FLOATS[kind], x))[0]
        except OverflowError:
            return math.inf

    column = [value() for _ in range(n)]
    for i in range(1, n):  # some cancel earlier ones, some are NULL
        if rng.random() < 0.2 and column[i - 1] not in (None, -2**15, -2**31, -2**63):
            column[i] = -column[i - 1]
        elif rng.random() < 0.1:
            column[i] = None
    return column


class Table:
    """Rows (k, g, h, x, y) in tables t and p, where p has partitions. h orders windows, with peers."""

    def __init__(self, rng, session):
        self.types = rng.choices([*FLOATS, *INTEGERS, "float8"], k=2)
        n = rng.choice([0, 1, 2, 8, 25, 25, 60])
        self.rows = list(zip(range(n), rng.choices(range(4), k=n), rng.choices(range(n // 2 + 1), k=n),
                             *(values(rng, kind, n) for kind in self.types)))
        x, y = self.types
        columns = f"(k int, g int, h int, x {x}, y {y}, filler text default repeat('-', 400))"
        session.run("drop table if exists t, p")
        # Few rows in a page, so that each worker has pages.
        session.run(f"create unlogged table t {columns} with (parallel_workers = 3, fillfactor = 20)")
        session.run(f"create table p {columns} partition by hash (k)")
        for i in range(3):
            session.run(f"create unlogged table p{i} partition of p for values with (modulus 3, remainder {i}) "
                        "with (parallel_workers = 2)")
        if self.rows:
            texts = [", ".join("null" if v is None else f"'{v!r}'" for v in row) for row in self.rows]
            session.run(f"insert into t(k, g, h, x, y) values ({'), ('.join(texts)})")
            session.run("insert into p select * from t")
        session.run("analyze t, p")

    def check(self, texts, rows, what, names=(*ONE, *TWO)):
        """Compares a row of results of functions with those of rows (k, g, h, x, y)."""
        # The overload for float8 takes smaller integers.
        pairs = [tuple(float(v) if kind in ("int2", "int4") and v is not None else v
                       for kind, v in zip(self.types, row[3:])) for row in rows]
        for name, text in zip(names, texts, strict=True):
            is_integer = name == "sum" and self.types[0] in INTEGERS
            wanted = expected(name, [row[3:4] for row in rows] if is_integer else
                              [pair[:1] for pair in pairs] if name in ONE else pairs)
            found = None if text == "NULL" else int(text) if is_integer else float(text)
            assert bits(found) == bits(wanted), (what, self.types, name, found, wanted, pairs)


# --- random queries ------------------------------------------------------------------------------------------------

CONDITIONS = {
    "true": lambda k, g, h: True, "g > 1": lambda k, g, h: g > 1, "k % 3 <> 1": lambda k, g, h: k % 3 != 1,
    "h < 4 or g = 2": lambda k, g, h: h < 4 or g == 2, "k < 0": lambda k, g, h: False,
}
KEYS = {"g": lambda k, g, h: g, "k % 2": lambda k, g, h: k % 2, "h": lambda k, g, h: h, "k": lambda k, g, h: k}
SOURCES = ["t", "t", "p", "(select * from t order by random()) q", "(select * from p order by k desc) q",
           "(select * from t where g < 2 union all select * from p where g >= 2) q",
           "(select p.* from p join t using (k)) q"]
SETTINGS = {
    "max_parallel_workers_per_gather": [0, 3, 3], "parallel_leader_participation": ["on", "off"],
    "enable_hashagg": ["on", "on", "off"], "enable_partitionwise_aggregate": ["on", "off"],
    "work_mem": ["64kB", "4MB"], "jit": ["off"] * 199 + ["on"],
}


def matching(rows, condition):
    return [row for row in rows if CONDITIONS[condition](*row[:3])]


def grouped(rng, session, table):
    """All rows, groups, or sets of groups; with FILTER, and arguments in some order."""
    where, filtered, source = rng.choice(list(CONDITIONS)), rng.choice(list(CONDITIONS)), rng.choice(SOURCES)
    keys = rng.choice([[], [], ["g"], ["k % 2"], ["h"], ["k"], ["g", "k % 2"]])
    by = f"{rng.choice(['', 'cube ', 'rollup ']) if keys else ''}({', '.join(keys)})"
    order = rng.choice([""] * 5 + [" order by h, k desc"])
    listed = ", ".join(f"{call[:-1]}{order}) filter (where {filtered})" for call in calls())
    names = [f"{key}, grouping({key})" for key in keys]
    query = f"select {', '.join([*names, listed])} from {source} where {where} group by {by}"
    rows = matching(table.rows, where)
    found = session.run(query)
    for *texts, in found:
        group = rows
        for key in keys:
            value, is_total, *texts = texts
            group = [row for row in group if is_total == "1" or KEYS[key](*row[:3]) == int(value)]
        table.check(texts, matching(group, filtered), query)
    if not by.startswith(("cube", "rollup")):
        present = {tuple(KEYS[key](*row[:3]) for key in keys) for row in rows}
        assert len(found) == (len(present) if keys else 1), (query, found)


def distinct(rng, session, table):
    """DISTINCT, without zeros: 0 and -0 are not distinct."""
    query = ", ".join(call.replace("(", "(distinct ", 1) for call in calls("nullif(x, 0)", "nullif(y, 0)"))
    texts, = session.run(f"select {query} from {rng.choice(SOURCES)}")
    rows = [(0, 0, 0, *(None if v == 0 else v for v in row[3:])) for row in table.rows]
    of_x = {bits(row[3]): row for row in rows}
    pairs = {tuple(map(bits, row[3:])): row for row in rows}
    table.check(texts[:len(ONE)], [*of_x.values()], query, ONE)
    table.check(texts[len(ONE):], [*pairs.values()], query, TWO)


def window(rng, session, table):
    """Frames of all kinds."""
    mode = rng.choice(["rows", "rows", "range", "groups"])
    ends = sorted(rng.choice([-100, -3, -1, 0, 1, 2, 100, -math.inf, math.inf]) for _ in range(2))
    if ends[0] == math.inf or ends[1] == -math.inf:
        ends = [-1, 1]

    def bound(offset):
        direction = "preceding" if offset < 0 else "following"
        return (f"unbounded {direction}" if math.isinf(offset) else
                "current row" if offset == 0 else f"{abs(offset)} {direction}")

    key = "k" if mode == "rows" else "h"
    exclude = rng.choice(["no others"] * 5 + ["current row", "group", "ties"])
    filtered, where, source = rng.choice(list(CONDITIONS)), rng.choice(list(CONDITIONS)), rng.choice(SOURCES)
    over = (f"over (partition by g % 2 order by {key} {mode} between {bound(ends[0])} and {bound(ends[1])} "
            f"exclude {exclude})")
    listed = ", ".join(f"{call} filter (where {filtered}) {over}" for call in calls())
    query = f"select k, {listed} from {source} where {where}"
    found = {int(k): texts for k, *texts in session.run(query)}
    rows = matching(table.rows, where)
    assert found.keys() == {row[0] for row in rows}, (query, found)
    for row in rows:
        part = [other for other in rows if other[1] % 2 == row[1] % 2]
        keys = sorted({other[2] for other in part})
        place = {"rows": [other[0] for other in sorted(part)].index, "range": lambda v: v, "groups": keys.index}[mode]
        column = 0 if mode == "rows" else 2

        def is_inside(other):
            if exclude != "no others":
                is_peer, is_self = other[column] == row[column], other[0] == row[0]
                if {"current row": is_self, "group": is_peer, "ties": is_peer and not is_self}[exclude]:
                    return False
            return ends[0] <= place(other[column]) - place(row[column]) <= ends[1]

        table.check(found[row[0]], matching(filter(is_inside, part), filtered), (query, row))


def check_queries(session):
    shapes = [grouped, grouped, window, distinct]
    for i in range(QUERIES):
        rng = random.Random(f"{SEED} {i}")
        if i % 20 == 0:
            table = Table(rng, session)
        session.run("select " + ", ".join(f"set_config('{name}', '{rng.choice(choices)}', false)"
                                          for name, choices in SETTINGS.items()))
        rng.choice(shapes)(rng, session, table)


# --- given cases ---------------------------------------------------------------------------------------------------

def check_workers(session):
    """The workers' states meet: EXPLAIN shows workers that ran, and the bits are those without workers."""
    session.run("create table wide as select g, (random() - 0.5) * 2.0 ^ (g % 60) x, g * 450359962737049 i "
                "from generate_series(-20000::int8, 20000) g")
    listed = ", ".join([*calls("x", "x * g"), *calls("i", "i"), *calls("x", "i")[6:], *calls("i", "x")[6:],
                        "exact_sum(g::int4)", "exact_sum(g::int2)", "exact_sum(x::numeric)"])
    listed = listed.replace("g::int2", "(g % 1000)::int2")
    query = f"select {listed} from wide"
    session.run("set max_parallel_workers_per_gather = 0")
    alone = session.run(query)
    session.run("set max_parallel_workers_per_gather = 3")
    for leader in "on", "off":
        session.run(f"set parallel_leader_participation = {leader}")
        assert session.run(query) == alone
        plan = "\n".join(line for line, in session.run(f"explain (analyze, costs off, timing off) {query}"))
        assert "Partial Aggregate" in plan, plan
        assert re.search(r"Workers Planned: [23]\n *Workers Launched: [123]", plan), plan
    print(re.search("Workers Launched: .", plan)[0])


def check_types(session):
    """Result types, numeric, and arguments of other types."""
    for call in calls():
        for kind in "float4", "float8", "int2", "int4", "int8":
            wanted = "numeric" if call == "exact_sum(x)" and kind.startswith("int") else "double precision"
            found, = session.run(f"select pg_typeof({call}) from (select 1::{kind} x, 2::{kind} y) q")
            assert found == [wanted], (call, kind, found)
            for rows in "where false", "":
                assert session.run(f"select {call} from (select null::{kind} x, null::{kind} y) q {rows}") == [["NULL"]]
    assert session.run("select exact_sum(9007199254740993)") == [["9007199254740993"]]
    assert session.run("select exact_sum(x) from (values (9223372036854775807), (1)) q(x)") == [["9223372036854775808"]]
    assert session.run("select exact_sum(x) from (values (0.1), (1e300), (-1e300)) q(x)") == [["0.1"]]
    assert session.run("select exact_sum('1.5')") == [["1.5"]]
    for call in calls("1.5", "1.5")[1:] + [call for x, y in (("1.5", "x"), ("x", "1.5"), ("1.5", "i"), ("i", "1.5"))
                                           for call in calls(x, y)[6:]]:
        refused(session, f"select {call} from (select 1::float8 x, 1::int8 i) q", "0A000", "numeric", "cast")
        refused(session, f"select {call} over (rows 1 preceding) from (select 1::float8 x, 1::int8 i) q", "0A000")
    for value in "'a'::text", "true", "'\\x31'::bytea", "now()":
        for call in calls(value, "1") + calls("1", value)[6:]:
            refused(session, f"select {call}", "42883", "does not exist")
    refused(session, "select exact_sum('abc')", "22P02", "invalid input syntax")
    refused(session, "select exact_sum()", "42883")
    refused(session, "select exact_dot(1)", "42883")
    refused(session, "select exact_sum(x) from (values (1e300::float8), (1e-300), (sqrt(-1e0::float8))) q(x)", "2201F")
    refused(session, "select samesum_sum_combine(null, null)", "42883")
    session.run("create schema other")
    session.run("alter extension samesum set schema other")
    found = session.run("select other.exact_avg(x) over (rows 1 preceding) from (values (1), (2)) q(x)")
    assert found == [["1"], ["1.5"]]
    session.run("alter extension samesum set schema public")


def check_damage(session):
    """Serialised states of which any bit is changed, that are cut off anywhere, or of another kind, are refused."""
    session.run("create function samesum_damage(internal) returns int language c as '$libdir/samesum_damage'")
    kinds = {"sum": "real", "moments": "real", "products": "reals", "comoments": "reals"}
    for kind, types in kinds.items():
        arguments = "float8" if types == "real" else "float8, float8"
        session.run(f"create aggregate damaged_{kind}({arguments}) (sfunc = samesum_{kind}_add_{types}, "
                    "stype = internal, finalfunc = samesum_damage)")
    session.run("""create function count_refused(call text, first int, last int) returns int language plpgsql as $$
        declare n int := 0; begin
          for i in first .. last loop
            perform set_config('samesum_damage.change', i::text, false);
            begin
              execute 'select ' || call || ' from (values (1.5::float8, 2.0::float8), (1e9, -3.0)) q(x, y)';
            exception when data_corrupted then n := n + 1;
            end;
          end loop;
          return n;
        end $$""")
    for kind, types in kinds.items():
        call = f"damaged_{kind}({'x' if types == 'real' else 'x, y'})"
        session.run(f"set samesum_damage.source = '{kind}'")
        session.run(f"set samesum_damage.target = '{kind}'")
        session.run("set samesum_damage.change = -1")
        for rows in "(values (1.5::float8, 2.0::float8), (1e9, -3.0))", "(values (1e300::float8, 1e-300::float8))":
            (size,), = session.run(f"select {call} from {rows} q(x, y)")
            assert int(size) > 30, (kind, size)
        (size,), = session.run(f"select {call} from (values (1.5::float8, 2.0::float8), (1e9, -3.0)) q(x, y)")
        changes = 9 * int(size)
        assert session.run(f"select count_refused('{call}', 0, {changes - 1})") == [[str(changes)]], kind
        for other in kinds.keys() - {kind}:
            session.run(f"set samesum_damage.target = '{other}'")
            assert session.run(f"select count_refused('{call}', -1, -1)") == [["1"]], (kind, other)


def check_memory(server):
    """Without memory, a query fails, also where the library has no memory for a state, and the session goes on."""
    session, details = Session(server), []
    session.run("set work_mem = '1GB'")
    session.run("create function samesum_limit_memory(int8) returns bool language c as '$libdir/samesum_damage'")
    pages = int(pathlib.Path(f"/proc/{session.pid}/statm").read_text().split()[0])
    for more in range(12):
        limit = pages * resource.getpagesize() + (20 + more) * 2**20
        assert session.run(f"select samesum_limit_memory({limit})") == [["t"]]
        try:
            found = session.run("select count(c) from (select exact_corr(x, y) c from generate_series(1, 100000) g, "
                                "(values (1e300::float8, 1e0::float8), (1e-300, 1e300)) v(x, y) group by g) q")
            raise AssertionError(f"a query had enough memory: {found}")
        except Failure as failure:
            assert failure.code == "53200", failure
            details.append("exact aggregate" in failure.text)
        assert session.run("select samesum_limit_memory(-1)") == [["t"]]
        assert session.run("select exact_sum(x) from (values (1e300::float8), (1e-300), (-1e300)) q(x)") == [["1e-300"]]
    session.close()
    assert any(details), "no state was without memory"
    print(f"{len(details)} queries without memory, {sum(details)} of them in a state")


def check_interruptions(server, control):
    """Cancelled queries and terminated backends: the server goes on, and no worker remains."""
    started = control.run("select pg_postmaster_start_time()")
    slow = ("select exact_corr(a.x, b.x * 1e280) from wide a, wide b where b.g < 1000",
            "select exact_var_samp(x * 1e200) over (order by g rows 1000 preceding) from wide, generate_series(1, 50)",
            "select a.g, exact_corr(a.x, b.x * 1e-200) from wide a, wide b where b.g < 1000 group by a.g")
    rng = random.Random(SEED)
    session, outcomes = Session(server), set()
    for i in range(max(9, QUERIES // 50)):
        session.run(f"set max_parallel_workers_per_gather = {rng.choice([0, 2])}")
        session.send(slow[i % 3])
        while control.run(f"select state from pg_stat_activity where pid = {session.pid}") != [["active"]]:
            time.sleep(0.001)  # a query that has not started is not cancelled
        time.sleep(rng.random() * 0.1)
        is_end = rng.random() < 0.5
        control.run(f"select pg_{'terminate' if is_end else 'cancel'}_backend({session.pid})")
        try:
            session.receive()
            outcomes.add("finished")
        except Failure as failure:
            outcomes.add(failure.code)
            assert failure.code == ("lost" if is_end else "57014"), failure
        if is_end:
            session.close()
            session = Session(server)
    session.close()
    assert outcomes == {"lost", "57014"}, outcomes
    for _ in range(1000):
        (left,), = control.run("select count(*) from pg_stat_activity where backend_type = 'parallel worker'")
        if left == "0":
            break
        time.sleep(0.01)
    assert left == "0", left
    assert control.run("select pg_postmaster_start_time()") == started
    log = server.log.read_text()
    assert not re.search("signal 11|signal 6|crash|PANIC|in recovery", log), log


def add_damage(server, pg_config):
    """Adds the functions of postgresql_damage.c to the server."""
    compiler, headers, libraries = (postgresql_server.config(pg_config, name)
                                    for name in ("cc", "includedir-server", "pkglibdir"))
    subprocess.run([*compiler.split(), "-shared", "-fPIC", f"-I{headers}", "-o",
                    server.installed(libraries) / "samesum_damage.so", HERE / "postgresql_damage.c"], check=True)


def main(make, pg_config, states):
    try:
        server = postgresql_server.Server(pg_config, make, states)
    except postgresql_server.Absent as why:
        print(f"PostgreSQL: not tested: {why}")
        sys.exit(77)
    try:
        add_damage(server, pg_config)
        session = Session(server)
        session.run("create extension samesum")
        for setting in "parallel_setup_cost = 0", "parallel_tuple_cost = 0", "min_parallel_table_scan_size = 0":
            session.run(f"set {setting}")
        session.run("set jit_above_cost = 0")
        session.run("set jit = off")
        for test in check_types, check_damage, check_workers, check_queries:
            start = time.monotonic()
            test(session)
            print(f"{time.monotonic() - start:.1f} s {test.__name__}")
        check_memory(server)
        check_interruptions(server, session)
        session.close()
    finally:
        server.stop()


main(*sys.argv[1:])
