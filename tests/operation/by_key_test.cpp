/// Operations by key: every result has the bits of the reference, whatever the keys, their type and the
/// number of threads, and every bad argument is refused before anything is written.
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <numeric>

#include "harness/truth.hpp"
#include "operation/by_key_support.hpp"

namespace samesum::by_key {
namespace {

using ::testing::HasSubstr;

/// The results on a given grid, none if a sum overflows it.
Bits reduced_or_refused(const Method& m, const Case& c, const Array& x, int grid) {
  try {
    return reduced(m, c, x, KeyFormat::int32, {.grid = grid});
  } catch (const std::overflow_error&) {
    return {};
  }
}

class EveryMethodByKey : public MethodTest {
 protected:
  template <class Visit> void for_each_input(Visit visit) {
    for (const FormatInfo& input : formats)
      if (m.accepts(input) && (m.inputs > 0 || &input == m.format)) visit(input);
  }
};
INSTANTIATE_TEST_SUITE_P(Cpu, EveryMethodByKey, ::testing::ValuesIn(methods_by_key("cpu")), test_name);
INSTANTIATE_TEST_SUITE_P(Cuda, EveryMethodByKey, ::testing::ValuesIn(or_absent(methods_by_key("cuda"))),
                         test_name);

TEST_P(EveryMethodByKey, HasTheBitsOfTheReferenceOnAnyNumberOfThreads) {
  const Method& reference = reference_of(m);
  const std::vector<double> all_held[] = {{0.0}, {-0.0, 0.25, -1.5}, held_numbers()};
  std::size_t k = 0, number = 0;
  for (const Case& c : cases()) {
    ++number;
    for_each_input([&](const FormatInfo& input) {
      // Elements that are not awkward are converted from half of the other formats, which alternate.
      if (&input != m.format && !c.name.starts_with("awkward") && (number + input.index) % 2 == 0) return;
      // Cases take the formats of keys, what `out` holds, and numbers of threads in turn.
      const auto format = static_cast<KeyFormat>(k % 3);
      const std::vector<double>& held = all_held[k / 3 % 3];
      if (++k % (is_sanitized ? 32 : 1) != 0) return;
      const Array x = elements_of(c, m, input);
      const Bits expected = reduced(reference, c, x, KeyFormat::uint32);
      // The parity of the bits of k follows no period of the cases.
      const int threads = is_sanitized || std::popcount(k) % 2 != 0 ? 3 : 1;
      ASSERT_EQ(reduced(m, c, x, format, {.threads = threads}), expected)
          << c.name << " of " << input.name << ", " << threads << " threads";
      if (!can_combine(m)) return;
      const Bits combined = reduced(reference, c, x, KeyFormat::int64, {.combine = true}, held);
      ASSERT_EQ(reduced(m, c, x, format, {.threads = threads, .combine = true}, held), combined)
          << c.name << " of " << input.name << " combined, " << threads << " threads";
    });
  }
}

TEST_P(EveryMethodByKey, ReducesRowsOfAnyWidthAndOfAnyElements) {
  SAMESUM_SANITIZED_IN_FP32(m);
  constexpr std::size_t rows = 24, bins = 10;
  static std::map<std::size_t, std::vector<std::vector<double>>> made;  // for all methods
  for (const std::size_t inner : {5, 15, 16, 17, 40, 129, 300}) {
    std::vector<std::vector<double>>& all = made[inner];
    if (all.empty()) {
      all = awkward_elements(rows * inner);
      all.push_back(wide(rows * inner, 6, inner));
      all.emplace_back(rows * inner, -0.0);
      all.emplace_back(rows * inner, 0.0);
    }
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (is_sanitized && k % 4 != inner % 4) continue;
      const Case c{"", random_keys(rows, bins, k), bins, inner, all[k]};
      const Array x = elements_of(c, m, *m.format);
      EXPECT_EQ(reduced(m, c, x, KeyFormat::int64, {.threads = 2}),
                reduced(reference_of(m), c, x, KeyFormat::int64))
          << "data " << k << ", rows of " << inner;
      if (!can_combine(m)) continue;
      const std::vector<double> held{-0.0, 0.0, 0.25, -1.5};
      EXPECT_EQ(reduced(m, c, x, KeyFormat::int64, {.threads = 2, .combine = true}, held),
                reduced(reference_of(m), c, x, KeyFormat::int64, {.combine = true}, held))
          << "data " << k << ", rows of " << inner << " combined";
    }
  }
}

TEST_P(EveryMethodByKey, OnAGivenGridReducesRows) {
  if (m.accumulator != "fixed_point") return;
  constexpr std::size_t rows = 40, bins = 10, inner = 50;
  const Case c{"", random_keys(rows, bins, 1), bins, inner, wide(rows * inner, 8, 2)};
  const Array x = elements_of(c, m, *m.format);
  for (const int grid : {-200, -60, -47, -40, -30, -8, 0, 10, 400})
    EXPECT_EQ(reduced_or_refused(m, c, x, grid), reduced_or_refused(reference_of(m), c, x, grid)) << grid;
}

TEST_P(EveryMethodByKey, SharesManyResultsAmongThreads) {
  SAMESUM_SANITIZED_IN_FP32(m);
  // The words of the results exceed the cache.
  const std::size_t n = is_sanitized ? 40'000 : 150'000, bins = is_sanitized ? 100'000 : 300'000;
  static const Case c{"many", random_keys(n, bins, 3), bins, 1, wide(n, 20, 4)};
  const Array x = elements_of(c, m, *m.format);
  const Bits expected = reduced(reference_of(m), c, x, KeyFormat::uint32);
  for (const int threads : {1, 4})
    if (threads > 1 || m.format == &format_info<fp32>()) {
      EXPECT_EQ(reduced(m, c, x, KeyFormat::int32, {.threads = threads}), expected) << threads << " threads";
    }
}

TEST_P(EveryMethodByKey, ReducesTheElementsOfEachKeyAsItsOperationDoes) {
  if (m.inputs == 0 || m.name.starts_with("scatter_mean/serial")) return;  // there is no such mean
  const std::string operation = m.operation == "scatter_add" ? "sum" : m.operation.substr(8);
  const Method& each = find(operation + m.name.substr(m.operation.size()));
  const Case c{"", random_keys(3000, 50, 8), 60, 1, wide(3000, 14, 6)};
  Options options;
  if (m.accumulator == "fixed_point") options.grid = -30;  // otherwise other keys would determine it
  const Bits all = reduced(m, c, *m.format, KeyFormat::int64, options);
  for (std::size_t bin = 0; bin < c.bins; ++bin) {
    std::vector<double> mine;
    for (std::size_t k = 0; k < c.keys.size(); ++k)
      if (c.keys[k] == bin) mine.push_back(c.x[k]);
    const Array x{*m.format, mine};
    const Number expected = each(x.values(), options);
    EXPECT_EQ(all[bin], expected.bits) << "key " << bin;
  }
}

TEST_P(EveryMethodByKey, OfAnOrderFreeMethodIgnoresPermutations) {
  SAMESUM_SANITIZED_IN_FP32(m);
  if (m.promise != Promise::order_free) return;
  std::mt19937_64 random{1};
  const std::vector<std::vector<double>> data = awkward_elements(120);
  for (int k = 0; k < 420; ++k) {
    const std::size_t n = random() % 120, bins = 1 + random() % 20;
    Case c{"", random_keys(n, bins, random()), bins, 1, data[static_cast<std::size_t>(k) % data.size()]};
    c.x.resize(n);
    const Bits expected = reduced(m, c, *m.format, KeyFormat::int64);
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    Case permuted = c;
    for (std::size_t i = 0; i < n; ++i) {
      permuted.keys[i] = c.keys[order[i]];
      permuted.x[i] = c.x[order[i]];
    }
    ASSERT_EQ(reduced(m, permuted, *m.format, KeyFormat::int64), expected);
  }
}

TEST_P(EveryMethodByKey, IsWithinItsBound) {
  if (m.operation != "scatter_add" && m.operation != "scatter_mean") return;
  for (const std::vector<double>& x : {uniform(4000, 2), wide(4000, 20, 3)}) {
    const Case c{"", random_keys(4000, 30, 1), 30, 1, x};
    const Bits all = reduced(m, c, *m.format, KeyFormat::uint32);
    for (std::size_t bin = 0; bin < c.bins; ++bin) {
      std::vector<double> mine;
      for (std::size_t k = 0; k < c.keys.size(); ++k)
        if (c.keys[k] == bin) mine.push_back(x[k]);
      const Array elements{*m.format, mine};
      const harness::Truth truth =
          harness::Truth::of(m.operation == "scatter_add" ? "sum" : "mean", elements.values());
      const Number result{m.format, all[bin]};
      const bool on_grid =
          m.accumulator == "fixed_point";  // which the number and the largest of all determine
      const double sizes = on_grid ? 1024 : harness::Truth{elements.values()}.magnitudes_rounded_up();
      const std::size_t n = on_grid ? c.keys.size() : mine.size();
      EXPECT_LE(truth.error_of(result).absolute, m.bound(*m.format, n, result, sizes)) << bin;
      if (m.accumulator == "exact") {
        EXPECT_EQ(result, truth.rounded(*m.format)) << bin;
      }
    }
  }
}

SAMESUM_ON_BACKENDS(AnExactSumByKey, "cpu", "cuda");

TEST_P(AnExactSumByKey, RoundsTheTruthOnceWithWhatOutHeld) {
  const std::vector<double> x = wide(3000, 40, 5), held = wide(20, 40, 6);
  const Case c{"", random_keys(3000, 20, 2), 20, 1, x};
  for (const FormatInfo& f : {format_info<fp32>(), format_info<fp64>()}) {
    const Method& m = find("scatter_add/exact", {.format = f.name, .backend = backend});
    const Bits all = reduced(m, c, f, KeyFormat::uint32, {.combine = true}, held);
    for (std::size_t bin = 0; bin < c.bins; ++bin) {
      std::vector<double> mine{held[bin]};
      for (std::size_t k = 0; k < c.keys.size(); ++k)
        if (c.keys[k] == bin) mine.push_back(x[k]);
      const Array elements{f, mine};
      EXPECT_EQ(all[bin], harness::Truth{elements.values()}.rounded(f).bits);
    }
  }
}

/// Elements that need one window, a list beside it, several windows, or all of them: in a table for few keys,
/// sorted for many.
TEST_P(AnExactSumByKey, HasTheBitsOfTheReferenceForAnySpreadOfElements) {
  constexpr std::size_t n = 5000;
  std::vector<std::vector<double>> data{uniform(n, 1), uniform(n, 1), wide(n, 60, 2), wide(n, 1000, 3),
                                        uniform(n, 4)};
  for (const std::size_t i : {std::size_t{4001}, n - 1}) data[1][i] *= 0x1p90;  // behind the sample
  data[1][7] = 0x1p-100;
  for (std::size_t i = 0; i < n; i += 7) data[4][i] = i % 2 ? INFINITY : NAN;
  const std::vector<double> held{0.5, -0.0, 0x1p-1000, NAN, 0x1p1000};
  for (const std::string_view operation : {"scatter_add", "scatter_mean"})
    for (const FormatInfo& f : {format_info<fp32>(), format_info<fp64>()})
      for (std::size_t k = 0; k < data.size(); ++k)
        for (const std::size_t bins : {10, 4000}) {
          const Method& m = find(std::string{operation} + "/exact", {.format = f.name, .backend = backend});
          const Case c{"", random_keys(n, bins, k), bins, 1, data[k]};
          for (const FormatInfo& input : {format_info<fp32>(), format_info<fp64>()}) {
            const Array x{input, c.x};
            EXPECT_EQ(reduced(m, c, x, KeyFormat::int64, {.threads = 2}),
                      reduced(reference_of(m), c, x, KeyFormat::int64))
                << m.name << " of " << input.name << ", data " << k << ", " << bins << " keys";
            if (!can_combine(m)) continue;
            EXPECT_EQ(reduced(m, c, x, KeyFormat::int32, {.threads = 2, .combine = true}, held),
                      reduced(reference_of(m), c, x, KeyFormat::int32, {.combine = true}, held))
                << m.name << " of " << input.name << " combined, data " << k << ", " << bins << " keys";
          }
        }
}

TEST_P(AnExactSumByKey, SharesManyWindowsAmongThreads) {
  constexpr std::size_t n = 80'000, bins = 25'000;  // the windows exceed the cache
  Case c{"", random_keys(n, bins, 1), bins, 1, wide(n, 60, 2)};
  for (const std::size_t i : {n / 2 + 3, n - 1}) c.x[i] *= 0x1p300;
  const Method& m = method("scatter_add/exact/fp64");
  EXPECT_EQ(reduced(m, c, *m.format, KeyFormat::int64, {.threads = 3}),
            reduced(reference_of(m), c, *m.format, KeyFormat::int64));
}

TEST(ASequentialSumByKey, HasTheBitsOfALoop) {
  constexpr std::size_t n = 10'000, bins = 37;
  const std::vector<double> data = wide(n, 12, 1);
  const std::vector<float> x(data.begin(), data.end());
  const KeyArray keys{random_keys(n, bins, 2), KeyFormat::int64};
  std::vector<float> expected(bins, 0.5f);
  for (std::size_t k = 0; k < n; ++k) expected[key_at(KeyFormat::int64, keys.keys().data, k)] += x[k];
  for (const std::string& backend : present_backends()) {
    std::vector<float> out(bins, 0.5f);
    reduce(find("scatter_add/serial/plain/fp32@" + backend), x, keys.keys(), Layout::vector(n),
           std::span{out}, {.combine = true});
    EXPECT_EQ(out, expected) << backend;
  }
}

// --- bad arguments ---------------------------------------------------------------------------------------

std::string refusal_of_keys(std::string_view name, Values x, const Keys& keys, const Layout& layout,
                            const Results& out, Options options = {}) {
  try {
    reduce(find(name), x, keys, layout, out, options);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "(accepted)";
}

TEST_P(EveryMethodByKey, RefusesABadKeyAndWritesNothing) {
  constexpr std::size_t n = 9000, bins = 32;
  const Array x{*m.format, m.inputs == 0 ? std::vector<double>{} : std::vector<double>(n, NAN)};
  std::vector<std::uint64_t> out(bins, 0x1234), before = out;
  Results results{m.returns_index ? nullptr : m.format, out.data(), bins};
  for (const int threads : {1, 3})
    for (const std::int64_t bad :
         {std::int64_t{-1}, std::int64_t{40}, std::int64_t{1} << 40, std::int64_t{32}})
      for (const std::size_t place : {std::size_t{0}, std::size_t{17}, n - 1}) {
        std::vector<std::int64_t> keys(n, 3);
        keys[place] = bad;
        keys[n - 1] = bad;
        const std::string expected =
            "keys[" + std::to_string(place) + "] is " + std::to_string(bad) +
            (bad < 0 ? "; it must not be negative" : "; it must be less than 32, the number of results");
        EXPECT_THAT(refusal_of_keys(m.name, x.values(), std::span<const std::int64_t>{keys},
                                    Layout::vector(n), results, {.threads = threads}),
                    HasSubstr(expected));
        if (bad > INT32_MAX) continue;
        const std::vector<std::int32_t> narrow(keys.begin(), keys.end());
        EXPECT_THAT(refusal_of_keys(m.name, x.values(), std::span<const std::int32_t>{narrow},
                                    Layout::vector(n), results, {.threads = threads}),
                    HasSubstr(expected));
      }
  EXPECT_EQ(out, before);
}

TEST(ACallByKey, NamesTheBadArgument) {
  std::vector<float> x(12), out(8);
  std::vector<std::uint32_t> memory(12);
  const Keys keys{std::span<const std::uint32_t>{memory}};
  const Results results{std::span{out}};
  const auto refused = [&](Values v, const Keys& k, const Layout& l, const Results& r, Options o = {},
                           std::string_view name = "scatter_add/exact/fp32") {
    return refusal_of_keys(name, v, k, l, r, o);
  };
  EXPECT_EQ(refused(x, keys, Layout::vector(12), results), "(accepted)");
  EXPECT_THAT(refused(x, keys, Layout::vector(11), results),
              HasSubstr("there are 12 keys; the layout has 11 rows"));
  EXPECT_THAT(refused(x, keys, Layout::axis(1, 12, 2), results),
              HasSubstr("x has 12 elements, but the layout"));
  EXPECT_THAT(refused(x, keys, Layout::rows(2, 6), results), HasSubstr("use Layout::axis(1, n, inner)"));
  EXPECT_THAT(refused(x, keys, Layout::axis(1, 12, 0), results), HasSubstr("use Layout::axis(1, n, inner)"));
  const Keys three{KeyFormat::uint32, memory.data(), 3};
  EXPECT_THAT(refused(x, three, Layout::axis(1, 3, 3), results),
              HasSubstr("out has room for 8 numbers; it needs 3 for each key"));
  EXPECT_THAT(refused(x, {KeyFormat::uint32, nullptr, 12}, Layout::vector(12), results),
              HasSubstr("keys is null but has 12 elements"));
  EXPECT_THAT(refused(x, {static_cast<KeyFormat>(4), memory.data(), 12}, Layout::vector(12), results),
              HasSubstr("keys have an unknown format"));
  EXPECT_THAT(refused(x, {KeyFormat::int64, reinterpret_cast<std::byte*>(memory.data()) + 4, 3},
                      Layout::vector(3), results),
              HasSubstr("keys is not aligned"));
  EXPECT_THAT(refused(x, keys, Layout::vector(12), std::span{x}), HasSubstr("out overlaps x"));
  EXPECT_THAT(refused(x, keys, Layout::vector(12), {&format_info<fp32>(), memory.data(), 4}),
              HasSubstr("out overlaps keys"));
  std::vector<double> wrong(4);
  EXPECT_THAT(refused(x, keys, Layout::vector(12), std::span{wrong}), HasSubstr("out holds fp64"));
  EXPECT_THAT(refused(x, keys, Layout::vector(12), results, {.combine = true}, "scatter_mean/exact/fp32"),
              HasSubstr("combine is only for sums, counts and extrema by key"));
  EXPECT_THAT(refused(x, keys, Layout::vector(12), results, {}, "sum/exact/fp32"),
              HasSubstr("the method takes no keys"));
  std::vector<std::int64_t> counts(4);
  EXPECT_THAT(refused(x, keys, Layout::vector(12), std::span{counts}, {}, "scatter_count/fp64"),
              HasSubstr("the method counts keys; pass no elements"));
  EXPECT_THAT(refused(Values{format_info<fp64>(), nullptr, 0}, keys, Layout::axis(1, 12, 2),
                      std::span{counts}, {}, "scatter_count/fp64"),
              HasSubstr("layout.inner is 2; it must be 1"));
  EXPECT_THROW(find("scatter_add/exact/fp32")(x), std::invalid_argument);
  EXPECT_THROW(find("scatter_add/exact/fp32").bind(x), std::invalid_argument);
  EXPECT_THROW(Partial{find("scatter_add/exact/fp32")}, std::invalid_argument);
  EXPECT_THROW(reduce(find("scatter_add/exact/fp32"), x, Layout::vector(12), results), std::invalid_argument);
  EXPECT_THROW(find("sum/exact/fp32")(x, {.combine = true}), std::invalid_argument);
  Call call{.method = &find("scatter_add/fixed_point/fp32"),
            .x = x,
            .keys = keys,
            .layout = Layout::vector(12),
            .out = results};
  call.most_terms = 1;
  EXPECT_THAT(refusal_by([&] { run(call); }),
              HasSubstr("most_terms is 1; the library sets it, so leave it 0"));
}

// --- consecutive equal keys ------------------------------------------------------------------------------

TEST(Segments, AreTheRunsOfEqualKeys) {
  const std::vector<std::int32_t> keys{7, 7, -2, 7, 7, 7, 0};
  const KeySegments runs = segments_of(std::span{keys});
  EXPECT_EQ(runs.keys, (std::vector<std::int64_t>{7, -2, 7, 0}));
  EXPECT_EQ(runs.offsets, (std::vector<std::uint64_t>{0, 2, 3, 6, 7}));
  const KeySegments none = segments_of(std::span<const std::uint32_t>{});
  EXPECT_TRUE(none.keys.empty());
  EXPECT_EQ(none.offsets, std::vector<std::uint64_t>{0});
  EXPECT_THROW(segments_of({KeyFormat::int32, nullptr, 2}), std::invalid_argument);
}

/// Returns the results of all runs of `keys` as text, and those of each run alone.
template <class T>
void expect_each_run_alone(const Method& m, std::span<const float> x, const std::vector<std::int32_t>& keys) {
  const bool pair = m.inputs == 2;
  const RunResults<T> found = pair ? reduce_by_key<T>(m, x, x, keys) : reduce_by_key<T>(m, x, keys);
  const KeySegments runs = segments_of(keys);
  const auto results = static_cast<std::size_t>(m.results);
  ASSERT_EQ(found.keys, runs.keys);
  ASSERT_EQ(found.results.size(), results * runs.keys.size());
  for (std::size_t i = 0; i < runs.keys.size(); ++i) {
    const auto run = x.subspan(runs.offsets[i], runs.offsets[i + 1] - runs.offsets[i]);
    std::vector<T> alone(results);
    const Layout whole = Layout::vector(run.size());
    pair ? reduce(m, run, run, whole, std::span{alone}) : reduce(m, run, whole, std::span{alone});
    EXPECT_EQ(std::memcmp(alone.data(), &found.results[i * results], results * sizeof(T)), 0)
        << m.name << " " << i;
  }
}

SAMESUM_ON_BACKENDS(EveryRunOfEqualKeys, "reference", "cpu", "cuda");

TEST_P(EveryRunOfEqualKeys, HasTheResultOfItsElementsAlone) {
  const std::vector<double> data = wide(3000, 20, 3);
  const std::vector<float> x(data.begin(), data.end());
  std::vector<std::int32_t> keys(x.size());
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<std::int32_t>(i * i / 40000) - 3;
  std::size_t tried = 0;
  for (const Method& m : methods()) {
    if (m.backend != backend || m.takes_keys || m.has_result_per_element || m.format->name != "fp32")
      continue;
    if (m.promise < Promise::everywhere || !m.accepts(*m.format, Layout::rows(2, 2))) continue;
    ++tried;
    m.returns_index ? expect_each_run_alone<std::int64_t>(m, x, keys)
                    : expect_each_run_alone<float>(m, x, keys);
  }
  EXPECT_GT(tried, 15u);
}

TEST(RunsOfEqualKeys, HaveNoResultsIfThereAreNoKeys) {
  const std::vector<double> none;
  const auto found = reduce_by_key<double>(find("sum/exact/fp64"), none, std::vector<std::int64_t>{});
  EXPECT_TRUE(found.keys.empty() && found.results.empty());
}

TEST(RunsOfEqualKeys, RefuseWhatDoesNotFit) {
  const std::vector<float> x(3);
  const std::vector<std::uint32_t> keys(3), fewer(2);
  const Method& sum = find("sum/exact/fp32");
  EXPECT_THROW(reduce_by_key<float>(sum, x, fewer), std::invalid_argument);
  EXPECT_THROW(reduce_by_key<double>(sum, x, keys), std::invalid_argument);
  EXPECT_THROW(reduce_by_key<float>(find("cumsum/exact/fp32"), x, keys), std::invalid_argument);
  EXPECT_THROW(reduce_by_key<float>(find("scatter_add/exact/fp32"), x, keys), std::invalid_argument);
  EXPECT_THROW(reduce_by_key<float>(find("dot/exact/fp32"), x, keys), std::invalid_argument);
}

TEST(Segments, OfSortedKeysGiveTheResultsByKey) {
  constexpr std::size_t n = 4000, bins = 90;
  std::vector<std::size_t> sorted = random_keys(n, bins, 1);
  std::ranges::sort(sorted);
  const std::vector<std::int64_t> keys(sorted.begin(), sorted.end());
  const std::vector<double> data = wide(n, 30, 2);
  const std::vector<float> x(data.begin(), data.end());
  const KeySegments runs = segments_of(std::span{keys});
  std::vector<float> of_runs(runs.keys.size()), of_keys(bins);
  reduce(find("sum/exact/fp32"), x, Layout::segments(runs.offsets.data(), runs.keys.size()),
         std::span{of_runs});
  reduce(find("scatter_add/exact/fp32"), x, std::span{keys}, Layout::vector(n), std::span{of_keys});
  for (std::size_t i = 0; i < of_runs.size(); ++i)
    EXPECT_EQ(of_runs[i], of_keys[static_cast<std::size_t>(runs.keys[i])]);
}

}  // namespace
}  // namespace samesum::by_key
