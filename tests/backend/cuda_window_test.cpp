/// Reductions on a GPU in a window, exact and on a grid, beside the borders of tiles, leaves and windows.
#include <optional>

#include "cuda_support.hpp"
#include "operation/reduction_support.hpp"

namespace samesum {
namespace {

/// Exact reductions, and reductions on a grid.
std::vector<const Method*> windowed() {
  std::vector<const Method*> all;
  for (const Method* m : reductions_of("cuda"))
    if (m->accumulator == "fixed_point" || m->accumulator == "exact") all.push_back(m);
  return all;
}

/// Elements that spread over some binades, among them zeros of both signs.
std::vector<double> spread(std::size_t n, int binades, std::uint64_t seed) {
  std::vector<double> x = wide(n, binades, seed);
  for (std::size_t i = seed % 16; i < n; i += 16) x[i] = i % 32 < 16 ? 0.0 : -0.0;
  return x;
}

void expect_bits_of_the_cpu(const std::vector<double>& x, const Layout& layout, const std::string& what) {
  std::vector<double> reversed{x.rbegin(), x.rend()};
  for (const Method* m : windowed()) {
    const Method& cpu = find_on("cpu", *m);
    for (const FormatInfo& input : formats) {
      if (is_sanitized && input.index != m->format->index) continue;
      const Array a{input, x}, b{input, reversed};
      EXPECT_EQ(reduce_all(*m, a.values(), b.values(), layout),
                reduce_all(cpu, a.values(), b.values(), layout))
          << m->name << " of " << input.name << ", " << what;
    }
  }
}

TEST(AWindowOnAGpu, GivesTheBitsOfTheCpuForRowsOfEveryLengthAndSpread) {
  SAMESUM_NEEDS_GPU();
  std::uint64_t seed = 0;
  for (const std::size_t n : {1,   4,   7,   8,   9,    31,   32,   33,   100,  128,   129,
                              256, 500, 512, 513, 1000, 1024, 1025, 4097, 8193, 16384, 16385})
    for (const int binades : {2, 40, 70, 250, 700}) {
      if (is_sanitized && (n > 1025 || binades == 40)) continue;
      const std::size_t rows = n < 600 ? 37 : 5;
      expect_bits_of_the_cpu(
          spread(rows * n, binades, ++seed), Layout::rows(rows, n),
          std::to_string(rows) + " rows of " + std::to_string(n) + ", binades: " + std::to_string(binades));
    }
}

TEST(AWindowOnAGpu, GivesTheBitsOfTheCpuForColumnsAndSegments) {
  SAMESUM_NEEDS_GPU();
  std::uint64_t seed = 100;
  for (const int binades : {2, 40, 70, 250})
    for (const auto& [outer, n, inner] :
         {std::array<std::size_t, 3>{1, 8, 300}, {2, 17, 33}, {1, 4097, 9}, {3, 70, 3}}) {
      if (is_sanitized && binades == 40) continue;
      expect_bits_of_the_cpu(
          spread(outer * n * inner, binades, ++seed), Layout::axis(outer, n, inner),
          std::to_string(n) + " x " + std::to_string(inner) + ", binades: " + std::to_string(binades));
    }
  const std::vector<std::uint64_t> offsets{3, 3, 4, 40, 200, 200, 1300, 5400, 5400, 18000, 18001};
  for (const int binades : {2, 70})
    expect_bits_of_the_cpu(spread(18010, binades, ++seed),
                           Layout::segments(offsets.data(), offsets.size() - 1),
                           "segments, binades: " + std::to_string(binades));
}

// Most segments are short, so that few threads share one; others are longer than those, or than a leaf.
TEST(AWindowOnAGpu, GivesTheBitsOfTheCpuForShortSegmentsAmongLongOnes) {
  SAMESUM_NEEDS_GPU();
  std::uint64_t seed = 300;
  for (const std::size_t mean : {1, 6, 40, 100, 200}) {
    const std::vector<std::uint64_t> offsets = uneven_segments(mean);
    for (const int binades : {2, 70, 700})
      expect_bits_of_the_cpu(spread(offsets.back() + 3, binades, ++seed),
                             Layout::segments(offsets.data(), offsets.size() - 1),
                             "mean " + std::to_string(mean) + ", binades: " + std::to_string(binades));
  }
}

// The leading bits of such sums do not determine their results: all elements but one cancel.
TEST(AWindowOnAGpu, GivesTheBitsOfTheCpuForElementsOfAnyExponentsThatCancel) {
  SAMESUM_NEEDS_GPU();
  for (const std::size_t n : {2, 9, 33, 100, 700, 3000}) {
    std::vector<double> x = spread(16 * n, 900, 400 + n);
    for (std::size_t r = 0; r < 16; r += 1 + r % 3)
      for (std::size_t k = 0; k < n / 2; ++k) x[r * n + n - 1 - k] = r * n + k == 50 ? 1 : -x[r * n + k];
    expect_bits_of_the_cpu(x, Layout::rows(16, n), "rows of " + std::to_string(n));
    expect_bits_of_the_cpu(x, Layout::axis(1, 16, n), std::to_string(n) + " columns");
  }
}

TEST(AWindowOnAGpu, GivesTheBitsOfTheCpuWhereAFloatHoldsJustTheSumOfSomeNeighbours) {
  SAMESUM_NEEDS_GPU();
  for (const int binades : {11, 12, 13, 14, 15, 16, 17}) {
    const std::vector<double> x = spread(9 * 1024, binades, 200 + static_cast<std::uint64_t>(binades));
    for (const Layout& layout : {Layout::rows(9, 1024), Layout::rows(18, 512), Layout::axis(1, 1024, 9)})
      expect_bits_of_the_cpu(x, layout,
                             std::to_string(layout.outer) + " x " + std::to_string(layout.n) +
                                 ", binades: " + std::to_string(binades));
  }
}

TEST(AWindowOnAGpu, GivesTheBitsOfTheCpuForThousandsOfParts) {
  SAMESUM_NEEDS_GPU();
  SAMESUM_UNSANITIZED("it takes long");
  constexpr std::size_t n = (std::size_t{1} << 24) + (std::size_t{1} << 19) + 5;
  const Array x{format_info<fp32>(), wide(n, 12, 5)}, y{format_info<fp32>(), uniform(n, 6)};
  for (const char* name : {"sum/fixed_point/fp32", "dot/fixed_point/fp64", "dot/exact/fp32"}) {
    const Method& m = gpu::find(name);
    EXPECT_EQ(reduce_all(m, x.values(), y.values(), Layout::vector(n)),
              reduce_all(find_on("cpu", m), x.values(), y.values(), Layout::vector(n)))
        << name;
  }
}

// Blocks share a row on a grid, and agree on its largest exponent; the last row has an infinity.
TEST(AWindowOnAGpu, GivesTheBitsOfTheCpuForRowsThatSeveralBlocksShare) {
  SAMESUM_NEEDS_GPU();
  for (const auto& [rows, n] : {std::pair{1, 4097}, {16, 4097}, {16, 17'000}, {3, 70'001}, {1, 1'048'581}}) {
    if (is_sanitized && n > 20'000) continue;
    for (const int binades : {2, 70}) {
      const auto count = static_cast<std::size_t>(rows), length = static_cast<std::size_t>(n);
      std::vector<double> x = spread(count * length, binades, length);
      if (rows > 3) x[x.size() - 9] = std::numeric_limits<double>::infinity();
      for (const Method* m : windowed()) {
        if (m->accumulator != "fixed_point") continue;
        const Array a{*m->format, x}, b{*m->format, {x.rbegin(), x.rend()}};
        for (const std::optional<int> grid : {std::optional<int>{}, std::optional{-20}}) {
          if (grid && binades > 2) continue;  // sums would overflow it
          EXPECT_EQ(reduce_all(*m, a.values(), b.values(), Layout::rows(count, length), {.grid = grid}),
                    reduce_all(find_on("cpu", *m), a.values(), b.values(), Layout::rows(count, length),
                               {.grid = grid}))
              << m->name << ", " << rows << " rows of " << n << ", binades: " << binades;
        }
      }
    }
  }
}

// Elements that are all zeros, that grow beyond the window of the first tile, or that are not numbers.
TEST(AWindowOnAGpu, GivesTheBitsOfTheCpuForZerosGrowingAndSpecialElements) {
  SAMESUM_NEEDS_GPU();
  const double infinity = std::numeric_limits<double>::infinity(),
               nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::size_t n : {5, 32, 700, 3000}) {
    std::vector<double> x(12 * n, -0.0);
    const auto row = [&](std::size_t r) { return x.begin() + static_cast<std::ptrdiff_t>(r * n); };
    x[2 * n - 1] = 0.0;
    std::fill_n(row(2), n, 0.0);
    for (std::size_t k = 0; k < n; ++k) {
      row(3)[static_cast<std::ptrdiff_t>(k)] = std::ldexp(1, static_cast<int>(k * 30 / n) - 15);
      row(4)[static_cast<std::ptrdiff_t>(k)] = std::ldexp(-1, 15 - static_cast<int>(k * 30 / n));
      row(5)[static_cast<std::ptrdiff_t>(k)] = k == n / 2 ? infinity : 1;
      row(6)[static_cast<std::ptrdiff_t>(k)] = k == n / 2 ? nan : 1;
      row(7)[static_cast<std::ptrdiff_t>(k)] = k == 0 ? infinity : k + 1 == n ? -infinity : 2;
      row(8)[static_cast<std::ptrdiff_t>(k)] = k % 2 == 0 ? 0x1p-14 : -0x1p-14;
      row(9)[static_cast<std::ptrdiff_t>(k)] = k + 1 == n ? 1 : 0;
      row(10)[static_cast<std::ptrdiff_t>(k)] = 65504;
      row(11)[static_cast<std::ptrdiff_t>(k)] = 3;
    }
    expect_bits_of_the_cpu(x, Layout::rows(12, n), "rows of " + std::to_string(n));
    expect_bits_of_the_cpu(x, Layout::rows(11, n - 1, n),
                           "rows of " + std::to_string(n - 1) + " that are not adjacent");
    expect_bits_of_the_cpu(x, Layout::axis(1, 12, n), "columns of 12");
  }
}

// No row has only zeros, but each product is one.
TEST(AWindowOnAGpu, GivesTheBitsOfTheCpuForProductsThatAreAllMinusZero) {
  SAMESUM_NEEDS_GPU();
  for (const std::size_t n : {2, 32, 700, 3000}) {
    std::vector<double> x(4 * n), y(4 * n);
    for (std::size_t k = 0; k < 4 * n; ++k) {
      x[k] = k % 2 == 0 ? 1 : 0;
      y[k] = k % 2 == 0 ? -0.0 : -1;
    }
    y[2 * n] = 0;       // one product is +0
    y[4 * n - 2] = -1;  // one is not zero
    for (const Method* m : windowed()) {
      if (m->operation != "dot") continue;
      const Array a{*m->format, x}, b{*m->format, y};
      const auto results = reduce_all(*m, a.values(), b.values(), Layout::rows(4, n));
      EXPECT_EQ(results, reduce_all(find_on("cpu", *m), a.values(), b.values(), Layout::rows(4, n)))
          << m->name << ", rows of " << n;
    }
  }
}

}  // namespace
}  // namespace samesum
