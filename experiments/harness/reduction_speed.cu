#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <functional>
#include <set>

#include "harness/ceiling.cuh"
#include "harness/reduction_speed.hpp"
#include "samesum/gpu_reduction.hpp"
#include "samesum/operation/gpu_softmax.hpp"

namespace samesum::harness {
namespace {

struct Method {
  std::string name;
  std::function<void()> run;
  std::optional<bool> verified = {};
  std::vector<double> seconds = {};
};

struct Memory {
  std::byte* p = nullptr;
  explicit Memory(std::size_t bytes) {
    check(cudaMalloc(&p, std::max<std::size_t>(bytes, 16)), "cudaMalloc");
  }
  ~Memory() { static_cast<void>(cudaFree(p)); }
  Memory(const Memory&) = delete;
};

struct Widen {
  __device__ float operator()(fp16 x) const { return __half2float(__ushort_as_half(x.bits)); }
  __device__ float operator()(bf16 x) const { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }
  __device__ float operator()(float x) const { return x; }
  __device__ double operator()(double x) const { return x; }
};
struct Begin {
  std::size_t n;
  __host__ __device__ std::size_t operator()(std::size_t row) const { return row * n; }
};

/// CUB's sums of rows, in fp32 or wider.
template <class T>
cudaError_t cub_sum(void* workspace, std::size_t& bytes, const T* x, std::size_t rows, std::size_t n,
                    void* out, cudaStream_t stream) {
  using Sum = decltype(Widen{}(T{}));
  const auto values = thrust::make_transform_iterator(x, Widen{});
  if (rows == 1) return cub::DeviceReduce::Sum(workspace, bytes, values, static_cast<Sum*>(out), n, stream);
  const auto begin = thrust::make_transform_iterator(thrust::counting_iterator<std::size_t>{0}, Begin{n});
  return cub::DeviceSegmentedReduce::Sum(workspace, bytes, values, static_cast<Sum*>(out),
                                         static_cast<std::int64_t>(rows), begin, begin + 1, stream);
}

void fill(std::byte* x, std::size_t bytes, const ReductionCell& cell, std::uint64_t seed) {
  const std::vector<std::byte> block = speed_block(*cell.input, *datasets_matching("normal").front(), seed);
  for (std::size_t done = 0; done < bytes; done += block.size())
    check(cudaMemcpy(x + done, block.data(), std::min(block.size(), bytes - done), cudaMemcpyDefault),
          "cudaMemcpy");
}

/// The elements of the result at that place, one after the other, from the GPU.
std::vector<std::byte> column(const ReductionCell& cell, const std::byte* x, std::size_t at) {
  const Layout all = cell.layout();
  const std::size_t bytes = cell.input->bytes;
  const std::byte* first = x + (all.first(at / cell.inner) + at % cell.inner) * bytes;
  std::vector<std::byte> found(cell.n * bytes);
  if (all.stride == 1)
    check(cudaMemcpy(found.data(), first, found.size(), cudaMemcpyDefault), "cudaMemcpy");
  else
    check(cudaMemcpy2D(found.data(), bytes, first, all.stride * bytes, bytes, cell.n, cudaMemcpyDefault),
          "cudaMemcpy2D");
  return found;
}

/// What the CPU makes of one vector; of softmax the row.
std::vector<std::byte> on_cpu(const ReductionMethod& m, const FormatInfo& input,
                              const std::vector<std::byte>& x, const std::vector<std::byte>& y) {
  const std::size_t n = x.size() / input.bytes;
  const std::string name = m.name.substr(0, m.name.find('@')) + "@cpu";
  std::vector<std::byte> result(m.softmax ? x.size() : m.reduction->result_bytes());
  if (m.softmax)
    std::ranges::find(softmax_variants(), name, &SoftmaxVariant::name)
        ->run({&input, x.data(), result.data(), 1, n, n, n, m.softmax->accumulator, m.softmax->log, 0});
  else
    find_reduction(name).run[input.index](
        {x.data(), y.empty() ? nullptr : y.data(), Layout::vector(n), result.data(), {}});
  return result;
}

/// Whether the first and the last result have the bits of the CPU.
bool has_right_bits(const ReductionMethod& m, const ReductionCell& cell, const std::byte* x,
                    const std::byte* y, const std::byte* out) {
  for (const std::size_t at : std::set{std::size_t{0}, cell.layout().results() - 1}) {
    const bool two = cell.operation == "dot";
    const std::vector<std::byte> expected =
        on_cpu(m, *cell.input, column(cell, x, at), two ? column(cell, y, at) : std::vector<std::byte>{});
    std::vector<std::byte> got(expected.size());
    check(cudaMemcpy(got.data(), out + at * got.size(), got.size(), cudaMemcpyDefault), "cudaMemcpy");
    if (got != expected) return false;
  }
  return true;
}

}  // namespace

std::vector<Speed> gpu_reduction_speeds(const ReductionCell& cell,
                                        const std::vector<ReductionMethod>& methods, std::uint64_t seed,
                                        int repeats) {
  const std::size_t bytes = cell.elements() * cell.input->bytes;
  const bool as_many = cell.operation == "softmax";
  const Memory x{bytes}, y{cell.operation == "dot" ? bytes : 0},
      out{as_many ? bytes : cell.outer * cell.inner * 16};
  fill(x.p, bytes, cell, seed);
  if (cell.operation == "dot") fill(y.p, bytes, cell, seed + 1);
  cudaStream_t stream = nullptr;
  cudaEvent_t start = nullptr, stop = nullptr;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  check(cudaEventCreate(&start), "cudaEventCreate");
  check(cudaEventCreate(&stop), "cudaEventCreate");

  std::vector<Method> all;
  const Layout layout = cell.layout();
  std::vector<std::unique_ptr<Memory>> workspaces;
  const auto workspace_of = [&](std::size_t size) {
    workspaces.push_back(std::make_unique<Memory>(size));
    return workspaces.back()->p;
  };
  const auto add_reduction = [&](const Reduction* r) {
    const std::size_t numbers = layout.results() * static_cast<std::size_t>(r->results);
    const Results results = r->gives_index
                                ? Results{std::span{reinterpret_cast<std::int64_t*>(out.p), numbers}}
                                : with_format(*r->format, [&]<class F>() {
                                    return Results{std::span{reinterpret_cast<F*>(out.p), numbers}};
                                  });
    const Values vx{*cell.input, x.p, cell.elements()}, vy{*cell.input, y.p, cell.elements()};
    const auto call = [=](void* workspace, std::size_t& size) {
      return r->inputs == 2 ? gpu::reduce(*r, workspace, size, vx, vy, layout, results, stream)
                            : gpu::reduce(*r, workspace, size, vx, layout, results, stream);
    };
    std::size_t size = 0;
    check(call(nullptr, size), r->name);
    void* workspace = workspace_of(size);
    all.push_back({r->name, [=] {
                     std::size_t s = size;
                     check(call(workspace, s), r->name);
                   }});
    check(cudaMemset(out.p, 0xa5, layout.results() * r->result_bytes()), "cudaMemset");
  };
  const auto add_softmax = [&](const SoftmaxVariant* v) {
    const Matrix in{*cell.input, x.p, cell.outer, cell.n, cell.n};
    const MutableMatrix to{*cell.input, out.p, cell.outer, cell.n, cell.n};
    all.push_back({v->name, [=] {
                     check(gpu::softmax(std::nothrow, in, to, {v->accumulator, v->log, 0}, stream), v->name);
                   }});
    check(cudaMemset(out.p, 0xa5, bytes), "cudaMemset");
  };
  for (const ReductionMethod& m : methods) {
    m.softmax ? add_softmax(m.softmax) : add_reduction(m.reduction);
    all.back().run();
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize after " + m.name);
    all.back().verified = has_right_bits(m, cell, x.p, y.p, out.p);
  }
  if (cell.operation == "sum" && cell.inner == 1)
    with_format(*cell.input, [&]<class T>() {
      const auto call = [&, p = reinterpret_cast<const T*>(x.p)](void* workspace, std::size_t& size) {
        return cub_sum(workspace, size, p, cell.outer, cell.n, out.p, stream);
      };
      std::size_t size = 0;
      check(call(nullptr, size), "cub");
      void* workspace = workspace_of(size);
      all.push_back({"cub/segmented/" + std::string{sizeof(T) == 8 ? "fp64" : "fp32"} + "@peer", [=] {
                       std::size_t s = size;
                       check(call(workspace, s), "cub");
                     }});
    });
  all.push_back({cell.ceiling(), [&] {
                   if (as_many)
                     copy_all(x.p, out.p, bytes, stream);
                   else
                     read_all(x.p, bytes, out.p, stream);
                   if (cell.operation == "dot") read_all(y.p, bytes, out.p, stream);
                 }});
  const int inner = bytes <= (4u << 20) ? 20 : bytes <= (64u << 20) ? 8 : bytes <= (1u << 30) ? 2 : 1;
  for (int repeat = -2; repeat < repeats; ++repeat)  // two to warm up
    for (Method& m : all) {
      m.run();
      check(cudaEventRecord(start, stream), "cudaEventRecord");
      for (int i = 0; i < inner; ++i) m.run();
      check(cudaEventRecord(stop, stream), "cudaEventRecord");
      check(cudaEventSynchronize(stop), "cudaEventSynchronize");
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, start, stop), "cudaEventElapsedTime");
      if (repeat >= 0) m.seconds.push_back(milliseconds * 1e-3 / inner);
    }
  static_cast<void>(cudaEventDestroy(start));
  static_cast<void>(cudaEventDestroy(stop));
  static_cast<void>(cudaStreamDestroy(stream));
  std::vector<Speed> speeds;
  for (Method& m : all) speeds.push_back(summary(m.name, m.verified, std::move(m.seconds)));
  return speeds;
}

}  // namespace samesum::harness
