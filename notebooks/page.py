"""Writes the report as one self-contained HTML file, with scripts, styles, pictures and data inside.

The first screen and the verdicts are plain HTML and SVG. The figures of the sections whose verdicts come first are
open, and all others are folded. The plots and their data are compressed, and page.js unpacks them when a
reader reaches them.
"""

import base64
import functools
import gzip
import importlib.resources
import pathlib
import re

import frontier
import headlines
import phrases
import prices
import project
import story
import style
from figure import script_json, svg
from fragments import definitions, escape, explained, more, summary, table

HERE = pathlib.Path(__file__).parent
MOST_DATA = 800_000  # characters of results files in the page


def packed(data):
    """Bytes as compressed text."""
    return base64.b64encode(gzip.compress(data, mtime=0)).decode()


def figure(f):
    """A figure with its caption, a computed sentence and one line on its terms; how to read it is folded."""
    caption = f'<figure id="{f.id}"><figcaption>{explained(f.title)}</figcaption>'
    text = (f"<p class=finding>{escape(f.finding)}</p>" if f.finding else "") + terms_line(f) + (
        f"<details class=reading><summary>How to read this figure</summary><p>{escape(f.description)}</p></details>"
        if f.description else "")
    if f.tiles:
        kind = '"gallery broad-tiles"' if f.broad_tiles else "gallery"
        return f"{caption}<div class={kind}>{''.join(map(tile, f.tiles))}</div>{text}</figure>"
    chosen = ", ".join(map(str, f.chosen()))
    return (f"{caption}<div class=live></div>\n<div class=static><p>{escape(chosen)}</p>{svg(f)}</div>{text}"
            f'<script type="application/gzip">{packed(script_json(f.plotly()).encode())}</script></figure>')


def terms_line(f):
    """One line on the terms of phrases.SHORT in the texts of a figure."""
    texts = " ".join([f.title, f.description, f.x_title, *f.y_titles.values()])
    used = [term for term in phrases.SHORT if re.search(rf"\b{term}s?\b", texts)]
    return f"<p class=line>{'; '.join(f'<b>{t}</b>: {escape(phrases.SHORT[t])}' for t in used)}.</p>" if used else ""


def tile(t):
    """A small picture whose title links to it; the page enlarges the one that its address names."""
    return (f'<div class=tile id="{t.id}"><a href="#{t.id}">{escape(t.title)}</a><span>{escape(t.text)}</span>'
            f"{t.picture}</div>")


# --- sections -----------------------------------------------------------------------------------------------------

def section(s):
    """A question, its verdict and badges, and the first figure and table of headlines.FIRST; the rest is folded."""
    is_open = s.id in headlines.FIRST
    first, others = s.figures[:1], s.figures[1:]
    shown, folded = s.tables[:s.open_tables], s.tables[s.open_tables:]
    parts = [*map(table, shown), *map(figure, first)]
    counts = [phrases.plural(len(some), what) for some, what in (
        (others if is_open else s.figures, "figure"), (folded if is_open else s.tables, "table"),
        (s.details, "finding")) if some]
    return "\n".join([f'<section id="{s.id}"><h2><a href="#{s.id}">{escape(s.question)}</a></h2>', summary(s),
                      *(parts if is_open else []),
                      f"<details class=more><summary>{', '.join([*counts, 'how it was measured'])}</summary>",
                      *([] if is_open else parts), more(s), *map(figure, others), *map(table, folded),
                      "</details></section>"])


def own_and_others(sections):
    """The section on the reader's own data, which is first, and the others."""
    return [s for s in sections if s.id == "own-data"], [s for s in sections if s.id != "own-data"]


def used_terms(sections):
    """The terms of all sections with results, each once, in the order of phrases.TERMS."""
    used = {term for s in sections if not s.empty for term in s.terms}
    return [term for term in phrases.TERMS if term in used]


# --- the first screen ---------------------------------------------------------------------------------------------

def card(c):
    picture = f"<div class=panels-of-card>{panels(c)}</div>" if c.panels else c.picture
    kind = '"card broad-card"' if c.panels else "card"
    return (f'<a class={kind} href="#{c.section}"><span><b>{escape(c.number)}</b> '
            f"{explained(c.what)}</span>{picture}<small>{escape(c.text)}</small></a>")


def panels(c):
    """The small pictures of a card, with their legend; the card names their device."""
    some = "".join(f"<div class=tile><span><strong>{escape(t.title)}</strong> {escape(t.text.partition(': ')[2])}</span>"
                   f"{t.picture}</div>" for t in c.panels)
    return f"<p class=legend>{c.picture}</p><div class=panels>{some}</div>"


def answer(question, text):
    return f"<div><dt>{escape(question)}</dt><dd>{explained(text)}</dd></div>"


def first_figure(places):
    """Error against speed, for the machine that a menu selects. The menu works without scripts."""
    if not places:
        return ""
    options = "".join(f"<option value={i}{' selected' if i == 0 else ''}>{escape(phrases.capitalised(at))}</option>"
                      for i, at in enumerate(places))
    rules = "".join(f".pick:has(option[value='{i}']:checked) .pick-{i}{{display:block}}" for i in range(len(places)))
    pictures = "".join(f"<div class='picked pick-{i}'><div class=broad>{frontier.picture(at, rows)}</div>"
                       f"<div class=slim>{frontier.picture(at, rows, frontier.NARROW)}</div><p class=finding>"
                       f"{explained(frontier.finding(at, rows))}</p></div>"
                       for i, (at, rows) in enumerate(places.items()))
    menu = f"<label>Machine <select autocomplete=off>{options}</select></label>"
    return (f"<figure id=frontier class=pick><figcaption>Error against speed: up to {frontier.MOST} methods for a "
            f"million fp32 numbers</figcaption><style>{rules}</style><div class=menus>{menu}</div>{pictures}<p "
            f"class=line><b>frontier</b>: {escape(phrases.SHORT['frontier'])}; <b>promise</b>: when the bits stay the "
            "same, from none to any order of the elements.</p></figure>")


