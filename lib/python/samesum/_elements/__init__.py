"""What the elements of an array are: their formats, axes and layouts, and the functions that a library of arrays has.

Every other room is built on this one, which imports none of them.
"""
