/// Repeats a run to find out whether its result varies.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace samesum::harness {

/// At least 4 threads, and as many as the machine has, so that they interfere with each other.
inline int several_threads() { return std::max(4, static_cast<int>(std::thread::hardware_concurrency())); }

/// Returns the results of run(0), run(1), …: at most `most` runs. After `patience` seconds no run starts,
/// except the first three.
template <class Run> auto repeat(std::size_t most, double patience, const Run& run) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  std::vector<decltype(run(most))> all;
  while (all.size() < most && (all.size() < 3 || seconds() < patience)) all.push_back(run(all.size()));
  return all;
}

}  // namespace samesum::harness
