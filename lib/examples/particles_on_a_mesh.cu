// Particles deposit charges on the cells of a mesh: the same bits for every launch shape, and on a CPU.
#include <cstdint>
#include <cstdio>
#include <samesum/states.cuh>
#include <vector>

constexpr unsigned cells = 1000;
using Cell = samesum::WindowState<2>;  // 24 bytes, sums of multiples of 2^-60 below 2

/// Divides the charge of particle p between the two nearest cells.
template <class Add> SAMESUM_HD void deposit(unsigned p, Add add) {
  const float charge = 1.0f / static_cast<float>(1 + p % 1000),
              x = static_cast<float>(p * 2654435761u) * 0x1p-32f;
  const float place = x * (cells - 1);
  const unsigned cell = static_cast<unsigned>(place);
  const float right = place - static_cast<float>(cell);
  add(cell, charge * (1 - right));
  add((cell + 1) % cells, charge * right);
}

__global__ void deposit_all(unsigned particles, samesum::ExponentWindow window, Cell* mesh) {
  for (unsigned p = blockIdx.x * blockDim.x + threadIdx.x; p < particles; p += gridDim.x * blockDim.x)
    deposit(p, [&](unsigned cell, float charge) { mesh[cell].atomic_add(charge, window); });
}

int main() {
  constexpr unsigned particles = 1000000;
  const samesum::ExponentWindow window{-60, 1};
  std::vector<Cell> on_cpu(cells, Cell{});
  for (unsigned p = 0; p < particles; ++p)
    deposit(p, [&](unsigned cell, float charge) { on_cpu[cell].add(charge, window); });

  Cell* mesh;
  cudaMallocManaged(&mesh, cells * sizeof *mesh);
  for (const unsigned threads : {64, 1024}) {
    cudaMemset(mesh, 0, cells * sizeof *mesh);  // all bytes 0 is an empty state
    deposit_all<<<100, threads>>>(particles, window, mesh);
    cudaDeviceSynchronize();
    unsigned different = 0, outside = 0;
    for (unsigned c = 0; c < cells; ++c) {
      different += mesh[c].finish<float>(window) != on_cpu[c].finish<float>(window);  // rounded once
      outside += mesh[c].fell_outside();
    }
    std::printf("%u threads: %u cells differ, %u cells met a charge outside the window\n", threads, different,
                outside);
  }
}
