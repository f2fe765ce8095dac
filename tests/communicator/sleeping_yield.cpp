/// A library for LD_PRELOAD: sched_yield sleeps. Ranks of Open MPI that wait yield in a loop, which takes the
/// processors from the ranks that they wait for, and from other tests. Shorter sleeps take more of them.
#include <ctime>

extern "C" int sched_yield() noexcept {
  constexpr timespec pause{0, 20'000};
  nanosleep(&pause, nullptr);
  return 0;
}
