"""How a method looks, everywhere: its accumulator is a colour, its order a dash and a symbol.

The colours are Okabe and Ito's, which the colour-blind can tell apart; some are darker, so that a line stands out from
white paper and from a dark page alike.
"""

import words

GREY = "#888888"  # of what is no method: a frontier, reading alone
COLOURS = {"plain": "#b84300", "kahan": "#c28700", "neumaier": "#3a9bdc", "double_word": "#009e73", "exact": "#0069a8",
           "peer": "#cc79a7", "read": GREY}
PEERS = ["#cc79a7", "#94507a", "#b0608f"]  # shades of the peers' colour
ORDERS = {"serial": ("dash", "circle"), "tree": ("solid", "square"), "pairwise": ("dashdot", "diamond"),
          "canonical16": ("dot", "triangle-up"), "canonical128": ("dot", "triangle-down"),
          "atomic": ("longdash", "x"), "atomic_element": ("dot", "cross"), "": ("solid", "star")}
SYMBOLS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star", "hexagon", "pentagon"]
DASHES = ["solid", "dash", "dot", "dashdot", "longdash"]
PROMISES = {"none": "x", "run_to_run": "triangle-up", "everywhere": "circle", "order_free": "star"}
OTHERS = "other libraries"
PLAIN = "plain sums, every order"


def colour(method):
    return COLOURS.get(words.accumulator(method), GREY)


def line(method, peers):
    """(colour, dash, symbol); peers, which have shades of one colour, are told apart by all three."""
    if words.is_peer(method):
        place = peers.index(words.parts(method)[0])
        return PEERS[place % len(PEERS)], DASHES[place % len(DASHES)], SYMBOLS[place % len(SYMBOLS)]
    return colour(method), *ORDERS.get(words.order(method), ("dot", "circle"))


def peers_among(methods):
    return sorted({words.parts(m)[0] for m in methods if words.is_peer(m)})


def groups(method):
    """What a reader may ask to see side by side, few lines at a time; exact is in all of them."""
    recipe, accumulator, order = words.parts(method)[0], words.accumulator(method), words.order(method)
    if accumulator in ("exact", "read"):
        return [None]  # everywhere
    if accumulator == "peer":
        return [OTHERS]
    found = [f"order {order}"] if not order.startswith("atomic") else []
    if accumulator == "plain":
        found.append(PLAIN)
    if recipe == "pairwise/plain":
        found.append(OTHERS)
    return found


def all_groups(methods):
    """In the order of a menu: the tree first, since it holds every accumulator and is not the slowest. A menu has one
    choice at least, even where all there is belongs to every group."""
    found = {g for m in methods for g in groups(m) if g} or {"all"}
    return sorted(found, key=lambda g: (g != "order tree", g == OTHERS, g == PLAIN, g))
