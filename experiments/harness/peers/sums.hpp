/// Other people's sums on a CPU, for fp32 and fp64, compiled as their users compile them (-O3, -march=native
/// and what each file says). What is inline in such a file must not be shared with the rest of the program,
/// which runs on other processors and takes sums to be what they say: no header of samesum is included there,
/// and no peer lies in a header. `threads` is 0 where the library is to choose.
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

/// Reads everything and gives its bits OR-ed: the ceiling of all sums.
std::uint64_t read(const void* x, std::size_t bytes);

}  // namespace samesum::harness::peer
