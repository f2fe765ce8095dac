/// Scans on a GPU, and reductions in the order prefix, have the bits of their reference in every form of the
/// kernel, for any layout, address and format of the elements.
#include "backend/cuda_support.hpp"
#include "operation/reduction_support.hpp"

namespace samesum {
namespace {
namespace gpu_scans {

using gpu::ScanSchedule;
using Bytes = std::vector<std::byte>;

constexpr std::size_t tile = 4096;

/// How results differ from expected ones; empty if they are the same.
std::string difference(const Bytes& found, const Bytes& expected, std::size_t bytes) {
  if (found == expected) return {};
  if (found.size() != expected.size()) return "sizes differ";
  std::size_t count = 0, first = found.size();
  for (std::size_t i = 0; i < found.size(); i += bytes)
    if (std::memcmp(&found[i], &expected[i], bytes) != 0) {
      first = std::min(first, i / bytes);
      ++count;
    }
  return std::to_string(count) + " differ, first number " + std::to_string(first);
}

/// A call of a method on a GPU and of the same method elsewhere, on the same elements. Results that a call
/// must not write are compared too.
class BothSides {
 public:
  BothSides(const Method& m, const Array& x, Layout layout, std::size_t offset = 0)
      : m_{m}, host_{x.values()}, there_{x.values(), offset}, layout_{layout} {
    if (layout.offsets == nullptr) return;
    const std::size_t bytes = (layout.outer + 1) * sizeof(std::uint64_t);
    offsets_ = device_memory(bytes);
    succeed(cudaMemcpy(offsets_.get(), layout.offsets, bytes, cudaMemcpyHostToDevice));
  }

  /// Compares the results of every form of the kernel with those of a method elsewhere. The results on the
  /// GPU begin `offset` elements after an aligned address. Returns the differences.
  std::string compare(const Method& expected, bool exclusive = false, std::size_t row_stride = 0,
                      std::size_t offset = 0) const {
    const std::size_t each = m_.format->bytes;
    const Bytes blank(numbers(row_stride) * each + margin, std::byte{0x5a});
    Bytes here = blank, found = blank;
    reduce(expected, host_, layout_, results(here.data(), row_stride), {.exclusive = exclusive});
    const auto out = device_memory(blank.size() + offset * each);
    std::byte* const to = out.get() + offset * each;
    return for_each_form([&](ScanSchedule form) {
      succeed(cudaMemcpy(to, blank.data(), blank.size(), cudaMemcpyHostToDevice));
      run(to, form, exclusive, row_stride);
      succeed(cudaMemcpy(found.data(), to, found.size(), cudaMemcpyDeviceToHost));
      return difference(found, here, each);
    });
  }
  /// Compares results that replace the elements.
  std::string compare_in_place(const Method& expected, bool exclusive) const {
    const std::size_t each = m_.format->bytes;
    Bytes here(numbers(0) * each), found = here;
    reduce(expected, host_, layout_, results(here.data(), 0), {.exclusive = exclusive});
    const std::string different = for_each_form([&](ScanSchedule form) {
      there_.fill(host_);
      run(const_cast<void*>(there_.values().data), form, exclusive, 0);
      succeed(cudaMemcpy(found.data(), there_.values().data, found.size(), cudaMemcpyDeviceToHost));
      return difference(found, here, each);
    });
    there_.fill(host_);
    return different;
  }

 private:
  static constexpr std::size_t margin = 64;

  /// Joins the differences that visit(form) returns.
  template <class Visit> static std::string for_each_form(Visit visit) {
    std::string all;
    for (const ScanSchedule form :
         {ScanSchedule::automatic, ScanSchedule::few_rows, ScanSchedule::many_rows, ScanSchedule::columns})
      if (const std::string different = visit(form); !different.empty())
        all += "form " + std::to_string(static_cast<int>(form)) + ": " + different + "; ";
    return all;
  }

