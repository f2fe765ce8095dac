/// Statistics are the exact ones, rounded once, in every layout and format and whichever elements take part.
/// The truth is computed in rational numbers.
#include "samesum/statistics.hpp"

#include <random>

#include "operation/rational.hpp"
#include "support.hpp"

namespace samesum {
namespace {

using namespace testing_support;

constexpr double infinity = std::numeric_limits<double>::infinity(),
                 not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr Statistic all_statistics[] = {Statistic::mean, Statistic::variance, Statistic::covariance,
                                        Statistic::correlation, Statistic::linear_regression};

/// Exact sums of elements with weights.
struct Truth {
  Rational w = 0, ww = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;

  Truth(const std::vector<double>& a, const std::vector<double>& b, const std::vector<double>& weights) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      const Rational p{a[i]}, q{b[i]}, v{weights.empty() ? 1 : weights[i]};
      w += v, ww += v * v, x += v * p, y += v * q, xx += v * p * p, xy += v * p * q, yy += v * q * q;
    }
  }
  Rational divisor(const Rational& ddof, WeightKind kind) const {
    return w * (w - (kind == WeightKind::frequencies ? ddof : Rational{ddof * ww / w}));
  }
  Rational of_x() const { return w * xx - x * x; }
  Rational of_y() const { return w * yy - y * y; }
  Rational of_both() const { return w * xy - x * y; }
};

/// Whether r is the number of F nearest to moment / √square, where ties are impossible or go to even.
template <class F> bool is_nearest_ratio(F r, const Rational& moment, const Rational& square) {
  const double value = convert<double>(r);
  if (moment == 0) return to_bits(r) == 0;
  if ((value < 0) != (moment < 0)) return false;
  const BitsOf<F> bits = BitsOf<F>(to_bits(r) & ~Format<F>::sign_bit);
  const auto number = [](BitsOf<F> b) { return Rational{convert<double>(from_bits<F>(b))}; };
  const Rational truth = moment * moment / square, above = (number(bits) + number(BitsOf<F>(bits + 1))) / 2,
                 below = bits == 0 ? Rational{0} : Rational{(number(bits) + number(BitsOf<F>(bits - 1))) / 2};
  const bool is_even = bits % 2 == 0;
  return (below * below < truth || (below * below == truth && is_even)) &&
         (truth < above * above || (truth == above * above && is_even));
}

/// The results of a call on one vector, in the format of F: NaN where nothing was written.
template <class F> std::array<F, 2> results_of(StatisticsCall call) {
  std::array<F, 2> found;
  found.fill(from_bits<F>(Format<F>::canonical_nan));
  call.out = std::span{found}.first(1);
  if (call.statistic == Statistic::linear_regression) call.second = Results{std::span{found}.last(1)};
  run(call);
  return found;
}
StatisticsCall call_of(Statistic s, Values x, Values y, Weights weights = {}, Options options = {}) {
  return {.statistic = s,
          .x = x,
          .y = takes_y(s) ? y : Values{},
          .layout = Layout::vector(x.size),
          .weights = weights,
          .out = {&format_info<fp64>(), nullptr, 0},
          .options = options};
}

template <class F>
void expect_exact(const Array& a, const Array& b, const Array& c, bool is_weighted, double ddof,
                  WeightKind kind) {
  const auto doubles = [](const Array& from) {
    std::vector<double> all;
    with_format(*from.values().format, [&]<class T>() {
      for (const T v : from.values().as<T>()) all.push_back(convert<double>(v));
    });
    return all;
  };
  const Truth t{doubles(a), doubles(b), is_weighted ? doubles(c) : std::vector<double>{}};
  const Weights w = is_weighted ? Weights{c.values(), kind} : Weights{};
  const auto found = [&](Statistic s) {
    return results_of<F>(call_of(s, a.values(), b.values(), w, {.ddof = ddof}));
  };
  EXPECT_TRUE(is_nearest(found(Statistic::mean)[0], Rational{t.x / t.w}));
  if (const Rational divisor = t.divisor(Rational{ddof}, kind); divisor > 0) {
    EXPECT_TRUE(is_nearest(found(Statistic::variance)[0], Rational{t.of_x() / divisor}));
    EXPECT_TRUE(is_nearest(found(Statistic::covariance)[0], Rational{t.of_both() / divisor}));
  } else {
    EXPECT_TRUE(std::isnan(convert<double>(found(Statistic::variance)[0])));
    EXPECT_TRUE(std::isnan(convert<double>(found(Statistic::covariance)[0])));
  }
  EXPECT_TRUE(is_nearest_ratio(found(Statistic::correlation)[0], t.of_both(), Rational{t.of_x() * t.of_y()}));
  const auto [slope, intercept] = found(Statistic::linear_regression);
  EXPECT_TRUE(is_nearest(slope, Rational{t.of_both() / t.of_x()}));
  EXPECT_TRUE(is_nearest(intercept, Rational{(t.y * t.xx - t.x * t.xy) / t.of_x()}));
}

