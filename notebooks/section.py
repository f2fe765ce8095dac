"""Content of one section of the report: sentences, figures, tables and failures."""

import dataclasses

import fragments
import phrases
from results import HERE, SCHEMA

PROMISES = SCHEMA["$defs"]["promise"]["enum"]  # weakest first
IN_GRAPH, FROM_PYTHON = ", in a CUDA graph", ", called from Python"
SAME_EVERYWHERE = PROMISES[PROMISES.index("everywhere"):]


def promises_one_result(r):
    """Whether the promise of a spread_over_runs row forbids different bits when its axis varies."""
    return r["promise"] == "order_free" if r["axis"] == "permutation" else r["promise"] in SAME_EVERYWHERE


@dataclasses.dataclass
class Table:
    caption: str
    columns: list
    rows: list  # of texts
    text_columns: int = 1  # the columns after these hold numbers
    folded: bool = False
    note: str = ""
    page_only: bool = False  # too long for report.md

    def __repr__(self):
        return f"Table({self.caption!r})"

    def _repr_html_(self):
        """HTML for a notebook."""
        return fragments.table(dataclasses.replace(self, folded=False))


class Check(str):
    """A finding that counts checks. The page shows it as a badge, "12 errors within their bounds", and the sentence on
    hover."""

    def __new__(cls, sentence, passed, total, one, many):
        self = super().__new__(cls, sentence)
        self.passed, self.total, self.many = passed, total, many
        self.badge = (f"{total:,}" if passed == total else f"{passed:,} of {total:,}") + f" {one if total == 1 else many}"
        return self

    @property
    def holds(self):
        return self.passed == self.total


@dataclasses.dataclass
class Section:
    """One question with its verdict. The page shows the verdict, the badges of the checks and the first figure; the rest
    is folded."""

    id: str
    title: str  # in menus
    question: str
    about: str  # one or two sentences: what was measured
    command: str  # makes the results
    verdict: str = ""  # one short sentence, computed
    findings: list = dataclasses.field(default_factory=list)
    figures: list = dataclasses.field(default_factory=list)
    tables: list = dataclasses.field(default_factory=list)
    failures: list = dataclasses.field(default_factory=list)  # of samesum's methods
    terms: tuple = ()  # keys of phrases.TERMS that the section uses
    open_tables: int = 0  # the first tables, which are not folded

    @property
    def empty(self):
        return not (self.findings or self.tables)

    @property
    def checks(self):
        return [f for f in self.findings if isinstance(f, Check)]

    @property
    def details(self):
        """The findings that are neither checks nor the verdict."""
        return [f for f in self.findings if not isinstance(f, Check) and f != self.verdict]

    def __repr__(self):
        return f"Section({self.id!r})"

    def _repr_html_(self):
        """HTML for a notebook: the verdict, badges, definitions and findings."""
        return fragments.summary(self) + fragments.more(self, self.terms)


def bound_findings(rows, whose, bounds, row_names):
    """Yields a sentence on errors and their bounds; `row_names` names some rows.

    The number of errors without a bound follows, unless their row is marked as beyond the bound.
    """
    bounded = [r for r in rows if r["bound"] is not None or not r["within_bound"]]
    beyond = [r for r in bounded if not r["within_bound"]]
    kept, unbounded = len(bounded) - len(beyond), len(rows) - len(bounded)
    if bounded:
        yield Check(f"{phrases.capitalised(phrases.out_of(kept, len(bounded), 'error'))} of {whose}"
                    + (" with a finite bound" if unbounded else "")
                    + f" {phrases.verb(kept, len(bounded))} within {bounds}"
                    + (f"; theory gives no finite bound for {phrases.plural(unbounded, 'other')}" if unbounded else "")
                    + (f". Beyond the bound: {row_names(beyond)}." if beyond else "."),
                    kept, len(bounded), "error within its bound", "errors within their bounds")
    elif rows:
        yield f"Theory gives no finite bound for {phrases.plural(unbounded, 'error')} of {whose}."


