#include "samesum/operation/grid_reduction.hpp"

#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>

#include "operation/reduction_support.hpp"
#include "samesum/catalogue/backend.hpp"

namespace samesum {
namespace {
namespace on_grid {

using namespace testing_support;
using ::testing::HasSubstr;
using Rational = boost::multiprecision::cpp_rational;
using Integer = boost::multiprecision::cpp_int;

std::vector<const Method*> methods_on_grid(std::string_view backend) {
  std::vector<const Method*> all;
  for (const Method& m : methods())
    if (m.backend == backend && m.accumulator == "fixed_point" && reduces_vectors(m)) all.push_back(&m);
  return all;
}

Rational power(int e) { return e >= 0 ? Rational{Integer{1} << e} : Rational{1, Integer{1} << -e}; }

template <class T> Rational exact(T x) {
  const Decomposed d = decompose<T>(to_bits(x));
  return Rational{d.negative ? Integer{-Integer{d.significand}} : Integer{d.significand}} * power(d.exponent);
}
Rational exact(Number x) {
  return with_format(*x.format, [&]<class F>() { return exact(x.as<F>()); });
}

/// Rounds to a whole multiple of 2^grid, ties to even.
Integer to_multiple(const Rational& x, int grid) {
  const Rational scaled = abs(x) / power(grid);
  Integer whole = numerator(scaled) / denominator(scaled);
  const Rational twice = (scaled - whole) * 2;
  if (twice > 1 || (twice == 1 && (whole & 1) != 0)) ++whole;
  return x < 0 ? Integer{-whole} : whole;
}

/// ⌊log2 |x|⌋ for x != 0.
int exponent(const Rational& x) {
  int e = static_cast<int>(msb(abs(numerator(x)))) - static_cast<int>(msb(denominator(x)));
  if (abs(x) < power(e)) --e;
  return e;
}

Number rounded(const Rational& x, const FormatInfo& format) {
  if (x == 0) return {&format, 0};
  const int quantum = std::max(exponent(x) - format.precision + 1, format.min_quantum);
  const Integer kept = to_multiple(x, quantum);
  return with_format(format, [&]<class F>() {
    const auto significand = static_cast<std::uint64_t>(abs(kept));
    return Number::of(
        from_bits<F>(significand == 0 ? BitsOf<F>{0} : round_to_bits<F>(kept < 0, significand, quantum)));
  });
}

template <class T>
std::vector<Rational> terms_of(Term term, const std::vector<T>& x, const std::vector<T>& y) {
  std::vector<Rational> all;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Rational a = exact(x[i]);
    all.push_back(term == Term::element     ? a
                  : term == Term::magnitude ? Rational{abs(a)}
                                            : Rational{a * (term == Term::square ? a : exact(y[i]))});
  }
  return all;
}

/// The definition in rational arithmetic.
struct Truth {
  Rational unrounded;  ///< the sum or mean of the terms as given
  double largest;      ///< at least the largest |term|
  Number result;
  int grid;
};
Truth truth(const std::vector<Rational>& terms, ExactKind kind, const FormatInfo& input,
            const FormatInfo& format) {
  Rational largest = 0, all = 0;
  for (const Rational& t : terms) {
    all += t;
    if (abs(t) > largest) largest = abs(t);
  }
  const std::size_t n = terms.size();
  const int quantum = (kind.term >= Term::square ? 2 : 1) * input.min_quantum;
  int grid = quantum;
  if (largest != 0) {
    const int word = format.precision == 53 ? 126 : 62;
    grid = std::max(quantum, exponent(largest) + 1 + static_cast<int>(ceil_log2(n)) - word);
  }
  Integer sum = 0;
  for (const Rational& t : terms) sum += to_multiple(t, grid);
  const Rational divisor = kind.mean ? Rational{n} : Rational{1};
  const double above = largest == 0 ? 0 : std::ldexp(1, exponent(largest) + 1);
  return {all / divisor, above, rounded(Rational{sum} * power(grid) / divisor, format), grid};
}

std::vector<double> random_terms(std::mt19937_64& random, std::size_t n, const FormatInfo& input) {
  const int binades = std::array{1, 20, 100, 300}[random() % 4];
  std::vector<double> x = wide(n, binades, random());
  if (random() % 4 == 0)
    for (double& e : x) e *= input.max_finite;
  if (random() % 4 == 0)
    for (double& e : x) e *= input.smallest_subnormal;
  if (random() % 4 == 0)
    for (std::size_t i = 0; i + 1 < n; i += 2) x[i + 1] = -x[i];
  for (double& e : x) e = std::clamp(e, -input.max_finite, input.max_finite);
  return x;
}

/// The format of the input and the elements, one array for each input.
struct Data {
  Array x, y;
};
Number result_of(const Method& m, const Data& d, Options options = {}) {
  return m.inputs == 2 ? m(d.x.values(), d.y.values(), options) : m(d.x.values(), options);
}

template <class T> std::vector<T> elements(const Array& a) {
  const std::span<const T> all = a.values().as<T>();
  return {all.begin(), all.end()};
}

SAMESUM_ON_BACKENDS(MethodsOnAGrid, "cpu", "cuda");

TEST_P(MethodsOnAGrid, HaveTheBitsOfTheirDefinitionAndKeepTheirBound) {
  SAMESUM_UNSANITIZED("it tests bits");
  std::mt19937_64 random{23};
  for (const Method* m : methods_on_grid(backend))
    for (const FormatInfo& input : formats)
      for (int round = 0; round < 60; ++round) {
        const std::size_t n = 1 + random() % (round % 10 == 0 ? 300 : 12);
        const Data d{{input, random_terms(random, n, input)}, {input, random_terms(random, n, input)}};
        const Number result = result_of(*m, d);
        const ExactKind kind = *Code::of(*m).adds;
        const Truth expected = with_format(input, [&]<class T>() {
          return truth(terms_of(kind.term, elements<T>(d.x), elements<T>(d.y)), kind, input, *m->format);
        });
        const std::string what = m->name + " of " + std::string{input.name} + ", n = " + std::to_string(n);
        ASSERT_EQ(result, expected.result) << what;
        if (!std::isfinite(result.to_double())) continue;
        const Rational error = abs(exact(result) - expected.unrounded);
        for (const double largest : {expected.largest, std::numeric_limits<double>::infinity()}) {
          const double bound = m->bound(input, n, result, largest);
          if (std::isfinite(bound)) {
            ASSERT_LE(error, exact(bound)) << what;
          }
        }
        ASSERT_LE(error, exact(m->bound(input, n, result, 0, {.grid = expected.grid}))) << what;
        ASSERT_EQ(result_of(*m, d, {.grid = expected.grid}), result)
            << what << ": the grid that is found fits";
      }
}

TEST_P(MethodsOnAGrid, HaveTheSameBitsForAnyPermutation) {
  std::mt19937_64 random{24};
  for (int round = 0; round < random_cases(10'000); ++round) {
    const auto all = methods_on_grid(backend);
    const Method& m = *all[random() % all.size()];
    const FormatInfo& input = formats[random() % formats.size()];
    const std::size_t n = random() % 40;
    std::vector<double> x = random_terms(random, n, input), y = random_terms(random, n, input);
    if (n > 0 && random() % 8 == 0)
      x[random() % n] = std::array<double, 3>{NAN, INFINITY, -INFINITY}[random() % 3];
    const Number before = result_of(m, {{input, x}, {input, y}});
    for (std::size_t i = n; i > 1; --i) {
      const std::size_t k = random() % i;
      std::swap(x[i - 1], x[k]);
      std::swap(y[i - 1], y[k]);
    }
    ASSERT_EQ(result_of(m, {{input, x}, {input, y}}), before)
        << m.name << " of " << input.name << ", n = " << n;
  }
}

TEST_P(MethodsOnAGrid, HaveTheBitsOfTheirReferenceOnAGivenGrid) {
  for (const FormatInfo& input : formats)
    for (const std::size_t n : {0u, 1u, 7u, 2049u, 70'000u}) {
      const Data d{{input, wide(n, 20, n)}, {input, uniform(n, n)}};
      for (const Method* m : methods_on_grid(backend))
        for (const int grid : {lowest_grid, -1000, -149, -40, 0, 40, highest_grid}) {
          if (is_sanitized && m->format != &input && m->format != &format_info<fp32>()) continue;
          if (is_sanitized && grid != lowest_grid && grid != -40) continue;  // they walk alike
          // Threads are independent of the grid.
          if (backend == "cpu" && n == 70'000 && grid != -40) continue;
          const auto bits = [&](const Method& of) -> std::optional<Number> {
            try {
              return result_of(of, d, {.threads = 2, .grid = grid});
            } catch (const std::overflow_error&) {
              return std::nullopt;
            }
          };
          ASSERT_EQ(bits(*m), bits(reference_of(*m))) << m->name << " of " << input.name << ", 2^" << grid;
        }
    }
}

/// Results of a batch, NaN where a sum overflows the grid, and whether one does.
std::pair<Bits, bool> batch_on(const Method& m, const Data& d, const Layout& layout, Options options) {
  return with_format(*m.format, [&]<class F>() {
    std::vector<F> out(layout.results(), from_bits<F>(BitsOf<F>(0x5a5a)));
    bool overflows = false;
    try {
      if (m.inputs == 2)
        reduce(m, d.x.values(), d.y.values(), layout, std::span{out}, options);
      else
        reduce(m, d.x.values(), layout, std::span{out}, options);
    } catch (const std::overflow_error&) {
      overflows = true;
    }
    Bits bits;
    for (const F& number : out) bits.push_back(to_bits(number));
    return std::pair{bits, overflows};
  });
}

SAMESUM_ON_BACKENDS(RowsAndColumnsOnAGrid, "cpu", "cuda");

TEST_P(RowsAndColumnsOnAGrid, HaveTheBitsOfTheirReferenceWhateverTheirNeighboursHold) {
  const std::uint64_t offsets[] = {0, 5, 5, 4200, 6000}, long_offsets[] = {0, 5, 5, 4200, 30'000};
  std::vector<Layout> layouts{Layout::rows(70, 40),     Layout::rows(2, 3000), Layout::axis(1, 40, 70),
                              Layout::axis(2, 130, 17), Layout{5, 9, 1, 1, 0}, Layout::segments(offsets, 4)};
  if (backend == "cuda")  // these have other kernels
    layouts.insert(layouts.end(), {Layout::rows(100, 300), Layout::rows(3, 10'000), Layout::axis(1, 300, 100),
                                   Layout::segments(long_offsets, 4)});
  for (const FormatInfo& input : formats)
    for (const Layout& layout : layouts) {
      const std::size_t n = std::max<std::size_t>(
          6000, layout.offsets ? layout.offsets[layout.outer] : layout.outer * layout.n * layout.inner);
      std::vector<double> x = wide(n, 12, n), y = uniform(n, n);
      for (std::size_t i = 0; i < n;
           ++i) {  // by column of 70: large, tiny, special, zero, and cancelling ones
        const std::size_t column = i % 70;
        if (column == 3) x[i] = std::min(x[i] * 0x1p40, input.max_finite);
        if (column == 20) x[i] *= 0x1p-60;
        if (column == 21) x[i] = -0x1p-27;  // rounds to zero in fp16
        if (column == 33 && i > 2000) x[i] = i % 3 ? INFINITY : -INFINITY;
        if (column == 40) x[i] = -0.0;
        if (column > 60 && i >= 70) x[i] = -x[i - 70];
      }
      const Data d{{input, x}, {input, y}};
      for (const Method* m : methods_on_grid(backend))
        for (const std::optional<int> grid :
             {std::optional<int>{}, {lowest_grid}, {-1000}, {-70}, {-40}, {-21}, {-8}, {3}, {1000}}) {
          if (is_sanitized && m->format != &input && m->format != &format_info<fp32>()) continue;
          if (is_sanitized && grid && grid != -40) continue;
          if (!m->accepts(input, layout)) continue;
          const auto expected = batch_on(reference_of(*m), d, layout, {.grid = grid});
          for (int threads = grid ? 3 : 1; threads <= 3; threads += 2)  // they are independent of the grid
            ASSERT_EQ(batch_on(*m, d, layout, {.threads = threads, .grid = grid}), expected)
                << m->name << " of " << input.name << ", grid " << grid.value_or(9999) << ", " << layout.outer
                << " x " << layout.n << " x " << layout.inner;
        }
    }
}

SAMESUM_ON_BACKENDS(AGivenGrid, "reference", "cpu", "cuda");

TEST_P(AGivenGrid, ThatOverflowsIsAnErrorThatNamesTheRemedy) {
  const auto message = [](auto call) {
    try {
      call();
    } catch (const std::overflow_error& e) {
      return std::string{e.what()};
    }
    return std::string{"(none)"};
  };
  const std::vector<float> x{1, -1, 0x1p20f}, nan{NAN, 0x1p20f};
  const Method& m = method("fixed_point/fp32");
  EXPECT_EQ(m(x, {.grid = -42}).to_double(), 0x1p20) << "2^62 units";
  const Job job = m.bind(x, {.grid = -43});
  for (const auto& call :
       {std::function<void()>{[&] { m(x, {.grid = -43}); }}, {[&] { job(); }}, {[&] { job(); }}})
    EXPECT_THAT(message(call), HasSubstr("overflows the grid 2^-43; give a larger grid, or none"));
  EXPECT_THAT(message([&] { m(nan, {.grid = -43}); }), HasSubstr("overflows")) << "whatever NaN is there";
  std::vector<float> rows(3);
  EXPECT_THAT(message([&] { reduce(m, x, Layout::rows(3, 1), std::span{rows}, {.grid = -43}); }),
              HasSubstr("overflows"));
  EXPECT_EQ(rows[0], 1);
  EXPECT_TRUE(std::isnan(rows[2])) << "only the row that overflows";
  // 64-bit words of sums in other formats do not limit the terms.
  const std::vector<float> cancelling{0x1p30f, 1, -0x1p30f};
  EXPECT_EQ(m(cancelling, {.grid = -60}).to_double(), 1);
}

TEST(TheOptionGrid, IsRefusedWhereItMakesNoSense) {
  const std::vector<float> x{1};
  const auto message = [](auto call) {
    try {
      call();
    } catch (const std::invalid_argument& e) {
      return std::string{e.what()};
    }
    return std::string{"(none)"};
  };
  EXPECT_THAT(message([&] { find("tree/plain/fp32")(x, {.grid = 0}); }),
              HasSubstr("only for the accumulator"));
  EXPECT_THAT(message([&] { find("exact/fp32").bind(x, {.grid = 0}); }),
              HasSubstr("only for the accumulator"));
  EXPECT_THAT(message([&] { find("fixed_point/fp32")(x, {.grid = highest_grid + 1}); }),
              HasSubstr("grid is 2049"));
  EXPECT_THAT(message([&] { find("fixed_point/fp32")(x, {.grid = lowest_grid - 1}); }),
              HasSubstr("grid is -2149"));
}

SAMESUM_ON_BACKENDS(ADotProductOnAGrid, "reference", "cpu", "cuda");

TEST_P(ADotProductOnAGrid, BreaksTiesByWhatADoubleLacksOfAProduct) {
  // Products (1 + a)(1 - a + a²)/2 = (1 + a³)/2 and 1.5 (1 + b)(1 - b) = 1.5 - 1.5 b², whose nearest doubles
  // are ties; next to larger ones, which need more slices.
  constexpr double a = 0x1p-26, b = 0x1p-30;
  const Method& m = method("dot/fixed_point/fp64");
  for (const double large : {0.0, 0x1p40, 0x1p70, 0x1p110})
    for (const double sign : {1.0, -1.0}) {
      std::vector<double> x(40, sign * (1 + a)), y(40, (1 - a + a * a) / 2);
      for (std::size_t i = 0; i < 10; ++i) {
        x[i] = sign * 1.5 * (1 + b);
        y[i] = 1 - b;
      }
      x[20] = large;
      y[20] = 1;
      const Number result =
          m(Array{format_info<fp64>(), x}.values(), Array{format_info<fp64>(), y}.values(), {.grid = 0});
      EXPECT_EQ(result.as<fp64>(), large + sign * (10 + 29)) << large;
    }
}

SAMESUM_ON_BACKENDS(ASumOnAGrid, "reference", "cpu", "cuda");

TEST_P(ASumOnAGrid, LosesTermsFarBelowTheLargest) {
  const std::vector<float> x{0x1p40f, 0x1p-30f, 0x1p-30f, 0x1p-30f};
  EXPECT_EQ(method("fixed_point/fp32")(x).to_double(), 0x1p40);
  EXPECT_EQ(method("fixed_point/fp64")(x).to_double(), 0x1p40 + 3 * 0x1p-30 - 3 * 0x1p-30) << "beyond fp64";
  std::vector<float> cancelling = x;
  cancelling.push_back(-0x1p40f);
  EXPECT_EQ(method("fixed_point/fp32")(cancelling).to_double(), 0);
  EXPECT_EQ(method("fixed_point/fp64")(cancelling).to_double(), 3 * 0x1p-30);
}

TEST_P(ASumOnAGrid, OfZerosIsPlusZero) {
  const std::vector<float> x{-0.0f, -0.0f};
  EXPECT_EQ(method("fixed_point/fp32")(x).bits, 0u);
  EXPECT_EQ(method("fixed_point/fp32")(std::vector<float>{}).bits, 0u);
  EXPECT_EQ(method("mean/fixed_point/fp32")(std::vector<float>{}).bits, Format<float>::canonical_nan);
}

TEST_P(ASumOnAGrid, HasABoundThatIsFiniteWheneverItsResultIs) {
  for (const Method* m : methods_on_grid(backend))
    for (const FormatInfo& input : formats)
      if (Code::of(*m).adds->term < Term::square) {
        EXPECT_TRUE(std::isfinite(m->bound(input, 1'000'000, Number{m->format, 0}))) << m->name;
      }
  const Estimate e = estimate("fixed_point/fp64", std::vector<double>{1, 2, 3});
  EXPECT_NEAR(e.bound, 6 * 0x1p-53, 1e-28) << "the rounding of the result; the grid is far finer";
}

}  // namespace on_grid
}  // namespace
}  // namespace samesum
