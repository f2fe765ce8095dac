"""Section on the speed of reductions of vectors, rows and columns, relative to peers and to reading alone."""

import by_data
import captions
import exact_and_tree
import glossary
import phrases
import style
import timing
from figure import Figure, Series, with_several_bars
from result_arrays import CEILINGS, cells, fastest_promised, is_ours, speed_failures
from section import (Section, Table, check_findings, declined_findings, group_by_place, preferred, rows_with_place,
                     starting_with)
from timing import MOST_MISSES, fastest, share_of_target

# The target of samesum's rows beside which PyTorch was measured, in the same process.
TORCH, TORCH_FACTOR = "torch/", 1.0
OTHERS = "one reduction each"  # the choice of operations with one bar


def section(sources):
    s = Section("reductions", "Speed of reductions", "How fast are sums of rows, dot products, norms and softmax?",
                "Speed in bytes of input per second (for softmax, of input and "
                "output). Times are medians. exact and fixed_point are also measured on data that may take them longer. "
                "Reading is reading alone, for softmax a copy of the elements. The shape of rows is number × length.",
                "build/release/bin/speed_of_reductions --full --out build/study",
                terms=("method", "target", "faster, as fast, not decided", "reading alone", "cub"))
    rows = rows_with_place(sources, "reduction")
    normal = by_data.of_normal(rows)
    s.verdict = verdict(normal)
    s.findings = [*findings(rows), *declined_findings(sources)]
    s.figures = [f for f in [figure(normal)] if f.series] + list(filter(None, [exact_and_tree.figure(rows, what)]))
    s.tables = [*tables(rows), *by_data.tables(rows, what)]
    s.failures = list(speed_failures(rows, what))
    return s


def shape(r):
    """'2²⁸', '49,152 × 32' for rows, or '131,072 columns of 4,096' if the middle axis is reduced."""
    if r["inner"] == 1:
        return phrases.count(r["n"]) if r["outer"] == 1 else f"{r['outer']:,} × {r['n']:,}"
    return ("" if r["outer"] == 1 else f"{r['outer']:,} × ") + f"{r['inner']:,} columns of {r['n']:,}"


def what(r):
    """Name of a reduction, such as 'sum of 49,152 × 32 bf16', or 'sum of 2²⁴ fp32, 60 binades' for other data."""
    return f"{r['operation']} of {shape(r)} {elements(r)}"


def elements(r):
    return r["input_format"] + by_data.other_data(r)


def ceiling(together):
    """Speed of moving the bytes of a cell; None if it was not measured or is 0."""
    return next((r["gb_per_s"] for r in together if r["method"] in CEILINGS and r["gb_per_s"]), None)


def bars_of(r, together):
    """The targets of a row of a cell. A row of samesum has one relative to each call of PyTorch in the cell."""
    yield from r["bars"]
    if is_ours(r):
        for torch in together:
            if torch["method"].startswith(TORCH) and torch["gb_per_s"]:
                reached = r["gb_per_s"] / torch["gb_per_s"]
                yield {"against": torch["method"], "factor": TORCH_FACTOR, "reached": reached,
                       "holds": timing.is_no_slower(r, torch)}


def bars(together):
    """Pairs (row, target) of a cell."""
    return [(r, bar) for r in together for bar in bars_of(r, together)]


# --- sentences --------------------------------------------------------------------------------------------------

def findings(rows):
    for at, some in group_by_place(rows).items():
        yield from target_findings(at, [pair for together in cells(some) for pair in bars(together)])
        normal = [r for r in some if by_data.is_normal(r)]
        yield from ceiling_findings(at, cells(normal))
        for library in dict.fromkeys(library_of(r) for r in normal if phrases.is_peer(r["method"])):
            yield from library_findings(at, library, rivals(normal, library))
    yield from by_data.finding(rows, what)
    yield from check_findings([(at, r) for at, r in rows if r["method"] not in CEILINGS])


