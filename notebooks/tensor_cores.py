"""Section on matrix units: the model of each instruction, beside the hardware."""

import collections
import math

import phrases
import style
import timing
from figure import Figure, Series
from section import Check, Section, Table, not_measured

NOTE = ("Products of a group are added at once: aligned to the largest exponent, cut to the kept bits below it, added as "
        "integers, and rounded once. The addend is one more term of the first group, except where it is added last. NaN are "
        "compared, but which operand's payload they carry is not modelled for fp64.")


def section(sources):
    s = Section("tensor_cores", "Tensor cores", "What do tensor cores add, and with how many bits?",
                "Each instruction for matrix units has a model of how it adds products. Hardware and model compute the same "
                "random dot products of six classes, and probes made of powers of two; the CPU repeats some of them. Sums of "
                "fp16 and bf16 are products with ones.",
                "build/release/bin/tensor_cores --full --out build/study", terms=())
    found = [(source, instructions(source)) for source in sources]
    s.verdict = verdict(found)
    s.findings = [f for source, some in found for f in (*findings(source, some), *findings_of_sums(source))]
    s.figures = [f for f in [figure(sources)] if f.series]
    s.tables = [t for t in (table(found), sums(sources), probes(sources)) if t.rows]
    s.failures = [f"{source.machine}: {name}: {why}" for source, some in found for name, one in some.items()
                  for why in failures(one)]
    s.failures += [f"{source.machine}: {name_of_sum(r)}: {why}" for source in sources for r in source.of("unit_sum")
                   for why in failures_of_sum(r)]
    return s


class Instruction:
    """What a results file has on one instruction."""

    def __init__(self):
        self.about, self.classes, self.dots, self.probes = {}, {}, {}, []

    @property
    def compared(self):
        return sum(r["dots"] for r in self.classes.values())

    @property
    def mismatches(self):
        return sum(r["mismatches"] for r in self.classes.values())

    @property
    def other_nans(self):
        return sum(r["other_nans"] for r in self.classes.values())


def instructions(source):
    """{name: Instruction} of a source, in the order of its rows."""
    found = collections.defaultdict(Instruction)
    for r in source.of("instruction"):
        found[r["instruction"]].about = r
    for r in source.of("fused"):
        found[r["instruction"]].classes[r["class"]] = r
    for r in source.of("dots"):
        found[r["instruction"]].dots = r
    for r in source.of("probe"):
        found[r["instruction"]].probes.append(r)
    return {name: one for name, one in found.items() if one.about}


def failures(one):
    if one.mismatches:
        yield f"{phrases.plural(one.mismatches, 'dot product')} of {one.compared:,} differ from the model"
    wrong = sum(not r["same"] for r in one.probes)
    if wrong:
        yield f"{phrases.plural(wrong, 'probe')} of {len(one.probes)} differ from the model"
    if one.dots and one.dots["equal"] != len(one.dots["hashes"]):
        yield f"the model on the CPU has {one.dots['equal']} of {phrases.plural(len(one.dots['hashes']), 'hash', 'hashes')}"


def name_of_sum(r):
    """'sums of bf16, normal, 8,192 x 4,096'."""
    return f"sums of {r['input_format']}, {r['data']}, {shape(r)}"


def shape(r):
    if r["inner"] > 1:
        return f"{r['n']:,} x {r['inner']:,}, along the first axis"
    return f"{r['outer']:,} x {r['n']:,}" if r["outer"] > 1 else f"a vector of {phrases.count(r['n'])}"


def failures_of_sum(r):
    if not r["within_bound"]:
        yield f"the error {phrases.number(r['error'])} exceeds its bound {phrases.number(r['bound'])}"
    if not r["verified"]:
        yield "has other bits than its definition"
    if r["distinct_bits"] != 1:
        yield f"launches returned {phrases.plural(r['distinct_bits'], 'result')}"


# --- sentences ----------------------------------------------------------------------------------------------------

def verdict(found):
    """How many instructions have the bits of their models, on each machine with the hardware."""
    texts = []
    for source, some in found:
        compared = [one for one in some.values() if one.compared]
        if compared:
            right = sum(not one.mismatches for one in compared)
            least = min(one.compared for one in compared)
            has = phrases.verb(right, len(compared), "has the bits of its model", "have the bits of their models")
            texts.append(f"{phrases.capitalised(phrases.out_of(right, len(compared), 'instruction'))} {has} in all of at least "
                         f"{least:,} random dot products ({source.machine}).")
    return " ".join(texts)


