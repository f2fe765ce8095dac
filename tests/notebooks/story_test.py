"""Tests of the first screen of the report, with made-up rows that are changed one number at a time.

Run by ctest, or: build/venv/bin/python tests/notebooks/story_test.py
"""

import re
import unittest
import xml.dom.minidom

import accumulator_formats_test
import consequences_test
import price_of_promise_test
import made_up
from made_up import source, spread
import frontier
import page
import story

HOST = "this machine, CPU"


def price(method, promise, seconds, ulps, **more):
    return price_of_promise_test.row(method, promise, seconds, ulps) | more


class TheFirstScreen(made_up.SentenceTest):
    def setUp(self):
        self.spreads = [spread("tbb/fp32@peer", "none", distinct=7, runs=10), spread("exact/fp32@cpu", "order_free"),
                        spread("tree/plain/fp32@cpu", "everywhere"), spread("cub/run_to_run/fp32@peer", "run_to_run"),
                        spread("atomic/plain/fp32@cpu", "none", distinct=9)]
        self.there = []  # spreads of another machine
        story_row = accumulator_formats_test.row
        self.stories = [story_row("ones", "serial/plain/bf16@cpu", 256.0, 1e5),
                        story_row("ones", "serial/plain/fp32@cpu", 1e5, 1e5)]
        self.solvers = [r for r in consequences_test.rows() if r["kind"] == "solver"]
        self.solvers[0].update(least_iterations=38, most_iterations=45, distinct_bits=6)
        self.prices = [price("exact/fp32@cpu", "order_free", 1.4e-3, 0.25),
                       price("tree/plain/fp32@cpu", "everywhere", 1e-3, 4),
                       price("atomic/plain/fp32@cpu", "none", 0.9e-3, 8), price("tbb/fp32@peer", "none", 2e-3, 5)]

    def found(self):
        rows = {"spread_over_runs": self.spreads, "accumulator_formats": self.stories, "consequences": self.solvers,
                "price_of_promise": self.prices}
        found = {question: [source(question, some)] for question, some in rows.items()}
        found["spread_over_runs"].append(source("spread_over_runs", self.there, "H200"))
        return found

    def cards(self):
        return {c.section: c for c in story.cards(self.found())}

    def answer(self, question):
        return next((text for asked, text in story.answers(self.found()) if question in asked), None)

    def test_the_call_with_most_answers(self):
        card = self.cards()["spread"]
        self.assertEqual((card.number, card.what), ("7", "answers from one call of oneTBB"))
        self.assert_sentences([card.text], "10 calls on the same 2¹² normal fp32 numbers returned 7 different sums, up to 6 "
                                           f"ulps apart; 2 methods of samesum returned one ({HOST}).")
        self.assertEqual(card.picture.count(' fill="#b84300"'), 7)
        self.assertEqual(card.picture.count("<rect"), 10)
        self.spreads[0]["distinct_bits"] = 3
        self.assertEqual(self.cards()["spread"].number, "3")
        self.spreads.append(spread("tbb/fp32@peer", "none", distinct=8, data="60 binades"))
        self.assertEqual(self.cards()["spread"].number, "3", "ordinary data first")
        self.there = [spread("cub/not_guaranteed/fp32@peer", "none", distinct=5)]
        self.assertEqual(self.cards()["spread"].what, "answers from one call of oneTBB", "this machine's come first")
        self.assert_sentences([self.cards()["spread"].text],
                              "returned 3 different sums … (this machine, CPU). H200, GPU: CUB not_guaranteed, 10 "
                              "calls … returned 5 different sums.")
        self.spreads.pop()
        varied, self.spreads = self.spreads, [spread("tbb/fp32@peer", "none", distinct=1)]
        self.assertEqual(self.cards()["spread"].what, "answers from one call of CUB not_guaranteed")
        self.assert_sentences([self.cards()["spread"].text],
                              "returned 5 different sums … (on another machine: H200, GPU). This machine, CPU: oneTBB, "
                              "10 calls … returned 1 different sum.")
        self.spreads = []
        self.assert_sentences([self.cards()["spread"].text], "5 different sums … (on another machine: H200, GPU).")
        self.stories, self.solvers, self.prices, stories = [], [], [], (self.stories, self.solvers, self.prices)
        self.assert_sentences([self.cards()["spread"].text], "5 different sums, up to … apart (H200, GPU).")
        self.stories, self.solvers, self.prices = stories
        self.spreads = varied
        self.there = []
        self.spreads[0]["distinct_bits"] = 1  # no other library varied
        self.assertEqual(self.cards()["spread"].what, "answers from one call of samesum atomic/plain")
        self.spreads = self.spreads[1:3]
        self.assertNotIn("spread", self.cards())

    def test_the_sum_of_ones(self):
        card = self.cards()["formats"]
        self.assertEqual((card.number, card.what), ("256", "is the sum of 100,000 ones in bf16"))
        self.assert_sentences([card.text], "stops at 256: 256 + 1 rounds back to 256; … returns 100,000 (this machine, CPU).")
        self.stories[0]["value"] = 512.0
        self.assert_sentences([self.cards()["formats"].text], "stops at 512: 512 + 1")
        self.stories[0]["value"] = 1e5
        self.assert_no_sentences([self.cards()["formats"].text], "stops")
        self.stories[0]["value"] = None
        self.assertNotIn("formats", self.cards())

    def test_the_iterations_that_depend_on_the_run(self):
        card = self.cards()["consequences"]
        self.assertEqual(card.number, "38–45")
        self.assert_sentences([card.text],
                              "on a matrix with 20 graded eigenvalues (condition number 1,024), with samesum's sum "
                              "atomic/plain, in 10 runs … 6 different solutions; 2 methods with a promise returned one each, "
                              "after 40 iterations (this")
        self.assertIn("tree/plain, exact: 40</text>", card.picture)
        self.solvers[0].update(most_iterations=47)
        self.assertEqual(self.cards()["consequences"].number, "38–47")
        self.solvers[0].update(most_iterations=38)
        self.assertNotIn("consequences", self.cards())

    def speeds(self, *places):
        """Rows of sums in which exact takes twice as long as a loop, here and in other places."""
        return [source("speed_vs_length", [made_up.speed(method.replace("@cpu", backend), 1.0, n=n, threads=threads)
                                           | made_up.took(seconds * n)
                                           for n in (64, 256, 1024)
                                           for method, seconds in (("exact/fp32@cpu", 2e-9), ("loop/fp32@peer", 1e-9))], machine)
                for machine, threads, backend in [("this machine", 1, "@cpu"), *places]]

    def test_the_price_of_exactness(self):
        self.assertNotIn("price", self.cards(), "no experiment on speed")
        found = self.found() | {"speed_vs_length": self.speeds(("H200", 0, "@cuda"))}
        [card] = [c for c in story.cards(found) if c.section == "price"]
        self.assertEqual((card.number, card.what.partition(" (")[2]), ("2×", "medians; 2× for 2¹⁰ fp32; this machine, CPU, 1 thread)"))
        self.assertEqual([tile.text for tile in card.panels], ["CPU: ≤ 2×"])
        self.assertNotIn("H200", card.text)
        found["speed_vs_length"] = self.speeds(("H200", 0, "@cuda"))[1:]
        [card] = [c for c in story.cards(found) if c.section == "price"]
        self.assertIn("(medians; 2× for 2¹⁰ fp32; on another machine: H200, GPU)", card.what)

    def test_the_first_screen_has_three_cards_and_folds_where_exact_is_slow(self):
        shown = page.opening(self.found() | {"speed_vs_length": self.speeds()}, "")
        self.assertEqual(re.findall('class="?card[^>]* href="#([a-z]+)"', shown), ["spread", "formats", "price"])
        self.assertIn("<code>samesum.sum(x)</code>", shown)
        self.assertIn("<details><summary>Where the price is zero, where it is not, and the worst</summary>", shown)
        self.assertIn('class=card href="#consequences"', page.opening(self.found(), ""))

    def test_which_method_to_use(self):
        ask = "Which method for a million fp32 numbers?"
        self.assert_sentences([self.answer(ask)],
                              "This machine, CPU, 1 thread: exact (1.4 ms, correctly rounded), or "
                              "faster with the same bits everywhere, tree/plain (1 ms, relative error 4e-07).")
        self.prices[1].update(low=0.5e-3, high=1.5e-3)
        self.assert_sentences([self.answer(ask)],
                              "exact (1.4 ms, correctly rounded); whether tree/plain is faster is not decided.")
        self.prices[1].update(made_up.took(1.4e-3))
        self.assert_sentences([self.answer(ask)], "exact (1.4 ms …); no other with the same bits everywhere is faster.")
        self.prices[1].update(made_up.took(1e-3))
        self.prices[0].update(made_up.took(4e-3))  # then exact is too slow to be the first choice
        self.assert_sentences([self.answer(ask)],
                              "1 thread: tree/plain (1 ms, relative error 4e-07), or if every bit counts exact (4 ms")
        self.prices[1]["relative_error"] = 9e-7
        self.assert_sentences([self.answer(ask)], "tree/plain (1 ms, relative error 9e-07)")
        self.prices += [r | {"method": r["method"].replace("@cpu", "@cuda"), "threads": 0} | made_up.took(r["seconds"] / 100)
                        for r in self.prices[:2]]
        self.assert_sentences([self.answer(ask)], "This machine, GPU: tree/plain (10 µs, relative error 9e-07)", "This machine, CPU")
        self.prices = self.prices[3:4]
        self.assertIsNone(self.answer(ask))

    def test_a_noisy_fastest_method_does_not_hide_another_that_is_faster_than_exact(self):
        ask = "Which method for a million fp32 numbers?"
        self.prices[1].update(low=0.5e-3, high=1.5e-3)
        self.prices.append(price("pairwise/plain/fp32@cpu", "everywhere", 1.1e-3, 4))
        self.assert_sentences([self.answer(ask)], "exact (1.4 ms, correctly rounded), or faster … pairwise/plain (1.1 "
                                                  "ms")
        self.prices[-1]["promise"] = "none"
        self.assert_sentences([self.answer(ask)], "whether tree/plain is faster is not decided.")

    def test_exact_is_compared_with_every_other_method(self):
        def varies(r, share=0.02):
            return r | {"low": r["seconds"] * (1 - share), "high": r["seconds"] * (1 + share)}
        self.prices = [varies(price(method, promise, seconds, 1)) for method, promise, seconds in (
            ("exact/fp32@cpu", "order_free", 54.7e-6), ("pairwise/plain/fp32@cpu", "everywhere", 45.6e-6),
            ("tree/kahan/fp32@cpu", "everywhere", 48.2e-6))]
        self.prices.append(price("tree/plain/fp32@cpu", "everywhere", 45e-6, 4) | {"low": 20e-6, "high": 90e-6})
        ask = "Which method for a million fp32 numbers?"
        self.assert_sentences([self.answer(ask)], "exact (55 µs …), or faster with the same bits everywhere, "
                                                  "pairwise/plain (46 µs")
        del self.prices[1]
        self.assert_sentences([self.answer(ask)], "or faster with the same bits everywhere, tree/kahan (48 µs")
        del self.prices[1]
        self.assert_sentences([self.answer(ask)], "whether tree/plain is faster is not decided.")

    def test_whether_other_libraries_keep_their_promises(self):
        ask = "Do other libraries keep their promises?"
        self.assert_sentences([self.answer(ask)],
                              "Yes: the only sum that promises … kept it. The only sum without a promise "
                              "varied")
        self.spreads.append(spread("cub/run_to_run/fp32@peer", "run_to_run", "alignment", 2))
        self.assert_sentences([self.answer(ask)],
                              "But at another address … the only one returned other bits (CUB run_to_run "
                              "fp32).")
        self.spreads[3].update(distinct_bits=2, broken=True)
        self.assert_sentences([self.answer(ask)], "No: 0 of 1 sum … kept it (broken by CUB run_to_run fp32).")
        self.spreads = self.spreads[1:3]
        self.assertIsNone(self.answer(ask))

    def test_says_what_samesum_is_and_counts_what_was_measured(self):
        self.assert_sentences([story.about(self.found())],
                              "samesum is a C++20, CUDA and Python library … 5 methods of samesum "
                              "with 2 other libraries in 14 results (this machine).")
        self.spreads.pop(3)
        self.assert_sentences([story.about(self.found())], "with 1 other library in 13 results")


