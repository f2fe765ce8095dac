/// Scans: every result has the bits of the reduction of its elements, for any layout and any number of
/// threads.
#include <map>
#include <numeric>

#include "harness/truth.hpp"
#include "operation/reduction_support.hpp"
#include "samesum/accumulator/exact.hpp"
#include "samesum/accumulator/fixed_point.hpp"
#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/call/validation.hpp"

namespace samesum {
namespace {

using namespace testing_support;
using ::testing::HasSubstr;

constexpr std::size_t tile_elements = 4096, part_elements = 16 * tile_elements;

std::vector<const Method*> scans_of(std::string_view backend) {
  std::vector<const Method*> chosen;
  for (const Method& m : methods())
    if (m.backend == backend && m.is_scan()) chosen.push_back(&m);
  return chosen;
}

/// The method for one vector whose results a scan lists.
const Method& reduction_of(const Method& scan) {
  const Method& host = on_host(scan);  // many calls
  return find(host.operation.substr(3) + host.name.substr(host.operation.size()));
}

Bits scanned(const Method& m, Values x, const Layout& layout, Options options = {}, std::size_t stride = 0) {
  return result_per_element(m, x, layout, options, stride);
}
Bits scanned(const Method& m, Values x, Options options = {}) {
  return scanned(m, x, Layout::vector(x.size), options);
}

/// Reduces x with the same options as a scan of which it is a prefix. The grid is given: one that is found
/// depends on the elements behind the prefix, too.
Bits scanned_on_one_grid(const Method& m, Values x) { return scanned(m, x, with_grid(m)); }
std::uint64_t reduced_on_one_grid(const Method& m, Values x) { return m(x, with_grid(m)).bits; }

Values first_of(Values x, std::size_t n) { return {*x.format, x.data, n}; }

class EveryScan : public MethodTest {
 protected:
  /// Calls visit(x) with data of each format that the method accepts.
  template <class Visit> void for_each_input(std::size_t n, int binades, Visit visit) {
    for (const FormatInfo& input : formats)
      if (m.accepts(input)) visit(Array{input, wide(n, binades, n)});
  }
};
// With sanitizers the reference runs wherever a CPU's method is compared with it.
INSTANTIATE_TEST_SUITE_P(Reference, EveryScan, ::testing::ValuesIn(scans_of(is_sanitized ? "" : "reference")),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Cpu, EveryScan, ::testing::ValuesIn(without_fp16_if_sanitized(scans_of("cpu"))),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Cuda, EveryScan, ::testing::ValuesIn(or_absent(scans_of("cuda"))), test_name);

TEST_P(EveryScan, HasTheBitsOfTheReductionOfEachPrefix) {
  SAMESUM_SANITIZED_IN_FP32(m);
  const Method& reduction = reduction_of(m);
  constexpr std::size_t n = 2 * tile_elements + 5;
  for_each_input(n, 12, [&](const Array& x) {
    const Bits all = scanned_on_one_grid(m, x.values());
    // Each reduction reads all elements again.
    const std::size_t step = m.backend != "reference" && x.values().format == m.format ? 31 : 149;
    for (std::size_t i = 0; i < n; ++i) {
      if (i > 300 && i % step > 0 && i % 128 != 127 && i % tile_elements > 2) continue;
      ASSERT_EQ(all[i], reduced_on_one_grid(reduction, first_of(x.values(), i + 1)))
          << "element " << i << " of " << x.values().format->name;
    }
  });
}

TEST_P(EveryScan, HasTheBitsOfTheReductionOfLongPrefixes) {
  SAMESUM_SANITIZED_IN_FP32(m);
  const Method& reduction = reduction_of(m);
  const bool is_short = is_sanitized || m.backend == "reference";
  const std::size_t n = (is_short ? 1 : 2) * part_elements + 3 * tile_elements + 777;
  const Array x{*m.format, wide(n, 12, 3)};
  const Bits all = scanned_on_one_grid(m, x.values());
  for (const std::size_t base :
       is_short ? std::vector{part_elements, n - 2}
                : std::vector{3 * tile_elements, 7 * tile_elements, 8 * tile_elements, 15 * tile_elements,
                              part_elements, part_elements + tile_elements, 2 * part_elements, n - 2})
    for (const std::size_t i : {base - 2, base - 1, base, base + 1})
      EXPECT_EQ(all[i], reduced_on_one_grid(reduction, first_of(x.values(), i + 1))) << "element " << i;
}

TEST_P(EveryScan, HasTheBitsOfItsReference) {
  if (m.backend == "reference") return;
  for (const Dataset& d : awkward_data(3 * tile_elements + 1500)) {
    const Array x{*m.format, d.x};
    EXPECT_EQ(scanned(m, x.values()), scanned(reference_of(m), x.values())) << d.name;
  }
  for (const std::size_t n : {1, 2, 3, 4, 5, 127, 128, 129, 256, 1023, 1024, 1025, 4095, 4096, 4097})
    for_each_input(n, 60, [&](const Array& x) {
      if (is_sanitized && n > 256 && x.values().format != m.format) return;  // tiles convert alike
      EXPECT_EQ(scanned(m, x.values()), scanned(reference_of(m), x.values()))
          << n << " elements of " << x.values().format->name;
    });
}

TEST_P(EveryScan, HasTheSameBitsForAnyNumberOfThreads) {
  SAMESUM_SANITIZED_IN_FP32(m);
  if (m.backend == "reference") return;
  std::vector<std::size_t> lengths{3 * part_elements, part_elements + 1,
                                   2 * part_elements + 2 * tile_elements + 17};
  std::vector<int> thread_counts{3, 0, 7};
  if (is_sanitized) {
    lengths = {part_elements + 1};
    thread_counts.resize(1);
  }
  std::size_t k = 0;
  for (const std::size_t n : lengths) {
    const Array x{*m.format, wide(n, 12, n)};
    for (const bool exclusive : {false, true}) {
      const int threads = thread_counts[k++ % thread_counts.size()];
      ASSERT_EQ(scanned(m, x.values(), {.threads = threads, .exclusive = exclusive}),
                scanned(on_host(m), x.values(), {.threads = 1, .exclusive = exclusive}))
          << n << " elements, " << threads << " threads";
    }
  }
}

TEST_P(EveryScan, HasTheBitsOfEachVectorForRowsAndAxes) {
  const struct {
    std::size_t outer, n, inner, gap, out_gap;
  } shapes[] = {{3, 4400, 1, 0, 0}, {5, 3, 1, 2, 4}, {1, 4100, 9, 0, 0}, {1, 1100, 33, 0, 0},
                {2, 70, 17, 3, 1},  {4, 1, 3, 0, 0}, {2, 9, 16, 0, 0},   {3, 5000, 1, 1, 3}};
  for (const auto& [outer, n, inner, gap, out_gap] : shapes) {
    if (n == 5000 && m.backend != "cuda") continue;  // the shapes before access a CPU's memory alike
    const Layout layout{outer, n, inner, n * inner + gap, inner};
    const std::vector<double> elements = wide(outer * (n * inner + gap), 12, n);
    const Array x{*m.format, elements};
    for (const bool exclusive : {false, true}) {
      if (is_sanitized && exclusive) continue;
      Bits expected(outer * n * inner);
      for (std::size_t o = 0; o < outer; ++o)
        for (std::size_t i = 0; i < inner; ++i) {
          std::vector<double> column;
          for (std::size_t k = 0; k < n; ++k)
            column.push_back(elements[o * layout.outer_stride + k * inner + i]);
          const Bits alone = scanned(m, Array{*m.format, column}.values(), {.exclusive = exclusive});
          for (std::size_t k = 0; k < n; ++k) expected[(o * n + k) * inner + i] = alone[k];
        }
      for (const int threads : {1, 3}) {
        if (threads > 1 && m.backend != "cpu") continue;  // they have only one
        if (is_sanitized && threads == 1 && m.backend == "cpu") continue;
        ASSERT_EQ(scanned(m, x.values(), layout, {.threads = threads, .exclusive = exclusive},
                          out_gap == 0 && gap == 0 ? 0 : n * inner + out_gap),
                  expected)
            << outer << " x " << n << " x " << inner << ", " << threads << " threads";
      }
    }
  }
}

TEST_P(EveryScan, ThatIsExclusiveLeavesOutTheElement) {
  for (const std::size_t n : {1, 5, 1023, 4095, 4096, 4097, 9000}) {
    const Array x{*m.format, wide(n, 12, n)};
    const Bits inclusive = scanned(m, x.values()), exclusive = scanned(m, x.values(), {.exclusive = true});
    EXPECT_EQ(exclusive[0], reduction_of(m)(first_of(x.values(), 0)).bits) << "the result for no elements";
    for (std::size_t i = 1; i < n; ++i) ASSERT_EQ(exclusive[i], inclusive[i - 1]) << "element " << i;
  }
}

TEST_P(EveryScan, MayReplaceItsElements) {
  SAMESUM_SANITIZED_IN_FP32(m);
  const bool is_short = is_sanitized || m.backend == "reference";  // which has one part of any length
  for (const Layout& layout : {Layout::vector(m.backend == "reference" ? 5007 : part_elements + 7),
                               Layout::rows(3, 5000), Layout::axis(2, is_short ? 70 : 4200, 20)}) {
    const std::size_t n = layout.outer * layout.n * layout.inner;
    const Array x{*m.format, wide(n, 12, 5)};
    for (const bool exclusive : {false, true}) {
      const Bits expected = scanned(m, x.values(), layout, {.threads = 1, .exclusive = exclusive});
      for (const int threads : {1, 3}) {
        if (threads > 1 && m.backend != "cpu") continue;  // they have only one
        const Array y = x.at_offset(0);
        const Values in_place = y.values();
        reduce(m, in_place, layout, Results{m.format, const_cast<void*>(in_place.data), n},
               {.threads = threads, .exclusive = exclusive});
        Bits found(n);
        for (std::size_t i = 0; i < n; ++i)
          std::memcpy(&found[i], static_cast<const std::byte*>(in_place.data) + i * m.format->bytes,
                      m.format->bytes);
        ASSERT_EQ(found, expected) << threads << " threads";
      }
    }
  }
}

TEST_P(EveryScan, OfNothingWritesNothing) {
  const Array none{*m.format, {}};
  EXPECT_EQ(scanned(m, none.values()), Bits{});
  EXPECT_EQ(scanned(m, none.values(), Layout::rows(0, 3)), Bits{});
  EXPECT_EQ(scanned(m, none.values(), Layout::rows(3, 0)), Bits{});
  EXPECT_EQ(scanned(m, none.values(), Layout::axis(2, 3, 0)), Bits{});
}

TEST_P(EveryScan, KeepsItsSpecialValues) {
  SAMESUM_SANITIZED_IN_FP32(m);
  constexpr double inf = std::numeric_limits<double>::infinity();
  const double largest = m.format->max_finite, tiny = m.format->smallest_subnormal;
  const std::vector<std::vector<double>> cases{{-0.0, -0.0, 0.0, -0.0},
                                               {-0.0},
                                               {0.0, -0.0},
                                               {-0.0, 1, -1, -0.0},
                                               {1, inf, 2, -inf, 3},
                                               {1, -inf, NAN, 5},
                                               {NAN, 1, 2},
                                               {tiny, tiny, -tiny, -tiny, -tiny},
                                               {largest, largest, -largest, -largest, 1},
                                               {-largest, tiny, largest}};
  Options options;
  if (m.accumulator == "fixed_point")  // a grid on which all cases fit
    options.grid =
        found_grid(m.format->max_exponent, 4200, word_bits_for(m.format->precision), m.format->min_quantum);
  for (std::vector<double> x : cases)
    for (const std::size_t before : {0, 126, 3968}) {  // in all 126 and 4094
      if (before > 0 && m.backend == "reference") continue;
      x.insert(x.begin(), before, m.operation == "cumprod" ? 1 : -0.0);
      const Array array{*m.format, x};
      const Bits all = scanned(m, array.values(), options);
      for (std::size_t i = before; i < x.size(); ++i)
        EXPECT_EQ(all[i], reduction_of(m)(first_of(array.values(), i + 1), options).bits)
            << ::testing::PrintToString(std::vector<double>(x.begin() + std::ptrdiff_t(before), x.end()))
            << ", element " << i;
    }
}

TEST_P(EveryScan, IsWithinTheBoundOfEachPrefix) {
  SAMESUM_UNSANITIZED("it tests rounding");
  if (m.operation != "cumsum") return;
  for (const int binades : {4, 30}) {
    constexpr std::size_t n = 4600;
    const Array x{*m.format, wide(n, binades, 8)};
    const Bits all = scanned(m, x.values());
    const bool on_grid = m.accumulator == "fixed_point";  // which the whole vector determines
    const double largest = on_grid ? power_of_two(binades / 2) : 0;
    harness::Truth truth;
    for (std::size_t i = 0; i < n; ++i) {
      const std::byte* const element = static_cast<const std::byte*>(x.values().data) + i * m.format->bytes;
      truth.add(Values{*m.format, element, 1});
      const Number result{m.format, all[i]};
      const double bound = on_grid ? m.bound(*m.format, n, result, largest)
                                   : m.bound(*m.format, i + 1, result, truth.magnitudes_rounded_up());
      ASSERT_LE(truth.error_of(result).absolute, bound) << "element " << i;
      if (i < 3 && m.format->precision > 20) {
        ASSERT_LT(bound, 1e-3) << "element " << i;
      }
    }
  }
}

SAMESUM_ON_BACKENDS(AnExactScan, "cpu", "cuda");

TEST_P(AnExactScan, RoundsItsPrefixesLikeSumsAtEveryMagnitude) {
  for (const Method* m : scans_of(backend)) {
    if (m->accumulator != "exact") continue;
    const int lowest = m->format->min_quantum, highest = m->format->max_exponent - 14;
    for (int e = lowest; e <= highest; e += 7) {
      // Numbers of two magnitudes, then their opposites: the sums shrink to their last bits.
      std::vector<double> x = wide(24, 24, static_cast<std::uint64_t>(e - lowest));
      for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = std::ldexp(x[i], i % 7 == 3 ? std::min(e + 80, highest) : e);
      for (std::size_t i = 0; i < 24; ++i) x.push_back(-x[i * 5 % 24]);
      const Array array{*m->format, x};
      for (const bool exclusive : {false, true}) {
        const Bits all = scanned(*m, array.values(), {.exclusive = exclusive});
        for (std::size_t i = 0; i < x.size(); ++i)
          ASSERT_EQ(all[i], reduction_of(*m)(first_of(array.values(), exclusive ? i : i + 1)).bits)
              << m->name << " of numbers like 2^" << e << ", element " << i;
      }
    }
  }
}

TEST_P(AnExactScan, BreaksTiesByTheLastBitOfItsSum) {
  const auto check = [&]<class F>() {
    constexpr F tie = static_cast<F>(Format<F>::unit_roundoff), next = 1 + 2 * tie;
    for (const double small : {0x1p-90, Format<F>::smallest_subnormal})
      for (const F sign : {F{1}, F{-1}}) {
        const F tiny = static_cast<F>(small);
        std::vector<F> x{1, tie, tiny, -2 * tiny, tiny, 2 * tie, -tiny},
            expected{1, 1, next, 1, 1, next + 2 * tie, next};
        for (F& e : x) e *= sign;
        for (F& e : expected) e *= sign;
        // Followed by many whose roundings are easy, few of them are looked at again.
        x.resize(2000, sign);
        std::vector<F> found(x.size());
        reduce(method("cumsum/exact/" + std::string{Format<F>::name}), x, Layout::vector(x.size()),
               std::span{found});
        found.resize(expected.size());
        EXPECT_EQ(found, expected) << sign << " " << tiny << " " << Format<F>::name;
      }
  };
  check.template operator()<fp32>();
  check.template operator()<fp64>();
}

/// Scans elements by sums in words with bounds. Checks all results that these decide, and returns the number
/// of the others.
template <class T, class F> std::size_t count_unknown(const std::vector<double>& data, bool exclusive) {
  std::vector<T> x(data.size());
  std::ranges::transform(data, x.begin(), [](double e) { return static_cast<T>(e); });
  T largest{};
  for (const T e : x) largest = std::max(largest, std::abs(e));
  const int scale = sizeof(T) < 8 ? 0 : std::clamp(-exponent_of(largest), -1000, 1000);
  std::vector<F> found(x.size());
  std::vector<std::uint16_t> unknown(x.size());
  const std::size_t count = cpu::kernels(Formats::index_of<F>())
                                .scan_nearly[Formats::index_of<T>()](x.data(), x.size(), exclusive, {0, 0},
                                                                     scale, found.data(), unknown.data());
  unknown.resize(count);
  EXPECT_TRUE(std::ranges::is_sorted(unknown));
  Exact sum;
  int wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!exclusive) sum.add(x[i]);
    if (!std::ranges::binary_search(unknown, i)) wrong += to_bits(found[i]) != to_bits(sum.result<F>());
    if (exclusive) sum.add(x[i]);
  }
  EXPECT_EQ(wrong, 0) << Format<T>::name << " to " << Format<F>::name << ", exclusive " << exclusive;
  return count;
}

