/// Exact reductions of rows and columns on a CPU: the loops that add in windows, and what does not fit there,
/// have the bits of the definition.
#include <algorithm>
#include <random>

#include "operation/reduction_support.hpp"
#include "samesum/backend/cpu/loops/instruction_set.hpp"

namespace samesum::cpu {
namespace {

using namespace testing_support;

std::vector<const Method*> exact_reductions() {
  std::vector<const Method*> chosen;
  for (const Method* m : reductions_of("cpu"))
    if (m->accumulator == "exact") chosen.push_back(m);
  return chosen;
}

/// Widths around those of vectors and strips, and lengths around those of blocks.
std::vector<Layout> layouts() {
  std::vector<Layout> all;
  for (const std::size_t columns : {1, 2, 3, 7, 8, 9, 31, 33, 70})
    for (const std::size_t n : {1, 65, 130}) all.push_back(Layout::axis(1, n, columns));
  for (const std::size_t columns : {1, 3, 8, 17, 32, 513, 2050})
    all.push_back(Layout::rows(columns < 100 ? 67 : 5, columns, columns + columns % 3));
  all.push_back(Layout::axis(3, 64, 33));
  all.push_back({4, 9, 1, 40, 4, nullptr});  // every fourth element
  return all;
}

/// Data that fit one window, a window for each row or column, or none.
std::vector<Dataset> data(std::size_t n, const FormatInfo& format) {
  const std::vector<double> u = uniform(n, 17);
  const auto of = [&](auto element) {
    std::vector<double> x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = element(i);
    return x;
  };
  return {{"uniform", u},
          {"12 binades", wide(n, 12, 3)},
          {"70 binades", wide(n, 70, 4)},
          {"columns of different sizes",
           of([&](std::size_t i) { return std::ldexp(u[i], int(i % 7) * 9 - 27); })},
          {"rows of different sizes",
           of([&](std::size_t i) { return std::ldexp(u[i], int(i / 40) % 100 - 50); })},
          {"an outlier", of([&](std::size_t i) { return i == n / 2 ? 0x1p70 : u[i]; })},
          {"all exponents, and an infinity", of([&](std::size_t i) {
             const int exponents = format.max_exponent + 2 - format.min_quantum;
             return i == n / 3 ? INFINITY
                               : std::ldexp(u[i], format.min_quantum + int(i * 7919 % 2003) % exponents);
           })},
          {"infinities and NaN", of([&](std::size_t i) {
             return i % 97 == 5 ? INFINITY : i % 89 == 3 ? NAN : u[i];
           })},
          {"equal ones, and rows of zeros", of([](std::size_t i) {
             return i / 64 % 2 ? 1.1 : i / 64 % 4 ? 0.0 : -0.0;
           })},
          {"cancelling", of([&](std::size_t i) { return i % 2 ? -u[i - 1] : u[i]; })},
          {"subnormal squares", of([&](std::size_t i) { return std::ldexp(u[i], -530); })},
          {"near the largest", of([&](std::size_t i) { return std::ldexp(u[i], 1023); })}};
}

TEST(ExactRowsAndColumns, HaveTheBitsOfTheirReferenceWithEveryInstructionSet) {
  const InstructionSet before = instruction_set();
  std::size_t k = 0;
  for (const Layout& layout : layouts()) {
    if (is_sanitized && layout.results() > 20) continue;
    const std::size_t size =
        (layout.outer - 1) * layout.outer_stride + (layout.n - 1) * layout.stride + layout.inner;
    for (const FormatInfo& input : formats)
      for (const Dataset& d : data(size, input)) {
        if (is_sanitized && k++ % 3 != 0) continue;  // data sets take the formats in turn
        const Array x{input, d.x}, y{input, {d.x.rbegin(), d.x.rend()}, 1};
        for (const Method* m : exact_reductions()) {
          if (m->format != &input && (is_sanitized || m->format != &format_info<fp32>())) continue;
          const Bits expected = reduce_all(reference_of(*m), x.values(), y.values(), layout);
          for (const InstructionSet set : instruction_sets) {
            if (!is_supported(set)) continue;
            force(set);
            ASSERT_EQ(reduce_all(*m, x.values(), y.values(), layout, {.threads = 1}), expected)
                << m->name << " of " << d.name << " in " << input.name << ", " << layout.outer << " x "
                << layout.n << " x " << layout.inner << ", " << name_of(set);
          }
          force(before);
        }
      }
  }
}

/// Sums of 31 large elements, a small one, and the large ones with the other sign: only the small one
/// remains, and the sums on the way are as large as a window must expect. As rows, and as columns.
TEST(ExactRowsAndColumns, LoseNoBitNextToLargerElementsWhateverTheGap) {
  constexpr std::size_t n = 64, count = 9;
  const std::vector<double> u = uniform(count, 23);
  for (const FormatInfo& input : formats)
    for (int gap = 0; gap < std::min(140, input.max_exponent); gap += is_sanitized ? 7 : 1)
      for (const bool rows : {false, true}) {
        const Layout layout = rows ? Layout::rows(count, n) : Layout::axis(1, n, count);
        std::vector<double> x(n * count), ones(n * count, 1.0);
        for (std::size_t k = 0; k < n; ++k)
          for (std::size_t c = 0; c < count; ++c)
            x[rows ? c * n + k : k * count + c] = k == 31  ? std::ldexp(u[c], -gap)
                                                  : k < 32 ? 1.75
                                                  : k < 63 ? -1.75
                                                           : 0;
        const Array a{input, x}, b{input, ones};
        for (const char* operation : {"sum", "dot", "moments"}) {
          const Method& m = find(operation + std::string{"/exact/"} + std::string{input.name} + "@cpu");
          ASSERT_EQ(reduce_all(m, a.values(), b.values(), layout),
                    reduce_all(reference_of(m), a.values(), b.values(), layout))
              << m.name << ", gap " << gap << (rows ? ", rows" : ", columns");
        }
      }
}

/// Sums and means that are ties, or for which an element far below decides, among others that cancel. Rows of
/// a block are rounded as packs; longer ones, columns and vectors may lack bits at first.
TEST(ExactRowsAndColumns, RoundSumsAndMeansAtTiesHoweverTheyAreDivided) {
  constexpr std::size_t count = 35;
  for (const FormatInfo& input : {format_info<fp32>(), format_info<fp64>()})
    for (const std::size_t n : {3, 4, 100, 128, 3000, 5000})
      for (const bool rows : {false, true}) {
        if (n > 100 && is_sanitized) continue;
        const std::size_t results = n < 5000 ? count : 1;
        std::vector<double> x(n * results);
        for (std::size_t c = 0; c < results; ++c) {
          const auto at = [&](std::size_t k) -> double& { return x[rows ? c * n + k : k * results + c]; };
          const double units = c % 2 == 0 ? static_cast<double>(n) : 1;  // ties of means, or of sums
          at(0) = units;
          at(1) = std::ldexp(units, -input.precision);
          at(2) = std::ldexp(static_cast<double>(c % 3) - 1, -100);
          for (std::size_t k = 3; k + 4 <= n; k += 4) {
            at(k) = 1, at(k + 1) = -1;
            at(k + 2) = 0x1p-60, at(k + 3) = -0x1p-60;
          }
        }
        const Layout layout = rows ? Layout::rows(results, n) : Layout::axis(1, n, results);
        const Array a{input, x};
        for (const char* operation : {"sum", "mean"}) {
          const Method& m = find(operation + std::string{"/exact/"} + std::string{input.name} + "@cpu");
          ASSERT_EQ(reduce_all(m, a.values(), {}, layout),
                    reduce_all(reference_of(m), a.values(), {}, layout))
              << m.name << ", n " << n << (rows ? ", rows" : ", columns");
        }
      }
}

/// Means of the two numbers beside a tie, n / 2 times each: a product with 1 / n may be beside the tie.
TEST(ExactRowsAndColumns, RoundMeansThatAreTiesToEven) {
  constexpr std::size_t rows = 300;
  std::mt19937 random{29};
  for (const std::size_t n : {6, 10, 14, 98}) {
    std::vector<double> x;
    for (std::size_t r = 0; r < rows; ++r) {
      const double units = 2 * static_cast<double>(random() % (1 << 23)) + 1 + 0x1p24;
      for (std::size_t i = 0; i < n; ++i) x.push_back(std::ldexp(units + (i % 2 ? 1 : -1), -24));
    }
    const Array a{format_info<fp32>(), x};
    const Method& m = find("mean/exact/fp32@cpu");
    EXPECT_EQ(reduce_all(m, a.values(), {}, Layout::rows(rows, n)),
              reduce_all(reference_of(m), a.values(), {}, Layout::rows(rows, n)))
        << n;
  }
}

/// Ties of which an element far below all windows decides, in the middle of the exponents and where they end.
/// A sum of all other elements tells nothing: the first ones cancel each other.
TEST(ExactRowsAndColumns, RoundTiesByWhatIsFarBelowTheirWindows) {
  constexpr std::size_t n = 40, count = 9;
  for (const FormatInfo& input : {format_info<fp32>(), format_info<fp64>()}) {
    const int p = input.precision, below = input.bytes == 8 ? 400 : 100;
    for (int top : {input.max_exponent, 100, 0, input.min_quantum + below + p + 4})
      for (const double last : {1.0, -1.0, 0.0})
        for (const bool rows : {false, true}) {
          std::vector<double> x(n * count);
          for (std::size_t c = 0; c < count; ++c) {
            const auto at = [&](std::size_t k) -> double& { return x[rows ? c * n + k : k * count + c]; };
            at(1) = std::ldexp(2 - std::ldexp(1, 1 - p), top);  // and half a unit of its last place
            at(3 + c) = std::ldexp(1, top - p);
            at(39) = std::ldexp(last, top - below);
            if (c % 2) at(7 + c) = -(at(30) = std::ldexp(1.5, top));
            if (c % 3 == 0) at(20) = -at(1), at(21) = -at(3 + c);  // leaves only the last one
          }
          const Layout layout = rows ? Layout::rows(count, n) : Layout::axis(1, n, count);
          const Array a{input, x}, b{input, std::vector<double>(n * count, 1.0)};
          for (const char* operation : {"sum", "mean", "dot", "squared_norm", "moments"}) {
            const Method& m = find(operation + std::string{"/exact/"} + std::string{input.name} + "@cpu");
            ASSERT_EQ(reduce_all(m, a.values(), b.values(), layout),
                      reduce_all(reference_of(m), a.values(), b.values(), layout))
                << m.name << ", top " << top << ", last " << last << (rows ? ", rows" : ", columns");
          }
        }
  }
}

/// Products far apart whose factors are near both ends of the exponents, also subnormal ones and zeros.
TEST(ExactRowsAndColumns, MultiplyFactorsOfAnyExponents) {
  constexpr std::size_t n = 24, count = 40;
  const std::vector<double> u = uniform(2 * n * count, 29);
  std::vector<double> x(n * count), y(n * count);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const int of_row = int(i / n) * 104 - 2080, e = int(i * 7919 % 2098) - 1074;
    x[i] = i % 13 == 0 ? 0 : std::ldexp(u[i], e);
    y[i] = std::ldexp(u[i + x.size()], std::clamp(of_row + int(i % 5) * 200 - e, -1074, 1022));
  }
  for (const Layout& layout : {Layout::rows(count, n), Layout::axis(1, count, n), Layout::vector(x.size())})
    for (const bool swapped : {false, true}) {
      const Array a{format_info<fp64>(), swapped ? y : x}, b{format_info<fp64>(), swapped ? x : y};
      const Method& m = find("dot/exact/fp64@cpu");
      ASSERT_EQ(reduce_all(m, a.values(), b.values(), layout),
                reduce_all(reference_of(m), a.values(), b.values(), layout));
    }
}

TEST(ExactRowsAndColumns, RoundTiesByTheirThirdWord) {
  // 1 + 2^-53 is a tie, and 2^-112 decides: ((1 + u)² - (1 + 2 u)) 2^-8, where u = 2^-52.
  const std::vector<double> x{1, 0x1p-27, 0x1p-4 + 0x1p-56, 0x1p-4 + 0x1p-55},
      y{1, 0x1p-26, 0x1p-4 + 0x1p-56, -0x1p-4};
  EXPECT_EQ((find("dot/exact/fp64@cpu")(x, y).as<double>()), 1 + 0x1p-52);
}

}  // namespace
}  // namespace samesum::cpu
