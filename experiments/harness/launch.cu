#include "harness/cuda.cuh"
#include "harness/launch.hpp"

namespace samesum::harness {

Number sum_in_shape(const Method& method, Values placed, LaunchShape shape) {
  constexpr std::size_t bytes = std::size_t{64} << 20;  // enough for the states of the smallest blocks
  const auto workspace = prepared_workspace(bytes), out = device_memory(sizeof(std::uint64_t));
  gpu::Launch launch{normalised({.method = &method,
                                 .x = placed,
                                 .layout = Layout::vector(placed.size),
                                 .out = {method.format, out.get(), 1}})};
  launch.workspace = workspace.get();
  launch.bytes = bytes;
  launch.blocks = shape.blocks;
  launch.threads = shape.threads;
  start(launch);
  std::uint64_t bits = 0;
  check(cudaMemcpy(&bits, out.get(), method.format->bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return {method.format, bits};
}

void reduce_in_schedule(const Method& method, Values placed, const Keys* keys, Layout layout, Results out,
                        int schedule) {
  const std::size_t bytes = out.size * method.result_bytes();
  const auto results = device_memory(bytes);
  gpu::Launch launch{normalised({.method = &method,
                                 .x = placed,
                                 .layout = layout,
                                 .out = {out.format, results.get(), out.size, out.row_stride}})};
  std::shared_ptr<std::byte> keys_there;
  if (keys) {
    const std::size_t size = keys->size * bytes_of(keys->format);
    keys_there = device_memory(size);
    check(cudaMemcpy(keys_there.get(), keys->data, size, cudaMemcpyHostToDevice), "cudaMemcpy");
    launch.call.keys = {keys->format, keys_there.get(), keys->size};
    launch.key_schedule = static_cast<gpu::KeySchedule>(schedule);
  } else {
    launch.scan = static_cast<gpu::ScanSchedule>(schedule);
  }
  start(launch);  // without a workspace: queries its size
  const auto workspace = prepared_workspace(launch.bytes);
  launch.workspace = workspace.get();
  start(launch);
  check(cudaMemcpy(out.data, results.get(), bytes, cudaMemcpyDeviceToHost), method.name);
}

}  // namespace samesum::harness