def findings(source, some):
    compared = [one for one in some.values() if one.compared]
    if compared:
        right = sum(not one.mismatches for one in compared)
        yield Check(f"{source.machine}: {phrases.out_of(right, len(compared), 'instruction')} "
                    f"{phrases.verb(right, len(compared), 'agrees', 'agree')} with the model on "
                    f"{sum(one.compared for one in compared):,} random dot products together.",
                    right, len(compared), "instruction with the bits of its model",
                    "instructions with the bits of their models")
        tested = [r for one in compared for r in one.probes]
        same = sum(r["same"] for r in tested)
        yield Check(f"{source.machine}: {phrases.out_of(same, len(tested), 'probe')} "
                    f"{phrases.verb(same, len(tested), 'has', 'have')} the results of the model.",
                    same, len(tested), "probe with the model's result", "probes with the model's results")
    kept = {}
    for name, one in some.items():
        if one.about["model"]:
            kept.setdefault(one.about["model"]["fraction_bits"], []).append(name)
    for bits, names in sorted(kept.items()):
        yield (f"{source.machine}: {phrases.plural(len(names), 'instruction')} "
               f"{phrases.verb(len(names), len(names), 'keeps', 'keep')} {bits} bits below the largest exponent.")
    repeated = [one.dots for one in some.values() if one.dots.get("by") == "hardware"]
    if repeated:
        equal, total = sum(r["equal"] for r in repeated), sum(len(r["hashes"]) for r in repeated)
        yield Check(f"{source.machine}: the model on the CPU has {phrases.out_of(equal, total, 'hash', 'hashes')} of the "
                    "hardware's results.", equal, total, "hash that the CPU has, too",
                    "hashes that the CPU has, too")


def times(r):
    """The rows that timing compares: sums by matrix units, and `tree` in the same rounds."""
    tree = {field: r["tree_" + field] for field in ("seconds", "low", "high", "rounds")}
    return r, r | tree


def findings_of_sums(source):
    rows = source.of("unit_sum")
    if not rows:
        return
    kept = sum(r["within_bound"] for r in rows)
    yield Check(f"{source.machine}: the errors of {phrases.out_of(kept, len(rows), 'array')} summed by matrix units are within "
                "their bounds.", kept, len(rows), "error within its bound", "errors within their bounds")
    same = sum(r["verified"] and r["distinct_bits"] == 1 for r in rows)
    yield Check(f"{source.machine}: the sums of {phrases.out_of(same, len(rows), 'array')} by matrix units have the bits of their "
                "definition, in every launch.", same, len(rows), "array with the bits of the definition",
                "arrays with the bits of the definition")
    ratios = sorted(((ratio, r) for r in rows if (ratio := timing.ratio(*times(r)))), key=lambda pair: pair[0].value)
    worse = max(rows, key=times_the_error_of_tree)
    if ratios:
        (most, slowest), (least, fastest) = ratios[0], ratios[-1]
        yield (f"{source.machine}: beside tree in fp32, sums by matrix units take {least.as_long} ({name_of_sum(fastest)}) to "
               f"{most.as_long} ({name_of_sum(slowest)}).")
    if times_the_error_of_tree(worse):
        yield (f"{source.machine}: their largest error is up to {phrases.number(times_the_error_of_tree(worse))} times that "
               f"of tree ({name_of_sum(worse)}), because what does not fit is cut, always toward zero.")


def times_the_error_of_tree(r):
    """The error over that of tree; 0 if that is 0, or if one of both is not finite."""
    return r["error"] / r["tree_error"] if r["error"] is not None and r["tree_error"] else 0


def size_of_error(r):
    return math.inf if r["error"] is None else r["error"]


# --- figure and tables -------------------------------------------------------------------------------------------------------

