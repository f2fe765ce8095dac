/// oneTBB, and the parallel algorithms of libstdc++, which use it.
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_reduce.h>
#include <tbb/task_arena.h>

#include <execution>
#include <map>
#include <numeric>

#include "harness/peers/sums.hpp"

namespace samesum::harness::peer {
namespace {

/// Runs a sum with `threads` threads, even if the machine has fewer, as the other methods do.
template <class Sum> auto with_threads(int threads, Sum sum) {
  static const ::tbb::global_control many{::tbb::global_control::max_allowed_parallelism, 256};
  static thread_local std::map<int, ::tbb::task_arena> arenas;  // making one takes longer than a short sum
  return arenas.try_emplace(threads, threads == 0 ? int{::tbb::task_arena::automatic} : threads)
      .first->second.execute(sum);
}

}  // namespace

template <class F> F tbb(const F* x, std::size_t n, int threads) {
  return with_threads(threads, [=] {
    return ::tbb::parallel_reduce(
        ::tbb::blocked_range<const F*>{x, x + n}, F{},
        [](const ::tbb::blocked_range<const F*>& range, F sum) {
          return std::reduce(range.begin(), range.end(), sum);
        },
        std::plus<F>{});
  });
}

template <class F> F std_par(const F* x, std::size_t n, int threads) {
  return with_threads(threads, [=] { return std::reduce(std::execution::par_unseq, x, x + n); });
}

template float tbb(const float*, std::size_t, int);
template double tbb(const double*, std::size_t, int);
template float std_par(const float*, std::size_t, int);
template double std_par(const double*, std::size_t, int);

}  // namespace samesum::harness::peer
