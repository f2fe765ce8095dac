"""Sentences that several places share, and the computed sentence below a figure."""

import phrases
from figure import is_drawable
from section import group_by_place


def sentences_by_place(rows, describe):
    """Yields the sentences that `describe` returns for the rows of each place; `rows` are pairs (place, row).

    A sentence that several places share is yielded once, with all of these places in front.
    """
    places_of = {}
    for at, some in group_by_place(rows).items():
        for sentence in describe(some):
            places_of.setdefault(sentence, []).append(at)
    for sentence, places in places_of.items():
        yield phrases.capitalised(f"{'; '.join(places)}: {sentence}")


def initial_view(figure):
    """The initial choices of the menus as text, and the series they show except faint ones."""
    chosen = figure.chosen() if figure.series else ()
    return phrases.capitalised(", ".join(chosen)), [s for s in figure.matching(chosen) if not s.faint]


def describe_lines(figure, x_text, y_text):
    """Names the lowest and the highest line at the right end; `x_text` and `y_text` format numbers of the axes."""
    chosen, lines = initial_view(figure)
    points = [(x, y, s.name) for s in lines for x, y in zip(s.x, s.y)
              if is_drawable(x, figure.x_kind) and is_drawable(y, figure.y_kind)]
    if not points:
        return ""
    right = max(x for x, _, _ in points)
    return f"{chosen}: at {x_text(right)} {value_range([(y, name) for x, y, name in points if x == right], y_text)}."


def describe_bars(figure, value_text):
    """Names the shortest and the longest bars; `value_text` formats their lengths."""
    chosen, bars = initial_view(figure)
    ends = [(s.x[0], name) for s in bars for name in s.names or s.y]
    return f"{chosen}: {value_range(ends, value_text)}." if bars else ""


def value_range(ends, value_text):
    """Range of the pairs (value, method). Values with the same text count as equal."""
    methods_of = {}
    for value, name in sorted(ends):
        methods_of.setdefault(value_text(value), []).append(name)
    (least, lowest), *_, (most, highest) = [*methods_of.items()] * 2
    if len(ends) == 1:
        return f"the only method has {least} ({lowest[0]})"
    if least == most:
        return f"all {len(ends)} methods have {least}"
    return f"the methods range from {least} ({phrases.names(lowest)}) to {most} ({phrases.names(highest)})"
