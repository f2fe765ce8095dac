/// Neighbouring results of exact sums in windows: where their elements are, and how their sums are written.
/// Each instruction set compiles its own copy.
#pragma once

#include "samesum/backend/cpu/exact/term_streams.hpp"

namespace samesum::cpu {
namespace {

/// Results of a call that are summed at once. Their terms share a window where one holds them.
template <class T, ExactlySummed what> class WindowedResults {
  using Streams = TermStreams<T, what>;

 public:
  WindowedResults(const ExactResults& call, std::size_t first, std::size_t count)
      : call_{call}, first_{first}, count_{count} {}

  /// Element `from` of row r of these results.
  const T* row(const void* data, std::size_t r, std::size_t from) const {
    return static_cast<const T*>(data) + (first_ + r) * call_.pitch + from;
  }
  /// Element `from` of column c of these results.
  const T* column(const void* data, std::size_t c, std::size_t from) const {
    return static_cast<const T*>(data) + from * call_.pitch + first_ + c;
  }
  bool has_y() const { return Streams::has_products && call_.y != call_.x; }
  /// The bits of an element that its term has.
  typename Streams::Words term_mask() const { return typename Streams::Words{} + mask_; }

  /// Takes note of a block of elements, and other factors, of these ranges.
  void widen_terms(ExponentRange x, ExponentRange y) { terms_.merge(Streams::terms(x, y)); }
  /// Writes the sums of the first `lanes` lanes. minus_zero(l) says whether all terms of a lane are -0.
  template <class MinusZero>
  [[gnu::always_inline]] void write(typename Streams::Total& total, ExactSums* out, std::size_t lanes,
                                    MinusZero minus_zero) const {
    total.sum.normalise();
    if constexpr (Streams::moments) total.square.normalise();
    const bool is_exact =
        !total.is_scaled && total.sum.is_exact() && (!Streams::moments || total.square.is_exact());
    for (std::size_t l = 0; l < lanes; ++l) {
      for (int i = 0; i < 3; ++i) {
        out[l].sum[i] = total.sum.word[i].v[l];
        out[l].square[i] = total.square.word[i].v[l];
      }
      out[l].error = out[l].square_error = 0;
      out[l].exponent = 0;
      if (!is_exact) {  // the sum of what was lost may itself be rounded down
        out[l].error = total.sum.lost.v[l] * 1.001;
        out[l].square_error = total.square.lost.v[l] * 1.001;
        out[l].exponent = static_cast<int>(total.exponent[l]);
      }
      out[l].terms = terms_;
      if (out[l].sum[0] == 0 && out[l].is_exact() && minus_zero(l))
        for (double& word : out[l].sum) word = -0.0;
    }
  }
  /// Whether all terms of a result are -0, whose elements are `stride` apart.
  bool is_minus_zero(const T* x, const T* y, std::size_t stride) const {
    for (std::size_t i = 0; i < call_.n; ++i) {
      double term = element_term(call_.term, convert<double>(x[i * stride]));
      if (Streams::has_products) term *= convert<double>(y[i * stride]);
      if (to_bits(term) != Format<fp64>::sign_bit) return false;
    }
    return true;
  }

  const ExactResults& call_;
  std::size_t first_, count_;  ///< they are `count_` of those of the call, from `first_` on

 private:
  ExponentRange terms_;  ///< of the blocks that were added
  std::uint64_t mask_ = kept_bits<fp64>(call_.term);
};

}  // namespace
}  // namespace samesum::cpu
