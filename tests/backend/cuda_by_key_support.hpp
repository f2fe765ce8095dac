/// Calls by key on device memory, in every schedule.
#pragma once

#include "backend/cuda_support.hpp"
#include "operation/by_key_support.hpp"

namespace samesum::by_key {

using gpu::KeySchedule;
using gpu::KeyStatus;

inline constexpr KeySchedule schedules[] = {KeySchedule::automatic, KeySchedule::shared,
                                            KeySchedule::partitioned, KeySchedule::global,
                                            KeySchedule::sorted};

/// Bytes in device memory.
inline std::shared_ptr<std::byte> copied(const void* from, std::size_t bytes) {
  const std::shared_ptr<std::byte> copy = device_memory(bytes);
  if (bytes > 0) succeed(cudaMemcpy(copy.get(), from, bytes, cudaMemcpyHostToDevice));
  succeed(cudaDeviceSynchronize());  // the copy may return before the data have arrived
  return copy;
}

struct Outcome {
  Bits bits;
  KeyStatus status;
};

/// Runs a call on device memory. `out` holds `held` if results are combined. Checks that nothing is written
/// beside the results.
inline Outcome on_gpu(const Method& m, const Array& x, const Keys& keys, std::size_t bins, std::size_t inner,
                      KeySchedule schedule, const Options& options = {},
                      const std::vector<double>& held = {}) {
  constexpr std::size_t guard = 64;  // bytes before and behind the results
  const std::size_t results = bins * inner, bytes = m.result_bytes();
  std::vector<std::byte> out(guard + results * bytes + guard, std::byte{0x5a});
  for (std::size_t i = 0; options.combine && i < results; ++i) {
    if (m.returns_index) {
      const auto count = static_cast<std::int64_t>(3 * i);
      std::memcpy(&out[guard + i * bytes], &count, bytes);
    } else {
      with_format(*m.format, [&]<class F>() {
        const F number = convert<F>(held[i % held.size()]);
        std::memcpy(&out[guard + i * bytes], &number, bytes);
      });
    }
  }
  const OnGpu values{x.values()};
  const auto place = copied(keys.data, keys.size * bytes_of(keys.format)),
             to = copied(out.data(), out.size()), status = device_memory(sizeof(KeyStatus));
  const Results written{m.returns_index ? nullptr : m.format, to.get() + guard, results};
  gpu::Launch launch{.call = normalised({.method = &m,
                                         .x = values.values(),
                                         .keys = {keys.format, place.get(), keys.size},
                                         .layout = Layout::axis(1, keys.size, inner),
                                         .out = written,
                                         .options = options}),
                     .stream = the_caller().stream()};
  launch.key_schedule = schedule;
  launch.status = reinterpret_cast<KeyStatus*>(status.get());
  succeed(gpu::enqueue(launch));
  const auto workspace = device_memory(launch.bytes);
  launch.workspace = workspace.get();
  succeed(gpu::enqueue(launch));
  succeed(cudaStreamSynchronize(the_caller().stream()));
  const std::vector<std::byte> before = out;
  succeed(cudaMemcpy(out.data(), to.get(), out.size(), cudaMemcpyDeviceToHost));
  Outcome outcome;
  succeed(cudaMemcpy(&outcome.status, status.get(), sizeof(KeyStatus), cudaMemcpyDeviceToHost));
  for (std::size_t i = 0; i < guard; ++i) {
    EXPECT_EQ(out[i], before[i]);
    EXPECT_EQ(out[out.size() - 1 - i], before[out.size() - 1 - i]);
  }
  for (std::size_t i = 0; i < results; ++i) {
    std::uint64_t number = 0;
    std::memcpy(&number, &out[guard + i * bytes], bytes);
    outcome.bits.push_back(number);
  }
  return outcome;
}

}  // namespace samesum::by_key
