"""Tests of the section on matrix products with made-up rows, of the model in NumPy against its definition in fractions,
and of the experiment: without a GPU and, where PyTorch is installed, on a CPU.

Run by ctest, or: build/venv/bin/python tests/notebooks/matrix_products_test.py
"""

import contextlib
import fractions
import importlib.util
import io
import math
import sys
import types
import unittest
import unittest.mock

import numpy

import made_up
import matrix_unit
import results

HAS_TORCH = importlib.util.find_spec("torch") is not None


def product(case, k, error, predicted, setting="fast accumulation", data="normal", **more):
    return {"kind": "product", "method": "torch/scaled_mm/fp32@peer", "promise": "none", "case": case,
            "setting": setting, "data": data, "seed": 1, "n": k, "entries": 64, "condition": 30.0,
            "backward_error": error, "predicted_backward_error": predicted, "same_bits": 60, "parts": 2,
            "part_format": "fp32", "same_bits_in_parts": 64} | more


def batch(case, m, changed, distinct, setting="full-precision reductions"):
    return {"kind": "batch", "method": "torch/matmul/bf16@peer", "promise": "none", "case": case,
            "setting": setting, "data": "normal", "seed": 1, "n": 4096, "outer": m, "inner": 1024,
            "differ_from_one_row": changed, "differ_from_previous": changed, "distinct_bits": distinct,
            "repeatable": True, "kernel": f"gemm_{m}"}


class MatrixProducts(made_up.SectionTest):
    question = "matrix_products"

    def setUp(self):
        self.rows = [product("e4m3", 64, 1e-3, 1.5e-3), product("e4m3", 4096, 0.02, 0.025, data="positive"),
                     product("tf32", 64, None, None, "tf32", same_bits=0, same_bits_in_parts=0),
                     product("tf32", 256, 2e-7, 2e-7, "tf32"),
                     batch("bf16", 1, 0, 1), batch("bf16", 17, 900, 2), batch("bf16", 64, 3, 3),
                     batch("e4m3", 1, 0, 1, "fast accumulation"), batch("e4m3", 64, 0, 1, "fast accumulation")]

    def test_sentences_and_the_verdict(self):
        self.check("This machine, GPU: the largest error is 0.02 of Σ|ab| for k = 4,096 (model: 0.025), fp8 (e4m3), "
                   "fast accumulation, positive numbers. The model has the bits of 120 of 128 entries with one "
                   "accumulator, of 128 with parts of k.",
                   "the largest error is 2e-07 of Σ|ab| for k = 256 (model: 2e-07), tf32, normal numbers",
                   "row 0 of bf16, full-precision reductions has 3 results for 1 to 64 rows, with other bits than "
                   "before at m = 17 and 64.",
                   "row 0 of fp8 (e4m3), fast accumulation has the same bits for 1 to 64 rows.", failures=[],
                   verdict="The largest error is 0.02 of Σ|ab| for k = 4,096 (model: 0.025), fp8 (e4m3), fast "
                           "accumulation, positive numbers; row 0 has up to 3 results for 1 to 64 rows (bf16, "
                           "full-precision reductions) (this machine, GPU).")

    def test_a_second_call_with_other_bits_is_said(self):
        self.rows[5]["repeatable"] = False
        self.check("at m = 17 and 64; a second call had other bits at m = 17.")

    def test_the_figure_and_the_tables(self):
        section = self.check()
        [figure] = section.figures
        measured, model = figure.matching(figure.chosen())
        self.assertEqual((measured.x, measured.y, measured.faint), ([64], [1e-3], False))
        self.assertEqual((model.y, model.faint), ([1.5e-3], True))
        self.assertEqual(figure.finding, "This machine, GPU, fp8 (e4m3), normal: the error for k = 64 is 0.001 (fast "
                                         "accumulation).")
        rows, errors = section.tables
        self.assertEqual(rows.rows[1], ["this machine, GPU", "bf16", "full-precision reductions", "17 and 64", "3", "3",
                                        "3"])
        self.assertEqual(rows.rows[0][3:], ["-", "2", "1", "2"])
        self.assertEqual(errors.rows[1], ["this machine, GPU", "fp8 (e4m3)", "fast accumulation", "positive", "4,096",
                                          "10¹", "0.02", "0.025", "60 of 64", "2", "64"])

    def test_without_results_it_is_empty(self):
        self.rows = []
        self.assertTrue(self.check(verdict="").empty)