TEST(Statistics, AreTheExactOnesRoundedOnceToAnyFormat) {
  std::mt19937_64 random{1};
  for (int i = 0; i < random_cases(8); ++i)
    for (const FormatInfo& input : formats) {
      const std::size_t n = 2 + random() % 20;
      const int binades = input.index == 3 && i == 0 ? 2000 : 24;
      std::vector<double> weights = wide(n, 8, random());
      for (double& w : weights) w = std::abs(w);
      const Array x{input, wide(n, binades, random())}, y{input, wide(n, binades, random())},
          w{input, weights};
      const double ddof = std::array{0.0, 1.0, 2.5}[static_cast<std::size_t>(i % 3)];
      Formats::for_each([&]<class F>() {
        for (const WeightKind kind : {WeightKind::frequencies, WeightKind::reliabilities})
          expect_exact<F>(x, y, w, true, ddof, kind);
        expect_exact<F>(x, y, w, false, ddof, WeightKind::frequencies);
      });
    }
}

TEST(Statistics, AreExactWhereProductsOverflowOrUnderflow) {
  const FormatInfo& format = format_info<fp64>();
  for (const int power : {-1040, -530, -470, 480, 1010}) {
    std::vector<double> x = uniform(30, 1), w = uniform(30, 2);
    for (double& e : x) e *= power_of_two(power);
    for (double& e : w) e = std::abs(e) * power_of_two(power);
    expect_exact<double>(Array{format, x}, Array{format, uniform(30, 3)}, Array{format, w}, true, 0,
                         WeightKind::frequencies);
  }
}

TEST(Statistics, OfOffsetDataLoseNothing) {
  std::vector<double> x, y;
  for (int i = 0; i < 500; ++i) x.push_back(0x1p52 + i % 37), y.push_back(0x1p51 - i % 11);
  expect_exact<double>(Array{format_info<fp64>(), x}, Array{format_info<fp64>(), y},
                       Array{format_info<fp64>(), x}, false, 1, WeightKind::frequencies);
}

