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
import prices
import project
import report
import results
import section
import story
import timing
from figure import on_paper, svg
from markdown import cell, inline
from result_arrays import CEILINGS

FOLDER = pathlib.Path(__file__).parent
TITLE = "The order of a sum belongs to its definition: the same bits everywhere, at the price of a fixed tree"
CSS = """
:root { color-scheme: light }
body { font: 10.5pt/1.42 "DejaVu Serif", Georgia, serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
       color: #1c1c1c; background: #fff }
h1 { font-size: 1.5em; line-height: 1.2 } h2 { font-size: 1.15em; margin: 1.2em 0 .3em } p { margin: .4em 0 }
figure { margin: .8em 0; break-inside: avoid }
figure svg { max-width: 100%; height: auto; max-height: 7cm; display: block }
figure.tall svg { max-height: none }
figcaption, table { font-size: .85em } table { border-collapse: collapse; margin: .6em 0 } tr { break-inside: avoid }
caption { text-align: left; margin: .2em 0 } th, td { padding: .1em .6em; border-bottom: 1px solid #ddd; text-align: left }
p, li { overflow-wrap: anywhere }
@media screen and (max-width: 46rem) { table, figure.tall { display: block; overflow-x: auto } }
@media screen and (max-width: 46rem) { figure.tall svg { max-width: none } figcaption { max-width: 90vw } }
@media print { body { margin: 0; padding: 0; max-width: none; font-size: 9.5pt } table { font-size: .78em } }
h2 { break-after: avoid } ol { padding-left: 2em; font-size: .85em }
"""
# Cited as [key; key]; the year of the reference is added.
REFERENCES = {
    "Ahrens et al.": "Ahrens, P., Demmel, J., Nguyen, H. D. Algorithms for efficient reproducible floating point "
                     "summation. ACM Trans. Math. Softw. 46(3), article 22, 2020.",
    "bitrep": "Clouthier, K. bitrep: order-invariant, bit-identical floating-point reductions. "
              "https://github.com/kyleclouthier/bitrep, 2026.",
    "CCCL": "NVIDIA. CUB determinism. Documentation of the CUDA Core Compute Libraries, "
            "https://nvidia.github.io/cccl/unstable/cub/determinism.html, 2026.",
    "Collange et al.": "Collange, C., Defour, D., Graillat, S., Iakymchuk, R. Numerical reproducibility for the parallel "
                       "reduction on multi- and many-core architectures. Parallel Computing 49, 83–97, 2015.",
    "Connolly et al.": "Connolly, M. P., Higham, N. J., Mary, T. Stochastic rounding and its probabilistic backward error "
                       "analysis. SIAM J. Sci. Comput. 43(1), A566–A585, 2021.",
    "Demmel and Nguyen": "Demmel, J., Nguyen, H. D. Parallel reproducible summation. IEEE Trans. Computers 64(7), "
                         "2060–2070, 2015.",
    "Drakeford": "Drakeford, A. Canonical parallel reduction: a fixed expression structure for run-to-run consistency. "
                 "ISO/IEC JTC1/SC22/WG21 paper P4016R0, 2026.",
    "Efron": "Efron, B. Nonparametric standard errors and confidence intervals. Canadian Journal of Statistics 9(2), "
             "139–172, 1981.",
    "Harris": "Harris, M. Optimizing parallel reduction in CUDA. NVIDIA, 2007.",
    "He et al.": "He, H., Thinking Machines Lab. Defeating nondeterminism in LLM inference. Connectionism, 2025.",
    "Hestenes and Stiefel": "Hestenes, M. R., Stiefel, E. Methods of conjugate gradients for solving linear systems. "
                            "J. Res. Natl. Bur. Stand. 49(6), 409–436, 1952.",
    "Higham": "Higham, N. J. Accuracy and Stability of Numerical Algorithms. 2nd edition, SIAM, 2002.",
    "Higham and Mary": "Higham, N. J., Mary, T. A new approach to probabilistic rounding error analysis. SIAM J. Sci. "
                       "Comput. 41(5), A2815–A2835, 2019.",
    "Intel": "Intel. Conditional numerical reproducibility control. Developer Reference for oneAPI Math Kernel Library, "
             "2026.",
    "JuliaMath": "JuliaMath. AccurateArithmetic.jl. https://github.com/JuliaMath/AccurateArithmetic.jl, 2026.",
    "Kalibera and Jones": "Kalibera, T., Jones, R. Rigorous benchmarking in reasonable time. International Symposium "
                          "on Memory Management (ISMM), 63–74, 2013.",
    "Kahan": "Kahan, W. Further remarks on reducing truncation errors. Comm. ACM 8(1), 40, 1965.",
    "Kulisch and Miranker": "Kulisch, U., Miranker, W. L. The arithmetic of the digital computer: a new approach. SIAM "
                            "Review 28(1), 1–40, 1986.",
    "Milakov and Gimelshein": "Milakov, M., Gimelshein, N. Online normalizer calculation for softmax. arXiv:1805.02867, "
                              "2018.",
    "Neal": "Neal, R. M. Fast exact summation using small and large superaccumulators. arXiv:1505.05571, 2015.",
    "Neumaier": "Neumaier, A. Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen. ZAMM 54(1), 39–51, "
                "1974.",
    "Ogita et al.": "Ogita, T., Rump, S. M., Oishi, S. Accurate sum and dot product. SIAM J. Sci. Comput. 26(6), "
                    "1955–1988, 2005.",
    "PyTorch": "PyTorch. torch.use_deterministic_algorithms. Documentation, "
               "https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html, 2026.",
    "Shanmugavelu et al.": "Shanmugavelu, S., Taillefumier, M., Culver, C., Hernandez, O., Coletti, M., Sedova, A. Impacts "
                           "of floating-point non-associativity on reproducibility for HPC and deep learning applications. "
                           "Workshops of SC24, arXiv:2408.05148, 2024.",
    "Strakoš": "Strakoš, Z. On the real convergence rate of the conjugate gradient method. Linear Algebra Appl. 154–156, "
               "535–549, 1991.",
    "Xie et al.": "Xie, P., Gao, Y., Wang, Y., Xue, J. Revealing floating-point accumulation orders in software/hardware "
                  "implementations. USENIX ATC, arXiv:2411.00442, 2025.",
}