/// Numbers next to sums of powers of two, by as little as 2^-200 of them.
std::vector<double> nearly_ties(std::size_t n, int precision, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  std::vector<double> x{1};
  while (x.size() < n) {
    const int exponent = random() % 2 == 0 ? -precision : -static_cast<int>(random() % 200);
    x.push_back(random() % 2 == 0 ? power_of_two(exponent) : -power_of_two(exponent));
  }
  return x;
}

TEST(AnExactScanOfTheCpu, DecidesNearlyAllRoundingsByBoundsThatHold) {
  const auto check = []<class T, class F>() {
    for (const std::size_t n : {1, 7, 255, 256, 257, 4096})
      for (const bool exclusive : {false, true}) {
        const int binades = sizeof(T) == 8 ? 2000 : 240;
        std::vector<double> zeros_first = wide(n, 60, n);
        std::fill_n(zeros_first.begin(), n / 2, 0.0);
        for (const auto& easy : {wide(n, 60, n), wide(n, binades, n), zeros_first})
          EXPECT_LE((count_unknown<T, F>(easy, exclusive)), n / 100 + 9);
        count_unknown<T, F>(nearly_ties(n, Format<F>::precision, n), exclusive);
        count_unknown<T, F>(wide(n, 2, n), exclusive);  // sums of few bits are often ties
      }
    const std::vector<double> largest(4096, static_cast<double>(std::numeric_limits<T>::max()));
    EXPECT_LE((count_unknown<T, F>(largest, false)), 20u);
    std::vector<double> small = wide(1000, 60, 4), tiny_first = largest;
    for (double& e : small) e *= 0x1p90 * Format<T>::smallest_subnormal;
    EXPECT_LE((count_unknown<T, F>(small, false)), 20u);
    tiny_first[0] = Format<T>::smallest_subnormal;
    count_unknown<T, F>(tiny_first, false);
    std::vector<double> cancels = wide(600, 40, 1);
    for (std::size_t i = 1; i < cancels.size(); i += 2) cancels[i] = -cancels[i - 1];
    EXPECT_GE((count_unknown<T, F>(cancels, false)), 300u) << "the sign of a sum that may be 0 is not known";
  };
  check.template operator()<fp32, fp32>();
  check.template operator()<fp32, fp64>();
  check.template operator()<fp64, fp64>();
}