/// Finite data of every path: few, some and many elements, and products that two words do not hold.
TEST(Statistics, DependNeitherOnThreadsNorOnTheOrderOfTheElements) {
  for (const std::size_t n : {15u, 16u, 3000u, 70'000u})
    for (const int binades : {10, 2000}) {
      std::vector<double> x = wide(n, binades, 1), y = wide(n, binades, 2), w = wide(n, binades / 2, 3);
      for (double& e : w) e = std::abs(e);
      std::vector<std::vector<std::uint64_t>> found;
      for (const int threads : {1, 3}) {
        for (const Statistic s : all_statistics)
          for (const Weights& weights : {Weights{}, Weights{w, WeightKind::reliabilities}}) {
            const auto two = results_of<double>(call_of(s, x, y, weights, {.threads = threads, .ddof = 1}));
            if (threads == 1) found.emplace_back();
            if (threads == 1) found.back() = {to_bits(two[0]), to_bits(two[1])};
            const std::size_t at = 2 * static_cast<std::size_t>(s) + weights.is_given();
            EXPECT_EQ(found[at], (std::vector{to_bits(two[0]), to_bits(two[1])})) << n << ' ' << binades;
          }
        for (std::vector<double>* v : {&x, &y, &w}) std::ranges::reverse(*v);
      }
    }
}

TEST(Statistics, WithoutWeightsHaveTheBitsOfTheExactMethods) {
  for (const Dataset& d : datasets(300)) {
    const auto [mean, variance] = moments(d.x, {.ddof = 1});
    EXPECT_EQ(to_bits(results_of<double>(call_of(Statistic::mean, d.x, {}))[0]), to_bits(mean)) << d.name;
    EXPECT_EQ(to_bits(results_of<double>(call_of(Statistic::variance, d.x, {}, {}, {.ddof = 1}))[0]),
              to_bits(variance))
        << d.name;
    const std::vector<double> ones(d.x.size(), 1.0);
    EXPECT_EQ(to_bits(weighted_mean(d.x, ones)), to_bits(mean));
    EXPECT_EQ(to_bits(weighted_variance(d.x, ones, {.ddof = 1})), to_bits(variance));
    EXPECT_EQ(to_bits(covariance(d.x, d.x, {.ddof = 1})), to_bits(variance));
  }
}

// --- layouts and elements that take part
// ------------------------------------------------------------------------

/// Runs a call whose results are doubles; a vector has NaN where nothing was written.
std::vector<std::uint64_t> bits_of(StatisticsCall call) {
  const std::size_t n = call.layout.results(), count = is_matrix(call.statistic) ? n * n : n;
  std::vector<double> out(count, not_a_number), second(count, not_a_number);
  call.out = std::span{out};
  if (call.statistic == Statistic::linear_regression) call.second = Results{std::span{second}};
  run(call);
  std::vector<std::uint64_t> bits;
  for (const auto* v : {&out, &second})
    for (const double x : *v) bits.push_back(std::isnan(x) ? 0 : to_bits(x));
  return bits;
}

/// The places of the elements of a result.
std::vector<std::size_t> places(const Layout& l, std::size_t result) {
  std::vector<std::size_t> found(l.length(result / l.inner));
  for (std::size_t k = 0; k < found.size(); ++k)
    found[k] = l.first(result / l.inner) + k * l.stride + result % l.inner;
  return found;
}

TEST(Statistics, OfALayoutHaveTheBitsOfEachVectorPackedAndAlone) {
  const std::vector<double> x = wide(60, 20, 1), y = wide(60, 20, 2);
  std::vector<double> w = wide(60, 6, 3);
  for (double& e : w) e = std::abs(e);
  std::vector<double> holes = x;
  holes[7] = holes[8] = holes[40] = not_a_number;
  std::vector<std::uint8_t> where(60, 1);
  for (std::size_t i = 0; i < 60; i += 3) where[i] = 0;
  const std::uint64_t offsets[] = {0, 1, 20, 20, 60};
  struct Case {
    Layout x, y, w;
  };
  const Case cases[] = {
      {Layout::rows(4, 15), Layout::rows(4, 15), Layout::rows(4, 15)},
      {Layout::rows(4, 15), Layout::rows(4, 15, 0), Layout::rows(4, 15, 3)},  // repeated, and overlapping
      {Layout::rows(4, 15, 0), Layout::axis(1, 15, 4), Layout::rows(4, 15, 0)},
      {Layout::axis(3, 5, 4), Layout::axis(3, 5, 4), {3, 5, 4, 0, 4}},
      {Layout::axis(3, 5, 4), {3, 5, 4, 0, 4}, Layout::axis(3, 5, 4)},
      {Layout::segments(offsets, 4), Layout::segments(offsets, 4), Layout::segments(offsets, 4)}};
  for (const Case& c : cases)
    for (const Statistic s : all_statistics)
      for (const bool is_weighted : {false, true})
        for (const Options& o : {Options{.ddof = 1}, Options{.where = where},
                                 Options{.where = where, .skip_nan = true}, Options{.skip_nan = true}}) {
          StatisticsCall call = call_of(s, o.skip_nan ? holes : x, y, {}, o);
          call.layout = c.x;
          if (takes_y(s)) call.y_layout = c.y;
          if (is_weighted) call.weights = {w, WeightKind::reliabilities, c.w};
          std::vector<std::uint64_t> expected[2];
          for (std::size_t r = 0; r < c.x.results(); ++r) {
            std::vector<double> p, q, v;
            for (std::size_t k = 0; k < places(c.x, r).size(); ++k) {
              const std::size_t at = places(c.x, r)[k];
              if ((o.where.is_given() && !where[at]) || (o.skip_nan && std::isnan(holes[at]))) continue;
              p.push_back(x[at]), q.push_back(y[places(c.y, r)[k]]), v.push_back(w[places(c.w, r)[k]]);
            }
            const Weights weights = is_weighted ? Weights{v, WeightKind::reliabilities} : Weights{};
            const auto alone = bits_of(call_of(s, p, q, weights, {.ddof = o.ddof}));
            for (std::size_t k = 0; k < alone.size(); ++k) expected[k].push_back(alone[k]);
          }
          expected[0].insert(expected[0].end(), expected[1].begin(), expected[1].end());
          EXPECT_EQ(bits_of(call), expected[0]) << statistic_names[static_cast<std::size_t>(s)];
        }
}

TEST(Statistics, SkipElementsOfWhichAnythingIsNan) {
  const std::vector<double> x{1, 2, 4, 8, 9}, y{3, 1, 2, 5, 7}, w{1, 2, 1, 3, 1};
  for (int spoilt = 0; spoilt < 3; ++spoilt) {
    std::vector<double> inputs[3] = {x, y, w};
    inputs[spoilt][2] = not_a_number;
    std::vector<double> rest[3] = {x, y, w};
    for (auto& v : rest) v.erase(v.begin() + 2);
    EXPECT_EQ(covariance(inputs[0], inputs[1], {.skip_nan = true}, inputs[2]),
              covariance(rest[0], rest[1], {}, rest[2]));
  }
}

TEST(AMatrix, HasTheBitsOfEachPairOfVariables) {
  std::vector<double> x = wide(60, 20, 1), w = wide(15, 6, 2);
  for (double& e : w) e = std::abs(e);
  std::vector<std::uint8_t> where(60, 1);
  for (std::size_t i = 0; i < 60; i += 7) where[i] = 0;
  for (const bool selects : {false, true})
    for (const bool is_correlation : {false, true})
      for (const Layout& l : {Layout::rows(4, 15), Layout::axis(1, 15, 4)})
        for (const Weights& weights : {Weights{}, Weights{w, WeightKind::reliabilities}}) {
          const Options options{.ddof = 1, .where = selects ? Mask{where} : Mask{}};
          StatisticsCall call =
              call_of(is_correlation ? Statistic::correlation_matrix : Statistic::covariance_matrix, x, {},
                      weights, options);
          call.layout = l;
          std::vector<std::uint64_t> expected(32);
          for (std::size_t i = 0; i < 4; ++i)
            for (std::size_t k = 0; k < 4; ++k) {
              std::vector<double> p, q, v;
              for (std::size_t e = 0; e < 15; ++e) {
                const auto at = [&](std::size_t of) { return l.inner == 1 ? of * 15 + e : e * 4 + of; };
                if (selects && !(where[at(i)] && where[at(k)])) continue;
                p.push_back(x[at(i)]), q.push_back(x[at(k)]), v.push_back(w[e]);
              }
              const Weights packed = weights.is_given() ? Weights{v, WeightKind::reliabilities} : Weights{};
              expected[i * 4 + k] = to_bits(is_correlation ? correlation(p, q, {}, packed)
                                                           : covariance(p, q, {.ddof = 1}, packed));
            }
          EXPECT_EQ(bits_of(call), expected);
        }
}

// --- special values
// ----------------------------------------------------------------------------------------------

TEST(Statistics, OfSpecialValuesAreThoseOfIeeeArithmeticForMeansAndNanOtherwise) {
  const std::vector<double> x{1, 2, 4}, y{3, 1, 2};
  for (const double special : {not_a_number, infinity, -infinity}) {
    std::vector<double> spoilt = x;
    spoilt[1] = special;
    const double mean = weighted_mean(spoilt, x);
    EXPECT_TRUE(std::isnan(special) ? std::isnan(mean) : mean == special) << special;
    EXPECT_TRUE(std::isnan(weighted_variance(spoilt, x)));
    for (const bool is_first : {true, false}) {
      const std::vector<double>&a = is_first ? spoilt : y, &b = is_first ? y : spoilt;
      EXPECT_TRUE(std::isnan(covariance(a, b)) && std::isnan(correlation(a, b)));
      const auto line = linear_regression(a, b);
      EXPECT_TRUE(std::isnan(line.slope) && std::isnan(line.intercept));
    }
    std::vector<double> weights = x;
    weights[1] = std::abs(special);
    EXPECT_TRUE(std::isnan(covariance(x, y, {}, weights)));
    EXPECT_FALSE(std::isnan(covariance(spoilt, y, {.where = std::vector<std::uint8_t>{1, 0, 1}})));
  }
  EXPECT_EQ(to_bits(weighted_mean(std::vector{-0.0, -0.0}, std::vector{1.0, 2.0})), to_bits(-0.0));
  EXPECT_EQ(weighted_mean(std::vector{1e308, 1e308}, std::vector{2.0, 2.0}), 1e308);
}

TEST(Statistics, WithNothingToDivideByAreNan) {
  const std::vector<double> none, one{2}, equal{0.1, 0.1, 0.1}, x{1, 2, 4}, zeros(3, 0.0);
  EXPECT_TRUE(std::isnan(weighted_mean(none, none)) && std::isnan(covariance(none, none)));
  EXPECT_TRUE(std::isnan(covariance(one, one, {.ddof = 1})) && std::isnan(linear_regression(one, one).slope));
  EXPECT_EQ(to_bits(covariance(one, one)), to_bits(0.0));
  EXPECT_TRUE(std::isnan(correlation(equal, x)) && std::isnan(linear_regression(equal, x).intercept));
  EXPECT_EQ(linear_regression(x, equal).slope, 0);
  EXPECT_TRUE(std::isnan(covariance(x, x, {}, zeros)));
  EXPECT_TRUE(std::isnan(weighted_mean(x, zeros)));
}

TEST(ACall, ReturnsWhetherWeightsOfAResultWithElementsSumToZero) {
  const std::vector<double> x{1, 2, 3, 4}, w{0, 0, 1, -1};
  const std::vector<std::uint8_t> second_half{0, 0, 1, 1}, none(4, 0);
  double out[2], totals[2];
  StatisticsCall call{.statistic = Statistic::mean,
                      .x = x,
                      .layout = Layout::rows(2, 2),
                      .weights = w,
                      .out = std::span<double>{out},
                      .second = Results{&format_info<fp64>(), totals, 2}};
  EXPECT_TRUE(run(call));
  EXPECT_TRUE(std::isnan(out[0]) && out[1] == -infinity && totals[0] == 0 && totals[1] == 0);
  call.options.where = none;
  EXPECT_FALSE(run(call)) << "there are no elements";
  EXPECT_EQ(to_bits(totals[0]), to_bits(0.0));
  const std::vector<double> others{0, 0, 1, 2};
  call.weights = others;
  call.options.where = second_half;
  EXPECT_FALSE(run(call));
  EXPECT_EQ(totals[1], 3);
  call.options.where = {};
  EXPECT_TRUE(run(call));
}

// --- errors, bounds, pauses
// --------------------------------------------------------------------------------------

TEST(AStatistic, IsWithinHalfAUnitOfItsLastPlace) {
  EXPECT_EQ(statistic_bound(Number::of(1.0)), 0x1p-53);
  EXPECT_EQ(statistic_bound(Number::of(1.5f)), 1.5 * 0x1p-24);
  EXPECT_EQ(statistic_bound(Number::of(0.0)), 0x1p-1074 / 2);
  EXPECT_EQ(statistic_bound(Number::of(not_a_number)), infinity);
  EXPECT_THROW(statistic_bound(Number{nullptr, 0}), std::invalid_argument);
}

TEST(ACallThatDoesNotFit, IsRefusedWithTheArgumentAndTheRemedy) {
  const std::vector<double> x{1, 2, 3, 4}, short_x{1, 2, 3}, negative{1, 1, -1, 1};
  const std::vector<float> narrow(4, 1.0f);
  const std::vector<std::uint8_t> where{1, 1, 0, 1}, few{1};
  const std::uint64_t offsets[] = {0, 1, 4}, others[] = {0, 2, 4};
  double out[4] = {7, 7, 7, 7}, second[4];
  const auto expect = [&](const char* part, auto change, Statistic s = Statistic::covariance) {
    StatisticsCall call = call_of(s, x, x, {});
    call.layout = Layout::rows(2, 2);
    call.out = std::span{out}.first(is_matrix(s) ? 4 : 2);
    change(call);
    try {
      run(call);
      ADD_FAILURE() << "was not refused: " << part;
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), testing::AllOf(testing::StartsWith("samesum: "), testing::HasSubstr(part)));
    }
    EXPECT_THAT(out, testing::Each(7)) << part;
  };
  expect("statistic is unknown", [](auto& c) { c.statistic = static_cast<Statistic>(9); });
  expect("y is missing; covariance takes x and y", [](auto& c) { c.y = {}; });
  expect(
      "variance takes one input; leave out y", [&](auto& c) { c.y = x; }, Statistic::variance);
  expect(
      "y_layout is given without y", [](auto& c) { c.y_layout = c.layout; }, Statistic::variance);
  expect("x has an unknown format", [](auto& c) { c.x = {}; });
  expect("x has format fp64 and y has format fp32; convert one", [&](auto& c) { c.y = narrow; });
  expect("weights has format fp32", [&](auto& c) { c.weights = narrow; });
  expect("y has 3 elements, but its layout reads 4; pass more", [&](auto& c) { c.y = short_x; });
  expect("x has 4 elements, but its layout reads 6", [](auto& c) { c.layout = Layout::rows(2, 3); });
  expect("the layout of y has 1 vectors; it needs 2, as that of x",
         [](auto& c) { c.y_layout = Layout::vector(2); });
  expect("vector 0 of weights has 1 elements, and that of x 2; pass as many", [&](auto& c) {
    c.weights = {x, WeightKind::frequencies, Layout::rows(2, 1)};
  });
  expect("vector 0 of y has 2 elements, and that of x 1", [&](auto& c) {
    c.layout = Layout::segments(offsets, 2);
    c.y_layout = Layout::segments(others, 2);
  });
  expect(
      "layout has segments; variables have as many observations",
      [&](auto& c) { c.layout = Layout::segments(others, 2); }, Statistic::covariance_matrix);
  expect(
      "the layout of weights has 2 vectors; it needs 1, which all variables share",
      [&](auto& c) {
        c.weights = {x, WeightKind::frequencies, Layout::rows(2, 2)};
      },
      Statistic::correlation_matrix);
  expect("weights has a layout, but no values", [](auto& c) { c.weights.layout = c.layout; });
  expect("weights.kind is unknown", [](auto& c) { c.weights.kind = static_cast<WeightKind>(2); });
  expect("weights has negative numbers; pass weights of 0 or more", [&](auto& c) { c.weights = negative; });
  expect("out has room for 1 numbers; the results are 2", [&](auto& c) { c.out.size = 1; });
  expect(
      "out has room for 2 numbers; the results are 4", [&](auto& c) { c.out.size = 2; },
      Statistic::covariance_matrix);
  expect("out has no format of floating-point numbers", [&](auto& c) { c.out.format = nullptr; });
  expect("out is null", [&](auto& c) { c.out.data = nullptr; });
  expect("out overlaps x; use separate memory", [&](auto& c) { c.out.data = const_cast<double*>(x.data()); });
  expect("out overlaps where", [&](auto& c) { c.options.where = {out, 4}; });
  expect("second is only for intercepts and for sums of weights",
         [&](auto& c) { c.second = Results{std::span{second}.first(2)}; });
  expect(
      "second overlaps out", [&](auto& c) { c.second = c.out; }, Statistic::mean);
  expect(
      "second has room for 3", [&](auto& c) { c.second = Results{std::span{second}.first(3)}; },
      Statistic::mean);
  expect(
      "out has format fp64 and second has format fp32; pass one format",
      [&](auto& c) {
        c.second = Results{&format_info<fp32>(), second, 2};
      },
      Statistic::mean);
  expect("threads is -1", [](auto& c) { c.options.threads = -1; });
  expect("ddof is -1; it must be a finite number of 0 or more", [](auto& c) { c.options.ddof = -1; });
  expect("ddof is inf", [](auto& c) { c.options.ddof = infinity; });
  expect("statistics take the options threads, ddof, where and skip_nan",
         [](auto& c) { c.options.grid = 0; });
  expect("where has 1 flags; pass 4, one for each element of x", [&](auto& c) { c.options.where = few; });
  // Weights of elements that take no part may be anything, and those of means may be negative.
  StatisticsCall call = call_of(Statistic::covariance, x, x, negative, {.where = where});
  double result;
  call.out = std::span{&result, 1};
  EXPECT_NO_THROW(run(call));
  EXPECT_NO_THROW(weighted_mean(x, negative));
  EXPECT_NO_THROW(weighted_variance(x, std::vector{not_a_number, -0.0, 1.0, 1.0}));
}

TEST(ALongCall, PausesBetweenPortionsAndEndsIfThePauseThrows) {
  const std::size_t n = std::size_t{1} << 12;
  const std::vector<float> x(2 * n, 1.0f);
  std::vector<float> out(n);
  StatisticsCall call{
      .statistic = Statistic::mean, .x = x, .layout = Layout::rows(n, n, 1), .out = std::span{out}};
  int pauses = 0;
  run(call, [&] { ++pauses; });
  EXPECT_EQ(pauses, 1);
  EXPECT_THROW(run(call, [] { throw std::runtime_error{"interrupted"}; }), std::runtime_error);
}

}  // namespace
}  // namespace samesum
