"""The report as text, for pull requests."""


def cell(text):
    return str(text).replace("|", "\\|")


def table(t):
    lines = ["| " + " | ".join(map(cell, t.columns)) + " |",
             "|" + "".join(" --- |" if i < t.words else " ---: |" for i in range(len(t.columns)))]
    lines += ["| " + " | ".join(map(cell, row)) + " |" for row in t.rows]
    if t.note:
        lines += ["", t.note]
    if t.folded:
        return [f"<details><summary>{t.caption}</summary>", "", *lines, "", "</details>", ""]
    return [t.caption, "", *lines, ""]


def section(s):
    yield f"## {s.title}\n"
    if s.empty:
        yield f"No results yet. This makes them: `{s.command}`\n"
        return
    yield s.about + "\n"
    yield from (f"- {sentence}" for sentence in s.findings)
    yield ""
    for t in s.tables:
        if not t.page_only:
            yield from table(t)


def text(title, top, sections, provenance):
    yield f"# {title}\n"
    yield from (f"- **{question}** {sentence}" if question else f"- {sentence}" for question, sentence in top)
    yield ""
    for s in sections:
        yield from section(s)
    yield "## Machines\n"
    for t in provenance:
        yield from table(t)
