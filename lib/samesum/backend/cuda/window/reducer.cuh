/// The reducer of exact reductions in a window: how sums become results.
#pragma once

#include "samesum/backend/cuda/device/warp.cuh"
#include "samesum/operation/exact_reduction.hpp"
#include "samesum/operation/reducer.hpp"
#include "samesum/window/leading_sum.hpp"

namespace samesum::gpu {
// Internal linkage: the compiler knows all callers of a function that is not inlined, and can fit the calling
// convention to them.
namespace {

template <class Shape, class Reducer> struct WindowRowLaunch;
template <class Shape, class Reducer> struct WindowColumnLaunch;
template <class T, ExactlySummed what, class Group> struct WindowLeaf;

/// Base of the reducers that batches.cuh launches. They add elements of T, or terms that are computed from
/// elements.
template <class T, ExactlySummed added> struct AnyWindowReducer {
  using Element = T;
  static constexpr ExactlySummed what = added;
  static constexpr bool merges_in_any_order = true;
  /// Most elements of a thread at a time, as registers allow: in a loop, and of a row that a group holds.
  static constexpr int of_tile = added == ExactlySummed::products || sizeof(T) > 4 ? 16 : 32;
  static constexpr int of_row = added == ExactlySummed::elements && sizeof(T) == 2   ? 64
                                : added == ExactlySummed::products && sizeof(T) == 8 ? 8
                                                                                     : 32;

  // Facts of a call. Reducers that know better hide these functions.
  /// Whether windows hold no terms, so that one row at a time is added slowly.
  SAMESUM_HD static constexpr bool is_wide() { return false; }
  /// Whether a row determines its window before its first element is added: then all of it must be on chip.
  SAMESUM_HD static constexpr bool is_held() { return false; }
  /// Whether blocks begin with the last elements.
  SAMESUM_HD static constexpr bool is_backwards() { return false; }
};

/// The reducer of an exact reduction of elements of T: its states, and how results are rounded.
template <class T, ExactlySummed what> struct WindowReducer : AnyWindowReducer<T, what> {
  using State = CompactExact<T, what>;
  using Words = typename State::Words;
  static constexpr int of_tile =
      sizeof(T) == 8 && what != ExactlySummed::elements ? 8 : AnyWindowReducer<T, what>::of_tile;
  template <class Group> using Leaf = WindowLeaf<T, what, Group>;
  template <class Shape, class Reader> struct Launches {
    using Rows = WindowRowLaunch<Shape, WindowReducer>;
    using Columns = WindowColumnLaunch<Shape, WindowReducer>;
  };

  ExactKind kind;
  std::size_t format;  ///< format index of the results
  std::uint64_t ddof;
  bool as_digits;  ///< whether results are ExactDigits

  __device__ void merge(State& state, const State& other) const { merge_states(&state, &other); }
  __device__ ExactResult result_of(std::uint64_t n) const { return {n, kind.mean || kind.moments, ddof}; }

  /// Writes result `at` of n elements, if their words suffice; otherwise returns false.
  __device__ bool finish_words(const Words& words, std::uint64_t n, std::size_t at, void* out) const {
    return !as_digits && write_words(words, result_of(n), at, out, format);
  }
  /// Writes result `at` of n elements, if the leading bits of their sums suffice; otherwise returns false.
  __device__ bool finish_leading(const LeadingExact<what>& sums, std::uint64_t n, std::size_t at,
                                 void* out) const {
    return write_leading(sums, result_of(n), at, out, format);
  }
  __device__ void finish(const State& state, std::uint64_t n, std::size_t at, void* out) const {
    if (as_digits)
      write_digits(&state, static_cast<ExactDigits*>(out) + at);
    else if (state.is_wide() || !finish_words(state.words(), n, at, out))
      finish_integers(&state, result_of(n), at, out, format);
  }

 private:
  // Not inlined, so that each kernel is compiled without them; arguments are passed by value, so that the
  // caller's variables stay in registers.
  __device__ __noinline__ static bool write_words(Words words, ExactResult kind_of_result, std::size_t at,
                                                  void* out, std::size_t format) {
    bool done = false;
    visit_format(format, [&]<class F>() {
      F sum{}, variance{};
      done = words.round_sum(kind_of_result, sum) &&
             (!State::moments || words.round_variance(kind_of_result, variance));
      F* const result = static_cast<F*>(out) + (State::moments ? 2 * at : at);
      if (done) result[0] = sum;
      if (done && State::moments) result[1] = variance;
    });
    return done;
  }
  __device__ __noinline__ static bool write_leading(LeadingExact<what> sums, ExactResult kind_of_result,
                                                    std::size_t at, void* out, std::size_t format) {
    const LeadingBits sum[] = {sums.quotient(kind_of_result, -1), sums.quotient(kind_of_result, 1)};
    LeadingBits variance[2] = {};
    if constexpr (State::moments)
      for (int i = 0; i < 2; ++i) variance[i] = sums.variance_quotient(kind_of_result, 2 * i - 1);
    bool is_sure = false;
    visit_format(format, [&]<class F>() {
      BitsOf<F> mean[2], of_variance[2];
      for (int i = 0; i < 2; ++i) {
        mean[i] = kind_of_result.bits<F>(sums.flags, sum[i]);
        of_variance[i] = kind_of_result.variance_bits<F>(sums.flags, variance[i]);
      }
      is_sure = mean[0] == mean[1] && (!State::moments || of_variance[0] == of_variance[1]);
      auto* const result = static_cast<BitsOf<F>*>(out) + (State::moments ? 2 * at : at);
      if (is_sure) result[0] = mean[0];
      if (is_sure && State::moments) result[1] = of_variance[0];
    });
    return is_sure;
  }
  __device__ __noinline__ static void merge_states(State* state, const State* other) { state->merge(*other); }
  __device__ __noinline__ static void finish_integers(const State* state, ExactResult kind_of_result,
                                                      std::size_t at, void* out, std::size_t format) {
    // The divisions are long inlined code: once, not for each format.
    const LeadingBits sum = state->quotient(kind_of_result);
    LeadingBits variance{};
    if constexpr (State::moments) variance = state->variance_quotient(kind_of_result);
    visit_format(format, [&]<class F>() {
      auto* const result = static_cast<BitsOf<F>*>(out) + (State::moments ? 2 * at : at);
      result[0] = kind_of_result.bits<F>(state->flags, sum);
      if constexpr (State::moments) result[1] = kind_of_result.variance_bits<F>(state->flags, variance);
    });
  }
  __device__ __noinline__ static void write_digits(const State* state, ExactDigits* out) {
    const auto deposit = [](const auto& integer, int lowest, ExactTerms::Digits& digits) {
      for (int i = 0; i < ExactTerms::digit_count; ++i) digits.data()[i] = 0;
      const auto magnitude = integer.magnitude();
      for (int i = 0; i < integer.words; ++i)
        add_to_digits(integer.is_negative(), magnitude.word[i], lowest + 64 * i, ExactTerms::lowest_exponent,
                      [&](int digit, std::int64_t part) { digits.data()[digit] += part; });
      propagate_carries(digits.data(), ExactTerms::digit_count);
    };
    deposit(state->terms.integer(), State::Terms::lowest, out->terms);
    for (int i = 0; i < ExactTerms::digit_count; ++i) out->squares.data()[i] = 0;
    if constexpr (State::moments) deposit(state->squares.integer(), State::Squares::lowest, out->squares);
    out->flags = state->flags;
  }
};

}  // namespace
}  // namespace samesum::gpu
