/// Rolling operations: every result has the bits of the reduction of its window alone, for any window, layout
/// and number of threads.
#include <cmath>

#include "operation/rolling_support.hpp"
#include "samesum/call/validation.hpp"

namespace samesum {
namespace {

using namespace testing_support;
using ::testing::HasSubstr;

/// The method whose result for a window is that of the window alone; of moments the variance.
const Method& reduction_for_windows(const Method& m) {
  const Method& host = on_host(m);  // many calls
  const std::string operation = m.operation == "rolling_var" ? "moments" : m.operation.substr(8);
  return find(operation + host.name.substr(m.operation.size()));
}

/// The result of window i, by the reduction of its elements alone, which are copied from x. It follows the
/// definition of a window, and shares no code with the library.
std::uint64_t of_window_alone(const Method& m, Values x, std::size_t i, const Options& options) {
  const auto n = static_cast<std::ptrdiff_t>(x.size), window = static_cast<std::ptrdiff_t>(options.window),
             last = static_cast<std::ptrdiff_t>(i) + (options.centred ? (window - 1) / 2 : 0);
  return with_format(*x.format, [&]<class T>() {
    std::vector<T> elements;
    for (std::ptrdiff_t j = std::max<std::ptrdiff_t>(last - window + 1, 0); j <= last && j < n; ++j) {
      const T element = static_cast<const T*>(x.data)[j];
      if (!(options.skip_nan && std::isnan(convert<double>(element)))) elements.push_back(element);
    }
    if (elements.size() < options.min_periods.value_or(options.window) ||
        (elements.empty() && m.operation != "rolling_sum"))
      return m.format->canonical_nan;
    const Method& reduction = reduction_for_windows(m);
    const Options plain{.threads = 1,
                        .ddof = options.ddof,
                        .grid = m.takes_grid ? std::optional{grid_of_windows} : std::nullopt};
    return reduce_all(reduction, Values{std::span<const T>{elements}}, {}, Layout::vector(elements.size()),
                      plain)
        .back();
  });
}

class EveryRollingMethod : public MethodTest {
 protected:
  Array elements(const FormatInfo& format, std::vector<double> x) const {
    return elements_for_windows(m, format, std::move(x));
  }
  void compare(Values x, const Options& options, std::size_t step = 1) {
    const Bits all = rolled(m, x, options);
    ASSERT_EQ(all.size(), x.size);
    for (std::size_t i = 0; i < x.size; i += step)
      ASSERT_EQ(all[i], of_window_alone(m, x, i, options))
          << "result " << i << " of " << x.size << " for a window of " << options.window << ", centred "
          << options.centred << ", skip_nan " << options.skip_nan << ", min_periods "
          << (options.min_periods ? std::to_string(*options.min_periods) : "-");
  }
};
INSTANTIATE_TEST_SUITE_P(Reference, EveryRollingMethod,
                         ::testing::ValuesIn(rolling_methods_of(is_sanitized ? "" : "reference")), test_name);
INSTANTIATE_TEST_SUITE_P(Cpu, EveryRollingMethod,
                         ::testing::ValuesIn(without_fp16_if_sanitized(rolling_methods_of("cpu"))),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Cuda, EveryRollingMethod, ::testing::ValuesIn(or_absent(rolling_methods_of("cuda"))),
                         test_name);

TEST_P(EveryRollingMethod, HasTheBitsOfTheReductionOfEachWindow) {
  constexpr std::size_t n = 45;
  std::vector<double> x = wide(n, 20, 5);
  for (const std::size_t at : {3, 4, 20}) x[at] = NAN;
  x[9] = INFINITY, x[12] = -INFINITY, x[30] = x[31] = x[32] = -0.0;
  for (const FormatInfo& input : formats) {
    if (!m.accepts(input) || (is_sanitized && &input != m.format)) continue;
    const Array array = elements(input, x);
    for (const std::size_t window :
         {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{7}, n, 3 * n})
      for (const bool centred : {false, true})
        for (const bool skip_nan : {false, true})
          for (const std::optional<std::size_t> least :
               {std::optional<std::size_t>{}, {0}, {1}, {2}, {window}}) {
            if ((window > n && !least) || (least && *least > window)) continue;
            if (is_sanitized && least == 2) continue;  // the number of periods changes no access
            compare(array.values(), {.ddof = static_cast<double>(window % 3),
                                     .skip_nan = skip_nan,
                                     .window = window,
                                     .centred = centred,
                                     .min_periods = least});
          }
  }
}

TEST_P(EveryRollingMethod, HasTheBitsOfTheReductionOfEachWindowForAwkwardData) {
  SAMESUM_SANITIZED_IN_FP32(m);
  const std::size_t n = m.backend != "reference" && !is_sanitized ? 1300 : 300;
  std::vector<std::size_t> windows{1, 2, 7, 100, n / 2, n};
  if (m.backend == "cuda")  // around its groups of 8, 32, 64, 256 and 512 elements
    windows.insert(windows.end(), {8, 9, 31, 65, 257, 520, 4000});
  for (const Dataset& d : data_with_specials(std::max<std::size_t>(n, 4100))) {
    SCOPED_TRACE(d.name);
    const Array array = elements(*m.format, {d.x.end() - static_cast<std::ptrdiff_t>(n), d.x.end()});
    for (const std::size_t window : windows) {
      const std::size_t step = window > 100 || is_sanitized ? 97 : 3;
      compare(array.values(), {.ddof = 1, .window = window, .min_periods = 1}, step);
      if (window % 2 == 1 || window == n)
        compare(array.values(),
                {.skip_nan = true, .window = window, .centred = true, .min_periods = window / 2}, step);
    }
  }
}

TEST_P(EveryRollingMethod, HasTheSameBitsForAnyNumberOfThreads) {
  SAMESUM_SANITIZED_IN_FP32(m);
  if (m.backend == "reference") return;
  const std::size_t n = is_sanitized ? 70'001 : m.backend == "cuda" ? 300'001 : 150'001;  // parts of 2^16
  std::vector<double> x = wide(n, 24, 8);
  for (std::size_t i = 0; i < n; i += 9973) x[i] = i % 2 == 0 ? NAN : -0.0;
  const Array array = elements(*m.format, x);
  for (const std::size_t window : {std::size_t{3}, std::size_t{1000}, n / 3, 2 * n}) {
    if (is_sanitized && window != n / 3) continue;
    const Options options{
        .threads = 1, .skip_nan = true, .window = window, .centred = window == 1000, .min_periods = 1};
    const Bits expected = rolled(on_host(m), array.values(), options);
    for (const int threads : {2, 3, 7}) {
      if (m.backend == "cuda" && threads != 3) continue;
      if (is_sanitized && threads != 3) continue;
      Options parallel = options;
      parallel.threads = threads;
      ASSERT_EQ(rolled(m, array.values(), parallel), expected)
          << "a window of " << window << ", " << threads << " threads";
    }
    for (const std::size_t i : {std::size_t{0}, std::min(window, n) - 1, n / 2, n - 1})
      EXPECT_EQ(expected[i], of_window_alone(m, array.values(), i, options))
          << "result " << i << ", a window of " << window;
  }
}

TEST_P(EveryRollingMethod, TakesRowsAndAxes) {
  const std::size_t gap = 4, window = m.backend == "cuda" ? 37 : 5;
  for (const auto& sizes : {std::array<std::size_t, 3>{3, 50, 1}, {2, 600, 3}, {1, 70, 40}, {2, 1, 5}}) {
    const std::size_t outer = sizes[0], n = sizes[1], inner = sizes[2];
    const Array x = elements(*m.format, wide(outer * n * inner, 12, n));
    const Layout layout = Layout::axis(outer, n, inner);
    const Options options{.threads = 2, .window = window, .min_periods = 2};
    const Bits dense = rolled(m, x.values(), layout, options),
               apart = rolled(m, x.values(), layout, options, n * inner + gap);
    EXPECT_EQ(dense, apart);
    with_format(*m.format, [&]<class F>() {
      for (std::size_t o = 0; o < outer; ++o)
        for (std::size_t i = 0; i < inner; ++i) {
          std::vector<F> column(n);
          for (std::size_t k = 0; k < n; ++k)
            column[k] = static_cast<const F*>(x.values().data)[(o * n + k) * inner + i];
          const Bits expected = rolled(on_host(m), Values{std::span<const F>{column}}, options);
          for (std::size_t k = 0; k < n; ++k) ASSERT_EQ(dense[(o * n + k) * inner + i], expected[k]);
        }
    });
  }
}

TEST_P(EveryRollingMethod, HasARigorousBound) {
  const Array x = elements(*m.format, wide(200, 12, 3));
  const Options options{.window = 10, .min_periods = 1};
  const Bits all = rolled(m, x.values(), options);
  const Method& reduction = reduction_for_windows(m);
  for (const std::size_t i : {std::size_t{0}, std::size_t{9}, std::size_t{150}}) {
    const std::size_t n = std::min<std::size_t>(i + 1, 10);
    BoundOptions same;
    if (m.takes_grid) same.grid = grid_of_windows;
    const Number result{m.format, all[i]};
    const double bound = m.bound(*m.format, n, result, {}, same);
    if (reduction.results == 1) {
      EXPECT_EQ(bound, reduction.bound(*m.format, n, result, {}, same));
    }
    EXPECT_TRUE(std::isfinite(bound)) << m.name;
  }
}

SAMESUM_ON_BACKENDS(ARollingSum, "reference", "cpu", "cuda");

TEST_P(ARollingSum, DoesNotDrift) {
  std::vector<double> x(3000, 1.0);
  x[10] = 1e300;
  x[11] = -0x1p-1074;
  std::vector<double> sums(x.size());
  reduce(method("rolling_sum/exact/fp64"), Values{std::span<const double>{x}}, Layout::vector(x.size()),
         std::span{sums}, {.window = 5});
  for (std::size_t i = 16; i < x.size(); ++i) ASSERT_EQ(sums[i], 5) << i;
}

SAMESUM_ON_BACKENDS(ARollingVariance, "cpu", "cuda");

TEST_P(ARollingVariance, LeavesOutWhatElementsHaveInCommonOnlyWhereTheDifferencesAreExact) {
  std::vector<double> x = uniform(3000, 1);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += std::ldexp(1e13, -static_cast<int>(i / 333 % 4 * 14));
  const Method& m = method("rolling_var/exact/fp64");
  const Values values{std::span<const double>{x}};
  for (const std::size_t window : {5, 100}) {
    const Options options{.ddof = 1, .window = window};
    const Bits all = rolled(m, values, options);
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(all[i], of_window_alone(m, values, i, options)) << i << ", a window of " << window;
  }
}

TEST_P(ARollingSum, OnAGridReportsASumThatOverflows) {
  const std::vector<double> x{1, 2, 0x1p100, 4, 5, 6};
  std::vector<double> sums(x.size());
  const auto roll = [&](int grid) {
    reduce(method("rolling_sum/fixed_point/fp64"), Values{std::span<const double>{x}},
           Layout::vector(x.size()), std::span{sums}, {.grid = grid, .window = 2});
  };
  EXPECT_THROW(roll(-40), std::overflow_error);
  EXPECT_EQ(sums[1], 3);
  EXPECT_TRUE(std::isnan(sums[2]) && std::isnan(sums[3]));
  EXPECT_EQ(sums[5], 11);
  roll(-20);
  EXPECT_EQ(sums[2], 0x1p100 + 2);
}

TEST(ARollingMethod, RefusesOptionsThatDoNotFit) {
  const std::vector<double> x{1, 2, 3};
  std::vector<double> out(3);
  const auto refusal = [&](std::string_view name, Options options) {
    return refusal_by([&] {
      reduce(find(name), Values{std::span<const double>{x}}, Layout::vector(3), std::span{out}, options);
    });
  };
  EXPECT_THAT(refusal("rolling_sum/exact/fp64", {}), HasSubstr("window is 0; pass its number of elements"));
  EXPECT_THAT(
      refusal("rolling_sum/exact/fp64", {.window = 4}),
      HasSubstr("window is 4, but there are 3 elements, so that every result would be NaN; pass a smaller "
                "window, or min_periods"));
  EXPECT_EQ(refusal("rolling_sum/exact/fp64", {.window = 4, .min_periods = 3}), "");
  EXPECT_EQ(out[2], 6);
  EXPECT_THAT(refusal("rolling_max/fp64", {.window = 2, .min_periods = 3}),
              HasSubstr("min_periods is 3, more than the window of 2"));
  EXPECT_THAT(refusal("rolling_mean/fixed_point/fp64", {.window = 2}), HasSubstr("grid is missing"));
  EXPECT_THAT(refusal("rolling_var/exact/fp64", {.ddof = 0.5, .window = 2}),
              HasSubstr("must be a whole number"));
  EXPECT_THAT(refusal("rolling_sum/exact/fp64", {.exclusive = true, .window = 2}),
              HasSubstr("only for scans"));
  EXPECT_THAT(refusal("rolling_sum/exact/fp64", {.window = std::size_t{1} << 40, .min_periods = 1}),
              HasSubstr("fewer than 2^39"));
  const std::vector<std::uint8_t> flags{1, 0, 1};
  EXPECT_THAT(refusal("rolling_sum/exact/fp64", {.where = flags, .window = 2}),
              HasSubstr("where is not for rolling operations; make the elements that take no part NaN"));
  EXPECT_THAT(refusal("cumsum/exact/fp64", {.window = 2}),
              HasSubstr("window is only for rolling operations"));
  EXPECT_THAT(refusal("cumsum/exact/fp64", {.min_periods = 2}), HasSubstr("min_periods is only for rolling"));
  EXPECT_THAT(refusal("cumsum/exact/fp64", {.centred = true}), HasSubstr("centred is only for rolling"));
  EXPECT_THAT(refusal_by([&] { find("rolling_sum/tree/kahan/fp32"); }), HasSubstr("use exact"));
  EXPECT_THAT(refusal_by([&] { find("rolling_var/fixed_point/fp64"); }), HasSubstr("use exact"));
}

TEST(ARollingMethod, NeedsSeparateMemoryForItsResults) {
  std::vector<double> x(10, 1.0);
  const auto refusal = [&](double* out) {
    return refusal_by([&] {
      reduce(find("rolling_sum/exact/fp64"), Values{std::span<const double>{x}.first(5)}, Layout::vector(5),
             std::span{out, 5}, {.window = 2});
    });
  };
  EXPECT_THAT(refusal(x.data()), HasSubstr("out overlaps x; use separate memory"));
  EXPECT_THAT(refusal(x.data() + 4), HasSubstr("out overlaps x"));
  EXPECT_EQ(refusal(x.data() + 5), "");
}

}  // namespace
}  // namespace samesum
