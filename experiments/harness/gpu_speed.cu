#include <algorithm>
#include <cuda/version>
#include <random>
#include <stdexcept>

#include "harness/gpu_speed.hpp"
#include "harness/peers.hpp"
#include "samesum/backend/cuda/call.hpp"
#include "samesum/recipe.hpp"

namespace samesum::harness {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 26;  ///< random; a larger array repeats it
constexpr std::size_t workspace_bytes = std::size_t{256} << 20;

void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw std::runtime_error{std::string{call} + ": " + cudaGetErrorString(error)};
}

template <class F>
F element(GpuData data, std::mt19937_64& random, std::normal_distribution<double>& normal) {
  if (data == GpuData::normal) return convert<F>(normal(random));
  if (data == GpuData::binades) {
    const int binades = std::min(60, Format<F>::max_exponent - Format<F>::min_exponent);
    return convert<F>(
        std::ldexp(normal(random), static_cast<int>(random() % unsigned(binades)) - binades / 2));
  }
  auto bits = static_cast<BitsOf<F>>(random());
  if ((bits & Format<F>::infinity) == Format<F>::infinity)
    bits ^= BitsOf<F>(BitsOf<F>{1} << (Format<F>::precision - 1));
  return from_bits<F>(bits);
}

/// Reads 16 bytes a thread and load, eight loads in flight, and keeps nothing.
__global__ void __launch_bounds__(256) read_only(const uint4* x, std::size_t n, unsigned* never) {
  unsigned any = 0;
  const std::size_t tile = 8 * 256, stride = std::size_t{gridDim.x} * tile;
  for (std::size_t i = std::size_t{blockIdx.x} * tile + threadIdx.x; i < n; i += stride) {
    uint4 v[8];
    for (int k = 0; k < 8; ++k) v[k] = i + k * 256 < n ? x[i + k * 256] : uint4{};
    for (const uint4& w : v) any |= w.x & w.y & w.z & w.w & 0x80000001u;
  }
  if (any == 0x12345678u) *never = any;
}

double at(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(std::lround(share * static_cast<double>(sorted.size() - 1)))];
}

}  // namespace

std::string gpu_description() {
  cudaDeviceProp device;
  int driver = 0, runtime = 0;
  if (!gpu::absence().empty() || cudaGetDeviceProperties(&device, 0) != cudaSuccess ||
      cudaDriverGetVersion(&driver) != cudaSuccess || cudaRuntimeGetVersion(&runtime) != cudaSuccess)
    return {};
  const auto version = [](int v) { return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10); };
  return std::string{device.name} + ", driver for CUDA " + version(driver) + ", CUDA " + version(runtime) +
         ", CCCL " + std::to_string(CCCL_MAJOR_VERSION) + "." + std::to_string(CCCL_MINOR_VERSION) + "." +
         std::to_string(CCCL_PATCH_VERSION);
}

struct GpuBench::Memory {
  std::byte *x = nullptr, *copy = nullptr, *workspace = nullptr, *of_peers = nullptr, *out = nullptr;
  std::size_t bytes = 0;
  std::vector<std::byte> block;  ///< what x repeats
  cudaStream_t stream = nullptr;
  cudaEvent_t start = nullptr, stop = nullptr;

  ~Memory() {
    for (std::byte* p : {x, copy, workspace, of_peers, out}) static_cast<void>(cudaFree(p));
    static_cast<void>(cudaStreamDestroy(stream));
    static_cast<void>(cudaEventDestroy(start));
    static_cast<void>(cudaEventDestroy(stop));
  }
};

GpuBench::GpuBench(const FormatInfo& format, GpuData data, std::size_t most)
    : format_{format}, memory_{std::make_unique<Memory>()} {
  if (!gpu::absence().empty()) throw std::runtime_error{gpu::absence()};
  Memory& m = *memory_;
  m.bytes = std::max(most * format.bytes, 4 * block_bytes);  // enough to be cold in the caches
  m.block.resize(block_bytes);
  std::mt19937_64 random{2026};
  std::normal_distribution<double> normal;
  with_format(format, [&]<class F>() {
    auto* first = reinterpret_cast<F*>(m.block.data());
    std::generate(first, first + block_bytes / sizeof(F), [&] { return element<F>(data, random, normal); });
  });
  check(cudaMalloc(&m.x, m.bytes), "cudaMalloc");
  check(cudaMalloc(&m.copy, m.bytes), "cudaMalloc");
  check(cudaMalloc(&m.workspace, workspace_bytes), "cudaMalloc");
  check(cudaMalloc(&m.of_peers, workspace_bytes), "cudaMalloc");  // they do not leave it prepared
  check(cudaMalloc(&m.out, 64), "cudaMalloc");
  check(cudaStreamCreate(&m.stream), "cudaStreamCreate");
  check(cudaEventCreate(&m.start), "cudaEventCreate");
  check(cudaEventCreate(&m.stop), "cudaEventCreate");
  for (std::size_t done = 0; done < m.bytes; done += block_bytes)
    check(cudaMemcpy(m.x + done, m.block.data(), std::min(block_bytes, m.bytes - done), cudaMemcpyDefault),
          "cudaMemcpy");
  check(gpu::prepare(m.workspace, workspace_bytes, m.stream), "prepare");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}
