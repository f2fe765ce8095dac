/// The last step of exact reductions whose digits hold products of doubles: a warp turns the digits into wide
/// integers, and one of its threads rounds each result once.
#pragma once

#include "samesum/backend/cuda/exact/digits.cuh"
#include "samesum/operation/exact_reduction.hpp"

namespace samesum::gpu {
// Internal linkage: the compiler knows all callers of a function that is not inlined, and can fit the calling
// convention to them.
namespace {

/// Digits that are wide enough for products of doubles.
using TermDigits = std::int64_t[ExactTerms::digit_count];

/// Which result is computed from the sums, and where it is written.
struct ExactFinish {
  ExactKind kind;
  std::size_t format;
  std::uint64_t ddof;
  void* out;
};

/// Writes the magnitude of the digits. Returns whether the number is negative. A whole warp calls it.
__device__ __noinline__ bool write_magnitude(const TermDigits* digits, ExactTerms::Integer* magnitude) {
  const MagnitudeOf<ExactTerms::digit_count> all{*digits};
  all.write(reinterpret_cast<std::uint32_t(&)[ExactTerms::digit_count]>(magnitude->word));
  return all.is_negative();
}

/// Writes the result of n elements: `digits` are those of their sum and, for moments, of the sum of their
/// squares. One warp calls it.
__device__ void finish(const ExactFinish& end, const TermDigits (&digits)[2], unsigned flags,
                       std::uint64_t n) {
  __shared__ ExactTerms::Integer terms, squares;
  __syncwarp();  // all threads have added to the digits
  const bool negative = write_magnitude(&digits[0], &terms), over_n = end.kind.mean || end.kind.moments,
             special = (flags & Exact::special_flags) != 0;
  if (end.kind.moments) write_magnitude(&digits[1], &squares);
  if (thread() > 0) return;
  LeadingBits sum = leading_quotient(terms, over_n && n > 0 ? n : 1, 1, ExactTerms::lowest_exponent),
              variance{};
  sum.negative = negative;
  if (end.kind.moments && n > end.ddof) variance = ExactTerms::variance_quotient(terms, squares, n, end.ddof);
  visit_format(end.format, [&]<class F>() {
    auto* const result = static_cast<BitsOf<F>*>(end.out);
    result[0] = over_n && n == 0           ? Format<F>::canonical_nan
                : special                  ? special_bits<F>(flags)
                : flags == Exact::seen_any ? Format<F>::sign_bit
                                           : sum.template rounded<F>();
    if (end.kind.moments)
      result[1] = special || n <= end.ddof ? Format<F>::canonical_nan : variance.template rounded<F>();
  });
}

}  // namespace
}  // namespace samesum::gpu
