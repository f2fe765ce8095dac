/// Other libraries' sums, to compare with: rows of a table like the variants, but none of our promises.
#pragma once

#include <span>
#include <vector>

#include "samesum/recipe.hpp"
#include "samesum/registry.hpp"

namespace samesum::harness {

/// "eigen/fp32@peer", "cub/run_to_run/fp32@peer" and their like: those of the CPU, then those of a GPU, as
/// many as were compiled and can run here. Their promise is what their documentation says; their bound is
/// that of a sum in any order. Those of the CPU are compiled for the processor of the machine that builds
/// (-march=native), the best that their users can have; the flags and versions are in the provenance.
std::span<const Variant> peers();

/// Families of CPU peers that were not compiled, and why.
std::span<const Absent> absent_peers();

inline bool is_peer(const Variant& v) { return v.backend == "peer"; }

/// Whether it adds elements of that format. Every variant does; a peer may not.
inline bool takes(const Variant& v, const FormatInfo& input) {
  return v.run[input.index] || v.launch[input.index];
}

// What makes the table.

/// A peer's facts; the caller adds what runs.
template <class F> Variant describe_peer(const std::string& name, Promise promise) {
  Variant v = describe<Serial, Plain, F>("peer");
  v.name = name + "/" + std::string{Format<F>::name} + "@peer";
  v.order = name;
  v.promise = promise;
  v.height_formula = "at most n - 1";  // as of serial
  return v;
}

std::vector<Variant> gpu_peers();

}  // namespace samesum::harness