GpuBench::~GpuBench() = default;

std::vector<GpuSpeed> GpuBench::measure(const std::vector<const Variant*>& variants, std::size_t n,
                                        GpuSpeedOptions options) {
  Memory& m = *memory_;
  struct Method {
    GpuSpeed result;
    std::function<void(const std::byte* x)> run;
    std::vector<double> seconds;
  };
  std::vector<Method> methods;
  const std::size_t bytes = n * format_.bytes;
  for (const Variant* v : variants) {
    if (!v->launch[format_.index]) continue;
    methods.push_back({{v->name, 0, 0, 0, {}},
                       [&m, v, n, this](const std::byte* x) {
                         auto* workspace = is_peer(*v) ? m.of_peers : m.workspace;
                         gpu::Call call{x, n, m.out, workspace, workspace_bytes, m.stream};
                         check(static_cast<cudaError_t>(v->launch[format_.index](call)), v->name.c_str());
                       },
                       {}});
    methods.back().run(m.x);
    std::uint64_t bits = 0;
    check(cudaMemcpyAsync(&bits, m.out, v->format->bytes, cudaMemcpyDefault, m.stream), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(m.stream), "cudaStreamSynchronize");
    // Longer arrays are the tests' business.
    if (!is_peer(*v) && v->promise >= Promise::everywhere && bytes <= block_bytes) {
      const Variant& cpu = find(v->name.substr(0, v->name.find('@')) + "@cpu");
      methods.back().result.verified = cpu(Values{format_, m.block.data(), n}).bits == bits;
    }
  }
  methods.push_back({{"read", 0, 0, 0, {}},
                     [&m, bytes](const std::byte* x) {
                       const std::size_t vectors = std::max<std::size_t>(bytes / 16, 1);
                       const std::size_t blocks = std::min<std::size_t>((vectors + 2047) / 2048, 1 << 16);
                       check(gpu::launch(read_only, blocks, 256, m.stream, reinterpret_cast<const uint4*>(x),
                                         vectors, reinterpret_cast<unsigned*>(m.out)),
                             "read");
                     },
                     {}});
  methods.push_back({{"copy", 0, 0, 0, {}},
                     [&m, bytes](const std::byte* x) {
                       check(cudaMemcpyAsync(m.copy, x, bytes, cudaMemcpyDeviceToDevice, m.stream), "copy");
                     },
                     {}});
  // Short runs are repeated between two events, whose own time would count otherwise.
  const int inner = bytes <= (4u << 20) ? 20 : bytes <= (64u << 20) ? 8 : bytes <= (1u << 30) ? 2 : 1;
  // Cold: a place is read again only after all others, which together are several times the L2 cache.
  const std::size_t stride = (bytes + 255) / 256 * 256, places = options.cold ? m.bytes / stride : 1;
  std::size_t next = 0;
  for (int repeat = -2; repeat < options.repeats; ++repeat)  // two to warm up
    for (Method& method : methods) {
      // Hot: in the caches lies what it has left there itself, and nothing that others still have to write.
      if (!options.cold) method.run(m.x);
      check(cudaEventRecord(m.start, m.stream), "cudaEventRecord");
      for (int i = 0; i < inner; ++i) {
        method.run(m.x + next * stride);
        next = (next + 1) % places;
      }
      check(cudaEventRecord(m.stop, m.stream), "cudaEventRecord");
      check(cudaEventSynchronize(m.stop), "cudaEventSynchronize");
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, m.start, m.stop), "cudaEventElapsedTime");
      if (repeat >= 0) method.seconds.push_back(milliseconds * 1e-3 / inner);
    }
  std::vector<GpuSpeed> results;
  for (Method& method : methods) {
    std::ranges::sort(method.seconds);
    method.result.seconds = at(method.seconds, 0.5);
    method.result.low = at(method.seconds, 0.1);
    method.result.high = at(method.seconds, 0.9);
    results.push_back(method.result);
  }
  return results;
}

}  // namespace samesum::harness
