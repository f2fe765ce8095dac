/// CUDA for the harness: errors as exceptions, and owners of memory and events.
#pragma once

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>

#include "samesum/backend/cuda/device/methods.hpp"
#include "samesum/gpu.hpp"

namespace samesum::harness {

inline void check(cudaError_t error, const std::string& call) {
  if (error != cudaSuccess) throw std::runtime_error{call + ": " + cudaGetErrorString(error)};
}

inline std::shared_ptr<std::byte> device_memory(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, std::max<std::size_t>(bytes, 16)), "cudaMalloc");
  return {static_cast<std::byte*>(memory), [](std::byte* p) { static_cast<void>(cudaFree(p)); }};
}

inline std::shared_ptr<std::byte> prepared_workspace(std::size_t bytes) {
  const std::shared_ptr<std::byte> workspace = device_memory(bytes);
  check(gpu::prepare(workspace.get(), bytes), "prepare");
  return workspace;
}

/// A stream that waits for the default stream, as that waits for it. A CUDA graph can record its work.
class Stream {
 public:
  Stream() { check(cudaStreamCreate(&stream_), "cudaStreamCreate"); }
  Stream(const Stream&) = delete;
  ~Stream() { static_cast<void>(cudaStreamDestroy(stream_)); }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
  Event(const Event&) = delete;
  ~Event() { static_cast<void>(cudaEventDestroy(event_)); }
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Launches a call of a method, of samesum or of a peer, on data in the memory of the GPU.
inline void start(gpu::Launch& launch) {
  const Method& method = *launch.call.method;
  check(gpu::enqueue(launch), method.name);
}

}  // namespace samesum::harness
