"""The report as one HTML file that needs nothing else: scripts, styles, pictures and data are inside."""

import base64
import functools
import gzip
import html
import importlib.resources
import pathlib
import re

import words
from figure import script_json, svg

HERE = pathlib.Path(__file__).parent
UNFOLDED = 8  # findings of a section, before the others


def e(text):
    return html.escape(str(text))


def listed(sentences):
    return "<ul>\n" + "\n".join(f"<li>{e(s)}</li>" for s in sentences) + "\n</ul>"


def table(t):
    def row(cells, tag, more=""):
        return "<tr>" + "".join(f'<{tag}{more}{"" if i < t.words else " class=n"}{state(c)}>'
                                f'{cell(c, narrow=i == 0 or tag == "th")}</{tag}>'
                                for i, c in enumerate(cells)) + "</tr>"

    body = "\n".join(row(cells, "td") for cells in t.rows)
    grid = (f"<div><p class=hint>More to the right: scroll the table.</p>"
            f'<div class=wide tabindex=0 role=region aria-label="{e(t.caption)}"><table><thead>'
            f'{row(t.columns, "th", " scope=col")}</thead><tbody>\n{body}\n</tbody></table></div></div>')
    if t.note:
        grid = f"<p class=note>{e(t.note)}</p>{grid}"
    if t.folded:
        return f"<details><summary>{e(t.caption)}</summary>{grid}</details>"
    return f"<p class=caption>{e(t.caption)}</p>{grid}"


def cell(text, narrow):
    """Names of methods may be broken where they are wider than their column should be."""
    return re.sub("([/_])", r"\1<wbr>", e(text)) if narrow else e(text)


def state(cell):
    return {"pass": " data-is=pass", "MISS": " data-is=miss"}.get(cell, "")


def figure(f):
    note = "".join(f"<p class={kind}>{e(text)}</p>" for kind, text in (("reading", f.reading), ("note", f.note))
                   if text)
    caption = f'<figure id="{f.id}"><figcaption>{e(f.title)}</figcaption>'
    if f.picture:
        return f"{caption}<div class=picture>{f.picture}</div>{note}</figure>"
    chosen = ", ".join(map(str, f.chosen()))
    return (f"{caption}<div class=live></div>\n<div class=static><p>{e(chosen)}</p>{svg(f)}</div>{note}"
            f'<script type="application/json">{script_json(f.plotly())}</script></figure>')


def findings(s):
    if s.empty:
        return f"<p>No results yet. This makes them: <code>{e(s.command)}</code></p>"
    first, more = s.findings[:UNFOLDED], s.findings[UNFOLDED:]
    return (f"<p>{e(s.about)}</p>" + (listed(first) if first else "")
            + (f"<details><summary>{len(more)} more</summary>{listed(more)}</details>" if more else ""))


def section(s, shown):
    """`shown` is a figure that the page has already."""
    return "\n".join([f'<section id="{s.id}"><h2>{e(s.title)}</h2>', findings(s)]
                     + [f'<p><a href="#{f.id}">{e(f.title)}</a>: at the top.</p>' if f is shown else figure(f)
                        for f in s.figures]
                     + [table(t) for t in s.tables] + ["</section>"])


def download(source):
    """The file itself, compressed, as a link."""
    data = base64.b64encode(gzip.compress(source.path.read_bytes(), mtime=0)).decode()
    name = source.path.name
    return (f'<li><a download="{e(name)}.gz" href="data:application/gzip;base64,{data}">{e(name)}.gz</a> '
            f"({e(source.machine)}, {words.plural(len(source.rows), 'row')})</li>")


@functools.cache
def plotly():
    """plotly's script, as its wheel has it."""
    return importlib.resources.files("plotly").joinpath("package_data/plotly.min.js").read_text()


def page(title, top, first, sections, provenance, sources):
    """On the first screen: `top`, the most important findings, each with the question that it answers, and the first
    figure."""
    links = " ".join(f'<a href="#{s.id}">{e(s.title)}</a>' for s in sections)
    return "\n".join([
        '<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>'
        '<meta name=viewport content="width=device-width, initial-scale=1">',
        f'<meta name=color-scheme content="light dark"><link rel=icon href="data:,"><title>{e(title)}</title>',
        f"<style>{(HERE / 'page.css').read_text()}</style></head><body><main>",
        f"<h1>{e(title)}</h1>", "<ul class=top>",
        *(f"<li>{f'<b>{e(question)}</b> ' if question else ''}{e(sentence)}</li>" for question, sentence in top),
        "</ul>", figure(first) if first else "",
        f'<nav>{links} <a href="#machines">Machines</a> <a href="#data">Raw data</a></nav>',
        *[section(s, first) for s in sections],
        '<section id=machines><h2>Machines</h2><p>What was measured where, and with what.</p>', *map(table, provenance),
        "</section>",
        "<section id=data><h2>Raw data</h2><p>One JSON object a line, compressed; "
        "all of this page is made from them.</p><ul>",
        *map(download, sources), "</ul></section></main>",
        f"<script>{plotly()}</script>", f"<script>{(HERE / 'page.js').read_text()}</script></body></html>\n"])
