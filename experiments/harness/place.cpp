#include "harness/place.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "harness/median.hpp"
#include "harness/peers/sums.hpp"
#include "harness/random.hpp"
#include "samesum/backend/cpu/schedule/schedule.hpp"

namespace samesum::harness {
namespace {

/// Brings the elements into a random order (Fisher and Yates 1938, in the form of Durstenfeld 1964).
void shuffle(std::vector<std::size_t>& order, Random& random) {
  for (std::size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[random.below(left)]);
}

volatile std::uint64_t sink = 0;

class Cpu final : public Place {
  std::shared_ptr<std::byte> memory(std::size_t bytes) const override {
    constexpr std::align_val_t page{4096};
    return {new (page) std::byte[bytes], [](std::byte* p) { operator delete[](p, page); }};
  }

  void copy(void* to, const void* from, std::size_t bytes, std::size_t count,
            std::size_t stride) const override {
    for (std::size_t i = 0; i < count; ++i)
      std::memcpy(static_cast<std::byte*>(to) + i * bytes, static_cast<const std::byte*>(from) + i * stride,
                  bytes);
  }

  void finish(const std::string&) const override {}

  BoundCall bind(const Call& call) const override {
    const Method& m = *call.method;
    if (is_vector(call.layout) && m.results == 1 && !m.takes_keys && !m.returns_index &&
        !m.has_result_per_element)
      return [&m, call](std::size_t offset) {
        const Call at = moved(call, offset);
        const Number sum = m.inputs == 2 ? m(at.x, at.y, at.options) : m(at.x, at.options);
        std::memcpy(call.out.data, &sum.bits, sizeof sum.bits);
      };
    return [call](std::size_t offset) { run(moved(call, offset)); };
  }

  BoundCall recorded(const BoundCall&, int) const override {
    throw std::logic_error{"a CPU has no CUDA graphs"};
  }

  void read_all(const void* data, std::size_t bytes, int threads) const override {
    const auto* x = static_cast<const std::byte*>(data);
    const std::size_t part = std::size_t{1} << 18;
    cpu::for_each_task(threads, (bytes - 1) / part + 1, [&](std::size_t k) {
      sink = peer::read(x + k * part, std::min(part, bytes - k * part));
    });
  }

  void copy_all(const void* from, void* to, std::size_t bytes, int threads) const override {
    const auto* x = static_cast<const std::byte*>(from);
    auto* out = static_cast<std::byte*>(to);
    // One long part per thread: memcpy writes long parts past the caches.
    const std::size_t parts = static_cast<std::size_t>(std::max(threads, 1)), part = (bytes - 1) / parts + 1;
    cpu::for_each_task(threads, parts, [&](std::size_t k) {
      const std::size_t first = std::min(k * part, bytes);
      std::memcpy(out + first, x + first, std::min(part, bytes - first));
    });
  }

  double time(const std::function<void()>& runs) const override {
    const auto start = std::chrono::steady_clock::now();
    runs();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  int warm_up() const override { return 0; }  // runs_at_once has already run each turn

  /// Number of runs that take 0.2 ms, because reading the clock takes some 30 ns. The first run, which may
  /// find nothing in the caches, decides only if it takes far longer.
  int runs_at_once(const Turn& turn, const Rounds&) const override {
    int runs = 1;
    const auto all = [&] {
      for (int i = 0; i < runs; ++i) turn.run(0);
    };
    if (time(all) > 1e-2) return 1;
    while (time(all) < 2e-4) runs *= 2;
    return runs;
  }

  void prepare(const Turn& turn, const Rounds& rounds) const override {
    // Threads of the previous method (OpenMP) spin for a while after their work.
    if (rounds.threads > 1) std::this_thread::sleep_for(std::chrono::milliseconds{10});
    if (rounds.bytes <= (std::size_t{1} << 24)) turn.run(0);  // loads the data into the caches
  }
};

}  // namespace

std::vector<Speed> Place::in_turns(const std::vector<Turn>& turns, const Rounds& rounds) const {
  std::vector<int> at_once;
  for (const Turn& turn : turns) at_once.push_back(runs_at_once(turn, rounds));
  std::vector<std::vector<double>> seconds(turns.size());
  std::vector<std::size_t> order(turns.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random random{rounds.repeats.seed};
  std::size_t next = 0;
  for (int round = -warm_up(); round < rounds.repeats.rounds; ++round) {
    shuffle(order, random);
    for (const std::size_t i : order) {
      prepare(turns[i], rounds);
      const double taken = time([&] {
        for (int run = 0; run < at_once[i]; ++run) {
          turns[i].run(next * rounds.stride);
          if (++next == rounds.places) next = 0;
        }
      });
      if (round >= 0) seconds[i].push_back(taken / (at_once[i] * turns[i].calls));
    }
  }
  std::vector<Speed> speeds;
  for (std::size_t i = 0; i < turns.size(); ++i)
    speeds.push_back(
        {turns[i].name, median(seconds[i]), turns[i].verified, std::move(seconds[i]), turns[i].grid});
  return speeds;
}

std::unique_ptr<Place> cpu_place() { return std::make_unique<Cpu>(); }

}  // namespace samesum::harness
