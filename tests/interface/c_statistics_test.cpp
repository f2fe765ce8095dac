/// Statistics of the C interface have the bits, bounds and messages of C++.
#include "interface/c_support.hpp"
#include "samesum/statistics.hpp"

namespace samesum::c_interface {
namespace {

samesum_layout layout_in_c(const Layout& l) {
  return l.offsets
             ? samesum_segments(l.offsets, l.outer)
             : samesum_layout{nullptr, l.outer, l.n, l.inner, l.outer_stride, l.stride, SAMESUM_STRIDED};
}
samesum_results results_in_c(const Results& r) { return {r.data, r.size, 0, format_in_c(r.format)}; }

/// The call of C++ as one of C. The options must outlive it.
samesum_statistics_call in_c(const StatisticsCall& call, samesum_options& options) {
  options = samesum_options_default();
  options.ddof = call.options.ddof;
  options.threads = call.options.threads;
  options.where = call.options.where.data;
  options.skip_nan = call.options.skip_nan;
  samesum_statistics_call c = samesum_statistics_call_default();
  c.statistic = static_cast<samesum_statistics_kind>(call.statistic) + SAMESUM_STATISTIC_MEAN;
  c.x = values_in_c(call.x);
  c.y = values_in_c(call.y);
  c.weights = values_in_c(call.weights.values);
  c.layout = layout_in_c(call.layout);
  if (call.y_layout) c.y_layout = layout_in_c(*call.y_layout);
  if (call.weights.layout) c.weights_layout = layout_in_c(*call.weights.layout);
  c.out = results_in_c(call.out);
  if (call.second) c.second = results_in_c(*call.second);
  c.options = &options;
  c.weights_are = static_cast<samesum_weight_kind>(call.weights.kind);
  return c;
}

TEST(StatisticsInC, HaveTheBitsOfCpp) {
  std::vector<std::uint8_t> where(60, 1);
  for (std::size_t i = 0; i < 60; i += 4) where[i] = 0;
  const std::uint64_t offsets[] = {0, 1, 20, 60};
  std::vector<double> weights = wide(60, 6, 3);
  for (double& w : weights) w = std::abs(w);
  for (const FormatInfo& format : formats) {
    const Array x{format, wide(60, 20, 1)}, y{format, wide(60, 20, 2)}, w{format, weights};
    for (int s = 0; s <= static_cast<int>(Statistic::correlation_matrix); ++s)
      for (const Layout& l : {Layout::rows(3, 20), Layout::axis(1, 12, 5), Layout::segments(offsets, 3)})
        for (const bool is_weighted : {false, true})
          for (const Options& o :
               {Options{.ddof = 0.5}, Options{.threads = 2, .where = where, .skip_nan = true}}) {
            const auto statistic = static_cast<Statistic>(s);
            if (is_matrix(statistic) && l.offsets) continue;
            std::vector<double> out[2], second[2];
            StatisticsCall call{.statistic = statistic,
                                .x = x.values(),
                                .y = takes_y(statistic) ? y.values() : Values{},
                                .layout = l,
                                .out = {&format_info<fp64>(), nullptr, 0},
                                .options = o};
            if (takes_y(statistic) && !l.offsets) call.y_layout = Layout::axis(1, l.n, l.results());
            if (is_weighted) call.weights = {w.values(), WeightKind::reliabilities};
            if (is_weighted && l.inner == 1 && !l.offsets && !is_matrix(statistic))
              call.weights.layout = Layout::rows(l.outer, l.n, 0);
            const bool has_second = statistic == Statistic::mean || statistic == Statistic::linear_regression;
            samesum_options options;
            for (const std::size_t language : {0u, 1u}) {
              out[language].assign(is_matrix(statistic) ? l.results() * l.results() : l.results(), 7);
              second[language].assign(l.results(), 7);
              call.out = std::span{out[language]};
              if (has_second) call.second = Results{std::span{second[language]}};
              if (language == 0) {
                EXPECT_FALSE(run(call));
                continue;
              }
              const samesum_statistics_call c = in_c(call, options);
              std::int32_t sums_to_zero = 7;
              EXPECT_THAT(ask(samesum_run_statistics, &c, &sums_to_zero), IsOk());
              EXPECT_EQ(sums_to_zero, 0);
            }
            const auto same = [](const std::vector<double>& a, const std::vector<double>& b) {
              return std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
            };
            EXPECT_TRUE(same(out[0], out[1]) && same(second[0], second[1])) << format.name << ' ' << s;
          }
  }
}

TEST(StatisticsInC, OfOneVectorNeedNoLayout) {
  const float x[] = {1, 2, 4}, w[] = {3, 0, 1}, zeros[3] = {};
  double mean = 0;
  samesum_statistics_call call = samesum_statistics_call_default();
  call.statistic = SAMESUM_STATISTIC_MEAN;
  call.x = {x, 3, SAMESUM_FP32};
  call.weights = {w, 3, SAMESUM_FP32};
  call.out = {&mean, 1, 0, SAMESUM_FP64};
  EXPECT_THAT(ask(samesum_run_statistics, &call, static_cast<std::int32_t*>(nullptr)), IsOk());
  EXPECT_EQ(mean, 1.75);
  call.weights.data = zeros;
  std::int32_t sums_to_zero = 0;
  EXPECT_THAT(ask(samesum_run_statistics, &call, &sums_to_zero), IsOk());
  EXPECT_TRUE(sums_to_zero == 1 && std::isnan(mean));
  double bound = 0;
  const float third = 1.0f / 3;
  EXPECT_THAT(ask(samesum_statistic_bound, static_cast<const void*>(&third), SAMESUM_FP32, &bound), IsOk());
  EXPECT_EQ(bound, statistic_bound(Number::of(third)));
}

TEST(StatisticsInC, ThatDoNotFitAreRefusedAndNothingIsWritten) {
  const double x[] = {1, 2, 3, 4}, negative[] = {1, -1, 1, 1};
  double out = 7, second = 7, bound = 7;
  std::int32_t sums_to_zero = 7;
  const auto expect = [&](const char* part, auto change) {
    samesum_statistics_call call = samesum_statistics_call_default();
    call.statistic = SAMESUM_STATISTIC_VARIANCE;
    call.x = {x, 4, SAMESUM_FP64};
    call.out = {&out, 1, 0, SAMESUM_FP64};
    change(call);
    EXPECT_THAT(ask(samesum_run_statistics, &call, &sums_to_zero), IsInvalid(part));
    EXPECT_TRUE(out == 7 && second == 7 && sums_to_zero == 7) << part;
  };
  expect("call.statistic is 0; use one of SAMESUM_STATISTIC_MEAN (1) to", [](auto& c) { c.statistic = 0; });
  expect("call.statistic is 8", [](auto& c) { c.statistic = 8; });
  expect("call.weights_are is 2; use SAMESUM_FREQUENCIES (0) or", [](auto& c) { c.weights_are = 2; });
  expect("call.struct_size is 8", [](auto& c) { c.struct_size = 8; });
  expect("y is missing; correlation takes x and y",
         [](auto& c) { c.statistic = SAMESUM_STATISTIC_CORRELATION; });
  expect("x has an unknown format", [](auto& c) { c.x = {nullptr, 0, 0}; });
  expect("weights.format is 5", [&](auto& c) { c.weights = {x, 4, SAMESUM_INT64}; });
  expect("weights has negative numbers", [&](auto& c) { c.weights = {negative, 4, SAMESUM_FP64}; });
  expect("layout.kind is SAMESUM_ALL, but other fields", [](auto& c) { c.weights_layout.n = 4; });
  expect("y_layout is given without y", [](auto& c) { c.y_layout = samesum_vector(4); });
  expect("out.format is 0", [](auto& c) { c.out.format = SAMESUM_NONE; });
  expect("out has no format of floating-point numbers", [](auto& c) { c.out.format = SAMESUM_INT64; });
  expect("second has no format; set second.format", [&](auto& c) { c.second.data = &second; });
  expect("second.format is 6", [&](auto& c) { c.second = {&second, 1, 0, 6}; });
  expect("second is only for", [&](auto& c) { c.second = {&second, 1, 0, SAMESUM_FP64}; });
  const auto ask_bound = [&](const void* result, samesum_format format, double* to) {
    return ask(samesum_statistic_bound, result, format, to);
  };
  EXPECT_THAT(ask_bound(nullptr, SAMESUM_FP64, &bound), IsInvalid("result is NULL"));
  EXPECT_THAT(ask_bound(x, SAMESUM_NONE, &bound), IsInvalid("format is 0; use one of SAMESUM_FP16"));
  EXPECT_THAT(ask_bound(x, SAMESUM_FP64, nullptr), IsInvalid("bound is NULL"));
  EXPECT_THAT(
      ask(samesum_run_statistics, static_cast<const samesum_statistics_call*>(nullptr), &sums_to_zero),
      IsInvalid("call is NULL"));
}

}  // namespace
}  // namespace samesum::c_interface
