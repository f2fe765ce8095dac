#include "harness/cpu_turns.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "harness/peers/sums.hpp"
#include "samesum/backend/cpu/schedule.hpp"

namespace samesum::harness {
namespace {

volatile std::uint64_t sink = 0;

struct Clocked {
  const Turn& method;
  int inner = 1;  ///< runs that are timed together: the clock itself takes some 30 ns
  std::vector<double> seconds = {};

  double time() const {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < inner; ++i) method.run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / inner;
  }

  /// As many runs at once as take 0.2 ms, after what happens only once has happened.
  void calibrate() {
    method.run();
    while (time() * inner < 2e-4) inner *= 2;
  }
};

}  // namespace

Pages::Pages(std::size_t bytes, const std::vector<std::byte>& block) : Pages{bytes} {
  for (std::size_t done = 0; done < bytes; done += block.size())
    std::memcpy(data() + done, block.data(), std::min(block.size(), bytes - done));
}

std::vector<Speed> in_turns(const std::vector<Turn>& methods, int repeats, int threads, std::size_t bytes) {
  std::vector<Clocked> all;
  for (const Turn& m : methods) all.push_back({m});
  for (Clocked& m : all) m.calibrate();
  for (int repeat = 0; repeat < repeats; ++repeat)
    for (Clocked& m : all) {
      // Threads of the method before (OpenMP's) spin for a while in case there is more to do.
      if (threads > 1) std::this_thread::sleep_for(std::chrono::milliseconds{10});
      if (bytes <= (std::size_t{1} << 24)) m.method.run();  // back into the caches
      m.seconds.push_back(m.time());
    }
  std::vector<Speed> speeds;
  for (Clocked& m : all) speeds.push_back(summary(m.method.name, m.method.verified, std::move(m.seconds)));
  return speeds;
}

void read_all(const void* x, std::size_t bytes, int threads) {
  const auto* first = static_cast<const std::byte*>(x);
  const std::size_t part = std::size_t{1} << 18;
  cpu::for_each_task(threads, (bytes - 1) / part + 1, [&](std::size_t k) {
    sink = peer::read(first + k * part, std::min(part, bytes - k * part));
  });
}

void copy_all(const std::byte* x, std::byte* out, std::size_t bytes, int threads) {
  // Long parts, which memcpy writes past the caches.
  const std::size_t parts = static_cast<std::size_t>(std::max(threads, 1)), part = (bytes - 1) / parts + 1;
  cpu::for_each_task(threads, parts, [&](std::size_t k) {
    const std::size_t first = std::min(k * part, bytes);
    std::memcpy(out + first, x + first, std::min(part, bytes - first));
  });
}

}  // namespace samesum::harness
