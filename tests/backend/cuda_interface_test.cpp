/// Tests samesum/gpu.hpp and the catalogue on host and device data, including bad arguments and CUDA errors.
#include "backend/cuda_support.hpp"
#include "samesum/backend/cuda/device/kept_workspace.hpp"
#include "samesum/catalogue/backends.hpp"
#include "samesum/catalogue/describe.hpp"

namespace samesum {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(MethodsOnTheGpu, AcceptHostAndDeviceData) {
  SAMESUM_NEEDS_GPU();
  std::vector<float> x{1, 2, 3};
  EXPECT_EQ(sum<"tree/kahan/fp32@cuda">(x), 6);
  EXPECT_EQ(find("exact/fp32@cuda")(std::vector<float>{}).as<float>(), 0);
  const OnGpu placed{Values{x}};
  const Method& tree = find("tree/plain/fp32@cuda");
  EXPECT_EQ(tree.place(placed.values()).values.data, placed.values().data);
  EXPECT_EQ(tree(placed.values()).as<float>(), 6);
  const Job job = tree.bind(x);
  x[0] = 100;  // the job has its own copy
  EXPECT_EQ(job().as<float>(), 6);
  EXPECT_EQ(job().as<float>(), 6);
}

TEST(TheGpuInterface, SumsWithAndWithoutAWorkspace) {
  SAMESUM_NEEDS_GPU();
  const std::vector<double> data = wide(1'000'000, 10, 12);
  const Array host{format_info<fp32>(), data};
  const OnGpu placed{host.values()};
  const auto* x = static_cast<const float*>(placed.values().data);
  const auto memory = device_memory(8);
  auto* out = reinterpret_cast<float*>(memory.get());
  const auto result = [&] {
    float value = 0;
    succeed(cudaMemcpy(&value, out, sizeof value, cudaMemcpyDeviceToHost));
    return value;
  };
  std::size_t bytes = 0;
  succeed(gpu::sum<"pairwise/kahan/fp32">(nullptr, bytes, x, data.size(), out));
  const auto workspace = device_memory(bytes);
  succeed(gpu::prepare(workspace.get(), bytes));
  for (int i = 0; i < 3; ++i) {
    succeed(gpu::sum<"pairwise/kahan/fp32">(workspace.get(), bytes, x, data.size(), out));
    EXPECT_EQ(result(), sum<"pairwise/kahan/fp32">(host.values()));
  }
  gpu::sum<"tree/plain/fp32">(x, data.size(), out);
  EXPECT_EQ(result(), sum<"tree/plain/fp32">(host.values()));
  gpu::sum(x, data.size(), out);
  EXPECT_EQ(result(), find("exact/fp32")(host.values()).as<float>());
  gpu::sum(x, 100, out);  // without a workspace
  EXPECT_EQ(result(), sum(std::span{static_cast<const float*>(host.values().data), 100}));
}

TEST(TheGpuInterface, RefusesBadArgumentsAndStaysUsable) {
  SAMESUM_NEEDS_GPU();
  const auto memory = device_memory(std::size_t{1} << 22);
  auto* x = reinterpret_cast<float*>(memory.get());
  succeed(cudaMemset(x, 0, std::size_t{1} << 22));
  const std::size_t n = 1 << 20;
  const auto out_memory = device_memory(8);
  auto* out = reinterpret_cast<float*>(out_memory.get());
  std::size_t bytes = 0;
  succeed(gpu::sum(nullptr, bytes, x, n, out));
  const auto workspace = device_memory(bytes);
  succeed(gpu::prepare(workspace.get(), bytes));
  const auto misaligned = reinterpret_cast<float*>(memory.get() + 1);

  std::size_t too_few = bytes - 1;
  EXPECT_EQ(gpu::sum(workspace.get(), too_few, x, n, out), cudaErrorInvalidValue);
  EXPECT_EQ(gpu::sum(workspace.get(), bytes, static_cast<float*>(nullptr), n, out), cudaErrorInvalidValue);
  EXPECT_EQ(gpu::sum(workspace.get(), bytes, misaligned, 100, out), cudaErrorInvalidValue);
  EXPECT_EQ(gpu::sum(workspace.get(), bytes, x, n, static_cast<float*>(nullptr)), cudaErrorInvalidValue);
  EXPECT_EQ(gpu::sum(workspace.get(), bytes, x, n, misaligned), cudaErrorInvalidValue);
  EXPECT_EQ(gpu::sum(workspace.get() + 1, bytes, x, n, out), cudaErrorInvalidValue);
  EXPECT_EQ(gpu::sum(workspace.get(), bytes, x, std::size_t{1} << 39, out), cudaErrorInvalidValue);
  std::size_t asked = 0;
  EXPECT_EQ(gpu::sum(nullptr, asked, static_cast<float*>(nullptr), n, out), cudaSuccess)
      << "only computes the size";
  EXPECT_EQ(gpu::sum(nullptr, asked, x, (std::size_t{1} << 39) - 1, out), cudaSuccess);
  EXPECT_EQ(gpu::sum<"atomic/plain/fp32">(nullptr, asked, x, (std::size_t{1} << 39) - 1, out), cudaSuccess);
  EXPECT_EQ(asked, gpu::header_bytes);
  EXPECT_EQ(gpu::accumulate(nullptr, asked, {format_info<float>(), nullptr, SIZE_MAX}, nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(gpu::reduce(find("exact/fp32@cpu"), workspace.get(), bytes, {format_info<float>(), x, n},
                        Layout::vector(n), std::span{out, 1}),
            cudaErrorInvalidValue);
  EXPECT_EQ(gpu::prepare(nullptr, bytes), cudaErrorInvalidValue);
  EXPECT_EQ(gpu::accumulate(workspace.get(), bytes, {format_info<float>(), x, n}, nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(gpu::merge(nullptr, nullptr), cudaErrorInvalidValue);
  const auto* askew = reinterpret_cast<gpu::ExactState*>(memory.get() + 4);
  EXPECT_EQ(gpu::round(askew, format_info<float>(), out), cudaErrorInvalidValue);
  EXPECT_EQ(gpu::round(nullptr, format_info<float>(), out), cudaErrorInvalidValue);

  const auto message = [&](auto call) -> std::string {
    try {
      call();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "(no error)";
  };
  EXPECT_EQ(message([&] { gpu::sum(static_cast<float*>(nullptr), 3, out); }),
            "samesum: sum/exact/fp32@cuda: x is null but has 3 elements; pass their address");
  EXPECT_THAT(message([&] { gpu::sum(misaligned, 3, out); }), HasSubstr("x is not aligned"));
  EXPECT_THAT(message([&] { gpu::sum(x, 3, static_cast<float*>(nullptr)); }), HasSubstr("out is null"));
  EXPECT_THAT(message([&] {
                gpu::reduce(find("tree/plain/fp32"), Values{format_info<float>(), x, 3}, Layout::vector(3),
                            std::span{out, 1});
              }),
              HasSubstr("use the method of the same name @cuda"));
  EXPECT_THAT(message([&] { gpu::find("tree/plain/fp32@cpu"); }), HasSubstr("does not run on a GPU"));

  // The next call works.
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  succeed(gpu::sum(workspace.get(), bytes, x, n, out));
  succeed(cudaDeviceSynchronize());
}

/// Layouts that count 2^40 vectors, but have no result to write.
TEST(TheGpuInterface, NeedsNoMemoryAndReturnsAtOnceIfThereIsNothingToWrite) {
  SAMESUM_NEEDS_GPU();
  constexpr std::size_t many = std::size_t{1} << 40;
  const auto workspace = device_memory(std::size_t{1} << 20), memory = device_memory(64);
  succeed(gpu::prepare(workspace.get(), std::size_t{1} << 20));
  for (const Method& m : methods()) {
    if (m.backend != "cuda") continue;
    const FormatInfo& input = m.accepts(*m.format) ? *m.format : format_info<fp32>();
    const Values x{input, memory.get(), 0};
    const auto in_both_phases = [&](auto call) {
      std::size_t bytes = 0;
      ASSERT_EQ(call(nullptr, bytes), cudaSuccess) << m.name;
      ASSERT_LE(bytes, std::size_t{1} << 20) << m.name;
      ASSERT_EQ(call(workspace.get(), bytes), cudaSuccess) << m.name;
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << m.name;
    };
    if (m.takes_keys) {
      const Keys none{KeyFormat::int32, memory.get(), 0};
      for (const bool combine : {false, true}) {
        if (combine && m.operation == "scatter_mean") continue;
        // Most of the results to combine do not exist.
        const Results out{m.result_format(input), memory.get(), combine ? many : 0};
        in_both_phases([&](void* at, std::size_t& bytes) {
          return gpu::reduce(m, at, bytes, x, none, Layout::axis(1, 0, 1), out, nullptr, nullptr,
                             {.combine = combine});
        });
      }
      continue;
    }
    std::vector<Layout> layouts{Layout::rows(0, many), Layout::axis(many, 5, 0), Layout::axis(0, many, 3)};
    if (m.has_result_per_element)
      layouts.insert(layouts.end(), {Layout::vector(0), Layout::rows(many, 0), Layout::axis(many, 0, 3)});
    for (const Layout& layout : layouts) {
      if (!m.accepts(input, layout) || (m.keeps_format && layout.inner != 1)) continue;
      const Results out{m.result_format(input), memory.get(), 0};
      in_both_phases([&](void* at, std::size_t& bytes) {
        return m.inputs == 2 ? gpu::reduce(m, at, bytes, x, x, layout, out)
                             : gpu::reduce(m, at, bytes, x, layout, out, nullptr, with_window(m));
      });
    }
  }
}

TEST(AKeptWorkspace, IsPreparedAgainAfterACallThatFailedMidway) {
  SAMESUM_NEEDS_GPU();
  const Array host{format_info<fp32>(), wide(1'000'000, 10, 12)};
  const OnGpu x{host.values()};
  const auto memory = device_memory(sizeof(float));
  const Method& m = gpu::find("tree/plain/fp32");
  const Layout layout = Layout::vector(x.values().size);
  const Results out{&format_info<fp32>(), memory.get(), 1};
  const auto expect_right_bits = [&] {
    float found = 0;
    succeed(cudaMemcpy(&found, memory.get(), sizeof found, cudaMemcpyDeviceToHost));
    EXPECT_EQ(found, sum<"tree/plain/fp32">(host.values()));
    succeed(cudaMemset(memory.get(), 0xa5, sizeof found));
  };
  std::size_t needed = 0;
  succeed(gpu::reduce(m, nullptr, needed, x.values(), layout, out));
  ASSERT_GT(needed, gpu::header_bytes);
  gpu::KeptWorkspace workspace;
  const auto sum_in = [&](void* at, std::size_t bytes) {
    return gpu::reduce(m, at, bytes, x.values(), layout, out);
  };
  const auto spoil = [](void* at) { succeed(cudaMemset(at, 0x5a, gpu::header_bytes)); };
  workspace.replace(device_memory(needed), needed);
  for (int round = 0; round < 2; ++round) {
    succeed(workspace.run(nullptr, sum_in));
    expect_right_bits();
    EXPECT_EQ(workspace.run(nullptr,
                            [&](void* at, std::size_t) {
                              spoil(at);
                              return cudaErrorLaunchFailure;
                            }),
              cudaErrorLaunchFailure);
    succeed(workspace.run(nullptr, sum_in));
    expect_right_bits();
    EXPECT_THROW(static_cast<void>(workspace.run(nullptr,
                                                 [&](void* at, std::size_t) -> cudaError_t {
                                                   spoil(at);
                                                   throw std::bad_alloc{};
                                                 })),
                 std::bad_alloc);
  }
  workspace.replace(device_memory(needed), needed);
  succeed(workspace.run(nullptr, sum_in));
  expect_right_bits();
}

bool fails_midway = false;
/// Sums, or sums, spoils the header of the workspace and fails.
cudaError_t sum_or_fail(gpu::Launch& launch) {
  Code::of(gpu::find("tree/plain/fp32")).device.vector[launch.call.x.format->index](launch);
  if (launch.error != cudaSuccess || launch.workspace == nullptr || !fails_midway) return launch.error;
  succeed(cudaMemsetAsync(launch.workspace, 0x5a, gpu::header_bytes, launch.stream));
  return cudaErrorLaunchFailure;
}

TEST(AJobOnTheGpu, GivesTheRightBitsAfterARunThatFailedMidway) {
  SAMESUM_NEEDS_GPU();
  Entry entry = describe<Sum, CoarsenedTree, Plain, fp32>("cuda");
  entry.code.device.vector[Formats::index_of<fp32>()] = gpu::run_launch<sum_or_fail>;
  MethodTable table;
  table.add({entry}, backend<"cuda">());
  const Array x{format_info<fp32>(), wide(1'000'000, 10, 12)};
  const Number expected = find("tree/plain/fp32")(x.values());
  const Job job = table.methods.front().bind(x.values());
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(job(), expected);
    fails_midway = true;
    EXPECT_THROW(job(), gpu::Error);
    fails_midway = false;
  }
  EXPECT_EQ(job(), expected);
}

TEST(TheGpuInterface, ReportsAFailedAllocationAndStaysUsable) {
  SAMESUM_NEEDS_GPU();
  const float one = 1;  // never read: memory for the copy is allocated first
  try {
    find("tree/plain/fp32@cuda")(Values{format_info<float>(), &one, std::size_t{1} << 42});
    FAIL() << "2^44 bytes were allocated";
  } catch (const gpu::Error& error) {
    EXPECT_EQ(error.code(), cudaErrorMemoryAllocation);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("cudaMalloc of 17592186044416 bytes"), HasSubstr("memory")));
  }
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(find("tree/plain/fp32@cuda")(std::vector<float>{1, 2}).as<float>(), 3);
}

TEST(TheGpuInterface, IsNotAffectedByAnEarlierError) {
  SAMESUM_NEEDS_GPU();
  void* ignored = nullptr;
  EXPECT_EQ(cudaMalloc(&ignored, std::size_t{1} << 50), cudaErrorMemoryAllocation);
  EXPECT_EQ(find("exact/fp32@cuda")(std::vector<float>{1, 2}).as<float>(), 3);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation) << "the earlier error is still pending";
}

TEST(TheGpuInterface, ReportsAnUnrecoverableError) {
  SAMESUM_NEEDS_GPU();
  if (is_sanitized) GTEST_SKIP() << "a sanitizer would report the deliberate invalid read";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto read_where_nothing_is = [] {
    void* out = nullptr;
    static_cast<void>(cudaMalloc(&out, 8));
    auto* nowhere = reinterpret_cast<const float*>(std::uintptr_t{1} << 60);
    gpu::sum(nowhere, 100, static_cast<float*>(out));
    static_cast<void>(cudaDeviceSynchronize());
    try {
      find("tree/plain/fp32@cuda")(std::vector<float>{1, 2});
    } catch (const gpu::Error& error) {
      std::fputs(error.what(), stderr);
      std::_Exit(3);
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(read_where_nothing_is(), ::testing::ExitedWithCode(3), "samesum: .* failed: .*");
}

}  // namespace
}  // namespace samesum
