/// The bounds of reductions hold, against integers and numbers of many digits, and are not far from what can
/// happen.
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>

#include "harness/truth.hpp"
#include "operation/reduction_support.hpp"

namespace samesum {
namespace {

using namespace testing_support;
using harness::BigInteger, harness::exact_value;
using Real = boost::multiprecision::cpp_bin_float_100;

BigInteger magnitude_of(const BigInteger& x) { return x < 0 ? BigInteger{-x} : x; }
BigInteger exact_of(double x) { return exact_value(Number::of(x)); }

struct Pairs {
  std::string name;
  std::vector<double> x, y;
};

/// Ordinary and awkward data, scaled to what the format can hold; dot products of the cancelling ones have
/// condition numbers up to some u^-2.
std::vector<Pairs> pairs(const FormatInfo& format, std::size_t n) {
  const double u = format.unit_roundoff;
  const auto scaled = [](std::vector<double> x, double by, double and_more = 0) {
    for (double& e : x) e = e * by + and_more;
    return x;
  };
  const auto root_of = [](int exponent) { return power_of_two(exponent / 2); };
  const std::vector<double> a = uniform(n, 1), b = uniform(n, 2), wide_a = wide(n, 10, 3);
  Pairs cancelling{"cancelling", wide_a, b};
  for (std::size_t i = 0; i + 1 < n; i += 2) {
    cancelling.x[i + 1] = cancelling.x[i] * (1 + (i % 8 == 0 ? 2 * u : 0));
    cancelling.y[i + 1] = -cancelling.y[i] * (1 + (i % 6 == 0 ? 2 * u : 0));
  }
  std::vector<double> large = uniform(n, 4);
  for (double& e : large) e = (e < 0 ? -1 : 1) * format.max_finite * (1 - std::abs(e) / 16);
  std::vector<double> spike(n, 1.0);
  if (n > 0) spike[n / 2] = 1 / u;
  const double tiny = format.smallest_subnormal, small = root_of(format.min_quantum + 6);
  return {{"uniform", a, b},
          {"positive", scaled(a, 0.5, 0.5), scaled(b, 0.5, 0.5)},
          {"10 binades", wide_a, wide(n, 10, 5)},
          cancelling,
          {"far from 0", scaled(a, 1, 100), scaled(b, 1, -100)},
          {"near 1", scaled(a, 8 * u, 1), scaled(b, 8 * u, 1)},
          {"one big among ones", spike, a},
          {"0.1", std::vector<double>(n, 0.1), std::vector<double>(n, 0.3)},
          {"subnormal", scaled(a, 64 * tiny), scaled(b, 64 * tiny)},
          {"subnormal products", scaled(a, small), scaled(b, small)},
          {"products at the edge of the subnormals",
           scaled(a, root_of(format.min_quantum + 8 + format.precision)),
           scaled(b, root_of(format.min_quantum + 8 + format.precision))},
          {"squares near the largest", scaled(a, root_of(format.max_exponent - 14)),
           scaled(b, root_of(format.max_exponent - 14))},
          {"huge", large, a},
          {"zeros", std::vector<double>(n, 0.0), b}};
}

/// What the reductions of two arrays truly are. Products count in multiples of 2^-2148.
struct Truths {
  std::size_t n;
  BigInteger sum, magnitudes, squares, dot, dot_magnitudes;
  Real product, logsumexp;
  double smallest, largest, largest_magnitude;

  Truths(Values x, Values y)
      : n{x.size}, product{1}, smallest{INFINITY}, largest{-INFINITY}, largest_magnitude{0} {
    Real exponentials = 0;
    with_format(*x.format, [&]<class F>() {
      for (std::size_t i = 0; i < n; ++i) {
        const double e = convert<double>(x.as<F>()[i]);
        const BigInteger a = exact_of(e), b = exact_of(convert<double>(y.as<F>()[i])), ab = a * b;
        sum += a;
        magnitudes += magnitude_of(a);
        squares += a * a;
        dot += ab;
        dot_magnitudes += magnitude_of(ab);
        product *= e;
        smallest = std::min(smallest, e);
        largest = std::max(largest, e);
      }
      if constexpr (sizeof(F) < sizeof(fp64))
        for (const F& e : x.as<F>()) exponentials += exp(Real{convert<double>(e)} - Real{largest});
    });
    if (n > 0) logsumexp = log(exponentials) + largest, largest_magnitude = std::max(largest, -smallest);
  }

