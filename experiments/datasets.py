"""Writes the data sets of the study into a folder, and prints their paths.

Generated data are computed from integers and powers of two only, so they have the same bits on every machine. All data
are checked against the SHA-256 of their elements. moon.npy is left out if the package de421 is not installed.
"""

import argparse
import hashlib
import importlib.metadata
import os
import pathlib
import sys

import numpy as np


def raw(seed, n):
    """Returns n 64-bit integers: SplitMix64 (Steele, Lea, Flood 2014) at n consecutive steps of its counter."""
    z = np.uint64(seed) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def uniform():
    """2^22 multiples of 2^-23 in [-1, 1)."""
    return ((raw(1, 1 << 22) >> np.uint64(40)).astype(np.int64) - (1 << 23)).astype("<f4") / np.float32(1 << 23)


def wide():
    """Magnitudes over 60 binades. For each x there is also -x, or -x with one bit changed; all are shuffled."""
    half = raw(2, 1 << 19)
    sign, exponent, fraction = half >> np.uint64(63), half % np.uint64(60) + np.uint64(97), half >> np.uint64(20)
    bits = (sign << np.uint64(31)) | (exponent << np.uint64(23)) | (fraction & np.uint64(0x7FFFF0))
    nudged = bits ^ np.uint64(1 << 31) | (raw(3, len(bits)) & np.uint64(8))
    both = np.concatenate([bits, nudged])
    return both[np.argsort(raw(4, len(both)), kind="stable")].astype("<u4").view("<f4")


def ones():
    """2^20 ones in bfloat16, as raw bits."""
    return np.full(1 << 20, 0x3F80, dtype="<u2")


def moon():
    """NASA JPL's ephemeris DE421 from the package de421: positions of the Moon, 1900 to 2050.

    Chebyshev coefficients of x, y and z in km, fitted to lunar laser ranging among other data. The shape is
    (27408, 3, 13).
    """
    files = importlib.metadata.files("de421")
    return np.load(next(f.locate() for f in files if f.name == "jpl-moon.npy"), allow_pickle=False)


# File, function, number of elements, SHA-256 of their bytes. notebooks/compare.py parses this list.
DATASETS = [
    ("uniform.f32", uniform, 4194304,
     "598d7934f41519c0fd99aa8e0296b4bfb193d9f35eb160512bf03b999768b08d"),
    ("wide.f32", wide, 1048576,
     "7bee624b15906449bd12eb3b2be3bf01166348ac479d13a561bf59359f90038c"),
    ("ones.bf16", ones, 1048576,
     "748c16b0577f2aa3050528b40afb3c7251238cb96cd750c3a79ca0ab0154497f"),
    ("moon.npy", moon, 1068912,
     "c5c02d0da657e48eb8370b732833f97a0dbeb0f2a404e749854b4f72b5e7ec08"),
]


def main():
    parser = argparse.ArgumentParser(prog="datasets.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="example:\n  datasets.py build/study/data")
    parser.add_argument("folder", metavar="FOLDER", type=pathlib.Path, help="created if it does not exist")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, make, n, expected in DATASETS:
        try:
            values = make()
        except importlib.metadata.PackageNotFoundError as missing:
            print(f"datasets.py: {name} is left out: the package {missing.name} is not installed", file=sys.stderr)
            continue
        digest = hashlib.sha256(values.tobytes()).hexdigest()
        if values.size != n or digest != expected:
            sys.exit(f"datasets.py: {name}: {values.size} elements with SHA-256 {digest}; expected {n} with {expected}")
        final, temporary = folder / name, folder / (name + ".part")
        with open(temporary, "wb") as out:
            np.save(out, values) if name.endswith(".npy") else out.write(values.tobytes())
        os.replace(temporary, final)
        print(final)


if __name__ == "__main__":
    main()
