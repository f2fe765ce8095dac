"""Section on sums and group sums of data frames: how many answers each library gives, how wrong they are, how fast."""

import captions
import glossary
import phrases
import style
import timing
from figure import Figure, Series, with_several_bars
from section import Check, Section, Table, distinct, group_by_place, preferred, rows_with_place, side_by_side, starting_with

OPERATIONS = {"sum": "sum", "group_sum": "group sums"}
AXES = {"runs": "repeated calls", "threads": "other numbers of threads", "chunks": "other chunks",
        "permutation": "other orders of the rows"}
MOST = 6  # libraries that a sentence names


def section(sources):
    s = Section("frames", "Data frames", "How many answers does a data frame give for a sum?",
                "Sums of a column, and of its groups, by DuckDB, polars, pandas, pyarrow, NumPy and samesum: the same "
                "table is summed repeatedly, with other threads, in other chunks, and with its rows in other orders.",
                "build/venv/bin/python experiments/data_frames.py --full --out build/study",
                terms=("promise", "ulp", "faster, as fast, not decided"))
    rows = rows_with_place(sources, "frame")
    s.verdict = verdict(rows)
    s.findings = [*own_findings(rows), *captions.sentences_by_place(rows, findings)]
    s.figures = [f for f in [figure(rows)] if f.series]
    s.tables = list(tables(rows))
    s.failures = [f"{at}: {name(r)}: {what(r)}, {AXES[r['axis']]}: {why}" for at, r in rows for why in failures(r)]
    return s


def name(r):
    return glossary.in_words(phrases.parts(r["method"])[0]) if phrases.is_peer(r["method"]) else "samesum"


def what(r):
    """'sum of 20,000,000 normal numbers', 'group sums of …'."""
    return f"{OPERATIONS[r['operation']]} of {r['n']:,} {r['data']} numbers"


def ours(rows):
    return [r for r in rows if not phrases.is_peer(r["method"])]


def peers(rows):
    return [r for r in rows if phrases.is_peer(r["method"])]


def failures(r):
    if r["broken"]:
        yield f"promises {r['promise']} but returned {r['distinct_bits']} results"
    if not phrases.is_peer(r["method"]) and r["correct"] < r["results"]:
        yield f"{r['results'] - r['correct']:,} of {r['results']:,} results are not correctly rounded"


# --- sentences ----------------------------------------------------------------------------------------------------

def counts(r):
    """'DuckDB 17 in 20 calls (sum)'."""
    return f"{name(r)} {r['distinct_bits']} in {phrases.plural(r['runs'], 'call')} ({OPERATIONS[r['operation']]})"


def verdict(rows):
    """The most answers of a library to one question in repeated calls, here and beside it on another machine."""
    places = group_by_place(rows)
    found = {}
    for at in side_by_side(places):
        repeated = [r for r in peers(places[at]) if r["axis"] == "runs"]
        worst = max(repeated, key=lambda r: r["distinct_bits"], default=None)
        if worst and worst["distinct_bits"] > 1:
            found[at] = (f"{name(worst)} returned {worst['distinct_bits']} different results in {worst['runs']} calls for "
                         f"the {what(worst)}")
        elif worst:
            libraries = phrases.plural(len({*map(name, repeated)}), "library", "libraries")
            found[at] = f"Repeated calls returned one result with {libraries}"
    return " ".join(f"{text} ({at})." for at, text in found.items())


def own_findings(rows):
    """Yields sentences on the bits and the rounding of samesum's results."""
    found = ours([r for _, r in rows])
    results, correct = sum(r["results"] for r in found), sum(r["correct"] for r in found)
    if found:
        yield Check(f"{phrases.capitalised(phrases.out_of(correct, results, 'result'))} of samesum "
                    f"{phrases.verb(correct, results)} correctly rounded.",
                    correct, results, "sum of a frame correctly rounded", "sums of frames correctly rounded")
        kept, calls = sum(not r["broken"] for r in found), sum(r["runs"] for r in found)
        yield Check(f"{phrases.capitalised(phrases.out_of(kept, len(found), 'series', 'series'))} of calls of samesum "
                    f"({calls:,} calls: {phrases.names(distinct(AXES[r['axis']] for r in found))}) returned one result.",
                    kept, len(found), "series of calls with the same bits", "series of calls with the same bits")


