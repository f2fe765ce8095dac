"""Sums 2 GiB with Dask in six chunkings, by 1 to 4 workers, threads and processes, and counts the bit patterns.

    python tests/python/large_dask.py [FOLDER FOR 2 GiB]

Takes minutes, so pytest does not run it. dask.array.sum is the peer. Times include the start of processes.
"""

from __future__ import annotations

import pathlib
import sys
import tempfile
import time

import dask.array as da
import numpy as np

import samesum
import samesum.dask

N = 1 << 29
CHUNKS = [N // 2, 100_000_000, 1 << 25, 12_345_678, 10_000_000, 1 << 22]


def load(path: str, block_info=None):
    ((start, stop),) = block_info[None]["array-location"]
    return np.load(path, mmap_mode="r")[start:stop]


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        path = str(pathlib.Path(folder, "x.npy"))
        x = np.lib.format.open_memmap(path, "w+", np.float32, (N,))
        for start in range(0, N, 1 << 24):
            x[start : start + (1 << 24)] = np.random.default_rng(start).standard_normal(1 << 24, np.float32)
        methods = {
            "samesum exact": lambda a: samesum.dask.sum(a),
            "samesum tree/kahan": lambda a: samesum.dask.sum(a, method="tree/kahan"),
            "dask.array.sum": lambda a: a.sum(),
        }
        expected = {"samesum exact": samesum.sum(x), "samesum tree/kahan": samesum.sum(x, method="tree/kahan")}
        for scheduler in ("threads", "processes"):
            for name, method in methods.items():
                patterns, seconds = set(), []
                for chunks in CHUNKS:
                    for workers in (1, 2, 3, 4):
                        sizes = da.core.normalize_chunks(chunks, (N,))
                        a = da.map_blocks(load, path, chunks=sizes, dtype=np.float32, meta=np.empty(0, np.float32))
                        began = time.perf_counter()
                        found = method(a).compute(scheduler=scheduler, num_workers=workers)
                        seconds.append(time.perf_counter() - began)
                        patterns.add(np.float32(found).tobytes())
                assert name not in expected or patterns == {expected[name].tobytes()}
                print(
                    f"{scheduler:10} {name:20} {len(patterns)} bit patterns in {len(seconds)} runs; "
                    f"{min(seconds):.2f} to {max(seconds):.2f} s, median {sorted(seconds)[len(seconds) // 2]:.2f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
