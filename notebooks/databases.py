"""Section on queries of databases: runs without a row, different results, and what exact sums of groups cost."""

import captions
import phrases
import published
import style
import timing
from figure import Figure, Series
from section import Check, Section, Table, group_by_place, not_measured, preferred, rows_with_place, side_by_side

REPORTED = "Müller et al. (2018, arXiv 1802.09883) report " + ", ".join(
    f"{least} to {most} times {how}" for how, (least, most) in published.SLOWDOWN_OF_GROUPS.items()
) + ", in operators of their own"
NOTE = ("Query 15 reads its view of sums twice: to find the largest sum, and to find its supplier. DuckDB's optimizer "
        "common_subplan computes such a view once. After SET disabled_optimizers='common_subplan', as with two "
        "statements, DuckDB computes it twice, and no sum equals the largest one if that sum changes in between. Prices "
        "and discounts are DOUBLE here; sums of TPC-H's DECIMAL are exact.")


def section(sources):
    s = Section("databases", "Databases", "Does a query return one result?",
                "Two published queries, TPC-H's query 15 in DuckDB and BIRD's question 1473 in PostgreSQL, run again "
                "and again on one table, with the engine's function and with samesum's exact one. And the time of sums of "
                "groups in DuckDB.",
                "build/venv/bin/python experiments/databases.py --full --out build/study",
                terms=("promise", "faster, as fast, not decided"))
    queries, groups = (rows_with_place(sources, kind) for kind in ("query", "grouping"))
    s.verdict = verdict(queries)
    s.findings = [*own_findings(queries, groups), *captions.sentences_by_place(queries, findings),
                  *captions.sentences_by_place(groups, slowdown_findings), *([f"{REPORTED}."] if groups else [])]
    s.figures = [f for f in [figure(groups)] if f.series]
    s.tables = [table(queries, sources)] if queries or groups else []
    s.open_tables = 1  # whose note explains the verdict
    s.failures = [f"{at}: samesum: {name(r)}: {why}" for at, r in queries + groups for why in failures(r)]
    return s


def name(r):
    """'TPC-H query 15, view computed twice', '1,000 groups'."""
    return phrases.plural(r["bins"], "group") if r["kind"] == "grouping" else f"{r['case']}, {r['setting']}"


def engine(r):
    return "PostgreSQL" if r["case"].startswith("BIRD") else "DuckDB"


def function(r):
    """The function of the query, of either kind of row."""
    prefix = "" if phrases.is_peer(r["method"]) else "exact_"
    return prefix + ("avg" if r.get("case", "").startswith("BIRD") else "sum")


def pairs(rows):
    """[(row of the engine's function, row of the exact one), …] of the rows of a place."""
    found = {}
    for r in rows:
        key = tuple(r.get(field) for field in ("case", "setting", "seed", "n", "bins"))
        found.setdefault(key, {})[phrases.is_peer(r["method"])] = r
    return [(pair[True], pair[False]) for pair in found.values() if len(pair) == 2]


def failures(r):
    if phrases.is_peer(r["method"]):
        return
    if r["kind"] == "grouping":
        if not r["verified"]:
            yield "has other bits than samesum.groupby_sum"
        return
    if r["broken"]:
        yield (f"promises {r['promise']} but returned {phrases.plural(r['distinct_bits'], 'result')} and in "
               f"{phrases.plural(r['without_row'], 'run')} no row")
    if r["correct"] < r["runs"]:
        yield f"{r['runs'] - r['correct']:,} of {r['runs']:,} runs did not return the correctly rounded result"


# --- sentences ----------------------------------------------------------------------------------------------------

def verdict(rows):
    """The query that varied most with the engine's function, here and beside it on another machine."""
    places, found = group_by_place(rows), []
    for at in side_by_side(places):
        worst = max(pairs(places[at]), default=None,
                    key=lambda pair: (pair[0]["without_row"], pair[0]["distinct_bits"]))
        if worst:
            found.append(f"{both(*worst)} ({at}; table of queries).")
    return " ".join(found)


def both(theirs, ours):
    """'TPC-H query 15, view computed twice: no row in 12 of 40 runs and 3 different results in the others with sum; one
    result in 40 runs with exact_sum'."""
    return f"{name(theirs)}: {in_runs(theirs)} with {function(theirs)}; {in_runs(ours)} with {function(ours)}"