  std::size_t numbers(std::size_t row_stride) const {
    if (!m_.has_result_per_element) return layout_.results() * static_cast<std::size_t>(m_.results);
    const std::size_t width = layout_.n * layout_.inner;
    return layout_.outer == 0 || width == 0
               ? 0
               : (layout_.outer - 1) * (row_stride ? row_stride : layout_.outer_stride) + width;
  }
  Results results(void* out, std::size_t row_stride) const {
    return {m_.format, out, numbers(row_stride), row_stride};
  }
  void run(void* out, ScanSchedule form, bool exclusive, std::size_t row_stride) const {
    Layout layout = layout_;
    if (offsets_) layout.offsets = reinterpret_cast<const std::uint64_t*>(offsets_.get());
    gpu::Launch launch{normalised({.method = &m_,
                                   .x = there_.values(),
                                   .layout = layout,
                                   .out = results(out, row_stride),
                                   .options = {.exclusive = exclusive}})};
    launch.scan = form;
    succeed(gpu::enqueue(launch));  // only sets the size of the workspace
    const auto workspace = device_memory(launch.bytes);
    succeed(cudaMemset(workspace.get(), 0xa5, launch.bytes));  // a scan needs no prepared workspace
    launch.workspace = workspace.get();
    succeed(gpu::enqueue(launch));
    succeed(cudaDeviceSynchronize());
  }

