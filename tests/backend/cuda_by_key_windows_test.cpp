/// Sums by key on a GPU have the bits of the CPU whatever the exponents of their elements: those that a
/// sample suggests, some outliers, or so many that other cells hold the sums.
#include "backend/cuda_by_key_support.hpp"

namespace samesum::by_key {
namespace {

/// So many elements that a sample does not see them all.
constexpr std::size_t elements = 1 << 16;

std::vector<double> normal(std::size_t n) {
  std::mt19937_64 random{3};
  std::vector<double> x(n);
  for (double& element : x) {
    element = 0;
    for (int i = 0; i < 12; ++i) element += static_cast<double>(random() >> 11) * 0x1p-53;
    element -= 6;
  }
  return x;
}

struct Elements {
  std::string name;
  std::vector<double> x;
};

/// Elements of which a window that a sample suggests holds all, most, or few. Rows have `inner` of them.
std::vector<Elements> uneven_elements(std::size_t inner) {
  const std::size_t n = elements;
  std::vector<Elements> all{{"normal", normal(n)}};
  const auto add = [&](const std::string& name, auto change) {
    all.push_back({name, normal(n)});
    for (std::size_t i = 0; i < n; ++i) change(all.back().x[i], i);
  };
  add("one large", [&](double& x, std::size_t i) { x = i == n / 2 + 1 ? 0x1p14 : x; });
  add("one very large", [&](double& x, std::size_t i) { x = i == n / 2 + 1 ? 0x1.2p90 : x; });
  add("one very small", [&](double& x, std::size_t i) { x = i == n / 2 + 1 ? 0x1.4p-120 : x; });
  add("some large and small, which cancel", [&](double& x, std::size_t i) {
    if (i % 4099 == 5) x = i % 3 == 0 ? 0x1p80 : i % 3 == 1 ? -0x1p80 : 0x1.8p-100;
  });
  add("a large column", [&](double& x, std::size_t i) { x *= i % inner == inner - 1 ? 0x1p30 : 1; });
  add("log-normal", [&](double& x, std::size_t) {
    const double exponent = 4 * x;
    x = std::ldexp(exponent < 0 ? -1.2345678 : 1.7654321, static_cast<int>(exponent));
  });
  add("sums that change their sign, large and small",
      [](double& x, std::size_t i) { x = (i % 2 ? -1 : 1) * (i % 8 < 2 ? 1 : 0x1.8p-70); });
  add("a large one beside NaN and infinities", [&](double& x, std::size_t i) {
    x = i == 77 ? 0x1p70 : i == 1234 ? NAN : i == 40'000 ? INFINITY : i == 50'000 ? -INFINITY : x;
  });
  add("zeros but for a large one", [&](double& x, std::size_t i) {
    x = i == n - 9 ? 0x1p50 : i % 2 ? -0.0 : 0;
  });
  for (const int binades : {60, 90, 240})
    all.push_back({std::to_string(binades) + " binades", wide(n, binades, 1)});
  return all;
}

struct Shape {
  std::size_t bins, inner;
};
constexpr Shape shapes[] = {{1, 1}, {300, 1}, {20'000, 1}, {40, 128}, {500, 33}};

std::string describe(const Method& m, const Elements& x, const Shape& shape, KeySchedule schedule) {
  return m.name + ", " + x.name + ", " + std::to_string(shape.bins) + " x " + std::to_string(shape.inner) +
         ", schedule " + std::to_string(static_cast<int>(schedule));
}

TEST(ExactSumsByKeyOnAGpu, HaveTheBitsOfTheCpuForElementsOfUnevenExponents) {
  SAMESUM_NEEDS_GPU();
  const std::vector<double> held = held_numbers();
  for (const char* name : {"scatter_add/exact/fp32", "scatter_add/exact/fp64", "scatter_mean/exact/fp64",
                           "scatter_mean/exact/bf16", "scatter_add/exact/fp16"}) {
    const Method& m = find(std::string{name} + "@cuda");
    for (const Shape& shape : shapes)
      for (const Elements& x : uneven_elements(shape.inner)) {
        if (is_sanitized && (shape.bins == 1 || shape.inner == 33)) continue;
        const std::size_t rows = elements / shape.inner;
        const Case c{x.name,
                     random_keys(rows, shape.bins, 5),
                     shape.bins,
                     shape.inner,
                     {x.x.begin(), x.x.begin() + static_cast<std::ptrdiff_t>(rows * shape.inner)}};
        for (const bool combine : {false, true}) {
          if (combine && !can_combine(m)) continue;
          const Bits expected =
              by_key::reduced(find_on("cpu", m), c, *m.format, KeyFormat::uint32, {.combine = combine}, held);
          for (const KeySchedule schedule : schedules)
            ASSERT_EQ(on_gpu(m, Array{*m.format, c.x}, KeyArray{c.keys, KeyFormat::uint32}.keys(), c.bins,
                             c.inner, schedule, {.combine = combine}, held)
                          .bits,
                      expected)
                << describe(m, x, shape, schedule) << (combine ? ", combined" : "");
        }
      }
  }
}

TEST(ExactSumsByKeyOnAGpu, OfNarrowElementsInWideResultsHaveTheBitsOfTheCpu) {
  SAMESUM_NEEDS_GPU();
  for (const char* name : {"scatter_add/exact/fp64", "scatter_add/exact/fp32"})
    for (const FormatInfo& input : formats)
      for (const Elements& x : uneven_elements(1)) {
        const Method& m = find(std::string{name} + "@cuda");
        if (&input == m.format || is_sanitized) continue;
        const Case c{x.name, random_keys(elements, 100, 5), 100, 1, x.x};
        const Bits expected = by_key::reduced(find_on("cpu", m), c, input, KeyFormat::uint32);
        for (const KeySchedule schedule : schedules)
          ASSERT_EQ(
              on_gpu(m, Array{input, c.x}, KeyArray{c.keys, KeyFormat::int64}.keys(), c.bins, 1, schedule)
                  .bits,
              expected)
              << describe(m, x, {100, 1}, schedule) << " of " << input.name;
      }
}

/// Elements whose sums on a grid are far below those of some of them.
std::vector<Elements> elements_of_grids() {
  std::vector<Elements> all{
      {"normal", normal(elements)}, {"plus, then minus", {}}, {"a large pair", normal(elements)}};
  for (std::size_t i = 0; i < elements; ++i)
    all[1].x.push_back(i < elements / 2 ? 1 : i + 1 < elements ? -1 : -0.625);
  all[2].x[100] = 0x1p30;
  all[2].x[60'000] = -0x1p30;
  return all;
}

TEST(SumsByKeyOnAGivenGridOnAGpu, HaveTheBitsOfTheCpuHoweverFineItIs) {
  SAMESUM_NEEDS_GPU();
  for (const char* name :
       {"scatter_add/fixed_point/fp32", "scatter_mean/fixed_point/bf16", "scatter_add/fixed_point/fp64"})
    for (const Shape& shape : shapes)
      for (const Elements& x : elements_of_grids())
        for (const int grid : {-8, -16, -30, -36, -40, -44, -48, -52, -58, -62, -70}) {
          if (is_sanitized && grid % 4 != 0) continue;
          const Method& m = find(std::string{name} + "@cuda");
          const std::size_t rows = elements / shape.inner;
          Case c{x.name,
                 std::vector<std::size_t>(rows, shape.bins - 1),
                 shape.bins,
                 shape.inner,
                 {x.x.begin(), x.x.begin() + static_cast<std::ptrdiff_t>(rows * shape.inner)}};
          if (x.name == "normal") c.keys = random_keys(rows, shape.bins, 5);
          const Options options{.grid = grid};
          Bits expected;
          try {
            expected = by_key::reduced(find_on("cpu", m), c, *m.format, KeyFormat::uint32, options);
          } catch (const std::overflow_error&) {
          }
          for (const KeySchedule schedule : schedules) {
            const Outcome own = on_gpu(m, Array{*m.format, c.x}, KeyArray{c.keys, KeyFormat::uint32}.keys(),
                                       c.bins, c.inner, schedule, options);
            ASSERT_EQ(own.status.overflowed != 0, expected.empty())
                << describe(m, x, shape, schedule) << ", grid " << grid;
            if (!expected.empty()) {
              ASSERT_EQ(own.bits, expected) << describe(m, x, shape, schedule) << ", grid " << grid;
            }
          }
        }
}

TEST(SumsByKeyOnAGpu, HaveTheBitsOfTheCpuWithMoreOutliersThanTheirListHolds) {
  SAMESUM_NEEDS_GPU();
  for (const char* name : {"scatter_add/exact/fp32", "scatter_add/exact/fp64"}) {
    const Method& m = find(std::string{name} + "@cuda");
    const std::size_t n = std::size_t{1} << 17;
    for (const Shape& shape : shapes) {
      const std::size_t rows = n / shape.inner;
      const Case c{"", random_keys(rows, shape.bins, 2), shape.bins, shape.inner,
                   wide(rows * shape.inner, m.format->precision > 24 ? 1900 : 240, 7)};
      const Bits expected = by_key::reduced(find_on("cpu", m), c, *m.format, KeyFormat::uint32);
      for (const KeySchedule schedule : schedules)
        ASSERT_EQ(on_gpu(m, Array{*m.format, c.x}, KeyArray{c.keys, KeyFormat::uint32}.keys(), c.bins,
                         c.inner, schedule)
                      .bits,
                  expected)
            << describe(m, {"hostile", {}}, shape, schedule);
    }
  }
}

}  // namespace
}  // namespace samesum::by_key
