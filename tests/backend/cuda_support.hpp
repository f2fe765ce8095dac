/// Support for the tests that need a GPU: device memory, and calls in a stream with any launch shape.
#pragma once

#include <memory>

#include "cases.hpp"
#include "harness/launch.hpp"
#include "samesum/backend/cuda/device/methods.hpp"
#include "samesum/gpu.hpp"

namespace samesum {

using namespace testing_support;

inline bool gpu_is_there() { return absent().empty(); }

#define SAMESUM_NEEDS_GPU() \
  if (!gpu_is_there()) GTEST_SKIP() << absent()[0].reason

inline void succeed(cudaError_t code) { ASSERT_EQ(code, cudaSuccess) << cudaGetErrorString(code); }

/// A graph of what enqueue() adds to a stream. Kernels cannot be loaded during capture, so an earlier call
/// must have loaded them.
class Graph {
 public:
  template <class Enqueue> Graph(cudaStream_t stream, Enqueue enqueue) : stream_{stream} {
    succeed(cudaStreamSynchronize(stream));
    cudaGraph_t graph = nullptr;
    succeed(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    enqueue();
    succeed(cudaStreamEndCapture(stream, &graph));
    succeed(cudaGraphInstantiate(&executable_, graph, 0));
    succeed(cudaGraphDestroy(graph));
  }
  ~Graph() { static_cast<void>(cudaGraphExecDestroy(executable_)); }
  Graph(const Graph&) = delete;
  /// Replays the graph, and waits for its end.
  void replay() const {
    succeed(cudaGraphLaunch(executable_, stream_));
    succeed(cudaStreamSynchronize(stream_));
  }

 private:
  cudaStream_t stream_;
  cudaGraphExec_t executable_ = nullptr;
};

inline std::shared_ptr<std::byte> device_memory(std::size_t bytes) {
  void* memory = nullptr;
  succeed(cudaMalloc(&memory, std::max<std::size_t>(bytes, 1)));
  return {static_cast<std::byte*>(memory), [](std::byte* p) { static_cast<void>(cudaFree(p)); }};
}

/// A copy in device memory, at an address `offset` elements after one aligned to 256 bytes.
class OnGpu {
 public:
  explicit OnGpu(Values x, std::size_t offset = 0)
      : memory_{device_memory((x.size + offset) * x.format->bytes)},
        values_{*x.format, memory_.get() + offset * x.format->bytes, x.size} {
    fill(x);
  }
  Values values() const { return values_; }
  /// Overwrites the copy with x, which has as many elements.
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

/// A stream, a workspace and memory for a result. All calls use the same workspace, since each call leaves it
/// prepared for the next.
class Caller {
 public:
  Caller() {
    succeed(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    succeed(gpu::prepare(workspace_.get(), bytes, stream_));
  }
  ~Caller() { static_cast<void>(cudaStreamDestroy(stream_)); }
  Caller(const Caller&) = delete;

  cudaStream_t stream() const { return stream_; }

  /// Enqueues one sum; `result` returns it.
  void start(Functions<gpu::Launch>::Run run, const Method* m, const FormatInfo& format, Values x,
             LaunchShape shape = {}) {
    ASSERT_NE(run, nullptr);
    gpu::Launch launch{
        .call = {.method = m, .x = x, .layout = Layout::vector(x.size), .out = {&format, out_.get(), 1}},
        .workspace = workspace_.get(),
        .bytes = bytes,
        .stream = stream_,
        .blocks = shape.blocks,
        .threads = shape.threads};
    run(launch);
    ASSERT_EQ(launch.error, cudaSuccess) << "n = " << x.size << ": " << cudaGetErrorString(launch.error);
  }
  void start(const Method& m, Values x, LaunchShape shape = {}) {
    SCOPED_TRACE(m.name);
    start(Code::of(m).device.vector[x.format->index], &m, *m.format, x, shape);
  }
  Number result(const FormatInfo& format) {
    std::uint64_t bits = 0;
    succeed(cudaMemcpyAsync(&bits, out_.get(), format.bytes, cudaMemcpyDeviceToHost, stream_));
    succeed(cudaStreamSynchronize(stream_));
    return {&format, bits};
  }
  Number sum(Functions<gpu::Launch>::Run run, const FormatInfo& format, Values x, LaunchShape shape = {}) {
    succeed(cudaMemsetAsync(out_.get(), 0xa5, 8, stream_));  // to detect a missing write
    start(run, nullptr, format, x, shape);
    return result(format);
  }
  Number sum(const Method& m, Values x, LaunchShape shape = {}) {
    succeed(cudaMemsetAsync(out_.get(), 0xa5, 8, stream_));
    start(m, x, shape);
    return result(*m.format);
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

/// Offsets of 500 segments, most of which have up to twice `mean` elements; others are empty, or longer than
/// a leaf: four in a row by one element.
inline std::vector<std::uint64_t> uneven_segments(std::size_t mean) {
  std::vector<std::uint64_t> offsets{5};
  for (std::size_t i = 0; i < 500; ++i)
    offsets.push_back(offsets.back() + (i == 100      ? 4096
                                        : i / 4 == 50 ? 4097
                                        : i == 300    ? 20000 * (mean / 100)
                                        : i == 499    ? 3 * mean
                                                      : (i * 7919) % (2 * mean)));
  return offsets;
}

/// Returns the methods of the CPU whose counterparts on the GPU accept batches.
inline std::vector<const Method*> with_batches_on_gpu() {
  std::vector<const Method*> chosen;
  for (const Method& m : methods())
    if (m.backend == "cuda" && reduces_vectors(m) && m.accepts(*m.format, Layout::rows(2, 2)) &&
        m.promise >= Promise::everywhere)
      chosen.push_back(&find_on("cpu", m));
  return chosen;
}

}  // namespace samesum
