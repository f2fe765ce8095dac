/// The bounds of reductions hold, checked with integers and numbers of many digits, and are close to the
/// largest errors found.
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <map>
#include <optional>

#include "harness/truth.hpp"
#include "operation/reduction_support.hpp"

namespace samesum {
namespace {

using namespace testing_support;
using harness::BigInteger, harness::exact_value;
using Real = boost::multiprecision::cpp_bin_float_50;

BigInteger magnitude_of(const BigInteger& x) { return x < 0 ? BigInteger{-x} : x; }
BigInteger exact_of(double x) { return exact_value(Number::of(x)); }

struct Pairs {
  std::string name;
  std::vector<double> x, y;
};

/// Returns ordinary and awkward data, scaled to the range of the format. Dot products of the cancelling data
/// have condition numbers up to about u^-2.
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

/// Exact results of the reductions of two arrays. Sums of products are integers in units of 2^-2148.
struct Truths {
  Values elements;
  std::size_t n;
  BigInteger sum, magnitudes, squares, dot, dot_magnitudes;
  Real product;
  double smallest, largest, largest_magnitude;

  Truths(Values x, Values y)
      : elements{x}, n{x.size}, product{1}, smallest{INFINITY}, largest{-INFINITY}, largest_magnitude{0} {
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
    });
    if (n > 0) largest_magnitude = std::max(largest, -smallest);
  }

  /// Computed when it is first needed, since it takes far longer than the others.
  const Real& logsumexp() const {
    if (!logsumexp_) {
      Real exponentials = 0;
      with_format(*elements.format, [&]<class F>() {
        for (const F& e : elements.as<F>()) exponentials += exp(Real{convert<double>(e)} - Real{largest});
      });
      logsumexp_ = n > 0 ? Real{log(exponentials) + largest} : Real{0};
    }
    return *logsumexp_;
  }

  /// Returns x · 2^unit, rounded up.
  static double above(const BigInteger& x, int unit) {
    const double value = Real{ldexp(Real{x}, unit)}.convert_to<double>();
    return x == 0 ? 0 : std::nextafter(value, INFINITY);
  }

  /// Whether |result - numerator·2^-2148 / denominator| <= bound, computed without rounding.
  static bool within(Number result, double bound, const BigInteger& numerator,
                     const BigInteger& denominator) {
    const BigInteger scaled = (exact_value(result) << 1074) * denominator;
    return magnitude_of(scaled - numerator) <= (exact_of(bound) << 1074) * denominator;
  }
  static bool near(Number result, double bound, const Real& truth) {
    return abs(truth - result.to_double()) <= Real{bound} + abs(truth) * Real{0x1p-150};
  }

  /// Returns the magnitudes that the caller knows, if any: Σ|x| or Σ|xy|.
  double known(const Method& r) const {
    if (r.operation == "sum" || r.operation == "mean") return above(magnitudes, -1074);
    if (r.operation == "dot") return above(dot_magnitudes, -2148);
    return unbounded_error;
  }
  bool within(const Method& r, Number result, double bound) const {
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
    if (r.operation == "logsumexp") return near(result, bound, logsumexp());
    if (r.operation == "min") return bound == 0 && result.to_double() == smallest;
    if (r.operation == "max") return bound == 0 && result.to_double() == largest;
    ADD_FAILURE() << r.name << ": this test has no exact result for it";
    return false;
  }
  bool mean_within(Number mean, double bound) const {
    return !std::isfinite(bound) || within(mean, bound, sum << 1074, n);
  }
  bool variance_within(Number variance, double bound, std::uint64_t ddof) const {
    return !std::isfinite(bound) ||
           within(variance, bound, BigInteger{n} * squares - sum * sum, BigInteger{n} * BigInteger{n - ddof});
  }

 private:
  mutable std::optional<Real> logsumexp_;
};

struct Bounded {
  Number result;
  double bound;
};

