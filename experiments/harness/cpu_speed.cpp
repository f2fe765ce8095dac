#include <algorithm>
#include <cmath>

#include "harness/cpu_turns.hpp"
#include "harness/peers.hpp"

namespace samesum::harness {
namespace {

double at(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(std::lround(share * static_cast<double>(sorted.size() - 1)))];
}

class CpuBench : public Bench {
 public:
  CpuBench(const FormatInfo& format, const Dataset& data, std::uint64_t seed, std::size_t most)
      : format_{format}, memory_{most * format.bytes, speed_block(format, data, seed)} {}

  std::vector<Speed> measure(const std::vector<const Variant*>& methods, std::size_t n,
                             SpeedOptions options) override {
    const Values x{format_, memory_.data(), n};
    const std::size_t bytes = n * format_.bytes;
    std::vector<Turn> all;
    for (const Variant* v : methods) {
      if (!v->run[format_.index]) continue;
      all.push_back({v->name, verified(*v, x, options), [=] { sink = (*v)(x, {options.threads}).bits; }});
    }
    all.push_back({"read", std::nullopt, [=] { read_all(x.data, bytes, options.threads); }});
    return in_turns(all, options.repeats, options.threads, bytes);
  }

 private:
  static std::optional<bool> verified(const Variant& v, Values x, SpeedOptions options) {
    if (is_peer(v) || v.promise < Promise::everywhere || x.size > (std::size_t{1} << 20)) return std::nullopt;
    return v(x, {options.threads}) == find(v.name.substr(0, v.name.find('@')) + "@reference")(x);
  }

  static inline volatile std::uint64_t sink = 0;

  const FormatInfo& format_;
  Pages memory_;
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
