#include <algorithm>
#include <functional>
#include <stdexcept>

#include "harness/softmax_speed.hpp"
#include "samesum/backend/cuda/call.hpp"
#include "samesum/operation/gpu_softmax.hpp"

namespace samesum::harness {
namespace {

void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw std::runtime_error{std::string{call} + ": " + cudaGetErrorString(error)};
}

/// Numbers between -4 and 4 that look random, for every format.
template <class T> __global__ void fill(T* x, std::size_t n) {
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n;
       i += std::size_t{gridDim.x} * blockDim.x) {
    std::uint64_t random = (i + 1) * 0x9e3779b97f4a7c15u;
    random = (random ^ random >> 29) * 0xbf58476d1ce4e5b9u;
    x[i] = convert<T>(static_cast<float>(static_cast<std::int32_t>(random >> 32)) * 0x1p-29f);
  }
}

/// 16 bytes a thread and load, eight of them in flight.
__global__ void __launch_bounds__(256) copy(const uint4* x, uint4* y, std::size_t n) {
  constexpr std::size_t tile = 8 * 256;
  for (std::size_t i = blockIdx.x * tile + threadIdx.x; i < n; i += std::size_t{gridDim.x} * tile) {
    uint4 v[8];
    for (int k = 0; k < 8; ++k)
      if (i + k * 256 < n) v[k] = x[i + k * 256];
    for (int k = 0; k < 8; ++k)
      if (i + k * 256 < n) y[i + k * 256] = v[k];
  }
}

struct Resources {
  std::byte *x = nullptr, *y = nullptr;
  cudaEvent_t start = nullptr, stop = nullptr;
  Resources() = default;
  Resources(const Resources&) = delete;
  ~Resources() {
    static_cast<void>(cudaFree(x));
    static_cast<void>(cudaFree(y));
    static_cast<void>(cudaEventDestroy(start));
    static_cast<void>(cudaEventDestroy(stop));
  }
};

}  // namespace

std::vector<SoftmaxSpeed> softmax_speeds(const FormatInfo& format, SoftmaxShape shape, int repeats) {
  const std::size_t once = (shape.rows * shape.columns * format.bytes + 255) / 256 * 256;
  const std::size_t places = std::max<std::size_t>(1, (std::size_t{256} << 20) / once), bytes = places * once;
  Resources r;
  check(cudaMalloc(&r.x, bytes), "cudaMalloc");
  check(cudaMalloc(&r.y, bytes), "cudaMalloc");
  check(cudaEventCreate(&r.start), "cudaEventCreate");
  check(cudaEventCreate(&r.stop), "cudaEventCreate");
  with_format(format, [&]<class T>() {
    fill<<<4096, 256>>>(reinterpret_cast<T*>(r.x), bytes / sizeof(T));
    check(cudaGetLastError(), "fill");
  });
  struct Method {
    std::string name;
    std::function<void(const std::byte*, std::byte*)> run;
    std::vector<double> seconds;
  };
  std::vector<Method> methods;
  const auto add = [&](std::string name, gpu::SoftmaxSchedule schedule, SoftmaxSum accumulator) {
    methods.push_back({std::move(name),
                       [=, &format](const std::byte* x, std::byte* y) {
                         check(gpu::softmax(schedule, {format, x, shape.rows, shape.columns, shape.columns},
                                            {format, y, shape.rows, shape.columns, shape.columns},
                                            {accumulator, false, 0}, nullptr),
                               "softmax");
                       },
                       {}});
  };
  using gpu::SoftmaxSchedule;
  add("automatic", SoftmaxSchedule::automatic, SoftmaxSum::fp32);
  if (shape.columns <= 1024) add("narrow", SoftmaxSchedule::narrow, SoftmaxSum::fp32);
  if (shape.columns <= 131072) add("held", SoftmaxSchedule::held, SoftmaxSum::fp32);
  add("wide", SoftmaxSchedule::wide, SoftmaxSum::fp32);
  add("online", SoftmaxSchedule::wide, SoftmaxSum::online);
  methods.push_back({"copy",
                     [=](const std::byte* x, std::byte* y) {
                       const std::size_t n = once / 16,
                                         blocks = std::min<std::size_t>((n + 2047) / 2048, 1 << 16);
                       check(gpu::launch(copy, blocks, 256, nullptr, reinterpret_cast<const uint4*>(x),
                                         reinterpret_cast<uint4*>(y), n),
                             "copy");
                     },
                     {}});
  methods.push_back({"memcpy",
                     [=](const std::byte* x, std::byte* y) {
                       check(cudaMemcpyAsync(y, x, once, cudaMemcpyDeviceToDevice, nullptr),
                             "cudaMemcpyAsync");
                     },
                     {}});
  const int inner = once <= (16u << 20) ? 20 : once <= (256u << 20) ? 4 : 1;
  std::size_t next = 0;
  for (int repeat = -1; repeat < repeats; ++repeat)  // one to warm up
    for (Method& m : methods) {
      check(cudaEventRecord(r.start), "cudaEventRecord");
      for (int i = 0; i < inner; ++i, next = (next + 1) % places) m.run(r.x + next * once, r.y + next * once);
      check(cudaEventRecord(r.stop), "cudaEventRecord");
      check(cudaEventSynchronize(r.stop), "cudaEventSynchronize");
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, r.start, r.stop), "cudaEventElapsedTime");
      if (repeat >= 0) m.seconds.push_back(milliseconds * 1e-3 / inner);
    }
  std::vector<SoftmaxSpeed> speeds;
  for (Method& m : methods) {
    std::ranges::sort(m.seconds);
    const auto at = [&m](double share) {
      return m.seconds[static_cast<std::size_t>(share * static_cast<double>(m.seconds.size() - 1) + 0.5)];
    };
    speeds.push_back({m.name, shape, &format, at(0.5), at(0.1), at(0.9)});
  }
  return speeds;
}

}  // namespace samesum::harness