/// Returns the result with its bound, or both results of moments with theirs.
std::vector<Bounded> bounded(const Method& r, Values x, Values y, const Truths& truths, std::size_t ddof,
                             bool largest_is_known) {
  const Bits bits = reduce_all(r, x, y, Layout::vector(x.size), {.ddof = static_cast<double>(ddof)});
  const Number first{r.format, bits[0]};
  if (r.results == 1) return {{first, r.bound(*x.format, x.size, first, truths.known(r))}};
  const Number second{r.format, bits[1]};
  const auto [mean, variance] = moments_bound(r, *x.format, x.size, first, second, static_cast<double>(ddof),
                                              largest_is_known ? truths.largest_magnitude : unbounded_error);
  return {{first, mean}, {second, variance}};
}

/// Expects every reduction of these two arrays on the CPU to be within its bounds. Counts the finite bounds,
/// and all bounds, by name.
void expect_within(const Array& x, const Array& y, const std::string& data,
                   std::map<std::string, std::pair<int, int>>& finite) {
  const Truths truths{x.values(), y.values()};
  const FormatInfo& input = *x.values().format;
  for (const Method* r : reductions_of("cpu")) {
    if (!r->accepts(input)) continue;
    const std::string what = r->name + " of " + data;
    if (r->returns_index) {
      EXPECT_EQ(r->bound(input, truths.n, Number{}), 0) << what;
      continue;
    }
    for (const auto& [ddof, known] : {std::pair{0, false}, {1, false}, {0, true}}) {
      if (r->results == 1 && (known || ddof == 1)) continue;
      const std::vector<Bounded> all =
          bounded(*r, x.values(), y.values(), truths, static_cast<std::size_t>(ddof), known);
      for (std::size_t k = 0; k < all.size(); ++k) {
        const auto& [result, bound] = all[k];
        EXPECT_FALSE(std::isnan(bound)) << what;
        EXPECT_TRUE(all.size() == 1 ? truths.within(*r, result, bound)
                    : k == 0        ? truths.mean_within(result, bound)
                                    : truths.variance_within(result, bound, static_cast<std::size_t>(ddof)))
            << what << ", number " << k << ": " << ::testing::PrintToString(result) << " +- " << bound;
        finite[r->name].first += std::isfinite(bound);
        ++finite[r->name].second;
      }
    }
  }
}

class BoundsOfReductions : public ::testing::TestWithParam<const FormatInfo*> {};
INSTANTIATE_TEST_SUITE_P(Of, BoundsOfReductions,
                         ::testing::Values(&formats[0], &formats[1], &formats[2], &formats[3]),
                         [](const auto& info) { return std::string{info.param->name}; });

TEST_P(BoundsOfReductions, HoldForEveryReductionAndKindOfData) {
  const FormatInfo& input = *GetParam();
  std::map<std::string, std::pair<int, int>> finite, of_nothing;
  for (const std::size_t n : {0, 1, 2, 3, 10, 100, 5000})
    for (const Pairs& d : pairs(input, n))
      expect_within({input, d.x}, {input, d.y}, std::to_string(n) + ", " + d.name,
                    n == 0 ? of_nothing : finite);
  for (const auto& [name, count] : finite)
    EXPECT_GT(2 * count.first, count.second) << name << ": the bound is infinite for most of the data";
}

TEST_P(BoundsOfReductions, HoldForManyShortArraysOfFewBits) {
  // Small integers times large, medium and small powers of two, whose rounding errors add up most easily.
  const FormatInfo& input = *GetParam();
  std::mt19937_64 random{11};
  std::map<std::string, std::pair<int, int>> finite;
  for (int i = 0; i < 200; ++i) {
    const int least = input.min_quantum / 2 * (i % 3);
    const auto some = [&](std::size_t n) {
      std::vector<double> x(n);
      for (double& e : x) {
        const double integer = static_cast<double>(random() % 512) - 256;
        e = integer * power_of_two(std::max(input.min_quantum, least + static_cast<int>(random() % 10) - 5));
      }
      return x;
    };
    const std::size_t n = 1 + random() % 9;
    const std::vector<double> x = some(n), y = some(n);
    expect_within({input, x}, {input, y}, ::testing::PrintToString(x) + " and " + ::testing::PrintToString(y),
                  finite);
  }
  for (const auto& [name, count] : finite)
    EXPECT_GT(2 * count.first, count.second) << name << ": the bound is infinite for most of the data";
}

