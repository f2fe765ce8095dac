/// Exact sums on the GPU: data at the limits of bins, neighbour sums and digits, in any partition.
#include "backend/cuda_support.hpp"

namespace samesum {
namespace {

TEST(ExactOnTheGpu, EqualsTheKnownSums) {
  SAMESUM_NEEDS_GPU();
  for (const testing::Case& c : testing::cases()) {
    const Array x = c.array();
    const Method& exact = gpu::find("exact/" + std::string{c.format->name});
    EXPECT_EQ(the_caller().sum(exact, OnGpu{x.values()}.values()), c.expected()) << c;
  }
}

/// Returns numbers of random bits, hence of every exponent. Infinities and NaNs are made finite by clearing
/// the lowest bit of the exponent.
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
    const std::size_t sums = is_sanitized ? 300 : 100'000, most = 64;
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
    // The sum of all elements, rounded to every format.
    for (const FormatInfo& format : formats) {
      const Method& exact = gpu::find("exact/" + std::string{format.name});
      EXPECT_EQ(the_caller().sum(exact, placed.values()), find_on("cpu", exact)(all)) << exact.name;
    }
  });
}

template <class F> F with_fields(unsigned exponent, unsigned fraction) {
  return from_bits<F>(static_cast<BitsOf<F>>(exponent << (Format<F>::precision - 1) | fraction));
}

/// Neighbours of 16 bits whose sum fp32 just holds, or just does not hold, without a rounding.
TEST(ExactOnTheGpu, LosesNoBitIfNeighboursDifferByManyBinades) {
  SAMESUM_NEEDS_GPU();
  const auto check = [&]<class F>() {
    constexpr unsigned binades = 21 - Format<F>::precision, fraction = (1u << (Format<F>::precision - 1)) - 1;
    for (unsigned apart = binades - 1; apart <= binades + 1; ++apart) {
      std::vector<F> x;
      for (unsigned low = 0; low + apart < 2 * Format<F>::max_exponent + 1; ++low)
        for (unsigned small = 1; small < 8; ++small)  // number of small elements among eight
          for (unsigned i = 0; i < 8; ++i)
            x.push_back(with_fields<F>(i < small ? low : low + apart, fraction - (i == 0 ? low % 3 : 0)));
      const Values values{std::span<const F>{x}};
      const Method& exact = gpu::find("exact/fp64");
      EXPECT_EQ(the_caller().sum(exact, OnGpu{values}.values()), find_on("cpu", exact)(values))
          << Format<F>::name << ", " << apart << " binades apart";
    }
  };
  check.operator()<fp16>();
  check.operator()<bf16>();
}

/// The sums of neighbours are as large as possible beside their smallest element, which is the largest of its
/// bin. The second array has more of them than a bin holds.
TEST(ExactOnTheGpu, LosesNoBitIfSumsOfNeighboursFillABin) {
  SAMESUM_NEEDS_GPU();
  const bf16 large = with_fields<bf16>(36, 127), small = with_fields<bf16>(23, 127);
  for (const std::size_t vectors : {256 * 4092, 256 * 5000}) {  // of 8 elements, for 256 threads
    std::vector<bf16> x(8 * vectors, large);
    for (std::size_t i = 0; i < x.size(); i += 8) x[i] = small;
    const Values values{std::span<const bf16>{x}};
    const double of_vector = 7 * convert<double>(large) + convert<double>(small);
    EXPECT_EQ(the_caller().sum(gpu::find("exact/fp64"), OnGpu{values}.values(), {1, 0}).to_double(),
              static_cast<double>(vectors) * of_vector);
  }
}

TEST(GridDigits, CountArrivalsBesideTheirSums) {
  using gpu::GridDigits;
  std::uint64_t word = 0, flags = 0;
  std::int64_t sum = 0;
  for (unsigned block = 1; block <= GridDigits::most_blocks; ++block) {
    const std::int64_t brought = (block % 3 == 0 ? 1 : -1) * (std::int64_t{1} << 33) - block;
    sum += brought;
    word += static_cast<std::uint64_t>(brought) + GridDigits::one;
    flags += GridDigits::counters(0x1f) + GridDigits::one;
    ASSERT_EQ(GridDigits::arrivals(word), block);
    ASSERT_EQ(GridDigits::arrivals(flags), block);
    ASSERT_EQ(GridDigits::sum(word), sum);
  }
  EXPECT_EQ(GridDigits::flags(GridDigits::sum(flags)), 0x1eu);
  for (unsigned f = 0; f < 0x20; f += 2)
    EXPECT_EQ(GridDigits::flags(GridDigits::sum(GridDigits::counters(f))), f);
}

/// Adds the largest value of each exponent as often as a thread may receive it. For some exponents this fills
/// a bin.
TEST(ExactOnTheGpu, LosesNoBitIfABinIsFull) {
  SAMESUM_NEEDS_GPU();
  Formats::for_each([&]<class F>() {
    if constexpr (!std::is_same_v<F, fp64>) {
      const std::size_t n = 256 * (std::is_same_v<F, fp16> ? 2032 : 4080);
      std::vector<F> x(n);
      for (unsigned field = 0; field < 2 * Format<F>::max_exponent + 1; ++field) {
        if (is_sanitized && field % 8 != 7) continue;
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
  const Method& exact = gpu::find("exact/fp64");
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

}  // namespace
}  // namespace samesum