  /// Rounded up.
  static double above(const BigInteger& x, int unit) {
    const double value = Real{ldexp(Real{x}, unit)}.convert_to<double>();
    return value == 0 && x != 0 ? 0x1p-1074 : value * (1 + 0x1p-52);
  }

  /// |result - numerator·2^-2148 / denominator| <= bound, without any rounding.
  static bool within(Number result, double bound, const BigInteger& numerator,
                     const BigInteger& denominator) {
    const BigInteger scaled = (exact_value(result) << 1074) * denominator;
    return magnitude_of(scaled - numerator) <= (exact_of(bound) << 1074) * denominator;
  }
  static bool near(Number result, double bound, const Real& truth) {
    return abs(truth - result.to_double()) <= Real{bound} + abs(truth) * Real{0x1p-300};
  }

  /// What the caller knows.
  double known(const Reduction& r) const {
    if (r.operation == "sum" || r.operation == "mean") return above(magnitudes, -1074);
    if (r.operation == "dot") return above(dot_magnitudes, -2148);
    return unbounded_error;
  }
  bool within(const Reduction& r, Number result, double bound) const {
    if (!std::isfinite(bound)) return true;
    if (r.operation == "sum") return within(result, bound, sum << 1074, 1);
    if (r.operation == "mean") return within(result, bound, sum << 1074, n);
    if (r.operation == "sum_of_magnitudes") return within(result, bound, magnitudes << 1074, 1);
    if (r.operation == "squared_norm") return within(result, bound, squares, 1);
    if (r.operation == "dot") return within(result, bound, dot, 1);
    if (r.operation == "norm") {
      const BigInteger value = exact_value(result), off = exact_of(bound);
      const BigInteger low = value > off ? BigInteger{value - off} : BigInteger{0}, high = value + off;
      return low * low <= squares && squares <= high * high;
    }
    if (r.operation == "prod") return near(result, bound, product);
    if (r.operation == "logsumexp") return near(result, bound, logsumexp);
    if (r.operation == "min") return bound == 0 && result.to_double() == smallest;
    if (r.operation == "max") return bound == 0 && result.to_double() == largest;
    ADD_FAILURE() << r.name << ": nobody knows the truth";
    return false;
  }
  bool mean_within(Number mean, double bound) const {
    return !std::isfinite(bound) || within(mean, bound, sum << 1074, n);
  }
  bool variance_within(Number variance, double bound, std::uint64_t ddof) const {
    return !std::isfinite(bound) ||
           within(variance, bound, BigInteger{n} * squares - sum * sum, BigInteger{n} * BigInteger{n - ddof});
  }
};

struct Bounded {
  Number result;
  double bound;
};

/// One result and its bound, or the two of moments; none for an index.
std::vector<Bounded> bounded(const Reduction& r, Values x, Values y, const Truths& truths, std::size_t ddof,
                             bool largest_is_known) {
  const Bits bits = reduce_all(r, x, y, Layout::vector(x.size), {.ddof = static_cast<double>(ddof)});
  const Number first{r.format, bits[0]};
  if (r.results == 1) return {{first, r.bound(*x.format, x.size, first, truths.known(r))}};
  const Number second{r.format, bits[1]};
  const auto [mean, variance] =
      r.moments_bound(*x.format, x.size, first, second, {.ddof = static_cast<double>(ddof)},
                      largest_is_known ? truths.largest_magnitude : unbounded_error);
  return {{first, mean}, {second, variance}};
}

class BoundsOfReductions : public ::testing::TestWithParam<const FormatInfo*> {};
INSTANTIATE_TEST_SUITE_P(Of, BoundsOfReductions,
                         ::testing::Values(&formats[0], &formats[1], &formats[2], &formats[3]),
                         [](const auto& info) { return std::string{info.param->name}; });

TEST_P(BoundsOfReductions, HoldForEveryReductionAndKindOfData) {
  const FormatInfo& input = *GetParam();
  std::map<std::string, std::pair<int, int>> finite;  // of all, by name
  for (const std::size_t n : {0, 1, 2, 3, 10, 100, 5000})
    for (const Pairs& d : pairs(input, n)) {
      const Array x{input, d.x}, y{input, d.y};
      const Truths truths{x.values(), y.values()};
      for (const Reduction* r : reductions_of("cpu")) {
        if (!r->takes(input)) continue;
        if (r->gives_index) {
          EXPECT_EQ(r->bound(input, n, {}, 0), 0);
          continue;
        }
        for (const bool known : {false, true})
          for (const std::size_t ddof : {0, 1}) {
            if (r->results == 1 && (known || ddof == 1)) continue;
            const std::string what = r->name + " of " + std::to_string(n) + ", " + d.name;
            const std::vector<Bounded> all = bounded(*r, x.values(), y.values(), truths, ddof, known);
            for (const Bounded& b : all) {
              EXPECT_FALSE(std::isnan(b.bound)) << what;
              auto& [is_finite, any] = finite[r->name];
              is_finite += n > 0 && std::isfinite(b.bound);
              any += n > 0;
            }
            if (all.size() == 1) {
              EXPECT_TRUE(truths.within(*r, all[0].result, all[0].bound))
                  << what << ": " << ::testing::PrintToString(all[0].result) << " +- " << all[0].bound;
            } else {
              EXPECT_TRUE(truths.mean_within(all[0].result, all[0].bound))
                  << what << ": the mean " << ::testing::PrintToString(all[0].result) << " +- "
                  << all[0].bound;
              EXPECT_TRUE(truths.variance_within(all[1].result, all[1].bound, ddof))
                  << what << ": the variance " << ::testing::PrintToString(all[1].result) << " +- "
                  << all[1].bound;
            }
          }
      }
    }
  for (const auto& [name, count] : finite)
    EXPECT_GT(2 * count.first, count.second) << name << ": the bound says nothing for most of the data";
}

TEST_P(BoundsOfReductions, AreSomeUnitsOfRoundoffForOrdinaryData) {
  const FormatInfo& format = *GetParam();
  const std::size_t n = 1000;
  for (const Pairs& d : pairs(format, n)) {
    if (d.name != "uniform" && d.name != "positive" && d.name != "far from 0" && d.name != "near 1") continue;
    const Array x{format, d.x}, y{format, d.y};
    const Truths truths{x.values(), y.values()};
    for (const Reduction* r : reductions_of("cpu")) {
      if (r->format != &format || r->gives_index) continue;
      const std::vector<Bounded> all = bounded(*r, x.values(), y.values(), truths, 0, true);
      const double u = format.unit_roundoff, value = std::abs(all[0].result.to_double());
      const double sum = Truths::above(truths.magnitudes, -1074), rms = std::sqrt(Truths::above(truths.squares, -2148) / n);
      const double scale = r->operation == "sum" ? sum : r->operation == "mean" ? sum / n : r->operation == "dot" ? Truths::above(truths.dot_magnitudes, -2148) : r->operation == "moments" ? rms : value;
      std::printf("%s %s %g", r->name.c_str(), d.name.c_str(), all[0].bound / (u * scale));
      if (all.size() == 2) std::printf(" %g", all[1].bound / (u * rms * std::sqrt(all[1].result.to_double())));
      std::printf("\n");
    }
  }
}

}  // namespace
}  // namespace samesum
