"""Writes the paper, notebooks/paper.md and paper.html, from results files: every number in it is computed.

The prose below has no digits outside of formulas, names and references, which a test checks.
"""

import argparse
import dataclasses
import html
import pathlib
import re
import sys

import consequences
import frontier
import operations
import phrases
import report
import results
import section
import story
from figure import on_paper, svg
from markdown import cell, inline

FOLDER = pathlib.Path(__file__).parent
TITLE = "Sums that return the same bits everywhere: what they prevent and what they cost"
CSS = """
body { font: 10.5pt/1.42 "DejaVu Serif", Georgia, serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
       color: #1c1c1c; background: #fff }
h1 { font-size: 1.5em; line-height: 1.2 } h2 { font-size: 1.15em; margin: 1.2em 0 .3em } p { margin: .4em 0 }
figure { margin: .8em 0; break-inside: avoid }
figure svg { max-width: 100%; height: auto; max-height: 8.2cm; display: block }
figcaption, table { font-size: .85em } table { border-collapse: collapse; break-inside: avoid; margin: .6em 0 }
th, td { padding: .1em .6em; border-bottom: 1px solid #ddd; text-align: left }
ol { padding-left: 1.4em; font-size: .85em }
"""
REFERENCES = [
    "Ahrens, P., Demmel, J., Nguyen, H. D. Algorithms for efficient reproducible floating point summation. ACM TOMS "
    "46(3), 2020.",
    "Harris, M. Optimizing parallel reduction in CUDA. NVIDIA, 2007.",
    "Hestenes, M. R., Stiefel, E. Methods of conjugate gradients for solving linear systems. J. Res. NBS 49(6), 1952.",
    "Higham, N. J. Accuracy and Stability of Numerical Algorithms. 2nd edition, SIAM, 2002.",
    "Higham, N. J., Mary, T. A new approach to probabilistic rounding error analysis. SIAM J. Sci. Comput. 41(5), "
    "2019.",
    "Kahan, W. Further remarks on reducing truncation errors. Comm. ACM 8(1), 1965.",
    "Kulisch, U., Miranker, W. L. The arithmetic of the digital computer: a new approach. SIAM Review 28(1), 1986.",
    "Milakov, M., Gimelshein, N. Online normalizer calculation for softmax. arXiv:1805.02867, 2018.",
    "Neumaier, A. Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen. ZAMM 54, 1974.",
    "Ogita, T., Rump, S. M., Oishi, S. Accurate sum and dot product. SIAM J. Sci. Comput. 26(6), 2005.",
    "Shanmugavelu, S. et al. Impacts of floating-point non-associativity on reproducibility for HPC and deep "
    "learning applications. arXiv:2408.05148, 2024.",
    "Strakoš, Z. On the real convergence rate of the conjugate gradient method. Linear Algebra Appl. 154–156, 1991.",
    "Xie, P., Gao, Y., Wang, Y., Xue, J. Revealing floating-point accumulation orders in software/hardware "
    "implementations (FPRev). USENIX ATC, 2025. arXiv:2411.00442.",
]


@dataclasses.dataclass
class Picture:
    """A figure of the paper; its number is its place."""

    name: str  # of its file
    svg: str
    caption: str


@dataclasses.dataclass
class Numbers:
    """What the prose needs: sections by id, and the sources by question."""

    found: dict
    sections: dict

    def verdict(self, id):
        return self.sections[id].verdict if id in self.sections else ""

    def badges(self, *ids):
        """'12 errors within their bounds, 4 results …' of the checks of some sections."""
        return ", ".join(c.badge for id in ids if id in self.sections for c in self.sections[id].checks)

    def figure(self, id, choices=None):
        """The first figure of a section with other choices, as far as it has them."""
        figures = self.sections[id].figures if id in self.sections else []
        if not figures:
            return None
        menus = dict(figures[0].menus)
        return figures[0].choose({m: c for m, c in (choices or {}).items() if c in menus.get(m, [])})


