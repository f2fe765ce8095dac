#pragma once

#include <cstddef>
#include <functional>

namespace samesum::cpu {

/// The most threads of a call for each processor, however many are asked for.
inline constexpr std::size_t most_threads_per_processor = 4;

/// Number of threads for a call: `asked`, or for 0 one for each 2^17 elements and at most one for each
/// processor; never more than there are tasks, nor than four for each processor.
int thread_count(int asked, std::size_t n, std::size_t tasks);

/// Runs work() on that many threads, this one included, each in the standard floating-point environment, and
/// waits for all. The others come from a pool, which grows to what was asked for at most and lives as long
/// as the process. Where they are busy, or the system gives fewer, fewer run: work takes tasks from a queue,
/// so all of them are done anyway. It must not throw. The pool's threads keep the processor affinity of the
/// call that made them.
void on_threads(int threads, const std::function<void()>& work);

}  // namespace samesum::cpu
