#include "samesum/gpu_reduction.hpp"

#include "samesum/backend/cuda/check.hpp"
#include "samesum/backend/cuda/reduce_launch.hpp"
#include "samesum/backend/cuda/upload.hpp"
#include "samesum/environment.hpp"
#include "samesum/operation/validation.hpp"

namespace samesum::gpu {
namespace {

cudaError_t start(const Reduction& reduction, const FormatInfo& input, ReduceLaunch& launch) {
  return static_cast<cudaError_t>(reduction.launch[input.index](launch));
}

std::string validation_error(const Reduction& r, const Values& x, const Values* y, const Layout& layout,
                             const Results& out, const ReduceOptions& options) {
  if (!r.from_host) return "it is not of the backend cuda";
  if (std::string wrong = samesum::validation_error(r, options); !wrong.empty()) return wrong;
  return samesum::validation_error(r, x, y, layout, out, false);
}

cudaError_t in_phases(const Reduction& r, void* workspace, std::size_t& bytes, Values x, const Values* y,
                      Layout layout, Results out, cudaStream_t stream, ReduceOptions options) noexcept try {
  const FloatingPointEnvironment environment;
  if (!validation_error(r, x, y, layout, out, options).empty() ||
      reinterpret_cast<std::uintptr_t>(workspace) % 16 != 0)
    return cudaErrorInvalidValue;
  ReduceLaunch launch{
      {x.data, y ? y->data : nullptr, settled(layout), out.data, options}, x.size, workspace, bytes, stream};
  const cudaError_t error = start(r, *x.format, launch);
  bytes = launch.bytes;
  return error;
} catch (const std::exception&) {
  return cudaErrorMemoryAllocation;  // of a message
}

void with_pool(const Reduction& r, Values x, const Values* y, Layout layout, Results out, cudaStream_t stream,
               ReduceOptions options) {
  const FloatingPointEnvironment environment;
  if (const std::string wrong = validation_error(r, x, y, layout, out, options); !wrong.empty())
    throw std::invalid_argument("samesum: " + r.name + ": " + wrong);
  ReduceLaunch launch{
      {x.data, y ? y->data : nullptr, settled(layout), out.data, options}, x.size, nullptr, 0, stream};
  check(start(r, *x.format, launch), r.name);
  check(cudaMallocAsync(&launch.workspace, launch.bytes, stream), of_bytes("cudaMallocAsync", launch.bytes));
  const cudaError_t error = start(r, *x.format, launch), freed = cudaFreeAsync(launch.workspace, stream);
  check(error, r.name);
  check(freed, "cudaFreeAsync");
}

}  // namespace

cudaError_t reduce(const Reduction& reduction, void* workspace, std::size_t& bytes, Values x, Layout layout,
                   Results out, cudaStream_t stream, ReduceOptions options) noexcept {
  return in_phases(reduction, workspace, bytes, x, nullptr, layout, out, stream, options);
}
cudaError_t reduce(const Reduction& reduction, void* workspace, std::size_t& bytes, Values x, Values y,
                   Layout layout, Results out, cudaStream_t stream, ReduceOptions options) noexcept {
  return in_phases(reduction, workspace, bytes, x, &y, layout, out, stream, options);
}
void reduce(const Reduction& reduction, Values x, Layout layout, Results out, cudaStream_t stream,
            ReduceOptions options) {
  with_pool(reduction, x, nullptr, layout, out, stream, options);
}
void reduce(const Reduction& reduction, Values x, Values y, Layout layout, Results out, cudaStream_t stream,
            ReduceOptions options) {
  with_pool(reduction, x, &y, layout, out, stream, options);
}

void reduce_from_host(const Reduction& reduction, const FormatInfo& input, std::size_t elements,
                      const ReduceCall& call) {
  const Placed x = place({input, call.x, elements}), y = place({input, call.y, call.y ? elements : 0});
  const std::size_t results = call.layout.results(), out_bytes = results * reduction.result_bytes();
  Memory offsets;
  Layout layout = call.layout;
  if (layout.offsets) {
    const std::size_t bytes = (layout.outer + 1) * sizeof(std::uint64_t);
    offsets = device_memory(bytes);
    check(cudaMemcpy(offsets.get(), layout.offsets, bytes, cudaMemcpyHostToDevice),
          of_bytes("cudaMemcpy", bytes));
    layout.offsets = static_cast<const std::uint64_t*>(offsets.get());
  }
  const Memory out = device_memory(out_bytes);
  // A second input of no elements is still a second input.
  const void* second = reduction.inputs == 2 && y.values.data == nullptr ? out.get() : y.values.data;
  ReduceLaunch launch{
      {x.values.data, second, layout, out.get(), call.options}, elements, nullptr, 0, cudaStreamLegacy};
  check(start(reduction, input, launch), reduction.name);
  const Memory workspace = device_memory(launch.bytes);
  launch.workspace = workspace.get();
  check(start(reduction, input, launch), reduction.name);
  check(cudaMemcpy(call.out, out.get(), out_bytes, cudaMemcpyDeviceToHost),
        "cudaMemcpy after " + reduction.name);
}

}  // namespace samesum::gpu