def numbers_of(found):
    found = {question: [s for s in some if s.rows] for question, some in found.items()}
    made = [report.section(q, found) for q in report.SECTIONS] + [operations.section(found)]
    return Numbers(found, {s.id: s for s in made if not s.empty})


# --- prose --------------------------------------------------------------------------------------------------------
# Headings are texts that begin with "#". A text, a Picture or a Table is a block.

def blocks(n):
    """Yields the blocks of the paper."""
    yield from opening(n)
    yield from method(n)
    yield from answers(n)
    yield from errors(n)
    yield from orders(n)
    yield from prices(n)
    yield from effects(n)
    yield from threats(n)


def totals(n):
    checks = [c for s in n.sections.values() for c in s.checks]
    return sum(c.passed for c in checks), sum(c.total for c in checks)


def machines(n):
    return section.distinct(s.machine for some in n.found.values() for s in some)


def opening(n):
    passed, total = totals(n)
    yield "## Abstract"
    cards = {c.section: c for c in story.cards(n.found)}
    facts = []
    if "spread" in cards:
        facts.append(f"we found {cards['spread'].number} {cards['spread'].what}")
    if "formats" in cards:
        facts.append(f"in a loop {cards['formats'].number} {cards['formats'].what}")
    if "consequences" in cards:
        facts.append(f"conjugate gradients need {cards['consequences'].number} iterations, depending on the run")
    yield ("Floating-point addition is not associative, so a parallel sum may depend on the order in which threads "
           f"finish{': ' if facts else ''}{'; '.join(facts)}. samesum is a library of sums and other reductions whose "
           "methods, except those that promise nothing, return bits that depend on the data alone: on no thread "
           "count, vector width, launch shape or machine, and for its exact methods not even on the order of the "
           "elements. Each result has a rigorous bound on its error. We measure what these promises prevent and what "
           f"they cost, on {', '.join(machines(n))} and against other libraries. "
           f"{phrases.capitalised(phrases.out_of(passed, total, 'check'))} of errors, bits and orders passed. "
           f"{n.verdict('price')}")
    yield "## Introduction"
    yield ("A sum of n numbers has many correct evaluations, one per binary tree over its elements, and in "
           "floating-point arithmetic they round differently. A sequential loop fixes the tree and is slow; a "
           "parallel reduction leaves the tree to the scheduler, so that a second run may return other bits "
           "[Shanmugavelu et al.; Ahrens et al.]. Tests then need tolerances, bisection of a regression becomes "
           "guesswork, and a checkpoint cannot be replayed. Two remedies are known: to make the tree a function of n "
           "alone, or to accumulate without rounding, so that no tree matters [Kulisch and Miranker]. This paper "
           "asks how far each of them carries for a whole catalogue of methods, and at what price on current "
           "hardware.")
    yield ("A method is an operation, an order, an accumulator and a format. The order *tree* cuts the input into "
           "leaves of fixed size, adds the rows of a leaf lane by lane, halves the lanes and merges the leaves by "
           "stride doubling; *pairwise* has the least height; *serial* is the loop; *atomic* adds in the order of "
           "arrival and promises nothing. Accumulators are *plain*, *kahan* [Kahan], *neumaier* [Neumaier], "
           "*double_word* and *exact*, an integer that holds every partial sum. A promise is what a caller may rely "
           "on: *none*, *run_to_run* (the same machine and settings), *everywhere* (any machine, thread count and "
           "launch shape) and *order_free* (any permutation, too).")


