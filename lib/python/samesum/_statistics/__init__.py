"""Weighted sums, means and variances, covariances, correlations and lines: exact sums, each result rounded once.

The functions of `samesum` with weights or with pairs call it, as do groups, and samesum.dask for its chunks.
"""