def opening(found, about):
    """The first screen: what was measured, cards, answers and the frontier. In a narrow window the card with panels is
    below the answers. The slowest exact calls are folded."""
    cards, answers = story.cards(found)[:story.MOST], story.answers(found)
    code = (f"<div><dt>What do I call, and on my own files?</dt><dd><code>{escape(project.CALL)}</code>, "
            f"exact (in SQL <code>{escape(project.IN_SQL)}</code>); or "
            f"<code>{escape(project.IN_A_FIXED_ORDER)}</code></dd>"
            f"<dd><code>{escape(project.OWN)}</code></dd></div>")
    return (f"<p class=about>{explained(about)}</p><div class=first>"
            + (f"<div class=cards>{''.join(map(card, cards))}</div>" if cards else "")
            + f"<dl class=answers>{''.join(answer(*pair) for pair in answers)}{code}</dl></div>"
            + first_figure(frontier.measured(found))
            + "".join("<details><summary>Where the price is zero, where it is not, and the worst</summary>"
                      f"{text}</details>"
                      for text in ["".join(f"<p class=finding>{explained(s)}</p>" for s in prices.sentences(found))]
                      if text))


def use():
    """How a reader gets samesum and uses it; an address is a link."""
    def shown(text):
        return f'<a href="{escape(text)}">{escape(text)}</a>' if text.startswith("http") else f"<code>{escape(text)}</code>"
    pairs = "".join(f"<div><dt>{escape(what)}</dt><dd>{shown(text)}</dd></div>" for what, text in project.use())
    return f"<section id=use><h2>Use samesum</h2><dl class=answers>{pairs}</dl></section>"


def downloads(sources):
    """Yields links to the compressed results files, which the page contains as long as they are at most MOST_DATA; the
    names of the others."""
    room = MOST_DATA
    for source in sources:
        name, data = phrases.printable(source.path.name), packed(source.path.read_bytes())
        about = f"({escape(source.machine)}, {phrases.plural(len(source.rows), 'row')})"
        if len(data) > room:
            yield f"<li>{escape(name)} {about}, only in its folder</li>"
            continue
        room -= len(data)
        yield (f'<li><a download="{escape(name)}.gz" href="data:application/gzip;base64,{data}">{escape(name)}.gz</a> '
               f"{about}</li>")


def on_dark():
    """CSS that replaces the colours of style.ON_DARK on dark screens. page.js reads the variables."""
    names = {colour: f"--{colour.removeprefix('#')}" for colour in style.ON_DARK}
    return ("@media screen and (prefers-color-scheme: dark) {\n  :root { "
            + "; ".join(f"{names[c]}: {other}" for c, other in style.ON_DARK.items()) + " }\n"
            + "".join(f'  [fill="{c}"] {{ fill: var({name}) }}\n  [stroke="{c}"] {{ stroke: var({name}) }}\n'
                      f'  .legend [style="color:{c}"] {{ color: var({name}) !important }}\n'
                      for c, name in names.items())
            + "}\n")


@functools.cache
def plotly():
    """The script of plotly, from its wheel, compressed."""
    return packed(importlib.resources.files("plotly").joinpath("package_data/plotly.min.js").read_bytes())


def page(title, about, found, sections, provenance, sources, glossary=(), remark=""):
    """The whole page. `about` says what was measured; `found` has the sources by question, for the first screen, and is
    empty if all data are the reader's own. `glossary` and `provenance` hold tables. `remark` follows the sections."""
    links = " ".join(f'<a href="#{s.id}">{escape(s.title)}</a>' for s in sections)
    terms = used_terms(sections)
    own, others = own_and_others(sections)
    failed = [failure for s in sections for failure in s.failures]
    return "\n".join([
        '<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>'
        '<meta name=viewport content="width=device-width, initial-scale=1">',
        f'<meta name=color-scheme content="light dark"><link rel=icon href="data:,"><title>{escape(title)}</title>',
        f"<style>{(HERE / 'page.css').read_text()}{on_dark()}</style></head><body><main>",
        f"<h1>{escape(title)}</h1>",
        f"<p class='failed banner'>{phrases.plural(len(failed), 'check')} failed: see the red boxes below.</p>"
        if failed else "",
        *map(section, own), opening(found, about) if found else "",
        f"<nav>{links} <a href=#use>Use samesum</a> <a href=#machines>Machines</a> <a href=#data>Raw data</a></nav>",
        *map(section, others), f"<p>{escape(remark)}</p>" if remark else "",
        use(),
        "<section id=terms><h2>Terms</h2><details><summary>Definitions</summary>"
        f"{definitions(terms)}{''.join(map(table, glossary))}</details></section>" if terms else "",
        "<section id=machines><h2>Machines</h2>", *map(table, provenance), "</section>",
        "<section id=data><h2>Raw data</h2><details><summary>The results files from which this page was made</summary>"
        "<p>One JSON object per line, compressed with gzip.</p><ul>",
        *downloads(sources), "</ul></details></section></main>",
        f"<script type='application/gzip' id=plotly>{plotly()}</script>" if any(s.figures for s in sections) else "",
        f"<script>{(HERE / 'page.js').read_text()}</script></body></html>\n"])