def findings(some):
    """Yields sentences on the rows of a place."""
    for axis in AXES:
        here = [r for r in peers(some) if r["axis"] == axis]
        varied = [r for r in here if r["distinct_bits"] > 1]
        if here:
            libraries, other = distinct(map(name, varied)), distinct(map(name, here))
            most = sorted(varied, key=lambda r: -r["distinct_bits"])
            best = {name(r): r for r in reversed(most)}
            yield (f"with {AXES[axis]}, {phrases.out_of(len(libraries), len(other), 'library', 'libraries')} returned "
                   "different results"
                   + (f": {phrases.names((counts(best[n]) for n in libraries), MOST)}" if varied else "") + ".")
    for operation in OPERATIONS:
        errors = {}
        for r in some:
            if r["operation"] == operation and r["largest_ulps"] is not None:
                errors[name(r)] = max(r["largest_ulps"], errors.get(name(r), 0))
        if errors:
            listed = sorted(errors.items(), key=lambda pair: -pair[1])
            yield (f"the largest error of {'a sum' if operation == 'sum' else 'the sum of a group'} is "
                   + ", ".join(f"{phrases.ulps(error, 'fp64')} with {library}" for library, error in listed) + ".")
    yield from speed_findings(some)


def speed_findings(some):
    """Yields a sentence per operation on the speed of samesum relative to the other libraries, on all data sets."""
    repeated = [r for r in some if r["axis"] == "runs"]
    for operation in OPERATIONS:
        pairs = {}
        for own in ours(repeated):
            for other in peers(repeated):
                if own["operation"] == other["operation"] == operation and all(
                        own[field] == other[field] for field in ("data", "n", "bins", "seed")) and own["seconds"]:
                    pairs.setdefault(name(other), []).append((own, other))
        if pairs:
            ratios = {library: [other["seconds"] / own["seconds"] for own, other in some] for library, some in pairs.items()}
            yield (f"samesum's {OPERATIONS[operation]} {'have' if operation == 'group_sum' else 'has'} "
                   + "; ".join(f"{phrases.middle(ratios[library], lambda x: phrases.number(x, 2))} times the speed of "
                               f"{library}, "
                               f"{timing.in_words(pairs[library], 'data set')}"
                               for library in sorted(ratios, key=lambda library: phrases.median(ratios[library])))
                   + (" (medians of the data sets)." if min(map(len, ratios.values())) >= phrases.FEWEST else "."))


# --- figure and table ---------------------------------------------------------------------------------------------

def answers(r):
    return f"{r['distinct_bits']} of {r['runs']}"


def figure(rows):
    shades = style.peers_among(r["method"] for _, r in rows)
    menus = [("Machine", preferred(at for at, _ in rows)),
             ("Result", [OPERATIONS[o] for o in ("group_sum", "sum") if any(r["operation"] == o for _, r in rows)]),
             ("Data", starting_with([r["data"] for _, r in rows], "normal")),
             ("Variation", [AXES[a] for a in AXES if any(r["axis"] == a for _, r in rows)])]
    bars = {}
    for at, r in rows:
        key = (at, OPERATIONS[r["operation"]], r["data"], AXES[r["axis"]])
        best = bars.setdefault(key, {})
        if name(r) not in best or best[name(r)]["distinct_bits"] < r["distinct_bits"]:
            best[name(r)] = r
    series = [Series(library, [r["distinct_bits"]], [library], style.line(r["method"], shades)[0], on,
                     text=[answers(r)])
              for on, best in bars.items()
              for library, r in sorted(best.items(), key=lambda item: (item[1]["distinct_bits"], item[0]))]
    found = with_several_bars(Figure(
        "frames-figure", "Number of different results of each library", menus, style.together(series),
        "different results", {None: ""}, bars=True,
        description="Each bar is a library, or several with the same results: how many different results its calls "
                    "returned for one table, the most of all lengths. The sums of all groups together are one result."))
    found.finding = captions.describe_bars(found, lambda count: phrases.plural(count, "result"))
    return found


def tables(rows):
    for at, some in group_by_place(rows).items():
        lines = [[name(r), what(r), AXES[r["axis"]], answers(r), phrases.error_in_ulps(r["largest_ulps"], "fp64"),
                  phrases.number(r["seconds"] * 1e3)] for r in some]
        yield Table(f"{at}: sums of data frames",
                    ["library", "result", "what changes", "different results", "largest error, ulps", "time, ms"],
                    lines,
                    text_columns=3, folded=True)
