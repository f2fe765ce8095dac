"""What a notebook makes of its results: sentences, figures and tables, and what was broken."""

import dataclasses

import page
import words

SAME_EVERYWHERE = ("everywhere", "order_free")  # promises


def promises_one_result(r):
    """Whether what changes from run to run, in a row of spread_over_runs, must not change a bit."""
    return r["promise"] in SAME_EVERYWHERE[1:] if r["axis"] == "permutation" else r["promise"] in SAME_EVERYWHERE


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
    """The sentence on errors and bounds; `where` names some rows."""
    if rows:
        beyond = [r for r in rows if not r["within_bound"]]
        unbounded = sum(r["bound"] is None for r in rows)
        yield (f"{words.sentence(words.of(len(rows) - len(beyond), len(rows)))} errors of {whose} are within {bounds}"
               + (f"; for {unbounded:,} of them theory gives no finite bound" if unbounded else "")
               + (f". Beyond: {where(beyond)}." if beyond else "."))


def distinct(values):
    """Each once, in the order in which they come."""
    return list(dict.fromkeys(values))


def preferred(values, first):
    """Distinct, with the one that a menu starts with in front."""
    return sorted(distinct(values), key=lambda v: v != first)
