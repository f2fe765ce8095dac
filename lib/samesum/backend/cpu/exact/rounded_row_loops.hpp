/// Exact sums of rows of one block each, rounded once to the format of their elements. Each instruction set
/// compiles its own copy.
#pragma once

#include "samesum/backend/cpu/exact/row_loops.hpp"

namespace samesum::cpu {
namespace {

/// The loops over rows of elements of fp32 or fp64: see RoundRows.
template <class T> class RoundedRowLoops : ExactRowLoops<T, ExactlySummed::elements> {
  using Rows = ExactRowLoops<T, ExactlySummed::elements>;
  using typename Rows::RowBlock, typename Rows::Streams, typename Rows::Total, typename Rows::V,
      typename Rows::Words;
  template <int words> using Sums = typename Rows::template Sums<words>;
  template <int words> using Windows = typename Rows::template Windows<words>;
  using Rows::row, Rows::is_minus_zero, Rows::call_, Rows::count_, Rows::width, Rows::w, Rows::few,
      Rows::more, Rows::most_rows;
  static constexpr bool is_wide = Rows::is_wide;

 public:
  /// See RoundRows.
  static std::size_t round(const ExactResults& call, void* out) {
    if (call.n > Rows::block_length) return 0;
    const std::size_t at_once = Rows::rows_at_once(call.n);
    for (std::size_t r = 0; r < call.count; r += at_once)
      if (!RoundedRowLoops{call, r, at_once}.round(static_cast<T*>(out) + r)) return r;
    return call.count;
  }

 private:
  using Rows::Rows;

  /// Writes the rounded sums of rows of one block. Returns false if no window holds the terms of all of them.
  bool round(T* out) const {
    const T* const x = row(call_.x, 0, 0);
    const RowBlock block{x, x, call_.pitch, call_.n, rows_ahead<T>(call_.n) * call_.pitch};
    const std::size_t packs = (count_ - 1) / w + 1;
    Windows<few> common;
    Windows<more> wider;
    // One pass finds the range and adds. Two words have an anchor, so that pass needs a window in which the
    // terms of the other rows are likely to fit: that of the first row, with as much room above as below.
    ExponentRange guess;
    if constexpr (few > 1) {
      guess = block.range(x, 1);
      if (guess.is_empty()) guess = ExponentRange::between(0, 1);
      const int room = few * Format<fp64>::precision - few * log2_count(call_.n) - guess.bits();
      if (room > 0) guess = ExponentRange::between(guess.lowest(), guess.top() + room / 2);
      Streams::place(common, guess, guess, call_.n);
    }
    Sums<few> sum[most_rows / w];
    Extremes<T> seen;
    for (std::size_t p = 0; p < packs; ++p)
      this->template sum_pack_of_rows<few, true>(block, p * w, &common, 0, sum[p], seen);
    const ExponentRange range = seen.range(),
                        held = few == 1 ? range : ExponentRange::between(range.lowest(), guess.top());
    if (few == 1 || range.top() <= guess.top()) {
      if (Streams::place(common, held, held, call_.n)) {
        for (std::size_t p = 0; p < packs; ++p) write_rounded<few>(sum[p], p * w, out);
        return true;
      }
      const ExponentRange top = ExponentRange::between(held.top() - 1, held.top());
      std::size_t sure = 0;  // packs whose rounding does not depend on what the words lack
      if (held.is_bounded() && Streams::place(common, top, top, call_.n)) {
        const V error = V::broadcast(StreamWindow<few>::error(held.top(), log2_count(call_.n)));
        while (sure < packs && write_if_sure(sum[sure], sure * w, error, out)) ++sure;
      }
      if (sure == packs) return true;
    }
    if (few > 1 && Streams::place(common, range, range, call_.n)) {
      for (std::size_t p = 0; p < packs; ++p) round_pack_of_rows<few>(block, p * w, common, out);
      return true;
    }
    if (!Streams::place(wider, range, range, call_.n)) return false;
    for (std::size_t p = 0; p < packs; ++p) round_pack_of_rows<more>(block, p * w, wider, out);
    return true;
  }
  template <int words>
  [[gnu::noinline]] void round_pack_of_rows(const RowBlock& block, std::size_t r,
                                            const Windows<words>& windows, T* out) const {
    Sums<words> sum;
    Extremes<T> unseen;
    this->template sum_pack_of_rows<words, false>(block, r, &windows, 0, sum, unseen);
    write_rounded<words>(sum, r, out);
  }
  /// Writes the rounded sums of a pack of rows that lack up to `error`. Returns false if that may change one.
  [[gnu::always_inline]] bool write_if_sure(const Sums<few>& sum, std::size_t r, V error, T* out) const {
    V below = sum[0][few - 1] - error, above = sum[0][few - 1] + error;
    if constexpr (few == 2) {
      below = sum[0][0] + below;
      above = sum[0][0] + above;
    }
    const auto result = convert_lanes<T, width>(below.v), other = convert_lanes<T, width>(above.v);
    const std::size_t bytes = (count_ - r < w ? count_ - r : w) * sizeof(T);
    std::memcpy(out + r, &result, bytes);
    return std::memcmp(&result, &other, bytes) == 0;
  }
  template <int words>
  [[gnu::always_inline]] void write_rounded(const Sums<words>& sum, std::size_t r, T* out) const {
    V nearest;  // T rounds it as it would the sum
    if constexpr (words == 1) {
      nearest = sum[0][0];
    } else if constexpr (words == 2 && is_wide) {
      nearest = sum[0][0] + sum[0][1];
    } else {
      Total total;
      Streams::add_to(total, sum);
      total.sum.normalise();
      nearest = total.sum.word[0];
      const V rest = rounded_to_odd(total.sum.word[1], total.sum.word[2]);
      if constexpr (is_wide) {
        nearest = nearest + rest;
      } else {
        const auto [high, error] = two_sum(nearest, rest);
        nearest = rounded_to_odd(high, error);
      }
    }
    const auto narrow = convert_lanes<T, width>(nearest.v);
    const std::size_t count = count_ - r < w ? count_ - r : w;
    std::memcpy(out + r, &narrow, count * sizeof(T));
    bool any_zero = false;
    for (std::size_t l = 0; l < count; ++l) any_zero = any_zero || out[r + l] == 0;
    for (std::size_t l = 0; any_zero && l < count; ++l)
      if (out[r + l] == 0) out[r + l] = is_minus_zero(row(call_.x, r + l, 0), nullptr, 1) ? -T{0} : T{0};
  }
  /// As samesum::rounded_to_odd, per lane.
  static V rounded_to_odd(V high, V low) {
    const Words bits = same_bits<Words>(high.v), apart = (bits ^ same_bits<Words>(low.v)) >> 63;
    const Words neighbour = bits + std::uint64_t{1} - (apart << 1);
    const auto keeps = (low.v == typename V::Storage{}) | ((bits & std::uint64_t{1}) != Words{});
    return select(keeps, high, V{same_bits<typename V::Storage>(neighbour)});
  }
};

/// The function RoundRows of elements of format T; null if there is none.
template <class T> constexpr RoundRows round_rows() {
  if constexpr (std::is_same_v<T, CarrierOf<T>>)
    return RoundedRowLoops<T>::round;
  else
    return nullptr;
}

}  // namespace
}  // namespace samesum::cpu
