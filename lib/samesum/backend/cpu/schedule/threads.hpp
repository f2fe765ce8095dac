/// Threads of the CPU backend: how many a call uses, and the pool that they come from.
#pragma once

#include <cstddef>
#include <functional>

namespace samesum::cpu {

/// Upper limit on the threads of a call, per processor.
inline constexpr std::size_t most_threads_per_processor = 4;

/// Number of threads for a call with n elements: `asked`, or, if that is 0, one per 2^17 elements and at most
/// one per processor. Never more than `tasks`, nor than four per processor.
int thread_count(int asked, std::size_t n, std::size_t tasks);

/// Runs work() on `threads` threads, the caller included, each in the standard floating-point environment,
/// and waits for all of them. The other threads come from a pool, which grows to the largest number requested
/// and lives as long as the process. If they are busy, or the system cannot create them, fewer threads run
/// work(); since work() takes tasks from a queue, all tasks are done nevertheless. If work() throws on any
/// thread, the first exception reaches the caller when all threads are done. The threads of the pool keep the
/// processor affinity of the call that created them.
void on_threads(int threads, const std::function<void()>& work);

}  // namespace samesum::cpu