def in_runs(r):
    results = phrases.plural(r["distinct_bits"], "different result") if r["distinct_bits"] > 1 else "one result"
    if not r["without_row"]:
        return f"{results} in {phrases.plural(r['runs'], 'run')}"
    others = f" and {results} in the others" if r["without_row"] < r["runs"] else ""
    return f"no row in {phrases.out_of(r['without_row'], r['runs'], 'run')}{others}"


def own_findings(queries, groups):
    ours = [r for _, r in queries if not phrases.is_peer(r["method"])]
    runs, correct = sum(r["runs"] for r in ours), sum(r["correct"] for r in ours)
    if ours:
        yield Check(f"{phrases.capitalised(phrases.out_of(correct, runs, 'run'))} of queries with exact functions "
                    "returned the correctly rounded result.", correct, runs,
                    "run with the correctly rounded result", "runs with the correctly rounded result")
    checked = [r["verified"] for _, r in groups if r["verified"] is not None]
    if checked:
        tables = phrases.capitalised(phrases.out_of(sum(checked), len(checked), "table"))
        yield Check(f"{tables} of exact sums of groups "
                    f"{phrases.verb(sum(checked), len(checked), 'has', 'have')} the bits of samesum.groupby_sum.",
                    sum(checked), len(checked),
                    "table of sums with the right bits", "tables of sums with the right bits")


def findings(some):
    """Yields a sentence per query of a place."""
    for theirs, ours in pairs(some):
        ratio = timing.ratio(ours, theirs)
        yield both(theirs, ours) + (f", which takes {ratio.as_long}." if ratio else ".")


def slowdowns(some):
    """[(number of groups, Ratio of exact_sum and sum), …] of the rows of a place, by number of groups."""
    found = [(ours["bins"], timing.ratio(ours, theirs)) for theirs, ours in pairs(some)]
    return sorted(((bins, ratio) for bins, ratio in found if ratio), key=lambda pair: pair[0])


def slowdown_findings(some):
    """Yields a sentence on the numbers of groups for which exact_sum takes least and most of the time of sum."""
    found = sorted(slowdowns(some), key=lambda pair: -pair[1].value)
    if found:
        ends = dict.fromkeys(f"{ratio.of_times}{ratio.remark} for {phrases.plural(bins, 'group')}"
                             for bins, ratio in (found[0], found[-1]))
        yield f"the time of exact_sum over that of sum, of {some[0]['n']:,} normal numbers, is {', and '.join(ends)}."


# --- figure and table ---------------------------------------------------------------------------------------------

def figure(rows):
    series = []
    for at, some in group_by_place(rows).items():
        found = slowdowns(some)
        if not found:
            continue
        bins = [bins for bins, _ in found]
        series.append(Series("exact_sum", bins, [1 / ratio.value for _, ratio in found], style.colour("exact/fp64@cpu"),
                             (at,), text=[ratio.as_long for _, ratio in found]))
        series += [Series("published", [bins[0], bins[-1]], [end, end], style.GREY, (at,), dash, faint=True,
                          key=f"published, {how}: {least} to {most}")
                   for dash, (how, (least, most)) in zip(("dot", "dash"), published.SLOWDOWN_OF_GROUPS.items())
                   for end in (least, most)]
    found = Figure("databases-figure", "Time of exact_sum over that of sum, by number of groups",
                   [("Machine", preferred(at for at, _ in rows))], series, "groups",
                   {None: "times the time of sum"}, x_kind="log10", y_kind="linear",
                   description="Whole queries in DuckDB; dotted and dashed, published slowdowns of other engines.")
    for at, some in group_by_place(rows).items():
        if (at,) == found.chosen():
            found.finding = " ".join([*captions.sentences_by_place([(at, r) for r in some], slowdown_findings),
                                      f"Published: {REPORTED}."])
    return found


def table(rows, sources):
    lines = [[at, f"{engine(r)}: {name(r)}", function(r),
              *(f"{r[count]:,}" for count in ("workers", "runs", "without_row", "distinct_bits", "correct")),
              phrases.number(r["seconds"] * 1e3)] for at, r in rows]
    columns = ["machine", "query", "function", "threads or workers", "runs", "without a row", "different results",
               "correctly rounded", "time, ms"]
    return Table("Results of queries that run again and again", columns, lines + not_measured(sources, len(columns)),
                 text_columns=3, note=NOTE)
