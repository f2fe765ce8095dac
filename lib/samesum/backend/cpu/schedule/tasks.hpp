/// A queue of tasks for the threads of a call.
#pragma once

#include <cstddef>

#include "samesum/backend/cpu/schedule/threads.hpp"

namespace samesum::cpu {

/// Calls call(task, k) once for each k < tasks, on up to `threads` threads, in no particular order.
void run_tasks(int threads, std::size_t tasks, void (*call)(void* task, std::size_t k), void* task);

/// Calls task(k) once for each k < tasks, on up to `threads` threads, in no particular order. The code of a
/// task is compiled once, for one thread and for several.
template <class Task> void for_each_task(int threads, std::size_t tasks, Task task) {
  run_tasks(
      threads, tasks, [](void* called, std::size_t k) { (*static_cast<Task*>(called))(k); }, &task);
}

/// Leaves per task. A thread sums and merges an aligned group of them, which is a subtree.
inline constexpr std::size_t group = 16;

}  // namespace samesum::cpu
