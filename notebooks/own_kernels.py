"""Section on sums in one's own kernels: cells beside the float atomics of Triton, CuPy and Numba."""

import captions
import phrases
import style
import timing
from figure import Figure, Series
from section import Check, Section, Table, group_by_place, not_measured, preferred, rows_with_place, side_by_side

LANGUAGES = {"triton": "Triton", "cupy": "CuPy", "numba": "Numba"}
NOTE = ("Float atomics of Triton acquire and release by default, as if they guarded other memory; a sum needs relaxed "
        "ones. Times are those of the GPU alone, without the launch.")


def section(sources):
    s = Section("own_kernels", "Own kernels", "What does an order-free sum cost in my own kernel?",
                "Kernels of Triton, CuPy and Numba add numbers to cells: by the float atomics of the language, on a "
                "grid, and exactly. Each call is repeated, and the different results are counted.",
                "python3 experiments/own_kernels.py --full --out build/study",
                terms=("promise", "faster, as fast, not decided"))
    rows = rows_with_place(sources, "kernel")
    s.verdict = verdict(rows)
    s.findings = [*own_findings(rows), *captions.sentences_by_place(rows, findings)]
    s.figures = [f for f in [figure(rows)] if f.series]
    s.tables = [table(rows, sources)] if rows else []
    s.failures = [f"{at}: samesum: {name(r)}: {why}" for at, r in rows for why in failures(r)]
    return s


def name(r):
    """'exact cells, Triton, 16 uniform indices'."""
    return f"{what(r)}, {LANGUAGES[r['case']]}, {r['bins']:,} {r['keys']} indices"


def what(r):
    if phrases.is_peer(r["method"]):
        return "float atomics" + (", acquire and release" if r["setting"] != "relaxed" else "")
    return "exact cells" if "/exact/" in r["method"] else "cells on a grid"


def failures(r):
    if r["broken"]:
        yield f"promises {r['promise']} but returned {phrases.plural(r['distinct_bits'], 'result')}"
    if r["verified"] is False:
        yield "has other bits than samesum.scatter_add"


def pairs(rows):
    """[(row of relaxed float atomics, row of cells), …] of the rows of a place."""
    def key(r):
        return tuple(r[field] for field in ("case", "keys", "seed", "n", "bins"))
    floats = {key(r): r for r in rows if phrases.is_peer(r["method"]) and r["setting"] == "relaxed"}
    return [(floats[key(r)], r) for r in rows if not phrases.is_peer(r["method"]) and key(r) in floats]


def worst_first(some):
    """[(row of cells, Ratio of it and float atomics), …] of the rows of a place, the longest time first."""
    found = [(ours, timing.ratio(ours, theirs)) for theirs, ours in pairs(some)]
    return sorted(((ours, ratio) for ours, ratio in found if ratio), key=lambda pair: pair[1].value)


# --- sentences ----------------------------------------------------------------------------------------------------

def verdict(rows):
    """The results of float atomics and of cells, and the times of the slowest cells, and of the fastest with the same
    language and indices, as the figure shows them first."""
    places, found = group_by_place(rows), []
    for at in side_by_side(places):
        both = worst_first(places[at])
        both = [pair for pair in both if all(pair[0][field] == both[0][0][field] for field in ("case", "keys"))]
        if both:
            floats = [r for r in places[at] if phrases.is_peer(r["method"])]
            most = max(floats, key=lambda r: r["distinct_bits"])
            ours = max(r["distinct_bits"] for r, _ in both)
            ends = "; ".join(dict.fromkeys(f"{name(r)}, take {ratio.as_long}" for r, ratio in (both[-1], both[0])))
            found.append(f"Float atomics gave up to {phrases.plural(most['distinct_bits'], 'result')} in "
                         f"{phrases.plural(most['runs'], 'launch', 'launches')}, cells {ours}; {ends} ({at}).")
    return " ".join(found)


def own_findings(rows):
    checked = [r["verified"] for _, r in rows if r["verified"] is not None]
    if checked:
        yield Check(f"{phrases.capitalised(phrases.out_of(sum(checked), len(checked), 'result'))} of cells "
                    f"{phrases.verb(sum(checked), len(checked), 'has', 'have')} the bits of samesum.scatter_add.",
                    sum(checked), len(checked), "result with the right bits", "results with the right bits")


def findings(some):
    """Yields a sentence per language and kind of cells of a place, on uniform indices."""
    found = {}
    for theirs, ours in pairs(some):
        ratio = timing.ratio(ours, theirs)
        if ratio and ours["keys"] == "uniform":
            found.setdefault((ours["case"], what(ours)), []).append((ours["bins"], ratio))
    for (language, cells), ratios in found.items():
        texts = phrases.listed([f"{ratio.of_times}{ratio.remark} for {phrases.plural(bins, 'cell')}"
                                for bins, ratio in sorted(ratios, key=lambda pair: pair[0])])
        yield (f"the time of {cells} over that of float atomics in {LANGUAGES[language]}, with uniform indices, is "
               f"{texts}.")


# --- figure and table ---------------------------------------------------------------------------------------------

def figure(rows):
    series, languages = [], []
    for at, some in group_by_place(rows).items():
        lines = {}
        for theirs, ours in pairs(some):
            ratio = timing.ratio(ours, theirs)
            if ratio:
                lines.setdefault((ours["case"], ours["keys"], ours["method"]), []).append((ours["bins"], ratio, ours))
        for (language, keys, method), points in lines.items():
            points.sort(key=lambda point: point[0])
            languages.append(LANGUAGES[language])
            series.append(Series(what(points[0][2]), [bins for bins, *_ in points],
                                 [1 / ratio.value for _, ratio, _ in points], style.colour(method),
                                 (at, LANGUAGES[language], keys), text=[ratio.as_long for _, ratio, _ in points]))
    initial = {}
    for at in preferred(at for at, _ in rows)[:1]:
        for worst, _ in worst_first(group_by_place(rows)[at])[:1]:  # which the verdict names
            initial = {"Machine": at, "Language": LANGUAGES[worst["case"]], "Indices": worst["keys"]}
    found = Figure("own-kernels-figure", "Time of cells over that of float atomics, by number of cells",
                   [("Machine", preferred(at for at, _ in rows)), ("Language", [*dict.fromkeys(languages)]),
                    ("Indices", ["uniform", "skewed"])], series, "cells", {None: "times the time of float atomics"},
                   x_kind="log10", y_kind="linear", initial=initial,
                   description="Relaxed float atomics of the same language.")
    found.finding = captions.describe_lines(found, lambda bins: phrases.plural(bins, "cell"),
                                            lambda y: f"{phrases.number(y)} times the time of float atomics")
    return found


def table(rows, sources):
    lines = [[at, LANGUAGES[r["case"]], r["keys"], f"{r['bins']:,}", what(r), f"{r['cell_bytes']}", f"{r['runs']}",
              f"{r['distinct_bits']}", phrases.number(r["seconds"] * 1e3)] for at, r in rows]
    columns = ["machine", "language", "indices", "cells", "additions", "bytes of a cell", "launches",
               "different results", "time, ms"]
    return Table("Additions in kernels", columns, lines + not_measured(sources, len(columns)), text_columns=3, note=NOTE)