TEST(ABoundOfAScan, IsThatOfTheReduction) {
  const Number two = Number::of(2.0f);
  for (const Method* m : scans_of("cpu")) {
    if (m->format->name != "fp32") continue;
    for (const std::size_t n : {0, 1, 5, 1500})
      EXPECT_EQ(m->bound(format_info<fp32>(), n, two, 7),
                reduction_of(*m).bound(format_info<fp32>(), n, two, 7))
          << m->name;
  }
  const Method &plain = find("cumsum/serial/plain/fp32"), &sum = find("serial/plain/fp32");
  EXPECT_EQ(plain.bound(format_info<fp32>(), 900, two, 7, {.probability = 0.9}),
            sum.bound(format_info<fp32>(), 900, two, 7, {.probability = 0.9}));
}

// --- the order serial ------------------------------------------------------------------------------------

TEST(ASerialCumsum, HasTheBitsOfALoop) {
  std::vector<float> x(5000), expected(5000), found(5000);
  std::ranges::transform(wide(5000, 30, 1), x.begin(), [](double e) { return static_cast<float>(e); });
  std::partial_sum(x.begin(), x.end(), expected.begin());
  for (const std::string& backend : present_backends()) {
    reduce(find("cumsum/serial/plain/fp32@" + backend), x, Layout::vector(5000), std::span{found});
    EXPECT_EQ(found, expected) << backend;
  }
}

