"""Sentences that are told of each place, and the one below a plot, which is made from the plot's own lines and bars."""

import words
from figure import drawn
from section import by_place


def of_each_place(rows, tell):
    """What `tell` finds in the rows of each place, of pairs (place, row); what it finds in several is told once."""
    found = {}
    for at, some in by_place(rows).items():
        for text in tell(some):
            found.setdefault(text, []).append(at)
    for text, places in found.items():
        yield words.sentence(f"{'; '.join(places)}: {text}")


def seen(figure):
    """What the menus begin with, and what is then shown without the faint lines."""
    chosen = figure.chosen() if figure.series else ()
    return words.sentence(", ".join(chosen)), [s for s in figure.matching(chosen) if not s.faint]


def reads_lines(figure, at, say):
    """Who is lowest and who highest at the right end; `at` and `say` put numbers of both axes into words."""
    chosen, lines = seen(figure)
    points = [(x, y, s.name) for s in lines for x, y in zip(s.x, s.y)
              if drawn(x, figure.x_kind) and drawn(y, figure.y_kind)]
    if not points:
        return ""
    right = max(x for x, _, _ in points)
    return f"{chosen}: at {at(right)} {extent('line', [(y, name) for x, y, name in points if x == right], say)}."


def reads_bars(figure, say):
    """Which bars are the shortest and which the longest."""
    chosen, bars = seen(figure)
    return f"{chosen}: {extent('bar', [(s.x[0], s.y[0]) for s in bars], say)}." if bars else ""


def extent(what, ends, say):
    """From the least to the greatest of (value, name), as far as words can tell them apart."""
    alike = {}
    for value, name in sorted(ends):
        alike.setdefault(say(value), []).append(name)
    (least, lowest), *_, (most, highest) = [*alike.items()] * 2
    if len(ends) == 1:
        return f"the only {what} is at {least} ({lowest[0]})"
    if least == most:
        return f"all {len(ends)} {what}s are at {least}"
    return f"the {what}s go from {least} ({words.names(lowest)}) to {most} ({words.names(highest)})"