def year(key):
    return re.findall(r"\b(?:19|20)\d\d\b(?!\.\d)", REFERENCES[key])[-1]


def cited(text):
    """The text with the year of each reference, as in [Kahan 1965; Neumaier 1974]."""
    def with_years(found):
        keys = found[1].split("; ")
        return f"[{'; '.join(f'{key} {year(key)}' for key in keys)}]" if set(keys) <= set(REFERENCES) else found[0]
    return re.sub(r"\[([^\[\]]+)\]", with_years, text)


def front_matter():
    """The authors, and the version and date of the software, from CITATION.cff."""
    version, date = (project.citation(name)[0] for name in ("version", "date-released"))
    return f"{', '.join(project.citation('name'))}. Version {version}, {date}."


@dataclasses.dataclass
class Picture:
    """A figure of the paper; its number is its place."""

    name: str  # of its file
    svg: str
    caption: str
    tall: bool = False  # as high as it needs to be


@dataclasses.dataclass
class Numbers:
    """What the prose needs: sections by id, and the sources by question."""

    found: dict
    sections: dict

    def verdict(self, id):
        return self.sections[id].verdict if id in self.sections else ""

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
    yield front_matter()
    for part in (opening, related, definitions, method, answers, costs, errors, effects, threats, results_files):
        yield from part(n)


