"""Tests of the section on databases with made-up rows, and of the experiment, with an engine that is made up.

Run by ctest, or: build/venv/bin/python tests/notebooks/databases_test.py
"""

import contextlib
import fractions
import io
import random
import sys
import types
import unittest
import unittest.mock

import numpy

import made_up

DUCKDB, POSTGRESQL, SUM, MEAN = "duckdb/fp64@peer", "postgresql/fp64@peer", "exact/fp64@cpu", "mean/exact/fp64@cpu"
TPCH, BIRD = "TPC-H query 15", "BIRD question 1473"
ONCE, TWICE, WORKERS = "view computed once", "view computed twice", "parallel workers"


def timed(seconds, turns=1):
    return {"seconds": seconds, "low": seconds, "high": seconds, "turns": turns, "rounds": [[seconds] * 5]}


def query(method, case=TPCH, setting=TWICE, lost=0, distinct=1, seconds=1e-2, **more):
    is_peer = method.endswith("@peer")
    return {"kind": "query", "method": method, "promise": "none" if is_peer else "order_free", "case": case,
            "setting": setting, "seed": 1, "n": 6000, "bins": 10} | timed(seconds) | {
                "runs": 40, "without_row": lost, "distinct_bits": distinct, "correct": 3 if is_peer else 40,
                "workers": 2, "broken": False} | more


def grouping(method, groups, seconds):
    is_peer = method.endswith("@peer")
    return {"kind": "grouping", "method": method, "promise": "none" if is_peer else "order_free", "data": "normal",
            "seed": 1, "n": 2000, "bins": groups} | timed(seconds, groups) | {"verified": None if is_peer else True}


class Databases(made_up.SectionTest):
    question = "databases"

    def setUp(self):
        self.rows = [query(DUCKDB, setting=ONCE, distinct=4), query(SUM, setting=ONCE, seconds=1.1e-2),
                     query(DUCKDB, lost=13, distinct=3), query(SUM),
                     query(POSTGRESQL, BIRD, WORKERS, distinct=5), query(MEAN, BIRD, WORKERS),
                     grouping(DUCKDB, 1, 1e-2), grouping(SUM, 1, 8e-3),
                     grouping(DUCKDB, 1000, 1e-2), grouping(SUM, 1000, 1.5e-2),
                     grouping(DUCKDB, 100, 1e-2), grouping(SUM, 100, 1.2e-2)]

    def test_unchanged_rows(self):
        self.check("All 120 runs of queries with exact functions returned the correctly rounded result.",
                   "All 3 tables of exact sums of groups have the bits of samesum.groupby_sum.",
                   "This machine, CPU: TPC-H query 15, view computed once: 4 different results in 40 runs with sum; "
                   "one result in 40 runs with exact_sum, which takes 1.10 [1.10, 1.10] times as long.",
                   "BIRD question 1473, parallel workers: 5 different results in 40 runs with avg; one result in 40 "
                   "runs with exact_avg",
                   "This machine, CPU: the time of exact_sum over that of sum, of 2,000 normal numbers, is 0.80 [0.80, "
                   "0.80] for 1 group, and 1.50 [1.50, 1.50] for 1,000 groups.",
                   "Müller et al. (2018, arXiv 1802.09883) report 4 to 12 times … 1.9 to 2.4 times",
                   failures=[],
                   verdict="TPC-H query 15, view computed twice: no row in 13 of 40 runs and 3 different results in "
                           "the others with sum; one result in 40 runs with exact_sum (this machine, CPU; table of"
                           " queries).")
        self.assertTrue(all(len(f) < 300 for f in [*self.s.findings, self.s.verdict]), "sentences are short")

    def test_changed_counts_change_the_sentences(self):
        self.rows[2].update(without_row=40, distinct_bits=0)
        self.check(verdict="view computed twice: no row in all 40 runs with sum; one result")
        self.rows[2].update(without_row=0, distinct_bits=1)
        self.check(verdict="BIRD question 1473, parallel workers: 5 different results in 40 runs with avg")

    def test_failures_of_samesum(self):
        self.rows[3].update(without_row=1, distinct_bits=1, correct=39, broken=True)
        self.rows[9]["verified"] = False
        at = "this machine, CPU: samesum: "
        self.check("119 of 120 runs", "2 of 3 tables", failures=[
            at + "TPC-H query 15, view computed twice: promises order_free but returned 1 result and in 1 run no row",
            at + "TPC-H query 15, view computed twice: 1 of 40 runs did not return the correctly rounded result",
            at + "1,000 groups: has other bits than samesum.groupby_sum"])

    def test_the_figure_and_the_table(self):
        section = self.check()
        figure = section.figures[0]
        self.assertTrue(figure.finding.startswith("This machine, CPU: the time of exact_sum over that of sum"))
        ours, *published = figure.matching(figure.chosen())
        self.assertEqual(ours.x, [1, 100, 1000])
        self.assertEqual([round(y, 9) for y in ours.y], [0.8, 1.2, 1.5])
        self.assertEqual([(s.x, s.y[0]) for s in published], [([1, 1000], end) for end in (4, 12, 1.9, 2.4)])
        self.assertEqual(len({(s.dash, s.key) for s in published}), 2)
        self.assertIn("1802.09883", figure.finding)
        self.assertEqual(section.tables[0].rows[2], ["this machine, CPU", "DuckDB: TPC-H query 15, view computed twice",
                                                     "sum", "2", "40", "13", "3", "3", "10"])

    def test_an_engine_that_is_missing_has_a_row(self):
        source = made_up.source("databases", self.rows[:4])
        source.header["left_out"] = ["PostgreSQL: there is no server"]
        import databases
        self.assertEqual(databases.section([source]).tables[0].rows[4],
                         ["this machine", "not measured: PostgreSQL: there is no server", *"-------"])


