#include "harness/key_sets.hpp"

#include <algorithm>
#include <stdexcept>

#include "harness/random.hpp"
#include "harness/text.hpp"

namespace samesum::harness {
namespace {

std::uint32_t key_of(double place, std::size_t bins) {
  return static_cast<std::uint32_t>(std::min(static_cast<std::size_t>(place), bins - 1));
}

double tenth_power(double x) {
  const double square = x * x, fourth = square * square;
  return fourth * fourth * square;
}

/// The tenth root of x >= 1, by Newton's method, which converges from above.
double tenth_root(double x) {
  double root = x;
  for (double next = x;;) {
    const double square = root * root, fourth = square * square;
    next = root - (root - x / (fourth * fourth * root)) / 10;
    if (!(next < root)) return root;
    root = next;
  }
}

}  // namespace

std::span<const KeySet> key_sets() {
  using Fill = std::span<std::uint32_t>;
  static const std::vector<KeySet> all{
      {"uniform", "random keys, all equally likely",
       [](Fill keys, std::size_t bins, std::uint64_t seed) {
         Random random{seed};
         for (std::uint32_t& key : keys) key = static_cast<std::uint32_t>(random.below(bins));
       }},
      {"skewed", "bins u^3, rounded down, for uniform u in [0, 1)",
       [](Fill keys, std::size_t bins, std::uint64_t seed) {
         Random random{seed};
         for (std::uint32_t& key : keys) {
           const double u = random.uniform();
           key = key_of(u * u * u * static_cast<double>(bins), bins);
         }
       }},
      {"zipf", "x - 1, rounded down, with a density of x^-1.1 on [1, bins + 1)",
       [](Fill keys, std::size_t bins, std::uint64_t seed) {
         Random random{seed};
         const double range = 1 - 1 / tenth_root(static_cast<double>(bins) + 1);
         for (std::uint32_t& key : keys)
           key = key_of(1 / tenth_power(1 - random.uniform() * range) - 1, bins);
       }},
      {"sorted", "ascending, each key equally often", [](Fill keys, std::size_t bins, std::uint64_t) {
         const std::size_t n = keys.size();
         for (std::size_t i = 0; i < n; ++i)
           keys[i] = static_cast<std::uint32_t>(static_cast<unsigned __int128>(i) * bins / n);
       }}};
  return all;
}

const KeySet& key_set(const std::string& name) {
  const std::span<const KeySet> all = key_sets();
  const auto found = std::ranges::find(all, name, &KeySet::name);
  if (found == all.end()) throw std::out_of_range{"no keys are called " + name};
  return *found;
}

std::string key_sets_in_words() {
  std::string text;
  for (const KeySet& k : key_sets()) text += "\n  " + left(k.name, 15) + k.meaning;
  return text;
}

}  // namespace samesum::harness
