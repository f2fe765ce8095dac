#include "harness/peers.hpp"

#include <algorithm>
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

/// The rows that a peer reduces one by one, as its users do.
template <class F> struct Row {
  const F *x, *y;
  std::size_t n;
  F* out;  ///< where the results of the row begin
};

/// Runs a call in rows: Reduce, a function without state, reduces each of them.
template <class F, class Reduce> void run_rows(HostRun& work) {
  const Call& c = work.call;
  const auto *x = static_cast<const F*>(c.x.data), *y = static_cast<const F*>(c.y.data);
  const std::size_t apart = c.method->has_result_per_element ? c.out.stride_of(c.layout)
                                                             : static_cast<std::size_t>(c.method->results);
  for (std::size_t o = 0; o < c.layout.outer; ++o) {
    const std::size_t first = c.layout.first(o);
    Reduce{}({x + first, y ? y + first : nullptr, c.layout.n, static_cast<F*>(c.out.data) + o * apart});
  }
}

/// Appends a peer that reduces rows one by one.
template <class Operation, class F, class Reduce>
void append_rows(std::vector<Entry>& all, std::string_view name, Reduce) {
  all.push_back(describe_batch_peer<Operation, F>(name, run_rows<F, Reduce>));
}

/// The peers on a CPU that take columns, too.
constexpr std::string_view of_columns[] = {"eigen/sum", "blas/gemv"};

template <class F>
using ArraySums = void (*)(const F*, std::size_t rows, std::size_t columns, std::size_t apart, F* sums);

/// Runs a sum of rows, or of columns, with a function for each of them.
template <class F, ArraySums<F> of_rows, ArraySums<F> of_columns> void run_sums(HostRun& work) {
  const Call& c = work.call;
  const Layout& l = c.layout;
  const auto* x = static_cast<const F*>(c.x.data);
  auto* sums = static_cast<F*>(c.out.data);
  if (l.inner == 1 && l.stride == 1) return of_rows(x, l.outer, l.n, l.outer_stride, sums);
  for (std::size_t o = 0; o < l.outer; ++o)
    of_columns(x + l.first(o), l.n, l.inner, l.stride, sums + o * l.inner);
}

#ifdef SAMESUM_EIGEN
template <class F> void append_eigen(std::vector<Entry>& all) {
  append_rows<Dot, F>(all, "eigen/dot", [](const Row<F>& r) { *r.out = peer::eigen_dot(r.x, r.y, r.n); });
  append_rows<Norm, F>(all, "eigen/norm", [](const Row<F>& r) { *r.out = peer::eigen_norm(r.x, r.n); });
  append_rows<Prod, F>(all, "eigen/prod", [](const Row<F>& r) { *r.out = peer::eigen_prod(r.x, r.n); });
  all.push_back(describe_batch_peer<samesum::Sum, F>(
      "eigen/sum", run_sums<F, peer::eigen_row_sums<F>, peer::eigen_column_sums<F>>));
}
#endif

#ifdef SAMESUM_CBLAS
template <class F> void append_blas(std::vector<Entry>& all) {
  append_rows<Dot, F>(all, "blas/dot", [](const Row<F>& r) { *r.out = peer::blas_dot(r.x, r.y, r.n); });
  append_rows<SumOfMagnitudes, F>(all, "blas/asum",
                                  [](const Row<F>& r) { *r.out = peer::blas_asum(r.x, r.n); });
  append_rows<Norm, F>(all, "blas/norm", [](const Row<F>& r) { *r.out = peer::blas_norm(r.x, r.n); });
  all.push_back(describe_batch_peer<samesum::Sum, F>(
      "blas/gemv", run_sums<F, peer::blas_row_sums<F>, peer::blas_column_sums<F>>));
}
#endif

