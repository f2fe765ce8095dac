#include "harness/peers.hpp"

#include "harness/peers/sums.hpp"

namespace samesum::harness {
namespace {

template <class F> using Sum = F (*)(const F*, std::size_t, int);

template <class F, Sum<F> sum> std::uint64_t run(const void* data, std::size_t n, int threads) {
  return to_bits(sum(static_cast<const F*>(data), n, threads));
}

template <Sum<float> in_fp32, Sum<double> in_fp64>
void append(std::vector<Variant>& all, const std::string& name, Promise promise) {
  all.push_back(describe_peer<fp32>(name, promise));
  all.back().run[Formats::index_of<fp32>()] = run<fp32, in_fp32>;
  all.push_back(describe_peer<fp64>(name, promise));
  all.back().run[Formats::index_of<fp64>()] = run<fp64, in_fp64>;
}

/// A loop, and a library's one, add in an order that the compiled program has. std::reduce may add in any
/// order (its specification is GENERALIZED_SUM), and so may what shares the work out among threads as they
/// come.
std::vector<Variant> cpu_peers() {
  std::vector<Variant> all;
  append<peer::loop, peer::loop>(all, "loop", Promise::run_to_run);
  append<peer::fast_math, peer::fast_math>(all, "fast_math", Promise::run_to_run);
  append<peer::boost_kahan, peer::boost_kahan>(all, "boost_kahan", Promise::run_to_run);
  append<peer::std_reduce, peer::std_reduce>(all, "std_reduce", Promise::none);
#ifdef SAMESUM_EIGEN
  append<peer::eigen, peer::eigen>(all, "eigen", Promise::run_to_run);
#endif
#ifdef SAMESUM_TBB
  append<peer::tbb, peer::tbb>(all, "tbb", Promise::none);
  append<peer::std_par, peer::std_par>(all, "std_par", Promise::none);
#endif
#ifdef SAMESUM_OPENMP
  append<peer::openmp, peer::openmp>(all, "openmp", Promise::none);
#endif
  return all;
}

}  // namespace

std::span<const Variant> peers() {
  static const std::vector<Variant> table = [] {
    std::vector<Variant> all = cpu_peers();
    std::ranges::move(gpu_peers(), std::back_inserter(all));
    return all;
  }();
  return table;
}

std::span<const Absent> absent_peers() {
  static const std::vector<Absent> table{
#ifndef SAMESUM_EIGEN
      {"eigen", "Eigen was not found when samesum was configured (libeigen3-dev)"},
#endif
#ifndef SAMESUM_TBB
      {"tbb", "oneTBB was not found when samesum was configured (libtbb-dev)"},
      {"std_par",
       "oneTBB, which libstdc++ needs for it, was not found when samesum was configured (libtbb-dev)"},
#endif
#ifndef SAMESUM_OPENMP
      {"openmp", "the compiler that samesum was configured with has no OpenMP"},
#endif
  };
  return table;
}

}  // namespace samesum::harness
