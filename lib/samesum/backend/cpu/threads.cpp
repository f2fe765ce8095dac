#include "samesum/backend/cpu/threads.hpp"

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

#include "samesum/environment.hpp"

namespace samesum::cpu {

int thread_count(int asked, std::size_t n, std::size_t tasks) {
  const std::size_t automatic =
      std::clamp<std::size_t>(n >> 18, 1, std::max(1u, std::thread::hardware_concurrency()));
  const std::size_t wanted = asked > 0 ? static_cast<std::size_t>(asked) : automatic;
  return static_cast<int>(std::min(wanted, std::max<std::size_t>(tasks, 1)));
}

void on_threads(int threads, const std::function<void()>& work) {
  const auto guarded = [&work] {
    const FloatingPointEnvironment environment;
    work();
  };
  std::vector<std::jthread> helpers;
  try {
    for (int i = 1; i < threads; ++i) helpers.emplace_back(guarded);
  } catch (const std::system_error&) {
    // No more threads to be had: those that there are do the work.
  }
  guarded();
}

}  // namespace samesum::cpu
