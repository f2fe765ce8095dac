#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "harness/peers.hpp"
#include "harness/peers/sums.hpp"
#include "harness/speed.hpp"
#include "samesum/backend/cpu/schedule.hpp"

namespace samesum::harness {
namespace {

double at(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(std::lround(share * static_cast<double>(sorted.size() - 1)))];
}

struct Method {
  std::string name;
  std::optional<bool> verified;
  std::function<void()> run;
  int inner = 1;  ///< runs that are timed together: the clock itself takes some 30 ns
  std::vector<double> seconds = {};
};

double timed(const Method& m) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < m.inner; ++i) m.run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / m.inner;
}

/// As many runs at once as take 0.2 ms, after what happens only once has happened.
void calibrate(Method& m) {
  m.run();
  while (timed(m) * m.inner < 2e-4) m.inner *= 2;
}

class CpuBench : public Bench {
 public:
  CpuBench(const FormatInfo& format, const Dataset& data, std::uint64_t seed, std::size_t most)
      : format_{format}, bytes_{most * format.bytes}, memory_{new (page) std::byte[bytes_]} {
    const std::vector<std::byte> block = speed_block(format, data, seed);
    for (std::size_t done = 0; done < bytes_; done += block.size())
      std::memcpy(&memory_[done], block.data(), std::min(block.size(), bytes_ - done));
  }

  std::vector<Speed> measure(const std::vector<const Variant*>& methods, std::size_t n,
                             SpeedOptions options) override {
    const Values x{format_, memory_.get(), n};
    std::vector<Method> all;
    for (const Variant* v : methods) {
      if (!v->run[format_.index]) continue;
      all.push_back({v->name, verified(*v, x, options), [=] { sink = (*v)(x, {options.threads}).bits; }});
    }
    all.push_back({"read", std::nullopt, [=] { read(x, options.threads); }});
    for (Method& m : all) calibrate(m);
    for (int repeat = 0; repeat < options.repeats; ++repeat)
      for (Method& m : all) {
        // Threads of the method before (OpenMP's) spin for a while in case there is more to do.
        if (options.threads > 1) std::this_thread::sleep_for(std::chrono::milliseconds{10});
        if (n * format_.bytes <= (std::size_t{1} << 24)) m.run();  // back into the caches
        m.seconds.push_back(timed(m));
      }
    std::vector<Speed> speeds;
    for (Method& m : all) speeds.push_back(summary(m.name, m.verified, std::move(m.seconds)));
    return speeds;
  }

 private:
  static std::optional<bool> verified(const Variant& v, Values x, SpeedOptions options) {
    if (is_peer(v) || v.promise < Promise::everywhere || x.size > (std::size_t{1} << 20)) return std::nullopt;
    return v(x, {options.threads}) == find(v.name.substr(0, v.name.find('@')) + "@reference")(x);
  }

  static void read(Values x, int threads) {
    const auto* first = static_cast<const std::byte*>(x.data);
    const std::size_t bytes = x.size * x.format->bytes, part = std::size_t{1} << 18;
    cpu::for_each_task(threads, (bytes - 1) / part + 1, [&](std::size_t k) {
      sink = peer::read(first + k * part, std::min(part, bytes - k * part));
    });
  }

  static constexpr std::align_val_t page{4096};
  struct Free {
    void operator()(std::byte* p) const { operator delete[](p, page); }
  };
  static inline volatile std::uint64_t sink = 0;

  const FormatInfo& format_;
  std::size_t bytes_;
  std::unique_ptr<std::byte[], Free> memory_;
};

}  // namespace

Speed summary(const std::string& method, std::optional<bool> verified, std::vector<double> seconds) {
  std::vector<double> sorted = seconds;
  std::ranges::sort(sorted);
  return {method, at(sorted, 0.5), at(sorted, 0.1), at(sorted, 0.9), verified, std::move(seconds)};
}

std::vector<std::byte> speed_block(const FormatInfo& format, const Dataset& data, std::uint64_t seed) {
  return data.make(format, std::size_t{1} << log2_speed_block, seed).bytes;
}

std::unique_ptr<Bench> cpu_bench(const FormatInfo& format, const Dataset& data, std::uint64_t seed,
                                 std::size_t most) {
  return std::make_unique<CpuBench>(format, data, seed, most);
}

}  // namespace samesum::harness
