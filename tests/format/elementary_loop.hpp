/// exp and log of many arguments, compiled once for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "samesum/backend/cpu/loops/instruction_set.hpp"

namespace samesum::testing_support {

/// Loops that compute y[i] = f(x[i]) in format F for n a multiple of 64, in packs of the instruction set's
/// width and of other widths.
template <class F> struct LoopsInFormat {
  using Loop = void (*)(const F* x, F* y, std::size_t n);
  Loop exp, log;
  Loop exp_of_scalars, log_of_scalars;
  Loop exp_of_wide_packs, log_of_wide_packs;  ///< 32 lanes: wider than any register
};
struct ElementaryLoops {
  LoopsInFormat<float> in_fp32;
  LoopsInFormat<double> in_fp64;
  /// Returns the largest |y[i] - reference[i]| in fp32 ulps of the reference. All values must be finite.
  double (*largest_error)(const float* y, const double* reference, std::size_t n);
  /// Returns the digest of y[i] = f(first + i); see elementary_digest.hpp.
  std::uint64_t (*digest)(std::uint32_t first, const float* y, std::size_t n);
};
template <cpu::InstructionSet set> ElementaryLoops elementary_loops();

}  // namespace samesum::testing_support