# --- the model, from its definition -----------------------------------------------------------------------------------


def exponent(x, least):
    """floor(log2 |x|), but at least `least`."""
    found = x.numerator.bit_length() - x.denominator.bit_length()
    return max(least, found if abs(x) >= fractions.Fraction(2)**found else found - 1)


def toward_zero(x, last):
    """The multiple of 2^last next to x, toward 0."""
    unit = fractions.Fraction(2)**last
    return math.trunc(x / unit) * unit


def to_nearest(x, last):
    unit = fractions.Fraction(2)**last
    return round(x / unit) * unit  # ties to even


def by_definition(a, b, group, kept, least, precision, least_of_result, cut, least_of_factors):
    total = fractions.Fraction(0)
    for start in range(0, len(a), group):
        pairs = [(fractions.Fraction(x), fractions.Fraction(y))
                 for x, y in zip(a[start:start + group], b[start:start + group])]
        found = [exponent(x, least_of_factors) + exponent(y, least_of_factors) for x, y in pairs if x and y]
        found += [exponent(total, least_of_result)] if total else []
        top = max([least, *found])
        total = sum([toward_zero(x * y, top - kept) for x, y in pairs], toward_zero(total, top - kept))
        total = cut(total, exponent(total, least_of_result) - (precision - 1))
    return float(total)


# (format of factors, of sums): the arguments of by_definition
DEFINED = {("fp16", "fp32"): (16, 25, -133, 24, -126, toward_zero, -14),
           ("bf16", "fp32"): (16, 25, -133, 24, -126, toward_zero, -126),
           ("tf32", "fp32"): (8, 25, -133, 24, -126, toward_zero, -126),
           ("fp16", "fp16"): (16, 25, -133, 11, -14, to_nearest, -14),
           ("e4m3", "fp32"): (32, 13, -133, 14, -126, toward_zero, -6)}


