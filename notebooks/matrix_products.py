"""Section on matrix products of other libraries: errors beside those of a model, and rows that depend on the batch."""

import captions
import phrases
import style
from figure import Figure, Series
from section import Section, Table, distinct, group_by_place, not_measured, preferred, rows_with_place, side_by_side

FORMATS = {"e4m3": "fp8 (e4m3)", "fp16": "fp16", "bf16": "bf16", "tf32": "tf32", "fp32": "fp32"}
COLOURS = [style.COLOURS[name] for name in ("plain", "exact", "double_word", "peer", "fixed_point")]
NOTE = ("The model adds all of k in one accumulator, in order, as the matrix unit does, and for fp32 with fused "
        "multiply-adds. Parts: for which number of equal parts of k, whose sums are added in fp32, it has the bits of "
        "the most entries.")


def section(sources):
    s = Section("matrix_products", "Matrix products",
                "How wrong are matrix products, and does a row depend on the batch?",
                "PyTorch multiplies matrices of each format on a GPU. The backward error max |c - exact| / Σ|ab| "
                "stands beside that of a model of the hardware. The bits of row 0 are compared for few and many rows.",
                "python3 experiments/matrix_products.py --full --out build/study")
    products, batches = (rows_with_place(sources, kind) for kind in ("product", "batch"))
    s.verdict = verdict(products, batches)
    s.findings = [*captions.sentences_by_place(products, findings),
                  *captions.sentences_by_place(batches, batch_findings)]
    s.figures = [f for f in [figure(products)] if f.series]
    s.tables = ([batch_table(batches, sources)] if batches else []) + ([table(products, sources)] if products else [])
    return s


def name(r):
    """'bf16, fp32 result', 'tf32'."""
    alone = r["setting"] in ("tf32", "ieee")
    return FORMATS[r["case"]] + ("" if alone else f", {r['setting']}")


def by_name(rows):
    """{name: rows}, in the order of the formats."""
    found = {}
    for r in sorted(rows, key=lambda r: [*FORMATS].index(r["case"])):
        found.setdefault(name(r), []).append(r)
    return found


def changes(batch):
    """The numbers of rows at which row 0 gets other bits, of rows of one name."""
    return [r["outer"] for r in sorted(batch, key=lambda r: r["outer"]) if r["differ_from_previous"]]


def listed(numbers):
    return phrases.listed(f"{m:,}" for m in numbers)


def results_of_row(batch):
    return max(r["distinct_bits"] for r in batch)


# --- sentences ----------------------------------------------------------------------------------------------------


def verdict(products, batches):
    """The largest error and the row with the most results, here and beside it on another machine."""
    products, batches, found = group_by_place(products), group_by_place(batches), []
    for at in side_by_side(distinct([*products, *batches])):
        parts = []
        finite = [r for r in products.get(at, []) if r["backward_error"] is not None]
        if finite:
            worst = max(finite, key=lambda r: r["backward_error"])
            parts.append(f"the largest error is {in_words(worst)}, {worst['data']} numbers")
        if at in batches:
            label, most = max(by_name(batches[at]).items(), key=lambda item: results_of_row(item[1]))
            results = phrases.plural(results_of_row(most), "result")
            parts.append(f"row 0 has up to {results} for {counts(most)} ({label})")
        if parts:
            found.append(f"{phrases.capitalised('; '.join(parts))} ({at}).")
    return " ".join(found)


def in_words(r):
    """'3.1e-3 of Σ|ab| for k = 65,536 (model: 3.1e-3), fp8 (e4m3), fast accumulation'."""
    return (f"{phrases.number(r['backward_error'], 2)} of Σ|ab| for k = {r['n']:,} "
            f"(model: {phrases.number(r['predicted_backward_error'], 2)}), {name(r)}")


def counts(batch):
    """'1 to 4,096 rows'."""
    return f"{min(r['outer'] for r in batch):,} to {max(r['outer'] for r in batch):,} rows"


