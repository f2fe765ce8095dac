"""Reductions in parts: `fsum`, exact sums and partials that are merged, and reductions over connected ranks.

`samesum` exports the states, which samesum.dask merges; samesum.mpi and samesum.torch.distributed connect ranks.
"""