TEST(EveryBound, IsANumberWhateverIsKnownOfTheData) {
  for (const Method& m : methods())
    for (const FormatInfo& input : formats) {
      if (!m.accepts(input)) continue;
      const FormatInfo* const format = m.result_format(input);
      for (const std::size_t n : {0, 1, 2, 100})
        for (const double magnitudes : std::initializer_list<double>{0.0, 1.0, 1e300, INFINITY, NAN})
          for (const double value : std::initializer_list<double>{0.0, 1.0, INFINITY})
            for (const double probability : {1.0, 0.9}) {
              const Number number = with_format(format ? *format : input, [&]<class F>() {
                return Number{&format_info<F>(), to_bits(convert<F>(value))};
              });
              const ResultNumbers result =
                  m.results == 2 ? ResultNumbers{number, number} : ResultNumbers{number};
              const BoundOptions options{
                  .probability = probability,
                  .grid = m.takes_grid && m.takes_window ? std::optional{0} : std::nullopt};
              EXPECT_GE(m.bound(input, n, result, magnitudes, options), 0)
                  << m.name << " of " << n << ", magnitudes: " << magnitudes << ", result: " << value;
            }
    }
}

TEST_P(BoundsOfReductions, AreAFewUnitRoundoffsForOrdinaryData) {
  // The units are u·Σ|terms| or u·|result|; for moments u·Q for the mean and u·Qσ for the variance, with Q² =
  // Σx²/n.
  const FormatInfo& format = *GetParam();
  const double few_bits = format.precision < Format<fp16>::precision ? 10 : 1;
  const std::size_t n = 1000;
  for (const Pairs& d : pairs(format, n)) {
    if (d.name != "uniform" && d.name != "positive") continue;
    const Array x{format, d.x}, y{format, d.y};
    const Truths truths{x.values(), y.values()};
    for (const Method* r : reductions_of("cpu")) {
      if (r->format != &format || !r->accepts(format) || r->returns_index || r->operation == "prod") continue;
      const std::vector<Bounded> all = bounded(*r, x.values(), y.values(), truths, 0, true);
      const double q = std::sqrt(Truths::above(truths.squares, -2148) / static_cast<double>(n));
      const double unit = [&] {
        if (r->operation == "moments") return q;
        if (r->operation == "mean") return truths.known(*r) / static_cast<double>(n);
        if (r->operation == "sum" || r->operation == "dot") return truths.known(*r);
        return all[0].result.to_double();
      }();
      const double steps = static_cast<double>(r->height(n).total());
      if (all.size() == 1) {
        EXPECT_LE(all[0].bound, (steps + 6) * format.unit_roundoff * std::abs(unit))
            << r->name << ", " << d.name;
      } else {
        EXPECT_LE(all[0].bound, few_bits * 40 * format.unit_roundoff * q) << r->name << ", " << d.name;
        EXPECT_LE(all[1].bound,
                  few_bits * 400 * format.unit_roundoff * q * std::sqrt(all[1].result.to_double()))
            << r->name << ", " << d.name;
      }
    }
  }
}

