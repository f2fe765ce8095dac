"""Writes the report as one self-contained HTML file, with scripts, styles, pictures and data inside."""

import base64
import functools
import gzip
import html
import importlib.resources
import pathlib
import re

import phrases
from figure import script_json, svg

HERE = pathlib.Path(__file__).parent
UNFOLDED = 8  # findings of a section that are shown at first


def escape(text):
    return html.escape(str(text))


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
    return re.sub("([/_])", r"\1<wbr>", escape(text)) if narrow else escape(text)


def state(cell):
    return {"pass": " data-is=pass", "MISS": " data-is=miss"}.get(cell, "")


def figure(f):
    text = "".join(f"<p class={kind}>{escape(text)}</p>"
                   for kind, text in (("description", f.description), ("finding", f.finding)) if text)
    caption = f'<figure id="{f.id}"><figcaption>{escape(f.title)}</figcaption>'
    if f.picture:
        return f"{caption}<div class=picture>{f.picture}</div>{text}</figure>"
    chosen = ", ".join(map(str, f.chosen()))
    return (f"{caption}<div class=live></div>\n<div class=static><p>{escape(chosen)}</p>{svg(f)}</div>{text}"
            f'<script type="application/json">{script_json(f.plotly())}</script></figure>')


def findings(s, terms=()):
    """What was measured, definitions of `terms`, and the findings."""
    if s.empty:
        return f"<p>No results yet. To make them, run <code>{escape(s.command)}</code></p>"
    first, more = s.findings[:UNFOLDED], s.findings[UNFOLDED:]
    return (f"<p>{escape(s.about)}</p>" + definitions(terms) + (html_list(first) if first else "")
            + (f"<details><summary>{len(more)} more</summary>{html_list(more)}</details>" if more else ""))


def definitions(terms):
    items = [f"<li><b>{escape(term)}</b>: {escape(phrases.TERMS[term])}</li>" for term in terms]
    return "<ul class=terms>\n" + "\n".join(items) + "\n</ul>" if items else ""


def section(s, shown):
    """`shown` is the figure at the top of the page, which is not repeated."""
    return "\n".join([f'<section id="{s.id}"><h2>{escape(s.title)}</h2>', findings(s)]
                     + [f'<p>At the top: <a href="#{f.id}">{escape(f.title)}</a></p>' if f is shown else figure(f)
                        for f in s.figures]
                     + [table(t) for t in s.tables] + ["</section>"])


def download(source):
    """A link to the compressed results file, which the page contains."""
    data = base64.b64encode(gzip.compress(source.path.read_bytes(), mtime=0)).decode()
    name = phrases.printable(source.path.name)
    return (f'<li><a download="{escape(name)}.gz" href="data:application/gzip;base64,{data}">{escape(name)}.gz</a> '
            f"({escape(source.machine)}, {phrases.plural(len(source.rows), 'row')})</li>")


@functools.cache
def plotly():
    """The script of plotly, from its wheel."""
    return importlib.resources.files("plotly").joinpath("package_data/plotly.min.js").read_text()


def page(title, top, first, sections, provenance, sources, glossary=(), remark=""):
    """The whole page. `top` holds the pairs (question, finding) of the first screen, `first` its figure. `glossary`
    holds tables. `remark` follows the sections."""
    links = " ".join(f'<a href="#{s.id}">{escape(s.title)}</a>' for s in sections)
    terms = used_terms(sections)
    own, others = own_and_others(sections)
    return "\n".join([
        '<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>'
        '<meta name=viewport content="width=device-width, initial-scale=1">',
        f'<meta name=color-scheme content="light dark"><link rel=icon href="data:,"><title>{escape(title)}</title>',
        f"<style>{(HERE / 'page.css').read_text()}</style></head><body><main>",
        f"<h1>{escape(title)}</h1>", "<ul class=top>",
        *(f"<li>{f'<b>{escape(question)}</b> ' if question else ''}{escape(sentence)}</li>"
          for question, sentence in top),
        "</ul>", figure(first) if first else "",
        f'<nav>{links} <a href="#machines">Machines</a> <a href="#data">Raw data</a></nav>',
        "<p>Click a column head to sort a table.</p>" if any(s.tables for s in sections) else "",
        *[section(s, first) for s in own],
        f"<section id=terms><h2>Terms</h2>{definitions(terms)}{''.join(map(table, glossary))}</section>" if terms else "",
        *[section(s, first) for s in others], f"<p>{escape(remark)}</p>" if remark else "",
        '<section id=machines><h2>Machines</h2><p>Machine, build and settings of each results file.</p>',
        *map(table, provenance), "</section>",
        "<section id=data><h2>Raw data</h2><p>The results files from which this page was made: one JSON object per "
        "line, compressed with gzip.</p><ul>",
        *map(download, sources), "</ul></section></main>",
        f"<script>{plotly()}</script>", f"<script>{(HERE / 'page.js').read_text()}</script></body></html>\n"])


def own_and_others(sections):
    """The section on the reader's own data, which is before the terms, and the others."""
    return [s for s in sections if s.id == "own-data"], [s for s in sections if s.id != "own-data"]


def used_terms(sections):
    """The terms of all sections with results, each once, in the order of phrases.TERMS."""
    used = {term for s in sections if not s.empty for term in s.terms}
    return [term for term in phrases.TERMS if term in used]
