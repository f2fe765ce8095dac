"""Section on the order in which each method adds: revealed trees, compared with declared ones, and their pictures."""

import re

import glossary
import phrases
import style
from figure import Drawing, Figure, Tile
from section import Check, Section, Table, distinct

FIRST = ["eigen", "numpy", "tbb", "openmp", "cub", "torch", "torch_cpu"]  # libraries at the beginning of the gallery
DRAWN = 32  # elements of the trees that are drawn with element numbers
WIDTH, MARGIN, STEP, LOWEST = 720, 14, 9, 300
INPUTS = {"units": "M among ones", "overflow": "overflow", None: "none"}


def section(sources):
    s = Section("order", "Revealed orders", "In which order does each library add?",
                "The tree in which each method adds, deduced from its results for special "
                "inputs: a large M and -M among ones (FPRev, Xie et al. 2025). Compensated methods do not lose the "
                "ones, so for them the input is the largest finite number twice and its negative once, among zeros: "
                "the sum overflows exactly if the two equal numbers meet first.",
                "build/release/bin/reveal_order --out build/study",
                terms=("method", "order", "accumulator", "promise", "height", "cub"))
    rows = [(source.machine, r) for source in sources for r in source.of("tree")]
    if rows:
        s.verdict = tree_finding(rows)
        s.findings = list(findings(rows))
        s.figures = [f for f in [gallery(rows)] if f.tiles]
        s.tables = list(tables(rows))
        s.failures = [f"{machine}: {r['method']}, n = {r['n']:,}: not the declared tree"
                      + (f": {r['difference']}" if r["difference"] else "")
                      for machine, r in rows if r["matches"] is False]
    return s


# --- sentences --------------------------------------------------------------------------------------------------

def findings(rows):
    declared = [(machine, r) for machine, r in rows if r["matches"] is not None]
    if declared:
        whole, sampled = [[r for _, r in declared if (r["sampled"] > 0) == which] for which in (False, True)]
        clauses = [f"{len(some):,} {how} ({lengths(some)} elements)"
                   for some, how in ((whole, phrases.verb(len(whole), 0, "was", "were") + " compared completely"),
                                     (sampled, phrases.verb(len(sampled), 0, "was", "were") + " compared at sampled "
                                      "places")) if some]
        wrong = [f"{r['method']} ({machine})" for machine, r in declared if not r["matches"]]
        right = len(declared) - len(wrong)
        yield Check(phrases.capitalised(phrases.out_of(right, len(declared), "checked sum"))
                    + f" {phrases.verb(right, len(declared), 'adds', 'add')} in the tree that "
                    + f"{phrases.verb(right, len(declared), 'its order defines', 'their order defines')}: "
                    + ", ".join(clauses) + phrases.exceptions(wrong),
                    right, len(declared), "sum in its declared order", "sums in their declared orders")
    yield from blindness_findings([r for _, r in rows])
    yield from same_findings(rows)
    changing = distinct(r["method"] for _, r in rows if r["difference"] and not ours(r))
    if changing:
        yield f"The results of {phrases.names(changing)} contradict each other: their tree changes between calls."


def lengths(rows):
    return " and ".join(f"{n:,}" for n in sorted({r["n"] for r in rows}))


def blindness_findings(rows):
    """Yields, for each reason in the rows, which methods M and -M among ones reveal nothing about."""
    methods = {r["method"] for r in rows}
    reasons = {}
    for r in rows:
        if r["blind"]:
            reasons.setdefault(r["blind"], {})[r["method"]] = r["masks"]
    for reason, blind in reasons.items():
        revealed = sum(masks is not None for masks in blind.values())
        yield (f"M and -M among ones reveal nothing about {phrases.out_of(len(blind), len(methods), 'method')} "
               f"({phrases.names((phrases.parts(m)[0] for m in blind), 9)}), because {reason}. "
               + (f"The inputs that overflow reveal the order of {phrases.out_of(revealed, len(blind))}." if revealed
                  else f"The order of {'this method' if len(blind) == 1 else f'these {len(blind)}'} stays unknown."))


def revealed_peers(rows):
    """(rows of other libraries with DRAWN elements, those of them that revealed a tree, {tree: samesum's name of it})"""
    few = [r for _, r in rows if r["n"] == DRAWN]
    known = {r["tree"]: phrases.parts(r["method"])[0] for r in reversed(few) if r["tree"] and r["matches"]}
    peers = [r for r in few if not ours(r)]
    return peers, sorted((r for r in peers if r["tree"]), key=lambda r: (r["height"], r["method"])), known


