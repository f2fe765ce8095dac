"""What a notebook makes of its results: sentences, figures and tables, and what was broken."""

import dataclasses

import page
import words
from results import SCHEMA

PROMISES = SCHEMA["$defs"]["promise"]["enum"]  # the weakest first
SAME_EVERYWHERE = PROMISES[PROMISES.index("everywhere"):]


def promises_one_result(r):
    """Whether what changes from run to run, in a row of spread_over_runs, must not change a bit."""
    return r["promise"] == "order_free" if r["axis"] == "permutation" else r["promise"] in SAME_EVERYWHERE


@dataclasses.dataclass
class Table:
    caption: str
    columns: list
    rows: list  # of texts; columns after the first `words` are numbers
    words: int = 1
    folded: bool = False
    note: str = ""
    page_only: bool = False  # too long for a pull request

    def _repr_html_(self):
        """What a notebook shows."""
        return page.table(dataclasses.replace(self, folded=False))


@dataclasses.dataclass
class Section:
    id: str
    title: str
    about: str
    command: str  # what makes the results
    findings: list = dataclasses.field(default_factory=list)
    figures: list = dataclasses.field(default_factory=list)
    tables: list = dataclasses.field(default_factory=list)
    failures: list = dataclasses.field(default_factory=list)  # of our methods

    @property
    def empty(self):
        return not (self.findings or self.tables)

    def _repr_html_(self):
        """What a notebook shows first: what was found."""
        return page.findings(self)


def within(rows, whose, bounds, where):
    """The sentence on errors and bounds; `where` names some rows. An error that has no bound is within none."""
    bounded = [r for r in rows if r["bound"] is not None or not r["within_bound"]]
    beyond = [r for r in bounded if not r["within_bound"]]
    kept, unbounded = len(bounded) - len(beyond), len(rows) - len(bounded)
    if bounded:
        yield (f"{words.sentence(words.of(kept, len(bounded), 'error'))} of {whose}"
               + (f" that {words.verb(len(bounded), len(bounded), 'has', 'have')} a finite bound" if unbounded else "")
               + f" {words.verb(kept, len(bounded))} within {bounds}"
               + (f"; for {words.plural(unbounded, 'other')} theory gives none" if unbounded else "")
               + (f". Beyond: {where(beyond)}." if beyond else "."))
    elif rows:
        yield f"Theory gives no finite bound for {words.plural(unbounded, 'error')} of {whose}."


def exactness(rows, more=""):
    """The sentence on how often exact is right to the last bit, and samesum's other methods are; `more` follows it."""
    ours = [r for r in rows if not words.is_peer(r["method"])]
    exact, others = [[r["bits"] == r["truth_bits"] for r in ours
                      if (words.accumulator(r["method"]) == "exact") == which] for which in (True, False)]
    if exact:
        yield (f"exact is the correctly rounded sum in {words.of(sum(exact), len(exact), 'result')}{more}"
               + (f"; samesum's other methods are in {words.of(sum(others), len(others))}." if others else "."))


def broken(r):
    """Why a row that holds a result is a failure of samesum's, if it is one."""
    if not r["within_bound"]:
        yield f"the error {words.number(r['absolute_error'])} exceeds its bound {words.number(r['bound'])}"
    if words.accumulator(r["method"]) == "exact" and r["bits"] != r["truth_bits"]:
        yield f"gave {r['bits']}, but the exact sum rounds to {r['truth_bits']}"


def checked(results):
    """The sentence on the bits of timed results, of pairs (place, row)."""
    looked_at = [(at, r) for at, r in results if r["verified"] is not None]
    if looked_at:
        wrong = [f"{r['method']} ({at})" for at, r in looked_at if not r["verified"]]
        right, others = len(looked_at) - len(wrong), len(results) - len(looked_at)
        yield (f"{words.sentence(words.of(right, len(looked_at), 'result'))} whose bits were checked "
               f"{words.verb(right, len(looked_at))} right"
               + (f"; not {words.names(wrong)}" if wrong else "")
               + (f"; {others:,} {words.verb(others, others, 'was', 'were')} not checked." if others else "."))


def place(machine, r):
    """Where a row was measured: 'H200, GPU', or 'this machine, 2 threads' if it tells how many."""
    on = words.runs_on(r["method"])
    if "threads" in r:
        on = words.plural(r["threads"], "thread") if r["threads"] else "GPU"
    return f"{machine}, {on}"


def placed(sources, kind):
    """[(place, row), …]: the rows of that kind of all sources."""
    return [(place(source.machine, r), r) for source in sources for r in source.of(kind)]


def by_place(rows):
    """{place: [row, …]} of what placed() gave."""
    found = {}
    for at, r in rows:
        found.setdefault(at, []).append(r)
    return found


def frontier(rows, cost, error):
    """Those than which none is both cheaper and no more wrong, the cheapest first; cost(row) and error(row) are
    numbers."""
    best = []
    for r in sorted(rows, key=lambda r: (cost(r), error(r))):
        if not best or error(r) < error(best[-1]):
            best.append(r)
    return best


def distinct(values):
    """Each once, in the order in which they come."""
    return list(dict.fromkeys(values))


def preferred(values, first):
    """Distinct, with the one that a menu starts with in front."""
    return sorted(distinct(values), key=lambda v: v != first)