TEST(TheBoundOfAReduction, IsCloseToTheLargestErrorFound) {
  // Hill climbing over a few elements of few bits attained these shares of the bounds, as for sums in
  // bound_test.cpp. For compensated accumulators, the shares exclude the last rounding. The test fails if a
  // bound becomes smaller or larger.
  const struct {
    const char* name;
    std::size_t which;
    double attained;
    std::vector<double> x, y;
  } climbs[] = {
      {"dot/tree/plain/bf16", 0, 0.988, {-0x1.28p+0}, {-0x1.cp-1}},
      {"dot/tree/plain/bf16", 0, 0.973, {0x1.18p-2, -0x1.7cp-2}, {-0x1.d6p+4, 0x1.5ap-4}},
      {"dot/tree/plain/bf16", 0, 0.996, {-0x1.02p-70}, {0x1.fcp-65}},
      {"dot/tree/kahan/bf16",
       0,
       0.020,
       {-0x1.5ap+3, 0x1.2ap+4, 0x1.12p-1},
       {-0x1.c4p-3, -0x1.bcp+1, -0x1.e6p+1}},
      {"dot/tree/neumaier/bf16", 0, 0.496, {-0x1.d4p-67}, {0x1.a4p-67}},
      {"dot/tree/double_word/bf16",
       0,
       0.025,
       {-0x1.ccp-1, 0x1.84p-3, -0x1.6p+0},
       {-0x1.44p-2, -0x1.e6p-2, 0x1.22p-3}},
      {"squared_norm/tree/plain/bf16", 0, 0.875, {0x1.1p-3}, {}},
      {"squared_norm/tree/plain/fp16", 0, 0.983, {-0x1.6a4p-13, -0x1.6a4p-13, 0x1.6a8p-13}, {}},
      {"sum_of_magnitudes/pairwise/plain/bf16", 0, 0.985, {-0x1.bp+0, 0x1.2ap+1}, {}},
      {"mean/tree/plain/bf16", 0, 0.781, {-0x1.8p-3, 0x1.7ep-3, 0x1.0cp+4}, {}},
      {"norm/tree/bf16", 0, 0.340, {0x1.82p+4, -0x1.bcp+4}, {}},
      {"prod/tree/bf16", 0, 0.988, {-0x1.fep+3, -0x1.02p+4}, {}},
      {"prod/tree/bf16", 0, 1.000, {-0x1.12p-67, -0x1.ep-68}, {}},
      {"logsumexp/tree/fp32", 0, 0.770, {0x1.11e29ap+4, 0x1.a75806p+1}, {}},
      {"logsumexp/tree/fp64", 0, 0.814, {0x1.f6e09f12cb055p+3, 0x1.de9059f979b8fp+3}, {}},
      {"moments/tree/bf16", 0, 0.811, {0x1.02p+3, 0x1p+3}, {}},
      {"moments/tree/bf16", 1, 0.055, {-0x1.16p+4, 0x1.6p-1, -0x1.38p+4}, {}},
      {"moments/tree/fp16", 1, 0.068, {0x1.2b4p+3, -0x1.714p+3, 0x1.abcp-2, -0x1.dbcp+4}, {}},
  };
  for (const auto& [name, which, attained, a, b] : climbs) {
    const Method& r = find(name);
    const Array x{*r.format, a}, y{*r.format, b.empty() ? a : b};
    const Truths truths{x.values(), y.values()};
    const auto [result, bound] = bounded(r, x.values(), y.values(), truths, 0, false)[which];
    const double last = r.accumulator.empty() || r.accumulator == "plain"
                            ? 0
                            : std::abs(result.to_double()) * r.format->unit_roundoff;
    const auto is_within = [&](double share) {
      const double part = last + share * (bound - last);
      if (r.results == 1) return truths.within(r, result, part);
      return which == 0 ? truths.mean_within(result, part) : truths.variance_within(result, part, 0);
    };
    EXPECT_TRUE(is_within(1)) << name;
    EXPECT_TRUE(is_within(attained + 0.002)) << name << ": the bound is smaller than it was";
    EXPECT_FALSE(is_within(attained - 0.002)) << name << ": the bound is larger than it was";
  }
}

Number number_of(std::string_view format, double x) {
  return with_format(*find_format(format), [&]<class F>() { return Number::of(convert<F>(x)); });
}

TEST(TheBoundOfAReduction, NeedsAllResultsOfTheMethod) {
  const Number one = Number::of(1.0f);
  EXPECT_THROW(find("moments/tree/fp32").bound(format_info<float>(), 10, one), std::invalid_argument);
  EXPECT_THROW(find("norm/tree/fp32").bound(format_info<float>(), 10, {one, one}), std::invalid_argument);
}

