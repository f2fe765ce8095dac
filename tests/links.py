"""Checks the links in the Markdown files and notebooks of the repository: links.py ROOT

A relative link or image must lead to a file that git has or would add, "#…" to a heading of a Markdown file by
GitHub's rules, and README.md must have at most 200 lines. Prints each violation with its file and line, and exits with
1 if there is one; 77 without git. Needs no network.
"""

import functools
import json
import pathlib
import posixpath
import re
import subprocess
import sys
import urllib.parse

LONGEST_README = 200
ROOT = pathlib.Path(sys.argv[1])
LINK = re.compile(r"""\]\(\s*<?([^)\s>]+)|^\s*\[[^\]]+\]:\s*(\S+)|(?:src|href)=["']([^"']+)""")


def list_files():
    try:
        done = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                              stdout=subprocess.PIPE, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        print("links: not checked: this is no git repository")
        sys.exit(77)
    return {name for name in done.stdout.split("\0") if name and (ROOT / name).exists()}


def prose(text):
    """(line number, line) outside of fenced code."""
    fence = None
    for number, line in enumerate(text.split("\n"), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if fence is None and not mark:
            yield number, line
        elif fence is None:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line.strip(" `~"):
            fence = None


@functools.cache
def anchors(name):
    """The fragments of a Markdown file's headings: letters, digits, _ and - of their text, blanks as -, in lower
    case; -1, -2, … after those that occur again."""
    found, seen = set(), {}
    for _, line in prose((ROOT / name).read_text(encoding="utf-8")):
        found.update(re.findall(r"""<\w[^>]*\s(?:id|name)=["']([^"']+)""", line))
        heading = re.match(r" {0,3}#{1,6}\s+(.*?)\s*#*\s*$", line)
        if heading:
            text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)|<[^>]*>", r"\1", heading[1])
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            count = seen[slug] = seen.get(slug, -1) + 1
            found.add(f"{slug}-{count}" if count else slug)
    return found


def texts(name):
    """(place, text) of a Markdown file, or of each Markdown cell of a notebook."""
    text = (ROOT / name).read_text(encoding="utf-8")
    if name.endswith(".md"):
        return [(name, text)]
    return [(f"{name}: cell {i}", "".join(cell["source"])) for i, cell in enumerate(json.loads(text)["cells"], 1)
            if cell["cell_type"] == "markdown"]


def violation(name, target, files):
    """Why a link from that file is broken; None if it is not."""
    path, _, fragment = map(urllib.parse.unquote, target.partition("#"))
    if path.startswith("/"):
        path = path.lstrip("/")  # GitHub starts at the root of the repository
    else:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
    if path not in files and path != "." and not any(f.startswith(path.rstrip("/") + "/") for f in files):
        return "no such file"
    if fragment and path.endswith(".md") and fragment not in anchors(path):
        return f"{path} has no such heading"
    return None


def main():
    files, links, broken = list_files(), 0, []
    for name in sorted(f for f in files if f.endswith((".md", ".ipynb"))):
        for place, text in texts(name):
            for number, line in prose(text):
                for match in LINK.finditer(re.sub(r"(`+).*?\1", "", line)):
                    target = next(filter(None, match.groups()))
                    if re.match(r"[a-zA-Z][\w+.-]*:|//", target):
                        continue
                    links += 1
                    if why := violation(name, target, files):
                        broken.append(f"{place}:{number}: {target}: {why}")
    lines = len((ROOT / "README.md").read_text(encoding="utf-8").splitlines())
    if lines > LONGEST_README:
        broken.append(f"README.md:{lines}: more than {LONGEST_README} lines")
    print(*broken, f"{links} links, {len(broken)} violations", sep="\n")
    sys.exit(1 if broken else 0)


main()
