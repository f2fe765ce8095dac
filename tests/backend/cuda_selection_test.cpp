/// Calls on a GPU in which only some elements take part, with flags and elements in device memory.
#include <cmath>

#include "backend/cuda_support.hpp"
#include "operation/reduction_support.hpp"

namespace samesum {
namespace {

using ::testing::HasSubstr;

/// Flags of n elements, of which about two thirds take part, in host and in device memory.
class Flags {
 public:
  explicit Flags(std::size_t n) : here_(n), there_{device_memory(n)} {
    std::mt19937_64 random{n};
    for (std::size_t i = std::min<std::size_t>(n, 7); i < n; ++i)
      here_[i] = static_cast<std::uint8_t>(random() % 3);
    if (n > 0) succeed(cudaMemcpy(there_.get(), here_.data(), n, cudaMemcpyHostToDevice));
  }
  const std::vector<std::uint8_t>& here() const { return here_; }
  Mask there() const { return {there_.get(), here_.size()}; }

 private:
  std::vector<std::uint8_t> here_;
  std::shared_ptr<std::byte> there_;
};

/// Elements of which every fifth is NaN.
Array with_nans(const FormatInfo& format, std::size_t n, std::uint64_t seed) {
  std::vector<double> x = wide(n, 12, seed);
  for (std::size_t i = seed; i < n; i += 5) x[i] = NAN;
  return {format, x};
}

/// A batch with inputs and flags on both sides.
struct SelectedBatch {
  BatchCase batch;
  Array x, y;
  OnGpu x_there, y_there;
  Flags flags;

