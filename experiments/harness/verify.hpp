/// Compares results of peers, which promise no bits, with results in wider arithmetic.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "samesum/call/call.hpp"

namespace samesum::harness {

/// So few elements that a result without one of them is out of tolerance, in fp32 and fp64.
inline constexpr std::size_t few_elements = 1000;

/// What a comparison of all results of a call has found.
struct Verification {
  std::string wrong;            ///< the first wrong result, and what it should be; empty if there is none
  std::size_t significant = 0;  ///< number of results whose tolerance is at most half of their magnitude

  /// Empty if no result is significant: the tolerances then cannot tell right results from zeros.
  std::optional<bool> verified() const {
    return significant > 0 || !wrong.empty() ? std::optional{wrong.empty()} : std::nullopt;
  }
};

/// Compares all results of a call in any layout without offsets, whose data and results are in host memory,
/// with those in double, of doubles in long double, in which errors are negligible.
///
/// A sum of n terms is right if its error is at most 4u (√n max|s_k| + Σ|term|), where u is the unit roundoff
/// of the results and s_k are the sums of the first k terms. A sum in this order stays within that with the
/// probability 1 - 2 exp(-8), if each rounding error has mean 0 whatever the earlier ones were (Connolly,
/// Higham and Mary 2021, after Higham and Mary 2019). Other orders have other partial sums: for them it is a
/// tolerance, which nothing proves. It is far smaller than the rigorous bound n u Σ|term|, which a result of
/// 0 would meet on normal data. Means, also running ones, dot products and norms follow from sums; products
/// have relative errors of 4u√n, and extrema must be equal.
///
/// A variance is right within nκu + (nκu)² of itself, where κ² = 1 + mean² / variance: the larger bounds of
/// Chan, Golub and LeVeque 1983 for updating formulas (nκu) and for two passes (nu + n²κ²u²). Rounding errors
/// of running variances of fp32 are not random: squares that are small beside their sum are rounded alike.
///
/// Hence a long variance of fp32 does not differ noticeably from one with n - 1 for n, nor a long sum of fp32
/// from one without an element: callers also verify the first `few_elements`, where both are noticed. If a
/// sum or product may overflow or underflow in some order, or if elements are not finite, any result is
/// accepted, and none is significant.
///
/// Throws std::invalid_argument for an operation that no peer computes.
Verification verify(const Call& done);

}  // namespace samesum::harness
