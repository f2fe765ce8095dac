"""In which order does each method add? Trees that masks gave away, compared with those that are declared, and drawn."""

import style
import telling
import words
from figure import Drawing, Figure
from section import Section, Table, distinct

DRAWN = 32  # leaves of a tree that can be drawn with their numbers
WIDTH, MARGIN, STEP, LOWEST = 720, 14, 9, 300


def section(sources):
    s = Section("order", "Revealed orders", "The tree in which each method adds, as its answers give it away: M and -M "
                "among ones (FPRev, Xie et al. 2025), or where these are kept beside M, the largest number twice and "
                "its negative, which overflow if the two meet first.",
                "build/release/bin/reveal_order --out build/study")
    rows = [(source.machine, r) for source in sources for r in source.of("tree")]
    if rows:
        s.findings = list(findings(rows))
        s.figures = list(figures(rows))
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
        told = [f"{words.of(sum(r['matches'] for r in some), len(some))} {how} of {lengths(some)} elements"
                for some, how in ((whole, "revealed whole, for sums"), (sampled, "at sampled places, for sums"))
                if some]
        wrong = [f"{r['method']} ({machine})" for machine, r in declared if not r["matches"]]
        yield (f"The declared tree was found in {words.of(len(declared) - len(wrong), len(declared), 'sum')} of "
               f"samesum's methods: {'; '.join(told)}" + (f". Not in {words.names(wrong)}." if wrong else "."))
    yield from about_blindness([r for _, r in rows])
    yield from telling.of_each_place(rows, about_peers)


def lengths(rows):
    return " and ".join(f"{n:,}" for n in sorted({r["n"] for r in rows}))


def about_blindness(rows):
    """Why M and -M among ones say nothing, in the rows' words, of whom, and what else gives these away."""
    methods = {r["method"] for r in rows}
    reasons = {}
    for r in rows:
        if r["blind"]:
            reasons.setdefault(r["blind"], {})[r["method"]] = r["masks"]
    for reason, blind in reasons.items():
        seen = sum(masks is not None for masks in blind.values())
        yield (f"To M and -M among ones {words.of(len(blind), len(methods), 'method')} "
               f"{words.verb(len(blind), len(methods))} blind "
               f"({words.names((words.parts(m)[0] for m in blind), 9)}), since {reason}; overflow gives away the order "
               f"of {words.of(seen, len(blind))}.")


def about_peers(rows):
    """How high the trees of other libraries are, and which of them are trees of ours."""
    few = [r for r in rows if r["n"] == DRAWN]
    ours = {r["tree"]: words.parts(r["method"])[0] for r in reversed(few) if r["tree"] and r["matches"]}
    peers = [r for r in few if words.is_peer(r["method"])]
    seen = sorted((r for r in peers if r["tree"]), key=lambda r: (r["height"], r["method"]))
    if seen:
        same = [f"{r['method']} as {ours[r['tree']]}" for r in seen if r["tree"] in ours]
        trees = len({r["tree"] for r in seen})
        least, most = ((r["height"], f"{r['height']} ({r['method']})") for r in (seen[0], seen[-1]))
        yield (f"of {DRAWN} elements {words.of(len(seen), len(peers), 'sum')} of other libraries showed "
               f"{'one tree' if trees == 1 else f'{trees} different trees'}, "
               + (f"{least[0]}" if least[0] == most[0] else f"from {least[1]} to {most[1]}")
               + f" additions high; {words.of(len(same), len(seen), 'sum')} "
               f"{words.verb(len(same), len(seen), 'adds', 'add')} in a tree of samesum's"
               + (f": {words.names(same)}." if same else "."))
    changing = [r["method"] for r in peers if r["difference"]]
    if changing:
        yield f"the answers of {words.names(changing)} contradict each other: the tree changes from sum to sum."


# --- FPRev, for sums that can be called from Python -----------------------------------------------------------------

def reveal(total, n, large=2.0**100):
    """The tree of `total`, a sum of n numbers in a list, as in the rows (Xie et al. 2025); None where its answers are
    those of no tree, since it keeps the ones beside M, or changes its order."""
    def size(i, j):  # of the smallest sum that has both
        x = [1.0] * n
        x[i], x[j] = large, -large
        return n - total(x)

    def tree(leaves):
        first, *others = leaves
        by_size = {}
        for other in others:
            by_size.setdefault(size(first, other), []).append(other)
        text, found = str(first), 1
        for wanted, some in sorted(by_size.items()):
            found += len(some)
            part = tree(some) if found == wanted else None
            if part is None:
                return None
            text = f"({text}+{part})"
        return text

    return tree(list(range(n)))


# --- pictures -----------------------------------------------------------------------------------------------------

def parsed(text):
    """'((0+2)+1)' -> ((0, 2), 1), without recursion, which long sums would exhaust."""
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
    """The leaves in the order of the tree, so that no lines cross; each node as high as the additions below it."""
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


def figures(rows):
    """Each different tree once, with who adds so: first of few elements, then of more by our methods."""
    by_tree = {}
    for _, r in rows:
        if r["tree"] and (r["n"] == DRAWN or not words.is_peer(r["method"])):
            by_tree.setdefault((r["n"], r["tree"]), []).append(r)
    some = sorted(by_tree.items(), key=lambda item: (item[0][0], words.is_peer(item[1][0]["method"])))
    for i, ((n, tree), same) in enumerate(some):
        recipes = distinct(f"{words.parts(r['method'])[0]}{'' if ours(r) else '/' + r['input_format']}" for r in same)
        title = f"{n:,} elements, {same[0]['height']} additions high: {words.names(recipes, 4)}"
        yield figure(f"order-figure-{i}", tree, title, style.colour(same[0]["method"]))


def figure(id, tree, title, colour=style.COLOURS["peer"]):
    return Figure(id, title, [], [], "", {None: ""}, picture=picture(tree, title, colour), reading=reading(tree))


def reading(tree):
    """A path has as many additions as there are brackets around its element."""
    open = height = 0
    for c in tree:
        open += (c == "(") - (c == ")")
        height = max(height, open)
    n = tree.count("+") + 1
    least = (n - 1).bit_length()
    return (f"The longest path from an element to the sum has {words.plural(height, 'addition')}"
            + (f"; {words.plural(n, 'element')} could do with {least}." if height > least else
               f", the fewest that {words.plural(n, 'element')} can do with."))


def ours(r):
    return not words.is_peer(r["method"])


def tables(rows):
    for machine in distinct(machine for machine, _ in rows):
        yield Table(f"{machine}: what was asked and found",
                    ["method", "promise", "masks", "tree", "n", "height", "sums asked for"],
                    [[r["method"], r["promise"], r["masks"] or "none", verdict(r), f"{r['n']:,}",
                      "-" if r["height"] is None else str(r["height"]), f"{r['asked']:,}"]
                     for m, r in rows if m == machine], words=4, folded=True, page_only=True)


def verdict(r):
    if r["matches"] is None:
        return "drawn" if r["tree"] else "changes" if r["difference"] else "no order to be seen"
    return "MISS" if not r["matches"] else "as declared" + (f", at {r['sampled']} places" if r["sampled"] else "")
