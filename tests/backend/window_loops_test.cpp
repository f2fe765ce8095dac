/// Exact reductions of rows and columns on a CPU: the loops that add in windows, and what does not fit there,
/// have the bits of the definition.
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
std::vector<Dataset> data(std::size_t n) {
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
    for (const Dataset& d : data(size))
      for (const FormatInfo& input : formats) {
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

TEST(ExactRowsAndColumns, RoundTiesByTheirThirdWord) {
  // 1 + 2^-53 is a tie, and 2^-112 decides: ((1 + u)² - (1 + 2 u)) 2^-8, where u = 2^-52.
  const std::vector<double> x{1, 0x1p-27, 0x1p-4 + 0x1p-56, 0x1p-4 + 0x1p-55},
      y{1, 0x1p-26, 0x1p-4 + 0x1p-56, -0x1p-4};
  EXPECT_EQ((find("dot/exact/fp64@cpu")(x, y).as<double>()), 1 + 0x1p-52);
}

}  // namespace
}  // namespace samesum::cpu
