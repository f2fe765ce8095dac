"""Columns and frames of pandas, polars, pyarrow and Arrow: their elements, their nulls, and results in their types.

`_arrays` reads lists and objects through it, `_calls` reduces frames by it, and `_groups` reads keys and values.
"""