def checks_in_words(n):
    """'all 120 checks passed: 90 errors within their bounds, 29 sums … and 1 of other kinds': kinds with a hundredth of all."""
    checks = [c for s in n.sections.values() for c in s.checks]
    passed, total = sum(c.passed for c in checks), sum(c.total for c in checks)
    kinds = {}
    for c in checks:
        kinds[c.many] = kinds.get(c.many, 0) + c.passed
    large = [(count, kind) for kind, count in kinds.items() if 100 * count >= total]
    texts = [f"{count:,} {kind}" for count, kind in sorted(large, reverse=True)]
    rest = passed - sum(count for count, _ in large)
    return (f"{phrases.out_of(passed, total, 'check')} passed"
            + (f": {phrases.listed(texts + [f'{rest:,} of other kinds'] * bool(rest))}" if texts else ""))


def machines(n):
    return section.distinct(s.machine for some in n.found.values() for s in some)


def opening(n):
    yield "## Abstract"
    cards = {c.section: c for c in story.cards(n.found)}
    facts = []
    if "spread" in cards:
        facts.append(f"we found {cards['spread'].number} {cards['spread'].what}")
    if "consequences" in cards:
        rows = [(section.place(s, r), r) for s in n.found["consequences"] for r in s.of("solver")]
        at, r = consequences.widest(rows)
        fixed = consequences.steady(rows, at, r)
        facts.append(f"on a matrix built to be sensitive, conjugate gradients need {cards['consequences'].number} iterations "
                     f"with samesum's {phrases.parts(r['method'])[0]}, depending on the run"
                     + (f", and {min(fixed)}–{max(fixed)} with promised bits, depending on the method" if fixed else ""))
    yield ("Floating-point addition is not associative, so the result of a parallel sum depends on a schedule that nobody "
           f"wrote down{': ' if facts else ''}{'; '.join(facts)}. We argue that this freedom is worth little. If the "
           "tree of additions is a function of the length alone, every schedule, thread count and machine computes the "
           "same bits, and if the accumulator is an integer, so does every order of the elements. We test the argument on "
           f"samesum, a library of such reductions, on {phrases.listed(machines(n))}, beside other libraries. "
           f"{' '.join([prices.answer(n.found), *list(medians(n))[:1]])} What the promise buys is not accuracy but a "
           "definition: an error that can be bounded, a result that can be recomputed elsewhere, and a test without a tolerance.")
    yield "## Introduction"
    yield ("A sum of n numbers has many evaluations, one per binary tree over its elements, and in floating-point "
           "arithmetic they round differently. A loop fixes the tree and is slow. A parallel reduction leaves the tree to "
           "the scheduler, so that another run, another thread count or another graphics card returns other bits "
           "[Shanmugavelu et al.; He et al.]. Then tests need tolerances, the search for a regression becomes guesswork, "
           "and a checkpoint cannot be replayed. It is common to regard this as the price of speed.")
    yield ("It is not. A reduction is limited by the reads from memory, whose time does not depend on the tree. The "
           "tree can be chosen once, by the definition of the sum, so that it has the parallelism of the hardware and "
           "is still a function of n alone. The claim of this paper is that such a sum mostly costs little beside the fastest "
           "one that promises less, and that the stronger promise, the same bits for any order of the elements, has a "
           "price that depends on the operation, the shape and the data: it is small where loads hide the integer "
           "operations, and "
           "large elsewhere. The following sections say what is promised, how the claim is tested, "
           "how large the problem is that it removes, what it costs, and what it does not give.")


