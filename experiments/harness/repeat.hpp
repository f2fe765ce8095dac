/// The same again and again, to see whether it stays the same.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace samesum::harness {

/// More than there are cores for, so that they get in each other's way.
inline int several_threads() { return std::max(4, static_cast<int>(std::thread::hardware_concurrency())); }

/// run(0), run(1), …: at most so many, and none is begun after `patience` seconds, but for the first three.
template <class Run> auto repeat(std::size_t most, double patience, const Run& run) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  std::vector<decltype(run(most))> all;
  while (all.size() < most && (all.size() < 3 || seconds() < patience)) all.push_back(run(all.size()));
  return all;
}

}  // namespace samesum::harness
