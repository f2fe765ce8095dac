/// Reductions by key on a GPU: the bits of the reference for every schedule, and reports of bad keys.
#include <numeric>

#include "backend/cuda_by_key_support.hpp"

namespace samesum::by_key {
namespace {

using ::testing::HasSubstr;

class EveryMethodByKeyOnAGpu : public MethodTest {
 protected:
  /// Plain sums have one schedule.
  std::span<const KeySchedule> all_schedules() const {
    return std::span{schedules}.first(m.accumulator == "plain" ? 1 : std::size(schedules));
  }
  Outcome run(const Case& c, const FormatInfo& input, KeyFormat format, KeySchedule schedule,
              const Options& options = {}, const std::vector<double>& held = {}) const {
    const bool counts = m.inputs == 0;
    return on_gpu(m, Array{input, counts ? std::vector<double>{} : c.x}, KeyArray{c.keys, format}.keys(),
                  c.bins, counts ? 1 : c.inner, schedule, options, held);
  }
};
INSTANTIATE_TEST_SUITE_P(Cuda, EveryMethodByKeyOnAGpu, ::testing::ValuesIn(or_absent(methods_by_key("cuda"))),
                         test_name);

TEST_P(EveryMethodByKeyOnAGpu, HasTheBitsOfTheReferenceWithEverySchedule) {
  const Method& reference = reference_of(m);
  const std::vector<double> held = held_numbers();
  int k = 0;
  for (const Case& c : cases()) {
    if (is_sanitized && ++k % 9 != 0) continue;
    for (const FormatInfo& input : formats) {
      if (!m.accepts(input) || (m.inputs == 0 && &input != m.format)) continue;
      if (input.index != m.format->index && ++k % 4 != 0) continue;  // other formats share all but the loads
      const auto format = static_cast<KeyFormat>(k++ % 3);
      const Bits expected = by_key::reduced(reference, c, input, KeyFormat::uint32);
      const Bits combined =
          can_combine(m) ? by_key::reduced(reference, c, input, KeyFormat::int64, {.combine = true}, held)
                         : Bits{};
      for (const KeySchedule schedule : all_schedules()) {
        const Outcome own = run(c, input, format, schedule);
        ASSERT_EQ(own.bits, expected)
            << c.name << " of " << input.name << ", schedule " << static_cast<int>(schedule);
        ASSERT_EQ(own.status.first_bad_key, no_bad_key) << c.name;
        if (can_combine(m)) {
          ASSERT_EQ(run(c, input, format, schedule, {.combine = true}, held).bits, combined)
              << c.name << " of " << input.name << " combined, schedule " << static_cast<int>(schedule);
        }
      }
    }
  }
}

TEST_P(EveryMethodByKeyOnAGpu, HasTheBitsOfTheCpuForManyResultsAndElements) {
  const std::size_t n = is_sanitized ? 20'000 : 1'500'000;
  for (const std::size_t bins : {1u, 300u, 16'385u, 70'001u, 300'000u}) {
    const Case c{std::to_string(bins) + " results", random_keys(n, bins, bins), bins, 1, wide(n, 20, bins)};
    const Bits expected = by_key::reduced(find_on("cpu", m), c, *m.format, KeyFormat::uint32);
    for (const KeySchedule schedule : all_schedules())
      for (const KeyFormat format : {KeyFormat::int32, KeyFormat::int64})
        ASSERT_EQ(run(c, *m.format, format, schedule).bits, expected)
            << c.name << ", schedule " << static_cast<int>(schedule);
  }
}

/// Keys in so uneven numbers that some partitions are long and others are empty.
std::vector<std::size_t> uneven_keys(std::size_t n, std::size_t bins) {
  std::vector<std::size_t> keys(n);
  for (std::size_t k = 0; k < n; ++k) {
    const double part = static_cast<double>(k) / static_cast<double>(n);
    keys[k] = static_cast<std::size_t>(part * part * part * static_cast<double>(bins));
  }
  return keys;
}

TEST(SumsByKeyOnAGpu, HaveTheBitsOfTheCpuWithPartitionsOfUnevenLength) {
  SAMESUM_NEEDS_GPU();
  const std::size_t n = is_sanitized ? 20'000 : 1'500'000;
  // Above 256 partitions of 2^14 results, tiles are long. Sorted keys, and the same ones mixed.
  for (const std::size_t bins : {70'001u, 4'300'000u, 17'000'000u})
    for (const bool sorted : {true, false})
      for (const char* name : {"scatter_add/exact/fp32", "scatter_add/fixed_point/fp32",
                               "scatter_add/exact/fp64", "scatter_add/fixed_point/fp64"}) {
        std::vector<std::size_t> keys = uneven_keys(n, bins);
        if (!sorted)
          for (std::size_t k = 0; k < n; ++k) std::swap(keys[k], keys[k * 7'919 % n]);
        const Method& m = find(std::string{name} + "@cuda");
        const Case c{name, keys, bins, 1, wide(n, 20, bins)};
        const Bits expected = by_key::reduced(find_on("cpu", m), c, *m.format, KeyFormat::uint32);
        EXPECT_EQ(on_gpu(m, Array{*m.format, c.x}, KeyArray{c.keys, KeyFormat::uint32}.keys(), bins, 1,
                         KeySchedule::partitioned)
                      .bits,
                  expected)
            << name << ", " << bins << " results" << (sorted ? ", sorted" : "");
      }
}

/// Rows whose runs of equal keys lie in a piece of sorted rows, or span many.
std::vector<Case> cases_of_long_rows() {
  std::vector<Case> all;
  for (const std::size_t inner : {1u, 33u, 128u, 300u})
    for (const std::size_t bins : {1u, 9u, 2'000u})
      for (const int binades : {8, 60}) {  // 60 exceed the window of an exact sum of fp32
        const std::size_t n = is_sanitized ? 300 : 1'300;
        std::vector<std::size_t> keys = random_keys(n, bins, inner + bins);
        for (std::size_t k = 400; k < std::min<std::size_t>(n, 700); ++k) keys[k] = bins / 2;
        std::vector<double> x = wide(n * inner, binades, inner);
        for (std::size_t i = 0; i < x.size(); i += 997) x[i] = i % 2 ? -0.0 : i % 3 ? 0.0 : -x[i];
        if (bins == 9) x[5] = INFINITY, x[x.size() / 2] = NAN, x.back() = -INFINITY;
        all.push_back({std::to_string(n) + " rows of " + std::to_string(inner) + ", " + std::to_string(bins) +
                           " results, " + std::to_string(binades) + " binades",
                       keys, bins, inner, x});
        std::fill(all.back().x.begin(), all.back().x.begin() + static_cast<std::ptrdiff_t>(inner), -0.0);
      }
  return all;
}

TEST_P(EveryMethodByKeyOnAGpu, HasTheBitsOfTheCpuForLongRows) {
  const Method& on_cpu = find_on("cpu", m);
  const std::vector<double> held = held_numbers();
  int k = 0;
  for (const Case& c : cases_of_long_rows()) {
    if (is_sanitized && ++k % 5 != 0) continue;
    const Bits expected = by_key::reduced(on_cpu, c, *m.format, KeyFormat::uint32);
    const Bits combined =
        can_combine(m) ? by_key::reduced(on_cpu, c, *m.format, KeyFormat::uint32, {.combine = true}, held)
                       : Bits{};
    for (const KeySchedule schedule : all_schedules()) {
      ASSERT_EQ(run(c, *m.format, KeyFormat::int64, schedule).bits, expected)
          << c.name << ", schedule " << static_cast<int>(schedule);
      if (can_combine(m)) {
        ASSERT_EQ(run(c, *m.format, KeyFormat::int32, schedule, {.combine = true}, held).bits, combined)
            << c.name << " combined, schedule " << static_cast<int>(schedule);
      }
    }
  }
}

TEST(SumsByKeyOnAGpu, HaveTheBitsOfTheCpuForManyLongRowsWhateverTheSchedule) {
  SAMESUM_NEEDS_GPU();
  // So many elements that sorting the rows is the automatic choice.
  const std::size_t n = 20'000, inner = 96, bins = 3'000;
  for (const char* name : {"scatter_add/exact/fp32", "scatter_add/fixed_point/fp32",
                           "scatter_mean/exact/bf16", "scatter_mean/fixed_point/fp64"}) {
    const Method& m = find(std::string{name} + "@cuda");
    const Case c{name, uneven_keys(n, bins), bins, inner, wide(n * inner, 6, 3)};
    const Bits expected = by_key::reduced(find_on("cpu", m), c, *m.format, KeyFormat::uint32);
    for (const KeySchedule schedule : schedules)
      EXPECT_EQ(
          on_gpu(m, Array{*m.format, c.x}, KeyArray{c.keys, KeyFormat::uint32}.keys(), bins, inner, schedule)
              .bits,
          expected)
          << name << ", schedule " << static_cast<int>(schedule);
  }
}

TEST(SumsByKeyOnAGpu, OfLongRowsReportBadKeysAndGridsThatAreTooFine) {
  SAMESUM_NEEDS_GPU();
  constexpr std::size_t n = 500, inner = 70, bins = 20;
  Case c{"", random_keys(n, bins, 1), bins, inner, uniform(n * inner, 1)};
  const std::vector<double> held = held_numbers();
  const Method& m = find("scatter_add/fixed_point/fp32@cuda");
  for (const bool combine : {false, true})
    for (const int grid : {-30, -45, -60, -140}) {
      const Options options{.grid = grid, .combine = combine};
      const Case& good = c;
      Case bad = c;
      bad.keys.insert(bad.keys.begin() + 321, bins + 5);
      bad.x.insert(bad.x.begin() + 321 * inner, inner, 0.5);
      Bits expected;
      bool overflows = false;
      try {
        expected = by_key::reduced(find_on("cpu", m), good, *m.format, KeyFormat::uint32, options, held);
      } catch (const std::overflow_error&) {
        overflows = true;
      }
      for (const KeySchedule schedule : schedules) {
        const Outcome own = on_gpu(m, Array{*m.format, bad.x}, KeyArray{bad.keys, KeyFormat::uint32}.keys(),
                                   bins, inner, schedule, options, held);
        EXPECT_EQ(own.status.first_bad_key, 321u) << static_cast<int>(schedule);
        EXPECT_EQ(own.status.overflowed != 0, overflows) << grid << " " << static_cast<int>(schedule);
        if (!overflows) {
          EXPECT_EQ(own.bits, expected) << grid << " " << static_cast<int>(schedule);
        }
      }
    }
}

TEST_P(EveryMethodByKeyOnAGpu, ReportsTheFirstBadKeyAndLeavesItsElementOut) {
  constexpr std::size_t n = 20'000, bins = 90;
  Case good{"", random_keys(n, bins, 1), bins, 1, uniform(n, 2)};
  std::vector<std::int64_t> keys(good.keys.begin(), good.keys.end());
  for (const std::size_t bad : {7'001u, 7'003u, 19'999u})
    keys[bad] = bad == 7'001 ? -1 : bad == 7'003 ? 90 : INT64_MAX;
  std::vector<std::int32_t> narrow(keys.size());
  for (std::size_t i = 0; i < n; ++i)
    narrow[i] = static_cast<std::int32_t>(std::min<std::int64_t>(keys[i], 100));
  const Array x{*m.format, m.inputs == 0 ? std::vector<double>{} : good.x};
  for (const std::size_t bad : {19'999u, 7'003u, 7'001u}) {
    good.keys.erase(good.keys.begin() + static_cast<std::ptrdiff_t>(bad));
    good.x.erase(good.x.begin() + static_cast<std::ptrdiff_t>(bad));
  }
  Options options;
  if (m.accumulator == "fixed_point")
    options.grid = -40;  // a found one would depend on the elements left out
  const Bits expected = by_key::reduced(reference_of(m), good, *m.format, KeyFormat::uint32, options);
  for (const KeySchedule schedule : all_schedules())
    for (const Keys& all :
         {Keys{std::span<const std::int64_t>{keys}}, Keys{std::span<const std::int32_t>{narrow}}}) {
      const Outcome own = on_gpu(m, x, all, bins, 1, schedule, options);
      EXPECT_EQ(own.status.first_bad_key, 7'001u) << static_cast<int>(schedule);
      EXPECT_EQ(own.bits, expected) << static_cast<int>(schedule);
    }
  std::vector<std::int64_t> out(bins, -1);
  try {
    with_format(*m.format, [&]<class F>() {
      std::vector<F> numbers(bins, F{});
      const Results results = m.returns_index ? Results{std::span{out}} : Results{std::span{numbers}};
      reduce(m, x.values(), Keys{std::span<const std::int64_t>{keys}}, Layout::axis(1, n, 1), results);
    });
    ADD_FAILURE() << "a bad key was accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("keys[7001] is -1"));
  }
}

TEST_P(EveryMethodByKeyOnAGpu, RunsOnDeviceMemoryInBothFormsOfTheCall) {
  const Case c{"", random_keys(5'000, 33, 5), 33, 1, uniform(5'000, 6)};
  const Bits expected = by_key::reduced(reference_of(m), c, *m.format, KeyFormat::uint32);
  const Array x{*m.format, m.inputs == 0 ? std::vector<double>{} : c.x};
  const KeyArray keys{c.keys, KeyFormat::int32};
  const OnGpu values{x.values()};
  const auto place = copied(keys.keys().data, c.keys.size() * sizeof(std::int32_t)),
             out = device_memory(c.bins * 8);
  const Keys on_device{KeyFormat::int32, place.get(), c.keys.size()};
  const Layout layout = Layout::axis(1, c.keys.size(), 1);
  const Results results{m.returns_index ? nullptr : m.format, out.get(), c.bins};
  const auto check = [&] {
    succeed(cudaDeviceSynchronize());
    for (std::size_t i = 0; i < c.bins; ++i) {
      std::uint64_t bits = 0;
      succeed(cudaMemcpy(&bits, out.get() + i * m.result_bytes(), m.result_bytes(), cudaMemcpyDeviceToHost));
      ASSERT_EQ(bits, expected[i]) << i;
    }
    succeed(cudaMemset(out.get(), 0x5a, c.bins * 8));
  };
  gpu::reduce(m, values.values(), on_device, layout, results);
  check();
  std::size_t bytes = 0;
  succeed(gpu::reduce(m, nullptr, bytes, values.values(), on_device, layout, results));
  const auto workspace = device_memory(bytes);
  succeed(gpu::prepare(workspace.get(), bytes));
  succeed(gpu::reduce(m, workspace.get(), bytes, values.values(), on_device, layout, results));
  check();
}

TEST_P(EveryMethodByKeyOnAGpu, CanBeCapturedInAGraphAndReplayed) {
  constexpr std::size_t bins = 70, inner = 40, n = 30'000;  // so many elements that the rows are sorted
  const std::size_t each = m.inputs == 0 ? 1 : inner;
  const std::vector<std::size_t> numbers = random_keys(n, bins, 8);
  const KeyArray keys{numbers, KeyFormat::uint32};
  const auto place = copied(keys.keys().data, n * sizeof(std::uint32_t));
  const std::size_t bytes_of_results = bins * each * m.result_bytes();
  const auto out = device_memory(bytes_of_results);
  const auto elements = [&](int binades, std::uint64_t seed) {  // 90 binades exceed the window of exact sums
    return m.inputs == 0 ? std::vector<double>{} : wide(n * inner, binades, seed);
  };
  const Case x{"x", numbers, bins, inner, elements(8, 1)},
      other{"other", numbers, bins, inner, elements(90, 2)};
  const OnGpu there{Array{*m.format, x.x}.values()};
  const Layout layout = Layout::axis(1, n, each);
  const Results results{m.returns_index ? nullptr : m.format, out.get(), bins * each};
  Caller caller;
  std::size_t bytes = 0;
  const Keys on_device{KeyFormat::uint32, place.get(), n};
  succeed(
      gpu::reduce(m, nullptr, bytes, there.values(), on_device, layout, results, nullptr, caller.stream()));
  const auto workspace = device_memory(bytes);
  succeed(gpu::prepare(workspace.get(), bytes, caller.stream()));
  const auto run = [&] {
    succeed(gpu::reduce(m, workspace.get(), bytes, there.values(), on_device, layout, results, nullptr,
                        caller.stream()));
  };
  run();
  const Graph graph{caller.stream(), run};
  for (const Case* c : {&x, &other, &x}) {
    if (m.inputs != 0) there.fill(Array{*m.format, c->x}.values());
    graph.replay();
    const Bits expected = by_key::reduced(find_on("cpu", m), *c, *m.format, KeyFormat::uint32);
    std::vector<std::byte> found(bytes_of_results);
    succeed(cudaMemcpy(found.data(), out.get(), bytes_of_results, cudaMemcpyDeviceToHost));
    for (std::size_t i = 0; i < bins * each; ++i) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, &found[i * m.result_bytes()], m.result_bytes());
      ASSERT_EQ(bits, expected[i]) << c->name << ", result " << i;
    }
  }
}

TEST(ReductionsByKeyOnAGpu, ReportAGridThatIsTooFine) {
  SAMESUM_NEEDS_GPU();
  for (const FormatInfo& format : formats) {
    const Method& m = find("scatter_add/fixed_point/" + std::string{format.name} + "@cuda");
    const Case c{"", random_keys(1'000, 5, 1), 5, 1, uniform(1'000, 1)};
    const Array x{format, c.x};
    Options options;
    for (const int grid : {highest_grid, 1000, 300, 255, 254, 253, 30, 0, -20, -50, -54, -75}) {
      options.grid = grid;
      const Bits expected = by_key::reduced(reference_of(m), c, format, KeyFormat::uint32, options);
      for (const KeySchedule schedule : schedules)
        EXPECT_EQ(on_gpu(m, x, KeyArray{c.keys, KeyFormat::int32}.keys(), 5, 1, schedule, options).bits,
                  expected)
            << grid << " " << format.name;
      if (format.precision <= 24 && grid == -54) break;  // finer ones overflow one word
    }
    options.grid = -140;
    for (const KeySchedule schedule : schedules) {
      const Outcome own = on_gpu(m, x, KeyArray{c.keys, KeyFormat::int32}.keys(), 5, 1, schedule, options);
      EXPECT_EQ(own.status.overflowed, 1u) << format.name;
      EXPECT_EQ(own.bits[0], format.canonical_nan) << format.name;
    }
    EXPECT_THROW(by_key::reduced(m, c, format, KeyFormat::int32, options), std::overflow_error);
  }
}

TEST(SumsByKeyInArrivalOrder, OfWholeNumbersAreExact) {
  SAMESUM_NEEDS_GPU();
  for (const FormatInfo& format : formats) {
    const Method& m = find("scatter_add/atomic_element/plain/" + std::string{format.name} + "@cuda");
    Case c{"", random_keys(1'000, 40, 2), 40, 1, {}};
    for (int i = 0; i < 1'000; ++i) c.x.push_back(i % 3);
    const Method& exact = find("scatter_add/exact/" + std::string{format.name} + "@cpu");
    const Array x{format, c.x};
    EXPECT_EQ(by_key::reduced(m, c, format, KeyFormat::int64),
              by_key::reduced(exact, c, format, KeyFormat::uint32));
    Case bad = c;
    bad.keys[500] = 40;
    EXPECT_THROW(by_key::reduced(m, bad, format, KeyFormat::int64), std::invalid_argument);
    EXPECT_EQ(on_gpu(m, x, KeyArray{c.keys, KeyFormat::uint32}.keys(), 40, 1, KeySchedule::automatic).bits,
              by_key::reduced(exact, c, format, KeyFormat::uint32));
  }
}

TEST(SumsByKeyInArrivalOrder, HaveCanonicalNansAndNoNegativeZeros) {
  SAMESUM_NEEDS_GPU();
  constexpr double infinity = std::numeric_limits<double>::infinity(),
                   nan = std::numeric_limits<double>::quiet_NaN();
  for (const FormatInfo& format : formats) {
    const Method& m = find("scatter_add/atomic_element/plain/" + std::string{format.name} + "@cuda");
    const Case c{"", {0, 1, 1, 2, 3, 3, 5}, 6, 1, {nan, infinity, -infinity, -infinity, -0.0, -0.0, -nan}};
    const Bits bits = by_key::reduced(m, c, format, KeyFormat::uint32);
    EXPECT_EQ(bits[0], format.canonical_nan) << format.name;
    EXPECT_EQ(bits[1], format.canonical_nan) << format.name;
    EXPECT_EQ(bits[2], by_key::reduced(reference_of(find("scatter_add/exact/" + std::string{format.name})), c,
                                       format, KeyFormat::uint32)[2])
        << format.name;
    EXPECT_EQ(bits[3], 0u) << format.name;
    EXPECT_EQ(bits[4], 0u) << format.name;
    EXPECT_EQ(bits[5], format.canonical_nan) << format.name;
  }
}

/// Expects the runs of keys to be those that the host finds, and their sums to follow without a wait.
void expect_segments_of_the_host(const KeyArray& keys, std::span<std::byte> held) {
  const KeySegments expected = segments_of(keys.keys());
  const std::size_t n = keys.keys().size, runs = expected.keys.size();
  const auto place = copied(keys.keys().data, n * bytes_of(keys.keys().format));
  const auto memory = device_memory(8 * (2 * n + 2));
  auto* const offsets = reinterpret_cast<std::uint64_t*>(memory.get());
  const gpu::DeviceSegments to{reinterpret_cast<std::int64_t*>(offsets + n + 2), offsets, offsets + n + 1};
  const Keys on_device{keys.keys().format, place.get(), n};
  for (const bool with_pool : {false, true}) {
    succeed(cudaMemset(memory.get(), 0x5a, 8 * (2 * n + 2)));
    if (with_pool) {
      gpu::segments_of(on_device, to);
    } else {
      std::size_t bytes = 0;
      succeed(gpu::segments_of(nullptr, bytes, on_device, to));
      ASSERT_LE(bytes, held.size());
      succeed(gpu::segments_of(held.data(), bytes, on_device, to));
    }
    succeed(cudaDeviceSynchronize());
    std::vector<std::uint64_t> found(2 * n + 2);
    succeed(cudaMemcpy(found.data(), memory.get(), 8 * found.size(), cudaMemcpyDeviceToHost));
    ASSERT_EQ(found[n + 1], runs);
    for (std::size_t i = 0; i <= n; ++i) ASSERT_EQ(found[i], i < runs ? expected.offsets[i] : n) << i;
    for (std::size_t i = 0; i < runs; ++i)
      ASSERT_EQ(static_cast<std::int64_t>(found[n + 2 + i]), expected.keys[i]) << i;
  }
  // Sums of as many segments as there are keys: those behind the runs are sums of nothing.
  const Array x{format_info<fp32>(), uniform(n, 1)};
  const OnGpu values{x.values()};
  const auto out = device_memory(std::max<std::size_t>(4 * n, 4));
  gpu::reduce(gpu::find("sum/exact/fp32"), values.values(), Layout::segments(offsets, n),
              Results{&format_info<fp32>(), out.get(), n});
  succeed(cudaDeviceSynchronize());
  std::vector<float> sums(n);
  if (n > 0) succeed(cudaMemcpy(sums.data(), out.get(), 4 * n, cudaMemcpyDeviceToHost));
  const std::vector<float> on_host =
      reduce_by_key<float>(find("sum/exact/fp32"), x.values(), keys.keys()).results;
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(sums[i], i < runs ? on_host[i] : 0) << i;
}

TEST(SegmentsOnAGpu, AreThoseOfTheHost) {
  SAMESUM_NEEDS_GPU();
  const auto workspace = device_memory(std::size_t{1} << 22);
  const std::span held{workspace.get(), std::size_t{1} << 22};
  succeed(gpu::prepare(held.data(), held.size()));
  for (const std::size_t n : {0, 1, 2, 255, 256, 10'000, 300'001})
    for (const std::size_t bins : {1, 2, 1000})
      for (const KeyFormat format : {KeyFormat::int32, KeyFormat::uint32, KeyFormat::int64})
        expect_segments_of_the_host(KeyArray{random_keys(n, bins, 3), format}, held);
}

TEST(SegmentsOnAGpu, RefuseNullPointers) {
  SAMESUM_NEEDS_GPU();
  const auto memory = device_memory(64);
  auto* const at = reinterpret_cast<std::uint64_t*>(memory.get());
  const Keys keys{KeyFormat::int32, memory.get(), 1};
  for (const gpu::DeviceSegments& to :
       {gpu::DeviceSegments{nullptr, at, at}, gpu::DeviceSegments{},
        gpu::DeviceSegments{reinterpret_cast<std::int64_t*>(at), nullptr, at}})
    EXPECT_THROW(gpu::segments_of(keys, to), std::invalid_argument);
}

}  // namespace
}  // namespace samesum::by_key