class TheModel(unittest.TestCase):
    def numbers(self, rng, shape, format):
        """Numbers of a format that spread over binades, with zeros and, of fp16 and e4m3, subnormal numbers."""
        wide = rng.standard_normal(shape) * 2.0**rng.integers(-9, 3, shape)
        return matrix_unit.rounded(wide * (rng.random(shape) > 0.1), format)

    def test_it_is_the_definition_bit_by_bit(self):
        self.assertEqual(DEFINED.keys(), matrix_unit.UNITS.keys())
        for (format, of_sums), facts in DEFINED.items():
            rng = numpy.random.default_rng(3)
            a, b = (self.numbers(rng, (12, 128), format) for _ in range(2))
            b[:4, 64:] = -b[:4, :64]  # these cancel
            a[:4, 64:] = a[:4, :64]
            expected = [by_definition(x, y, *facts) for x, y in zip(a.tolist(), b.tolist())]
            self.assertEqual(matrix_unit.sums(a, b, format, of_sums).tolist(), expected, format)

    def test_cases_by_hand(self):
        def total(format, a, b, of_sums="fp32"):
            k = matrix_unit.UNITS[format, of_sums].group
            padded = [numpy.array([x + [0.0] * (-len(x) % k)]) for x in (a, b)]
            return matrix_unit.sums(*padded, format, of_sums)[0]
        # 25 bits below the largest exponent are kept in a group, whatever the order of its products
        for small, kept in ((2.0**-25, 2.0**-25), (2.0**-26, 0.0)):
            for order in (1, -1):
                a, b = [1.0, -1.0, small * 2**11][::order], [1.0, 1.0, 2.0**-11][::order]
                self.assertEqual(total("bf16", a, b), kept)
        # the result has 24 bits, cut toward zero, and so 1 + 3 2^-24 is 1 + 2^-23
        self.assertEqual(total("bf16", [1.0, 3 * 2.0**-12], [1.0, 2.0**-12]), 1 + 2.0**-23)
        # fp8 keeps 13 bits
        for small, kept in ((2.0**-13, 2.0**-13), (2.0**-14, 0.0)):
            self.assertEqual(total("e4m3", [1.0, -1.0, 2.0**-7], [1.0, 1.0, small * 2**7]), kept)
        # 1.5 1.5 = 2.25 has the exponent 0 of its factors, so that 2^-25 survives
        self.assertEqual(total("bf16", [1.5, -1.5, 2.0**-12], [1.5, 1.5, 2.0**-13]), 2.0**-25)
        # the second group of tf32 gets the sum of the first as its addend
        self.assertEqual(total("tf32", [1.0] * 8 + [2.0**-12], [1.0] * 8 + [2.0**-12]), 8.0)
        # sums in fp16 keep 25 bits too before they are rounded
        for small, kept in ((2.0**-15, 2.0**-15), (2.0**-16, 0.0)):
            self.assertEqual(total("fp16", [1024.0, -1024.0, 2.0**-8], [1.0, 1.0, small * 2**8], "fp16"), kept)
        # sums in fp16 round to nearest: 2048 + 1 is 2048, 2048 + 3 is 2052
        self.assertEqual([total("fp16", [2048.0, x], [1.0, 1.0], "fp16") for x in (1.0, 3.0)], [2048.0, 2052.0])

    def test_fused_multiply_adds_round_once(self):
        rng = numpy.random.default_rng(4)
        a, b = (rng.standard_normal((20, 60)).astype(numpy.float32).astype(float) for _ in range(2))
        # In fp64, 1 + 2^-23 + 2^-24 - 2^-60 is a tie of fp32, which rounds up.
        a[0], b[0] = 0, 0
        a[0, :2], b[0, :2] = [1 + 2.0**-23, 2.0**-12 + 2.0**-30], [1, 2.0**-12 - 2.0**-30]
        expected = []
        for x, y in zip(a.tolist(), b.tolist()):
            total = fractions.Fraction(0)
            for p, q in zip(x, y):
                total += fractions.Fraction(p) * fractions.Fraction(q)
                total = to_nearest(total, exponent(total, -126) - 23)
            expected.append(float(total))
        self.assertEqual(matrix_unit.fma_sums(a, b).tolist(), expected)
        self.assertEqual(expected[0], 1 + 2.0**-23)

    def test_parts_are_added_in_order_in_fp32(self):
        def total(a, part_format="fp32"):
            ones = numpy.ones((1, len(a)))
            return matrix_unit.sums(numpy.array([a]), ones, "bf16", "fp32", len(a) // 16, part_format)[0]
        zeros, one = [0.0] * 15, [1.0] + [0.0] * 15
        self.assertEqual(total([1.0] * 64), 64.0)
        self.assertEqual(total([2.0**24, *zeros, *one, *one]), 2.0**24)
        self.assertEqual(total([*one, *one, 2.0**24, *zeros]), 2.0**24 + 2)
        # a part of 1 + 2^-8 is 1 in bf16
        part = [1.0, 2.0**-8, *zeros[1:]]
        self.assertEqual([total([*one, *part], f) for f in ("fp32", "bf16")], [2 + 2.0**-8, 2.0])

    def test_numbers_are_rounded_as_numpy_does(self):
        rng = numpy.random.default_rng(5)
        x = rng.standard_normal(4000) * 2.0**rng.integers(-30, 10, 4000)
        x[:3] = 0, 2.0**-25, 3 * 2.0**-26
        for format, dtype in (("fp16", numpy.float16), ("fp32", numpy.float32)):
            self.assertEqual(matrix_unit.rounded(x, format).tolist(), x.astype(dtype).astype(float).tolist())
        self.assertEqual(matrix_unit.rounded(numpy.array([1.07, 2.0**-10, 3 * 2.0**-10, -300.0]), "e4m3").tolist(),
                         [1.125, 0.0, 2.0**-8, -288.0])


# --- the experiment ---------------------------------------------------------------------------------------------------


class TheData(unittest.TestCase):
    def setUp(self):
        self.script = made_up.script("matrix_products")

    def test_numbers_that_cancel_have_the_condition_number_10_000(self):
        for case in ("fp16", "bf16", "tf32", "fp32", "e4m3"):
            for k in (64, 1024):
                a, b = self.script.factors("cancelling", k, case, 1)
                exact, magnitudes = self.script.exact_sums(a, b)
                self.assertTrue(((2e3 < magnitudes / exact) & (magnitudes / exact < 4e4)).all(), (case, k))

    def test_all_factors_are_numbers_of_the_format(self):
        for data in self.script.DATA:
            for case in self.script.DTYPES:
                for x in self.script.factors(data, 64, case, 2):
                    self.assertEqual(matrix_unit.rounded(x, case).tolist(), x.tolist())
                    self.assertTrue((x != 0).mean() > 0.9)

    def test_the_error_is_the_largest_of_all_entries_relative_to_the_magnitudes(self):
        exact, magnitudes = self.script.exact_sums(numpy.array([[1e16, 1.0, 1.0], [1.0, 2.0, 0.0]]),
                                                   numpy.array([[1.0, 1.0, 1.0], [1.0, -1.0, 5.0]]))
        self.assertEqual(exact.tolist(), [1e16 + 2, -1.0])
        self.assertEqual(magnitudes.tolist(), [1e16, 3.0])
        self.assertEqual(self.script.backward_error(numpy.array([1e16 + 2, -1.75]), exact, magnitudes), 0.25)
        self.assertIsNone(self.script.backward_error(numpy.array([math.inf, -1.0]), exact, magnitudes))

    def test_the_parts_are_found_that_have_the_bits(self):
        a, b = self.script.factors("normal", 1024, "bf16", 1)
        chosen = self.script.Setting("bf16", "", "bf16", {"allow_bf16_reduced_precision_reduction": True})
        for parts, part_format in ((1, "fp32"), (4, "fp32"), (8, "bf16")):
            found = matrix_unit.rounded(matrix_unit.sums(a, b, "bf16", "fp32", parts, part_format), "bf16")
            best = self.script.Model(a, b, "bf16").best_parts(chosen, found)
            self.assertEqual(best[0], 64)
            if part_format == "bf16":
                self.assertEqual(best[1:], (8, "bf16"))
        exact = self.script.Setting("bf16", "", "fp32")
        found = matrix_unit.sums(a, b, "bf16", "fp32", 4)
        self.assertEqual(self.script.Model(a, b, "bf16").best_parts(exact, found), (64, 4, "fp32"))


class TheExperiment(unittest.TestCase):
    def run_with(self, modules, *arguments):
        script, err = made_up.script("matrix_products"), io.StringIO()
        with unittest.mock.patch.dict(sys.modules, modules), contextlib.redirect_stderr(err):
            return script.main([*arguments]), err.getvalue()

    def test_what_is_missing_is_said(self):
        code, printed = self.run_with({"torch": None})
        self.assertEqual(code, 2)
        self.assertIn("pip install numpy torch", printed)
        torch = types.ModuleType("torch")
        torch.cuda = types.SimpleNamespace(is_available=lambda: False)
        self.assertEqual(self.run_with({"torch": torch}), (2, "matrix_products.py: PyTorch finds no GPU\n"))
        torch.cuda.is_available = lambda: True
        torch.backends = types.SimpleNamespace(cuda=types.SimpleNamespace(matmul=object()))
        self.assertEqual(self.run_with({"torch": torch}, "--filter", "fp4"),
                         (2, "matrix_products.py: nothing can be measured: no format is named 'fp4'\n"))

    def test_flags_that_are_absent_are_named_and_those_set_before_are_reset(self):
        script = made_up.script("matrix_products")
        matmul = types.SimpleNamespace(allow_fp16_accumulation=False, allow_bf16_reduced_precision_reduction=True)
        torch = types.SimpleNamespace(backends=types.SimpleNamespace(cuda=types.SimpleNamespace(matmul=matmul)))
        with script.with_flags(torch, {"allow_fp16_accumulation": True}):
            self.assertTrue(matmul.allow_fp16_accumulation)
        self.assertFalse(matmul.allow_fp16_accumulation)
        with self.assertRaisesRegex(script.Absent, "allow_bf16_reduced_precision_reduction_split_k"):
            with script.with_flags(torch, {"allow_fp16_accumulation": True,
                                           "allow_bf16_reduced_precision_reduction": (False, False)}):
                pass
        self.assertEqual(vars(matmul),
                         {"allow_fp16_accumulation": False, "allow_bf16_reduced_precision_reduction": True})
        self.assertEqual([s.flags for s in script.settings(matmul) if s.case in ("tf32", "fp32")],
                         [{"allow_tf32": True}, {"allow_tf32": False}])

    def test_kernels_are_those_of_each_call_in_the_order_of_time(self):
        script = made_up.script("matrix_products")

        def event(name, start, *kernels):
            return types.SimpleNamespace(name=name, time_range=types.SimpleNamespace(start=start),
                                         kernels=[types.SimpleNamespace(name=k) for k in kernels])
        found = [event("aten::mm", 20, "gemm", "reduce"), event("aten::t", 15), event("aten::mm", 10, "gemv"),
                 event("aten::mm", 30)]
        profile = contextlib.nullcontext(types.SimpleNamespace(events=lambda: found))
        profiler = types.SimpleNamespace(ProfilerActivity=types.SimpleNamespace(CPU=1, CUDA=2),
                                         profile=lambda activities: profile)
        torch = types.SimpleNamespace(profiler=profiler, float32=None, mm=lambda a, b: None)
        setting, a = script.Setting("fp16", "", "fp16"), numpy.zeros((9, 9))
        self.assertEqual(script.kernel_names(torch, setting, a, types.SimpleNamespace(t=lambda: a), (1, 2, 3), "cpu"),
                         ["gemv", "gemm + reduce", None])
        self.assertEqual(script.kernel_names(torch, setting, a, types.SimpleNamespace(t=lambda: a), (1, 2), "cpu"),
                         [None, None])

    @unittest.skipUnless(HAS_TORCH, "needs PyTorch")
    def test_on_a_cpu_it_writes_rows_that_the_report_reads(self):
        script = made_up.script("matrix_products")
        script.SIZES = {"quick": ((64, 128), (1, 2, 4))}
        script.INNER, script.COLUMNS = 64, 32
        script.main = lambda arguments, main=script.main: main(arguments, device="cpu")
        code, printed, source = made_up.run_script(script, "matrix_products")
        self.assertEqual(code, 0, printed)
        self.assertEqual(source.skipped, 0)
        self.assertEqual({r["case"] for r in source.of("product")}, {*script.DTYPES})
        self.assertEqual({r["case"] for r in source.of("batch")}, {*script.DTYPES})
        self.assertTrue(any("fp32 result" in line for line in source.header["left_out"]))  # which CPUs do not have
        self.assertTrue(all(r["backward_error"] < 128 * 2**-24 for r in source.of("product")
                            if r["case"] in ("fp32", "tf32")))
        import torch
        matmul = torch.backends.cuda.matmul
        self.assertTrue(matmul.allow_fp16_reduced_precision_reduction)
        self.assertFalse(matmul.allow_fp16_accumulation)

    @unittest.skipUnless(HAS_TORCH, "needs PyTorch")
    def test_every_flag_of_this_version_of_pytorch_can_be_set(self):
        import torch
        script = made_up.script("matrix_products")
        library = torch.backends.cuda.preferred_blas_library()
        for setting in script.settings(torch.backends.cuda.matmul):
            with script.with_flags(torch, setting.flags):
                for name, value in setting.flags.items():
                    found = getattr(torch.backends.cuda.matmul, name)
                    self.assertEqual(found, value[0] if isinstance(value, tuple) else value)
        self.assertEqual(torch.backends.cuda.preferred_blas_library(), library)

    @unittest.skipUnless(HAS_TORCH, "needs PyTorch")
    def test_numbers_are_rounded_as_pytorch_does(self):
        import torch
        x = numpy.random.default_rng(6).standard_normal(3000)
        for case, dtype in (("bf16", torch.bfloat16), ("e4m3", torch.float8_e4m3fn)):
            single = x.astype(numpy.float32)
            self.assertEqual(matrix_unit.rounded(single.astype(float), case).tolist(),
                             torch.tensor(single).to(dtype).float().tolist())

    def test_an_interrupted_run_keeps_the_rows_that_it_has_measured(self):
        import pathlib
        import tempfile
        import study
        header = made_up.header("matrix_products")
        with tempfile.TemporaryDirectory() as folder:
            options = types.SimpleNamespace(out=pathlib.Path(folder), process=0, json=False)

            def interrupted(earlier):
                yield batch("bf16", 1, 0, 1)
                raise KeyboardInterrupt
            with contextlib.redirect_stdout(io.StringIO()), self.assertRaises(KeyboardInterrupt):
                study.complete(options, header, [], str, interrupted, at_once=True)
            [source] = results.read(pathlib.Path(folder), questions=["matrix_products"])["matrix_products"]
        self.assertEqual([r["outer"] for r in source.rows], [1])


if __name__ == "__main__":
    unittest.main()