def method(n):
    yield "## Method"
    facts = [s.header["provenance"] for some in n.found.values() for s in some]
    gpus = section.distinct(p["gpu"] for p in facts if p["gpu"])
    dates = sorted(p["date"][:10] for p in facts)
    rows = sum(len(s.rows) for some in n.found.values() for s in some)
    yield (f"Every number in this paper is computed from {phrases.plural(rows, 'row')} of results files, measured "
           f"from {dates[0]} to {dates[-1]} on {'; '.join(section.distinct(p['cpu'] for p in facts))}"
           + (f" with {'; '.join(gpus)}" if gpus else "")
           + f", compiled by {'; '.join(section.distinct(p['compiler'] for p in facts))} "
           "without contraction of additions and multiplications. The truth of a sum comes from integers, one bucket "
           "per exponent, of other operations from wide floating-point numbers. An error is the distance of a result "
           "from the exact result of the elements as given; an ulp is the distance from one number of the format to "
           "the next. Data of a prescribed condition number κ = Σ|x| / |Σx| follow Ogita, Rump and Oishi.")
    yield ("Times are medians. The methods of a comparison take turns, so that a disturbance affects all alike, and "
           "their bits are checked before they are timed. The bits of a method are compared over repeated calls, "
           "numbers of threads, launch shapes, addresses and permutations of the elements. Orders are revealed by "
           "sums of ones between a large number and its negative [Xie et al.]. The consequences are measured where "
           "only the sum can vary: everything else runs in one thread, without fused or reordered operations.")


def answers(n):
    if "spread" not in n.sections:
        return
    yield "## How many answers one call has"
    rows = section.rows_with_place(n.found.get("spread_over_runs", []), "spread")
    loose = [(at, r) for at, r in rows if r["axis"] == "runs" and r["promise"] not in section.SAME_EVERYWHERE]
    most = {(at, r["method"]): (at, r) for at, r in sorted(loose, key=lambda pair: pair[1]["distinct_bits"])}
    top = sorted(most.values(), key=lambda pair: -pair[1]["distinct_bits"])[:8]
    kept = phrases.capitalised(re.sub("^(Yes|No): ", "", story.other_promises(n.found)))
    yield (f"{n.verdict('spread')} The methods with most answers are in the table below; the number of calls is "
           f"limited by time, so more answers may exist. {kept}")
    yield section.Table("Repeated calls on the same elements: the methods with the most different results",
                        ["method", "promise", "machine", "elements", "results", "calls", "apart, ulps"],
                        [[r["method"], r["promise"], at, f"{phrases.count(r['n'])} {r['data']}",
                          f"{r['distinct_bits']:,}", f"{r['runs']:,}", phrases.number(r["spread_ulps"], 2)]
                         for at, r in top], text_columns=4)


def errors(n):
    if "error" in n.sections:
        yield "## How large the errors are"
        yield (f"{n.verdict('error')} In theory, the loop's error grows with n at most, that of a tree with the "
               "logarithm of n, and the exact sum stays within half an ulp for every n [Higham]. The checks: "
               f"{n.badges('error', 'condition')}. Bounds are rigorous: they hold for every input, and they are "
               f"pessimistic for random data [Higham and Mary]. {ratio_sentence(n)}")
        yield picture(n.figure("error", {"Methods": "plain sums, all orders"}), "error.svg")
    if "condition" in n.sections:
        yield (f"Cancellation decides more than length. {n.verdict('condition')} Compensation moves the limit from u "
               "times κ to u squared times κ, for the roundoff u of the format; only exact accumulation removes it.")
        yield picture(n.figure("condition"), "condition.svg")
    if "formats" in n.sections:
        yield ("In sixteen bits, sums stagnate long before they overflow: an element below half an ulp of the "
               f"partial sum is lost. {n.verdict('formats')}")


def ratio_sentence(n):
    return next((f for f in n.sections["error"].details if f.startswith("The median ratio of bound to error")), "")


def picture(figure, name):
    """A Picture of a section's figure, with the choices of its menus; None if there is none."""
    if not figure or not svg(figure):
        return None
    chosen = ", ".join(filter(None, figure.chosen()))
    return Picture(name, svg(figure), f"{figure.title}{f' ({chosen})' if chosen else ''}.")


def orders(n):
    if "order" not in n.sections:
        return
    yield "## In which order libraries add"
    yield (f"{n.verdict('order')} {' '.join(n.sections['order'].details[-1:])} The declared orders of samesum's "
           f"methods were compared with revealed ones: {n.badges('order')}. A library that documents no order may "
           "change it with any release, and with it the bits of every program that uses it.")
    gallery = n.figure("order")
    if gallery:
        peers = [t for t in gallery.tiles if not t.title.startswith("samesum")]
        yield Picture("orders.svg", svg(dataclasses.replace(gallery, tiles=(peers or gallery.tiles)[:9])),
                      f"{gallery.title}, as revealed by their results; the first "
                      f"{phrases.plural(len((peers or gallery.tiles)[:9]), 'tree')}.")


