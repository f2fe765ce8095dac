"""The report as text, for pull requests."""

import html

LIMIT = 65_000  # characters; GitHub takes 65,536 in a comment


def plain(text):
    """Text that stays text: no HTML, and on one line."""
    return " ".join(html.escape(str(text), quote=False).split())


def cell(text):
    return plain(text).replace("|", "\\|")


def table(t):
    lines = ["| " + " | ".join(map(cell, t.columns)) + " |",
             "|" + "".join(" --- |" if i < t.words else " ---: |" for i in range(len(t.columns)))]
    lines += ["| " + " | ".join(map(cell, row)) + " |" for row in t.rows]
    if t.note:
        lines += ["", plain(t.note)]
    if t.folded:
        return [f"<details><summary>{plain(t.caption)}</summary>", "", *lines, "", "</details>", ""]
    return [plain(t.caption), "", *lines, ""]


def section(s, left_out=()):
    """The tables that are left out are named, and those that are for the page only."""
    yield f"## {plain(s.title)}\n"
    if s.empty:
        yield f"No results yet. This makes them: `{s.command}`\n"
        return
    yield plain(s.about) + "\n"
    yield from (f"- {plain(sentence)}" for sentence in s.findings)
    yield from (f"- *{plain(f.title)}*: {plain(f.reading)}" for f in s.figures if f.reading)
    yield ""
    elsewhere = [t for t in s.tables if t.page_only or t in left_out]
    for t in s.tables:
        if t not in elsewhere:
            yield from table(t)
    if elsewhere:
        yield f"Only in report.html: {'; '.join(plain(t.caption) for t in elsewhere)}.\n"


def whole(title, top, sections, provenance, left_out):
    yield f"# {title}\n"
    yield from (f"- **{question}** {plain(sentence)}" if question else f"- {plain(sentence)}"
                for question, sentence in top)
    yield ""
    for s in sections:
        yield from section(s, left_out)
    yield "## Machines\n"
    for t in provenance:
        yield from table(t)


def text(title, top, sections, provenance):
    """Where it is too long, the longest tables are left out, the folded ones first, and at last its end."""
    every = (t for s in sections for t in s.tables)
    tables = sorted((t.folded, len("\n".join(table(t))) + 1, i, t) for i, t in enumerate(every) if not t.page_only)
    left_out = []
    while True:
        written = "\n".join(whole(title, top, sections, provenance, left_out)) + "\n"
        if len(written) <= LIMIT:
            return written
        if not tables:
            end = written.rindex("\n", 0, LIMIT - 100)
            return written[:end] + "\n\nMore does not fit here; it is in report.html.\n"
        saved = 0  # at most: writing everything again for every table would take long
        while tables and saved < len(written) - LIMIT:
            _, length, _, longest = tables.pop()
            saved += length
            left_out.append(longest)