class TheFrontier(made_up.SentenceTest):
    def rows(self, count=14):
        return [price(f"{order}/{accumulator}/fp32@cpu", promise, 1e-3 * (i + 1), 64 / (i + 1))
                for i, (order, accumulator, promise) in enumerate(
                    [("tree", a, "everywhere") for a in ("plain", "kahan", "neumaier", "double_word")]
                    + [("pairwise", a, "everywhere") for a in ("plain", "kahan", "neumaier", "double_word")]
                    + [("serial", a, "everywhere") for a in ("plain", "kahan", "neumaier", "double_word")]
                    + [("atomic", "plain", "none"), ("atomic_element", "plain", "none")])][:count]

    def measured(self, rows, errors=()):
        found = {"price_of_promise": [source("price_of_promise", rows)],
                 "error_vs_length": [source("error_vs_length", errors)]}
        return next(iter(frontier.measured(found).values()))

    def drawn(self, rows):
        picture = frontier.picture(HOST, self.measured(rows))
        document = xml.dom.minidom.parseString(picture)
        return [t.firstChild.data for t in document.getElementsByTagName("title")[2:]], picture

    def test_has_at_most_ten_methods_of_about_a_million_numbers(self):
        rows = self.rows() + [price(f"{name}/fp32@peer", "none", 2e-3, 9) for name in ("tbb", "eigen", "loop", "openmp", "cub/x")]
        self.assertEqual(len(self.measured(rows + [price("exact/fp32@cpu", "order_free", 1e-2, 0.1, n=4096)])), 19,
                         "another length is left out")
        self.assertEqual(len(self.drawn(rows)[0]), 10)
        self.assertEqual(len(self.drawn(rows[:3])[0]), 3)

    def test_has_every_method_of_the_frontier(self):
        best = price("prefix/kahan/fp32@cpu", "everywhere", 0.5e-3, 0.1)  # faster and more accurate than all others
        rows = [*self.rows(), best]
        self.assert_sentences([frontier.finding(HOST, self.measured(rows))],
                              "Of 15 methods, prefix/kahan is on the frontier")
        titles, picture = self.drawn(rows)
        self.assertEqual(len(titles), 7, titles)
        self.assertIn(' font-weight="bold">prefix/kahan</text>', picture)

    def test_every_method_is_labelled_and_shapes_show_orders_and_fills_promises(self):
        rows = self.rows()[:3] + [price("exact/fp32@cpu", "order_free", 1e-2, 0.1), price("tbb/fp32@peer", "none", 2e-3, 9)]
        titles, picture = self.drawn(rows)
        for name in ("tree/plain", "tree/kahan", "exact", "oneTBB", "any order", "other libraries", "promise: none",
                     "accumulator: exact", "plain", "kahan"):
            self.assertEqual(picture.count(f">{name}</text>"), 1, name)
        self.assertTrue(any(t.startswith("tbb/fp32@peer: 2.1 GB/s, 2 ms, relative error 9e-07, promise none")
                            for t in titles), titles)
        self.assertIn('fill-opacity="0"', picture)
        self.assertIn('fill-opacity="1"', picture)
        rows[-1]["relative_error"] = 1.1e-6
        self.assertTrue(any("1.1e-06" in t for t in self.drawn(rows)[0]))

    def test_times_and_errors_are_of_the_same_array(self):
        rows = [price("tree/plain/fp32@cpu", "everywhere", 1e-3, 4), price("tbb/fp32@peer", "none", 2e-3, 0)]
        others = [r | {"n": 1 << 16, "relative_error": 1.0} for r in rows]
        error = {"kind": "error", "data": "uniform", "seed": 1} | made_up.result(rows[0]["method"], 1 << 20, 99, "everywhere")
        measured = self.measured(rows + others, [error])
        self.assertEqual([(r["n"], r["relative_error"]) for r in measured], [(1 << 20, 4e-7), (1 << 20, 0.0)])
        self.assertIn(">0</text>", frontier.picture(HOST, measured))
        self.assert_sentences([frontier.finding(HOST, measured)], "times and errors of one array of 2²⁰ normal fp32 "
                                                                  "numbers")

    def test_axes_of_any_range_have_labels(self):
        for scale in (1e-9, 1.0, 3.0, 1e4):
            rows = [r | {"relative_error": 2e-7 * scale * (1 + i / 100)} for i, r in enumerate(self.rows()[:3])]
            labels = re.findall(r'text-anchor="end" font-size="13"[^>]*>([^<]*)<', self.drawn(rows)[1])
            self.assertGreaterEqual(len([label for label in labels if "10" in label and "GB" not in label]), 2, labels)

    def test_labels_do_not_cover_each_other(self):
        places = frontier.Labels([(100, 100)] * 10, 0, 400, 0, 300)
        boxes = [places.place(100, 100, 80) for _ in range(10)]
        for i, (x, y) in enumerate(boxes):
            for other_x, other_y in boxes[:i]:
                self.assertTrue(abs(x - other_x) >= 80 or abs(y - other_y) >= 14, boxes)

    def test_labels_cover_no_point(self):
        points = [(100, 100), (110, 103), (118, 99), (131, 112)]
        places = frontier.Labels(points, 0, 400, 0, 300)
        for x, y in points:
            left, base = places.place(x, y, 80)
            for px, py in points:  # a star reaches 1.5 radii
                beside, above = left > px + 9 or left + 80 < px - 9, base - 11 > py + 9 or base + 3 < py - 9
                self.assertTrue(beside or above, (left, base))

    def test_the_menu_has_each_machine_this_one_first(self):
        there = [r | {"threads": 0, "method": r["method"].replace("@cpu", "@cuda")} for r in self.rows()]
        found = {"price_of_promise": [source("price_of_promise", there, "H200"), source("price_of_promise", self.rows())]}
        shown = page.first_figure(frontier.measured(found))
        self.assertEqual(re.findall("<option value=(.)(?: selected)?>(.*?)<", shown),
                         [("0", "This machine, CPU, 1 thread"), ("1", "H200, GPU")])
        self.assertEqual(shown.count("class='picked"), 2)
        self.assertEqual(page.first_figure({}), "")

    def test_the_finding_names_the_frontier(self):
        rows = self.rows()[:3]
        self.assert_sentences([frontier.finding(HOST, self.measured(rows))],
                              "Of 3 methods, tree/plain, tree/kahan, tree/neumaier are on the "
                              "frontier")
        rows[2]["relative_error"] = 1.0
        self.assert_sentences([frontier.finding(HOST, self.measured(rows))], "Of 3 methods, tree/plain, tree/kahan are on")


