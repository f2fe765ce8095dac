"""Where the headers are that kernels of C++ include."""

from __future__ import annotations

import pathlib


def include_dirs() -> list[str]:
    """Returns the folders of the headers for kernels that NVRTC or nvcc compiles, such as `cupy.RawKernel`.

    The header samesum/states.cuh has the states of cells. NVRTC compiles it with these options:

    >>> import samesum
    >>> options = ("-std=c++20", "-default-device", "-device-int128", *(f"-I{d}" for d in samesum.include_dirs()))
    """
    package = pathlib.Path(__file__).resolve().parents[1]
    for folder in (package / "include", package.parents[1]):  # installed, and in the sources
        if (folder / "samesum" / "states.cuh").exists():
            return [str(folder)]
    raise FileNotFoundError(f"samesum: {package / 'include'} has no headers; install samesum again")
