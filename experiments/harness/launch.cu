#include "harness/cuda.cuh"
#include "harness/launch.hpp"

namespace samesum::harness {

Number sum_in_shape(const Method& method, Values placed, LaunchShape shape) {
  constexpr std::size_t bytes = std::size_t{64} << 20;  // enough for the states of the smallest blocks
  const auto workspace = prepared_workspace(bytes), out = device_memory(sizeof(std::uint64_t));
  gpu::Launch launch{
      call_of(placed, nullptr, Layout::vector(placed.size), {method.format, out.get(), 1}, Options{})};
  launch.workspace = workspace.get();
  launch.bytes = bytes;
  launch.blocks = shape.blocks;
  launch.threads = shape.threads;
  enqueue(method, launch);
  std::uint64_t bits = 0;
  check(cudaMemcpy(&bits, out.get(), method.format->bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return {method.format, bits};
}

}  // namespace samesum::harness
