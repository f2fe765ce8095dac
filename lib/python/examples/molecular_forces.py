"""Forces between particles, added by pairs in any order: order-free cells beside sums of floats.

Prints how many results 20 orders of the pairs gave. Needs NumPy.
"""

import numpy as np

import samesum


def forces(position, i, j):
    """Returns the force on each particle: that of pair k acts on i[k], and its opposite on j[k]."""
    d = position[i] - position[j]
    r2 = d[:, 0] * d[:, 0] + d[:, 1] * d[:, 1] + d[:, 2] * d[:, 2]
    force = d / (r2 * r2)[:, None]
    total = samesum.cells(position.shape, "float64", like=position, grid=-48)
    total.add(i, force)
    total.add(j, -force)
    return total.finish(), force


def float_forces(position, i, j, force):
    total = np.zeros_like(position)
    np.add.at(total, i, force)
    np.add.at(total, j, -force)
    return total


def main(orders=20):
    random = np.random.default_rng(1)
    position = random.random((40, 3))
    i, j = np.triu_indices(len(position), 1)
    found, of_floats = set(), set()
    for _ in range(orders):
        order = random.permutation(len(i))
        total, force = forces(position, i[order], j[order])
        found.add(total.tobytes())
        of_floats.add(float_forces(position, i[order], j[order], force).tobytes())
    print(f"{orders} orders of the pairs: floats gave {len(of_floats)} results, cells {len(found)}")
    return len(found), len(of_floats), total


if __name__ == "__main__":
    main()
