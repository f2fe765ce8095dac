"""The report as text, for pull requests."""

import html


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


def section(s):
    yield f"## {plain(s.title)}\n"
    if s.empty:
        yield f"No results yet. This makes them: `{s.command}`\n"
        return
    yield plain(s.about) + "\n"
    yield from (f"- {plain(sentence)}" for sentence in s.findings)
    yield from (f"- *{plain(f.title)}*: {plain(f.reading)}" for f in s.figures if f.reading)
    yield ""
    for t in s.tables:
        if not t.page_only:
            yield from table(t)


def text(title, top, sections, provenance):
    yield f"# {title}\n"
    yield from (f"- **{question}** {plain(sentence)}" if question else f"- {plain(sentence)}"
                for question, sentence in top)
    yield ""
    for s in sections:
        yield from section(s)
    yield "## Machines\n"
    for t in provenance:
        yield from table(t)
