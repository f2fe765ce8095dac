"""Keys of any type as numbers, and the public functions that reduce the values of equal keys or of runs of them.

`samesum` exports the functions; `_groups` numbers its rows here, and `_torch` adds by key.
"""
