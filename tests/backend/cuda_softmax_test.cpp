/// Softmax on a GPU has, in every schedule, the bits of the CPU, which are those of the reference.
#include "backend/cuda_support.hpp"
#include "operation/softmax_support.hpp"

namespace samesum {
namespace {

using gpu::SoftmaxSchedule;
using ::testing::HasSubstr;

/// A copy of a table's whole memory on the GPU.
class TableOnGpu {
 public:
  explicit TableOnGpu(Table& table) : table_{table}, memory_{device_memory(table.memory().size() + 256)} {
    // The copy has the same distance from an aligned address as the table on the host.
    const auto misplaced = reinterpret_cast<std::uintptr_t>(table.memory().data()) % 64;
    first_ = memory_.get() + misplaced;
    succeed(cudaMemcpy(first_, table.memory().data(), table.memory().size(), cudaMemcpyHostToDevice));
    succeed(cudaDeviceSynchronize());  // the copy may return before the data have arrived
  }
  Values values() const { return {table_.format(), first_ + table_.begin(), table_.values().size}; }
  Layout layout() const { return table_.layout(); }
  Results results() const {
    return {&table_.format(), first_ + table_.begin(), table_.values().size, table_.stride()};
  }
  void download() const {
    succeed(cudaMemcpy(table_.memory().data(), first_, table_.memory().size(), cudaMemcpyDeviceToHost));
  }

 private:
  Table& table_;
  std::shared_ptr<std::byte> memory_;
  std::byte* first_;
};

cudaError_t run(const Method& v, const TableOnGpu& x, const TableOnGpu& y, SoftmaxSchedule schedule) {
  static std::byte workspace[16];
  gpu::Launch launch{
      .call = normalised({.method = &v, .x = x.values(), .layout = x.layout(), .out = y.results()}),
      .workspace = workspace,
      .bytes = gpu::size_if_none_needed,
      .schedule = schedule};
  return gpu::enqueue(launch);
}

std::vector<std::uint64_t> on_gpu(const Method& v, Table& in, SoftmaxSchedule schedule, Place place = {}) {
  Table out{in.format(), in.rows(), in.columns(), place};
  const TableOnGpu x{in}, y{out};
  const cudaError_t code = run(v, x, y, schedule);
  EXPECT_EQ(code, cudaSuccess) << v.name << ": " << cudaGetErrorString(code);
  y.download();
  EXPECT_TRUE(out.surroundings_are_untouched()) << v.name;
  return out.bits();
}

std::vector<SoftmaxSchedule> schedules(const Method& v, std::size_t columns) {
  std::vector<SoftmaxSchedule> all{SoftmaxSchedule::automatic, SoftmaxSchedule::wide};
  const bool exact = v.accumulator == "exact", in_fp64 = v.format->bytes == 8;
  if (columns <= 1024) all.push_back(SoftmaxSchedule::narrow);
  int capability = 0;
  succeed(cudaDeviceGetAttribute(&capability, cudaDevAttrComputeCapabilityMajor, 0));
  const std::size_t most = exact ? 4096 : capability >= 9 ? 131072 : 16384;
  if (!in_fp64 && columns <= most) all.push_back(SoftmaxSchedule::held);
  return all;
}

TEST(SoftmaxOnAGpu, RefusesWhatTheCpuRefuses) {
  SAMESUM_NEEDS_GPU();
  float x[8] = {};
  const Method& m = gpu::find("softmax/tree/plain/fp32");
  const Values all{std::span<const float>{x}};
  std::size_t bytes = 0;
  const auto refused = [&](const Layout& layout, const Results& out) {
    EXPECT_EQ(gpu::reduce(m, x, bytes, all, layout, out), cudaErrorInvalidValue);
    EXPECT_THROW(gpu::reduce(m, all, layout, out), std::invalid_argument);
    EXPECT_THROW(reduce(find_on("cpu", m), all, layout, out), std::invalid_argument);
  };
  refused(Layout::rows(1, 4), {&format_info<float>(), x + 1, 4});
  refused(Layout::rows(2, 4, 2), {&format_info<float>(), x, 8});
  refused(Layout::rows(2, 3, static_cast<std::size_t>(-3)), {&format_info<float>(), x, 8});
  refused(Layout::axis(1, 2, 4), {&format_info<float>(), x, 8});
  try {
    gpu::reduce(m, all, Layout::rows(1, 4), {&format_info<float>(), x + 1, 4});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("out overlaps x"));
  }
}

class EverySoftmaxOnAGpu : public MethodTest {
 protected:
  const Method& v = m;
  const Method& cpu = find_on("cpu", v);

