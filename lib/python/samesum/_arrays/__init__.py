"""Arrays of NumPy, PyTorch, CuPy and all others: how each is read, and which of its elements take part in a call.

`_calls` and all rooms above it read their arguments here.
"""