def prices(n):
    places = frontier.measured(n.found)
    if places:
        yield "## What the promises cost"
        yield (f"{n.verdict('price')} {' '.join(frontier.finding(at, rows) for at, rows in list(places.items())[:2])} "
               "A fixed tree needs no more additions than any other. The exact sum performs more integer operations "
               f"per element, which a GPU or several threads can hide behind their loads. {n.verdict('speed')}")
        at, rows = next(iter(places.items()))
        yield Picture("frontier.svg", frontier.picture(at, rows),
                      f"Error against speed ({at}, {phrases.count(rows[0]['n'])} fp32 numbers). Shapes are orders, "
                      "fill is the promise.")
        ours = [(place, r) for place, some in list(places.items())[:2] for r in some
                if phrases.parts(r["method"])[0] in frontier.OURS[:4] or phrases.is_peer(r["method"])]
        shown = sorted(ours, key=lambda pair: (list(places).index(pair[0]), pair[1]["seconds"]))
        yield section.Table("Time and error of sums of the same fp32 numbers",
                            ["machine", "method", "promise", "time", "error, ulps"],
                            [[place, r["method"], r["promise"], frontier.time_text(r["seconds"]),
                              phrases.number(r["error_ulps"], 2)] for place, r in shown[:14]], text_columns=3)
    others = [n.verdict(id) for id in ("reductions", "prefix", "by-key", "operations") if n.verdict(id)]
    if others:
        yield "## Other reductions"
        yield ("The same promises hold for dot products, norms, moments, softmax [Milakov and Gimelshein], prefix "
               f"sums and sums by key. {' '.join(others)} The checks of these sections: "
               f"{n.badges('prefix', 'by-key', 'operations')}.")
    if n.verdict("ladder"):
        yield ("What makes such kernels fast is measured one step at a time, after the textbooks [Harris]. "
               f"{n.verdict('ladder')} Only one of the steps, the atomic addition of block sums, gives up the same "
               "bits in every run, and it can be replaced by a merge in a fixed order by the last block that "
               "finishes.")


def effects(n):
    if "consequences" not in n.sections:
        return
    yield "## Does it matter?"
    s = n.sections["consequences"]
    solver = consequences.widest([(section.place(source, r), r) for source in n.found.get("consequences", [])
                                  for r in source.of("solver")])
    yield ("Conjugate gradients [Hestenes and Stiefel] on a matrix with graded eigenvalues [Strakoš] turn the last "
           f"bit of a dot product into another number of iterations. {n.verdict('consequences')} "
           + (f"The matrix has condition number {phrases.number(solver[1]['condition'], 2)}. " if solver else "")
           + f"The checks: {n.badges('consequences')}. {well_behaved(s, solver)}")
    figure = next((f for f in s.figures if f.id == "consequences-iterations"), None)
    if figure:
        yield picture(figure, "iterations.svg")
    if "data-sets" in n.sections:
        yield (f"The study also has files of real and synthetic data. {n.verdict('data-sets')} "
               f"{' '.join(n.sections['data-sets'].details[:2])}")


def well_behaved(s, solver):
    """The sentences on the other system in the same format, for comparison."""
    texts = [f for f in s.details if solver and f"{consequences.SYSTEMS['poisson']} in {solver[1]['input_format']}" in f
             and "needed" in f]
    return f"For comparison: {' '.join(texts)}" if texts else ""