class Sentences(unittest.TestCase):
    """The report of the committed results reads quickly."""

    @classmethod
    def setUpClass(cls):
        import operations, methods, report
        found = made_up.committed()
        cls.sections = [report.section(q, found) for q in report.SECTIONS] + [operations.section(found),
                                                                            methods.section(found)]

    def test_every_choice_of_a_figure_has_several_bars_and_few_equal_ones(self):
        for figure in (f for s in self.sections for f in s.figures if f.bars):
            for on in {s.on for s in figure.series}:
                bars = [(*s.x, *s.text) for s in figure.matching(on)]
                self.assertGreater(len(bars), 1, (figure.id, on))
                self.assertLessEqual(max(map(bars.count, bars)), 5, (figure.id, on))

    def test_the_figures_of_the_first_verdicts_are_open_and_all_others_folded(self):
        shown = {s.id: self.unfolded(s).count("<figure") for s in self.sections if s.figures}
        self.assertEqual({id for id, count in shown.items() if count}, {"error", "spread", "speed"})

    def unfolded(self, s):
        """The HTML of a section without what is folded."""
        shown = page.section(s)
        while "<details" in shown:
            shown = re.sub("<details(?:(?!<details).)*?</details>", "", shown, flags=re.S)
        return shown

    def test_a_section_shows_a_verdict_one_figure_and_at_most_five_sentences(self):
        for s in self.sections:
            if s.empty:
                continue
            with self.subTest(s.id):
                shown = re.sub("<svg.*?</svg>|<script.*?</script>|<h2.*?</h2>|<figcaption.*?</figcaption>", "",
                               self.unfolded(s), flags=re.S)
                texts = [re.sub("<.*?>", "", p) for p in re.findall("<p class=(?:verdict|finding|line)>(.*?)</p>", shown)]
                sentences = re.findall(r"[^.]\.(?:\s|$)", " ".join(texts))
                self.assertTrue(s.verdict)
                self.assertTrue(1 <= len(sentences) <= 5, texts)
                self.assertLessEqual(shown.count("<figure"), 1)
                self.assertLessEqual(len(s.verdict), 300, s.verdict)


if __name__ == "__main__":
    unittest.main()