def exactness_findings(rows, more="", operation="sum"):
    """Yields a sentence on how often exact and samesum's other methods round correctly; `more` follows the count."""
    ours = [r for r in rows if not phrases.is_peer(r["method"])]
    exact, others = [[r["bits"] == r["truth_bits"] for r in ours
                      if (phrases.accumulator(r["method"]) == "exact") == which] for which in (True, False)]
    if exact:
        result = "sum" if operation == "sum" else "result"
        yield Check(f"exact is the correctly rounded {result} in "
                    f"{phrases.out_of(sum(exact), len(exact), 'result')}{more}"
                    + (f"; samesum's other methods round correctly in {phrases.out_of(sum(others), len(others))}."
                       if others else "."),
                    sum(exact), len(exact), f"{result} correctly rounded by exact", f"{result}s correctly rounded by exact")


def result_failures(r):
    """Yields why a row with a result is a failure of samesum: an error beyond its bound, or an inexact `exact`."""
    if not r["within_bound"]:
        yield f"the error {phrases.number(r['absolute_error'])} exceeds its bound {phrases.number(r['bound'])}"
    if phrases.accumulator(r["method"]) == "exact" and r["bits"] != r["truth_bits"]:
        yield f"returned {r['bits']}, but the exact result rounds to {r['truth_bits']}"


def check_findings(results):
    """Yields sentences on the bits of timed results, which are pairs (place, row), and on the results of timed peers."""
    peers = [(at, r) for at, r in results if phrases.is_peer(r["method"])]
    results = [(at, r) for at, r in results if not phrases.is_peer(r["method"])]
    checked = [(at, r) for at, r in results if r["verified"] is not None]
    if checked:
        wrong = [f"{r['method']} ({at})" for at, r in checked if not r["verified"]]
        right, others = len(checked) - len(wrong), len(results) - len(checked)
        yield Check(f"{phrases.capitalised(phrases.out_of(right, len(checked), 'checked result'))} "
                    f"{phrases.verb(right, len(checked), 'has', 'have')} the correct bits"
                    + (f"; {phrases.plural(others, 'other')} {phrases.verb(others, others, 'was', 'were')} not checked"
                       if others else "")
                    + phrases.exceptions(wrong),
                    right, len(checked), "timed result with the right bits", "timed results with the right bits")
    checked = [(at, r) for at, r in peers if r["verified"] is not None]
    whose = phrases.peers_in_words((r["method"] for _, r in peers), many=True)
    if checked:
        wrong = [f"{r['method']} ({at})" for at, r in checked if not r["verified"]]
        right = len(checked) - len(wrong)
        yield (f"{phrases.capitalised(phrases.out_of(right, len(checked), 'checked call'))} of {whose} "
               f"{phrases.verb(right, len(checked), 'has', 'have')} all results within a tolerance of those in wider "
               "arithmetic" + phrases.exceptions(wrong))
    elif peers:
        yield (f"{phrases.capitalised(phrases.out_of(0, len(peers), 'timed call'))} of {whose} "
               f"{phrases.verb(0, len(peers), 'was', 'were')} checked.")


def checked_in_words(rows):
    """'the bits of 3 of 4 timed results of samesum and the results of none of 2 calls of other libraries were checked'."""
    ours, peers = [[r for r in rows if phrases.is_peer(r["method"]) == which] for which in (False, True)]
    texts = [f"{what} of {phrases.out_of(sum(r['verified'] is not None for r in some), len(some), noun)} of {whose}"
             for some, what, noun, whose in (
                 (ours, "the bits", "timed result", "samesum"),
                 (peers, "the results", "timed call", phrases.peers_in_words((r["method"] for r in peers), many=True))) if some]
    return f"{' and '.join(texts)} were checked" if texts else ""