def target_findings(at, judged):
    if not judged:
        return
    met = sum(bar["holds"] for _, bar in judged)
    misses = sorted((pair for pair in judged if not pair[1]["holds"]), key=lambda pair: share_of_target(pair[1]))
    missed = []
    for r, bar in misses[:MOST_MISSES]:
        reached, factor = phrases.number_pair(bar["reached"], bar["factor"], 3)
        how = (f"{reached} µs (target: at most {factor} µs)" if bar["against"] == "us" else
               f"{reached} times the speed of {short_name(bar['against'])} (target: {factor})")
        missed.append(f"{by_data.method_and_grid(r)} for {shape(r)} {elements(r)}: {how}")
    more = len(misses) - len(missed)
    yield phrases.capitalised(f"{at}: {phrases.out_of(met, len(judged), 'target')} {phrases.verb(met, len(judged))} met"
                              + (f". Missed: {'; '.join(missed)}" if missed else "")
                              + (f"; and {more} more" if more else "") + ".")


def short_name(against):
    return phrases.parts(against)[0] if phrases.is_peer(against) else against


def ceiling_findings(at, groups):
    """Yields the range of the fastest methods relative to reading, with the cells at its ends."""
    shares = [(best["gb_per_s"] / top, best) for together in groups
              for best in [fastest([r for r in together if is_ours(r)])] for top in [ceiling(together)] if best and top]
    if not shares:
        return
    (low, last), (high, first) = min(shares, key=lambda s: s[0]), max(shares, key=lambda s: s[0])
    if len(shares) == 1:
        share = phrases.share(low, " of the speed of reading")
        yield phrases.capitalised(f"{at}: samesum's fastest method reaches {share} for {what(last)} ({last['method']}).")
    else:
        yield phrases.capitalised(f"{at}: in {len(shares)} reductions, samesum's fastest method reaches between "
                                  f"{phrases.share(low, ' of the speed of reading')} ({what(last)}, {last['method']}) and "
                                  + phrases.share(high, f" ({what(first)}, {first['method']})") + ".")


def library_of(r):
    """'eigen/dot' for eigen/dot/fp32@peer."""
    return phrases.parts(r["method"])[0]


def verdict(rows):
    """How often samesum's fastest repeatable method is faster or slower than the fastest peer of the same run: in two
    places, this machine first."""
    places = group_by_place(rows)
    found = [(at, pairs) for at in preferred(places) for pairs in [rivals(places[at])] if pairs][:2]
    texts = [f"beside {glossary.peers(r['method'] for r in places[at])}, "
             f"{timing.in_words(pairs, '' if i else 'reduction')} ({at})" for i, (at, pairs) in enumerate(found)]
    return f"With promised bits, samesum is, {'; '.join(texts)}." if texts else ""


def rivals(some, library=None):
    """Pairs (samesum's fastest repeatable method, the fastest peer or call of one library) for the cells of a place."""
    pairs = ((fastest_promised(together),
              fastest([r for r in together if phrases.is_peer(r["method"]) and library in (None, library_of(r))]))
             for together in cells(some))
    return [(ours, other) for ours, other in pairs if ours and other and timing.ratio(ours, other)]


def library_findings(at, library, pairs):
    """Yields the speed of samesum's fastest repeatable methods relative to another library for the same reductions."""
    if not pairs:
        return
    (low, last), (high, first) = (end(((timing.ratio(ours, other).value, ours) for ours, other in pairs),
                                      key=lambda pair: pair[0]) for end in (min, max))
    how = (f"; {library} ran in a separate process on the same machine in the same sitting, on other elements"
           if library.startswith(TORCH) else "")
    speeds = (f"{phrases.number(low)} times its speed for {what(last)}" if len(pairs) == 1 else
              f"{phrases.number(low)} times its speed ({what(last)}) to {phrases.number(high)} times ({what(first)})")
    yield phrases.capitalised(f"{at}: beside {library}, samesum is {timing.in_words(pairs, 'reduction')}: {speeds}{how}.")


# --- figure -------------------------------------------------------------------------------------------------------