// --- scans on a grid -------------------------------------------------------------------------------------

std::vector<const Method*> scans_with(std::string_view accumulator,
                                      std::initializer_list<const char*> backends) {
  std::vector<const Method*> chosen;
  for (const char* backend : backends)
    for (const Method* m : scans_of(backend))
      if (m->accumulator == accumulator) chosen.push_back(m);
  return chosen;
}

class EveryScanOnAGrid : public MethodTest {
 protected:
  /// The results; nothing if a sum overflows.
  std::optional<Bits> bits(Values x, Options options) {
    try {
      return scanned(m, x, options);
    } catch (const std::overflow_error&) {
      return std::nullopt;
    }
  }
  /// The sums of all prefixes on a grid; nothing if one of them overflows.
  std::optional<Bits> sums(Values x, int grid, bool exclusive) {
    const Method& sum = reduction_of(m);
    Bits all;
    try {
      for (std::size_t i = 0; i < x.size; ++i)
        all.push_back(sum(first_of(x, exclusive ? i : i + 1), {.grid = grid}).bits);
    } catch (const std::overflow_error&) {
      return std::nullopt;
    }
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(, EveryScanOnAGrid,
                         ::testing::ValuesIn(scans_with("fixed_point", {"reference", "cpu"})), test_name);
INSTANTIATE_TEST_SUITE_P(Cuda, EveryScanOnAGrid,
                         ::testing::ValuesIn(or_absent(scans_with("fixed_point", {"cuda"}))), test_name);

TEST_P(EveryScanOnAGrid, HasTheSumOfEachPrefixOnTheGivenGrid) {
  int overflows = 0, others = 0;
  for (const FormatInfo& input : formats) {
    if (is_sanitized && &input != &format_info<fp32>()) continue;  // other tests convert other formats
    for (const int grid :
         {lowest_grid, -1074, -149, -100, -60, -42, -30, -20, -3, 0, 2, 30, 900, highest_grid})
      for (const int binades : {2, 40})
        for (const bool exclusive : {false, true}) {
          const Array x{input, wide(80, binades, static_cast<std::uint64_t>(binades))};
          const auto found = bits(x.values(), {.exclusive = exclusive, .grid = grid});
          ASSERT_EQ(found, sums(x.values(), grid, exclusive)) << input.name << ", 2^" << grid;
          ++(found ? others : overflows);
        }
  }
  EXPECT_GT(overflows, 10);
  EXPECT_GT(others, 10);
}

TEST_P(EveryScanOnAGrid, FindsTheGridOfTheWholeVector) {
  for (const FormatInfo& input : formats)
    for (const int binades : {1, 20, 300}) {
      const std::size_t n = 900;
      std::vector<double> x = wide(n, binades, 4);
      for (double& e : x) e = std::clamp(e, -input.max_finite, input.max_finite);
      const Array array{input, x};
      double largest = 0;
      for (const double e : x) largest = std::max(largest, std::abs(e));
      const Array rounded{input, {largest}};
      const int exponent = with_format(
          input, [&]<class T>() { return exponent_of(*static_cast<const T*>(rounded.values().data)); });
      const int grid = found_grid(exponent, n, word_bits_for(m.format->precision), input.min_quantum);
      for (const bool exclusive : {false, true})
        EXPECT_EQ(scanned(m, array.values(), {.exclusive = exclusive}),
                  scanned(m, array.values(), {.exclusive = exclusive, .grid = grid}))
            << input.name << ", " << binades << " binades";
    }
}

TEST_P(EveryScanOnAGrid, OverflowsWhereAPrefixDoes) {
  if (m.format->precision > 24) return;  // its word holds all sums of terms that are not too large themselves
  const int grid = 1 - word_bits_for(m.format->precision);  // the word holds sums of up to 2
  for (const std::size_t before : {0, 4990, 9997}) {        // in the first tile, the next one, the last one
    const auto behind_zeros = [&](std::vector<double> x) {
      x.insert(x.begin(), before, 0.0);
      return Array{format_info<fp64>(), x};
    };
    const Array fits = behind_zeros({1, 1, -1, 1, 0}), beyond = behind_zeros({1, 1, 1, -1, -1}),
                at_the_end = behind_zeros({1, 1, 1});
    EXPECT_TRUE(bits(fits.values(), {.grid = grid})) << before;
    EXPECT_FALSE(bits(beyond.values(), {.grid = grid})) << before << ", although all elements together fit";
    EXPECT_FALSE(bits(beyond.values(), {.exclusive = true, .grid = grid})) << before;
    EXPECT_FALSE(bits(at_the_end.values(), {.grid = grid})) << before;
    EXPECT_TRUE(bits(at_the_end.values(), {.exclusive = true, .grid = grid}))
        << before << ": no result has it";
    try {
      scanned(m, beyond.values(), {.grid = grid});
      FAIL();
    } catch (const std::overflow_error& error) {
      EXPECT_THAT(error.what(), HasSubstr(m.name));
    }
  }
}

// --- exact scans -----------------------------------------------------------------------------------------

using EveryExactScan = MethodTest;
INSTANTIATE_TEST_SUITE_P(Reference, EveryExactScan, ::testing::ValuesIn(scans_with("exact", {"reference"})),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Cpu, EveryExactScan,
                         ::testing::ValuesIn(without_fp16_if_sanitized(scans_with("exact", {"cpu"}))),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Cuda, EveryExactScan, ::testing::ValuesIn(or_absent(scans_with("exact", {"cuda"}))),
                         test_name);

/// Data that an integer of 128 bits can hold, or only the beginning of, or not at all.
std::vector<Dataset> made_for_integers(std::size_t n, std::uint64_t seed) {
  std::vector<double> rises = uniform(n, seed), falls = rises, one_small = rises,
                      wider = uniform(n, seed + 1);
  std::mt19937_64 random{seed};
  for (std::size_t i = 0; i < n; ++i) {
    rises[i] *= power_of_two(static_cast<int>(200 * i / n) - 100);
    falls[i] *= power_of_two(100 - static_cast<int>(200 * i / n));
    wider[i] *= power_of_two(static_cast<int>(random() % 2000) - 1000);
  }
  one_small[2 * n / 3] = 0x1p-140;
  std::vector<double> cancels = wide(n, 20, seed + 2);
  for (std::size_t i = 1; i < n; i += 2) cancels[i] = -cancels[i - 1];
  std::vector<double> ties(n);
  for (std::size_t i = 0; i < n; ++i) ties[i] = i % 3 == 0 ? 1 : power_of_two(-static_cast<int>(i % 60));
  std::vector<double> zeros_first = uniform(n, seed + 3);
  std::fill_n(zeros_first.begin(), n / 2, -0.0);
  return {{"20 binades", wide(n, 20, seed)},
          {"rises", rises},
          {"falls", falls},
          {"one small", one_small},
          {"2000 binades", wider},
          {"cancels", cancels},
          {"ties", ties},
          {"zeros first", zeros_first},
          {"largest", std::vector<double>(n, std::numeric_limits<double>::max())},
          {"smallest", std::vector<double>(n, 0x1p-1074)}};
}

const std::vector<Dataset>& data_for_integers(std::size_t n, std::uint64_t seed) {
  static std::map<std::pair<std::size_t, std::uint64_t>, std::vector<Dataset>> made;  // for all methods
  std::vector<Dataset>& data = made[{n, seed}];
  if (data.empty()) data = made_for_integers(n, seed);
  return data;
}

TEST_P(EveryExactScan, RoundsTheTruthOfEachPrefixOnce) {
  SAMESUM_UNSANITIZED("it tests correct rounding");
  constexpr std::size_t n = 4300;
  for (const FormatInfo& input : formats)
    for (const Dataset& d : data_for_integers(n, 4)) {
      const Array x{input, d.x};
      const Bits all = scanned(m, x.values());
      harness::Truth truth;
      for (std::size_t i = 0; i < n; ++i) {
        truth.add({input, static_cast<const std::byte*>(x.values().data) + i * input.bytes, 1});
        if (i > 300 && i % 5 > 0 && i % tile_elements > 9) continue;  // rounding takes long
        ASSERT_EQ(all[i], truth.rounded(*m.format).bits)
            << d.name << " of " << input.name << ", element " << i;
      }
    }
}

TEST_P(EveryExactScan, HasTheSameBitsForAnyNumberOfThreadsOnEveryKindOfData) {
  SAMESUM_SANITIZED_IN_FP32(m);
  if (m.backend == "reference") return;
  const std::size_t n = (is_sanitized ? 1 : 2) * part_elements + 5000;
  for (const FormatInfo& input : formats)
    for (const Dataset& d : data_for_integers(n, 6)) {
      if (is_sanitized && &input != m.format) continue;
      const Array x{input, d.x};
      const Bits one = scanned(on_host(m), x.values(), {.threads = 1});
      EXPECT_EQ(scanned(m, x.values(), {.threads = 3}), one) << d.name << " of " << input.name;
      EXPECT_EQ(one.back(), reduction_of(m)(x.values()).bits) << d.name << " of " << input.name;
    }
}

TEST(AnExactCumsum, OfAPermutedPrefixHasTheSameBits) {
  std::vector<double> x = wide(3000, 40, 9), y = x, first(3000), second(3000);
  std::mt19937_64 random{1};
  for (std::size_t i = 2000; i > 1; --i) std::swap(y[i - 1], y[random() % i]);
  for (const std::string& backend : present_backends()) {
    const Method& m = find("cumsum/exact/fp64@" + backend);
    reduce(m, x, Layout::vector(3000), std::span{first});
    reduce(m, y, Layout::vector(3000), std::span{second});
    for (std::size_t i = 1999; i < 3000; ++i) EXPECT_EQ(first[i], second[i]) << i << ", " << backend;
  }
}

TEST(TheDefaultMethodOfCumsum, IsExact) {
  for (const FormatInfo& input : formats)
    EXPECT_EQ(default_method("cumsum", input)->name, "cumsum/exact/" + std::string{input.name} + "@cpu");
  EXPECT_EQ(default_method("cumprod", format_info<fp32>())->name, "cumprod/prefix/fp32@cpu");
  EXPECT_EQ(default_method("cummax", format_info<bf16>())->name, "cummax/bf16@cpu");
}

// --- arguments -------------------------------------------------------------------------------------------

std::string refusal_of_scan(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "(accepted)";
}

TEST(AScan, RefusesWrongArguments) {
  const Method& m = find("cumsum/prefix/plain/fp32");
  std::vector<float> x(24, 1.0f), y(24);
  const auto refused = [&](const Layout& layout, Results out, Options options = {}) {
    return refusal_of_scan([&] { reduce(m, x, layout, out, options); });
  };
  const std::uint64_t offsets[] = {0, 3, 24};
  EXPECT_THAT(refused(Layout::segments(offsets, 2), std::span{y}),
              HasSubstr("only contiguous rows and axes"));
  EXPECT_THAT(refused({1, 3, 2, 0, 5}, std::span{y}), HasSubstr("use Layout::rows or Layout::axis"));
  EXPECT_THAT(refused(Layout::rows(3, 8, 4), std::span{y}), HasSubstr("rows must not share elements"));
  EXPECT_THAT(refused(Layout::axis(2, 3, 4), Results{std::span{y}, 11}),
              HasSubstr("out has a row stride of 11, less than the 12 elements of a row"));
  EXPECT_THAT(refused(Layout::axis(2, 3, 4), std::span{y}.first(23)),
              HasSubstr("it needs one for each element, 24"));
  EXPECT_THAT(refused(Layout::vector(25), std::span{y}), HasSubstr("the layout reads 25"));
  EXPECT_THAT(refused(Layout::vector(23), std::span{x}.subspan(1)), HasSubstr("out overlaps x"));
  std::vector<double> wide_out(24);
  EXPECT_THAT(refused(Layout::vector(24), std::span{wide_out}),
              HasSubstr("out holds fp64; the results are fp32"));
  EXPECT_THAT(refused(Layout::vector(24), std::span{y}, {.threads = -1}), HasSubstr("threads is -1"));
  EXPECT_THAT(
      refusal_of_scan([&] { reduce(m, wide_out, Layout::vector(24), std::span{y}); }),
      HasSubstr("the method does not accept elements of fp64; convert them to one of fp16, bf16, fp32"));
  EXPECT_THAT(refusal_of_scan([&] { m(x); }),
              HasSubstr("returns a number per element; call reduce with a layout"));
  EXPECT_THAT(refusal_of_scan([&] { Partial{m}; }), HasSubstr("number per element"));
  EXPECT_EQ(refused(Layout::vector(24), std::span{x}), "(accepted)") << "exactly in place";
}

TEST(AScan, OfNarrowElementsMayNotReplaceThem) {
  std::vector<float> memory(24);
  const Values halves{format_info<fp16>(), memory.data(), 24};
  EXPECT_THAT(refusal_of_scan(
                  [&] { reduce(find("cumsum/exact/fp32"), halves, Layout::vector(24), std::span{memory}); }),
              HasSubstr("out overlaps x"));
  const Values rows{format_info<bf16>(), memory.data(), 24};
  std::vector<fp16> apart(24);
  EXPECT_THAT(refusal_of_scan([&] {
                reduce(find("cumsum/exact/fp16"), rows, Layout::vector(24),
                       Results{&format_info<fp16>(), memory.data(), 24});
              }),
              HasSubstr("out overlaps x"));
}

TEST(TheOptionExclusive, IsForScans) {
  std::vector<float> x{1, 2, 4};
  EXPECT_THAT(refusal_of_scan([&] { find("tree/plain/fp32")(x, {.exclusive = true}); }),
              HasSubstr("exclusive is only for scans, such as cumsum"));
  EXPECT_THAT(refusal_of_scan([&] { find("max/fp32")(x, {.exclusive = true}); }),
              HasSubstr("exclusive is only for scans"));
  std::vector<float> y(3);
  EXPECT_THAT(refusal_of_scan([&] {
                reduce(find("softmax/exact/fp32"), x, Layout::vector(3), std::span{y}, {.exclusive = true});
              }),
              HasSubstr("exclusive is only for scans"));
  EXPECT_EQ(validation_error(find("cumsum/exact/fp32"), Options{.exclusive = true}), "");
}

}  // namespace
}  // namespace samesum
