"""The public functions that reduce or scan axes: their names, parameters and docstrings, and scans and windows.

`samesum` exports them; samesum.dask, samesum.jax and groups call them, and `_torch` the scans.
"""
