/// Peers on a CPU: sums of other libraries for fp32 and fp64, compiled as their users compile them (-O3,
/// -march=native, and the flags of each file). The linker must not share inline functions of these files with
/// the rest of the program, which must run on other processors and needs strict arithmetic: the files include
/// no header of samesum, and no peer is defined in a header. If `threads` is 0, the library chooses the
/// number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace samesum::harness::peer {

template <class F> F loop(const F* x, std::size_t n, int threads);
template <class F> F std_reduce(const F* x, std::size_t n, int threads);
template <class F> F boost_kahan(const F* x, std::size_t n, int threads);
template <class F> F fast_math(const F* x, std::size_t n, int threads);
template <class F> F eigen(const F* x, std::size_t n, int threads);
template <class F> F tbb(const F* x, std::size_t n, int threads);
template <class F> F std_par(const F* x, std::size_t n, int threads);
template <class F> F openmp(const F* x, std::size_t n, int threads);

/// Reads everything and returns the bitwise OR: the ceiling of all sums.
std::uint64_t read(const void* x, std::size_t bytes);

}  // namespace samesum::harness::peer
