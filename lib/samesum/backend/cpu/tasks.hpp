/// A queue of tasks for the threads of a call.
#pragma once

#include <atomic>

#include "samesum/backend/cpu/threads.hpp"

namespace samesum::cpu {

/// Calls task(k) once for each k < tasks, on up to `threads` threads, in no particular order.
template <class Task> void for_each_task(int threads, std::size_t tasks, Task task) {
  if (threads == 1) {
    for (std::size_t k = 0; k < tasks; ++k) task(k);
    return;
  }
  std::atomic<std::size_t> next{0};
  on_threads(threads, [&] {
    for (std::size_t k; (k = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) task(k);
  });
}

/// Leaves per task. A thread sums and merges an aligned group of them, which is a subtree.
inline constexpr std::size_t group = 16;

}  // namespace samesum::cpu
