// Sums of data in GPU memory: exact, with a workspace of the caller, and by name.
#include <cuda_runtime.h>

#include <cstdio>
#include <samesum/gpu.hpp>

int main() {
  constexpr std::size_t n = 1000000;
  float *x, *out;
  cudaMallocManaged(&x, n * sizeof *x);
  cudaMallocManaged(&out, sizeof *out);
  for (std::size_t i = 0; i < n; ++i) x[i] = 1.0f / static_cast<float>(i + 1);

  // The workspace comes from the device's current memory pool; errors are thrown.
  samesum::gpu::sum(x, n, out);  // exact
  cudaDeviceSynchronize();
  std::printf("exact     %.9g\n", *out);

  // In two phases, as with CUB: query the size, prepare the workspace once, then sum as often as you like.
  // Each of these calls returns a cudaError_t, which real code checks.
  std::size_t bytes = 0;
  void* workspace;
  samesum::gpu::sum<"tree/plain/fp32">(nullptr, bytes, x, n, out);
  cudaMalloc(&workspace, bytes);
  samesum::gpu::prepare(workspace, bytes);
  samesum::gpu::sum<"tree/plain/fp32">(workspace, bytes, x, n, out);
  cudaDeviceSynchronize();
  std::printf("tree      %.9g\n", *out);

  // Or by name, from data of the host or of the device.
  const samesum::Values values{samesum::format_info<float>(), x, n};
  std::printf("kahan     %.9g\n", samesum::find("tree/kahan/fp32@cuda")(values).to_double());
}
