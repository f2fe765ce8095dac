/// What the tests that need a GPU share: memory there, and calls in a stream with any launch shape.
#pragma once

#include <cstdlib>
#include <memory>

#include "cases.hpp"
#include "harness/launch.hpp"
#include "samesum/backend/cuda/call.hpp"

namespace samesum {

using namespace testing_support;

/// Under compute-sanitizer everything takes a hundred times as long.
inline const bool reduced = std::getenv("SAMESUM_REDUCED_TESTS") != nullptr;

inline bool gpu_is_there() { return absent().empty(); }

#define SAMESUM_NEEDS_GPU() \
  if (!gpu_is_there()) GTEST_SKIP() << absent()[0].reason

inline void succeed(cudaError_t code) { ASSERT_EQ(code, cudaSuccess) << cudaGetErrorString(code); }

inline std::shared_ptr<std::byte> device_memory(std::size_t bytes) {
  void* memory = nullptr;
  succeed(cudaMalloc(&memory, std::max<std::size_t>(bytes, 1)));
  return {static_cast<std::byte*>(memory), [](std::byte* p) { static_cast<void>(cudaFree(p)); }};
}

/// A copy on the GPU, at an address that is `offset` elements beyond one aligned to 256 bytes.
class OnGpu {
 public:
  explicit OnGpu(Values x, std::size_t offset = 0)
      : memory_{device_memory((x.size + offset) * x.format->bytes)},
        values_{*x.format, memory_.get() + offset * x.format->bytes, x.size} {
    fill(x);
  }
  Values values() const { return values_; }
  /// Other elements, as many as there are.
  void fill(Values x) const {
    if (x.size == 0) return;
    succeed(cudaMemcpy(const_cast<void*>(values_.data), x.data, x.size * x.format->bytes,
                       cudaMemcpyHostToDevice));
    succeed(cudaDeviceSynchronize());  // the copy may return before the data have arrived
  }

 private:
  std::shared_ptr<std::byte> memory_;
  Values values_;
};

namespace harness {
inline std::ostream& operator<<(std::ostream& out, LaunchShape s) {
  return out << s.blocks << " blocks of " << s.threads;
}
}  // namespace harness
using harness::LaunchShape;

/// A stream and what a call in it needs. One workspace serves all calls: each leaves it as the next wants it.
class Caller {
 public:
  Caller() {
    succeed(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    succeed(gpu::prepare(workspace_.get(), bytes, stream_));
  }
  ~Caller() { static_cast<void>(cudaStreamDestroy(stream_)); }
  Caller(const Caller&) = delete;

  cudaStream_t stream() const { return stream_; }

  /// Enqueues one sum; `result` reads it.
  void start(const Variant& v, Values x, LaunchShape shape = {}) {
    ASSERT_EQ(v.backend, "cuda");
    gpu::Call call{x.data, x.size, out_.get(), workspace_.get(), bytes, stream_, shape.blocks, shape.threads};
    const auto code = static_cast<cudaError_t>(v.launch[x.format->index](call));
    ASSERT_EQ(code, cudaSuccess) << v.name << ", n = " << x.size << ": " << cudaGetErrorString(code);
  }
  Number result(const Variant& v) {
    std::uint64_t bits = 0;
    succeed(cudaMemcpyAsync(&bits, out_.get(), v.format->bytes, cudaMemcpyDeviceToHost, stream_));
    succeed(cudaStreamSynchronize(stream_));
    return {v.format, bits};
  }
  Number sum(const Variant& v, Values x, LaunchShape shape = {}) {
    succeed(cudaMemsetAsync(out_.get(), 0xa5, 8, stream_));  // so that a result not written is seen
    start(v, x, shape);
    return result(v);
  }

 private:
  static constexpr std::size_t bytes = std::size_t{64} << 20;
  std::shared_ptr<std::byte> workspace_ = device_memory(bytes), out_ = device_memory(8);
  cudaStream_t stream_ = nullptr;
};

inline Caller& the_caller() {
  static Caller caller;
  return caller;
}

inline const Variant& on(std::string_view backend, const Variant& v) {
  return find(recipe_of(v) + "@" + std::string{backend});
}

}  // namespace samesum
