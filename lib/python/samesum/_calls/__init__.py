"""From the arguments of a reduction to calls of the library: the method, the elements in its format, and the results.

The public functions, and all rooms that reduce arrays, end here; what lies below is `_core`.
"""
