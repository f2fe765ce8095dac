"""Writes the report as Markdown for a pull request."""

import dataclasses
import html
import re

import fragments
import page
import phrases
import project
import story

LIMIT = 40_000  # characters; a GitHub comment holds at most 65,536, and a reader fewer


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
    """Yields the lines of a section: the verdict, checks and failures, then what is folded. Tables in `left_out` and
    tables only for the page are named instead of shown."""
    yield f"## {plain(s.question)}\n"
    if s.verdict:
        yield f"**{inline(s.verdict)}**\n"
    if s.checks:
        yield " · ".join(f"{'✓' if c.holds else '✗'} {inline(c.badge)}" for c in s.checks) + "\n"
    if s.failures:
        yield f"**{phrases.plural(len(s.failures), 'failure')}:**\n"
        yield from (f"- {plain(failure)}" for failure in s.failures[:fragments.FEW])
        yield f"- and {len(s.failures) - fragments.FEW:,} more\n" if s.failures[fragments.FEW:] else ""
    shown, folded = s.tables[:s.open_tables], s.tables[s.open_tables:]
    elsewhere = [t for t in s.tables if t.page_only or t in left_out]
    for t in shown:
        if t not in elsewhere:
            yield from table(dataclasses.replace(t, folded=False))
    yield f"<details><summary>{summary(s.about)}</summary>\n"
    yield from (f"- {plain(sentence)}" for sentence in s.details)
    yield from (f"- {plain(c)}" for c in s.checks if not c.holds)
    yield from (f"- *{inline(f.title)}*: {inline(f.finding)}" for f in s.figures if f.finding)
    yield "\n</details>\n"
    for t in folded:
        if t not in elsewhere:
            yield from table(dataclasses.replace(t, folded=True))
    if elsewhere:
        yield f"Only in report.html: {'; '.join(map(inline, shared_captions(elsewhere)))}.\n"


def shared_captions(tables):
    """The captions of some tables. Those that differ only in the place in front, as in "H200, GPU: targets", are one."""
    same = {}
    for t in tables:
        same.setdefault(t.caption.partition(": ")[2] or t.caption, []).append(t.caption)
    return [captions[0] if len(captions) == 1 else
            f"{what} ({'; '.join(caption.partition(': ')[0] for caption in captions)})" for what, captions in same.items()]


def document(title, about, found, sections, provenance, left_out, glossary=(), remark=""):
    yield f"# {title}\n"
    own, others = page.own_and_others(sections)
    for s in own:
        yield from section(s, left_out)
    if about:
        yield plain(about) + "\n"
        yield from (f"- **{inline(c.number)} {inline(c.what)}.** {inline(c.text)}"
                    for c in story.cards(found)[:story.MOST])
        yield from (f"- **{inline(question)}** {inline(text)}" for question, text in story.answers(found))
        yield (f"- **What do I call?** `{project.CALL}`, which is exact, or `{project.IN_A_FIXED_ORDER}`; in SQL "
               f"`{project.IN_SQL}`")
        yield f"- **How do I run it on my own data?** `{project.OWN}`\n"
    for s in others:
        yield from section(s, left_out)
    if remark:
        yield plain(remark) + "\n"
    yield "## Use samesum\n"
    yield from (f"- {what}: {text if text.startswith('http') else f'`{text}`'}" for what, text in project.use())
    yield ""
    terms = page.used_terms(sections)
    if terms:
        yield "## Terms\n\n<details><summary>Definitions</summary>\n"
        yield from (f"- **{term}**: {inline(phrases.TERMS[term])}" for term in terms)
        yield "\n</details>\n"
        for t in glossary:
            yield from table(t)
    yield "## Machines\n"
    for t in provenance:
        yield from table(t)


def text(title, about, found, sections, provenance, glossary=(), remark=""):
    """The report with at most LIMIT characters: if necessary the longest tables are left out, folded ones first, and
    finally the end is cut off. `about` and the first screen of `found` come after the reader's own data, `remark` after
    the sections."""
    every = [(t, i >= s.open_tables) for s in sections for i, t in enumerate(s.tables)]
    tables = sorted((folded, len("\n".join(table(t))) + 1, i, t) for i, (t, folded) in enumerate(every)
                    if not t.page_only)
    left_out = []
    while True:
        written = "\n".join(document(title, about, found, sections, provenance, left_out, glossary, remark)) + "\n"
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
