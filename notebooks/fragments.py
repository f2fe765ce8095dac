"""HTML of a table, and of the words of a section: what the page and a notebook both show."""

import html
import re

import phrases

FEW = 12  # failures that are shown at first
EXPLAINED = re.compile("|".join(rf"\b{word}s?\b" for word in phrases.SHORT))


def escape(text):
    return html.escape(str(text))


def explained(text):
    """The escaped text, with an explanation on hover where a term of phrases.SHORT first occurs."""
    seen = set()

    def mark(found):
        word = found[0] if found[0] in phrases.SHORT else found[0].removesuffix("s")
        if word in seen:
            return found[0]
        seen.add(word)
        return f'<abbr title="{escape(phrases.SHORT[word])}">{found[0]}</abbr>'
    return EXPLAINED.sub(mark, escape(text))


def html_list(sentences):
    return "<ul>\n" + "\n".join(f"<li>{escape(s)}</li>" for s in sentences) + "\n</ul>"


def table(t):
    def row(cells, tag, more=""):
        return "<tr>" + "".join(f'<{tag}{more}{"" if i < t.text_columns else " class=n"}{state(c)}>'
                                f'{cell(c, narrow=i == 0 or tag == "th")}</{tag}>'
                                for i, c in enumerate(cells)) + "</tr>"

    body = "\n".join(row(cells, "td") for cells in t.rows)
    grid = (f"<div><p class=hint>Scroll the table to see more columns.</p>"
            f'<div class=wide tabindex=0 role=region aria-label="{escape(t.caption)}"><table><thead>'
            f'{row(t.columns, "th", " scope=col")}</thead><tbody>\n{body}\n</tbody></table></div></div>')
    if t.note:
        grid = f"<p class=note>{escape(t.note)}</p>{grid}"
    if t.folded:
        return f"<details><summary>{escape(t.caption)}</summary>{grid}</details>"
    return f"<p class=caption>{escape(t.caption)}</p>{grid}"


def cell(text, narrow):
    """Allows line breaks in method names in narrow cells."""
    return re.sub(r"([/_])(?=\w\w)", r"\1<wbr>", escape(text)) if narrow else escape(text)


def state(cell):
    return {"pass": " data-is=pass", "MISS": " data-is=miss"}.get(cell, "")


def summary(s):
    """The verdict, a badge per check, and failures."""
    if s.empty:
        return f"<p>No results yet. To make them, run <code>{escape(s.command)}</code></p>"
    return ((f"<p class=verdict>{explained(s.verdict)}</p>" if s.verdict else "")
            + (f"<p class=badges>{' '.join(map(badge, s.checks))}</p>" if s.checks else "") + failures(s.failures))


def badge(check):
    kind, mark = ("pass", "✓") if check.holds else ("miss", "✗")
    return f'<span class="badge {kind}" title="{escape(check)}">{mark} {escape(check.badge)}</span>'


def failures(some):
    if not some:
        return ""
    more = f"<details><summary>{len(some) - FEW} more</summary>{html_list(some[FEW:])}</details>" if some[FEW:] else ""
    return (f"<div class=failed role=alert><b>{phrases.plural(len(some), 'failure')}</b>{html_list(some[:FEW])}{more}"
            "</div>")


def more(s, terms=()):
    """What a section folds away: what was measured, definitions of `terms`, and findings."""
    if s.empty:
        return ""
    texts = s.checks + s.details
    terms = f"<details><summary>Terms</summary>{definitions(terms)}</details>" if terms else ""
    return (f"<p>{escape(s.about)} <code>{escape(s.command)}</code></p>{terms}"
            + (html_list(texts) if texts else ""))


def definitions(terms):
    items = [f"<li><b>{escape(term)}</b>: {escape(phrases.TERMS[term])}</li>" for term in terms]
    return "<ul class=terms>\n" + "\n".join(items) + "\n</ul>" if items else ""
