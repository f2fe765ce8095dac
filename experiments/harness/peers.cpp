#include "harness/peers.hpp"

#include <limits>
#include <stdexcept>

#include "harness/peers/reductions.hpp"
#include "harness/peers/sums.hpp"

namespace samesum::harness {
namespace {

template <class F> using PeerSum = F (*)(const F*, std::size_t, int);

template <class F, PeerSum<F> sum>
void append(std::vector<Entry>& all, std::string_view name, Promise promise) {
  Entry e = describe_peer<F>(name, promise);
  e.code.sum[Formats::index_of<F>()] = [](const void* x, std::size_t n, int threads) -> std::uint64_t {
    return to_bits(sum(static_cast<const F*>(x), n, threads));
  };
  all.push_back(e);
}
template <PeerSum<float> in_fp32, PeerSum<double> in_fp64>
void append(std::vector<Entry>& all, std::string_view name, Promise promise) {
  append<fp32, in_fp32>(all, name, promise);
  append<fp64, in_fp64>(all, name, promise);
}

/// A loop, also one in a library, adds in the order that the compiled program fixes. std::reduce may add in
/// any order (its specification is GENERALIZED_SUM), and so may libraries that assign work to threads
/// dynamically.
std::vector<Entry> sums() {
  std::vector<Entry> all;
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

#ifdef SAMESUM_EIGEN
template <class F> void append_eigen(std::vector<Entry>& all) {
  all.push_back(describe_batch_peer<Dot, F>("eigen/dot", [](HostRun& work) {
    const Call& c = work.call;
    *static_cast<F*>(c.out.data) =
        peer::eigen_dot(static_cast<const F*>(c.x.data), static_cast<const F*>(c.y.data), c.layout.n);
  }));
  all.push_back(describe_batch_peer<Norm, F>("eigen/norm", [](HostRun& work) {
    const Call& c = work.call;
    *static_cast<F*>(c.out.data) = peer::eigen_norm(static_cast<const F*>(c.x.data), c.layout.n);
  }));
  all.push_back(describe_batch_peer<Prod, F>("eigen/prod", [](HostRun& work) {
    const Call& c = work.call;
    *static_cast<F*>(c.out.data) = peer::eigen_prod(static_cast<const F*>(c.x.data), c.layout.n);
  }));
  all.push_back(describe_batch_peer<samesum::Sum, F>("eigen/sum", [](HostRun& work) {
    const Call& c = work.call;
    const auto* x = static_cast<const F*>(c.x.data);
    auto* sums = static_cast<F*>(c.out.data);
    if (c.layout.inner == 1)
      peer::eigen_row_sums(x, c.layout.outer, c.layout.n, sums);
    else
      peer::eigen_column_sums(x, c.layout.n, c.layout.inner, sums);
  }));
}
#endif

template <class F> void append_std_and_boost(std::vector<Entry>& all) {
  all.push_back(describe_batch_peer<Dot, F>("std/dot", [](HostRun& work) {
    const Call& c = work.call;
    *static_cast<F*>(c.out.data) =
        peer::std_dot(static_cast<const F*>(c.x.data), static_cast<const F*>(c.y.data), c.layout.n);
  }));
  all.push_back(describe_batch_peer<Mean, F>("boost/mean", [](HostRun& work) {
    const Call& c = work.call;
    *static_cast<F*>(c.out.data) = c.layout.n == 0
                                       ? std::numeric_limits<F>::quiet_NaN()
                                       : peer::boost_mean(static_cast<const F*>(c.x.data), c.layout.n);
  }));
  all.push_back(describe_batch_peer<MeanAndVariance, F>("boost/moments", [](HostRun& work) {
    const Call& c = work.call;
    const F* x = static_cast<const F*>(c.x.data);
    F* out = static_cast<F*>(c.out.data);
    out[0] = out[1] = std::numeric_limits<F>::quiet_NaN();
    if (c.layout.n > 0)
      out[0] = peer::boost_mean(x, c.layout.n), out[1] = peer::boost_variance(x, c.layout.n);
  }));
}

template <class F, void (*scan)(const F*, std::size_t, F*)>
void append_scan(std::vector<Entry>& all, std::string_view name) {
  all.push_back(describe_batch_peer<CumSum, F>(name, [](HostRun& work) {
    const Call& c = work.call;
    for (std::size_t row = 0; row < c.layout.outer; ++row)
      scan(static_cast<const F*>(c.x.data) + row * c.layout.outer_stride, c.layout.n,
           static_cast<F*>(c.out.data) + row * c.out.row_stride);
  }));
}

template <class F> void append_scans_and_sums_by_key(std::vector<Entry>& all) {
  append_scan<F, peer::std_inclusive_scan<F>>(all, "std/inclusive_scan");
  append_scan<F, peer::std_partial_sum<F>>(all, "std/partial_sum");
  all.push_back(describe_batch_peer<ScatterAdd, F>("loop/by_key", [](HostRun& work) {
    const Call& c = work.call;
    with_key_format(c.keys.format, [&]<class K>() {
      if constexpr (std::is_same_v<K, std::uint32_t>)
        peer::loop_by_key(static_cast<const F*>(c.x.data), static_cast<const K*>(c.keys.data), c.layout.n,
                          c.layout.inner, bins(c), static_cast<F*>(c.out.data));
      else
        throw std::invalid_argument{"loop/by_key takes keys of uint32"};
    });
  }));
}

std::vector<Entry> batches() {
  std::vector<Entry> all;
  append_std_and_boost<fp32>(all);
  append_std_and_boost<fp64>(all);
  append_scans_and_sums_by_key<fp32>(all);
  append_scans_and_sums_by_key<fp64>(all);
#ifdef SAMESUM_EIGEN
  append_eigen<fp32>(all);
  append_eigen<fp64>(all);
#endif
  all.push_back(describe_batch_peer<Softmax, fp32>("loop/softmax", [](HostRun& work) {
    const Call& c = work.call;
    peer::softmax_in_three_passes(static_cast<const float*>(c.x.data), c.layout.outer, c.layout.n,
                                  static_cast<float*>(c.out.data));
  }));
  return all;
}

class Peers final : public Backend {
 public:
  std::string_view name() const override { return "peer"; }
  std::vector<Entry> entries() const override { return sums(); }
};

/// The backend "cuda" of the library runs the peers of the GPU.
MethodTable table_of(const std::vector<Entry>& on_cpu, const std::vector<Entry>& on_gpu) {
  static const Peers backend;
  MethodTable table;
  table.add(on_cpu, backend);
  table.add(on_gpu, samesum::backend<"cuda">());
  return table;
}

}  // namespace

std::span<const Method> peers() {
  static const MethodTable table = table_of(sums(), gpu_peers().sums);
  return table.methods;
}

std::span<const Method> peers_of_batches() {
  static const MethodTable table = table_of(batches(), gpu_peers().batches);
  return table.methods;
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
      {"openmp", "the compiler with which samesum was configured has no OpenMP"},
#endif
  };
  return table;
}

}  // namespace samesum::harness
