// Statistics: weights, covariance, correlation and regression, each result correctly rounded.
#include <cstdint>
#include <cstdio>
#include <samesum/samesum.hpp>
#include <samesum/statistics.hpp>
#include <vector>

int main() {
  std::vector<double> x{1e9, 1e9 + 1, 1e9 + 2, 1e9 + 3}, y{1, 3, 5, 8}, w{3, 0, 1, 1};

  std::printf("mean %.17g\n", samesum::weighted_mean(x, w));
  std::printf("variance %g\n", samesum::weighted_variance(y, w, {.ddof = 1}));
  std::printf("covariance %g, correlation %.6g\n", samesum::covariance(x, y, {.ddof = 1}),
              samesum::correlation(x, y));
  auto [slope, intercept] = samesum::linear_regression(x, y);
  std::printf("line y = %g x %+.10g\n", slope, intercept);

  // Columns of a matrix without some elements; both share the weights. Rounded once, to float.
  std::vector<double> table{1, 2, 3, 4, 5, 9}, reliability{0.5, 0.25, 0.25};
  std::vector<std::uint8_t> where{1, 1, 1, 0, 1, 1};
  std::vector<float> variances(2);
  samesum::StatisticsCall call{.statistic = samesum::Statistic::variance,
                               .x = table,
                               .layout = samesum::Layout::axis(1, 3, 2),
                               .out = std::span{variances},
                               .options = {.ddof = 1, .where = where}};
  call.weights = {reliability, samesum::WeightKind::reliabilities, samesum::Layout::rows(2, 3, 0)};
  samesum::run(call);
  for (float variance : variances)
    std::printf("column: %g, off by at most %.1g\n", variance,
                samesum::statistic_bound(samesum::Number::of(variance)));
}