def related(n):
    yield "## Related work"
    yield ("*Sums for any order.* Kulisch and Miranker accumulate products in a fixed-point register that never rounds "
           "[Kulisch and Miranker]. Neal makes this fast on processors with a small and a large superaccumulator [Neal]; "
           "ExBLAS puts vectorised expansions before a superaccumulator, on processors and GPUs [Collange et al.]; bitrep "
           "publishes the format of its integer state, so that states can be exchanged [bitrep]. ReproBLAS splits the "
           "elements into bins of fixed exponents and keeps the highest few, which needs less memory than a superaccumulator "
           "[Demmel and Nguyen; Ahrens et al.]. These works give up the freedom of the tree by making the tree "
           "irrelevant.")
    yield ("*A fixed tree.* A proposal to the C++ committee specifies one tree per number of lanes [Drakeford]. Libraries "
           "promise less: oneMKL the same bits for one number of threads and one instruction set [Intel], CUB a choice "
           "among none, one GPU and several GPUs [CCCL], PyTorch a mode in which operations are deterministic on the same "
           "software and hardware, or refuse to run [PyTorch]. For language models, kernels whose tree does not depend on "
           "the size of the batch have been written [He et al.]. Which tree a library uses can be revealed by its results "
           "[Xie et al.].")
    yield ("*Accuracy.* Compensated sums carry the rounding error along [Kahan; Neumaier; Ogita et al.]; "
           "AccurateArithmetic.jl offers them in Julia [JuliaMath]. They reduce the spread of results and do not remove "
           "it. Rounding errors in sums are analysed by Higham, with bounds that hold always or with a given probability "
           "[Higham; Higham and Mary; Connolly et al.]. New here is that both remedies, a fixed tree and an integer, stand "
           "behind the same interface on processors and GPUs, for sums and for other reductions, and are measured side by "
           "side with what they replace.")


def definitions(n):
    yield "## What is promised"
    yield ("A method is an operation, an order, an accumulator and a format. An *order* is a tree that depends on n only: "
           "*tree* cuts the input into leaves of fixed size, adds the elements of a leaf lane by lane, halves the lanes "
           "and merges the leaves by stride doubling; *pairwise* has the least height; *serial* is the loop. The order "
           "*atomic*, by arrival, is the exception that promises nothing. An *accumulator* is *plain*, compensated "
           "(*kahan*, *neumaier*, *double_word*) or *exact*, an integer that holds every partial sum. A *promise* is what a "
           f"method guarantees about its bits. {'; '.join(f'*{name}*: {bits}' for name, bits in phrases.PROMISES.items())}.")
    yield ("The promise *everywhere* follows from two premises: all backends evaluate the same expression, and each "
           "addition in it is rounded as the IEEE standard demands, without contraction. The first is checked against an "
           "executable definition, the second is a compiler flag. The promise *order_free* follows from the "
           "associativity of integer addition and from one rounding at the end. Both hold for all inputs; measurements "
           "can only refute them.")


def host(provenance):
    """The host of a results file, and its GPU without the software that it ran."""
    threads = phrases.plural(provenance["hardware_threads"], "hardware thread")
    gpu = provenance["gpu"] and f"with {provenance['gpu'].partition(', ')[0]}"
    return ", ".join(filter(None, [results.cpu_of(provenance), threads, provenance["kernel"], gpu]))


def hosts(sources):
    """The distinct hosts, in words; their places from 1 are their numbers."""
    return section.distinct(host(s.header["provenance"]) for s in sources)


def number_of(source, known):
    return str(known.index(host(source.header["provenance"])) + 1)


def software(headers):
    """The libraries of results files with their versions: those in the provenance, in the name of the GPU, and of Python in
    the options, among which are also numbers."""
    found = {}
    for h in headers:
        about, options = h["provenance"], h.get("options", {})
        packages = [f"{name.removesuffix('_cpu')} {version}" for name, version in options.items()
                    if name != "samesum" and re.fullmatch(r"\d+\.\d\S*", str(version))]
        for text in [*map(" ".join, about.get("libraries", {}).items()), *(about["gpu"] or "").split(", ")[1:], *packages]:
            found.setdefault(text.casefold(), text)
    return [*found.values()]


def how_timed(sources):
    """The sentences on rounds and intervals: of what was measured, and of the present programs if that was by older ones."""
    old, total = timing.older(sources)
    method = ("the ratio of two times is the median of the ratios of the rounds in which both took turns, with its "
              f"{timing.CONFIDENCE} interval by the percentile bootstrap [Efron] over processes, since repetition is needed "
              "where most uncertainty arises [Kalibera and Jones], or over the rounds of a single process; times without common "
              "rounds have the widest ratio that both of their intervals allow")
    if not old:
        return f"{phrases.capitalised(method)}."
    which = phrases.capitalised(phrases.out_of(len(old), total, "results file"))
    are, have = (phrases.verb(len(old), total, *words) for words in (("is", "are"), ("has", "have")))
    return (f"{which} with times {are} older than the programs beside this text, and {have} of each time the median and the "
            "tenth and ninetieth percentile alone. There a ratio is that of the medians, and its ends in brackets, which are no "
            f"confidence interval, are the widest ratio that these percentiles allow. In results of the present programs, {method}.")


