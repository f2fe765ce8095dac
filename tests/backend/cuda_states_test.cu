/// States in kernels of the caller have the bits of the library and of the CPU, for any launch shape and any
/// permutation of the elements.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>

#include "backend/cuda_support.hpp"
#include "samesum/states.cuh"
#include "states_support.hpp"

namespace samesum {
namespace {

/// An array in device memory, cleared or with the elements of a vector.
template <class T> class ArrayOnGpu {
 public:
  explicit ArrayOnGpu(std::size_t size) : size_{size}, memory_{device_memory(size * sizeof(T))} { clear(); }
  explicit ArrayOnGpu(const std::vector<T>& x) : ArrayOnGpu(x.size()) {
    if (!x.empty()) succeed(cudaMemcpy(data(), x.data(), x.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  T* data() const { return reinterpret_cast<T*>(memory_.get()); }
  void clear() const { succeed(cudaMemset(memory_.get(), 0, size_ * sizeof(T))); }
  /// Returns a copy, after all kernels have ended.
  std::vector<T> download() const {
    std::vector<T> x(size_);
    succeed(cudaDeviceSynchronize());
    if (size_ > 0) succeed(cudaMemcpy(x.data(), data(), size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return x;
  }

 private:
  std::size_t size_;
  std::shared_ptr<std::byte> memory_;
};

constexpr LaunchShape launch_shapes[] = {{1, 32}, {3, 96}, {7, 256}, {64, 128}, {5, 1024}};

/// Whether the members of all states have the same bytes. There may be padding behind them.
template <class State> bool have_the_same_bytes(const std::vector<State>& a, const std::vector<State>& b) {
  std::size_t bytes = sizeof(State);
  if constexpr (!std::is_same_v<State, FixedPointState>)
    bytes = offsetof(State, flags) + sizeof(std::uint32_t);  // the last member
  return std::ranges::equal(a, b,
                            [=](const State& x, const State& y) { return std::memcmp(&x, &y, bytes) == 0; });
}

__device__ std::size_t own_index() { return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ std::size_t all_threads() { return std::size_t{gridDim.x} * blockDim.x; }

// --- one sum -----------------------------------------------------------------------------------------------

/// How the threads add all elements to one state in global memory.
enum class Way { reduce_blocks, reduce_warps, add_to_shared, add_to_global };

std::ostream& operator<<(std::ostream& out, Way way) {
  return out << (way == Way::reduce_blocks   ? "blocks reduce"
                 : way == Way::reduce_warps  ? "warps reduce"
                 : way == Way::add_to_shared ? "blocks add to shared memory"
                                             : "threads add to global memory");
}

template <Way way, class Sums>
__global__ void __launch_bounds__(1024)
    add_all(Sums sums, const typename Sums::Element* x, std::size_t n, typename Sums::State* total) {
  using State = typename Sums::State;
  __shared__ State of_block;
  if (threadIdx.x == 0) of_block = State{};
  __syncthreads();  // the state of the block is empty
  State own{};
  for (std::size_t i = own_index(); i < n; i += all_threads()) {
    if constexpr (way == Way::add_to_global)
      sums.atomic_add(*total, x[i]);
    else if constexpr (way == Way::add_to_shared)
      sums.atomic_add(of_block, x[i]);
    else
      sums.add(own, x[i]);
  }
  if constexpr (way == Way::reduce_blocks) {
    own = gpu::block_reduce(own);
    if (threadIdx.x == 0) total->atomic_merge(own);
    own = gpu::block_reduce(State{});  // a second reduction may follow at once
    if (threadIdx.x == 0) total->atomic_merge(own);
  } else if constexpr (way == Way::reduce_warps) {
    own = gpu::warp_reduce(own);
    if (threadIdx.x % 32 == 0) total->atomic_merge(own);
  } else if constexpr (way == Way::add_to_shared) {
    __syncthreads();  // all elements of the block are added
    if (threadIdx.x == 0) total->atomic_merge(of_block);
  }
}

template <class Sums>
__global__ void finish_in_all_formats(Sums sums, const typename Sums::State* total, std::size_t n,
                                      std::uint64_t* bits) {
  bits[0] = to_bits(sums.template finish<fp16>(*total, n));
  bits[1] = to_bits(sums.template finish<bf16>(*total, n));
  bits[2] = to_bits(sums.template finish<fp32>(*total, n));
  bits[3] = to_bits(sums.template finish<fp64>(*total, n));
}

/// Expects the state of the CPU, byte for byte, and results of the GPU that are those of the CPU.
template <Way way, class Sums>
void expect_states_of_the_cpu(const Sums& sums, const std::vector<typename Sums::Element>& x,
                              const std::string& name) {
  using State = typename Sums::State;
  std::vector<State> expected(1, State{});
  for (const auto e : x) sums.add(expected[0], e);
  const ArrayOnGpu<typename Sums::Element> elements{x};
  const ArrayOnGpu<State> total{1};
  const ArrayOnGpu<std::uint64_t> results{4};
  for (const LaunchShape& shape : launch_shapes) {
    if (is_sanitized && shape.blocks > 3) continue;
    total.clear();
    add_all<way><<<shape.blocks, shape.threads>>>(sums, elements.data(), x.size(), total.data());
    succeed(cudaGetLastError());
    EXPECT_TRUE(have_the_same_bytes(total.download(), expected))
        << Sums::name << ", " << Format<typename Sums::Element>::name << ", " << name << ", " << x.size()
        << " elements, " << way << ", " << shape;
  }
  finish_in_all_formats<<<1, 1>>>(sums, total.data(), x.size(), results.data());
  succeed(cudaGetLastError());
  const std::vector<std::uint64_t> bits = results.download();
  Formats::for_each([&]<class F>() {
    EXPECT_EQ(bits[format_info<F>().index], to_bits(sums.template finish<F>(expected[0], x.size())))
        << Sums::name << ", " << name << ", " << x.size() << " elements, as " << Format<F>::name;
  });
}

template <class Sums>
void expect_states_of_the_cpu_in_every_way(const Sums& sums, const std::vector<typename Sums::Element>& x,
                                           const std::string& name) {
  expect_states_of_the_cpu<Way::reduce_blocks>(sums, x, name);
  expect_states_of_the_cpu<Way::reduce_warps>(sums, x, name);
  expect_states_of_the_cpu<Way::add_to_shared>(sums, x, name);
  expect_states_of_the_cpu<Way::add_to_global>(sums, x, name);
}

template <class T> class StatesOnTheGpu : public ::testing::Test {};
using FormatsOfKernels = ::testing::Types<fp32, fp64>;
TYPED_TEST_SUITE(StatesOnTheGpu, FormatsOfKernels);

TYPED_TEST(StatesOnTheGpu, AreThoseOfTheCpuForEveryLaunchShape) {
  using T = TypeParam;
  SAMESUM_NEEDS_GPU();
  for (const std::size_t n : {0, 1, 33, 20'000}) {
    if (is_sanitized && n > 1000) continue;
    for (const auto& [name, x] : state_datasets<T>(n)) {
      expect_states_of_the_cpu_in_every_way(ExactSums<T>{}, x, name);
      expect_states_of_the_cpu_in_every_way(SumsOnAGrid<T>{-40}, x, name);
      expect_states_of_the_cpu_in_every_way(SumsInAWindow<T, sizeof(T) / 4 + 1>{{-60, 8}}, x, name);
    }
  }
}

TYPED_TEST(StatesOnTheGpu, HaveTheBitsOfTheLibrary) {
  using T = TypeParam;
  SAMESUM_NEEDS_GPU();
  const auto bits_of = [](const std::string& accumulator, const std::vector<T>& x, std::optional<int> grid) {
    const Method& m = find("sum/" + accumulator + "/" + std::string{Format<T>::name} + "@cpu");
    return m(Values{x}, {.grid = grid}).bits;
  };
  for (const auto& [name, x] : state_datasets<T>(5000)) {
    const ArrayOnGpu<T> elements{x};
    const ArrayOnGpu<ExactState<T>> exact{1};
    add_all<Way::add_to_shared><<<20, 128>>>(ExactSums<T>{}, elements.data(), x.size(), exact.data());
    succeed(cudaGetLastError());
    EXPECT_EQ(to_bits(exact.download()[0].template finish<T>()), bits_of("exact", x, {})) << name;
    if (name == "arbitrary bits" || name == "60 binades") continue;  // beyond the grid
    const ArrayOnGpu<FixedPointState> fixed_point{1};
    add_all<Way::add_to_shared>
        <<<20, 128>>>(SumsOnAGrid<T>{-36}, elements.data(), x.size(), fixed_point.data());
    succeed(cudaGetLastError());
    EXPECT_EQ(to_bits(fixed_point.download()[0].finish<T>(-36, x.size())), bits_of("fixed_point", x, -36))
        << name;
  }
}

// Every thread adds the largest element, and some their opposites: each digit carries many times, while all
// threads of the GPU add to it.
TYPED_TEST(StatesOnTheGpu, CarryWhileAllThreadsAddToThem) {
  using T = TypeParam;
  SAMESUM_NEEDS_GPU();
  const auto bits = BitsOf<T>(Format<T>::infinity - 1);
  std::vector<T> x(is_sanitized ? 20'000 : 2'000'000);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = from_bits<T>(BitsOf<T>(i % 4 == 3 ? bits | Format<T>::sign_bit : i % 4 == 2 ? 0x7f : bits));
  std::vector<ExactState<T>> expected(1, ExactState<T>{});
  for (const T e : x) expected[0].add(e);
  const ArrayOnGpu<T> elements{x};
  const ArrayOnGpu<ExactState<T>> total{1};
  add_all<Way::add_to_global><<<1056, 256>>>(ExactSums<T>{}, elements.data(), x.size(), total.data());
  succeed(cudaGetLastError());
  EXPECT_TRUE(have_the_same_bytes(total.download(), expected)) << "in global memory";
  total.clear();
  add_all<Way::add_to_shared><<<2, 1024>>>(ExactSums<T>{}, elements.data(), x.size(), total.data());
  succeed(cudaGetLastError());
  EXPECT_TRUE(have_the_same_bytes(total.download(), expected)) << "in shared memory";
}

TEST(AnExactStateOnTheGpu, IsThatOfTheFunctionsOfTheLibrary) {
  SAMESUM_NEEDS_GPU();
  const std::vector<double> x = state_datasets<double>(3000)[2].second;
  const OnGpu elements{Values{x}};
  const ArrayOnGpu<gpu::ExactState> state{1};
  std::size_t bytes = 0;
  succeed(gpu::accumulate(nullptr, bytes, elements.values(), state.data()));
  const auto workspace = device_memory(bytes);
  succeed(gpu::prepare(workspace.get(), bytes));
  succeed(gpu::accumulate(workspace.get(), bytes, elements.values(), state.data()));
  add_all<Way::add_to_global><<<3, 64>>>(
      ExactSums<double>{}, static_cast<const double*>(elements.values().data), x.size(), state.data());
  succeed(cudaGetLastError());
  Exact expected;
  for (int i = 0; i < 2; ++i) expected.add(std::span<const double>{x});
  EXPECT_EQ(gpu::download(state.data()).serialise(), expected.serialise());
  EXPECT_EQ(state.download()[0].finish<double>(), expected.result<double>());
}

// --- growing -----------------------------------------------------------------------------------------------

__global__ void add_or_grow(const float* x, std::size_t n, ExponentWindow window, WindowState<2>* narrow,
                            ExactState<float>* wide) {
  for (std::size_t i = own_index(); i < n; i += all_threads())
    if (!narrow->atomic_add(x[i], window)) wide->atomic_add(x[i]);
}
__global__ void finish_grown(const WindowState<2>* narrow, ExponentWindow window, ExactState<float>* wide,
                             float* out) {
  wide->atomic_merge(*narrow, window);
  *out = wide->finish<float>();
}

TEST(AWindowOnTheGpu, GrowsIntoAnExactState) {
  SAMESUM_NEEDS_GPU();
  for (const auto& [name, x] : state_datasets<float>(10'000))
    for (const ExponentWindow& window :
         {ExponentWindow{-40, 0}, ExponentWindow{-90, -30}, ExponentWindow{-149, -60}}) {
      const ArrayOnGpu<float> elements{x}, out{1};
      const ArrayOnGpu<WindowState<2>> narrow{1};
      const ArrayOnGpu<ExactState<float>> wide{1};
      add_or_grow<<<16, 128>>>(elements.data(), x.size(), window, narrow.data(), wide.data());
      finish_grown<<<1, 1>>>(narrow.data(), window, wide.data(), out.data());
      succeed(cudaGetLastError());
      EXPECT_EQ(to_bits(out.download()[0]), to_bits(sum<"exact/fp32">(std::span<const float>{x})))
          << name << ", window from 2^" << window.lowest << " to 2^" << window.top;
      EXPECT_EQ(narrow.download()[0].fell_outside(),
                !std::ranges::all_of(x, [&](float e) { return window.holds(e); }))
          << name;
    }
}

// --- examples ----------------------------------------------------------------------------------------------

/// Deposits particles on a mesh in global memory.
template <class Sums>
__global__ void deposit(Sums sums, const float* x, const float* y, const float* charge, std::size_t n,
                        typename Sums::State* mesh) {
  for (std::size_t p = own_index(); p < n; p += all_threads())
    deposit_cloud(x[p], y[p], charge[p],
                  [&](std::uint32_t cell, float part) { sums.atomic_add(mesh[cell], part); });
}

/// Expects the same bytes in all cells for all launch shapes and permutations, and for a loop on the CPU.
/// Returns the charges of the cells.
template <class Sums> std::vector<float> expect_the_same_mesh(const Sums& sums, Particles particles) {
  using State = typename Sums::State;
  const std::uint64_t most = 4 * particles.size();  // as if all parts were those of one cell
  std::vector<State> expected(Mesh::cells, State{});
  for (std::size_t p = 0; p < particles.size(); ++p)
    particles.deposit(p, [&](std::uint32_t cell, float part) { sums.add(expected[cell], part); });
  std::vector<float> charges;
  for (const State& cell : expected) charges.push_back(sums.template finish<float>(cell, most));

  std::vector<std::size_t> order(particles.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random{2};
  for (int permutation = 0; permutation < 3; ++permutation) {
    Particles permuted = particles;
    for (std::size_t p = 0; p < order.size(); ++p) {
      permuted.x[p] = particles.x[order[p]];
      permuted.y[p] = particles.y[order[p]];
      permuted.charge[p] = particles.charge[order[p]];
    }
    const ArrayOnGpu<float> x{permuted.x}, y{permuted.y}, charge{permuted.charge};
    const ArrayOnGpu<State> mesh{Mesh::cells};
    for (const LaunchShape& shape : launch_shapes) {
      mesh.clear();
      deposit<<<shape.blocks, shape.threads>>>(sums, x.data(), y.data(), charge.data(), permuted.size(),
                                               mesh.data());
      succeed(cudaGetLastError());
      EXPECT_TRUE(have_the_same_bytes(mesh.download(), expected))
          << Sums::name << ", permutation " << permutation << ", " << shape;
    }
    std::ranges::shuffle(order, random);
  }
  return charges;
}

TEST(ParticlesOnAMeshOfTheGpu, HaveTheSameChargesForEveryLaunchShapeAndOrder) {
  SAMESUM_NEEDS_GPU();
  const Particles particles{is_sanitized ? 1000u : 50'000u, 1};
  const std::vector<float> expected = charges_by_key(particles);
  EXPECT_EQ(expect_the_same_mesh(SumsInAWindow<float, 2>{Mesh::window}, particles), expected);
  EXPECT_EQ(expect_the_same_mesh(ExactSums<float>{}, particles), expected);
  const auto by_grid = expect_the_same_mesh(SumsOnAGrid<float>{-24}, particles);
  EXPECT_NE(by_grid, expected);
  for (std::size_t c = 0; c < Mesh::cells; ++c)
    EXPECT_NEAR(by_grid[c], expected[c], 4.0 * static_cast<double>(particles.size()) * 0x1p-25 + 1e-3);
}

constexpr std::uint32_t bins = 40;

/// A histogram with weights: each block adds to bins in shared memory, then these to the bins in global
/// memory.
template <class Sums>
__global__ void histogram(Sums sums, const std::int32_t* bin, const typename Sums::Element* weight,
                          std::size_t n, typename Sums::State* all) {
  using State = typename Sums::State;
  __shared__ State own[bins];
  for (std::uint32_t b = threadIdx.x; b < bins; b += blockDim.x) own[b] = State{};
  __syncthreads();  // all bins are empty
  for (std::size_t i = own_index(); i < n; i += all_threads()) sums.atomic_add(own[bin[i]], weight[i]);
  __syncthreads();  // all weights of the block are added
  for (std::uint32_t b = threadIdx.x; b < bins; b += blockDim.x) all[b].atomic_merge(own[b]);
}

/// Expects the same bytes in all bins for all launch shapes and permutations, and for a loop on the CPU, and
/// the sums by key of the library.
template <class Sums>
void expect_the_same_histogram(const Sums& sums, const std::string& method, std::optional<int> grid,
                               const std::string& name, std::vector<typename Sums::Element> weights) {
  using T = typename Sums::Element;
  using State = typename Sums::State;
  std::vector<std::int32_t> keys(weights.size());
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<std::int32_t>(i * i % 7919 % bins);
  std::vector<State> expected(bins, State{});
  std::vector<std::uint64_t> counts(bins);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    sums.add(expected[static_cast<std::size_t>(keys[i])], weights[i]);
    ++counts[static_cast<std::size_t>(keys[i])];
  }
  std::vector<T> by_key(bins);
  reduce(find("scatter_add/" + method + "/" + std::string{Format<T>::name} + "@cpu"), Values{weights},
         Keys{keys}, Layout::vector(keys.size()), std::span{by_key}, {.grid = grid});
  for (std::size_t b = 0; b < bins; ++b)
    EXPECT_EQ(to_bits(sums.template finish<T>(expected[b], counts[b])), to_bits(by_key[b]))
        << Sums::name << ", " << name << ", bin " << b;
  for (int permutation = 0; permutation < 2; ++permutation) {
    const ArrayOnGpu<std::int32_t> bin{keys};
    const ArrayOnGpu<T> weight{weights};
    const ArrayOnGpu<State> all{bins};
    for (const LaunchShape& shape : launch_shapes) {
      all.clear();
      histogram<<<shape.blocks, shape.threads>>>(sums, bin.data(), weight.data(), weights.size(), all.data());
      succeed(cudaGetLastError());
      EXPECT_TRUE(have_the_same_bytes(all.download(), expected))
          << Sums::name << ", " << name << ", permutation " << permutation << ", " << shape;
    }
    std::ranges::reverse(keys);
    std::ranges::reverse(weights);
  }
}

TYPED_TEST(StatesOnTheGpu, MakeTheSameHistogramForEveryLaunchShapeAndOrder) {
  using T = TypeParam;
  SAMESUM_NEEDS_GPU();
  for (const auto& [name, x] : state_datasets<T>(is_sanitized ? 500 : 30'000)) {
    expect_the_same_histogram(ExactSums<T>{}, "exact", {}, name, x);
    if (name != "20 binades" && name != "1 binade") continue;
    expect_the_same_histogram(SumsInAWindow<T, 2>{{-70, 12}}, "exact", {}, name, x);
    expect_the_same_histogram(SumsOnAGrid<T>{-20}, "fixed_point", -20, name, x);
  }
}

}  // namespace
}  // namespace samesum
