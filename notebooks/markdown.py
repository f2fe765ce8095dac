"""Writes the report as Markdown for a pull request."""

import html
import re

import page
import phrases

LIMIT = 65_000  # characters; a GitHub comment holds at most 65,536


# Characters that would format the text, link it or make it a formula, wherever they are; "_" only at the edge of a word.
INLINE = re.compile(r"[\\`*\[~$]|(?<!\w)_|_(?!\w)")
START = re.compile(r"^([#+=-]|\d+(?=[.)]))")  # of a heading or a list


def summary(text):
    """Text on one line for a line of HTML, where Markdown means nothing."""
    return " ".join(html.escape(str(text), quote=False).split())


def inline(text):
    """Text within a line, which shows as it is: neither as HTML nor as Markdown."""
    return INLINE.sub(r"\\\g<0>", summary(text))


def plain(text):
    """Text that may begin a line."""
    text = inline(text)
    return START.sub(lambda m: f"{m[0]}\\" if m[0].isdigit() else f"\\{m[0]}", text)


def cell(text):
    return inline(text).replace("|", "\\|")


def table(t):
    # Without spaces around the cells: they would be a tenth of the report.
    lines = [f"|{'|'.join(cells)}|" for cells in (
        map(cell, t.columns), ["---" if i < t.text_columns else "--:" for i in range(len(t.columns))],
        *(map(cell, row) for row in t.rows))]
    if t.note:
        lines += ["", plain(t.note)]
    if t.folded:
        return [f"<details><summary>{summary(t.caption)}</summary>", "", *lines, "", "</details>", ""]
    return [plain(t.caption), "", *lines, ""]


def section(s, left_out=()):
    """Yields the lines of a section. Tables in `left_out` and tables only for the page are named instead of shown."""
    yield f"## {plain(s.title)}\n"
    yield plain(s.about) + "\n"
    yield from (f"- {plain(sentence)}" for sentence in s.findings)
    yield from (f"- *{inline(f.title)}*: {inline(f.finding)}" for f in s.figures if f.finding)
    yield ""
    elsewhere = [t for t in s.tables if t.page_only or t in left_out]
    for t in s.tables:
        if t not in elsewhere:
            yield from table(t)
    if elsewhere:
        yield f"Only in report.html: {'; '.join(map(inline, shared_captions(elsewhere)))}.\n"


def shared_captions(tables):
    """The captions of some tables. Those that differ only in the place in front, as in "H200, GPU: targets", are one."""
    same = {}
    for t in tables:
        same.setdefault(t.caption.partition(": ")[2] or t.caption, []).append(t.caption)
    return [captions[0] if len(captions) == 1 else
            f"{what} ({'; '.join(caption.partition(': ')[0] for caption in captions)})" for what, captions in same.items()]


def document(title, top, sections, provenance, left_out, glossary=(), remark=""):
    yield f"# {title}\n"
    yield from (f"- **{question}** {inline(sentence)}" if question else f"- {plain(sentence)}"
                for question, sentence in top)
    yield ""
    own, others = page.own_and_others(sections)
    for s in own:
        yield from section(s, left_out)
    terms = page.used_terms(sections)
    if terms:
        yield "## Terms\n"
        yield from (f"- **{term}**: {inline(phrases.TERMS[term])}" for term in terms)
        yield ""
        for t in glossary:
            yield from table(t)
    for s in others:
        yield from section(s, left_out)
    if remark:
        yield plain(remark) + "\n"
    yield "## Machines\n"
    for t in provenance:
        yield from table(t)


def text(title, top, sections, provenance, glossary=(), remark=""):
    """The report with at most LIMIT characters: if necessary the longest tables are left out, folded ones first, and
    finally the end is cut off. `remark` follows the sections."""
    every = (t for s in sections for t in s.tables)
    tables = sorted((t.folded, len("\n".join(table(t))) + 1, i, t) for i, t in enumerate(every) if not t.page_only)
    left_out = []
    while True:
        written = "\n".join(document(title, top, sections, provenance, left_out, glossary, remark)) + "\n"
        if len(written) <= LIMIT:
            return written
        if not tables:
            end = written.rindex("\n", 0, LIMIT - 100)
            return written[:end] + "\n\nThe rest is in report.html.\n"
        saved = 0  # an upper estimate; writing the document again for every table would take long
        while tables and saved < len(written) - LIMIT:
            _, length, _, longest = tables.pop()
            saved += length
            left_out.append(longest)