def figure(rows):
    """The speed of samesum's fastest repeatable method relative to the fastest peer: a bar per reduction. Operations
    with one bar share a choice of the menu."""
    series, undecided, peers = [], False, phrases.peers_in_words(r["method"] for _, r in rows)
    for at, some in group_by_place(rows).items():
        pairs = sorted(rivals(some), key=lambda pair: timing.ratio(*pair).value)
        operations = [best["operation"] for best, _ in pairs]
        for best, other in pairs:
            name, operation = f"{shape(best)} {best['input_format']}", best["operation"]
            if operations.count(operation) == 1:
                name, operation = f"{operation}, {name}", OTHERS
            series.append(Series(best["method"], [timing.ratio(best, other).value], [name],
                                 style.colour(best["method"]), (at, operation),
                                 text=[f"{timing.short(best, other)} × {short_name(other['method'])}"]))
            undecided |= timing.UNDECIDED in series[-1].text[0]
    found = with_several_bars(Figure(
        "reductions-figure", f"Speed relative to the fastest {peers}",
        [("Machine", preferred(s.on[0] for s in series)),
         ("Operation", starting_with([s.on[1] for s in series], "sum"))],
        series, f"times the speed of the fastest {peers}", {None: ""}, bars=True,
        description="Each bar is a reduction, by samesum's fastest method with a promise; its colour shows the "
                    "accumulator. "
                    f"Length: its speed over that of the fastest {peers}, which the label or the axis names. "
                    "The table has the intervals."))
    found.finding = captions.describe_bars(found, lambda times: f"{times:.2f} times its speed").replace(
        "the methods range", "the reductions range").replace("methods have", "reductions have").replace(
        "the only method has", "the only reduction has")
    found.finding += f" “{timing.UNDECIDED}”: not decided which is faster." * undecided
    return found


# --- tables -------------------------------------------------------------------------------------------------------

def tables(rows):
    """Yields for each place a table with a row per reduction, and a folded one with a row per method."""
    for at, some in group_by_place(rows).items():
        groups = cells(some)
        normal = [together for together in groups if by_data.is_normal(together[0])]
        yield Table(f"{at}: reductions",
                    ["reduction", "shape", "elements", "fastest of samesum", "fastest peer", "GB/s",
                     "of reading", "times the speed of the peer", "targets met"],
                    [summary(together) for together in normal], text_columns=5,
                    folded=len(normal) > 12)
        yield Table(f"{at}: all methods of each reduction",
                    ["reduction", "shape", "elements", "method", "time, µs", "GB/s", "of reading", "targets"],
                    [method_row(r, together) for together in groups for r in together], text_columns=4, folded=True,
                    page_only=True)


def summary(together):
    r = together[0]
    best = fastest_promised(together)
    other = fastest([r for r in together if phrases.is_peer(r["method"])])
    judged = [bar["holds"] for _, bar in bars(together)]
    return [r["operation"], shape(r), r["input_format"], best["method"] if best else "-",
            short_name(other["method"]) if other else "-", phrases.number(best["gb_per_s"]) if best else "-",
            ratio(best, ceiling(together)), timing.cell(best, other),
            f"{sum(judged)} of {len(judged)}" if judged else "-"]


def ratio(r, speed):
    return phrases.percent(r["gb_per_s"] / speed) if r and speed else "-"


def method_row(r, together):
    judged = bars_in_words(bars_of(r, together))
    return [r["operation"], shape(r), elements(r), by_data.method_and_grid(r), phrases.number(r["seconds"] * 1e6),
            phrases.number(r["gb_per_s"]), ratio(r, ceiling(together)), judged]


def bars_in_words(judged):
    """'pass 1.2 of 1 × numpy/sum; MISS …', or '-' without targets."""
    return "; ".join(f"{'pass' if bar['holds'] else 'MISS'} {bar['reached']:.3g} of "
                     + (f"at most {bar['factor']:.3g} µs" if bar["against"] == "us" else
                        f"{bar['factor']:.3g} × {short_name(bar['against'])}") for bar in judged) or "-"