def table(found):
    lines = [[source.machine, name, ", ".join(one.about["opcodes"] or [one.about["expected_opcode"]]),
              *model_in_words(one.about), *(f"{n:,}" if one.compared else "-"
                                            for n in (one.compared, one.mismatches, one.other_nans))]
             for source, some in found for name, one in some.items()]
    columns = ["machine", "instruction of PTX", "machine code", "addend", "rounding", "products at once", "bits kept",
               "bits of the result", "dot products", "differ", "NaN with other bits"]
    return Table("Instructions and their models", columns,
                 lines + not_measured([source for source, _ in found], len(columns)), text_columns=5, note=NOTE)


def model_in_words(about):
    """Addend, rounding, products at once, kept bits, and fraction bits of the result."""
    model = about["model"]
    if not model:
        exact = about["expected_opcode"].startswith("I")
        return ["first", "none" if exact else "to nearest, each", f"{about['products']}" if exact else "1",
                "all" if exact else "53", "all" if exact else "52"]
    return ["last" if model["adds_last"] else "with the first", model["rounding"], f"{model['group']}",
            f"{model['fraction_bits']}", f"{model['result_fraction_bits']}"]


def figure(sources):
    series, formats, data = [], [], []
    largest = max(((source, r) for source in sources for r in source.of("unit_sum")), default=None,
                  key=lambda pair: size_of_error(pair[1]))
    for source in sources:
        lines = {}
        for r in source.of("unit_sum"):
            lines.setdefault((r["input_format"], r["data"]), []).append(r)
        for (fmt, name), rows in lines.items():
            formats.append(fmt)
            data.append(name)
            longest = {}
            for r in rows:  # of several arrays with sums of this length, the one with the largest error
                longest[r["n"]] = max(longest.get(r["n"], r), r, key=size_of_error)
            points = [longest[n] for n in sorted(longest)]
            for what, field, method in (("matrix unit", "error", "cub/fp32@peer"), ("bound", "bound", "cub/fp32@peer"),
                                        ("tree", "tree_error", "sum/tree/plain/fp32@cuda")):
                series.append(Series(what, [r["n"] for r in points], [r[field] for r in points], style.colour(method),
                                     (source.machine, fmt, name), faint=what == "bound",
                                     key="proved bound" * (what == "bound"), text=[name_of_sum(r) for r in points]))
    initial = {}
    if largest:
        source, r = largest
        initial = {"Machine": source.machine, "Elements": r["input_format"], "Data": r["data"]}
    return Figure("unit-sums", "Error of sums by matrix units, relative to the sum of magnitudes",
                  [("Machine", [*dict.fromkeys(s.on[0] for s in series)]), ("Elements", [*dict.fromkeys(formats)]),
                   ("Data", [*dict.fromkeys(data)])], series, "elements of a sum", {None: "|error| / Σ|x|"}, x_kind="log10",
                  y_kind="log10", description="The largest error of an array of sums, beside the proved bound and tree in fp32.",
                  finding=finding_of_errors(*largest) if largest else "", initial=initial)


def finding_of_errors(source, r):
    """A sentence on the largest error of a sum."""
    return (f"{phrases.capitalised(source.machine)}: the largest error of sums by matrix units is "
            f"{phrases.number(r['error'])} Σ|x|, {'within' if r['within_bound'] else 'beyond'} its bound of "
            f"{phrases.number(r['bound'])} Σ|x| ({name_of_sum(r)}).")


def sums(sources):
    lines = []
    for source in sources:
        for r in source.of("unit_sum"):
            ratio = timing.ratio(*times(r))
            lines.append([source.machine, r["input_format"], r["data"], shape(r), phrases.number(r["error"]),
                          phrases.number(r["bound"]), phrases.number(r["tree_error"]), phrases.number(r["seconds"] * 1e6),
                          phrases.number(r["tree_seconds"] * 1e6), ratio.of_times if ratio else "-"])
    return Table("Sums by matrix units, and tree in fp32", ["machine", "elements", "data", "array", "error / Σ|x|", "bound",
                 "of tree", "time, µs", "of tree", "ratio"], lines, text_columns=4, folded=True)


def probes(sources):
    lines = [[source.machine, r["instruction"], r["found"].removeprefix("probe ")]
             for source in sources for r in source.of("probe")]
    return Table("Probes", ["machine", "instruction", "what it returned"], lines, text_columns=3, folded=True,
                 page_only=True)
