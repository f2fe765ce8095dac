/// Reductions have the bits of their reference for any batch, number of threads and address. The tests also
/// cover accuracy, special values and refused calls.
#include <array>
#include <cmath>
#include <map>

#include "operation/reduction_support.hpp"
#include "samesum/backend/cpu/loops/instruction_set.hpp"
#include "samesum/operation/distinct.hpp"

namespace samesum {
namespace {

using namespace testing_support;

using EveryReduction = MethodTest;
INSTANTIATE_TEST_SUITE_P(Cpu, EveryReduction,
                         ::testing::ValuesIn(without_fp16_if_sanitized(reductions_of("cpu"))), test_name);
INSTANTIATE_TEST_SUITE_P(Cuda, EveryReduction, ::testing::ValuesIn(or_absent(reductions_of("cuda"))),
                         test_name);

// Making and rounding numbers takes as long as reducing them, so all methods share the inputs.

struct TwoInputs {
  Array x, y;
};

const TwoInputs& wide_and_uniform(const FormatInfo& format, std::size_t n, std::size_t offset = 0) {
  static std::map<std::array<std::size_t, 3>, TwoInputs> made;
  const std::array key{format.index, n, offset};
  if (const auto found = made.find(key); found != made.end()) return found->second;
  return made.try_emplace(key, TwoInputs{{format, wide(n, 12, 3), offset}, {format, uniform(n, 4), offset}})
      .first->second;
}

struct NamedInputs {
  std::string name;
  Array x, y;
};

/// Returns one input for each data set.
template <std::vector<Dataset> (*datasets)(std::size_t)>
const std::vector<NamedInputs>& inputs_of(const FormatInfo& format, std::size_t n) {
  static std::map<std::array<std::size_t, 2>, std::vector<NamedInputs>> made;
  std::vector<NamedInputs>& all = made[{format.index, n}];
  if (all.empty())
    for (const Dataset& d : datasets(n)) all.push_back({d.name, {format, d.x}, {format, uniform(n, 11), 3}});
  return all;
}

TEST_P(EveryReduction, HasTheBitsOfItsReferenceInEveryBatch) {
  std::size_t k = 0;
  for (const auto& [b, x, y] : batch_data(input_of(m))) {
    // Compensated sums walk as plain ones do.
    const bool walks_alike =
        m.format != &format_info<fp32>() || (m.accumulator != "plain" && !m.order.empty());
    if (is_sanitized && walks_alike && ++k % 2 != m.format->index / 2 % 2) continue;
    if (!m.accepts(input_of(m), b.layout)) continue;
    if (!is_sanitized || b.elements < 20'000 || b.elements > 70'000) {  // few of the long ones
      EXPECT_EQ(reduce_all(m, x.values(), y.values(), b.layout),
                reduce_all(reference_of(m), x.values(), y.values(), b.layout))
          << b.name;
    }
  }
}

TEST_P(EveryReduction, HasTheBitsOfItsReferenceOnEveryKindOfDataAndFormat) {
  SAMESUM_SANITIZED_IN_FP32(m);
  for (const FormatInfo& input : formats) {
    if (!m.accepts(input)) continue;
    std::size_t k = 0;
    for (const auto& [name, x, y] : inputs_of<datasets>(input, 5000))
      if (!is_sanitized || k++ % 3 == 0) {
        EXPECT_EQ(reduce_all(m, x.values(), y.values(), Layout::vector(5000)),
                  reduce_all(reference_of(m), x.values(), y.values(), Layout::vector(5000)))
            << name << " of " << input.name;
      }
  }
}

TEST_P(EveryReduction, HasTheSameBitsForAnyNumberOfThreads) {
  SAMESUM_SANITIZED_IN_FP32(m);
  const std::size_t n = is_sanitized ? 70'000 : 140'000;  // groups of leaves, the last one incomplete
  const auto& [x, y] = wide_and_uniform(input_of(m), n);
  for (const Layout& layout :
       {Layout::vector(n), Layout::rows(n / 1000, 1000), Layout::axis(1, n / 100, 100)}) {
    if (!m.accepts(input_of(m), layout)) continue;
    const Bits expected = reduce_all(on_host(m), x.values(), y.values(), layout, {.threads = 1});
    for (const int threads : {2, 5})
      if (!is_sanitized || threads == 5) {
        EXPECT_EQ(reduce_all(m, x.values(), y.values(), layout, {.threads = threads}), expected);
      }
  }
}

TEST(Threads, OfTheDefaultNumberGiveTheSameBits) {
  constexpr std::size_t n = 300'000;  // enough for a second thread
  const Array x{format_info<fp32>(), wide(n, 12, 3)};
  for (const char* name : {"sum/tree/kahan/fp32", "norm/pairwise/fp32", "moments/exact/fp32", "argmax/fp32"})
    for (const Layout& layout : {Layout::vector(n), Layout::rows(300, 1000), Layout::axis(1, 3000, 100)})
      EXPECT_EQ(reduce_all(find(name), x.values(), x.values(), layout, {.threads = 0}),
                reduce_all(find(name), x.values(), x.values(), layout, {.threads = 1}))
          << name;
}

TEST_P(EveryReduction, GivesARowTheBitsThatItHasAlone) {
  SAMESUM_SANITIZED_IN_FP32(m);
  if (!m.accepts(input_of(m), Layout::rows(2, 2))) return;
  constexpr std::size_t columns = 777, most = 129;
  const auto& [x, y] = wide_and_uniform(input_of(m), most * columns, 1);
  const auto row = [&](Values v, std::size_t k) {
    return Values{*v.format, static_cast<const std::byte*>(v.data) + k * columns * v.format->bytes, columns};
  };
  const Bits all = reduce_all(m, x.values(), y.values(), Layout::rows(most, columns));
  const std::size_t each = static_cast<std::size_t>(m.results);
  for (const std::size_t k : {0, 1, 100, 128}) {
    const Bits alone = reduce_all(m, row(x.values(), k), row(y.values(), k), Layout::vector(columns));
    EXPECT_EQ(alone, Bits(all.begin() + static_cast<long>(k * each),
                          all.begin() + static_cast<long>((k + 1) * each)))
        << "row " << k;
  }
  for (std::size_t rows = 1; rows <= most; rows += 64)
    EXPECT_EQ(reduce_all(m, x.values(), y.values(), Layout::rows(rows, columns)),
              Bits(all.begin(), all.begin() + static_cast<long>(rows * each)))
        << rows << " rows";
}

/// Rows, and on a GPU also those of lengths for which it has other kernels.
std::vector<Layout> layouts_of_awkward_data(const Method& m, std::size_t n) {
  std::vector<Layout> all{Layout::vector(n), Layout::rows(9, 512), Layout::rows(6, 768)};
  if (m.backend == "cuda")
    all.insert(all.end(),
               {Layout::rows(36, 128), Layout::rows(144, 32), Layout::rows(288, 16), Layout::rows(46, 100),
                Layout::rows(139, 33), Layout::rows(36, 127), Layout::rows(35, 131), Layout::rows(14, 300),
                Layout::rows(5, 900), Layout::axis(1, 512, 9), Layout::axis(1, 100, 46)});
  return all;
}

TEST_P(EveryReduction, HasTheBitsOfItsReferenceOnAwkwardData) {
  constexpr std::size_t n = 9 * 512 + 3;
  std::size_t k = 0;
  for (const auto& [name, x, y] : inputs_of<awkward_data>(input_of(m), n))
    for (const Layout& layout : layouts_of_awkward_data(m, n)) {
      if (is_sanitized && k++ % 8 != 0) continue;  // data sets take the layouts in turn
      if (!m.accepts(input_of(m), layout)) continue;
      EXPECT_EQ(reduce_all(m, x.values(), y.values(), layout),
                reduce_all(reference_of(m), x.values(), y.values(), layout))
          << name << ", " << layout.outer << " x " << layout.n << " x " << layout.inner;
    }
}

TEST_P(EveryReduction, HasTheSameBitsWithEveryInstructionSet) {
  if (m.backend != "cpu") return;
  const auto& [x, y] = wide_and_uniform(input_of(m), 9000);
  const cpu::InstructionSet before = cpu::instruction_set();
  const Bits expected = reduce_all(reference_of(m), x.values(), y.values(), Layout::rows(2, 4500));
  for (const cpu::InstructionSet set : cpu::instruction_sets) {
    if (!cpu::is_supported(set)) continue;
    cpu::force(set);
    EXPECT_EQ(reduce_all(m, x.values(), y.values(), Layout::rows(2, 4500)), expected) << cpu::name_of(set);
  }
  cpu::force(before);
}

// --- means of fp16 whose sums overflow --------------------------------------------------------------------

double half_mean(const Method& r, const std::vector<double>& x) {
  const Array array{format_info<fp16>(), x};
  return Number{r.format, reduce_all(r, array.values(), array.values(), Layout::vector(x.size()))[0]}
      .to_double();
}

SAMESUM_ON_BACKENDS(AMeanOfHalves, "reference", "cpu", "cuda");

TEST_P(AMeanOfHalves, IsFiniteEvenIfItsSumOverflows) {
  SAMESUM_UNSANITIZED("it tests rounding");
  for (const Method* r : half_means(backend)) {
    EXPECT_EQ(half_mean(*r, std::vector<double>(131'072, 1)), 1) << r->name;
    EXPECT_NEAR(half_mean(*r, std::vector<double>(100'000, 1)), 1, 0x1p-11)
        << r->name << ": 100000 needs 12 bits";
    EXPECT_EQ(half_mean(*r, std::vector<double>(8192, -65'504)), -65'504) << r->name;
    // The quotient rounds beyond the largest number: n = 4101 with plain sums, 2050 with Kahan's.
    for (const std::size_t n : {2050u, 4101u, 9000u})
      for (const double x : {65'504.0, -65'504.0})
        EXPECT_NEAR(half_mean(*r, std::vector<double>(n, x)), x, 65'504 * 0x1p-8) << r->name << ", n = " << n;
  }
}

TEST_P(AMeanOfHalves, ThatIsFiniteIsTheQuotientOfTheSumOfTheSameName) {
  SAMESUM_UNSANITIZED("it tests rounding");
  int finite = 0, again = 0;
  for (const Method* r : half_means(backend)) {
    const Method& sum = find("sum" + r->name.substr(4));
    for (const double scale : {1.0, 100.0, 6000.0, 60'000.0})
      for (const std::size_t n : {3u, 500u, 5000u}) {
        std::vector<double> x = uniform(n, n + 1);
        for (double& e : x) e *= scale;
        const Array array{*r->format, x};
        const Bits mean = reduce_all(*r, array.values(), array.values(), Layout::vector(n));
        const Number total{sum.format, reduce_all(sum, array.values(), array.values(), Layout::vector(n))[0]};
        if (std::isfinite(total.to_double()) && !takes_no_order(r->accumulator)) {
          EXPECT_EQ(mean[0], to_bits(convert<fp16>(total.to_double() / static_cast<double>(n)))) << r->name;
          ++finite;
        }
        EXPECT_LT(std::abs(Number{r->format, mean[0]}.to_double()), scale) << r->name;
        again += !std::isfinite(total.to_double());
      }
  }
  EXPECT_GT(finite, 30);
  EXPECT_GT(again, 5);
}

TEST_P(AMeanOfHalves, IsNotFiniteIfAnElementIsNotFinite) {
  for (const Method* r : half_means(backend)) {
    if (takes_no_order(r->accumulator)) continue;
    EXPECT_EQ(half_mean(*r, {60'000, INFINITY}), INFINITY) << r->name;
    EXPECT_EQ(half_mean(*r, {60'000, -INFINITY}), -INFINITY) << r->name;
    std::vector<double> both(4097, 60'000);  // the sum of the first leaf is infinite in fp16
    both[4096] = -INFINITY;
    EXPECT_TRUE(std::isnan(half_mean(*r, both))) << r->name;
    both[4096] = NAN;
    EXPECT_TRUE(std::isnan(half_mean(*r, both))) << r->name;
    EXPECT_TRUE(std::isnan(half_mean(*r, {}))) << r->name;
  }
}

TEST_P(AMeanOfHalves, WhoseSumOverflowsHasTheBitsOfItsReferenceInEveryBatchAndWithThreads) {
  if (backend == "reference") return;
  for (const BatchCase& b : batches())
    for (const double special : {1.0, static_cast<double>(INFINITY)}) {
      std::vector<double> x = uniform(b.elements, 3);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 3 ? 30'000 * (1 + x[i]) : x[i];
      if (x.size() > 5) x[x.size() / 2] = special;
      const Array array{format_info<fp16>(), x};
      for (const Method* r : half_means(backend))
        EXPECT_EQ(reduce_all(*r, array.values(), array.values(), b.layout, {.threads = 3}),
                  reduce_all(reference_of(*r), array.values(), array.values(), b.layout))
            << r->name << ", " << b.name << ", " << special;
    }
}

// --- rows and columns -------------------------------------------------------------------------------------

SAMESUM_ON_BACKENDS(ShortRows, "cpu", "cuda");

/// 37 rows are whole vectors of rows and some more; rows end before, at and behind the end of a vector.
TEST_P(ShortRows, HaveTheBitsOfTheirReferenceAtEveryLengthWithZerosAndSpecialValues) {
  constexpr std::size_t rows = 37, most = 300, gap = 3;
  for (const FormatInfo& format : formats) {
    std::vector<double> x = wide(rows * (most + gap), 12, 4);
    const Array numbers{format, x}, zeros{format, std::vector<double>(x.size(), -0.0)};
    for (std::size_t i = 0; i < x.size(); i += 61)
      x[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -INFINITY;
    const Array special{format, x};
    if (is_sanitized && &format == &format_info<fp16>()) continue;  // the loops of bf16
    for (const char* name : {"sum/tree/plain", "mean/tree/plain", "moments/tree"}) {
      const Method &m = method(std::string(name) + "/" + std::string(format.name)), &r = reference_of(m);
      for (std::size_t n = 1; n <= most; n += n < 70 ? 1 : n < 130 ? 9 : 57)
        for (const std::size_t pitch : {n, n + gap})
          for (const Array* all : {&numbers, &zeros, &special}) {
            if (is_sanitized && all != &special) continue;  // all read the same memory
            const std::size_t size = (rows - 1) * pitch + n;
            // They end with the memory.
            const Values some{
                format, static_cast<const std::byte*>(all->values().data) + (x.size() - size) * format.bytes,
                size};
            ASSERT_EQ(reduce_all(m, some, some, Layout::rows(rows, n, pitch)),
                      reduce_all(r, some, some, Layout::rows(rows, n, pitch)))
                << m.name << ", rows of " << n << ", " << pitch << " apart";
          }
    }
  }
}

SAMESUM_ON_BACKENDS(SumsOfRowsColumnsAndSegments, "cpu", "cuda");

TEST_P(SumsOfRowsColumnsAndSegments, HaveTheBitsOfSingleSums) {
  const std::uint64_t offsets[] = {5, 5, 4200, 4201, 9000, 19'999};
  for (const FormatInfo& input : formats) {
    if (is_sanitized && &input == &format_info<fp16>()) continue;  // the loops of bf16
    const Array x{input, wide(20'000, 20, 9)};
    for (const Layout& layout :
         {Layout::rows(3, 6000), Layout::rows(4, 4500, 5100), Layout::axis(1, 500, 40),
          Layout::axis(2, 1250, 8), Layout::axis(1, 130, 150), Layout::segments(offsets, 5)}) {
      std::vector<Array> alone;  // the elements of each result
      for (std::size_t at = 0; at < layout.results(); ++at) {
        std::vector<double> elements;
        const std::size_t first = layout.first(at / layout.inner) + at % layout.inner;
        with_format(input, [&]<class T>() {
          for (std::size_t k = 0; k < layout.length(at / layout.inner); ++k)
            elements.push_back(convert<double>(x.values().as<T>()[first + k * layout.stride]));
        });
        alone.emplace_back(input, elements);
      }
      for (const Method* m : sums_of(backend, Promise::everywhere)) {
        if (!m->accepts(input, layout)) continue;
        const Bits all = reduce_all(*m, x.values(), x.values(), layout);
        for (std::size_t at = 0; at < all.size(); ++at)
          ASSERT_EQ((*m)(alone[at].values()).bits, all[at])
              << m->name << " of " << input.name << ", result " << at << " of " << all.size();
      }
    }
  }
}

SAMESUM_ON_BACKENDS(DotProductsOfWideColumns, "cpu", "cuda");

TEST_P(DotProductsOfWideColumns, HaveTheBitsOfTheirReference) {
  const Layout layout =
      Layout::axis(1, 130, 150);  // columns of several tiles, whose lanes are added in groups
  for (const char* name : {"dot/tree/plain/fp32", "dot/tree/double_word/fp32", "dot/tree/plain/fp64"}) {
    const Method& m = method(name);
    const Array x{*m.format, wide(130 * 150, 20, 1)}, y{*m.format, wide(130 * 150, 20, 2)};
    EXPECT_EQ(reduce_all(m, x.values(), y.values(), layout),
              reduce_all(reference_of(m), x.values(), y.values(), layout))
        << name;
  }
}

// --- accuracy and special values --------------------------------------------------------------------------

/// The result of a method, which must be the same on all backends.
double number(const std::string& name, const std::vector<double>& x) {
  const Array array{*find(name).format, x};
  const Number result = reduce(name, array.values());
  for (const std::string& backend : present_backends())
    EXPECT_EQ(reduce(name + "@" + backend, array.values()), result) << name << "@" << backend;
  return result.to_double();
}

TEST(ANorm, NeitherOverflowsNorUnderflowsInIntermediateResults) {
  SAMESUM_UNSANITIZED("it tests rounding");
  EXPECT_DOUBLE_EQ(number("norm/tree/fp64", {1e200, 1e200}), 1e200 * std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(number("norm/tree/fp64", {1e-200, 1e-200}), 1e-200 * std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(number("norm/tree/fp64", {3e-320, 4e-320}), 5e-320);
  EXPECT_EQ(number("norm/tree/fp64", {0x1p1023, 0x1p1023, 0x1p1023, 0x1p1023}), INFINITY)
      << "2^1024 is too large";
  EXPECT_EQ(number("norm/tree/fp16", {3 * 0x1p13, 4 * 0x1p13}), 5 * 0x1p13);
  EXPECT_EQ(number("norm/pairwise/fp16", {3 * 0x1p-20, 4 * 0x1p-20}), 5 * 0x1p-20);
  EXPECT_EQ(number("norm/tree/fp16", std::vector<double>(65536, 8.0)), 2048) << "the sum of squares is 2^22";
  EXPECT_NEAR(number("norm/tree/fp16", std::vector<double>(10000, 600.0)), 60000, 32) << "one ulp";
}

TEST(ANorm, CombinesLargeMediumAndSmallSquares) {
  SAMESUM_UNSANITIZED("it tests rounding");
  // 5000 elements of each of two sizes, which lie on either side of a threshold, and one that is 77 times as
  // large.
  const auto expect_true = [](const std::string& name, int threshold, double tolerance) {
    for (const int apart : {-9, -1, 0, 1, 9}) {
      std::vector<double> x;
      long double squares = 0;
      for (int i = 0; i < 10'001; ++i) {
        x.push_back(std::ldexp(i == 77 ? 1.5 * 64 : 1.25, threshold + (i % 2 ? apart : 0)));
        squares += static_cast<long double>(x.back()) * x.back();
      }
      const double truth = static_cast<double>(std::sqrt(squares));
      EXPECT_NEAR(number(name, x), truth, tolerance * truth) << name << " 2^" << threshold << ", " << apart;
    }
  };
  for (const char* order : {"tree", "pairwise"}) {
    const std::string name = std::string{"norm/"} + order;
    for (const int threshold : {-120, -50, 0, 44, 110}) {
      expect_true(name + "/fp32", threshold, 20 * 0x1p-24);
      expect_true(name + "/bf16", threshold, 20 * 0x1p-8);
    }
    for (const int threshold : {-1040, -498, 492, 1000}) expect_true(name + "/fp64", threshold, 20 * 0x1p-53);
    for (const int threshold : {-12, -7, -2}) expect_true(name + "/fp16", threshold, 20 * 0x1p-11);
  }
}

TEST(ANorm, HandlesInfinityNanAndNoElements) {
  SAMESUM_UNSANITIZED("it tests special values");
  EXPECT_EQ(number("norm/tree/fp32", {}), 0);
  EXPECT_EQ(number("norm/tree/fp32", {0.0, -0.0}), 0);
  EXPECT_EQ(number("norm/tree/fp32", {1, -INFINITY, 3}), INFINITY);
  EXPECT_TRUE(std::isnan(number("norm/tree/fp32", {INFINITY, NAN})));
}

TEST(AProduct, DoesNotOverflowInIntermediateResults) {
  SAMESUM_UNSANITIZED("it tests rounding");
  std::vector<double> x;
  for (int i = 0; i < 100'000; ++i) x.push_back(i % 2 == 0 ? 1e300 : 1e-300);
  for (const char* name : {"prod/tree/fp64", "prod/pairwise/fp64"})
    EXPECT_NEAR(number(name, x), 1, 1e-10) << name;
  EXPECT_EQ(number("prod/tree/fp16", std::vector<double>(100'000, -1.0)), 1);
  EXPECT_EQ(number("prod/tree/fp64", {0x1p-1000, 0x1p-74}), 0x1p-1074) << "subnormal";
  EXPECT_EQ(number("prod/tree/fp64", {0x1p-1074, 0x1p1000, 0x1p74}), 1) << "from a subnormal";
  EXPECT_EQ(number("prod/tree/fp32", {-3, 0.0}), 0);
  EXPECT_TRUE(std::signbit(number("prod/tree/fp32", {-3, 0.0})));
  EXPECT_TRUE(std::isnan(number("prod/tree/fp32", {0.0, INFINITY})));
  EXPECT_EQ(number("prod/tree/fp32", {-2, INFINITY}), -INFINITY);
  EXPECT_EQ(number("prod/tree/fp64", {1e300, 1e300}), INFINITY);
  EXPECT_EQ(number("prod/tree/fp32", {}), 1);
}

TEST(AnExtremum, IsTheFirstOfEqualOnesAndTheFirstNan) {
  const auto index = [](const std::string& name, const std::vector<double>& x) {
    const Array array{format_info<fp32>(), x};
    const std::int64_t found = reduce_to_index(name, array.values());
    for (const std::string& backend : present_backends())
      EXPECT_EQ(reduce_to_index(name + "@" + backend, array.values()), found) << name << "@" << backend;
    return found;
  };
  EXPECT_EQ(index("argmax/fp32", {1, 3, 3, 2}), 1);
  EXPECT_EQ(index("argmin/fp32", {1, -3, 3, -3}), 1);
  EXPECT_EQ(index("argmax/fp32", {-0.0, 0.0}), 0) << "zeros are equal";
  EXPECT_EQ(index("argmin/fp32", {0.0, -0.0}), 0) << "zeros are equal";
  EXPECT_EQ(index("argmax/fp32", {5, NAN, 7, NAN}), 1);
  EXPECT_EQ(index("argmin/fp32", {-INFINITY, NAN}), 1);
  EXPECT_EQ(index("argmax/fp32", {-INFINITY}), 0);
  EXPECT_EQ(index("argmax/fp32", {}), -1);
  EXPECT_EQ(number("max/fp32", {-0.0, 0.0, -0.0}), 0);
  EXPECT_FALSE(std::signbit(number("max/fp32", {-0.0, 0.0, -0.0})));
  EXPECT_TRUE(std::signbit(number("min/fp32", {0.0, -0.0})));
  EXPECT_TRUE(std::signbit(number("max/fp32", {-0.0})));
  EXPECT_TRUE(std::isnan(number("max/fp32", {1, NAN, INFINITY})));
  EXPECT_TRUE(std::isnan(number("min/fp32", {1, NAN, -INFINITY})));
  EXPECT_EQ(number("max/fp32", {}), -INFINITY);
  EXPECT_EQ(number("min/fp32", {}), INFINITY);
  EXPECT_EQ(number("min/fp64", {-5e-324, 0.0}), -5e-324);
}

TEST(MomentsOfData, AreAccurateWhereTheSumOfSquaresWouldFail) {
  std::vector<double> x = uniform(100'000, 3);
  for (double& e : x) e += 1e8;
  const Array array{format_info<fp64>(), x};
  long double mean = 0, squares = 0;
  for (const double e : x) mean += e;
  mean /= 100'000;
  for (const double e : x) squares += (e - mean) * (e - mean);
  for (const std::string& backend : present_backends()) {
    std::vector<double> two(2);
    reduce(find("moments/tree/fp64@" + backend), array.values(), Layout::vector(x.size()), std::span{two},
           {.ddof = 1});
    EXPECT_NEAR(two[0], static_cast<double>(mean), 1e-6) << backend;
    EXPECT_NEAR(two[1], static_cast<double>(squares / 99'999), 1e-7) << backend;
  }
}

TEST(MomentsOfData, OfNothingAreNanAndOfOneElementHaveVarianceZero) {
  for (const std::string& backend : present_backends()) {
    std::vector<float> two(2);
    const auto of = [&](std::vector<float> x, double ddof) {
      reduce(find("moments/tree/fp32@" + backend), x, Layout::vector(x.size()), std::span{two},
             {.ddof = ddof});
      return two;
    };
    EXPECT_TRUE(std::isnan(of({}, 0)[0]) && std::isnan(two[1])) << backend;
    EXPECT_EQ(of({7}, 0), (std::vector<float>{7, 0})) << backend;
    EXPECT_TRUE(std::isnan(of({7}, 1)[1])) << backend;
    EXPECT_EQ(of({1, 3}, 1), (std::vector<float>{2, 2})) << backend;
  }
}

TEST(ACompensatedDotProduct, KeepsTheRoundingErrorsOfItsProducts) {
  SAMESUM_UNSANITIZED("it tests rounding");
  // (1 + u)(1 - u) - 1 = -u²: the rounded products cancel, and only their rounding errors remain.
  const double u = 0x1p-30;
  const Array x{format_info<fp64>(), {1 + u, -1}}, y{format_info<fp64>(), {1 - u, 1}};
  for (const std::string& backend : present_backends()) {
    EXPECT_EQ(reduce("dot/tree/plain/fp64@" + backend, x.values(), y.values()).to_double(), 0) << backend;
    for (const char* a : {"kahan", "neumaier", "double_word"})
      EXPECT_EQ(reduce(std::string{"dot/tree/"} + a + "/fp64@" + backend, x.values(), y.values()).to_double(),
                -u * u)
          << a << ", " << backend;
  }
}

TEST(ADotProduct, OverflowsToInfinityIfItsProductsOverflow) {
  const Array x{format_info<fp32>(), {3e38, 1}}, y{format_info<fp32>(), {3e38, 1}};
  for (const std::string& backend : present_backends())
    for (const char* a : {"plain", "kahan", "neumaier", "double_word"})
      EXPECT_EQ(reduce(std::string{"dot/tree/"} + a + "/fp32@" + backend, x.values(), y.values()).to_double(),
                INFINITY)
          << a << ", " << backend;
}

TEST(LogSumExpOfData, IsAccurateAndDoesNotOverflow) {
  for (const char* name : {"logsumexp/tree/fp32", "logsumexp/pairwise/fp32", "logsumexp/tree/fp64"}) {
    EXPECT_NEAR(number(name, {1000, 1000}), 1000 + std::log(2.0), 1e-4);
    EXPECT_NEAR(number(name, {-1000, -1000, -1000}), -1000 + std::log(3.0), 1e-4);
    const std::vector<double> x = wide(20'000, 6, 5);
    long double sum = 0;
    for (const double e : x) sum += std::exp(static_cast<long double>(static_cast<float>(e)));
    EXPECT_NEAR(number(name, x), static_cast<double>(std::log(sum)), 2e-5) << name;
    EXPECT_EQ(number(name, {}), -INFINITY);
    EXPECT_EQ(number(name, {-INFINITY, -INFINITY}), -INFINITY);
    EXPECT_EQ(number(name, {-INFINITY, 3}), 3);
    EXPECT_EQ(number(name, {INFINITY, 3}), INFINITY);
    EXPECT_TRUE(std::isnan(number(name, {NAN, 3})));
  }
}

TEST(DifferentNumbers, AreCountedWithOneZeroAndOneNan) {
  EXPECT_EQ(count_distinct(std::vector<double>{}), 0u);
  EXPECT_EQ(count_distinct(std::vector<double>{1, 2, 1, -1}), 3u);
  EXPECT_EQ(count_distinct(std::vector<double>{0.0, -0.0, NAN, -NAN, INFINITY, -INFINITY}), 4u);
  std::vector<bf16> all;
  for (unsigned bits = 0; bits < 0x10000; ++bits)
    all.push_back(from_bits<bf16>(static_cast<std::uint16_t>(bits)));
  EXPECT_EQ(count_distinct(all), 0x10000u - 2 * 127 - 1 + 1)
      << "2·127 NaNs count as one, and so do the two zeros";
}

// --- refused calls ----------------------------------------------------------------------------------------

std::string refusal_of(const char* name, Values x, Layout layout, Results out) {
  try {
    reduce(find(name), x, layout, out);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "nothing was refused";
}

TEST(ACallWithInconsistentArguments, IsRefusedWithAReason) {
  std::vector<float> x(100), out(10);
  std::vector<double> wide(10);
  std::vector<std::int64_t> index(10);
  const auto refused = [&](const char* name, Values v, Layout layout, Results to) {
    return refusal_of(name, v, layout, to);
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(refused("sum/tree/plain/fp32", x, Layout::rows(10, 11), std::span{out}),
              HasSubstr("x has 100 elements, but the layout reads 110"));
  EXPECT_THAT(refused("sum/tree/plain/fp32", x, Layout::rows(9, 11), std::span{out}),
              HasSubstr("out has room for 10 results; the layout has 9"));
  EXPECT_THAT(refused("sum/tree/plain/fp32", x, Layout::rows(10, 10), std::span{wide}),
              HasSubstr("out holds fp64; the results are fp32"));
  EXPECT_THAT(refused("argmax/fp32", x, Layout::rows(10, 10), std::span{out}),
              HasSubstr("the results are std::int64_t"));
  EXPECT_THAT(refused("max/fp32", x, Layout::rows(10, 10), std::span{index}),
              HasSubstr("out holds std::int64_t"));
  EXPECT_THAT(refused("dot/tree/plain/fp32", x, Layout::rows(10, 10), std::span{out}),
              HasSubstr("two inputs"));
  EXPECT_THAT(refused("sum/tree/plain/fp32", x, Layout::rows(10, 10), std::span{x}.subspan(50, 10)),
              HasSubstr("out overlaps x"));
  EXPECT_THAT(refused("mean/tree/plain/fp32", wide, Layout::rows(10, 1), std::span{out}),
              HasSubstr("does not accept elements of fp64"));
  EXPECT_THAT(refused("sum/tree/plain/fp32", x, Layout{1, 10, 10, 100, 5}, std::span{out}),
              HasSubstr("layout.stride is 5"));
  const std::uint64_t falling[] = {0, 50, 40};
  EXPECT_THAT(refused("sum/tree/plain/fp32", x, Layout::segments(falling, 2), std::span{out}.first(2)),
              HasSubstr("decreases from 50 to 40"));
  EXPECT_THAT(refused("sum/tree/plain/fp32", Values{format_info<fp32>(), nullptr, 100}, Layout::rows(10, 10),
                      std::span{out}),
              HasSubstr("x is null"));
  EXPECT_THROW(find("dott/tree/plain/fp32"), std::invalid_argument);
  EXPECT_THROW(reduce("argmax/fp32", x), std::invalid_argument);
  EXPECT_THROW(reduce("moments/tree/fp32", x), std::invalid_argument);
  EXPECT_THROW(reduce("max/fp32", x, {.threads = -1}), std::invalid_argument);
}

}  // namespace
}  // namespace samesum