template <class F> F boost_mean(const Row<F>& r) {
  return r.n == 0 ? std::numeric_limits<F>::quiet_NaN() : peer::boost_mean(r.x, r.n);
}
template <class F> F boost_variance(const Row<F>& r) {
  return r.n == 0 ? std::numeric_limits<F>::quiet_NaN() : peer::boost_variance(r.x, r.n);
}

template <class F> void append_std_and_boost(std::vector<Entry>& all) {
  append_rows<Dot, F>(all, "std/dot", [](const Row<F>& r) { *r.out = peer::std_dot(r.x, r.y, r.n); });
  append_rows<Mean, F>(all, "boost/mean", [](const Row<F>& r) { *r.out = boost_mean(r); });
  append_rows<MeanAndVariance, F>(all, "boost/moments", [](const Row<F>& r) {
    r.out[0] = boost_mean(r);
    r.out[1] = boost_variance(r);
  });
}

template <class F> void append_scans_and_sums_by_key(std::vector<Entry>& all) {
  append_rows<CumSum, F>(all, "std/inclusive_scan",
                         [](const Row<F>& r) { peer::std_inclusive_scan(r.x, r.n, r.out); });
  append_rows<CumSum, F>(all, "std/partial_sum",
                         [](const Row<F>& r) { peer::std_partial_sum(r.x, r.n, r.out); });
  all.push_back(describe_batch_peer<ScatterAdd, F>("loop/by_key", [](HostRun& work) {
    const Call& c = work.call;
    with_key_format(c.keys.format, [&]<class K>() {
      if constexpr (std::is_same_v<K, std::uint32_t>)
        peer::loop_by_key(static_cast<const F*>(c.x.data), static_cast<const K*>(c.keys.data), c.layout.n,
                          c.layout.inner, bins(c), static_cast<F*>(c.out.data));
      else
        throw std::invalid_argument{"samesum: loop/by_key takes keys of uint32"};
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
#ifdef SAMESUM_CBLAS
  append_blas<fp32>(all);
  append_blas<fp64>(all);
#endif
  append_rows<Softmax, fp32>(all, "loop/softmax",
                             [](const Row<fp32>& r) { peer::softmax_in_three_passes(r.x, 1, r.n, r.out); });
  return all;
}

class Peers final : public Backend {
 public:
  std::string_view name() const override { return "peer"; }
  std::vector<Entry> entries() const override { return sums(); }
  void run(HostRun& run) const override {
    if (const std::string why = refusal(*run.call.method, run.call.layout); !why.empty())
      refuse(*run.call.method, why + "; use such a layout or a method of samesum");
    Backend::run(run);
  }
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

std::string refusal(const Method& peer, const Layout& layout) {
  if (layout.offsets) return "it takes no segments";
  if (!peer.accepts(*peer.format, layout)) return "it reduces one vector per call";
  const auto is = [&](std::string_view called) { return peer.name.starts_with(std::string{called} + '/'); };
  const std::size_t longest =
      std::max({layout.outer, layout.n, layout.inner, layout.outer_stride, layout.stride});
  if (is("blas") && longest > std::numeric_limits<int>::max()) return "its lengths have 32 bits";
  const bool takes_columns = peer.takes_keys || std::ranges::any_of(of_columns, is);
  const bool has_rows = layout.inner == 1 && (layout.stride == 1 || layout.n <= 1);
  return has_rows || takes_columns ? "" : "it reduces contiguous elements: vectors and rows";
}

bool is_parallel(const Method& peer) {
  return peer.order == "tbb" || peer.order == "std_par" || peer.order == "openmp";
}

bool can_be_recorded(const Method& peer) { return !peer.name.starts_with("thrust/"); }

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
#ifndef SAMESUM_CBLAS
      {"blas", "OpenBLAS was not found when samesum was configured (libopenblas-serial-dev)"},
#endif
#ifndef SAMESUM_OPENMP
      {"openmp", "the compiler with which samesum was configured has no OpenMP"},
#endif
  };
  return table;
}

}  // namespace samesum::harness