def threats(n):
    yield "## Threats to validity"
    yield (f"*Machines.* The results are of {phrases.plural(len(machines(n)), 'machine')}; ratios of speeds differ "
           "elsewhere, the bits of methods with a promise do not. *Versions.* Other libraries were measured in one "
           "version each; their orders and their determinism may change. *Settings.* Other libraries have settings "
           "that were not tried, and were compiled for the machine at hand. *Number of runs.* A method that returned "
           "one result in all runs may return another in the next; only a proof or a fixed order excludes that, and "
           "for samesum's methods the tests compare bits with an executable definition. *Data.* Errors on generated "
           "data are luck for one array; the sentences above use medians over data sets where several exist. *Time.* "
           "A GPU that is idle before a call answers later; all times are of warm machines, and a number of targets, "
           "listed in the report, are missed. *Authors.* The library and its measurements have the same authors; the "
           "raw results, the programs and the generator of this paper are in the repository, so that any number here "
           "can be measured again.")
    yield "## References"
    yield REFERENCES


# --- output -------------------------------------------------------------------------------------------------------

def as_markdown(some):
    """The text, with pictures in figures/."""
    lines, figures = [f"# {TITLE}", ""], 0
    for block in some:
        if isinstance(block, Picture):
            figures += 1
            lines += [f"![{block.caption}](figures/paper_{block.name})", "", f"*Figure {figures}. {block.caption}*", ""]
        elif isinstance(block, section.Table):
            lines += [f"*{inline(block.caption)}:*", "", f"| {' | '.join(map(cell, block.columns))} |",
                      f"|{'---|' * block.text_columns}{'--:|' * (len(block.columns) - block.text_columns)}",
                      *(f"| {' | '.join(map(cell, row))} |" for row in block.rows), ""]
        elif isinstance(block, list):
            lines += [f"{i}. {item}" for i, item in enumerate(block, 1)] + [""]
        else:
            lines += [block, ""]
    return "\n".join(lines)


def as_html(some):
    """One page, with its pictures inside."""
    parts, figures = [f"<h1>{html.escape(TITLE)}</h1>"], 0
    for block in some:
        if isinstance(block, Picture):
            figures += 1
            parts.append(f"<figure>{on_paper(block.svg)}<figcaption>Figure {figures}. {html.escape(block.caption)}"
                         "</figcaption></figure>")
        elif isinstance(block, section.Table):
            rows = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>" for row in block.rows)
            heads = "".join(f"<th>{html.escape(c)}</th>" for c in block.columns)
            parts.append(f"<figcaption>{html.escape(block.caption)}:</figcaption><table><tr>{heads}</tr>{rows}</table>")
        elif isinstance(block, list):
            parts.append("<ol>" + "".join(f"<li>{html.escape(item)}</li>" for item in block) + "</ol>")
        elif block.startswith("## "):
            parts.append(f"<h2>{html.escape(block[3:])}</h2>")
        else:
            parts.append("<p>" + re.sub(r"\*([^*]+)\*", r"<em>\1</em>", html.escape(block)) + "</p>")
    body = "\n".join(parts)
    return (f"<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8><title>{html.escape(TITLE)}</title>\n"
            f"<style>{CSS}</style></head><body>\n{body}\n</body></html>\n")


def main(arguments):
    parser = argparse.ArgumentParser(prog="paper.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--committed", metavar="FOLDER", type=pathlib.Path,
                        default=results.ROOT / "experiments/results",
                        help="folder with results files MACHINE.QUESTION.jsonl (default: experiments/results)")
    parser.add_argument("--out", metavar="FOLDER", type=pathlib.Path, default=FOLDER, help="folder for the paper")
    options = parser.parse_args(arguments)
    try:
        found = results.read(None, options.committed)
        report.check_rows(options.committed, [s for some in found.values() for s in some])
        some = [block for block in blocks(numbers_of(found)) if block]
        (options.out / "figures").mkdir(parents=True, exist_ok=True)
        for block in some:
            if isinstance(block, Picture):
                report.write(options.out / f"figures/paper_{block.name}", on_paper(block.svg) + "\n")
        report.write(options.out / "paper.md", as_markdown(some))
        report.write(options.out / "paper.html", as_html(some))
    except (results.Refused, OSError) as refusal:
        return report.complain("paper.py", refusal)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
