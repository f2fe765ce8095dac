"""How wrong are other people's matrix products, and does a row of the result depend on the batch?

PyTorch multiplies on a GPU: fp16, bf16, tf32 and fp32 by torch.mm, fp8 (e4m3, scales of 1) by torch._scaled_mm. B is
column-major, as the weights of torch.nn.Linear are. Two parts:
  errors  64 x 64 products for several k, of normal numbers, of positive ones (uniform in [0, 1)), and of numbers that
          cancel: each product is there with both signs, except one, so that the condition number is 10^4. All factors
          are numbers of the format. The error is that of the 64 entries of the diagonal; Python's math.fsum
          adds their products, which are exact in fp64
  batch   the first m rows of A, for m from 1 on, times B, with k = 4096 and 1024 columns, of normal numbers. The bits
          of row 0 are compared with those of m = 1 and of the previous m
The settings are PyTorch's: whether partial sums of a split k may be reduced in fp16 or bf16, whether fp16 is the format
of the accumulator, whether k may be split, and whether fp8 accumulates fast. "fp32 result" is torch.mm with
out_dtype=torch.float32, which shows what the rounding to 16 bits hides.

The columns of errors are the format of the factors, the setting, the data, k, the backward error max |c - exact| /
sum |ab|, and what a model of the hardware predicts for one accumulator that adds all of k in order: the backward error,
and how many of the entries have the bits of the model. Libraries may split k. So the model is tried with equal parts of
k too, whose sums are added in order in fp32: the last columns are the number of parts with the most entries of the same
bits, and how many these are. matrix_unit.py is the model: of matrix units, and for fp32 of fused multiply-adds.
The columns of batches are the format, the setting, m, how many entries of row 0 have other bits than for m = 1 and
for the previous m, how many different rows 0 there were so far, whether a second call had other bits, and the kernels.

What cannot be measured is left out, and a line says so. Writes DIR/matrix_products.jsonl, in the form that
harness/results.schema.json describes, after each row. Exits with 0; with 2 for wrong usage, and if nothing can be
measured.
"""

import contextlib
import dataclasses
import fnmatch
import importlib
import math
import sys

import study

QUESTION = "How wrong are other people's matrix products, and does a row depend on the batch?"
ROWS = 64  # and columns, of the products whose errors are measured
CONDITION = 1e4
DATA = ("normal", "positive", "cancelling")
INNER, COLUMNS = 4096, 1024  # of the products of batches
MOST_PARTS = 32
PROMOTED = (32, 64, 128, 256)  # fp8 without fast accumulation may add sums of so many products in fp32
# mode: values of k, values of m
SIZES = {"quick": ((64, 256, 1024, 4096), (1, 2, 3, 4, 7, 8, 16, 17, 32, 64, 65, 128, 256)),
         "full": (tuple(4**i for i in range(3, 9)),
                  (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 24, 32, 33, 48, 64, 65, 96, 127, 128, 129, 192, 256, 257, 384, 512,
                   768, 1000, 1024, 1536, 2048, 3072, 4096))}
DTYPES = {"fp16": "float16", "bf16": "bfloat16", "tf32": "float32", "fp32": "float32", "e4m3": "float8_e4m3fn"}


@dataclasses.dataclass(frozen=True)
class Setting:
    case: str  # the format of the factors
    name: str
    result: str  # its format
    flags: dict = dataclasses.field(default_factory=dict)  # of torch.backends.cuda.matmul
    accumulator: str = "fp32"
    is_fast: bool = False  # accumulation of fp8

    @property
    def method(self):
        return f"torch/{'scaled_mm' if self.case == 'e4m3' else 'matmul'}/{self.result}@peer"

    @property
    def part_formats(self):
        """The formats in which a library may store the sums of parts of k."""
        is_reduced = f"allow_{self.result}_reduced_precision_reduction"
        return ["fp32"] + [self.result] * (self.flags.get(is_reduced) is True)


