/// Peers: sums and reductions of other libraries, for comparison. They are methods of the backend "peer", for
/// which samesum makes no promises.
#pragma once

#include <span>
#include <vector>

#include "samesum/catalogue/catalogue.hpp"
#include "samesum/catalogue/describe.hpp"

namespace samesum::harness {

/// Sums of vectors, such as "eigen/fp32@peer" and "cub/run_to_run/fp32@peer": first those of the CPU, then
/// those of the GPU, as far as they were compiled and can run on this machine. Their promise is that of their
/// documentation; their bound is that of a sum in any order. Peers of the CPU are compiled for the processor
/// of the build machine (-march=native), the best case for their users. Results name flags and versions.
std::span<const Method> peers();

/// Reductions of vectors and of rows, scans and sums by key, with infinite bounds: "eigen/dot/fp32@peer",
/// "cub/segmented/fp32@peer", "cub/inclusive_sum/fp32@peer", "loop/by_key/fp32@peer". Keys are uint32.
std::span<const Method> peers_of_batches();

/// Libraries for the CPU that were not compiled, and why.
std::span<const Absent> absent_peers();

/// Why a peer, on either processor, does not compute a call in this layout; empty if it does. A peer computes
/// the whole layout or refuses it: on a CPU it throws std::invalid_argument, on a GPU it returns
/// cudaErrorInvalidValue.
std::string refusal(const Method& peer, const Layout& layout);

/// Whether the peer uses the threads that a call has; others compute with one.
bool is_parallel(const Method& peer);

/// Whether a CUDA graph can record a call of the peer.
bool can_be_recorded(const Method& peer);

inline bool is_peer(const Method& m) { return m.backend == "peer"; }

/// Whether the method adds one element after the other in one thread. They are the slowest on long arrays.
inline bool is_sequential(const Method& m) { return m.order == "serial" || m.order.starts_with("canonical"); }

/// Whether the method is a compensated sum whose additions wait for each other. They are the slowest
/// of all.
inline bool compensates_in_turn(const Method& m) {
  const bool in_turn = is_sequential(m) || (m.order == "prefix" && m.backend == "cpu");
  const bool compensates = !m.accumulator.empty() && m.accumulator != "plain";
  return (in_turn && compensates) || m.order == "boost_kahan";
}

/// Whether the method reads elements in the memory of a GPU: methods of samesum on the GPU, and some peers.
inline bool runs_on_gpu(const Method& m) { return Code::of(m).backend->name() == "cuda"; }

// --- construction of peers -------------------------------------------------------------------------------

/// Describes a sum; the caller adds the code. `name` must be a literal.
template <class F> Entry describe_peer(std::string_view name, Promise promise) {
  Entry e = describe<samesum::Sum, Serial, Plain, F>("peer");
  e.facts.called = e.facts.order = name;
  e.facts.promise = promise;
  e.facts.height_formula = [] { return std::string{"at most n - 1"}; };  // as for serial
  return e;
}

/// Describes another operation, or sums of rows, without code.
template <class Operation, class F> Entry describe_batch_peer(std::string_view name) {
  Entry e = describe_operation<Operation, F>("peer");
  e.facts.called = name;
  e.facts.promise = Promise::none;
  e.code.operation_bound = [](const Reduced&) { return unbounded_error; };
  return e;
}
/// Describes it with the code for elements of format T on a CPU.
template <class Operation, class T, class F = T>
Entry describe_batch_peer(std::string_view name, Functions<HostRun>::Run run) {
  Entry e = describe_batch_peer<Operation, F>(name);
  e.code.host.any[Formats::index_of<T>()] = run;
  return e;
}
/// Describes it with the code for elements of format T on a GPU.
template <class Operation, class T, class F = T>
Entry describe_batch_peer(std::string_view name, Functions<gpu::Launch>::Run run) {
  Entry e = describe_batch_peer<Operation, F>(name);
  e.code.device.any[Formats::index_of<T>()] = run;
  return e;
}

/// Describes it with code for one vector per call of elements of format T on a GPU.
template <class Operation, class T, class F = T>
Entry describe_vector_peer(std::string_view name, Functions<gpu::Launch>::Run run) {
  Entry e = describe_batch_peer<Operation, F>(name);
  e.code.device.vector[Formats::index_of<T>()] = run;
  return e;
}

/// The peers of the GPU.
struct PeerEntries {
  std::vector<Entry> sums, batches;
};
PeerEntries gpu_peers();

/// Dot products and norms of cuBLAS; empty if it cannot be loaded.
std::vector<Entry> cublas_peers();
/// Version of the cuBLAS that is loaded: "13.0.2"; empty if it cannot be loaded.
std::string cublas_version();

}  // namespace samesum::harness
