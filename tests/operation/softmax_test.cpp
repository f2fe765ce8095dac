#include "samesum/operation/softmax.hpp"

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cfenv>
#include <memory>

#include "operation/softmax_support.hpp"
#include "samesum/backend/cpu/loops/instruction_set.hpp"

namespace samesum {
namespace {

using namespace testing_support;
using ::testing::Each;
using ::testing::HasSubstr;

TEST(TheCatalogue, HasEveryDenominatorOfSoftmaxOnEveryBackend) {
  for (const std::string& backend : present_backends())
    EXPECT_EQ(softmaxes_of(backend).size(), 16u) << backend;
  std::vector<std::string> names;
  for (const char* operation : {"softmax", "log_softmax"})
    for (const Method& m : methods(operation)) {
      names.push_back(m.name);
      EXPECT_GE(m.promise, Promise::everywhere);
      EXPECT_TRUE(m.has_result_per_element);
      EXPECT_TRUE(m.keeps_format);
      for (const FormatInfo& f : formats)
        EXPECT_EQ(m.accepts(f), m.format->bytes == 8 ? f.bytes >= 4 : f.bytes <= 4)
            << m.name << ", " << f.name;
    }
  EXPECT_THAT(names, ::testing::IsSupersetOf({"softmax/tree/plain/fp16@cpu", "softmax/exact/fp32@reference",
                                              "softmax/online/fp32@cpu", "log_softmax/tree/plain/fp32@cpu",
                                              "softmax/exact/fp64@cpu"}));
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

class EverySoftmax : public MethodTest {
 protected:
  const Method& reference = reference_of(m);
  const bool log = m.operation == "log_softmax";
};
INSTANTIATE_TEST_SUITE_P(Cpu, EverySoftmax, ::testing::ValuesIn(softmaxes_of("cpu")), test_name);
INSTANTIATE_TEST_SUITE_P(Cuda, EverySoftmax, ::testing::ValuesIn(or_absent(softmaxes_of("cuda"))), test_name);

TEST_P(EverySoftmax, ReturnsTheBitsOfItsReference) {
  for (const FormatInfo* format : formats_of(m))
    for (const std::size_t columns :
         {1,   2,    3,    31,   32,   33,   63,   64,   127,  128,  129,   255,   256,  511,
          512, 1000, 1023, 1024, 1025, 4095, 4096, 4097, 5000, 8192, 32768, 32769, 70001})
      for (const std::size_t rows : {1, 2, 3, 7, 257}) {
        if (rows > 11 && columns > 33) continue;
        if ((rows == 2 && columns > 129) || (rows > 3 && columns > 1025)) continue;
        if (rows > 1 && columns > 5000) continue;
        if (is_sanitized && (rows == 2 || rows > 11 || columns > 4097 || (rows > 1 && columns > 130)))
          continue;
        const Place place{columns % 3, rows % 4};
        // A single row has a kind that depends on its length.
        const Table in{*format, columns,
                       rows_of_all_kinds(rows, columns, columns<6000, rows> 1 ? 0 : columns % 5), place};
        ASSERT_EQ(computed(m, in, {rows % 2, 1}), computed(reference, in))
            << format->name << ", " << rows << " x " << columns;
      }
}

TEST_P(EverySoftmax, CountsATinyExponentialThatBreaksATie) {
  SAMESUM_UNSANITIZED("it tests bits");
  for (const FormatInfo* format : formats_of(m))
    for (const std::size_t columns : {8, 256, 257, 1025}) {
      if (is_sanitized && columns != 257) continue;
      for (const double tiny : tiny_exponents(m)) {
        const Table in{*format, columns, rows_with_ties(84, columns, tiny)};
        EXPECT_EQ(computed(m, in), computed(reference, in))
            << format->name << ", " << columns << ", " << tiny;
      }
    }
}

TEST_P(EverySoftmax, WritesNothingWithoutRowsOrColumns) {
  for (const FormatInfo* format : formats_of(m))
    for (const auto& [rows, columns] : {std::pair<std::size_t, std::size_t>{0, 5}, {5, 0}, {0, 0}}) {
      const Table in{*format, rows, columns};
      EXPECT_TRUE(computed(m, in).empty());  // also checks the surroundings
      EXPECT_TRUE(computed(reference, in).empty());
    }
}

TEST_P(EverySoftmax, GivesTheSameBitsForAnyNumberOfThreads) {
  SAMESUM_SANITIZED_IN_FP32(m);
  for (const FormatInfo* format : formats_of(m)) {
    const Table in{*format, 1000, rows_of_all_kinds(57, 1000, true)};
    const auto expected = computed(on_host(m), in, {}, 1);
    for (const int threads : {0, 2, 5})
      if (!is_sanitized || threads == 5) {
        EXPECT_EQ(computed(m, in, {}, threads), expected) << threads;
      }
  }
}

TEST_P(EverySoftmax, GivesTheSameBitsInEveryInstructionSet) {
  SAMESUM_UNSANITIZED("builds with sanitizers have the loops of one set");
  if (m.backend != "cpu") return;
  const cpu::InstructionSet before = cpu::instruction_set();
  for (const FormatInfo* format : formats_of(m))
    for (const std::size_t columns : {1, 15, 130, 4999, 9000}) {
      const Table in{*format, columns, rows_of_all_kinds(11, columns, true)};
      const auto expected = computed(reference, in);
      for (const cpu::InstructionSet set : cpu::instruction_sets) {
        if (!cpu::is_supported(set)) continue;
        cpu::force(set);
        EXPECT_EQ(computed(m, in), expected) << format->name << ", " << columns << ", " << name_of(set);
      }
      cpu::force(before);
    }
}

TEST_P(EverySoftmax, GivesARowTheSameBitsInEveryBatch) {
  SAMESUM_SANITIZED_IN_FP32(m);
  for (const FormatInfo* format : formats_of(m))
    for (const std::size_t columns : {5, 32, 300, 700, 4096, 4100, 40'000}) {
      const bool has_another_kernel = columns == 32 || columns == 700 || columns == 4096 || columns == 40'000;
      if (has_another_kernel && (m.backend != "cuda" || (is_sanitized && columns > 4096))) continue;
      const auto row = rows_of_all_kinds(1, columns, false, 3);
      const auto expected = computed(m, Table{*format, columns, row});
      for (const std::size_t batch : {1, 2, 3, 64, 257}) {
        if (batch * columns > (is_sanitized ? 9000u : m.backend == "cuda" ? 3'000'000u : 100'000u)) continue;
        for (const std::size_t place : {std::size_t{0}, batch / 2, batch - 1}) {
          std::vector<double> x = uniform(batch * columns, batch);
          std::ranges::copy(row, x.begin() + static_cast<std::ptrdiff_t>(place * columns));
          const Table in{*format, columns, x, {place % 5, batch % 3}};
          const auto all = computed(m, in, {1, place % 2}, 2);
          ASSERT_TRUE(std::equal(expected.begin(), expected.end(),
                                 all.begin() + static_cast<std::ptrdiff_t>(place * columns)))
              << format->name << ", " << columns << ", row " << place << " of " << batch;
        }
      }
    }
}

TEST_P(EverySoftmax, WritesInPlace) {
  SAMESUM_SANITIZED_IN_FP32(m);
  for (const FormatInfo* format : formats_of(m))
    for (const std::size_t columns : {3, 600, 9000}) {
      const std::size_t rows = is_sanitized && columns > 600 ? 2 : 11;
      Table table{*format, columns, rows_of_all_kinds(rows, columns, true), {1, 2}};
      const auto expected = computed(m, table);
      reduce(m, table.values(), table.layout(), table.results());
      EXPECT_EQ(table.bits(), expected) << format->name << ", " << columns;
    }
}

TEST_P(EverySoftmax, HasTheSpecialValuesOfPyTorch) {
  constexpr double inf = std::numeric_limits<double>::infinity(),
                   nan = std::numeric_limits<double>::quiet_NaN();
  for (const FormatInfo* format : formats_of(m)) {
    const auto of = [&](std::vector<double> x) { return computed(m, Table{*format, x.size(), x}); };
    const auto canonical = Each(static_cast<std::uint64_t>(format->canonical_nan));
    EXPECT_THAT(of({-inf, -inf, -inf}), canonical);
    EXPECT_THAT(of({-inf}), canonical);
    EXPECT_THAT(of({1, inf, 2}), canonical);
    EXPECT_THAT(of({inf}), canonical);
    EXPECT_THAT(of({inf, -inf, inf}), canonical);
    EXPECT_THAT(of({1, nan, 2}), canonical);
    EXPECT_THAT(of({nan, 5, 7}), canonical);
    EXPECT_THAT(of({3, 5, -nan}), canonical);
    const auto bits = [&](double x) {
      return with_format(*format,
                         [&]<class F>() { return static_cast<std::uint64_t>(to_bits(convert<F>(x))); });
    };
    const double nothing = log ? -inf : 0;
    EXPECT_EQ(of({-inf, 2, -inf}), (std::vector{bits(nothing), bits(log ? 0 : 1), bits(nothing)}));
    EXPECT_EQ(of({7}), (std::vector{bits(log ? 0 : 1)}));
    EXPECT_EQ(of({-0.0, 0.0}), of({0.0, -0.0}));
    EXPECT_THAT(of(std::vector<double>(64, -3.0)), Each(bits(log ? -4.1588830833596715 : 1.0 / 64)));
    EXPECT_EQ(of({60000, -60000})[1], bits(log ? -120000 : 0)) << "in fp16, -120000 is -inf";
  }
}

SAMESUM_ON_BACKENDS(AnExactDenominator, "cpu", "cuda");

TEST_P(AnExactDenominator, GivesPermutedResultsForPermutedColumns) {
  for (const Method* m : softmaxes_of(backend)) {
    if (m->promise < Promise::order_free) continue;
    for (const FormatInfo* format : formats_of(*m)) {
      std::vector<double> x = rows_of_all_kinds(1, 5000, false), y(x.rbegin(), x.rend());
      std::rotate(y.begin(), y.begin() + 1234, y.end());
      auto forward = computed(*m, Table{*format, x.size(), x});
      std::ranges::reverse(forward);
      std::rotate(forward.begin(), forward.begin() + 1234, forward.end());
      EXPECT_EQ(computed(*m, Table{*format, x.size(), y}), forward) << m->name << ", " << format->name;
    }
  }
}

TEST(Softmax, DoesNotDependOnTheCallersFloatingPointEnvironment) {
  const Table in{format_info<fp32>(), 300, rows_of_all_kinds(5, 300, false)};  // which all accept
  for (const char* backend : {"cpu", "reference"})
    for (const Method* m : softmaxes_of(backend)) {
      const auto expected = computed(*m, in);
      std::fesetround(FE_UPWARD);
      const auto got = computed(*m, in, {}, 2);
      std::fesetround(FE_TONEAREST);
      EXPECT_EQ(got, expected) << m->name;
    }
}

struct Rows {
  Values x;
  std::size_t rows, columns, stride = columns;
};

std::string refusal(Rows in, Results out, Options options = {}) {
  try {
    reduce(find("softmax/tree/plain/fp32"), in.x, Layout::rows(in.rows, in.columns, in.stride), out, options);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

TEST(Softmax, RefusesWrongArgumentsWithAReason) {
  float x[40] = {}, y[40] = {};
  double d[4] = {};
  fp16 h[4] = {};
  const FormatInfo& f = format_info<fp32>();
  const auto in = [&](std::size_t n, std::size_t first = 0) { return Values{f, x + first, n}; };
  const auto out = [&](float* to, std::size_t n, std::size_t stride = 0) {
    return Results{&f, to, n, stride};
  };
  EXPECT_THAT(refusal({in(8), 2, 4}, out(y, 7)),
              HasSubstr("out has room for 7 numbers; it needs one for each element, 8"));
  EXPECT_THAT(refusal({in(8), 2, 4}, out(y, 8, 5)), HasSubstr("it needs one for each element, 9"));
  EXPECT_THAT(refusal({in(7), 2, 4}, out(y, 8)), HasSubstr("x has 7 elements, but the layout reads 8"));
  EXPECT_THAT(refusal({in(4), 1, 4}, std::span<fp16>{h}), HasSubstr("out holds fp16; the results are fp32"));
  EXPECT_THAT(refusal({Values{format_info<fp64>(), d, 4}, 1, 4}, std::span<double>{d}),
              HasSubstr("does not accept elements of fp64; convert them to one of fp16, bf16, fp32"));
  EXPECT_THAT(refusal({in(8), 2, 4, 3}, out(y, 8)),
              HasSubstr("layout has rows of 4 elements at a stride of 3"));
  EXPECT_THAT(refusal({in(8), 2, 4}, out(y, 8, 1)), HasSubstr("out has a row stride of 1"));
  EXPECT_THAT(refusal({Values{f, nullptr, 8}, 2, 4}, out(y, 8)), HasSubstr("x is null"));
  EXPECT_THAT(refusal({in(8), 2, 4}, out(nullptr, 8)), HasSubstr("out is null"));
  const void* between = reinterpret_cast<const std::byte*>(x) + 2;
  EXPECT_THAT(refusal({Values{f, between, 4}, 1, 4}, out(y, 4)),
              HasSubstr("x is not aligned to its elements of 4 bytes"));
  EXPECT_THAT(refusal({in(8), 2, 4}, out(y, 8), {.threads = -1}), HasSubstr("threads is -1"));
  const std::string overlapping = "out overlaps x; use separate memory, or";
  EXPECT_THAT(refusal({in(8), 2, 4}, out(x + 1, 8)), HasSubstr(overlapping));
  EXPECT_THAT(refusal({in(8, 4), 2, 4}, out(x, 8)), HasSubstr(overlapping));
  EXPECT_THAT(refusal({in(8), 2, 4}, out(x, 9, 5)), HasSubstr(overlapping));
  EXPECT_THAT(refusal({in(12), 2, 4, 8}, out(x + 3, 12, 8)), HasSubstr(overlapping));
  EXPECT_EQ(refusal({in(12), 2, 4, 8}, out(x + 4, 12, 8)), "") << "side by side in one array";
  EXPECT_EQ(refusal({in(12), 2, 4, 8}, out(x, 12, 8)), "") << "in place";
  EXPECT_EQ(refusal({in(12), 2, 4, 8}, out(x, 12)), "") << "in place, with the row stride of the input";
  EXPECT_EQ(refusal({in(8), 2, 4}, out(x + 8, 8)), "");
  EXPECT_EQ(refusal({Values{f, nullptr, 0}, 0, 4}, out(y, 0)), "") << "nothing to read";
}

TEST(Softmax, IsRefusedForLayoutsOtherThanRows) {
  const std::vector<float> x(40);
  std::vector<float> y(40);
  const Method& m = find("softmax/tree/plain/fp32");
  const std::uint64_t offsets[] = {0, 10, 40};
  for (const Layout& layout : {Layout::axis(1, 10, 4), Layout::segments(offsets, 2)})
    EXPECT_THROW(reduce(m, x, layout, std::span{y}), std::invalid_argument);
  EXPECT_THROW(m(x), std::invalid_argument) << "softmax gives a number per element";
  EXPECT_THROW(m.bind(x), std::invalid_argument);
  EXPECT_THROW(reduce("softmax/tree/plain/fp32", x), std::invalid_argument);
}

// --- errors and bounds -------------------------------------------------------------------------------------

using Quad = boost::multiprecision::cpp_bin_float_quad;

/// A row of one kind with its exact softmax.
struct TrueRow {
  Table in;
  double largest, smallest;
  std::vector<Quad> e;  ///< exp(x - largest)
  Quad sum = 0, log_sum;

  TrueRow(const FormatInfo& format, std::size_t columns, std::size_t kind)
      : in{format, columns, rows_of_all_kinds(1, columns, false, kind)},
        largest{in(0, 0)},
        smallest{largest} {
    for (std::size_t i = 0; i < columns; ++i) {
      largest = std::max(largest, in(0, i));
      smallest = std::min(smallest, in(0, i));
    }
    for (std::size_t i = 0; i < columns; ++i) sum += e.emplace_back(exp(Quad{in(0, i)} - largest));
    log_sum = boost::multiprecision::log(sum);
  }
  double spread() const { return largest - smallest; }
  Quad truth(std::size_t i, bool log) const {
    return log ? Quad{in(0, i)} - largest - log_sum : Quad{e[i] / sum};
  }
};

/// Returns rows of every kind. They are computed once for all methods, since that takes longest.
const std::vector<std::unique_ptr<TrueRow>>& true_rows(const FormatInfo& format) {
  static std::vector<std::unique_ptr<TrueRow>> of_formats[formats.size()];
  std::vector<std::unique_ptr<TrueRow>>& made = of_formats[format.index];
  if (made.empty())
    for (const std::size_t columns : {1, 2, 7, 100, 1000, 5000})
      for (std::size_t kind = 0; kind < 5; ++kind)
        made.push_back(std::make_unique<TrueRow>(format, columns, kind));
  return made;
}

/// Returns the largest ratio of an error to its bound, over the elements of a row and the sum of its results.
double share_of_bound(const Method& m, const TrueRow& row, const Table& y) {
  const std::size_t n = row.in.columns();
  const bool log = m.operation == "log_softmax";
  const SoftmaxBound bound = softmax_bound(row.in.format(), n, row.spread(), form_of(m));
  if (!std::isfinite(bound.of_denominator)) return 0;
  Quad total = -1;
  double share = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Quad truth = row.truth(i, log);
    const double limit = bound.of_element(static_cast<double>(truth), row.largest - row.in(0, i));
    if (!std::isfinite(limit)) continue;
    share = std::max(share, static_cast<double>(abs(y(0, i) - truth) / limit));
    total += y(0, i);
  }
  if (!log) share = std::max(share, static_cast<double>(abs(total)) / bound.of_sum());
  return share;
}

TEST_P(EverySoftmax, IsWithinItsBoundOfTheTruth) {
  SAMESUM_UNSANITIZED("it tests rounding");
  double attained = 0;
  for (const FormatInfo* format : formats_of(m))
    for (const auto& row : true_rows(*format)) {
      Table out{*format, 1, row->in.columns()};
      reduce(m, row->in.values(), row->in.layout(), out.results());
      const double share = share_of_bound(m, *row, out);
      EXPECT_LE(share, 1) << format->name << ", " << row->in.columns() << " columns, spread "
                          << row->spread();
      attained = std::max(attained, share);
    }
  EXPECT_GT(attained, 0.2) << "the bound is far above the errors";
}

TEST_P(EverySoftmax, HasABoundFromItsResultThatIsAtLeastTheOneFromTheTruth) {
  SAMESUM_UNSANITIZED("it tests bounds");
  int finite = 0, all = 0;
  for (const FormatInfo* format : formats_of(m)) {
    std::size_t kind = 0;
    for (const auto& row : true_rows(*format)) {
      const std::size_t columns = row->in.columns(), r = kind++ % 5;
      Table out{*format, 1, columns};
      reduce(m, row->in.values(), row->in.layout(), out.results());
      const double spread = row->spread();
      const SoftmaxBound of_truth = softmax_bound(*format, columns, spread, form_of(m));
      const std::vector<std::uint64_t> results = out.bits();
      for (std::size_t i = 0; i < columns; i += 1 + columns / 50) {
        const Quad truth = row->truth(i, log);
        const Number result{format, results[i]};
        const double bound = m.bound(*format, columns, result, spread);
        const std::string what = std::string{format->name} + ", " + std::to_string(columns) +
                                 " columns, row " + std::to_string(r) + ", element " + std::to_string(i);
        ASSERT_GE(bound, of_truth.of_element(static_cast<double>(truth), spread)) << what;
        ASSERT_TRUE(!std::isfinite(bound) || abs(truth - result.to_double()) <= bound) << what;
        // In an ordinary row nothing exceeds the format, and no sum of few bits is long.
        if (r == 0 && (m.format->precision > 11 || columns <= 100)) {
          EXPECT_TRUE(std::isfinite(bound)) << what;
        }
        finite += std::isfinite(bound);
        ++all;
      }
    }
  }
  EXPECT_GT(2 * finite, all);
}

TEST(TheBoundOfSoftmax, IsInfiniteIfSomethingMayOverflow) {
  const auto of = [](std::size_t n, double spread, SoftmaxSum sum) {
    return softmax_bound(format_info<fp16>(), n, spread, {sum, false, false}).of_element(0.5, 0);
  };
  EXPECT_TRUE(std::isinf(of(100'000, 1, SoftmaxSum::fp16))) << "an fp16 sum overflows";
  EXPECT_LT(of(1 << 30, 1e30, SoftmaxSum::fp32), 1e-3);
  EXPECT_LT(of(1 << 30, 1e30, SoftmaxSum::exact), 3e-4);
  const SoftmaxBound log = softmax_bound(format_info<fp16>(), 10, 120'000, {SoftmaxSum::fp32, false, true});
  EXPECT_TRUE(std::isinf(log.of_element(-120'000, 120'000)));
}

// --- golden bits -------------------------------------------------------------------------------------------

/// Returns a digest of the results for two long rows with many leaves and a partial one. The elements are
/// integers times powers of two. The digest depends on the order, exp, log and all roundings.
std::uint64_t digest(const Method& m, const FormatInfo& format) {
  constexpr std::size_t columns = 20'011;
  std::vector<double> x(2 * columns);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint64_t mixed = (i + 1) * 0x9e3779b97f4a7c15u;
    x[i] = static_cast<double>(static_cast<std::int64_t>(mixed) >> 40) * (i < columns ? 0x1p-21 : 0x1p-18);
  }
  std::uint64_t digest = 0;
  for (const std::uint64_t bits : computed(m, Table{format, columns, x}))
    digest = digest * 0x9e3779b97f4a7c15u + bits;
  return digest;
}

/// The stride of a single row is not used.
TEST(Softmax, OfOneRowDoesNotDependOnStrides) {
  const Method& m = find("softmax/tree/plain/fp32");
  std::vector<float> memory(16, 1.0f);
  float* x = memory.data();
  const Values all{format_info<float>(), x, 8};
  for (const std::size_t stride : {std::size_t{0}, std::size_t{1}, std::size_t{4}, std::size_t{1} << 62}) {
    const Layout row{1, 4, 1, stride, 1};
    EXPECT_THROW(reduce(m, all, row, {&format_info<float>(), x + 1, 4}), std::invalid_argument) << stride;
    reduce(m, all, row, {&format_info<float>(), x + 4, 12, stride});
    EXPECT_EQ(memory[4], 0.25f);
    reduce(m, all, row, {&format_info<float>(), x, 16});  // in place, with room behind it
    EXPECT_EQ(memory[3], 0.25f);
    std::ranges::fill(memory, 1.0f);
  }
  // The unused room after the results may overlap the input.
  reduce(m, {format_info<float>(), x + 8, 8}, Layout::rows(1, 4), {&format_info<float>(), x, 16});
  EXPECT_EQ(memory[0], 0.25f);
}

TEST(TheBoundOfSoftmax, IsZeroForNoElements) {
  for (const Method* m : softmaxes_of("cpu"))
    EXPECT_EQ(m->bound(format_info<float>(), 0, Number::of(0.0f), 1), 0) << m->name;
}

struct Golden {
  const char* name;
  std::array<std::uint64_t, 4> of_formats;  ///< by format index; 0 if the method does not accept it
};
constexpr Golden golden[] = {
    {"softmax/tree/plain/fp16", {0xbd52c5f3eca7fb4a, 0x402b8156c7579bd1, 0xfd2d34cf1c597586, 0}},
    {"softmax/tree/plain/bf16", {0x987370efa773d38c, 0x89f4f0bbcc206407, 0x9273b52262c4693a, 0}},
    {"softmax/tree/plain/fp32", {0xb37fe0d9d3f503f5, 0x23b51f6ffb386e4c, 0xd236e4a50d7e00e7, 0}},
    {"softmax/exact/fp32", {0xb37fe0d9d3f503f5, 0x23b51f6ffb386e4c, 0x86ddc8725de1fdd8, 0}},
    {"softmax/online/fp32", {0xb37fe0d9d3f503f5, 0x23b51f6ffb386e4c, 0xd9f855087300acc7, 0}},
    {"log_softmax/tree/plain/fp16", {0x5a3733117dd0fee4, 0xcbb7c3bfa2c104dc, 0x951aeb26e00eea63, 0}},
    {"log_softmax/tree/plain/bf16", {0x0c48324d6f1b2a97, 0x036f5a33e95cf6bd, 0x667bb4da9822e113, 0}},
    {"log_softmax/tree/plain/fp32", {0x03816a333ced4c6a, 0x0e0c3c3ff7605472, 0x359aa55f2b48a6a3, 0}},
    {"log_softmax/exact/fp32", {0x03816a333ced4c6a, 0x0e0c3c3ff7605472, 0x359aa55f2b48a6a3, 0}},
    {"log_softmax/online/fp32", {0x03816a333ced4c6a, 0x0e0c3c3ff7605472, 0x359aa55f2b48a6a3, 0}},
    {"softmax/tree/plain/fp64", {0, 0, 0x2fb46cf45ad2a9e0, 0x8d6841a64b3ca909}},
    {"softmax/exact/fp64", {0, 0, 0x2fb46cf45ad2a9e0, 0xca9aae8b21ed4e93}},
    {"softmax/online/fp64", {0, 0, 0x2fb46cf45ad2a9e0, 0x8d6841a64b3ca909}},
    {"log_softmax/tree/plain/fp64", {0, 0, 0x6f165cbeb5996bbf, 0x2e07bc75152cbbdd}},
    {"log_softmax/exact/fp64", {0, 0, 0x6f165cbeb5996bbf, 0x2e07bc75152cbbdd}},
    {"log_softmax/online/fp64", {0, 0, 0x6f165cbeb5996bbf, 0x2e07bc75152cbbdd}},
};

TEST_P(EverySoftmax, HasItsGoldenBits) {
  SAMESUM_UNSANITIZED("it tests bits");
  const auto found =
      std::ranges::find_if(golden, [&](const Golden& g) { return m.name == g.name + ("@" + m.backend); });
  ASSERT_NE(found, std::end(golden));
  for (const FormatInfo* format : formats_of(m)) {
    const std::uint64_t bits = digest(m, *format);
    EXPECT_EQ(bits, found->of_formats[format->index]) << format->name << ": 0x" << std::hex << bits;
  }
}

}  // namespace
}  // namespace samesum
