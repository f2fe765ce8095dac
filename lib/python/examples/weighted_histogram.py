"""A weighted histogram that the threads of a CPU fill at the same time, in Numba.

Prints how many results 20 runs gave, with cells and with a histogram of floats for each thread. Needs Numba.
"""

import numba
import numpy as np

import samesum
import samesum.numba


@numba.njit(parallel=True)
def fill(cells, bins, weights):
    for k in numba.prange(len(bins)):
        samesum.numba.atomic_add(cells, bins[k], weights[k])


def histogram(bins, weights, count):
    cells = samesum.cells(count, "float32", grid=-30)
    fill(samesum.numba.cells(cells), bins, weights)
    return cells.finish()


@numba.njit(parallel=True)
def float_histogram(bins, weights, count, threads):
    parts = np.zeros((threads, count), np.float32)
    for t in numba.prange(threads):
        for k in range(t, len(bins), threads):
            parts[t, bins[k]] += weights[k]
    return parts.sum(axis=0)


def main(runs=20):
    random = np.random.default_rng(1)
    bins, weights = random.integers(0, 50, 20_000), random.random(20_000, np.float32)
    found = {histogram(bins, weights, 50).tobytes() for _ in range(runs)}
    of_floats = {float_histogram(bins, weights, 50, 1 + t).tobytes() for t in range(runs)}
    print(f"1 to {runs} threads: floats gave {len(of_floats)} results; {runs} runs: cells {len(found)}")
    return len(found), len(of_floats), histogram(bins, weights, 50)


if __name__ == "__main__":
    main()