class TheExperiment(unittest.TestCase):
    """experiments/databases.py with a DuckDB that is made up: its sums vary as wished."""

    def setUp(self):
        self.script = made_up.script("databases")
        self.script.SIZES = {"quick": (0.004, 6, 3, 300, (1, 10), 3)}
        self.server = unittest.mock.patch.object(self.script.postgresql_server, "Server",
                                                 side_effect=self.script.postgresql_server.Absent("there is no server"))
        self.server.start()
        self.addCleanup(self.server.stop)

    def run_with(self, answer, *arguments, wrong_groups=False):
        """Runs it; answer(function, expected, setting) is what query 15 returns, as rows."""
        items, _ = self.script.line_items(0.004, 1)
        expected, setting = self.script.largest_revenue(items), ""

        class Connection(contextlib.nullcontext):
            def execute(_, sql, *more):
                nonlocal setting
                if sql.startswith("SET disabled"):
                    setting = sql
                rows = [(2,)]
                if sql.startswith("SELECT s_suppkey"):
                    rows = answer("exact_sum" if "revenue_exact_sum" in sql else "sum", expected, setting)
                return types.SimpleNamespace(fetchall=lambda: rows, fetchnumpy=lambda: {"s": numpy.zeros(1)})

            def __enter__(self):
                return self

        duckdb = types.SimpleNamespace(__version__="2.0.1", Error=ValueError, connect=lambda config: Connection())
        samesum = types.SimpleNamespace(__version__="0.1.0", sql=types.SimpleNamespace(load=lambda connection: None),
                                        groupby_sum=lambda k, x: (k, numpy.full(1, float(wrong_groups))))
        with unittest.mock.patch.dict(sys.modules, duckdb=duckdb, samesum=samesum):
            return made_up.run_script(self.script, "databases", *arguments)

    @staticmethod
    def right(expected):
        return [(expected[0], "name", "address", "phone", expected[1])]

    def test_lost_rows_and_different_results_are_counted_and_a_missing_server_is_named(self):
        calls = iter(range(10**6))

        def answer(function, expected, setting):
            if function == "exact_sum":
                return self.right(expected)
            if "common_subplan" in setting:
                return self.right(expected) if next(calls) % 3 else []
            return self.right((expected[0], expected[1] + 1 + next(calls) % 2))

        code, printed, source = self.run_with(answer)
        self.assertEqual((code, source.skipped), (0, 0))
        self.assertIn("without PostgreSQL: there is no server", printed)
        self.assertEqual(source.header["left_out"], ["PostgreSQL: there is no server"])
        found = {(r["method"], r["setting"]): [r[name] for name in ("runs", "without_row", "distinct_bits", "correct")]
                 for r in source.of("query")}
        self.assertEqual(found, {(DUCKDB, ONCE): [6, 0, 2, 0], (SUM, ONCE): [6, 0, 1, 6], (DUCKDB, TWICE): [6, 2, 1, 4],
                                 (SUM, TWICE): [6, 0, 1, 6]})
        self.assertEqual([(r["bins"], r["verified"]) for r in source.of("grouping")],
                         [(1, None), (1, True), (10, None), (10, True)])

    def test_samesum_must_round_correctly_and_keep_its_promise(self):
        more = iter(range(10**6))
        for answer, wrong_groups, expected in (
                (lambda f, e, s: self.right(e), False, 0), (lambda f, e, s: self.right(e), True, 1),
                (lambda f, e, s: self.right((e[0], e[1] + 1)), False, 1), (lambda f, e, s: [], False, 1),
                (lambda f, e, s: self.right((e[0], e[1] + next(more))), False, 1)):
            self.assertEqual(self.run_with(answer, wrong_groups=wrong_groups)[0], expected)

    def test_without_an_engine_it_names_what_to_install(self):
        with contextlib.redirect_stderr(io.StringIO()) as err, \
                unittest.mock.patch.dict(sys.modules, duckdb=None, samesum=None):
            self.assertEqual(self.script.main([]), 2)
            self.assertEqual(self.script.main(["--filter", "nothing"]), 2)
        for text in ("without DuckDB: ", "pip install -r experiments/requirements-frames.txt",
                     "without PostgreSQL: there is no server", "nothing can be measured", "no part is named 'nothing'"):
            self.assertIn(text, err.getvalue())
        absent = types.SimpleNamespace(__version__="0.1.0", sql=types.SimpleNamespace(
            load=unittest.mock.Mock(side_effect=RuntimeError("samesum: this installation has no extension of DuckDB"))))
        duckdb = types.SimpleNamespace(Error=ValueError, connect=lambda config: contextlib.nullcontext())
        with contextlib.redirect_stderr(io.StringIO()) as err, \
                unittest.mock.patch.dict(sys.modules, duckdb=duckdb, samesum=absent):
            self.assertEqual(self.script.main(["--filter", "tpch"]), 2)
        self.assertIn("without DuckDB: samesum: this installation has no extension of DuckDB", err.getvalue())

    def test_the_average_is_that_of_fractions(self):
        rng = random.Random(3)
        values = [float(numpy.float32(rng.gauss(0, 1) * 2.0**rng.randint(-40, 40))) for _ in range(300)]
        values += [2.0**-149, -2.0**127]
        rows = [(i % 3, "201301", v) for i, v in enumerate(values)] + [(0, "201212", 1e9), (3, "201301", 1e9)]
        exact = sum(map(fractions.Fraction, values)) / len(values)
        self.assertEqual(self.script.average([(0, "SME"), (1, "SME"), (2, "SME"), (3, "LAM")], rows), float(exact) / 12)

    def test_the_largest_revenue_is_that_of_fractions(self):
        items, suppliers = self.script.line_items(0.01, 5)
        self.assertTrue(((items["l_suppkey"] >= 1) & (items["l_suppkey"] <= suppliers)).all())
        sums = {}
        for key, price, discount, day in zip(*(items[name].tolist() for name in items)):
            if "1996-01-01" <= day.isoformat() < "1996-04-01":
                sums[key] = sums.get(key, 0) + fractions.Fraction(price * (1 - discount))
        best = max(sums, key=sums.get)
        self.assertEqual(self.script.largest_revenue(items), (best, float(sums[best])))


if __name__ == "__main__":
    unittest.main()
