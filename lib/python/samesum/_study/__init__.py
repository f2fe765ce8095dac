"""Methods by name, bounds on their errors, the choice between them, and their comparison on given data.

`samesum` exports it; nothing else calls it.
"""
