#include "ladder/judge.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "harness/text.hpp"
#include "samesum/bound/bound.hpp"

namespace samesum::ladder {

namespace {

/// n elements that repeat x.
std::vector<float> repeated(std::span<const float> x, std::size_t n) {
  std::vector<float> all(n);
  for (std::size_t i = 0; i < n; i += x.size())
    std::copy_n(x.begin(), std::min(x.size(), n - i), all.begin() + static_cast<std::ptrdiff_t>(i));
  return all;
}

std::shared_ptr<float> floats(const harness::Place& place, std::size_t n) {
  return std::reinterpret_pointer_cast<float>(place.memory(n * sizeof(float)));
}

constexpr float not_written = std::numeric_limits<float>::quiet_NaN();

}  // namespace

Workbench::Workbench(const harness::Place& place, std::span<const float> block, std::size_t room,
                     std::size_t results)
    : place_{place},
      room_{room},
      host_{repeated(block, room)},
      partitioned_{host_.begin(), host_.begin() + static_cast<std::ptrdiff_t>(std::min(room, results))},
      x_{floats(place, room)},
      y_{floats(place, partitioned_.size())},
      out_{floats(place, std::max<std::size_t>(results, most_of_block))},
      scratch_{floats(place, most_of_block)} {
  std::ranges::stable_partition(partitioned_, [](float v) { return v < 0.5f; });
  place.copy(x_.get(), host_.data(), host_.size() * sizeof(float));
  place.copy(y_.get(), partitioned_.data(), partitioned_.size() * sizeof(float));
  place.finish("filling memory");
}

float Workbench::sum(const Kernel& kernel, std::size_t n) const {
  place_.copy(out_.get(), &not_written, sizeof(float));
  kernel.run(task(n));
  place_.finish(kernel.method);
  float sum = 0;
  place_.copy(&sum, out_.get(), sizeof(float));
  return sum;
}

std::string Workbench::problem(const Kernel& kernel, std::size_t n) const {
  if (kernel.expected == nullptr) return "";
  std::vector<float> got(n, not_written), expected(n);
  place_.copy(out_.get(), got.data(), n * sizeof(float));
  kernel.run(task(n));
  place_.finish(kernel.method);
  place_.copy(got.data(), out_.get(), n * sizeof(float));
  kernel.expected({host_.data(), partitioned_.data(), expected.data(), nullptr, n}, kernel.setting);
  for (std::size_t i = 0; i < n; ++i) {
    const bool right =
        kernel.tolerance > 0
            ? std::abs(double{got[i]} - double{expected[i]}) <= kernel.tolerance * std::abs(expected[i])
            : std::bit_cast<std::uint32_t>(got[i]) == std::bit_cast<std::uint32_t>(expected[i]);
    if (!right)
      return kernel.method + ", n = " + std::to_string(n) + ": element " + std::to_string(i) + " is " +
             harness::shortest_decimal(Number::of(got[i])) + " instead of " +
             harness::shortest_decimal(Number::of(expected[i]));
  }
  return "";
}

Judgement judge(const Kernel& kernel, const std::vector<float>& answers, std::span<const float> x,
                const harness::Truth& truth) {
  std::set<std::uint32_t> different;
  for (const float v : answers) different.insert(std::bit_cast<std::uint32_t>(v));
  Judgement verdict{answers.size(), different.size(), answers[0], 0, 0, true, false, {}};
  const double flushed = kernel.atomics ? kernel.atomics(x.size()) * 0x1p-126 : 0;
  const double of_order = kernel.additions
                              ? rounded_up(rounded_up(gamma(kernel.additions(x.size()), 0x1p-24) *
                                                      truth.magnitudes_rounded_up()) +
                                           flushed)
                              : 0;
  for (const std::uint32_t bits : different) {
    const Number value = Number::of(std::bit_cast<float>(bits));
    const double bound = kernel.additions ? of_order : exact_bound(value), ulps = truth.error_of(value).ulps;
    if (ulps >= verdict.error_ulps) {  // the error of NaN is infinite
      verdict.error_ulps = ulps;
      verdict.bound = bound;
    }
    verdict.within_bound = verdict.within_bound && truth.within(bound, value);
  }
  verdict.broken = different.size() > 1 && kernel.promise >= Promise::run_to_run;
  if (kernel.reading != nullptr)
    verdict.as_read = different == std::set{std::bit_cast<std::uint32_t>(kernel.reading(x, truth))};
  return verdict;
}

}  // namespace samesum::ladder