def method(n):
    yield "## Method"
    sources = [s for some in n.found.values() for s in some]
    facts = [s.header["provenance"] for s in sources]
    checked = section.checked_in_words([r for s in sources for r in s.rows if {"method", "verified", "seconds"} <= r.keys()
                                        and r["method"] not in CEILINGS])
    if checked:
        left_out = phrases.plural(sum(s.left_out for s in sources), "row")
        checked = (f"Before that, {checked}; {left_out} of libraries that did less work, or used fewer threads, are left out "
                   "of this paper. ")
    known = hosts(sources)
    libraries = software(s.header for s in sources)
    yield (f"*Machines.* {'; '.join(f'({i}) {text}' for i, text in enumerate(known, 1))}. A name such as {machines(n)[0]} may "
           "stand for several of them: times are compared on one host only, and the same call may take another time on another "
           "host, with another version of a library. *Software.* "
           f"{'; '.join(section.distinct(p['os'] for p in facts))}; "
           f"{'; '.join(section.distinct(p['compiler'] for p in facts if not p['compiler'].startswith('Python')))} with "
           f"{max((p['flags'] for p in facts), key=len).replace(', peers:', ', other libraries with')}"
           f"{', '.join(['', *libraries])}. The clocks and the "
           "other tenants of the machines were not controlled.")
    yield ("*Data.* Unless a sentence names others, elements are normal or uniform numbers from a counter-based generator "
           "with the seed in the results. Data of a prescribed condition number κ = Σ|x| / |Σx| follow Ogita, Rump and Oishi "
           "[Ogita et al.]. The exact sum is computed with integers, one bucket per exponent, other results with wide "
           "floating-point numbers. An error is the distance of a result from the exact result of the elements as given; an "
           "ulp is the distance from one number of the format to the next.")
    yield ("*Times.* The methods of a comparison take turns, so that a disturbance affects all alike. A time is the median "
           f"over these turns, for a GPU between two events of its stream. {checked}"
           f"{how_timed(sources)} A method is *{timing.FASTER}* or *{timing.SLOWER}* if the "
           f"interval excludes one, *{timing.AS_FAST}* if it lies within {timing.WITHIN} of one, *{timing.NO_SLOWER}* "
           f"if its lower end does, whichever comes first; all else is *{timing.OPEN}*. Like is compared with like: the same "
           "elements, result format and number of threads, on one host; libraries that use one thread are compared with one "
           "thread only. For the price of a promise, results of fp16 and bf16 elements may be in fp32. The same "
           "bits everywhere are those of methods in a fixed order, of exact ones, and of sums on a grid that a call finds.")
    yield ("*Bits and orders.* A method is called repeatedly, and with other numbers of threads, launch shapes, addresses and "
           "permutations; different bit patterns are counted. Orders are revealed by sums of ones between a large number "
           "and its negative [Xie et al.]. Each error is compared with its bound, each result of a method with a promise "
           "with the others, each revealed order with the declared one. "
           f"{phrases.capitalised(checks_in_words(n))}.")
    yield ("*To repeat it.* `experiments/run --full` builds the library, runs every experiment and writes results files and a "
           "report; each experiment is also a program of its own. The table at the end lists the results behind this "
           "paper. This text is generated from them by `notebooks/paper.py`; no number in it is typed.")
    yield from section.void_findings(sources)