def settings(matmul):
    """All settings; `matmul` is torch.backends.cuda.matmul."""
    found = []
    for case in ("fp16", "bf16"):
        flag = f"allow_{case}_reduced_precision_reduction"
        found += [Setting(case, "reduced-precision reductions", case, {flag: True}),
                  Setting(case, "full-precision reductions", case, {flag: False}),
                  Setting(case, "fp32 result", "fp32", {flag: False}),
                  Setting(case, "fp32 result, k not split", "fp32", {flag: (False, False)})]
    found.append(Setting("fp16", "fp16 accumulation", "fp16", {"allow_fp16_accumulation": True}, "fp16"))
    for case, precision in (("tf32", "tf32"), ("fp32", "ieee")):
        flags = ({"fp32_precision": precision} if hasattr(matmul, "fp32_precision") else
                 {"allow_tf32": precision == "tf32"})
        found.append(Setting(case, precision, "fp32", flags))
    return [*found, Setting("e4m3", "fast accumulation", "fp32", is_fast=True),
            Setting("e4m3", "full accumulation", "fp32")]


# --- PyTorch ----------------------------------------------------------------------------------------------------------


class Absent(RuntimeError):
    """A flag that this version of PyTorch lacks."""


@contextlib.contextmanager
def with_flags(torch, flags):
    """Sets flags of torch.backends.cuda.matmul, and resets them. Only cuBLASLt can be kept from splitting k."""
    cuda, before, library = torch.backends.cuda, {}, None
    try:
        for name, value in flags.items():
            needed = [name, f"{name}_split_k"] if isinstance(value, tuple) else [name]
            for each in needed:
                if not hasattr(cuda.matmul, each):
                    raise Absent(f"no torch.backends.cuda.matmul.{each}")
            before[name] = getattr(cuda.matmul, name)
            if isinstance(value, tuple):
                before[name] = tuple(getattr(cuda.matmul, each) for each in needed)
                library = cuda.preferred_blas_library()
                cuda.preferred_blas_library("cublaslt")
            setattr(cuda.matmul, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(cuda.matmul, name, value)
        if library is not None:
            cuda.preferred_blas_library(library)


def product(torch, setting, a, b):
    """A times B, whose columns are the rows of `b`."""
    if setting.case == "e4m3":
        one = torch.ones((), device=a.device)
        return torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.float32, use_fast_accum=setting.is_fast)
    if setting.result == "fp32" and a.dtype != torch.float32:
        return torch.mm(a, b.t(), out_dtype=torch.float32)
    return torch.mm(a, b.t())


def tensor(torch, x, case, device):
    return torch.tensor(x, dtype=torch.float32).to(device).to(getattr(torch, DTYPES[case]))


# --- errors -----------------------------------------------------------------------------------------------------------


def factors(data, k, case, seed):
    """A by rows and B by columns, as float64 with numbers of the format."""
    import numpy as np
    from matrix_unit import rounded
    rng = np.random.default_rng([seed, k, DATA.index(data)])
    a, b = (rounded(rng.random((ROWS, k)) if data == "positive" else rng.standard_normal((ROWS, k)), case)
            for _ in range(2))
    if data == "cancelling":
        first, second = rng.permutation(k).reshape(2, -1)
        a[:, second], b[:, second] = a[:, first], -b[:, first]
        kept, dropped = first[0], second[0]
        a[:, kept], b[:, [kept, dropped]] = 1, 0
        b[:, kept] = rounded(abs(a * b).sum(1) / CONDITION, case)
    return a, b


def exact_sums(a, b):
    """(exact sums of the products of each row, rounded once; sums of their magnitudes)"""
    import numpy as np
    products = a * b
    return np.array([math.fsum(row.tolist()) for row in products]), abs(products).sum(1)


def backward_error(sums, exact, magnitudes):
    """The largest |c - exact| / sum |ab|; None if a sum is not finite."""
    error = float((abs(sums - exact) / magnitudes).max())
    return error if math.isfinite(error) else None


