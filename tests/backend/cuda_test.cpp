/// The GPU gives the bits of the CPU. Without a GPU there is nothing to run, and one test says so.
#include <cstdlib>
#include <memory>
#include <set>
#include <thread>

#include "cases.hpp"
#include "samesum/backend/cuda/call.hpp"

namespace samesum {
namespace {

using namespace testing_support;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Under compute-sanitizer everything takes a hundred times as long.
const bool reduced = std::getenv("SAMESUM_REDUCED_TESTS") != nullptr;

bool gpu_is_there() { return absent().empty(); }

#define SAMESUM_NEEDS_GPU() \
  if (!gpu_is_there()) GTEST_SKIP() << absent()[0].reason

void succeed(cudaError_t code) { ASSERT_EQ(code, cudaSuccess) << cudaGetErrorString(code); }

std::shared_ptr<std::byte> device_memory(std::size_t bytes) {
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

struct LaunchShape {
  int blocks = 0, threads = 0;
};
std::ostream& operator<<(std::ostream& out, LaunchShape s) {
  return out << s.blocks << " blocks of " << s.threads;
}

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

Caller& the_caller() {
  static Caller caller;
  return caller;
}

const Variant& on(std::string_view backend, const Variant& v) {
  return find(recipe_of(v) + "@" + std::string{backend});
}

TEST(TheGpu, IsTestedWhereThereIsOne) {
  SAMESUM_NEEDS_GPU();
  EXPECT_EQ(variants_of("cuda").size(), (3 * Accumulators::size + 3) * Formats::size);
}

TEST(AGpuThatIsNotThere, IsSaidToBeAbsentAndWhy) {
  if (gpu_is_there()) GTEST_SKIP() << "there is one";
  EXPECT_TRUE(variants_of("cuda").empty());
  ASSERT_EQ(absent().size(), 1u);
  EXPECT_EQ(absent()[0].backend, "cuda");
  EXPECT_THAT(absent()[0].reason, HasSubstr("no GPU can be used: "));
  std::size_t bytes = 0;
  float out = 0;
  EXPECT_EQ(gpu::sum(nullptr, bytes, &out, 1, &out), cudaErrorNoDevice);
  EXPECT_EQ(gpu::sum<"tree/kahan/fp32">(nullptr, bytes, &out, 1, &out), cudaErrorNoDevice);
  try {
    gpu::sum(&out, 1, &out);
    FAIL() << "it was found";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("exact/fp32@cuda"), HasSubstr(absent()[0].reason)));
  }
}

class EveryGpuVariant : public ::testing::TestWithParam<const Variant*> {
 protected:
  const Variant& v = *GetParam();
  const Variant& reference = on("reference", v);
  const bool serial = v.order == "serial";
  Caller& caller = the_caller();
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EveryGpuVariant);
INSTANTIATE_TEST_SUITE_P(Cuda, EveryGpuVariant, ::testing::ValuesIn(variants_of("cuda", Promise::everywhere)),
                         test_name);

std::vector<std::size_t> lengths(const Variant& v) {
  std::vector<std::size_t> all{0, 1, 2, 3, 7, 8, 31, 32, 33, 127, 128, 129, 130};
  if (const Shape shape = shape_of(v); shape.leaf != unbounded)
    for (const std::size_t n : {shape.leaf, 2 * shape.leaf, 8 * shape.leaf})
      all.insert(all.end(), {n - 1, n, n + 1, n + shape.leaf / 2});
  if (!reduced) all.insert(all.end(), {1'000'003, (1 << 20) - 1});
  if (!reduced && v.order != "serial") all.push_back((1 << 24) + 1);
  return all;
}

/// The first n of many numbers over twelve binades, which take a while to make.
std::vector<double> first_of_many(std::size_t n) {
  static const std::vector<double> many = wide((std::size_t{1} << 24) + 1, 12, 6);
  return {many.begin(), many.begin() + static_cast<std::ptrdiff_t>(n)};
}

TEST_P(EveryGpuVariant, HasTheBitsOfItsLiteralReadingAtEveryLength) {
  for (const std::size_t n : lengths(v)) {
    const Array x{*v.format, first_of_many(n)};
    EXPECT_EQ(caller.sum(v, OnGpu{x.values()}.values()), reference(x.values())) << "n = " << n;
  }
}

TEST_P(EveryGpuVariant, HasTheBitsOfItsLiteralReadingOnEveryKindOfData) {
  for (const std::size_t n : {std::size_t{100}, std::size_t{70'000}})
    for (const Dataset& d : datasets(n)) {
      const Array x{*v.format, d.x};
      EXPECT_EQ(v(x.values()), reference(x.values())) << d.name << ", n = " << n;
    }
}

TEST_P(EveryGpuVariant, HasTheBitsOfItsLiteralReadingForEveryInputFormat) {
  for (const FormatInfo& input : formats)
    for (const std::size_t n : {std::size_t{130}, std::size_t{8192}, std::size_t{70'001}}) {
      std::vector<double> data = wide(n, 40, n);
      for (std::size_t i = 0; i < n; i += 3) data[i] *= 4 * input.smallest_subnormal;
      const Array x{input, data};
      EXPECT_EQ(caller.sum(v, OnGpu{x.values()}.values()), reference(x.values()))
          << input.name << ", n = " << n;
    }
}

TEST_P(EveryGpuVariant, HasTheSpecialValuesOfItsLiteralReading) {
  for (const testing::Case& c : testing::cases()) {
    const Array x = c.array();
    EXPECT_EQ(caller.sum(v, OnGpu{x.values()}.values()), reference(x.values())) << c;
  }
}

/// Full leaves are summed without a look at each element, and again where one was special.
TEST_P(EveryGpuVariant, HasTheSpecialValuesOfItsLiteralReadingInFullLeavesToo) {
  const double inf = std::numeric_limits<double>::infinity(), most = v.format->max_finite;
  const double ulp = most * v.format->unit_roundoff / (1 - v.format->unit_roundoff);  // of `most`
  struct {
    const char* name;
    double others;
    std::vector<double> first;  // of the second leaf
  } const cases[] = {
      {"all -0", -0.0, {}},
      {"-0, then +0", -0.0, {-0.0, 0.0}},
      {"what rounds to -0", -1e-60, {}},
      {"-0, then what cancels", -0.0, {-0.0, 1, -1}},
      {"inf", 0.5, {inf}},
      {"inf and -inf", 0.5, {inf, -inf}},
      {"NaN", 0.5, {std::numeric_limits<double>::quiet_NaN()}},
      {"overflow", 0.5, {most, most}},
      {"overflow and back", 0.5, {most, most, -most, -most}},
      {"overflow within TwoSum", -0.0, {-1.5 * ulp, most}},
  };
  for (const auto& c : cases) {
    for (const std::size_t apart : {1, 128}) {  // in neighbouring lanes, in one lane
      std::vector<double> data(5 * 4096 + 100, c.others);
      for (std::size_t i = 0; i < c.first.size(); ++i) data[4096 + i * apart] = c.first[i];
      for (const FormatInfo* input : {v.format, &format_info<fp64>()}) {
        const Array x{*input, data};
        EXPECT_EQ(caller.sum(v, OnGpu{x.values()}.values()), reference(x.values()))
            << c.name << ", from " << input->name;
      }
    }
  }
}

TEST_P(EveryGpuVariant, HasTheSameBitsAtEveryAddressAndForEveryLaunchShape) {
  const LaunchShape shapes[] = {{0, 0}, {1, 32}, {7, 64}, {64, 128}, {3, 256}, {5000, 32}};
  // The longest has more than one group of leaves where blocks are small, so that groups meet too.
  const std::size_t longest = (std::size_t{1} << 20) + 5000;
  const std::vector<double> all = uniform(longest, 4);
  for (const std::size_t n : {std::size_t{1000}, std::size_t{12'288}, std::size_t{100'001}, longest}) {
    if (n > 100'000 && serial) continue;
    const std::vector<double> data{all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n)};
    const Array x{*v.format, data};
    const Number expected = reference(x.values());
    for (std::size_t offset = 0; offset * v.format->bytes < 16; ++offset) {
      const OnGpu placed{x.values(), offset};
      if (reduced && offset > 1) break;
      for (const LaunchShape shape : shapes) {
        EXPECT_EQ(caller.sum(v, placed.values(), shape), expected)
            << "n = " << n << ", offset " << offset << ", " << shape;
      }
    }
  }
}

TEST_P(EveryGpuVariant, GivesOneBitPatternInAHundredRuns) {
  if (reduced) GTEST_SKIP() << "only with full sizes";
  const Array x{*v.format, first_of_many(serial ? 1 << 14 : 1 << 24)};
  const OnGpu placed{x.values()};
  std::set<std::uint64_t> seen;
  for (int run = 0; run < 100; ++run) seen.insert(caller.sum(v, placed.values()).bits);
  EXPECT_EQ(seen.size(), 1u);
}

TEST_P(EveryGpuVariant, CanBeCapturedInAGraphAndReplayed) {
  const std::vector<double> first = uniform(100'001, 7), second = wide(100'001, 10, 8);
  const OnGpu placed{Array{*v.format, first}.values()};
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  succeed(cudaStreamBeginCapture(caller.stream(), cudaStreamCaptureModeThreadLocal));
  caller.start(v, placed.values());
  succeed(cudaStreamEndCapture(caller.stream(), &graph));
  succeed(cudaGraphInstantiate(&replay, graph, 0));
  for (const std::vector<double>& data : {first, second, first}) {
    const Array x{*v.format, data};
    placed.fill(x.values());
    succeed(cudaGraphLaunch(replay, caller.stream()));
    EXPECT_EQ(caller.result(v), reference(x.values()));
  }
  succeed(cudaGraphExecDestroy(replay));
  succeed(cudaGraphDestroy(graph));
}

TEST(Streams, ThatRunAtTheSameTimeDoNotDisturbEachOther) {
  SAMESUM_NEEDS_GPU();
  const Array x{format_info<fp32>(), uniform(reduced ? 50'000 : 3'000'001, 9)};
  const OnGpu placed{x.values()};
  std::vector<const Variant*> chosen;
  for (const Variant* v : variants_of("cuda", Promise::everywhere))
    if (v->order != "serial") chosen.push_back(v);
  std::vector<Number> expected;
  for (const Variant* v : chosen) expected.push_back(on("cpu", *v)(x.values()));
  const auto work = [&](std::size_t first) {
    Caller caller;
    for (int round = 0; round < (reduced ? 1 : 10); ++round)
      for (std::size_t k = 0; k < chosen.size(); ++k) {
        const std::size_t i = (first + k) % chosen.size();
        EXPECT_EQ(caller.sum(*chosen[i], placed.values()), expected[i]) << chosen[i]->name;
      }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i) threads.emplace_back(work, 7 * i);
  for (std::thread& thread : threads) thread.join();
}

TEST(ExactOnTheGpu, EqualsTheSumsThatAreKnown) {
  SAMESUM_NEEDS_GPU();
  for (const testing::Case& c : testing::cases()) {
    const Array x = c.array();
    const Variant& exact = gpu::find("exact/" + std::string{c.format->name});
    EXPECT_EQ(the_caller().sum(exact, OnGpu{x.values()}.values()), c.expected()) << c;
  }
}

/// Bits from the generator, so every exponent; where they would mean inf or NaN, one exponent less.
template <class F> std::vector<F> random_bits(std::size_t n, std::mt19937_64& random) {
  constexpr BitsOf<F> exponent_bit = BitsOf<F>(BitsOf<F>{1} << (Format<F>::precision - 1));
  std::vector<F> x(n);
  for (F& e : x) {
    auto bits = static_cast<BitsOf<F>>(random());
    if ((bits & Format<F>::infinity) == Format<F>::infinity) bits = BitsOf<F>(bits & ~exponent_bit);
    e = from_bits<F>(bits);
  }
  return x;
}

TEST(ExactOnTheGpu, EqualsTheCpuOnRandomShortSumsAndOnArbitraryBits) {
  SAMESUM_NEEDS_GPU();
  Formats::for_each([&]<class F>() {
    std::mt19937_64 random{21};
    const std::size_t sums = reduced ? 300 : 100'000, most = 64;
    std::vector<F> x = random_bits<F>(sums + most, random);
    for (std::size_t i = 0; i + 5 < x.size(); i += 3)  // something to cancel
      x[i + random() % 5] = from_bits<F>(BitsOf<F>(to_bits(x[i]) ^ Format<F>::sign_bit));
    const Values all{std::span<const F>{x}};
    const OnGpu placed{all};
    const auto out = device_memory(sums * sizeof(F));
    auto* results = reinterpret_cast<F*>(out.get());
    const auto* data = static_cast<const F*>(placed.values().data);
    const auto length = [&](std::size_t i) { return i % most; };
    std::size_t bytes = 1;
    for (std::size_t i = 0; i < sums; ++i)
      ASSERT_EQ(gpu::sum(out.get(), bytes, data + i, length(i), results + i), cudaSuccess);
    std::vector<F> got(sums);
    succeed(cudaMemcpy(got.data(), results, sums * sizeof(F), cudaMemcpyDeviceToHost));
    for (std::size_t i = 0; i < sums; ++i) {
      Exact expected;
      expected.add(std::span<const F>{x}.subspan(i, length(i)));
      ASSERT_EQ(to_bits(got[i]), to_bits(expected.result<F>())) << Format<F>::name << ", sum " << i;
    }
    // And all of them together, rounded to every format.
    for (const FormatInfo& format : formats) {
      const Variant& exact = gpu::find("exact/" + std::string{format.name});
      EXPECT_EQ(the_caller().sum(exact, placed.values()), on("cpu", exact)(all)) << exact.name;
    }
  });
}

template <class F> F with_fields(unsigned exponent, unsigned fraction) {
  return from_bits<F>(static_cast<BitsOf<F>>(exponent << (Format<F>::precision - 1) | fraction));
}

/// Neighbours of 16 bits that fp32 just holds without a rounding, or just does not.
TEST(ExactOnTheGpu, LosesNothingOfNeighboursFarFromEachOther) {
  SAMESUM_NEEDS_GPU();
  const auto check = [&]<class F>() {
    constexpr unsigned binades = 21 - Format<F>::precision, fraction = (1u << (Format<F>::precision - 1)) - 1;
    for (unsigned apart = binades - 1; apart <= binades + 1; ++apart) {
      std::vector<F> x;
      for (unsigned low = 0; low + apart < 2 * Format<F>::max_exponent + 1; ++low)
        for (unsigned small = 1; small < 8; ++small)  // of eight
          for (unsigned i = 0; i < 8; ++i)
            x.push_back(with_fields<F>(i < small ? low : low + apart, fraction - (i == 0 ? low % 3 : 0)));
      const Values values{std::span<const F>{x}};
      const Variant& exact = gpu::find("exact/fp64");
      EXPECT_EQ(the_caller().sum(exact, OnGpu{values}.values()), on("cpu", exact)(values))
          << Format<F>::name << ", " << apart << " binades apart";
    }
  };
  check.operator()<fp16>();
  check.operator()<bf16>();
}

/// Sums of neighbours as large as they may be beside their smallest element, which is the largest of its bin;
/// then more of them than a bin takes.
TEST(ExactOnTheGpu, LosesNothingWhereSumsOfNeighboursFillABin) {
  SAMESUM_NEEDS_GPU();
  const bf16 large = with_fields<bf16>(36, 127), small = with_fields<bf16>(23, 127);
  for (const std::size_t vectors : {256 * 4092, 256 * 5000}) {  // of 8, by 256 threads
    std::vector<bf16> x(8 * vectors, large);
    for (std::size_t i = 0; i < x.size(); i += 8) x[i] = small;
    const Values values{std::span<const bf16>{x}};
    const double of_vector = 7 * convert<double>(large) + convert<double>(small);
    EXPECT_EQ(the_caller().sum(gpu::find("exact/fp64"), OnGpu{values}.values(), {1, 0}).to_double(),
              static_cast<double>(vectors) * of_vector);
  }
}

TEST(AMeeting, CountsWhoHasComeBesideWhatTheyBring) {
  using gpu::Meeting;
  std::uint64_t word = 0, flags = 0;
  std::int64_t sum = 0;
  for (unsigned block = 1; block <= Meeting::most_blocks; ++block) {
    const std::int64_t brought = (block % 3 == 0 ? 1 : -1) * (std::int64_t{1} << 33) - block;
    sum += brought;
    word += static_cast<std::uint64_t>(brought) + Meeting::one;
    flags += Meeting::counters(0x1f) + Meeting::one;
    ASSERT_EQ(Meeting::arrivals(word), block);
    ASSERT_EQ(Meeting::arrivals(flags), block);
    ASSERT_EQ(Meeting::sum(word), sum);
  }
  EXPECT_EQ(Meeting::flags(Meeting::sum(flags)), 0x1eu);
  for (unsigned f = 0; f < 0x20; f += 2) EXPECT_EQ(Meeting::flags(Meeting::sum(Meeting::counters(f))), f);
}

/// The largest value of each exponent, and as many of it as a thread may get: of some, a bin is full then.
TEST(ExactOnTheGpu, LosesNothingWhereABinIsFull) {
  SAMESUM_NEEDS_GPU();
  Formats::for_each([&]<class F>() {
    if constexpr (!std::is_same_v<F, fp64>) {
      const std::size_t n = 256 * (std::is_same_v<F, fp16> ? 2032 : 4080);
      std::vector<F> x(n);
      for (unsigned field = 0; field < 2 * Format<F>::max_exponent + 1; ++field) {
        if (reduced && field % 8 != 7) continue;
        const auto bits = BitsOf<F>(((BitsOf<F>(field) + 1u) << (Format<F>::precision - 1)) - 1u);
        for (const double sign : {1.0, -1.0}) {
          const double value = sign * convert<double>(from_bits<F>(bits));
          std::ranges::fill(x, convert<F>(value));
          const Values values{std::span<const F>{x}};
          EXPECT_EQ(the_caller().sum(gpu::find("exact/fp64"), OnGpu{values}.values(), {1, 0}).to_double(),
                    value * static_cast<double>(n))
              << Format<F>::name << ", exponent field " << field;
        }
      }
    }
  });
}

TEST(ExactOnTheGpu, AddsTheLargestNumbersOfFp64) {
  SAMESUM_NEEDS_GPU();
  const Variant& exact = gpu::find("exact/fp64");
  for (std::uint64_t field = 2030; field < 2047; ++field)
    for (const std::uint64_t below : {0u, 1u, 2u})
      for (const double sign : {1.0, -1.0}) {
        const double x = sign * from_bits<double>(((field + 1) << 52) - 1 - below);
        for (const std::vector<double>& data :
             {std::vector<double>{x, 0}, {x, -x, x, 0x1p-1074}, {x / 2, x / 2, 1, 0}}) {
          Exact expected;
          expected.add(std::span<const double>{data});
          EXPECT_EQ(the_caller().sum(exact, OnGpu{Values{data}}.values()),
                    Number::of(expected.result<double>()))
              << x;
        }
      }
}

TEST(AnExactStateOnTheGpu, IsTheSameForAnyPartition) {
  SAMESUM_NEEDS_GPU();
  std::mt19937_64 random{22};
  Caller caller;
  const auto memory = device_memory(2 * sizeof(gpu::ExactState) + 8), workspace = device_memory(1 << 16);
  auto* state = reinterpret_cast<gpu::ExactState*>(memory.get());
  std::size_t bytes = 1 << 16;
  succeed(gpu::prepare(workspace.get(), bytes, caller.stream()));
  for (const FormatInfo& input : formats) {
    const Array x{input, wide(50'000, 20, 3)};
    const OnGpu placed{x.values()};
    const auto expected = accumulate(x.values());
    for (int round = 0; round < 10; ++round) {
      succeed(cudaMemsetAsync(state, 0, 2 * sizeof *state, caller.stream()));
      for (std::size_t at = 0; at < 50'000;) {
        const std::size_t n = std::min<std::size_t>(random() % 30'000, 50'000 - at);
        const auto* first = static_cast<const std::byte*>(placed.values().data) + at * input.bytes;
        succeed(gpu::accumulate(workspace.get(), bytes, {input, first, n}, state + random() % 2,
                                caller.stream()));
        at += n;
      }
      succeed(gpu::merge(state, state + 1, caller.stream()));
      EXPECT_EQ(gpu::download(state, caller.stream()).serialise(), expected.serialise()) << input.name;
    }
    auto* out = memory.get() + 2 * sizeof *state;
    succeed(gpu::round(state, format_info<fp32>(), out, caller.stream()));
    float rounded = 0;
    succeed(cudaMemcpyAsync(&rounded, out, sizeof rounded, cudaMemcpyDeviceToHost, caller.stream()));
    succeed(cudaStreamSynchronize(caller.stream()));
    EXPECT_EQ(rounded, expected.result<float>());
  }
}

/// Elements i of so many, cheap to make and never the same twice in a row: a SplitMix64 step as 24 bits.
float element_of_many(std::size_t i) {
  std::uint64_t z = i * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  return static_cast<float>(static_cast<std::int64_t>(z) >> 40) * 0x1p-23f;
}

/// Runs fill(first, last) on every core.
template <class Fill> void in_parallel(std::size_t n, Fill fill) {
  std::vector<std::thread> threads;
  const std::size_t parts = std::max(1u, std::thread::hardware_concurrency());
  for (std::size_t p = 0; p < parts; ++p) threads.emplace_back(fill, n * p / parts, n * (p + 1) / parts);
  for (std::thread& thread : threads) thread.join();
}

const bool long_tests = std::getenv("SAMESUM_LONG_TESTS") != nullptr;

TEST(LongArrays, HaveTheBitsOfTheCpu) {
  SAMESUM_NEEDS_GPU();
  if (!long_tests) GTEST_SKIP() << "set SAMESUM_LONG_TESTS=1; it takes a minute and 40 GB";
  const std::size_t most = (std::size_t{1} << 32) + 7;
  std::vector<float> x(most);
  in_parallel(most, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) x[i] = element_of_many(i);
  });
  const OnGpu placed{Values{x}};
  for (const std::size_t n : {(std::size_t{1} << 27) - 3, std::size_t{1} << 30, (std::size_t{1} << 31) - 1,
                              (std::size_t{1} << 31) + 5, most})
    for (const char* recipe :
         {"exact/fp32", "exact/fp64", "tree/plain/fp32", "tree/kahan/fp32", "tree/plain/bf16",
          "pairwise/plain/fp32", "pairwise/kahan/fp32", "pairwise/plain/bf16"}) {
      const Variant& v = gpu::find(recipe);
      EXPECT_EQ(the_caller().sum(v, {format_info<fp32>(), placed.values().data, n}),
                on("cpu", v)(Values{format_info<fp32>(), x.data(), n}))
          << v.name << ", n = " << n;
    }
}

TEST(LongArrays, HaveTheExactSumsThatAreKnown) {
  SAMESUM_NEEDS_GPU();
  if (!long_tests) GTEST_SKIP() << "set SAMESUM_LONG_TESTS=1; it takes a minute and 12 GB";
  const std::size_t billion = std::size_t{1} << 30, ones = (std::size_t{1} << 31) - 1;
  const auto exact = [](const FormatInfo& format, const OnGpu& x, std::size_t n) {
    const Variant& v = gpu::find("exact/" + std::string{format.name});
    return the_caller().sum(v, {*x.values().format, x.values().data, n});
  };
  std::vector<float> x(ones, 0.0f);
  const OnGpu placed{Values{x}};
  EXPECT_EQ(exact(format_info<fp32>(), placed, billion).bits, 0u);
  std::ranges::fill(x, -0.0f);
  placed.fill(x);
  EXPECT_EQ(exact(format_info<fp32>(), placed, billion).bits, Format<fp32>::sign_bit);
  std::ranges::fill(x, 1.0f);
  placed.fill(x);
  EXPECT_EQ(exact(format_info<fp64>(), placed, ones).to_double(), static_cast<double>(ones));
  x[billion / 3] = std::numeric_limits<float>::infinity();
  placed.fill(x);
  EXPECT_EQ(exact(format_info<fp32>(), placed, ones).bits, Format<fp32>::infinity);

  std::vector<fp16> half(billion);
  for (std::size_t i = 0; i < billion; ++i) half[i] = from_bits<fp16>(i % 8 < 4 ? 0x77d0 : 0xf7d0);
  const OnGpu halves{Values{half}};  // 32000 four times, -32000 four times
  EXPECT_EQ(exact(format_info<fp16>(), halves, billion).bits, 0u);
  EXPECT_EQ(exact(format_info<fp64>(), halves, billion - 4).to_double(), 128'000);
  std::ranges::fill(half, from_bits<fp16>(0x7bff));
  halves.fill(half);
  EXPECT_EQ(exact(format_info<fp64>(), halves, billion).to_double(), 65504 * 0x1p30);
}

class AtomicOnTheGpu : public ::testing::TestWithParam<const Variant*> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AtomicOnTheGpu);
std::vector<const Variant*> atomic_variants() {
  std::vector<const Variant*> chosen;
  for (const Variant* v : variants_of("cuda"))
    if (v->promise == Promise::none) chosen.push_back(v);
  return chosen;
}
INSTANTIATE_TEST_SUITE_P(Cuda, AtomicOnTheGpu, ::testing::ValuesIn(atomic_variants()), test_name);

TEST_P(AtomicOnTheGpu, MissesNoElement) {
  const Variant& v = *GetParam();
  // Every partial sum is exact, so that any order gives the same.
  for (const std::size_t n : {0, 1, 100, 2047, 100'000}) {
    std::vector<double> data(n, 0.0);
    for (std::size_t i = 0; i < std::min<std::size_t>(n, 200); ++i) data[i * (n / 200)] += 1;
    double sum = 0;
    for (const double x : data) sum += x;
    for (const FormatInfo& input : formats)
      EXPECT_EQ(the_caller().sum(v, OnGpu{Array{input, data}.values()}.values()).to_double(), sum)
          << input.name << ", n = " << n;
  }
  const Array zeros{*v.format, std::vector<double>(5000, -0.0)};
  EXPECT_EQ(the_caller().sum(v, OnGpu{zeros.values()}.values()).bits, v.format->sign_bit);
}

TEST_P(AtomicOnTheGpu, GivesSeveralBitPatternsInAHundredRuns) {
  if (reduced) GTEST_SKIP() << "only with full sizes";
  const Variant& v = *GetParam();
  const Array x{*v.format, first_of_many(1 << 24)};
  const OnGpu placed{x.values()};
  std::set<std::uint64_t> seen;
  for (int run = 0; run < 100 && seen.size() < 2; ++run)
    seen.insert(the_caller().sum(v, placed.values()).bits);
  EXPECT_GT(seen.size(), 1u);
}

TEST_P(AtomicOnTheGpu, StaysWithinItsBoundWhereAtomicsFlushSubnormals) {
  const Variant& v = *GetParam();
  for (const double scale : {1.0, v.format->smallest_subnormal * 64}) {
    std::vector<double> data = uniform(100'000, 11);
    for (double& e : data) e *= scale;
    const Array x{*v.format, data};
    const Number got = the_caller().sum(v, OnGpu{x.values()}.values());
    const double truth = on("cpu", find("exact/fp64"))(x.values()).to_double();
    double magnitudes = 0;
    for (const double e : data) magnitudes += std::abs(e) + v.format->smallest_subnormal;
    EXPECT_LE(std::abs(got.to_double() - truth), v.bound(*v.format, data.size(), magnitudes, got)) << scale;
  }
}

TEST(TheRegistrysGpuVariants, TakeHostAndDeviceDataAlike) {
  SAMESUM_NEEDS_GPU();
  std::vector<float> x{1, 2, 3};
  EXPECT_EQ(sum<"tree/kahan/fp32@cuda">(x), 6);
  EXPECT_EQ(find("exact/fp32@cuda")(std::vector<float>{}).as<float>(), 0);
  const OnGpu placed{Values{x}};
  const Variant& tree = find("tree/plain/fp32@cuda");
  EXPECT_EQ(tree.place(placed.values()).values.data, placed.values().data);
  EXPECT_EQ(tree(placed.values()).as<float>(), 6);
  const Job job = tree.bind(x);
  x[0] = 100;  // it was copied
  EXPECT_EQ(job().as<float>(), 6);
  EXPECT_EQ(job().as<float>(), 6);
}

TEST(TheGpuInterface, SumsWithAndWithoutAWorkspaceOfTheCallers) {
  SAMESUM_NEEDS_GPU();
  const std::vector<double> data = wide(1'000'000, 10, 12);
  const Array host{format_info<fp32>(), data};
  const OnGpu placed{host.values()};
  const auto* x = static_cast<const float*>(placed.values().data);
  const auto memory = device_memory(8);
  auto* out = reinterpret_cast<float*>(memory.get());
  const auto result = [&] {
    float value = 0;
    succeed(cudaMemcpy(&value, out, sizeof value, cudaMemcpyDeviceToHost));
    return value;
  };
  std::size_t bytes = 0;
  succeed(gpu::sum<"pairwise/kahan/fp32">(nullptr, bytes, x, data.size(), out));
  const auto workspace = device_memory(bytes);
  succeed(gpu::prepare(workspace.get(), bytes));
  for (int i = 0; i < 3; ++i) {
    succeed(gpu::sum<"pairwise/kahan/fp32">(workspace.get(), bytes, x, data.size(), out));
    EXPECT_EQ(result(), sum<"pairwise/kahan/fp32">(host.values()));
  }
  gpu::sum<"tree/plain/fp32">(x, data.size(), out);
  EXPECT_EQ(result(), sum<"tree/plain/fp32">(host.values()));
  gpu::sum(x, data.size(), out);
  EXPECT_EQ(result(), find("exact/fp32")(host.values()).as<float>());
  gpu::sum(x, 100, out);  // without a workspace
  EXPECT_EQ(result(), sum(std::span{static_cast<const float*>(host.values().data), 100}));
}

TEST(TheGpuInterface, RefusesBadArgumentsAndGoesOn) {
  SAMESUM_NEEDS_GPU();
  const auto memory = device_memory(std::size_t{1} << 22);
  auto* x = reinterpret_cast<float*>(memory.get());
  succeed(cudaMemset(x, 0, std::size_t{1} << 22));
  const std::size_t n = 1 << 20;
  const auto out_memory = device_memory(8);
  auto* out = reinterpret_cast<float*>(out_memory.get());
  std::size_t bytes = 0;
  succeed(gpu::sum(nullptr, bytes, x, n, out));
  const auto workspace = device_memory(bytes);
  succeed(gpu::prepare(workspace.get(), bytes));
  const auto misaligned = reinterpret_cast<float*>(memory.get() + 1);

  std::size_t too_few = bytes - 1;
  EXPECT_EQ(gpu::sum(workspace.get(), too_few, x, n, out), cudaErrorInvalidValue);
  EXPECT_EQ(gpu::sum(workspace.get(), bytes, static_cast<float*>(nullptr), n, out), cudaErrorInvalidValue);
  EXPECT_EQ(gpu::sum(workspace.get(), bytes, misaligned, 100, out), cudaErrorInvalidValue);
  EXPECT_EQ(gpu::sum(workspace.get(), bytes, x, n, static_cast<float*>(nullptr)), cudaErrorInvalidValue);
  EXPECT_EQ(gpu::sum(workspace.get(), bytes, x, n, misaligned), cudaErrorInvalidValue);
  EXPECT_EQ(gpu::sum(workspace.get() + 1, bytes, x, n, out), cudaErrorInvalidValue);
  EXPECT_EQ(gpu::sum(workspace.get(), bytes, x, std::size_t{1} << 39, out), cudaErrorInvalidValue);
  std::size_t asked = 0;
  EXPECT_EQ(gpu::sum(nullptr, asked, static_cast<float*>(nullptr), n, out), cudaSuccess) << "only the size";
  EXPECT_EQ(gpu::sum(nullptr, asked, x, (std::size_t{1} << 39) - 1, out), cudaSuccess);
  EXPECT_EQ(gpu::sum<"atomic/plain/fp32">(nullptr, asked, x, (std::size_t{1} << 39) - 1, out), cudaSuccess);
  EXPECT_EQ(asked, gpu::header_bytes);
  EXPECT_EQ(gpu::accumulate(nullptr, asked, {format_info<float>(), nullptr, SIZE_MAX}, nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(gpu::sum(find("exact/fp32@cpu"), workspace.get(), bytes, {format_info<float>(), x, n}, out),
            cudaErrorInvalidValue);
  EXPECT_EQ(gpu::prepare(nullptr, bytes), cudaErrorInvalidValue);
  EXPECT_EQ(gpu::accumulate(workspace.get(), bytes, {format_info<float>(), x, n}, nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(gpu::merge(nullptr, nullptr), cudaErrorInvalidValue);
  const auto* askew = reinterpret_cast<gpu::ExactState*>(memory.get() + 4);
  EXPECT_EQ(gpu::round(askew, format_info<float>(), out), cudaErrorInvalidValue);
  EXPECT_EQ(gpu::round(nullptr, format_info<float>(), out), cudaErrorInvalidValue);

  const auto message = [&](auto call) -> std::string {
    try {
      call();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "(no error)";
  };
  EXPECT_EQ(message([&] { gpu::sum(static_cast<float*>(nullptr), 3, out); }),
            "samesum: x is null but has 3 elements");
  EXPECT_THAT(message([&] { gpu::sum(misaligned, 3, out); }), HasSubstr("x is not aligned"));
  EXPECT_THAT(message([&] { gpu::sum(x, 3, static_cast<float*>(nullptr)); }), HasSubstr("out is null"));
  EXPECT_THAT(message([&] {
                gpu::sum(find("tree/plain/fp32"), Values{format_info<float>(), x, 3}, out);
              }),
              HasSubstr("take tree/plain/fp32@cuda"));
  EXPECT_THAT(message([&] { gpu::find("tree/plain/fp32@cpu"); }), HasSubstr("does not run on a GPU"));

  // The next call works.
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  succeed(gpu::sum(workspace.get(), bytes, x, n, out));
  succeed(cudaDeviceSynchronize());
}

TEST(TheGpuInterface, SaysWhatMemoryThereWasNotAndGoesOn) {
  SAMESUM_NEEDS_GPU();
  const float one = 1;  // is not read: the copy's memory is asked for first
  try {
    find("tree/plain/fp32@cuda")(Values{format_info<float>(), &one, std::size_t{1} << 42});
    FAIL() << "2^44 bytes were found";
  } catch (const gpu::Error& error) {
    EXPECT_EQ(error.code(), cudaErrorMemoryAllocation);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("cudaMalloc of 17592186044416 bytes"), HasSubstr("memory")));
  }
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(find("tree/plain/fp32@cuda")(std::vector<float>{1, 2}).as<float>(), 3);
}

TEST(TheGpuInterface, IsNotDisturbedByAnErrorThatSomebodyLeftBehind) {
  SAMESUM_NEEDS_GPU();
  void* ignored = nullptr;
  EXPECT_EQ(cudaMalloc(&ignored, std::size_t{1} << 50), cudaErrorMemoryAllocation);
  EXPECT_EQ(find("exact/fp32@cuda")(std::vector<float>{1, 2}).as<float>(), 3);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation) << "it is still theirs to find";
}

TEST(TheGpuInterface, ReportsAnErrorThatNoCallCanRecoverFrom) {
  SAMESUM_NEEDS_GPU();
  if (reduced) GTEST_SKIP() << "a sanitizer would report what this does on purpose";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto read_where_nothing_is = [] {
    void* out = nullptr;
    static_cast<void>(cudaMalloc(&out, 8));
    auto* nowhere = reinterpret_cast<const float*>(std::uintptr_t{1} << 60);
    gpu::sum(nowhere, 100, static_cast<float*>(out));
    static_cast<void>(cudaDeviceSynchronize());
    try {
      find("tree/plain/fp32@cuda")(std::vector<float>{1, 2});
    } catch (const gpu::Error& error) {
      std::fputs(error.what(), stderr);
      std::_Exit(3);
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(read_where_nothing_is(), ::testing::ExitedWithCode(3), "samesum: .* failed: .*");
}

}  // namespace
}  // namespace samesum
