/// Calls on a GPU through the C interface: bits, workspace sizes, statuses and errors.
#include "backend/cuda_support.hpp"
#include "interface/c_support.hpp"

namespace samesum {
namespace {

using c_interface::ask;
using c_interface::IsInvalid;
using c_interface::IsOk;
using c_interface::IsRefusal;

/// A call in C, of a method on a GPU, with its data and results in device memory.
struct DeviceCall {
  OnGpu x;
  std::shared_ptr<std::byte> out;
  samesum_call call = samesum_call_default();

  DeviceCall(const std::string& method, const Values& host, samesum_layout layout, std::size_t results)
      : x{host}, out{device_memory(results * 8)} {
    call.method = c_interface::found(method);
    call.x = c_interface::values_in_c(x.values());
    if (samesum_method_inputs(call.method) == 2) call.y = call.x;
    call.layout = layout;
    call.out = {out.get(), results, 0, samesum_method_result_format(call.method, call.x.format)};
  }
  const samesum_call* get() const { return &call; }
  std::vector<std::byte> results() const {
    std::vector<std::byte> all(call.out.size * samesum_format_bytes(call.out.format));
    succeed(cudaMemcpy(all.data(), out.get(), all.size(), cudaMemcpyDeviceToHost));
    return all;
  }
};

TEST(ACallOnTheGpuInC, HasTheBitsOfTheCpu) {
  SAMESUM_NEEDS_GPU();
  const Array host{format_info<fp32>(), wide(12'000, 20, 1)};
  cudaStream_t stream = nullptr;
  succeed(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  void* const in_c = stream;
  for (const char* name : {"sum/exact/fp32", "sum/tree/kahan/fp32", "dot/exact/fp64", "moments/tree/fp32",
                           "argmax/fp32", "cumsum/prefix/plain/fp32", "max/fp32"}) {
    const Method& m = find(name);
    const std::size_t results = m.has_result_per_element ? 12'000 : 12 * static_cast<std::size_t>(m.results);
    DeviceCall device{std::string{name} + "@cuda", host.values(), samesum_rows(12, 1000, 1000), results};
    std::size_t bytes = 0, expected_bytes = 0;
    ASSERT_THAT(ask(samesum_workspace_size, device.get(), &bytes), IsOk());
    const FormatInfo* const format = m.result_format(format_info<fp32>());
    const Values x = device.x.values(), y = m.inputs == 2 ? x : Values{};
    succeed(gpu::workspace_size({.method = &find_on("cuda", m),
                                 .x = x,
                                 .y = y,
                                 .layout = Layout::rows(12, 1000),
                                 .out = {format, device.out.get(), results}},
                                expected_bytes));
    EXPECT_EQ(bytes, expected_bytes) << name;
    const auto workspace = device_memory(bytes);
    void* const memory = workspace.get();
    ASSERT_THAT(ask(samesum_prepare, memory, bytes, in_c), IsOk());
    samesum_device_status* const none = nullptr;
    ASSERT_THAT(ask(samesum_enqueue, device.get(), memory, bytes, in_c, none), IsOk()) << name;
    succeed(cudaStreamSynchronize(stream));
    std::vector<std::byte> expected(device.results().size());
    const Values on_host = host.values();
    run({.method = &m,
         .x = on_host,
         .y = m.inputs == 2 ? on_host : Values{},
         .layout = Layout::rows(12, 1000),
         .out = {format, expected.data(), results}});
    EXPECT_TRUE(device.results() == expected) << name;
  }
  succeed(cudaStreamDestroy(stream));
}

TEST(ACallOnTheGpuInC, ReportsBadKeysAndOverflowInDeviceMemory) {
  SAMESUM_NEEDS_GPU();
  const std::vector<float> x{1, 2, 3, 0x1p60f};
  const std::vector<std::int32_t> keys{0, 1, 9, 1};
  DeviceCall device{"scatter_add/fixed_point/fp32@cuda", Values{x}, samesum_layout{}, 2};
  const auto device_keys = device_memory(sizeof keys[0] * keys.size());
  succeed(cudaMemcpy(device_keys.get(), keys.data(), sizeof keys[0] * keys.size(), cudaMemcpyHostToDevice));
  device.call.keys = {device_keys.get(), keys.size(), SAMESUM_KEYS_INT32};
  samesum_options options = samesum_options_default();
  options.has_grid = 1;
  options.grid = -10;
  device.call.options = &options;
  std::size_t bytes = 0;
  ASSERT_THAT(ask(samesum_workspace_size, device.get(), &bytes), IsOk());
  const auto workspace = device_memory(bytes), memory = device_memory(sizeof(samesum_device_status));
  void *const prepared = workspace.get(), *const stream = nullptr;
  ASSERT_THAT(ask(samesum_prepare, prepared, bytes, stream), IsOk());
  auto* const status = reinterpret_cast<samesum_device_status*>(memory.get());
  ASSERT_THAT(ask(samesum_enqueue, device.get(), prepared, bytes, stream, status), IsOk());
  samesum_device_status reported{};
  succeed(cudaMemcpy(&reported, status, sizeof reported, cudaMemcpyDeviceToHost));
  EXPECT_EQ(reported.first_bad_key, 2u);
  EXPECT_EQ(reported.overflowed, 1u);
}

TEST(ACallOnTheGpuInC, RefusesWrongArgumentsWithAMessage) {
  SAMESUM_NEEDS_GPU();
  const std::vector<float> x{1, 2, 3};
  DeviceCall device{"exact/fp32@cuda", Values{x}, samesum_layout{}, 1};
  std::size_t bytes = 0;
  ASSERT_THAT(ask(samesum_workspace_size, device.get(), &bytes), IsOk());
  EXPECT_THAT(ask(samesum_workspace_size, device.get(), static_cast<std::size_t*>(nullptr)),
              IsInvalid("bytes is NULL"));
  const auto workspace = device_memory(std::size_t{1} << 20);
  void *const memory = workspace.get(), *const stream = nullptr, *const none = nullptr;
  samesum_device_status* const no_status = nullptr;
  ASSERT_THAT(ask(samesum_prepare, memory, std::size_t{1} << 20, stream), IsOk());
  EXPECT_THAT(ask(samesum_prepare, none, bytes, stream), IsInvalid("samesum_prepare"));
  EXPECT_THAT(ask(samesum_enqueue, device.get(), none, bytes, stream, no_status),
              IsInvalid("workspace is NULL"));
  EXPECT_THAT(ask(samesum_enqueue, device.get(), memory, std::size_t{0}, stream, no_status),
              IsInvalid("fewer bytes than samesum_workspace_size"));
  DeviceCall wrong{"exact/fp32@cuda", Values{x}, samesum_vector(4), 1};
  EXPECT_THAT(ask(samesum_enqueue, wrong.get(), memory, bytes, stream, no_status),
              IsInvalid("more elements"));
  DeviceCall on_host{"exact/fp32@cpu", Values{x}, samesum_layout{}, 1};
  EXPECT_THAT(ask(samesum_workspace_size, on_host.get(), &bytes), IsInvalid("does not run on a GPU"));
  EXPECT_THAT(ask(samesum_enqueue, on_host.get(), memory, bytes, stream, no_status),
              IsInvalid("does not run on a GPU"));
}

}  // namespace
}  // namespace samesum