class Model:
    """What the model predicts for some factors, computed when it is needed."""

    def __init__(self, a, b, case):
        self.a, self.b, self.case, self.found = a, b, case, {}

    def sums(self, setting, parts=1, part_format="fp32"):
        """The sums for parts of k, rounded to the format of the result."""
        import matrix_unit
        key = setting.accumulator, parts, part_format
        if key not in self.found:
            self.found[key] = matrix_unit.sums(self.a, self.b, self.case, setting.accumulator, parts, part_format)
        return matrix_unit.rounded(self.found[key], setting.result)

    def numbers_of_parts(self):
        k = self.a.shape[1]
        shortest = 32  # a multiple of the groups of all formats
        found = {2**i for i in range(MOST_PARTS.bit_length()) if k // 2**i >= shortest}
        return sorted(found | ({k // n for n in PROMOTED if k > n} if self.case == "e4m3" else set()))

    def best_parts(self, setting, found):
        """(entries with the same bits, parts, format of their sums) of the parts that have the most of them."""
        best = (-1, 0, "")
        for part_format in setting.part_formats:
            for parts in self.numbers_of_parts():
                same = int((self.sums(setting, parts, part_format) == found).sum())
                best = max(best, (same, parts, part_format), key=lambda each: each[0])
                if same == len(found):
                    return best
        return best


def errors(torch, chosen, options, device, leave_out):
    """Yields the rows of the first part."""
    for k in SIZES[options.mode][0]:
        for data in DATA:
            for case in dict.fromkeys(s.case for s in chosen):
                a, b = factors(data, k, case, options.seed)
                exact, magnitudes = exact_sums(a, b)
                model, on_device = Model(a, b, case), [tensor(torch, x, case, device) for x in (a, b)]
                for setting in (s for s in chosen if s.case == case):
                    try:
                        with with_flags(torch, setting.flags):
                            found = product(torch, setting, *on_device).diagonal().double().cpu().numpy()
                    except (RuntimeError, TypeError) as error:
                        leave_out(f"{case}, {setting.name}, k = {k}", error)
                        continue
                    predicted = model.sums(setting)
                    same, parts, part_format = model.best_parts(setting, found)
                    yield {"kind": "product", "method": setting.method, "promise": "none", "case": case,
                           "setting": setting.name, "data": data, "seed": options.seed, "n": k, "entries": ROWS,
                           "condition": float(sorted(magnitudes / abs(exact))[ROWS // 2]),
                           "backward_error": backward_error(found, exact, magnitudes),
                           "predicted_backward_error": backward_error(predicted, exact, magnitudes),
                           "same_bits": int((predicted == found).sum()),
                           "parts": parts, "part_format": part_format, "same_bits_in_parts": same}


# --- batches ----------------------------------------------------------------------------------------------------------


def bits(torch, row):
    """The bits of a row, as an array of integers."""
    return row.contiguous().view(torch.int16 if row.element_size() == 2 else torch.int32).cpu().numpy()


def kernel_names(torch, setting, a, b, counts, device):
    """The names of the kernels of each product; None for products of which the profiler names none."""
    profiler = torch.profiler
    activities = [profiler.ProfilerActivity.CPU] + [profiler.ProfilerActivity.CUDA] * (device == "cuda")
    with profiler.profile(activities=activities) as profile:
        for m in counts:
            product(torch, setting, a[:m], b)
        if device == "cuda":
            torch.cuda.synchronize()
    calls = sorted((e for e in profile.events() if e.name in ("aten::mm", "aten::_scaled_mm")),
                   key=lambda e: e.time_range.start)
    if len(calls) != len(counts):
        return [None] * len(counts)
    return [" + ".join(k.name for k in call.kernels)[:300] or None for call in calls]


def batches(torch, chosen, options, device, leave_out):
    """Yields the rows of the second part."""
    counts = SIZES[options.mode][1]
    torch.manual_seed(options.seed)
    all_a, all_b = (torch.randn(n, INNER, device=device) for n in (max(counts), COLUMNS))
    for setting in chosen:
        a, b = (x.to(getattr(torch, DTYPES[setting.case])) for x in (all_a, all_b))
        measured, kernels = {}, {}
        for m in counts:
            try:
                with with_flags(torch, setting.flags):
                    measured[m] = [bits(torch, product(torch, setting, a[:m], b)[0]) for _ in range(2)]
            except (RuntimeError, TypeError) as error:
                leave_out(f"{setting.case}, {setting.name}, m = {m}", error)
        if 1 not in measured:
            continue
        try:
            with with_flags(torch, setting.flags):
                kernels = dict(zip(measured, kernel_names(torch, setting, a, b, measured, device)))
        except Exception as error:  # the profiler may lack rights, and no result needs it
            leave_out("names of kernels", error)
        different, previous = [], None
        for m, (row, again) in measured.items():
            if not any((row == other).all() for other in different):
                different.append(row)
            yield {"kind": "batch", "method": setting.method, "promise": "none", "case": setting.case,
                   "setting": setting.name, "data": "normal", "seed": options.seed, "n": INNER, "outer": m,
                   "inner": COLUMNS, "differ_from_one_row": int((row != measured[1][0]).sum()),
                   "differ_from_previous": int((row != (row if previous is None else previous)).sum()),
                   "distinct_bits": len(different), "repeatable": bool((row == again).all()),
                   "kernel": kernels.get(m)}
            previous = row


# --- the experiment ---------------------------------------------------------------------------------------------------


def text_of(r):
    about = f"{r['case']:4} {r['setting']:28}"
    if r["kind"] == "batch":
        return (f"{about} m {r['outer']:5} {r['differ_from_one_row']:5} other than m = 1 "
                f"{r['differ_from_previous']:5} than previous {r['distinct_bits']:3} results"
                f"{'' if r['repeatable'] else ', not repeatable'}  {r['kernel'] or '-'}")
    found, predicted = ("-" if e is None else f"{e:.2e}" for e in (r["backward_error"], r["predicted_backward_error"]))
    return (f"{about} {r['data']:10} k {r['n']:6} error {found:8} predicted {predicted:8} same bits "
            f"{r['same_bits']:3} of {r['entries']}; {r['parts']:3} parts {r['same_bits_in_parts']:3}")


def measured(torch, chosen, options, device, leave_out):
    for part in (errors, batches):
        yield from part(torch, chosen, options, device, leave_out)


def main(arguments, device="cuda"):
    parser = study.parser_of("matrix_products", __doc__, "", "--filter e4m3", "--full --out build/study")
    study.add_options(parser, "matrix_products", "k to 4096, seconds", "k to 65536, a minute",
                      "measure only these formats: fp16, bf16, tf32, fp32, e4m3", has_times=False)
    options = study.parsed(parser, arguments)
    try:
        numpy, torch = map(importlib.import_module, ("numpy", "torch"))
    except ImportError as error:
        print(f"matrix_products.py: {error}; pip install numpy torch", file=sys.stderr)
        return 2
    if device == "cuda" and not torch.cuda.is_available():
        print("matrix_products.py: PyTorch finds no GPU", file=sys.stderr)
        return 2
    chosen = [s for s in settings(torch.backends.cuda.matmul) if fnmatch.fnmatch(s.case, options.filter or "*")]
    if not chosen:
        return study.nothing_to_measure("matrix_products", [], f"no format is named {options.filter!r}")
    left_out, said = [], set()

    def leave_out(what, error):
        """Says what is left out, once for the same reason and the same text before the last comma."""
        reason = str(error).strip().partition("\n")[0][:200] or type(error).__name__
        if (what.rpartition(",")[0], reason) not in said:
            said.add((what.rpartition(",")[0], reason))
            left_out.append(f"{what}: {reason}")
            study.say_left_out(options, left_out[-1:])
    versions = {"torch": torch.__version__, "numpy": numpy.__version__, "cuda": torch.version.cuda or "none"}
    header = study.header("matrix_products", QUESTION, options, versions)
    rows = study.complete(options, header, left_out, text_of, lambda earlier: measured(
        torch, chosen, options, device, leave_out), at_once=True)
    return 0 if rows else study.nothing_to_measure("matrix_products", left_out, "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
