/// Other libraries' sums and reductions, to compare with: methods of a backend of their own, which keep none
/// of our promises.
#pragma once

#include <span>
#include <vector>

#include "samesum/catalogue/catalogue.hpp"
#include "samesum/catalogue/describe.hpp"

namespace samesum::harness {

/// Sums of vectors, "eigen/fp32@peer", "cub/run_to_run/fp32@peer" and their like: those of the CPU, then
/// those of a GPU, as many as were compiled and can run here. Their promise is what their documentation says;
/// their bound is that of a sum in any order. Those of the CPU are compiled for the processor of the machine
/// that builds (-march=native), the best that their users can have; the flags and versions are in the
/// provenance.
std::span<const Method> peers();

/// What is measured beside reductions of vectors and of rows, without a bound: "eigen/dot/fp32@peer",
/// "cub/segmented/fp32@peer".
std::span<const Method> peers_of_batches();

/// Families of CPU peers that were not compiled, and why.
std::span<const Absent> absent_peers();

inline bool is_peer(const Method& m) { return m.backend == "peer"; }

/// Adds one element after the other, in one thread: on long arrays that takes longer than all the rest.
inline bool is_sequential(const Method& m) { return m.order == "serial" || m.order.starts_with("canonical"); }

/// Whether it reads elements in the memory of a GPU: our methods there, and some peers.
inline bool runs_on_gpu(const Method& m) { return Code::of(m).backend->name() == "cuda"; }

// --- how peers are made ----------------------------------------------------------------------------------

/// The facts of a sum; the caller adds what runs. `name` is a literal.
template <class F> Entry describe_peer(std::string_view name, Promise promise) {
  Entry e = describe<samesum::Sum, Serial, Plain, F>("peer");
  e.facts.called = e.facts.order = name;
  e.facts.promise = promise;
  e.facts.height_formula = [] { return std::string{"at most n - 1"}; };  // as of serial
  return e;
}

/// The facts of another operation, or of sums of rows, with what runs it on elements of format T.
template <class Operation, class T, class F = T>
Entry describe_batch_peer(std::string_view name, Code::Run run) {
  Entry e = describe_operation<Operation, F>("peer");
  e.facts.called = name;
  e.facts.promise = Promise::none;
  e.code.run[Formats::index_of<T>()] = run;
  return e;
}

/// The peers of a GPU.
struct PeerEntries {
  std::vector<Entry> sums, batches;
};
PeerEntries gpu_peers();

}  // namespace samesum::harness
