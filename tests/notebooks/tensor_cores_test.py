"""Tests of the section on matrix units with made-up rows.

Run by ctest, or: build/venv/bin/python tests/notebooks/tensor_cores_test.py
"""

import unittest

import made_up

MMA, WGMMA = "mma.sync.fp16", "wgmma.fp8"
MODEL = {"group": 16, "run": 16, "fraction_bits": 25, "smallest_exponent": -133, "adds_last": False,
         "result_fraction_bits": 23, "rounding": "toward zero"}


def instruction(name, opcode, **model):
    return {"kind": "instruction", "instruction": name, "opcodes": [opcode], "expected_opcode": opcode, "products": 16,
            "model": MODEL | model}


def fused(name, kind, dots, mismatches=0, other_nans=0):
    return {"kind": "fused", "instruction": name, "class": kind, "seed": 1, "dots": dots, "mismatches": mismatches,
            "other_nans": other_nans}


def dots(name, equal=2, by="hardware"):
    return {"kind": "dots", "instruction": name, "seed": 1, "n": 2048, "by": by, "equal": equal, "hashes": ["0x1", "0x2"],
            "cases": []}


def probe(name, same=True):
    return {"kind": "probe", "instruction": name, "probe": 0, "found": "probe bits: last kept 2^-25", "same": same}


def unit_sum(n, error, seconds, inner=1, **more):
    return {"kind": "unit_sum", "input_format": "bf16", "data": "normal", "outer": 1, "n": n, "inner": inner, "seed": 1,
            "compared": 16, "error": error, "bound": 5e-6, "within_bound": True, "verified": True, "distinct_bits": 1,
            "tree_error": 1e-8, "seconds": seconds, "low": seconds, "high": seconds, "turns": n, "rounds": [[seconds] * 5],
            "tree_seconds": 1e-5, "tree_low": 1e-5, "tree_high": 1e-5, "tree_rounds": [[1e-5] * 5]} | more


class TensorCores(made_up.SectionTest):
    question = "tensor_cores"

    def setUp(self):
        self.rows = [instruction(MMA, "HMMA"), probe(MMA), fused(MMA, "ordinary", 3000), fused(MMA, "wide", 1000, 0, 7),
                     dots(MMA), instruction(WGMMA, "QGMMA", fraction_bits=13), fused(WGMMA, "ordinary", 5000),
                     dots(WGMMA)]

    def test_unchanged_rows(self):
        self.check("both instructions agree with the model on 9,000 random dot products together",
                   "the only probe has the results of the model", "1 instruction keeps 13 bits below the largest exponent",
                   "the model on the CPU has all 4 hashes of the hardware's results", failures=[],
                   verdict="Both instructions have the bits of their models in all of at least 4,000 random dot products "
                           "(this machine).")

    def test_a_model_that_is_wrong_is_a_failure(self):
        self.rows[1]["same"], self.rows[3]["mismatches"], self.rows[7]["equal"] = False, 2, 1
        at = "this machine: "
        self.check("1 of 2 instructions agrees", failures=[
            at + f"{MMA}: 2 dot products of 4,000 differ from the model",
            at + f"{MMA}: 1 probe of 1 differ from the model",
            at + f"{WGMMA}: the model on the CPU has 1 of 2 hashes"])

    def test_the_table(self):
        table = self.check().tables[0]
        self.assertEqual(table.rows[0][1:], [MMA, "HMMA", "with the first", "toward zero", "16", "25", "23", "4,000", "0",
                                             "7"])

    def test_sums_are_compared_with_their_bounds_and_with_tree(self):
        self.rows += [unit_sum(1024, 1e-7, 2e-5), unit_sum(2**20, 4e-7, 5e-6, within_bound=False),
                      unit_sum(1024, 2e-7, 1e-5, inner=64, distinct_bits=2)]
        section = self.check(
            "the errors of 2 of 3 arrays summed by matrix units are within their bounds",
            "beside tree in fp32, sums by matrix units take 0.50 [0.50, 0.50] times as long (sums of bf16, normal, a vector of "
            "2²⁰) to 2.00 [2.00, 2.00] times as long (sums of bf16, normal, a vector of 2¹⁰)",
            "their largest error is up to 40 times that of tree (sums of bf16, normal, a vector of 2²⁰)",
            failures=["this machine: sums of bf16, normal, a vector of 2²⁰: the error 4e-07 exceeds its bound 5e-06",
                      "this machine: sums of bf16, normal, 1,024 x 64, along the first axis: launches returned 2 results"])
        self.assertEqual(section.figures[0].finding,
                         "This machine: the largest error of sums by matrix units is 4e-07 Σ|x|, beyond its bound of 5e-06 "
                         "Σ|x| (sums of bf16, normal, a vector of 2²⁰).")
        unit, bound, tree = section.figures[0].matching(section.figures[0].chosen())
        self.assertEqual((unit.x, unit.y, bound.y, tree.y), ([1024, 2**20], [2e-7, 4e-7], [5e-6] * 2, [1e-8] * 2))
        self.assertEqual(section.tables[1].rows[0][3:], ["a vector of 2¹⁰", "1e-07", "5e-06", "1e-08", "20", "10",
                                                         "2.00 [2.00, 2.00]"])

    def test_without_the_hardware_there_is_no_verdict(self):
        source = made_up.source("tensor_cores", [instruction(MMA, "HMMA"), dots(MMA, by="model")])
        source.header["left_out"] = ["the hardware: no GPU was found"]
        import tensor_cores
        section = tensor_cores.section([source])
        self.assertEqual(section.verdict, "")
        self.assertEqual(section.tables[0].rows[0][8:], ["-", "-", "-"])
        self.assertIn("not measured: the hardware: no GPU was found", section.tables[0].rows[1])


if __name__ == "__main__":
    unittest.main()