def command(s):
    name = s.header.get("experiment", "samesum compare")
    if name.startswith("torch_"):
        return "torch_speed.py" + " --repeats" * s.header["options"].get("repeats", False)
    chosen = s.header.get("filter", "")
    return " ".join(filter(None, [name, f"--{s.header['mode']}" if "mode" in s.header else "",
                                  f"--filter {chosen}" if 0 < len(chosen) < 40 else "--filter …" if chosen else ""]))


def answers(n):
    if "spread" not in n.sections:
        return
    yield "## How many answers one call has"
    rows = section.rows_with_place(n.found.get("spread_over_runs", []), "spread")
    loose = [(at, r) for at, r in rows if r["axis"] == "runs" and r["promise"] not in section.SAME_EVERYWHERE
             and r["data"] in frontier.ORDINARY and r["distinct_bits"] > 1]
    most = {(at, r["method"]): (at, r) for at, r in sorted(loose, key=lambda pair: pair[1]["distinct_bits"])}
    top = sorted(most.values(), key=lambda pair: (not phrases.is_peer(pair[1]["method"]), -pair[1]["distinct_bits"]))[:6]
    kept = phrases.capitalised(re.sub("^(Yes|No): ", "", story.other_promises(n.found)))
    yield (f"{n.verdict('spread')} The number of calls is limited by time, so more "
           f"answers may exist. {kept}")
    yield section.Table("Repeated calls on the same ordinary elements: the methods with the most different results",
                        ["method", "promise", "machine", "elements", "results", "calls", "apart, ulps"],
                        [[r["method"], r["promise"], at, f"{phrases.count(r['n'])} {r['data']}",
                          f"{r['distinct_bits']:,}", f"{r['runs']:,}", phrases.number(r["spread_ulps"], 2)]
                         for at, r in top], text_columns=4)
    if "order" in n.sections:
        yield (f"The reason is visible in the trees. {n.verdict('order')} A library that documents no order may change it "
               "with any release, and with it the bits of every program that uses it. A promise does not need another "
               "tree; it documents one, which later releases must keep.")
        gallery = n.figure("order")
        if gallery:
            peers = [t for t in gallery.tiles if not t.title.startswith("samesum")]
            shown = (peers or gallery.tiles)[:6]
            yield Picture("orders.svg", svg(dataclasses.replace(gallery, tiles=shown)),
                          f"{gallery.title}, as revealed by their results; the first {phrases.plural(len(shown), 'tree')}.")


def medians(n):
    """Yields the medians of the prices, for each place."""
    for at, some in prices.cells_of(n.found).items():
        yield f"{phrases.capitalised(at)}: {prices.medians(some)}"


def costs(n):
    price, places = prices.figure(n.found), frontier.measured(n.found)
    if price or places:
        yield "## What the promises cost"
        yield ("A fixed tree needs no more additions than any other, and a last block that merges the leaves in their "
               "order replaces the atomic addition of the textbooks [Harris]. The exact sum performs more integer "
               "operations per element, which a GPU or several threads can hide behind their loads. The price of a promise "
               "is the time of the fastest call that keeps it, divided by that of the fastest call that promises less, of "
               "samesum or of another library, for the same operation, format, shape and length: an exact result promises "
               "more than a fixed tree. Exact results are measured on several kinds of data; if the same work was "
               "measured several times, by several experiments or in CUDA graphs too, for each promise the highest "
               "price counts.")
    if price:
        yield from prices.sentences(n.found)
        yield Picture("price.svg", svg(price), f"{price.title}", tall=True)
        yield price.description
    if places:
        at, rows = next(iter(places.items()))
        known = hosts([s for some in n.found.values() for s in some])
        yield Picture("frontier.svg", frontier.picture(at, rows),
                      f"Error against speed ({at}). Times are medians; times and errors are those of "
                      f"{frontier.array(rows)}. Shapes are orders, fill is the promise.")
        yield frontier.finding(at, rows)
        ours = [(place, r) for place, some in list(places.items())[:2] for r in some
                if phrases.parts(r["method"])[0] in frontier.OURS[:4] or phrases.is_peer(r["method"])]
        shown = sorted(ours, key=lambda pair: (list(places).index(pair[0]), pair[1]["seconds"]))
        ends = (f"{timing.CONFIDENCE} interval" if all("rounds" in r for _, r in shown) else
                "range (tenth to ninetieth percentile)")
        of = ", ".join(section.distinct(f"{s.path.name}, host {number_of(s, known)}" for s in n.found["price_of_promise"]))
        yield section.Table(f"Median and {ends} of the times of sums, and the relative error, of {frontier.array(rows)} ({of})",
                            ["machine", "method", "promise", "time", ends.partition(" (")[0], "error"],
                            [[place, r["method"], r["promise"], phrases.duration(r["seconds"]),
                              f"{phrases.duration(r['low'])} to {phrases.duration(r['high'])}",
                              phrases.number(r["relative_error"], 2)] for place, r in shown[:14]], text_columns=3)
    if price or places:
        yield ("The argument does not depend on the operation. The same promises hold for dot products, norms, moments, "
               f"softmax [Milakov and Gimelshein], prefix sums and sums by key. {n.verdict('prefix')}")