def declined_findings(sources):
    """Yields a sentence per place on the calls that other libraries do not compute, and why."""
    for at, rows in group_by_place(rows_with_place(sources, "declined")).items():
        calls = {}
        for r in rows:
            calls.setdefault((r["reason"], phrases.parts(r["method"])[0]), []).append(r)
        yield phrases.capitalised(f"{at}: not measured are " + "; ".join(
            f"{library} in {phrases.plural(some, 'reduction')} ({reason})"
            for (reason, library), some in ((key, len(rows)) for key, rows in calls.items())) + ".")
    yield from void_findings(sources)


def not_measured(sources, columns):
    """The lines of a table on what a machine could not measure, and why."""
    return [[source.machine, f"not measured: {why}", *["-"] * (columns - 2)] for source in sources
            for why in source.header.get("left_out", [])]


def void_findings(sources):
    """Yields a sentence on the rows of peers that were left out."""
    void = [r for source in sources for r in source.void]
    if void:
        libraries = distinct(phrases.parts(r["method"])[0] for r in void)
        yield (f"{phrases.plural(len(void), 'row')} of {phrases.names(libraries, 5)} "
               f"{phrases.verb(2, len(void), 'is', 'are')} left out: these calls, whose results were not checked, "
               "computed one of several vectors.")


def place(source, r):
    """Where and how a row was measured: 'H200, GPU', 'H200, GPU, in a CUDA graph', 'H200 host, Xeon', or 'this machine, CPU,
    2 threads' if the row has a number of threads. Rows of different places are not compared, and so those of PyTorch and
    NumPy only with calls from Python in the same file."""
    how = FROM_PYTHON * source.question.startswith("torch_") + IN_GRAPH * (r.get("launch") == "graph")
    if (not r["threads"]) if "threads" in r else phrases.device(r["method"]) == "GPU":
        return f"{source.machine}{source.other_host}, GPU{how}"
    return f"{source.host}, {source.processor}" + (f", {phrases.plural(r['threads'], 'thread')}" if "threads" in r else "") + how


def rows_with_place(sources, kind):
    """[(place, row), …] for the rows of a kind in all sources."""
    return [(place(source, r), r) for source in sources for r in source.of(kind, in_graphs=True)]


def group_by_place(rows):
    """{place: [row, …]} from pairs (place, row)."""
    found = {}
    for at, r in rows:
        found.setdefault(at, []).append(r)
    return found


def frontier(rows, cost, error, is_faster):
    """The rows that are faster than every row that is more accurate, or as accurate with a stronger promise; cheapest
    first.

    cost(row) and error(row) are numbers. is_faster(row, other) decides, so that a difference that may be noise puts no
    row on the frontier.
    """
    found = []
    for r in sorted(rows, key=lambda r: (error(r), -PROMISES.index(r["promise"]), cost(r))):
        if all(is_faster(r, better) for better in found):
            found = [better for better in found if error(better) < error(r)] + [r]
    return sorted(found, key=lambda r: (cost(r), error(r)))


def preferred(places):
    """The places without duplicates, this machine's first, GPUs before CPUs, plain calls before those in CUDA graphs and
    from Python."""
    return sorted(distinct(places), key=lambda at: (at.endswith((IN_GRAPH, FROM_PYTHON)), not is_here(at), not is_gpu(at)))


def is_gpu(place):
    return place.endswith("GPU")


def is_here(place):
    return place.lower().startswith(HERE)


def side_by_side(places):
    """The places of a verdict: the first of this machine, if it has any, and the first of the other machines."""
    found = preferred(places)
    return [at for at in found if is_here(at)][:1] + [at for at in found if not is_here(at)][:1]


def distinct(values):
    """Removes duplicates and keeps the order."""
    return list(dict.fromkeys(values))


def starting_with(values, first):
    """Distinct values with `first`, the initial choice of a menu, in front."""
    return sorted(distinct(values), key=lambda v: v != first)
