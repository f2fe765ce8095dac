#include <algorithm>
#include <cuda/version>
#include <stdexcept>

#include "harness/ceiling.cuh"
#include "harness/peers.hpp"
#include "harness/speed.hpp"
#include "samesum/recipe.hpp"

namespace samesum::harness {
namespace {

constexpr std::size_t workspace_bytes = std::size_t{256} << 20;

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

namespace {

struct Memory {
  std::byte *x = nullptr, *workspace = nullptr, *of_peers = nullptr, *out = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t start = nullptr, stop = nullptr;

  Memory() = default;
  Memory(const Memory&) = delete;
  ~Memory() {
    for (std::byte* p : {x, workspace, of_peers, out}) static_cast<void>(cudaFree(p));
    static_cast<void>(cudaStreamDestroy(stream));
    static_cast<void>(cudaEventDestroy(start));
    static_cast<void>(cudaEventDestroy(stop));
  }
};

class GpuBench : public Bench {
 public:
  GpuBench(const FormatInfo& format, const Dataset& data, std::uint64_t seed, std::size_t most)
      : format_{format},
        block_{speed_block(format, data, seed)},
        bytes_{std::max(most * format.bytes, std::size_t{256} << 20)} {  // enough to be cold in the caches
    check(cudaMalloc(&m_.x, bytes_), "cudaMalloc");
    check(cudaMalloc(&m_.workspace, workspace_bytes), "cudaMalloc");
    check(cudaMalloc(&m_.of_peers, workspace_bytes), "cudaMalloc");  // they do not leave it prepared
    check(cudaMalloc(&m_.out, 64), "cudaMalloc");
    check(cudaStreamCreate(&m_.stream), "cudaStreamCreate");
    check(cudaEventCreate(&m_.start), "cudaEventCreate");
    check(cudaEventCreate(&m_.stop), "cudaEventCreate");
    for (std::size_t done = 0; done < bytes_; done += block_.size())
      check(cudaMemcpy(m_.x + done, block_.data(), std::min(block_.size(), bytes_ - done), cudaMemcpyDefault),
            "cudaMemcpy");
    check(gpu::prepare(m_.workspace, workspace_bytes, m_.stream), "prepare");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  std::vector<Speed> measure(const std::vector<const Variant*>& variants, std::size_t n,
                             SpeedOptions options) override {
    Memory& m = m_;
    struct Method {
      std::string name;
      std::function<void(const std::byte* x)> run;
      std::optional<bool> verified;
      std::vector<double> seconds;
    };
    std::vector<Method> methods;
    const std::size_t bytes = n * format_.bytes;
    for (const Variant* v : variants) {
      if (!v->launch[format_.index]) continue;
      methods.push_back({v->name,
                         [&m, v, n, this](const std::byte* x) {
                           auto* workspace = is_peer(*v) ? m.of_peers : m.workspace;
                           gpu::Call call{x, n, m.out, workspace, workspace_bytes, m.stream};
                           check(static_cast<cudaError_t>(v->launch[format_.index](call)), v->name);
                         },
                         {},
                         {}});
      methods.back().run(m.x);
      std::uint64_t bits = 0;
      check(cudaMemcpyAsync(&bits, m.out, v->format->bytes, cudaMemcpyDefault, m.stream), "cudaMemcpyAsync");
      check(cudaStreamSynchronize(m.stream), "cudaStreamSynchronize");
      // Longer arrays are the tests' business.
      if (!is_peer(*v) && v->promise >= Promise::everywhere && n <= most_verified) {
        const Variant& cpu = find(v->name.substr(0, v->name.find('@')) + "@cpu");
        methods.back().verified = cpu(Values{format_, repeated(n).data(), n}).bits == bits;
      }
    }
    methods.push_back(
        {"read", [&m, bytes](const std::byte* x) { read_all(x, bytes, m.out, m.stream); }, {}, {}});
    // Short runs are repeated between two events, whose own time would count otherwise.
    const int inner = bytes <= (4u << 20) ? 20 : bytes <= (64u << 20) ? 8 : bytes <= (1u << 30) ? 2 : 1;
    // Cold: a place is read again only after all others, which together are several times the L2 cache.
    const std::size_t stride = (bytes + 255) / 256 * 256, places = options.cold ? bytes_ / stride : 1;
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
    std::vector<Speed> speeds;
    for (Method& method : methods)
      speeds.push_back(summary(method.name, method.verified, std::move(method.seconds)));
    return speeds;
  }

 private:
  static constexpr std::size_t most_verified = std::size_t{1} << 24;

  /// The first n elements on the host.
  const std::vector<std::byte>& repeated(std::size_t n) {
    const std::size_t once = block_.size();
    block_.resize(std::max(once, n * format_.bytes));
    for (std::size_t i = once; i < block_.size(); ++i) block_[i] = block_[i - once];
    return block_;
  }

  const FormatInfo& format_;
  std::vector<std::byte> block_;  ///< what x repeats
  std::size_t bytes_;
  Memory m_;
};

}  // namespace

std::unique_ptr<Bench> gpu_bench(const FormatInfo& format, const Dataset& data, std::uint64_t seed,
                                 std::size_t most) {
  if (!gpu::absence().empty()) throw std::runtime_error{gpu::absence()};
  return std::make_unique<GpuBench>(format, data, seed, most);
}

}  // namespace samesum::harness