def errors(n):
    if "error" in n.sections:
        yield "## What the promises do not give"
        yield ("The same bits may be the same wrong bits. A promise makes the error a property of the method, which can be "
               f"bounded and measured once. {n.verdict('error')} In theory the error of the loop grows with n at most, that "
               "of a tree with the logarithm of n, and the exact sum stays within half an ulp for every n [Higham]. Bounds "
               "that hold for every input are pessimistic where rounding errors are as good as random [Higham and Mary]. "
               f"{ratio_sentence(n)}")
        yield picture(n.figure("error", {"Methods": "plain sums, all orders"}), "error.svg")
    if "condition" in n.sections:
        yield (f"Cancellation decides more than length. {n.verdict('condition')} Compensation that keeps all errors moves the limit from u "
               "times κ to u squared times κ, for the roundoff u of the format; only exact accumulation removes it.")
    if "formats" in n.sections:
        yield ("In sixteen bits, sums stagnate long before they overflow: an element below half an ulp of the "
               f"partial sum is lost. {n.verdict('formats')}")


def ratio_sentence(n):
    return next((f for f in n.sections["error"].details if "mallest ratio of bound to error" in f), "")


def picture(figure, name):
    """A Picture of a section's figure, with the choices of its menus; None if there is none."""
    if not figure or not svg(figure):
        return None
    chosen = ", ".join(filter(None, figure.chosen()))
    return Picture(name, svg(figure), f"{figure.title}{f' ({chosen})' if chosen else ''}.")


def effects(n):
    if "consequences" not in n.sections:
        return
    yield "## Does it matter?"
    s = n.sections["consequences"]
    solver = consequences.widest([(section.place(source, r), r) for source in n.found.get("consequences", [])
                                  for r in source.of("solver")])
    yield ("It depends on the computation. Here only the sum can vary: everything else runs in one thread, without fused or "
           "reordered operations. Conjugate gradients [Hestenes and Stiefel] on a matrix with graded eigenvalues [Strakoš] "
           f"turn the last bit of a dot product into another number of iterations. {n.verdict('consequences')} "
           + (f"The matrix has condition number {consequences.condition(solver[1])}. " if solver else "")
           + well_behaved(s, solver))
    figure = next((f for f in s.figures if f.id == "consequences-iterations"), None)
    if figure:
        yield picture(figure, "iterations.svg")


def well_behaved(s, solver):
    """The sentences on the other system in the same format, for comparison."""
    texts = [f for f in s.details if solver and f"{consequences.SYSTEMS['poisson']} in {solver[1]['input_format']}" in f
             and "needed" in f]
    return f"For comparison: {' '.join(texts)}" if texts else ""