  SelectedBatch(BatchCase b, const FormatInfo& format)
      : batch{std::move(b)},
        x{with_nans(format, batch.elements, 1)},
        y{with_nans(format, batch.elements, 2)},
        x_there{x.values()},
        y_there{y.values()},
        flags{batch.elements} {}
};

/// Every fifth batch. Their elements are rounded once for all methods.
const std::vector<SelectedBatch>& selected_batches(const FormatInfo& format) {
  static std::vector<SelectedBatch> of_formats[formats.size()];
  std::vector<SelectedBatch>& made = of_formats[format.index];
  std::size_t k = 0;
  if (made.empty())
    for (BatchCase& b : batches())
      if (k++ % 5 == 0 && (!is_sanitized || b.elements < 1000)) made.emplace_back(std::move(b), format);
  return made;
}

std::vector<const Method*> on_gpu(bool scans) {
  std::vector<const Method*> chosen;
  for (const Method& m : methods())
    if (m.backend == "cuda" && m.promise >= Promise::everywhere && (scans ? m.is_scan() : reduces_vectors(m)))
      chosen.push_back(&m);
  return chosen;
}

class EverySelectionOnAGpu : public MethodTest {
 protected:
  const Method& cpu = find_on("cpu", m);
};
class EverySelectingScanOnAGpu : public EverySelectionOnAGpu {};
INSTANTIATE_TEST_SUITE_P(Cuda, EverySelectionOnAGpu, ::testing::ValuesIn(or_absent(on_gpu(false))),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Cuda, EverySelectingScanOnAGpu, ::testing::ValuesIn(or_absent(on_gpu(true))),
                         test_name);

TEST_P(EverySelectionOnAGpu, ReadsDeviceMemory) {
  for (const SelectedBatch& b : selected_batches(*m.format)) {
    const Layout& layout = b.batch.layout;
    if (!m.accepts(*m.format, layout) || (m.is_slow && b.batch.elements > 5000)) continue;
    for (const std::optional<int> grid : {std::optional<int>{}, {-40}}) {
      if (grid && !m.takes_grid) continue;
      const Options here{.grid = grid, .where = b.flags.here(), .skip_nan = true},
          there{.grid = grid, .where = b.flags.there(), .skip_nan = true},
          all{.grid = grid, .skip_nan = true};
      const Bits expected = reduce_all(cpu, b.x.values(), b.y.values(), layout, here);
      ASSERT_EQ(reduce_all(m, b.x_there.values(), b.y_there.values(), layout, there), expected)
          << b.batch.name;
      ASSERT_EQ(reduce_all(m, b.x_there.values(), b.y_there.values(), layout, all),
                reduce_all(cpu, b.x.values(), b.y.values(), layout, all))
          << b.batch.name << ", without flags";
    }
  }
}

TEST_P(EverySelectingScanOnAGpu, ReadsDeviceMemory) {
  for (const Layout& l : {Layout::vector(1), Layout::vector(5000), Layout::rows(9, 40), Layout::rows(3, 0),
                          Layout::axis(2, 50, 7)}) {
    const std::size_t n = l.outer * l.n * l.inner;
    const Array x = with_nans(*m.format, n, 1);
    const OnGpu x_there{x.values()};
    const Flags flags{n};
    for (const bool exclusive : {false, true})
      for (const std::optional<int> grid : {std::optional<int>{}, {-40}}) {
        if (grid && !m.takes_grid) continue;
        const Options here{
            .exclusive = exclusive, .grid = grid, .where = flags.here(), .skip_nan = exclusive},
            there{.exclusive = exclusive, .grid = grid, .where = flags.there(), .skip_nan = exclusive};
        const Bits expected = result_per_element(cpu, x.values(), l, here);
        ASSERT_EQ(result_per_element(m, x_there.values(), l, there), expected) << n;
      }
  }
}

TEST(ASelectionOnAGpu, NamesABadKeyByItsPlaceAmongAllElements) {
  SAMESUM_NEEDS_GPU();
  const std::vector<float> x{1, 2, 3, 4, 5, 6};
  const std::vector<std::int32_t> keys{-1, 0, 9};
  const std::vector<std::uint8_t> flags{0, 0, 1, 1, 0, 1};
  std::vector<float> out(4);
  Keys there{keys};
  const auto copy = device_memory(keys.size() * sizeof keys[0]);
  succeed(cudaMemcpy(copy.get(), keys.data(), keys.size() * sizeof keys[0], cudaMemcpyHostToDevice));
  there.data = copy.get();
  const auto refusal = [&](const Keys& of, const Options& options) {
    return refusal_by([&] {
      reduce(find("scatter_add/exact/fp32@cuda"), Values{x}, of, Layout::axis(1, 3, 2), std::span{out},
             options);
    });
  };
  for (const Keys& of : {Keys{keys}, there}) {
    EXPECT_THAT(refusal(of, {.where = flags}), HasSubstr(message_of_bad_key(2, 9, 2)));
    EXPECT_THAT(refusal(of, {}), HasSubstr(message_of_bad_key(0, ~std::uint64_t{0}, 2)));
  }
}

TEST(ASelectionOnAGpu, GoesIntoAPartial) {
  SAMESUM_NEEDS_GPU();
  constexpr std::size_t n = 9000;
  const Flags flags{n};
  for (const Method& m : methods()) {
    if (m.backend != "cuda" || !Code::of(m).partial_form || m.format != &format_info<fp32>()) continue;
    const Array x = with_nans(*m.format, n, 1), y = with_nans(*m.format, n, 2);
    const OnGpu x_there{x.values()}, y_there{y.values()};
    const auto finished = [&](const Method& by, Values a, Values b, const Options& options) {
      Partial partial = partial_of(by);
      partial.add(a, by.inputs == 2 ? b : Values{}, options);
      std::vector<std::byte> out(m.result_bytes());
      partial.finish({m.result_format(*m.format), out.data(), static_cast<std::size_t>(m.results)});
      return out;
    };
    EXPECT_EQ(finished(m, x_there.values(), y_there.values(), {.where = flags.there(), .skip_nan = true}),
              finished(find_on("cpu", m), x.values(), y.values(), {.where = flags.here(), .skip_nan = true}))
        << m.name;
  }
}

TEST(ASelectionOnAGpu, IsRefusedByCallsInAStream) {
  SAMESUM_NEEDS_GPU();
  const std::vector<float> x{1, 2, 3};
  const OnGpu there{Values{x}};
  const auto out = device_memory(sizeof(float));
  const Results result{&format_info<fp32>(), out.get(), 1};
  const Method& m = gpu::find("exact/fp32");
  std::size_t bytes = 0;
  EXPECT_EQ(
      gpu::reduce(m, nullptr, bytes, there.values(), Layout::vector(3), result, nullptr, {.skip_nan = true}),
      cudaErrorInvalidValue);
  EXPECT_THAT(refusal_by([&] {
                gpu::reduce(m, there.values(), Layout::vector(3), result, nullptr, nullptr,
                            {.skip_nan = true});
              }),
              HasSubstr("where and skip_nan are for samesum::reduce"));
}

}  // namespace
}  // namespace samesum
