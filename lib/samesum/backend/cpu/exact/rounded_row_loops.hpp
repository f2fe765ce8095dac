/// Exact sums and means of rows of one block each, rounded once to the format of their elements. Each
/// instruction set compiles its own copy.
#pragma once

#include <bit>

#include "samesum/backend/cpu/exact/row_loops.hpp"

namespace samesum::cpu {
namespace {

/// The loops over rows of elements of fp32 or fp64: see RoundRows.
template <class T> class RoundedRowLoops : ExactRowLoops<T, ExactlySummed::elements> {
  using Rows = ExactRowLoops<T, ExactlySummed::elements>;
  using typename Rows::RowBlock, typename Rows::Streams, typename Rows::Total, typename Rows::V,
      typename Rows::Words;
  using Storage = typename V::Storage;
  template <int words> using Sums = typename Rows::template Sums<words>;
  template <int words> using Windows = typename Rows::template Windows<words>;
  using Rows::row, Rows::is_minus_zero, Rows::call_, Rows::count_, Rows::width, Rows::w, Rows::few,
      Rows::more, Rows::most_rows;
  static constexpr bool is_wide = Rows::is_wide;

 public:
  /// See RoundRows.
  static std::uint64_t round(const ExactResults& call, bool mean, void* out) {
    if (call.n > Rows::block_length) return first_rows(call.count);
    const std::size_t at_once = Rows::rows_at_once(call.n);
    std::uint64_t unknown = 0;
    for (std::size_t r = 0; r < call.count; r += at_once)
      unknown |= RoundedRowLoops{call, r, at_once, mean}.round(static_cast<T*>(out) + r) << r;
    return unknown;
  }

 private:
  RoundedRowLoops(const ExactResults& call, std::size_t first, std::size_t at_once, bool mean)
      : Rows{call, first, at_once}, divisor_{mean ? static_cast<double>(call.n) : 1} {}

  /// Whether long rows are first looked at: with few registers, one pass of two words would spill them.
  static constexpr bool looks_first = is_wide && vector_bytes == 16;
  /// How far terms may exceed those of the first row where words lack bits anyway.
  static constexpr int spare_powers = 4;

  static std::uint64_t first_rows(std::size_t n) { return ~std::uint64_t{0} >> (64 - n); }

  /// Sums in two words, the second of which is below the last place of the first, and a bound of what they
  /// lack. Without an error, 0 is exact.
  struct Near {
    V high, low, error;
  };

  /// Writes the rounded results of rows of one block. Returns the set of those that are not known.
  std::uint64_t round(T* out) const {
    const T* const x = row(call_.x, 0, 0);
    const RowBlock block{x, x, call_.pitch, call_.n, rows_ahead<T>(call_.n) * call_.pitch};
    std::uint64_t unknown = first_rows(count_);
    ExponentRange range;
    if (looks_first && call_.n >= Rows::long_row)
      range = block.range(x, count_);
    else
      unknown = round_at_once(block, range, out);
    return unknown == 0 ? 0 : round_in_windows(block, range, unknown, out);
  }
  /// Finds the range of all elements, and adds them, in one pass. Two words have an anchor, so that pass
  /// needs a window in which the terms of the other rows are likely to fit: that of the first row, with as
  /// much room above as below.
  [[gnu::always_inline]] std::uint64_t round_at_once(const RowBlock& block, ExponentRange& range,
                                                     T* out) const {
    const std::size_t packs = (count_ - 1) / w + 1;
    Windows<few> common;
    ExponentRange guess;
    if constexpr (few > 1) {
      guess = block.range(block.x, 1);
      if (guess.is_empty()) guess = ExponentRange::between(0, 1);
      const int room = few * Format<fp64>::precision - few * log2_count(call_.n) - guess.bits();
      guess = ExponentRange::between(guess.lowest(), guess.top() + (room > 0 ? room / 2 : spare_powers));
      Streams::place(common, guess, guess, call_.n);
    }
    Sums<few> sum[most_rows / w];
    Extremes<T> seen;
    for (std::size_t p = 0; p < packs; ++p)
      this->template sum_pack_of_rows<few, true>(block, p * w, &common, 0, sum[p], seen);
    range = seen.range();
    if (few > 1 && range.top() > guess.top()) return first_rows(count_);
    const ExponentRange held = few == 1 ? range : ExponentRange::between(range.lowest(), guess.top()),
                        top = ExponentRange::between(held.top() - 1, held.top());
    const bool are_exact = Streams::place(common, held, held, call_.n);
    if (!are_exact && (!held.is_bounded() || !Streams::place(common, top, top, call_.n)))
      return first_rows(count_);
    const V error = V::broadcast(are_exact ? 0 : error_of(held.top()));
    std::uint64_t unknown = 0;
    for (std::size_t p = 0; p < packs; ++p)
      unknown |=
          are_exact ? write_rounded<few>(sum[p], p * w, out) : write_if_sure(near(sum[p], error), p * w, out);
    return unknown;
  }
  /// Writes the results of the packs of unknown rows, in windows for elements of this range if words hold
  /// them.
  std::uint64_t round_in_windows(const RowBlock& block, ExponentRange range, std::uint64_t unknown,
                                 T* out) const {
    Windows<few> common;
    Windows<more> wider;
    const bool fits_few = few > 1 && Streams::place(common, range, range, call_.n),
               fits = fits_few || Streams::place(wider, range, range, call_.n);
    for (std::size_t r = 0; r < count_; r += w) {
      const std::uint64_t these = first_rows(w) << r;
      if ((unknown & these) == 0) continue;
      unknown = (unknown & ~these) | (fits_few ? round_pack_of_rows<few>(block, r, common, out)
                                      : fits   ? round_pack_of_rows<more>(block, r, wider, out)
                                               : write_if_sure(near_pack_of_rows(block, r), r, out));
    }
    return unknown;
  }
  template <int words>
  [[gnu::noinline]] std::uint64_t round_pack_of_rows(const RowBlock& block, std::size_t r,
                                                     const Windows<words>& windows, T* out) const {
    Sums<words> sum;
    Extremes<T> unseen;
    this->template sum_pack_of_rows<words, false>(block, r, &windows, 0, sum, unseen);
    return write_rounded<words>(sum, r, out);
  }
  /// The sums of a pack of rows of any numbers. The error is a bound of the roundings of each row: a sum of n
  /// terms has up to n / w + 8 of them one after the other, each of which is at most 2^-53 of the sum of
  /// magnitudes; where they are summed, too, the roundings of that sum count.
  [[gnu::noinline]] Near near_pack_of_rows(const RowBlock& block, std::size_t r) const {
    V sums[w] = {}, rests[w] = {}, sizes[w] = {};
    const Words mask = this->term_mask();
    for (std::size_t k = 0; k < w && r + k < count_; ++k)
      Rows::for_each_pack(
          block, r + k, [&](V a, V) __attribute__((always_inline)) {
            Streams::keep(a, mask);
            add_nearly(sums[k], rests[k], a);
            sizes[k] = sizes[k] + magnitude(a);
          });
    for (std::size_t half = w / 2; half > 0; half /= 2)
      for (std::size_t i = 0; i < half; ++i) {
        rests[i] = second<0>(rests, i) + second<1>(rests, i);
        const V other = second<1>(sums, i);
        sums[i] = second<0>(sums, i);
        add_nearly(sums[i], rests[i], other);
        sizes[i] = second<0>(sizes, i) + second<1>(sizes, i);
      }
    const double roundings = static_cast<double>(call_.n / w + 8) * 0x1p-53;
    Near near{sums[0], rests[0], sizes[0] * V::broadcast(is_wide ? 2 * roundings * roundings : roundings)};
    near.error = near.error + V::broadcast(0x1p-1000);  // above what it may have lost; 0 may be -0
    if constexpr (is_wide) {
      const auto [high, low] = two_sum(near.high, near.low);
      near.high = high;
      near.low = low;
    }
    const V none = V::broadcast(std::numeric_limits<double>::infinity());
    const auto is_number = sizes[0].v < none.v;
    return {select(is_number, near.high, V::zero()), select(is_number, near.low, V::zero()),
            select(is_number, near.error, none)};
  }
  /// Adds x to a sum; if T is fp64, what that rounds away to `rest`.
  [[gnu::always_inline]] static void add_nearly(V& sum, V& rest, V x) {
    if constexpr (is_wide) {
      const auto [total, error] = two_sum(sum, x);
      sum = total;
      rest = rest + error;
    } else {
      sum = sum + x;
    }
  }
  /// Every second lane of v[2·i] and v[2·i + 1].
  template <int first> [[gnu::always_inline]] static V second(const V (&v)[w], std::size_t i) {
    return {every_second<first>(v[2 * i].v, v[2 * i + 1].v)};
  }

  /// A bound of what the few words lack of sums of terms below 2^top.
  double error_of(int top) const {
    return few == 1 ? Rows::plain_error(top, call_.n) : StreamWindow<few>::error(top, log2_count(call_.n));
  }
  /// Sums of the few words that lack up to `error`.
  static Near near(const Sums<few>& sum, V error) {
    if constexpr (few == 1) return {sum[0][0], V::zero(), error};
    const auto [high, low] = two_sum(sum[0][0], sum[0][few - 1]);
    return {high, low, error};
  }
  bool divides() const { return divisor_ != 1; }
  /// Divides sums. The quotients are exact if the divisor is a power of two, and `high` is not tiny.
  Near divided(Near of) const {
    const bool is_exact = std::has_single_bit(call_.n);
    const V share = V::broadcast(1 / divisor_), n = V::broadcast(divisor_), quotient = of.high * share;
    Near result{quotient, of.low * share, of.error * share};
    if constexpr (is_wide) {
      if (!is_exact) {
        const V product = quotient * n;
        result.low = (((of.high - product) - product_error(quotient, n, product)) + of.low) * share;
        result.error = result.error + magnitude(result.low) * V::broadcast(0x1p-49);
      }
      // Products neither lose bits nor overflow.
      const V none = V::broadcast(std::numeric_limits<double>::infinity());
      const auto is_sure = (magnitude(quotient).v >= 0x1p-900) & (magnitude(result.low).v < none.v);
      const auto is_zero = (of.high.v == Storage{}) & (of.error.v == Storage{});
      result.error = select(is_sure, result.error, select(is_zero, V::zero(), none));
      result.low = select(is_sure, result.low, V::zero());
    } else if (!is_exact) {
      result.error = result.error + magnitude(quotient) * V::broadcast(0x1p-50);
    }
    return result;
  }
  /// Writes the rounded results of a pack of rows. Returns the set of those that may be wrong: where the
  /// error matters.
  [[gnu::always_inline]] std::uint64_t write_if_sure(const Near& sums, std::size_t r, T* out) const {
    const Near of = divides() ? divided(sums) : sums;
    V below = of.high - of.error, above = of.high + of.error;
    if constexpr (is_wide) {
      below = of.high + (of.low - of.error);
      above = of.high + (of.low + of.error);
    }
    const auto result = convert_lanes<T, width>(below.v), other = convert_lanes<T, width>(above.v);
    const std::size_t count = count_ - r < w ? count_ - r : w;
    store_lanes(result, out + r, count);
    if (std::memcmp(&result, &other, count * sizeof(T)) == 0) return 0;
    std::uint64_t unknown = 0;
    for (std::size_t l = 0; l < count; ++l)
      unknown |= std::uint64_t{to_bits(T{result[l]}) != to_bits(T{other[l]})} << (r + l);
    return unknown;
  }
  /// Writes the rounded results of exact sums. Returns the set of those that are not known: perhaps of
  /// quotients.
  template <int words>
  [[gnu::always_inline]] std::uint64_t write_rounded(const Sums<words>& sum, std::size_t r, T* out) const {
    Near exact{V::zero(), V::zero(), V::zero()};
    V nearest;  // T rounds it as it would the sum
    if constexpr (words == 1) {
      exact.high = nearest = sum[0][0];
    } else if constexpr (words == 2 && is_wide) {
      nearest = sum[0][0] + sum[0][1];
      if (divides()) exact = near(sum, V::zero());
    } else {
      Total total;
      Streams::add_to(total, sum);
      total.sum.normalise();
      nearest = total.sum.word[0];
      const V rest = rounded_to_odd(total.sum.word[1], total.sum.word[2]);
      if constexpr (is_wide) {
        exact = {nearest, rest, magnitude(rest) * V::broadcast(std::has_single_bit(call_.n) ? 0 : 0x1p-51)};
        nearest = nearest + rest;
      } else {
        const auto [high, error] = two_sum(nearest, rest);
        exact.high = nearest = rounded_to_odd(high, error);
      }
    }
    const std::size_t count = count_ - r < w ? count_ - r : w;
    std::uint64_t unknown = 0;
    if (divides())
      unknown = write_if_sure(exact, r, out);
    else
      store_lanes(convert_lanes<T, width>(nearest.v), out + r, count);
    if (any_lane(nearest.v == Storage{})) [[unlikely]]
      for (std::size_t l = 0; l < count; ++l)
        if (nearest.v[l] == 0) out[r + l] = is_minus_zero(row(call_.x, r + l, 0), nullptr, 1) ? -T{0} : T{0};
    return unknown;
  }
  /// As samesum::rounded_to_odd, per lane.
  static V rounded_to_odd(V high, V low) {
    const Words bits = same_bits<Words>(high.v), apart = (bits ^ same_bits<Words>(low.v)) >> 63;
    const Words neighbour = bits + std::uint64_t{1} - (apart << 1);
    const auto keeps = (low.v == typename V::Storage{}) | ((bits & std::uint64_t{1}) != Words{});
    return select(keeps, high, V{same_bits<typename V::Storage>(neighbour)});
  }

  double divisor_;
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