TEST(TheBoundOfAReduction, IsInfiniteIfSomethingMayOverflowOrMagnitudesAreUnknown) {
  const FormatInfo &half = format_info<fp16>(), &single = format_info<fp32>();
  const auto bound = [](const char* name, const FormatInfo& input, std::size_t n, double result,
                        double magnitudes = INFINITY) {
    const Method& r = find(name);
    return r.bound(input, n, number_of(r.format->name, result), magnitudes);
  };
  for (const char* name : {"sum/tree/plain/fp32", "mean/tree/kahan/fp32", "dot/pairwise/plain/fp32"}) {
    EXPECT_EQ(bound(name, single, 10, 1), INFINITY) << name << ": no magnitudes are known";
    EXPECT_LT(bound(name, single, 10, 1, 2), 1e-5) << name;
    EXPECT_EQ(bound(name, single, 10, 1, 3.5e38), INFINITY) << name << ": a partial sum may overflow";
    EXPECT_EQ(bound(name, single, 10, NAN, 2), INFINITY) << name;
    EXPECT_EQ(bound(name, single, 0, 0), 0) << name << ": no elements";
  }
  EXPECT_EQ(bound("squared_norm/tree/kahan/fp16", half, 100, 60000), INFINITY)
      << "a partial sum may overflow";
  EXPECT_LT(bound("squared_norm/tree/plain/fp16", half, 100, 60000), 300)
      << "each partial sum is at most the result";
  EXPECT_LT(bound("norm/tree/fp16", half, 100, 60000), 1000) << "the terms of a norm do not overflow";
  EXPECT_LT(bound("prod/tree/fp16", half, 1000, 1), 1);
  EXPECT_NEAR(bound("prod/tree/fp16", half, 2100, 1), std::pow(1 - 0x1p-11, -2099) - 1, 1e-3) << "n·u >= 1";
  EXPECT_LT(bound("prod/tree/fp32", half, 2100, 1), 1e-3);
  EXPECT_EQ(bound("norm/tree/fp32", format_info<fp64>(), 10, 1), INFINITY) << "elements would be rounded";
  EXPECT_EQ(bound("norm/tree/fp32", single, 10, INFINITY), INFINITY);
  EXPECT_EQ(bound("logsumexp/tree/fp32", single, 10, -INFINITY), INFINITY);
  EXPECT_LT(bound("logsumexp/tree/fp32", single, 1'000'000'000, 1000), 1e-3);
  EXPECT_EQ(bound("dot/exact/fp32", single, 10, 1), 0x1p-24);
  EXPECT_EQ(bound("max/fp32", half, 10, 1), 0);

  const Method& moments = find("moments/tree/bf16");
  const FormatInfo& input = *moments.format;
  const Number one = number_of("bf16", 1);
  for (const std::size_t n : {100u, 1000u, 100'000u, 10'000'000u, 3'000'000'000u}) {
    const MomentsBound unknown = moments_bound(moments, input, n, one, one);
    const double length = static_cast<double>(n);
    EXPECT_LT(unknown.mean, 1100 * std::sqrt(length)) << "about h·√n·σ";
    EXPECT_LT(unknown.variance, 4e6 * length) << "about the square of that";
    const MomentsBound known = moments_bound(moments, input, n, one, one, 0, 4);
    EXPECT_LT(known.mean, 5.01) << "|mean| + largest";
    EXPECT_LT(known.variance, 25.01);
  }
  const Method& halves = find("moments/tree/fp16");
  EXPECT_LT(moments_bound(halves, half, 100'000'000, number_of("fp16", 1), number_of("fp16", 1)).mean, 65506);
  EXPECT_LT(moments_bound(moments, input, 5000, one, one, 0, 4).mean, 4);
  EXPECT_LT(moments_bound(moments, input, 5, one, one).variance, 2);
  EXPECT_EQ(moments_bound(moments, input, 5, one, number_of("bf16", NAN)).variance, INFINITY);
  EXPECT_LT(moments_bound(moments, input, 5, one, number_of("bf16", NAN), 0, 2).mean, 1);
  EXPECT_EQ(moments_bound(moments, input, 5, number_of("bf16", NAN), one, 0, 2).mean, INFINITY);
}

TEST(TheBoundsOfMomentsOfFewBits, AreFiniteAndHoldForManyElements) {
  std::mt19937_64 random{21};
  for (const FormatInfo* format : {&format_info<bf16>(), &format_info<fp16>()})
    for (const std::size_t n : {2u, 5u, 40u, 100u, 700u, 5000u, 20'000u})
      for (int kind = 0; kind < 6; ++kind) {
        // The kinds: far from 0, one outlier, many binades, equal pairs, a step, neighbours in the format.
        std::vector<double> x = uniform(n, random());
        const std::vector<double> binades = wide(n, 20, random());
        for (std::size_t i = 0; i < n; ++i)
          x[i] = kind == 0   ? 100 + x[i]
                 : kind == 1 ? (i == n / 3 ? 200 : x[i] * 0x1p-7)
                 : kind == 2 ? binades[i] * 0x1p-4
                 : kind == 3 ? (i % 2 ? 3 : -3)
                 : kind == 4 ? (i < n / 2 ? 1 : 30)
                             : 1 + (i % 3 == 0 ? 2 * format->unit_roundoff : 0);
        const Array array{*format, x};
        const Truths truths{array.values(), array.values()};
        const Method& r = find("moments/tree/" + std::string{format->name});
        for (const bool known : {false, true}) {
          const std::vector<Bounded> two = bounded(r, array.values(), array.values(), truths, 1, known);
          const std::string what = r.name + ", n = " + std::to_string(n) + ", kind " + std::to_string(kind);
          EXPECT_TRUE(std::isfinite(two[0].bound) && std::isfinite(two[1].bound)) << what;
          EXPECT_TRUE(truths.mean_within(two[0].result, two[0].bound)) << what;
          EXPECT_TRUE(truths.variance_within(two[1].result, two[1].bound, 1)) << what;
        }
      }
}

TEST(TheBoundOfAMeanOfHalves, IsFiniteAndHoldsIfTheSumOverflows) {
  for (const std::size_t n : {2u, 3u, 100u, 2050u, 4101u, 9000u})
    for (const double scale : {5.0, 700.0, 20'000.0, 65'000.0, 65'504.0})
      for (const bool positive : {false, true}) {
        std::vector<double> x = uniform(n, n);
        for (double& e : x) e = !positive ? scale * e : scale == 65'504 ? scale : scale * (2 + e) / 3;
        const Array array{format_info<fp16>(), x};
        const Truths truths{array.values(), array.values()};
        for (const Method* r : half_means("cpu")) {
          const auto [mean, bound] = bounded(*r, array.values(), array.values(), truths, 0, false)[0];
          EXPECT_TRUE(truths.within(*r, mean, bound)) << r->name << ", n = " << n << ", " << scale;
          EXPECT_TRUE(std::isfinite(bound)) << r->name << ", n = " << n << ", " << scale;
          // If the words of a compensated sum may have overflowed, its bound is no better than its
          // magnitudes.
          if (r->accumulator == "plain" || (positive && static_cast<double>(n) * scale > 300'000)) {
            EXPECT_LT(bound, scale / 16) << r->name << ", n = " << n;
          }
        }
      }
}

TEST(TheBoundOfAReduction, IsRefusedForAResultThatDoesNotExist) {
  const FormatInfo& input = format_info<fp32>();
  const Number one = number_of("fp32", 1);
  EXPECT_NO_THROW(find("moments/tree/fp32").bound(input, 5, {one, one}, 1, {.result_index = 1}));
  EXPECT_THROW(find("moments/tree/fp32").bound(input, 5, {one, one}, 1, {.result_index = 2}),
               std::invalid_argument);
  EXPECT_THROW(find("norm/tree/fp32").bound(input, 5, one, 1, {.result_index = 1}), std::invalid_argument);
}

}  // namespace
}  // namespace samesum
