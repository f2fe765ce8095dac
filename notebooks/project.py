"""What a reader of a report needs to use samesum: its address, how to install it, and a command for own data."""

import re

import results

# In Python an exact sum, and one in a fixed order; an exact sum in SQL.
CALL, IN_A_FIXED_ORDER, IN_SQL = "samesum.sum(x)", 'samesum.sum(x, method="tree")', "exact_sum(x)"
# The installed tool has these commands.
OWN = "samesum compare FILE --json >results.jsonl && samesum report ."


def citation(name):
    """The values of a field of CITATION.cff."""
    text = (results.ROOT / "CITATION.cff").read_text(encoding="utf-8")
    return [value.strip('"') for value in re.findall(rf"^[ -]*{name}: (.+)$", text, re.M)]


def use():
    """Pairs: what a reader wants, and the address or the command. CITATION.cff has the address, if there is a public one."""
    install, own = "Install the Python package and the tool", ("Errors and speeds on your own data", OWN)
    for address in citation("repository-code"):
        return [("Source", address), (install, f"pip install git+{address}"), own]
    return [(f"{install}, in the source folder", "pip install ."), own]