def threats(n):
    yield "## Threats to validity"
    known = hosts([s for some in n.found.values() for s in some])
    yield (f"*Few machines.* The results are of {phrases.plural(len(known), 'host')}, as far as kernel, processor, number of "
           f"threads and GPU tell them apart, of {phrases.plural(len(machines(n)), 'kind')} ({phrases.listed(machines(n))}). "
           "Ratios of speeds differ elsewhere; the bits of methods with a promise do not, or the promise is broken. "
           "*Shared machines.* Processors and memory were shared with other tenants, and the clocks were not fixed. "
           "Turns and intervals make false differences rarer; they also hide true ones that are smaller than the "
           "noise. *Neighbours.* Up to two experiments ran at a time on one host, each with processor cores and, on a "
           "GPU host, a GPU of its own, and each in one process: they shared the memory of the host, and intervals come "
           "from rounds and not from processes. *Synthetic data.* Most elements are generated, most of them independent. "
           "Real data are correlated "
           "and cancel less or more; the results here are of a few lengths and distributions, not of "
           "applications. *One consequence.* The matrix was built to be sensitive; on an ordinary one nothing but "
           "the last bits changes. *Other libraries* were measured in one version each, with settings that we chose; "
           "their orders may change. *Number of runs.* A method that returned one result in all runs may return "
           "another in the next; only a proof or a fixed order excludes that. *Authors.* The library, its "
           "measurements and this text have the same authors; programs, raw results and the generator of the text "
           "are in the repository, so that any number here can be measured again.")
    yield "## Conclusion"
    yield ("The tree of a sum can belong to its definition instead of to its schedule. Then the bits are a property of the "
           "data, and the cost is small wherever reading the elements takes the time. The stronger promise, "
           "independence of the order of the elements, costs the time of integer operations where loads do not hide "
           "it. Neither makes a sum accurate by itself; both make its error something to state.")
    yield "## References"
    yield [REFERENCES[key] for key in sorted(REFERENCES, key=lambda key: REFERENCES[key].casefold())]


def results_files(n):
    yield "## Results"
    sources = [s for some in n.found.values() for s in some]
    known = hosts(sources)
    rows = {}
    for s in sources:
        rows[s.path] = rows.get(s.path, 0) + len(s.rows) + s.left_out
    yield section.Table("The results files in experiments/results (“-dirty”: of a tree with changes that were not committed)"
                        if any("dirty" in s.commit for s in sources) else "The results files in experiments/results",
                        ["file", "rows", "command", "date", "commit", "host"],
                        [[path.name, f"{rows[path]:,}", command(s), s.header["provenance"]["date"][:10], s.commit,
                          number_of(s, known)] for path, s in {s.path: s for s in sources}.items()], text_columns=1)


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
            lines += [cited(block), ""]
    return "\n".join(lines)


def as_html(some):
    """One page, with its pictures inside."""
    parts, figures = [f"<h1>{html.escape(TITLE)}</h1>"], 0
    for block in some:
        if isinstance(block, Picture):
            figures += 1
            kind = " class=tall" if block.tall else ""
            parts.append(f"<figure{kind}>{on_paper(block.svg)}<figcaption>Figure {figures}. {html.escape(block.caption)}"
                         "</figcaption></figure>")
        elif isinstance(block, section.Table):
            rows = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>" for row in block.rows)
            heads = "".join(f"<th>{html.escape(c)}</th>" for c in block.columns)
            parts.append(f"<table><caption>{html.escape(block.caption)}:</caption><tr>{heads}</tr>{rows}</table>")
        elif isinstance(block, list):
            parts.append("<ol>" + "".join(f"<li>{html.escape(item)}</li>" for item in block) + "</ol>")
        elif block.startswith("## "):
            parts.append(f"<h2>{html.escape(block[3:])}</h2>")
        else:
            text = re.sub(r"\*([^*]+)\*", r"<em>\1</em>", html.escape(cited(block)))
            parts.append("<p>" + re.sub(r"`([^`]+)`", r"<code>\1</code>", text) + "</p>")
    body = "\n".join(parts)
    return (f"<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>\n"
            "<meta name=viewport content='width=device-width, initial-scale=1'>"
            f"<title>{html.escape(TITLE)}</title>\n"
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