def tree_finding(rows):
    """How many trees other libraries have, and how high these are; empty without a revealed one."""
    peers, revealed, known = revealed_peers(rows)
    if not revealed:
        return ""
    trees = len({r["tree"] for r in revealed})
    least, most = ((r["height"], f"{r['height']} ({r['method']})") for r in (revealed[0], revealed[-1]))
    return (f"{phrases.capitalised(phrases.out_of(len(revealed), len(peers), 'sum'))} of "
            f"{phrases.peers_in_words((r['method'] for r in peers), many=True)} revealed "
            + ("one tree with a height of " if trees == 1 else f"{trees} different trees with heights of ")
            + (f"{least[0]}" if least[0] == most[0] else f"{least[1]} to {most[1]}")
            + f" additions for {DRAWN} elements ({machines(rows, peers)}).")


def machines(rows, some):
    """The machines of some of the rows, of which each has a machine: 'this machine, H200'."""
    return ", ".join(distinct(machine for machine, r in rows if any(r is other for other in some)))


def same_findings(rows):
    """Yields which trees of other libraries samesum has too."""
    _, revealed, known = revealed_peers(rows)
    same = [f"{r['method']} as {known[r['tree']]}" for r in revealed if r["tree"] in known]
    if revealed:
        yield (f"{phrases.capitalised(phrases.out_of(len(same), len(revealed)))} of these "
               f"{phrases.verb(len(same), len(revealed), 'adds', 'add')} in the tree of a samesum method"
               + (f": {phrases.names(same)}." if same else "."))


# --- FPRev for sums that are Python functions -----------------------------------------------------------------------

def reveal(total, n, large=2.0**100):
    """The tree of `total`, a sum of a list of n numbers, in the notation of the rows (Xie et al. 2025).

    Returns None if the results fit no tree, because `total` keeps the ones beside M or changes its order.
    """
    def size(i, j):  # elements in the smallest partial sum with both i and j
        x = [1.0] * n
        x[i], x[j] = large, -large
        return n - total(x)

    def tree(leaves):
        first, *others = leaves
        by_size = {}
        for other in others:
            by_size.setdefault(size(first, other), []).append(other)
        text, found = str(first), 1
        for expected, some in sorted(by_size.items()):
            found += len(some)
            part = tree(some) if found == expected else None
            if part is None:
                return None
            text = f"({text}+{part})"
        return text

    return tree(list(range(n)))


# --- pictures -----------------------------------------------------------------------------------------------------

def parsed(text):
    """Parses '((0+2)+1)' to ((0, 2), 1), without recursion, whose limit long sums would exceed."""
    stack, number = [], ""
    for c in text:
        if c.isdigit():
            number += c
            continue
        if number:
            stack.append(int(number))
            number = ""
        if c == ")":
            right = stack.pop()
            stack.append((stack.pop(), right))
    return stack.pop() if stack else int(number)


def picture(text, title, colour):
    """Draws a tree. The leaves are in the order of the tree, so that no lines cross; a node is as high as the longest
    path below it."""
    def key(node):
        return node if isinstance(node, int) else (id(node),)

    places, lines, leaves = {}, [], []  # a place is (x, height)
    waiting = [(parsed(text), False)]
    while waiting:
        node, ready = waiting.pop()
        if isinstance(node, int):
            places[key(node)] = (len(leaves), 0)
            leaves.append(node)
        elif not ready:
            waiting += [(node, True), (node[1], False), (node[0], False)]
        else:
            ends = [places[key(child)] for child in node]
            height = 1 + max(h for _, h in ends)
            places[key(node)] = (sum(x for x, _ in ends) / 2, height)
            lines.append((ends, height))
    most = max([h for _, h in lines], default=1)
    step = min(STEP * 2, LOWEST / most)
    numbered = len(leaves) <= DRAWN
    bottom = MARGIN + most * step
    apart = (WIDTH - 2 * MARGIN) / max(len(leaves) - 1, 1)
    drawing = Drawing(WIDTH, bottom + (24 if numbered else MARGIN), title)
    paths = []
    for ends, height in lines:
        (x1, h1), (x2, h2) = ends
        paths.append(f"M{MARGIN + x1 * apart:.1f} {bottom - h1 * step:.1f}V{bottom - height * step:.1f}"
                     f"H{MARGIN + x2 * apart:.1f}V{bottom - h2 * step:.1f}")
    drawing.add(f'<path d="{"".join(paths)}" fill="none" stroke="{colour}" stroke-width="{1.5 if numbered else 0.6}"/>')
    for i, leaf in enumerate(leaves if numbered else []):
        drawing.text(MARGIN + i * apart, bottom + 16, str(leaf), "middle", 10)
    return drawing.done()


