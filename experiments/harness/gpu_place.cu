#include <array>
#include <cuda/version>

#include "harness/cuda.cuh"
#include "harness/peers.hpp"
#include "harness/place.hpp"

namespace samesum::harness {
namespace {

/// Number of blocks for the kernels below: blocks of 256 threads, 16 bytes per load, eight loads in flight
/// per thread.
std::size_t blocks_for(std::size_t vectors) {
  return std::clamp<std::size_t>((vectors + 2047) / 2048, 1, 1 << 16);
}

/// Reads everything and keeps nothing. `never` is not written, but keeps the loads from being removed.
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

__global__ void __launch_bounds__(256) read_and_write(const uint4* x, uint4* out, std::size_t n) {
  const std::size_t tile = 8 * 256, stride = std::size_t{gridDim.x} * tile;
  for (std::size_t i = std::size_t{blockIdx.x} * tile + threadIdx.x; i < n; i += stride) {
    uint4 v[8];
    for (int k = 0; k < 8; ++k)
      if (i + k * 256 < n) v[k] = x[i + k * 256];
    for (int k = 0; k < 8; ++k)
      if (i + k * 256 < n) out[i + k * 256] = v[k];
  }
}

/// A GPU. All timed work runs in one stream.
class Gpu final : public Place {
  std::shared_ptr<std::byte> memory(std::size_t bytes) const override { return device_memory(bytes); }

  void copy(void* to, const void* from, std::size_t bytes, std::size_t count,
            std::size_t stride) const override {
    if (count == 1)
      check(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
    else
      check(cudaMemcpy2D(to, bytes, from, stride, bytes, count, cudaMemcpyDefault), "cudaMemcpy2D");
  }

  void finish(const std::string& what) const override {
    check(cudaGetLastError(), what);
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize after " + what);
  }

  BoundCall bind(const Call& call) const override {
    gpu::Launch launch{normalised(call)};
    launch.stream = stream_;
    start(launch);  // without a workspace: queries its size
    const std::shared_ptr<std::byte> workspace = prepared_workspace(launch.bytes);
    launch.workspace = workspace.get();
    return [launch, workspace](std::size_t offset) {
      gpu::Launch at = launch;
      at.call = moved(launch.call, offset);
      start(at);
    };
  }

  BoundCall recorded(const BoundCall& run, int calls) const override {
    run(0);  // loads the kernels, which cannot be done while a graph records
    finish("the first run");
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    std::exception_ptr refused;
    try {
      for (int i = 0; i < calls; ++i) run(0);
    } catch (...) {
      refused = std::current_exception();
    }
    const cudaError_t ended = cudaStreamEndCapture(stream_, &graph);
    const std::shared_ptr<CUgraph_st> owner{graph, [](cudaGraph_t g) {
                                              if (g) static_cast<void>(cudaGraphDestroy(g));
                                            }};
    static_cast<void>(cudaGetLastError());  // clears the error of a capture that failed
    if (refused) std::rethrow_exception(refused);
    check(ended, "cudaStreamEndCapture");
    cudaGraphExec_t made = nullptr;
    check(cudaGraphInstantiate(&made, graph, 0), "cudaGraphInstantiate");
    const std::shared_ptr<CUgraphExec_st> replayed{
        made, [](cudaGraphExec_t g) { static_cast<void>(cudaGraphExecDestroy(g)); }};
    return [this, replayed, run](std::size_t) {  // `run` owns the workspace
      check(cudaGraphLaunch(replayed.get(), stream_), "cudaGraphLaunch");
    };
  }

  void read_all(const void* x, std::size_t bytes, int) const override {
    const std::size_t n = std::max<std::size_t>(bytes / 16, 1);
    check(gpu::launch(read_only, blocks_for(n), 256, stream_, static_cast<const uint4*>(x), n,
                      reinterpret_cast<unsigned*>(never_.get())),
          "read");
  }

  void copy_all(const void* x, void* out, std::size_t bytes, int) const override {
    const std::size_t n = std::max<std::size_t>(bytes / 16, 1);
    check(gpu::launch(read_and_write, blocks_for(n), 256, stream_, static_cast<const uint4*>(x),
                      static_cast<uint4*>(out), n),
          "copy");
  }

  double time(const std::function<void()>& runs) const override {
    check(cudaEventRecord(start_, stream_), "cudaEventRecord");
    runs();
    check(cudaGetLastError(), "a kernel");
    check(cudaEventRecord(stop_, stream_), "cudaEventRecord");
    check(cudaEventSynchronize(stop_), "cudaEventSynchronize");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start_, stop_), "cudaEventElapsedTime");
    return milliseconds * 1e-3;
  }

  int warm_up() const override { return 2; }

  /// Short runs are repeated between two events, so that the events themselves do not dominate the time.
  int runs_at_once(const Turn& turn, const Rounds& rounds) const override {
    if (turn.calls > 1) return 1;
    return rounds.bytes <= (4u << 20)    ? 20
           : rounds.bytes <= (64u << 20) ? 8
           : rounds.bytes <= (1u << 30)  ? 2
                                         : 1;
  }

  /// For hot caches, runs the turn once: the caches then hold its data, and no pending writes of other turns.
  void prepare(const Turn& turn, const Rounds& rounds) const override {
    if (rounds.places == 1) turn.run(0);
  }

  Stream stream_;
  Event start_, stop_;
  std::shared_ptr<std::byte> never_ = device_memory(sizeof(unsigned));
};

/// "13.0" of 13000.
std::string version_of_cuda(int v) { return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10); }

std::string toolkit() {
  int runtime = 0;
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  return "CUDA " + version_of_cuda(runtime) + ", CCCL " + std::to_string(CCCL_MAJOR_VERSION) + "." +
         std::to_string(CCCL_MINOR_VERSION) + "." + std::to_string(CCCL_PATCH_VERSION);
}

}  // namespace

std::unique_ptr<Place> gpu_place() {
  if (!gpu::absence().empty()) throw std::runtime_error{gpu::absence()};
  return std::make_unique<Gpu>();
}

std::string gpu_description() {
  cudaDeviceProp device;
  int driver = 0;
  if (!gpu::absence().empty() || cudaGetDeviceProperties(&device, 0) != cudaSuccess ||
      cudaDriverGetVersion(&driver) != cudaSuccess)
    return {};
  return std::string{device.name} + ", driver for CUDA " + version_of_cuda(driver) + ", " + toolkit();
}

std::string gpu_libraries() {
  if (!gpu::absence().empty()) return {};
  std::string all = toolkit();
#ifdef SAMESUM_CUBLAS
  if (const std::string version = cublas_version(); !version.empty()) all += ", cuBLAS " + version;
#endif
  return all;
}

std::string gpu_address() {
  std::array<char, 32> address;
  if (!gpu::absence().empty() || cudaDeviceGetPCIBusId(address.data(), address.size(), 0) != cudaSuccess)
    return {};
  return address.data();
}

}  // namespace samesum::harness