def findings(some):
    """Yields a sentence per setting of a place: the largest error, and how often the model has its bits."""
    for rows in by_name(some).values():
        finite = [r for r in rows if r["backward_error"] is not None]
        total = sum(r["entries"] for r in rows)
        one, parts = (sum(r[field] for r in rows) for field in ("same_bits", "same_bits_in_parts"))
        if finite:
            worst = max(finite, key=lambda r: r["backward_error"])
            entries = phrases.out_of(one, total, "entry", "entries")
            yield (f"the largest error is {in_words(worst)}, {worst['data']} numbers. The model has the bits of "
                   f"{entries} with one accumulator, of {parts:,} with parts of k.")


def batch_findings(some):
    """Yields a sentence per setting of a place: where row 0 changes its bits."""
    for label, rows in by_name(some).items():
        at = changes(rows)
        how = (f"{phrases.plural(results_of_row(rows), 'result')} for {counts(rows)}, with other bits than before at "
               f"m = {listed(at)}" if at else f"the same bits for {counts(rows)}")
        unstable = [r["outer"] for r in rows if not r["repeatable"]]
        again = f"; a second call had other bits at m = {listed(unstable)}" if unstable else ""
        yield f"row 0 of {label} has {how}{again}."


# --- figure and tables --------------------------------------------------------------------------------------------


def figure(rows):
    series = []
    for at, some in group_by_place(rows).items():
        lines = {}
        for r in some:
            lines.setdefault((FORMATS[r["case"]], r["data"]), {}).setdefault(r["setting"], []).append(r)
        for (format, data), settings in lines.items():
            for colour, (setting, points) in zip(COLOURS, settings.items()):
                points.sort(key=lambda r: r["n"])
                k, text = ([r["n"] for r in points],
                           [f"model: {phrases.number(r['predicted_backward_error'], 2)}" for r in points])
                series += [Series(label, k, [r[field] for r in points], colour, (at, format, data),
                                  faint=field != "backward_error", text=text, key="model" * (label == "model"))
                           for label, field in ((setting, "backward_error"), ("model", "predicted_backward_error"))]
    shown = {s.on[1] for s in series}
    found = Figure("matrix-products-figure", "Backward error of matrix products, by k",
                   [("Machine", preferred(at for at, _ in rows)),
                    ("Format", [f for f in FORMATS.values() if f in shown]),
                    ("Data", distinct(s.on[2] for s in series))],
                   series, "k", {None: "max |c - exact| / Σ|ab|"},
                   description="Dotted: a model of the hardware that adds all of k in one accumulator.")
    found.finding = ends(found) if series else ""
    return found


def ends(figure):
    """The errors at the right end of the lines that the figure shows first."""
    chosen, lines = captions.initial_view(figure)
    errors = phrases.listed(f"{phrases.number(s.y[-1], 2)} ({s.name})" for s in lines if s.x[-1] == lines[0].x[-1])
    return f"{chosen}: the error for k = {lines[0].x[-1]:,} is {errors}."


def table(rows, sources):
    lines = [[at, FORMATS[r["case"]], r["setting"], r["data"], f"{r['n']:,}", phrases.power_of_ten(r["condition"]),
              phrases.number(r["backward_error"], 2), phrases.number(r["predicted_backward_error"], 2),
              f"{r['same_bits']:,} of {r['entries']:,}", f"{r['parts']:,}", f"{r['same_bits_in_parts']:,}"]
             for at, r in rows]
    columns = ["machine", "format", "setting", "data", "k", "condition number", "error", "model's error",
               "entries with the model's bits", "parts", "with the model's bits in parts"]
    return Table("Errors of matrix products", columns, lines + not_measured(sources, len(columns)), text_columns=4,
                 note=NOTE, page_only=True)


def batch_table(rows, sources):
    lines = []
    for at, some in group_by_place(rows).items():
        for batch in by_name(some).values():
            kernels = distinct(r["kernel"] for r in batch if r["kernel"])
            lines.append([at, FORMATS[batch[0]["case"]], batch[0]["setting"],
                          listed(changes(batch)) or "-", f"{len(batch):,}",
                          f"{results_of_row(batch):,}", f"{len(kernels):,}" if kernels else "-"])
    columns = ["machine", "format", "setting", "row 0 changes at m", "values of m", "different rows 0", "kernels"]
    return Table("Row 0 for different numbers of rows", columns, lines + not_measured(sources, len(columns)),
                 text_columns=4)