def gallery(rows):
    """One picture per library or order of samesum and tree, of DRAWN elements, other libraries first."""
    tiles = {}
    drawn = [r for _, r in rows if r["tree"] and r["n"] == DRAWN]
    for r in drawn:
        tiles.setdefault((family(r["method"]), r["tree"]), []).append(r)
    declared = {tree: name for (name, tree), some in reversed(tiles.items()) if ours(some[0])}
    several = [name for name, _ in tiles]
    order = [*FIRST, *dict.fromkeys(name.split("/")[0] for name in several)]
    found = []
    for (name, tree), some in sorted(tiles.items(), key=lambda item: (ours(item[1][0]),
                                                                       order.index(item[0][0].split("/")[0]))):
        formats = "" if several.count(name) == 1 else " " + " ".join(distinct(r["input_format"] for r in some))
        title = (f"samesum {name}" if ours(some[0]) else glossary.in_words(name)) + formats
        same = "" if ours(some[0]) or tree not in declared else f", as samesum {declared[tree]}"
        found.append(Tile("tree-" + re.sub("[^a-z0-9]+", "-", f"{name}{formats}".lower()), title,
                          f"height {some[0]['height']}{same}" + ("" if ours(some[0]) else f"; {machines(rows, some)}"),
                          picture(tree, title, style.colour(some[0]["method"]))))
    least = (DRAWN - 1).bit_length()
    lowest = sum(some[0]["height"] == least for some in tiles.values())
    text = f"The trees in which {phrases.plural(len(found), 'sum')} add {DRAWN} elements"
    return Figure("order-gallery", text, [], [], "", {None: ""}, tiles=found,
                  description="Numbers are elements, and each horizontal line is an addition. The higher the tree, the "
                              "more roundings lie between an element and the result. Select a tree to enlarge it: its "
                              "address is a link to it.",
                  finding=f"{phrases.capitalised(phrases.out_of(lowest, len(found)))} of these sums "
                          f"{phrases.verb(lowest, len(found), 'has', 'have')} the least possible height, {least} "
                          f"additions ({machines(rows, drawn)}).")


def family(method):
    """A library with its setting, or an order of samesum: sums of one family differ at most in their formats."""
    return phrases.parts(method)[0] if phrases.is_peer(method) else phrases.order(method) or phrases.parts(method)[0]


def figure(id, tree, title, colour=style.COLOURS["peer"]):
    return Figure(id, title, [], [], "", {None: ""}, tiles=[Tile(id, title, height_finding(tree),
                                                                 picture(tree, title, colour))],
                  finding=height_finding(tree))


def height(tree):
    """The largest number of additions between an element and the result."""
    open = most = 0  # a leaf is as deep as the number of open brackets
    for c in tree:
        open += (c == "(") - (c == ")")
        most = max(most, open)
    return most


def height_finding(tree):
    """The height of a tree and the least possible one."""
    n = tree.count("+") + 1
    least = (n - 1).bit_length()
    return (f"The height is {phrases.plural(height(tree), 'addition')}"
            + (f"; the minimum for {phrases.plural(n, 'element')} is {least}." if height(tree) > least else
               f", the minimum for {phrases.plural(n, 'element')}."))


def ours(r):
    return not phrases.is_peer(r["method"])


def tables(rows):
    for machine in distinct(machine for machine, _ in rows):
        yield Table(f"{machine}: inputs and revealed trees",
                    ["method", "promise", "inputs", "tree", "n", "height", "calls"],
                    [[r["method"], r["promise"], INPUTS[r["masks"]], outcome(r), f"{r['n']:,}",
                      "-" if r["height"] is None else str(r["height"]), f"{r['asked']:,}"]
                     for m, r in rows if m == machine], text_columns=4, folded=True, page_only=True)


def outcome(r):
    if r["matches"] is None:
        return "revealed" if r["tree"] else "changes" if r["difference"] else "not revealed"
    return "MISS" if not r["matches"] else "as declared" + (f", {r['sampled']} samples" if r["sampled"] else "")
