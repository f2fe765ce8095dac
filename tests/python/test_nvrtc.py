"""Kernels of C++ that add to cells: NVRTC compiles them without a GPU, and CuPy runs them on one."""

from __future__ import annotations

import ctypes
import importlib.util
import pathlib

import pytest

np = pytest.importorskip("numpy")

import samesum  # noqa: E402

SOURCE = r"""
#include <samesum/states.cuh>

template <class T>
__device__ void exact(samesum::ExactState<T>* cells, const long long* i, const T* x, int n, int) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k < n) cells[i[k]].atomic_add(x[k]);
}
template <class T>
__device__ void grid(samesum::FixedPointState* cells, const long long* i, const T* x, int n, int g) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k < n) cells[i[k]].atomic_add(x[k], g);
}
template <class State> __device__ void block(State* cell, const float* x, int n, auto add) {
  State sum{};
  for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < n; k += gridDim.x * blockDim.x) add(sum, x[k]);
  sum = samesum::gpu::block_reduce(sum);
  if (threadIdx.x == 0) cell->atomic_merge(sum);
}
#define KERNELS(name, T)                                                                         \
  extern "C" __global__ void exact_##name(samesum::ExactState<T>* cells, const long long* i,     \
                                          const T* x, int n, int g) {                            \
    exact(cells, i, x, n, g);                                                                    \
  }                                                                                              \
  extern "C" __global__ void grid_##name(samesum::FixedPointState* cells, const long long* i,    \
                                         const T* x, int n, int g) {                             \
    grid(cells, i, x, n, g);                                                                     \
  }
KERNELS(float16, samesum::fp16)
KERNELS(bfloat16, samesum::bf16)
KERNELS(float32, float)
KERNELS(float64, double)
extern "C" __global__ void block_exact(samesum::ExactState<float>* cell, const float* x, int n, int) {
  block(cell, x, n, [](auto& state, float y) { state.add(y); });
}
extern "C" __global__ void block_grid(samesum::FixedPointState* cell, const float* x, int n, int g) {
  block(cell, x, n, [g](auto& state, float y) { state.add(y, g); });
}
extern "C" __global__ void finish(const samesum::ExactState<double>* c, const samesum::FixedPointState* d,
                                  float* out) {
  out[0] = c->finish<float>();
  out[1] = d->finish<float>(-20, ~0ull);
}
"""
OPTIONS = ("-std=c++20", "-default-device", "-device-int128", *(f"-I{d}" for d in samesum.include_dirs()))


def nvrtc():
    for package in ("nvidia.cu13", "nvidia.cuda_nvrtc"):
        try:
            found = importlib.util.find_spec(package)
        except ImportError:
            continue
        for folder in found.submodule_search_locations if found else ():
            for file in pathlib.Path(folder).glob("lib/libnvrtc.so.*"):
                return ctypes.CDLL(str(file))
    pytest.skip("NVRTC is absent; run 'pip install nvidia-cuda-nvrtc && python -m pytest tests/python/test_nvrtc.py'")


def compiled(options, source=SOURCE):
    """Returns whether NVRTC compiles the kernels, and what it prints."""
    library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    assert library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None) == 0
    texts = (ctypes.c_char_p * len(options))(*map(str.encode, options))
    error = library.nvrtcCompileProgram(program, len(options), texts)
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return error == 0, log.value.decode()


def test_nvrtc_compiles_the_states_without_the_standard_library():
    assert compiled((*OPTIONS, "-arch=sm_80")) == (True, "")


def test_nvrtc_compiles_the_example_for_cupy():
    example = (pathlib.Path(__file__).parents[2] / "lib/python/examples/raw_kernel.py").read_text()
    assert compiled((*OPTIONS, "-arch=sm_80"), example.split('r"""')[1].split('"""')[0]) == (True, "")


def test_an_option_that_is_missing_is_named():
    is_compiled, log = compiled([o for o in OPTIONS if o != "-device-int128"])
    assert not is_compiled and "samesum: NVRTC compiles this header with the options -std=c++20" in log


def cupy():
    library = pytest.importorskip("cupy", reason="needs CuPy, a GPU and 'pip install cupy-cuda13x ml_dtypes'")
    pytest.importorskip("ml_dtypes")
    try:
        library.cuda.runtime.getDeviceCount()
    except library.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"CuPy finds no GPU: {error}")
    return library


@pytest.mark.parametrize("block", [32, 256])
@pytest.mark.parametrize(("dtype", "grid"), [(d, g) for d in ("float16", "float32", "float64") for g in (None, -40)])
def test_raw_kernels_of_cupy_give_the_sums_of_fractions_and_the_bytes_of_a_cpu(dtype, grid, block):
    from cells_cases import bits, case

    cp = cupy()
    c = case(dtype, grid, seed=6)
    order = np.random.default_rng(block).permutation(len(c.x))
    i, x = cp.asarray(c.i[order]), cp.asarray(c.x[order])
    cells = samesum.cells(len(c.sums), dtype, like=x, grid=grid)
    add = cp.RawKernel(SOURCE, f"{'exact' if grid is None else 'grid'}_{dtype}", options=OPTIONS)
    add((-(-len(x) // block),), (block,), (cells.words, i, x, np.int32(len(x)), np.int32(grid or 0)))
    expected = samesum.cells(len(c.sums), dtype, grid=grid)
    expected.add(c.i, c.x)
    assert cells.to_bytes() == expected.to_bytes()
    assert (bits(cells.finish().get()) == bits(c.sums)).all()


@pytest.mark.parametrize("grid", [None, -40])
def test_blocks_add_in_registers_first(grid):
    from cells_cases import case

    cp = cupy()
    x = cp.asarray(case("float32", grid, seed=7).x)
    cells = samesum.cells(1, "float32", like=x, grid=grid)
    add = cp.RawKernel(SOURCE, "block_exact" if grid is None else "block_grid", options=OPTIONS)
    add((3,), (128,), (cells.words, x, np.int32(len(x)), np.int32(grid or 0)))
    expected = samesum.cells(1, "float32", grid=grid)
    expected.add(np.zeros(len(x), int), x.get())
    assert cells.to_bytes() == expected.to_bytes()
