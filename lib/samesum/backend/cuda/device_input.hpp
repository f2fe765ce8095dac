/// Elements for a partial in memory that the device can access.
#pragma once

#include <utility>

#include "samesum/backend/cuda/check.hpp"
#include "samesum/backend/cuda/methods.hpp"

namespace samesum::gpu {

/// Runs a call with a workspace from `pool` (nullptr: the device's current pool).
inline void enqueue_with_pool(const Method& method, Launch& launch, cudaMemPool_t pool) {
  with_pool(method.name, launch, pool, [&](Launch& l) {
    if (l.workspace && l.uses_header)
      if (const cudaError_t error = prepare_workspace(l.workspace, l.stream)) return error;
    return enqueue_method(method, l);
  });
}

/// Elements of a call on the current device. Its functions wait for the stream.
class DeviceInput : public PartialInput {
 public:
  DeviceInput(const Method& method, const Call& call, cudaStream_t stream, cudaMemPool_t pool)
      : method_{method}, call_{call}, stream_{stream}, pool_{pool} {}
  const FormatInfo& format() const override { return *call_.input; }

  void copy(std::size_t first, std::size_t n, std::byte* x, std::byte* y) override {
    fetch(x, at(call_.x, first), n * format().bytes);
    if (y) fetch(y, at(call_.y, first), n * format().bytes);
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  void reduce(std::span<const Subtree> subtrees, std::size_t state_bytes, std::byte* states) override {
    void* memory = nullptr;
    const std::size_t all = subtrees.size() * state_bytes;
    check(pool_ ? cudaMallocFromPoolAsync(&memory, all, pool_, stream_)
                : cudaMallocAsync(&memory, all, stream_),
          with_size("cudaMallocAsync", all));
    const Memory freed{memory, [this](void* p) { static_cast<void>(cudaFreeAsync(p, stream_)); }};
    check(cudaMemsetAsync(memory, 0, all, stream_), "cudaMemsetAsync");  // a kernel may write a part only
    auto* state = static_cast<std::byte*>(memory);
    for (const Subtree& subtree : subtrees) {
      Launch launch{call_, nullptr, 0, stream_};
      launch.x = at(call_.x, subtree.first);
      launch.y = call_.y ? at(call_.y, subtree.first) : nullptr;
      launch.size = subtree.count;
      launch.layout = Layout::vector(subtree.count);
      launch.out = std::exchange(state, state + state_bytes);
      launch.as_state = true;
      enqueue_with_pool(method_, launch, pool_);
    }
    fetch(states, memory, all);
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

 private:
  const std::byte* at(const void* x, std::size_t first) const {
    return static_cast<const std::byte*>(x) + first * format().bytes;
  }
  void fetch(void* to, const void* from, std::size_t bytes) const {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_),
          with_size("cudaMemcpyAsync", bytes));
  }

  const Method& method_;
  Call call_;
  cudaStream_t stream_;
  cudaMemPool_t pool_;
};

}  // namespace samesum::gpu
