/// Elements for a partial in memory that the device can access.
#pragma once

#include <utility>

#include "samesum/backend/cuda/device/check.hpp"
#include "samesum/backend/cuda/device/methods.hpp"
#include "samesum/catalogue/state_call.hpp"

namespace samesum::gpu {

/// Runs a call with a workspace from `pool` (nullptr: the device's current pool).
inline void enqueue_with_pool(Launch& launch, cudaMemPool_t pool) {
  with_pool(launch.call.method->name, launch, pool, [&](Launch& l) {
    if (l.workspace && l.uses_header)
      if (const cudaError_t error = prepare_workspace(l.workspace, l.stream)) return error;
    return enqueue(l);
  });
}

/// Elements of a call on the current device. Its functions wait for the stream.
class DeviceInput : public PartialInput {
 public:
  DeviceInput(const Call& call, cudaStream_t stream, cudaMemPool_t pool)
      : call_{call}, stream_{stream}, pool_{pool} {}
  const FormatInfo& format() const override { return *call_.x.format; }

  void copy(std::size_t first, std::size_t n, std::byte* x, std::byte* y) override {
    const Call part = part_of(call_, {first, n}, nullptr);
    fetch(x, part.x.data, n * format().bytes);
    if (y) fetch(y, part.y.data, n * format().bytes);
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  void reduce(std::span<const Subtree> subtrees, std::size_t state_bytes, std::byte* states) override {
    const std::size_t all = subtrees.size() * state_bytes;
    void* const memory = pool_memory(all, pool_, stream_);
    const Memory freed{memory, [this](void* p) { static_cast<void>(cudaFreeAsync(p, stream_)); }};
    check(cudaMemsetAsync(memory, 0, all, stream_), "cudaMemsetAsync");  // a kernel may write a part only
    auto* state = static_cast<std::byte*>(memory);
    for (const Subtree& subtree : subtrees) {
      Launch launch{.call = part_of(call_, subtree, std::exchange(state, state + state_bytes)),
                    .as_state = true,
                    .stream = stream_};
      enqueue_with_pool(launch, pool_);
    }
    fetch(states, memory, all);
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

 private:
  void fetch(void* to, const void* from, std::size_t bytes) const {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_),
          with_size("cudaMemcpyAsync", bytes));
  }

  Call call_;
  cudaStream_t stream_;
  cudaMemPool_t pool_;
};

}  // namespace samesum::gpu
