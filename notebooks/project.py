"""What a reader of a report needs to use samesum: its address, how to install it, and a command for own data."""

import re

import results

# The installed tool has these commands.
OWN = "samesum compare FILE --json >results.jsonl && samesum report ."


def citation(name):
    """The values of a field of CITATION.cff."""
    text = (results.ROOT / "CITATION.cff").read_text(encoding="utf-8")
    return [value.strip('"') for value in re.findall(rf"^[ -]*{name}: (.+)$", text, re.M)]


def use():
    """Pairs: what a reader wants, and the address or the command. CITATION.cff has the address, if there is a public one."""
    address = "".join(citation("repository-code"))
    source = [("Source", address)] if address else []
    where = "" if address else ", in the source folder"
    return [*source, (f"Install the Python package and the tool{where}", f"pip install {address and 'git+'}{address or '.'}"),
            ("Errors and speeds on your own data", OWN)]
