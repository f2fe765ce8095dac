"""Cells: order-free sums in the memory of an array library, to which kernels of other languages may add.

`samesum.cells` makes them, and `samesum.triton`, `samesum.numba` and `samesum.warp` add to them.
"""