  const Method& m_;
  Values host_;
  OnGpu there_;
  Layout layout_;
  std::shared_ptr<std::byte> offsets_;
};

std::vector<const Method*> tested(bool scans) {
  std::vector<const Method*> chosen;
  for (const Method& m : methods())
    if (m.backend == "cuda" && (scans ? m.is_scan() : m.order == "prefix" && !m.is_scan()))
      chosen.push_back(&m);
  return chosen;
}

class EveryScanOnAGpu : public MethodTest {
 protected:
  const Method& cpu = find_on("cpu", m);
};
class EveryPrefixReductionOnAGpu : public EveryScanOnAGpu {};
INSTANTIATE_TEST_SUITE_P(Cuda, EveryScanOnAGpu, ::testing::ValuesIn(or_absent(tested(true))), test_name);
INSTANTIATE_TEST_SUITE_P(Cuda, EveryPrefixReductionOnAGpu, ::testing::ValuesIn(or_absent(tested(false))),
                         test_name);

/// Lengths around runs, rows, tiles, groups of tiles, and groups of 32 and 1024 blocks.
std::vector<std::size_t> lengths(const Method& m) {
  std::vector<std::size_t> all{0, 1, 2, 3, 4, 5, 8, 63, 64, 65};
  std::vector<std::size_t> units{128, 256, 512, 1024, 2048, tile, 2 * tile, 3 * tile, 4 * tile};
  if (!m.is_slow)
    for (const std::size_t tiles : {5, 16, 31, 32, 33, 63, 64, 96, 124, 128, 132, 160})
      units.push_back(tiles * tile);
  if (!m.is_slow && !is_sanitized && m.format->bytes == 4)
    for (const std::size_t tiles : {1023, 1024, 1025, 2049}) units.push_back(tiles * tile);
  for (const std::size_t unit : units) all.insert(all.end(), {unit - 1, unit, unit + 1});
  if (!m.is_slow && !is_sanitized) all.push_back(1100 * tile + 777);
  return all;
}

TEST_P(EveryScanOnAGpu, HasTheBitsOfItsReference) {
  for (const std::size_t n : lengths(m)) {
    const Array x{*m.format, wide(n, 12, n)};
    const BothSides sides{m, x, Layout::vector(n)};
    const Method& expected = n <= 2 * tile + 1 ? reference_of(m) : cpu;
    for (const bool exclusive : {false, true})
      ASSERT_EQ(sides.compare(expected, exclusive), "") << n << " elements, exclusive " << exclusive;
  }
}

TEST_P(EveryScanOnAGpu, HasTheBitsOfItsReferenceBeyond1024Blocks) {
  if (m.is_slow || is_sanitized || m.format->bytes != 4) return;
  const std::size_t n = 4 * (1024 + 33) * tile + 3 * tile + 5;
  const Array x{*m.format, wide(n, 12, 2)};
  const BothSides sides{m, x, Layout::vector(n)};
  ASSERT_EQ(sides.compare(cpu), "");
}

TEST_P(EveryScanOnAGpu, ReadsEveryFormatAtEveryAddress) {
  for (const FormatInfo& input : formats) {
    if (!m.accepts(input)) continue;
    for (const Dataset& d : awkward_data(3 * tile + 777)) {
      const Array x{input, d.x};
      for (const std::size_t offset : {0, 1, 4}) {
        const BothSides sides{m, x, Layout::vector(d.x.size()), offset};
        for (const bool exclusive : {false, true})
          ASSERT_EQ(sides.compare(cpu, exclusive, 0, offset == 4 ? 1 : offset), "")
              << d.name << " of " << input.name << ", offset " << offset << ", exclusive " << exclusive;
      }
    }
  }
}

struct Batch {
  std::size_t outer, n, inner, gap, out_gap;
};
std::vector<Batch> scan_batches() {
  std::vector<Batch> all{
      {3, 4400, 1, 0, 0},    {5, 3, 1, 2, 4},     {2, 4100, 5, 0, 0},  {1, 1100, 33, 0, 0},
      {2, 70, 17, 3, 1},     {4, 1, 3, 0, 0},     {2, 9, 16, 0, 0},    {0, 5, 1, 0, 0},
      {3, 0, 1, 0, 0},       {2, 3, 0, 0, 0},     {33, 128, 1, 0, 0},  {9, 129, 1, 0, 3},
      {21, 511, 1, 1, 0},    {21, 512, 1, 0, 0},  {21, 513, 1, 0, 0},  {13, 2048, 1, 0, 0},
      {13, 2049, 1, 3, 8},   {7, 4095, 1, 1, 0},  {7, 4096, 1, 0, 0},  {7, 4097, 1, 3, 0},
      {7, 8192, 1, 0, 0},    {5, 9000, 1, 0, 12}, {5, 12289, 1, 0, 0}, {3, 70'001, 1, 7, 0},
      {2, 140'000, 3, 0, 0}, {1, 4200, 64, 0, 0}, {2, 20'000, 8, 0, 0}};
  if (!is_sanitized)
    all.insert(all.end(),
               {{5000, 3, 1, 0, 0}, {700, 129, 1, 0, 0}, {700, 4096, 1, 0, 0}, {650, 5000, 1, 0, 0}});
  return all;
}

TEST_P(EveryScanOnAGpu, HasTheBitsOfItsReferenceForRowsAndAxes) {
  for (const auto& [outer, n, inner, gap, out_gap] : scan_batches()) {
    const Layout layout{outer, n, inner, n * inner + gap, inner};
    const Array x{*m.format, wide(outer * (n * inner + gap), 12, n)};
    const BothSides sides{m, x, layout};
    for (const bool exclusive : {false, true})
      ASSERT_EQ(sides.compare(cpu, exclusive, gap == 0 && out_gap == 0 ? 0 : n * inner + out_gap), "")
          << outer << " x " << n << " x " << inner << ", gap " << gap << ", exclusive " << exclusive;
  }
}

TEST_P(EveryScanOnAGpu, MayReplaceItsElements) {
  const std::size_t n = m.is_slow ? 5000 : 200'007;
  for (const Layout& layout : {Layout::vector(n), Layout::rows(3, 5000), Layout::axis(2, 4200, 20)}) {
    const Array x{*m.format, wide(layout.results() * layout.n, 12, 5)};
    const BothSides sides{m, x, layout};
    for (const bool exclusive : {false, true})
      ASSERT_EQ(sides.compare_in_place(cpu, exclusive), "")
          << layout.outer << " x " << layout.n << " x " << layout.inner << ", exclusive " << exclusive;
  }
}

TEST_P(EveryScanOnAGpu, HasTheSameBitsEachTime) {
  if (m.is_slow) return;
  const std::size_t n = is_sanitized ? 40 * tile : 700 * tile + 99;
  const Array x{*m.format, wide(n, 12, 4)};
  const BothSides sides{m, x, Layout::vector(n)};
  for (int round = 0; round < (is_sanitized ? 2 : 8); ++round) ASSERT_EQ(sides.compare(cpu), "") << round;
}

TEST_P(EveryScanOnAGpu, CanBeCapturedInAGraphAndReplayed) {
  const std::size_t n = m.is_slow ? 3000 : 300'000;
  const Array x{*m.format, wide(n, 12, 6)}, other{*m.format, wide(n, 12, 7)};
  const OnGpu there{x.values()};
  const std::size_t size = n * m.format->bytes;
  const auto out = device_memory(size);
  const Results results{m.format, out.get(), n};
  Caller caller;
  std::size_t bytes = 0;
  succeed(gpu::reduce(m, nullptr, bytes, there.values(), Layout::vector(n), results, caller.stream()));
  const auto workspace = device_memory(bytes);
  const auto run = [&] {
    succeed(
        gpu::reduce(m, workspace.get(), bytes, there.values(), Layout::vector(n), results, caller.stream()));
  };
  run();
  const Graph graph{caller.stream(), run};
  for (const Array* data : {&x, &other, &x}) {
    there.fill(data->values());
    graph.replay();
    Bytes found(size), expected(size);
    succeed(cudaMemcpy(found.data(), out.get(), size, cudaMemcpyDeviceToHost));
    reduce(cpu, data->values(), Layout::vector(n), Results{m.format, expected.data(), n});
    EXPECT_EQ(difference(found, expected, m.format->bytes), "");
  }
}

/// Integers of 128 bits hold the sums of some of these data, those of 192 bits the sums of most. The long
/// calls guess the units from a sample, which one large or small element may exceed.
TEST_P(EveryScanOnAGpu, IsExactForAnyRangeOfElements) {
  if (m.accumulator != "exact") return;
  for (const Layout& layout : {Layout::vector(3 * tile + 777), Layout::vector(700), Layout::rows(5, 5000),
                               Layout::rows(700, 3), Layout::axis(2, 4200, 5), Layout::vector(150001),
                               Layout::rows(45000, 3), Layout::axis(3, 20000, 3)}) {
    const std::size_t n = layout.results() * layout.n;
    std::vector<Dataset> all;
    for (const int binades : {30, 60, 90, 130, 240, 1900})
      all.push_back({std::to_string(binades) + " binades", wide(n, binades, n)});
    all.push_back({"zeros", std::vector<double>(n, 0.0)});
    all.push_back({"-0 first", uniform(n, 5)});
    std::fill_n(all.back().x.begin(), layout.inner, -0.0);
    all.push_back({"only -0", std::vector<double>(n, -0.0)});
    all.push_back({"a large one", uniform(n, 7)});
    all.back().x[n / 2 + 1] = m.format->max_finite;
    all.push_back({"a larger one", uniform(n, 7)});
    all.back().x[n / 2 + 1] = 0x1p14;
    all.push_back({"a small one", uniform(n, 7)});
    all.back().x[n / 3] = 0x1p-90;
    all.push_back({"a small column", uniform(n, 7)});
    for (std::size_t i = 1; i < n; i += 3) all.back().x[i] *= 0x1p-70;
    all.push_back({"a NaN", uniform(n, 6)});
    all.back().x[n / 2] = NAN;
    all.push_back({"largest", std::vector<double>(n, m.format->max_finite)});
    all.push_back({"smallest", std::vector<double>(n, m.format->smallest_subnormal)});
    for (const Dataset& d : all)
      for (const FormatInfo& input : formats) {
        const Array x{input, d.x};
        const BothSides sides{m, x, layout};
        for (const bool exclusive : {false, true}) {
          ASSERT_EQ(sides.compare(cpu, exclusive), "")
              << d.name << " of " << input.name << ", " << layout.outer << " x " << layout.n << " x "
              << layout.inner << ", exclusive " << exclusive;
          if (&input == m.format) {
            ASSERT_EQ(sides.compare_in_place(cpu, exclusive), "")
                << d.name << " in place, exclusive " << exclusive;
          }
        }
      }
  }
}

TEST(AScanOnAGpu, RefusesWhatTheCpuRefuses) {
  SAMESUM_NEEDS_GPU();
  const Method& m = gpu::find("cumsum/prefix/plain/fp32");
  const Array host{format_info<fp32>(), uniform(24, 1)};
  const OnGpu x{host.values()};
  const auto out = device_memory(24 * sizeof(float));
  std::size_t bytes = 0;
  const std::uint64_t offsets[] = {0, 3, 24};
  for (const Layout& layout :
       {Layout::segments(offsets, 2), Layout{1, 3, 2, 0, 5}, Layout::rows(3, 8, 4), Layout::vector(25)}) {
    const Results results{m.format, out.get(), 24};
    EXPECT_EQ(gpu::reduce(m, nullptr, bytes, x.values(), layout, results), cudaErrorInvalidValue);
    EXPECT_THROW(gpu::reduce(m, x.values(), layout, results), std::invalid_argument);
  }
  EXPECT_THROW(gpu::reduce(gpu::find("tree/plain/fp32"), x.values(), Layout::vector(24),
                           Results{m.format, out.get(), 1}, nullptr, nullptr, {.exclusive = true}),
               std::invalid_argument);
}

TEST(AScanOnAGpu, RefusesAWorkspaceThatIsTooSmall) {
  SAMESUM_NEEDS_GPU();
  const std::size_t n = 100 * tile;
  const auto memory = device_memory(n * sizeof(float)), workspace = device_memory(std::size_t{1} << 20);
  const Values x{format_info<fp32>(), memory.get(), n};
  const Results out{x.format, memory.get(), n};
  std::size_t bytes = 0;
  const Method& m = gpu::find("cumsum/prefix/plain/fp32");
  succeed(gpu::reduce(m, nullptr, bytes, x, Layout::vector(n), out));
  EXPECT_GT(bytes, gpu::header_bytes);
  std::size_t less = bytes - 1;
  EXPECT_EQ(gpu::reduce(m, workspace.get(), less, x, Layout::vector(n), out), cudaErrorInvalidValue);
}

// --- reductions in the order prefix ------------------------------------------------------------------------

TEST_P(EveryPrefixReductionOnAGpu, HasTheBitsOfItsReference) {
  for (const std::size_t n : lengths(m)) {
    const Array x{*m.format, wide(n, 12, n)};
    const BothSides sides{m, x, Layout::vector(n)};
    const Method& expected = n <= 2 * tile + 1 ? reference_of(m) : cpu;
    ASSERT_EQ(sides.compare(expected), "") << n << " elements";
  }
}

TEST_P(EveryPrefixReductionOnAGpu, HasTheBitsOfItsReferenceForBatches) {
  for (const FormatInfo& input : formats) {
    if (!m.accepts(input)) continue;
    for (const BatchData& d : batch_data(input)) {
      const BothSides sides{m, d.x, d.batch.layout};
      ASSERT_EQ(sides.compare(cpu), "") << d.batch.name << " of " << input.name;
    }
  }
}

TEST_P(EveryPrefixReductionOnAGpu, HasTheBitsOfItsReferenceForLongSegments) {
  std::vector<std::uint64_t> offsets{3};
  for (const std::size_t n : {33 * tile, std::size_t{0}, std::size_t{5}, 32 * tile, 70 * tile + 9, tile,
                              2 * tile, std::size_t{1}, 97 * tile + 4095})
    offsets.push_back(offsets.back() + n);
  const Array x{*m.format, wide(offsets.back(), 12, 3)};
  const BothSides sides{m, x, Layout::segments(offsets.data(), offsets.size() - 1)};
  ASSERT_EQ(sides.compare(cpu), "");
}

}  // namespace gpu_scans
}  // namespace
}  // namespace samesum
