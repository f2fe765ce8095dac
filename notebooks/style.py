"""Appearance of methods in all figures: colour by accumulator, dash and symbol by order.

The colours are those of Okabe and Ito, which colour-blind readers can distinguish; some are darker here, so that lines
stand out on white and on dark pages.
"""

import dataclasses

import phrases
from section import SAME_EVERYWHERE

GREY = "#888888"  # for frontiers and for reading alone
COLOURS = {"plain": "#b84300", "kahan": "#c28700", "neumaier": "#3a9bdc", "double_word": "#009e73", "exact": "#0069a8",
           "fixed_point": "#7d66c9",
           "peer": "#cc79a7", "read": GREY, "hopper": "#76801c"}
PEERS = ["#cc79a7", "#94507a", "#b0608f"]  # shades of the colour of peers
# On dark pages, in place of colours that are hard to see there.
ON_DARK = {COLOURS["plain"]: "#e0692a", COLOURS["exact"]: "#8fb4ff", COLOURS["fixed_point"]: "#9a7fe8",
           PEERS[1]: "#e3a6cb"}
ORDERS = {"serial": ("dash", "circle"), "tree": ("solid", "square"), "pairwise": ("dashdot", "diamond"),
          "prefix": ("longdash", "hexagon"), "canonical16": ("dot", "triangle-up"),
          "canonical128": ("dot", "triangle-down"),
          "atomic": ("longdash", "x"), "atomic_element": ("dot", "cross"), "": ("solid", "star")}
SYMBOLS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star", "hexagon", "pentagon"]
HOLLOW = "-open"  # the end of the name of a symbol without a filling
DASHES = ["solid", "dash", "dot", "dashdot", "longdash"]
OTHERS = "other libraries and loops"
PLAIN = "plain sums, all orders"


def colour(method):
    return COLOURS.get(phrases.accumulator(method), GREY)


def line(method, peers):
    """(colour, dash, symbol) of a method. Peers have shades of one colour and differ in dash and symbol too."""
    if phrases.is_peer(method):
        place = peers.index(phrases.parts(method)[0])
        return PEERS[place % len(PEERS)], DASHES[place % len(DASHES)], SYMBOLS[place % len(SYMBOLS)]
    return colour(method), *ORDERS.get(phrases.order(method), ("dot", "circle"))


def point(method, promise, peers):
    """(colour, symbol) of a method in a scatter plot: as its line, and hollow if it promises less than the same bits
    everywhere."""
    colour, _, symbol = line(method, peers)
    return colour, symbol + HOLLOW * (promise not in SAME_EVERYWHERE)


def together(series):
    """The bars. Three or more with the same choices, length and label become one that names a method and counts the
    others: one of samesum, and one of other libraries. It is grey if their colours differ."""
    groups = {}
    for s in series:
        groups.setdefault((s.on, *s.x, *s.text, s.colour in PEERS), []).append(s)
    return [s for some in groups.values() for s in ([one_bar(some)] if len(some) >= phrases.FEWEST else some)]


def one_bar(some):
    names = sorted((s.y[0] for s in some), key=lambda name: not name.startswith("exact"))
    return dataclasses.replace(some[0], names=names, y=[f"{names[0]} and {len(names) - 1} more"],
                               colour=some[0].colour if len({s.colour for s in some}) == 1 else GREY)


def peers_among(methods):
    return sorted({phrases.parts(m)[0] for m in methods if phrases.is_peer(m)})


def groups(method):
    """Groups of methods that a figure shows together; exact and reading alone are in every group."""
    algorithm, accumulator, order = phrases.parts(method)[0], phrases.accumulator(method), phrases.order(method)
    if accumulator in ("exact", "read"):
        return [None]
    if accumulator == "peer":
        return [OTHERS]
    found = [f"order {order}"] if not order.startswith("atomic") else []
    if accumulator == "plain":
        found.append(PLAIN)
    if algorithm == "pairwise/plain":
        found.append(OTHERS)
    return found


def all_groups(methods):
    """Groups in the order of the menu: tree first, which has every accumulator and is not the slowest order.

    There is at least one group, even if every method belongs to all groups.
    """
    found = {g for m in methods for g in groups(m) if g} or {"all"}
    return sorted(found, key=lambda g: (g != "order tree", g == OTHERS, g == PLAIN, g))
