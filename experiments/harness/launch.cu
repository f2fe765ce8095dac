#include <memory>
#include <stdexcept>
#include <string>

#include "harness/launch.hpp"
#include "samesum/backend/cuda/call.hpp"

namespace samesum::harness {
namespace {

void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw std::runtime_error{std::string{call} + ": " + cudaGetErrorString(error)};
}

std::shared_ptr<void> device_memory(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "cudaMalloc");
  return {memory, [](void* p) { static_cast<void>(cudaFree(p)); }};
}

}  // namespace

Number sum_in_shape(const Variant& variant, Values placed, LaunchShape shape) {
  constexpr std::size_t bytes = std::size_t{64} << 20;  // for the states of the smallest blocks
  const auto workspace = device_memory(bytes), out = device_memory(sizeof(std::uint64_t));
  check(gpu::prepare(workspace.get(), bytes), "prepare");
  gpu::Call call{placed.data, placed.size, out.get(),    workspace.get(),
                 bytes,       nullptr,     shape.blocks, shape.threads};
  check(static_cast<cudaError_t>(variant.launch[placed.format->index](call)), variant.name.c_str());
  std::uint64_t bits = 0;
  check(cudaMemcpy(&bits, out.get(), variant.format->bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return {variant.format, bits};
}

}  // namespace samesum::harness
