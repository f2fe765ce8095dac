/// Support for the tests of the ladder: runs every kernel at lengths near the sizes of warps, blocks and
/// tiles.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "ladder/judge.hpp"
#include "ladder/readings.hpp"
#include "samesum/samesum.hpp"

namespace samesum::ladder {

/// Returns n multiples of 2^-24 in [0, 1).
inline std::vector<float> elements(std::size_t n, std::uint32_t seed) {
  std::mt19937 random{seed};
  std::vector<float> x(n);
  for (float& v : x) v = static_cast<float>(random() >> 8) * 0x1p-24f;
  return x;
}

inline const std::vector<std::size_t>& lengths() {
  static const std::vector<std::size_t> all{1, 2, 3, 31, 1000, 2048, 4097, 1000003};
  return all;
}

/// Returns the smallest length >= n that the kernel accepts.
inline std::size_t length_of(const Kernel& k, std::size_t n) {
  return (n + k.multiple - 1) / k.multiple * k.multiple;
}

inline void expect_right_of(Workbench& bench, const Kernel& k, std::size_t n, int runs) {
  if (!k.demonstration.empty()) {
    EXPECT_EQ(bench.problem(k, n), "") << k.method << ' ' << k.setting;
    return;
  }
  if (n > k.most) return;
  std::vector<float> answers;
  for (int run = 0; run < runs; ++run) answers.push_back(bench.sum(k, n));
  const Judgement j = judge(k, answers, bench.x(n), harness::Truth{Values{bench.x(n)}});
  EXPECT_TRUE(j.holds()) << k.method << ' ' << k.setting << ", n = " << n << ": " << answers[0]
                         << " has an error of " << j.error_ulps << " ulps; " << j.distinct_bits
                         << " different answers";
}

/// Expects every kernel to be correct at all lengths that it accepts.
inline void expect_right(const harness::Place& place, const std::vector<Kernel>& kernels,
                         std::size_t longest = 1 << 20, int runs = 3) {
  for (const std::size_t n : lengths()) {
    if (n > longest) continue;
    const std::size_t room = n + (n < 100000 ? 32768 : 4096);  // for lengths that are rounded up
    Workbench bench{place, elements(room, static_cast<std::uint32_t>(n)), room, room};
    for (const Kernel& k : kernels) {
      if (k.demonstration == "ceilings" && n > 5000) continue;  // half a million additions per element
      if (const std::size_t m = length_of(k, n); m <= room) expect_right_of(bench, k, m, runs);
    }
  }
}

/// Expects every kernel to keep its bound for elements of both signs, whose errors are large relative to the
/// sum.
inline void expect_right_of_cancelling(const harness::Place& place, const std::vector<Kernel>& kernels) {
  for (const std::size_t n : {std::size_t{2}, std::size_t{999}, std::size_t{2048}, std::size_t{70001}}) {
    std::vector<float> x = elements(n, 11);
    for (std::size_t i = 0; i + 1 < n; i += 2) x[i + 1] = -x[i] * (i % 3 == 0 ? 1 : 1 - 0x1p-20f);
    Workbench bench{place, x, n, 0};
    for (const Kernel& k : kernels)
      if (k.demonstration.empty()) expect_right_of(bench, k, n, 3);
  }
}

/// Expects softmax to be correct for ascending rows, descending rows, and rows that one element dominates.
inline void expect_right_softmax(const harness::Place& place, const std::vector<Kernel>& kernels) {
  for (const Kernel& k : kernels) {
    if (k.demonstration != "softmax") continue;
    const std::size_t columns = k.multiple;
    const std::vector<std::size_t> large{0, 1, 511, 512, columns / 2 + 1, columns - 1};
    std::vector<float> x((2 + large.size()) * columns);
    for (std::size_t i = 0; i < columns; ++i) {
      x[i] = 30 * static_cast<float>(i) / static_cast<float>(columns);
      x[2 * columns - 1 - i] = x[i];
    }
    for (std::size_t r = 0; r < large.size(); ++r) x[(2 + r) * columns + large[r]] = 25;
    EXPECT_EQ((Workbench{place, x, x.size(), x.size()}.problem(k, x.size())), "") << k.method;
  }
}

}  // namespace samesum::ladder