  void expect_bits_of_the_cpu(const FormatInfo& format, std::size_t rows, std::size_t columns, Place place) {
    Table in{format, columns, rows_of_all_kinds(rows, columns, true), place};
    const auto expected = computed(cpu, in, {}, 0);
    for (const SoftmaxSchedule schedule : schedules(v, columns))
      ASSERT_EQ(on_gpu(v, in, schedule, {place.offset, place.gap}), expected)
          << format.name << ", " << rows << " x " << columns << ", offset " << place.offset << ", gap "
          << place.gap << ", schedule " << static_cast<int>(schedule);
  }
};
INSTANTIATE_TEST_SUITE_P(Cuda, EverySoftmaxOnAGpu, ::testing::ValuesIn(or_absent(softmaxes_of("cuda"))),
                         test_name);

TEST_P(EverySoftmaxOnAGpu, HasTheBitsOfTheCpuForAllWidths) {
  for (const FormatInfo* format : formats_of(v))
    for (const std::size_t columns :
         {1,    2,    3,    31,    32,    33,    63,    64,    127,    128,    129,    255,
          256,  257,  511,  512,   1000,  1023,  1024,  1025,  2048,   4095,   4096,   4097,
          5000, 8192, 8193, 16384, 16385, 32768, 32769, 70001, 131072, 131073, 300001, 1000003}) {
      if (is_sanitized && columns > 5000 && columns != 70001 && columns != 131073) continue;
      const std::size_t rows = columns <= 1025 ? 23 : columns <= 8193 ? 11 : columns <= 70001 ? 3 : 2;
      for (const Place place : {Place{}, Place{1, 3}}) expect_bits_of_the_cpu(*format, rows, columns, place);
    }
}

TEST_P(EverySoftmaxOnAGpu, CountsATinyExponentialThatBreaksATie) {
  for (const FormatInfo* format : formats_of(v))
    for (const std::size_t columns : {8, 32, 300, 1000, 1025, 9000, 40000})
      for (const double tiny : tiny_exponents(v)) {
        Table in{*format, columns, rows_with_ties(columns > 9000 ? 12 : 84, columns, tiny)};
        const auto expected = computed(cpu, in, {}, 0);
        for (const SoftmaxSchedule schedule : schedules(v, columns))
          ASSERT_EQ(on_gpu(v, in, schedule), expected) << format->name << ", " << columns << ", " << tiny;
      }
}

TEST_P(EverySoftmaxOnAGpu, HasTheBitsOfTheCpuForAllNumbersOfRowsAndPlaces) {
  for (const FormatInfo* format : formats_of(v))
    for (const std::size_t columns : {4, 32, 100, 128, 1000, 4096, 20000})
      for (const std::size_t rows : {0, 1, 2, 3, 7, 257}) {
        if (columns * rows > 2'000'000 || (is_sanitized && columns * rows > 30'000)) continue;
        for (const Place place : {Place{}, Place{4, 4}, Place{2, 0}, Place{3, 5}, Place{0, 1}})
          expect_bits_of_the_cpu(*format, rows, columns, place);
      }
}

TEST_P(EverySoftmaxOnAGpu, HasTheBitsOfTheCpuForMoreLongRowsThanRunAtOnce) {
  struct Shape {
    std::size_t rows, columns;
  };
  for (const FormatInfo* format : formats_of(v))
    for (const Shape shape : {Shape{1200, 5000}, Shape{700, 9001}, Shape{300, 20000}, Shape{70, 70000}}) {
      if (v.accumulator != "plain") continue;  // the other methods do not prefetch rows
      if (is_sanitized && (shape.rows != 700 || format->bytes != 2)) continue;
      for (const Place place : {Place{}, Place{1, 3}})
        expect_bits_of_the_cpu(*format, shape.rows, shape.columns, place);
    }
}

TEST_P(EverySoftmaxOnAGpu, WritesInPlace) {
  for (const FormatInfo* format : formats_of(v))
    for (const std::size_t columns : {3, 32, 600, 4096, 9000, 140000}) {
      if (is_sanitized && columns > 9000) continue;
      // With 9000 columns there are more rows than run at once: the next rows are prefetched before this one
      // is written.
      const std::size_t rows = columns == 9000 && !is_sanitized ? 700 : 5;
      Table in{*format, columns, rows_of_all_kinds(rows, columns, false), {0, 4}};
      const auto expected = computed(cpu, in, {}, 0);
      for (const SoftmaxSchedule schedule : schedules(v, columns)) {
        Table table{*format, columns, rows_of_all_kinds(rows, columns, false), {0, 4}};
        const TableOnGpu both{table};
        ASSERT_EQ(run(v, both, both, schedule), cudaSuccess);
        both.download();
        ASSERT_EQ(table.bits(), expected) << format->name << ", " << columns;
      }
    }
}

TEST(SoftmaxOnAGpu, CanBeCapturedInAGraph) {
  SAMESUM_NEEDS_GPU();
  const Method& cpu = find("softmax/tree/plain/fp32");
  for (const FormatInfo* format : formats_of(cpu)) {
    Table in{*format, 70000, rows_of_all_kinds(7, 70000, false)}, out{*format, 7, 70000};
    const TableOnGpu x{in}, y{out};
    const Graph graph{the_caller().stream(), [&] {
                        gpu::reduce(gpu::find("softmax/tree/plain/fp32"), x.values(), x.layout(), y.results(),
                                    the_caller().stream());
                      }};
    for (int i = 0; i < 3; ++i) graph.replay();
    y.download();
    EXPECT_EQ(out.bits(), computed(cpu, in)) << format->name;
  }
}

}  // namespace
}  // namespace samesum
