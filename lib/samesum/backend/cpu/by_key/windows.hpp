/// Exact sums by key in windows: integers of 128 bits for ranges of exponents, and a list of the elements
/// outside them.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <vector>

#include "samesum/backend/cpu/by_key/elements.hpp"
#include "samesum/backend/cpu/exact/window.hpp"
#include "samesum/window/wide_integer.hpp"

namespace samesum::cpu {

/// Where the windows of a result lie: window k has the unit 2^(lowest + k·width).
struct WindowGrids {
  int lowest, width;  ///< width divides 64
  std::size_t words;
  int grid_of(std::size_t k) const { return lowest + width * static_cast<int>(k); }
};

/// One window for each result, which nearly all elements fit.
template <class T> struct OneWindow : ExactWindow<T> {
  using ExactWindow<T>::ExactWindow;
  static constexpr std::size_t words() { return 1; }
  static std::size_t word_of(T) { return 0; }
  WindowGrids grids() const { return {this->grid(), 64, words()}; }
  /// Adds a common element.
  void add(Wide& first, T x) const { first += this->units_of_common(x); }
  /// Adds a number of any format, unless the window does not hold it.
  template <class F> bool add_other(Wide& first, F x) const {
    return ExactWindow<F>{this->grid(), this->term_bits()}.add(first, x);
  }
};

/// Consecutive windows for each result, for elements that span more powers of two than one window. Window k
/// has the numbers with exponents from smallest + k·width on, where width is a power of two, in units of the
/// last bit of the smallest of them.
template <class T> class ManyWindows {
 public:
  /// Windows for elements with exponents from `smallest` to `largest`, and for sums of `terms` of them.
  ManyWindows(int smallest, int largest, std::size_t terms)
      : log2_width_{static_cast<int>(
                        std::bit_width(static_cast<unsigned>(127 - precision - bits_for_terms(terms)))) -
                    1},
        first_{std::clamp(smallest + Format<T>::max_exponent, 1, end - 1)} {
    const int last = std::clamp(largest + Format<T>::max_exponent, first_, end - 1);
    words_ = static_cast<std::size_t>((last - first_) >> log2_width_) + 1;
    first_ = std::max(1, last + 1 - static_cast<int>(words_ << log2_width_));  // what is left over is below
    count_ = static_cast<unsigned>(std::min(static_cast<int>(words_ << log2_width_), end - first_));
  }
  /// Windows for all finite elements.
  static ManyWindows of_all(std::size_t terms) {
    return {-Format<T>::max_exponent, Format<T>::max_exponent, terms};
  }

  /// Windows per result.
  std::size_t words() const { return words_; }
  WindowGrids grids() const { return {Format<T>::min_quantum + first_ - 1, 1 << log2_width_, words_}; }
  /// The window of an element; any window for an element that no window holds.
  std::size_t word_of(T x) const { return std::min(place_of(x), count_ - 1) >> log2_width_; }

  /// Whether x is a normal number from the smallest exponent of the windows on to the largest one.
  bool is_common(T x) const { return place_of(x) < count_; }
  bool are_common(const T* x, std::size_t n) const {
    const auto lowest = BitsOf<T>(static_cast<BitsOf<T>>(first_) << (precision - 1));
    return magnitudes_are_in(x, n, lowest, BitsOf<T>(static_cast<BitsOf<T>>(count_) << (precision - 1)));
  }
  /// Adds a common element to the windows of a result, of which `first` is the first.
  void add(Wide& first, T x) const {
    constexpr BitsOf<T> hidden = BitsOf<T>(1) << (precision - 1);
    const unsigned place = place_of(x);
    const auto bits = to_bits(x);
    const Wide term = Wide{BitsOf<T>((bits & (hidden - 1)) | hidden)} << (place & ((1u << log2_width_) - 1)),
               sign = Wide{0} - Wide{(bits & Format<T>::sign_bit) != 0};
    (&first)[place >> log2_width_] += (term ^ sign) - sign;
  }
  /// Adds a number of any format, unless no window holds it.
  template <class F> bool add_other(Wide& first, F x) const {
    const std::optional<WholeUnits> units = whole_units(x, grids().lowest);
    if (!units) return false;
    const auto up = static_cast<unsigned>(units->up);
    const std::size_t k = up >> log2_width_;
    if (k >= words_) return false;
    const Wide term = Wide{units->significand} << (up & ((1u << log2_width_) - 1));
    (&first)[k] += units->negative ? Wide{0} - term : term;
    return true;
  }

 private:
  static constexpr int precision = Format<T>::precision;
  static constexpr int end = Format<T>::infinity >> (precision - 1);  ///< exponent field of infinities

  /// The exponent of a normal number above the smallest of the windows; a large number if it is below that.
  unsigned place_of(T x) const {
    return static_cast<unsigned>(BitsOf<T>(to_bits(x) & ~Format<T>::sign_bit) >> (precision - 1)) -
           static_cast<unsigned>(first_);
  }

  int log2_width_, first_;  ///< first_: exponent field of the smallest number of the windows
  std::size_t words_;
  unsigned count_;  ///< exponents of all windows
};

/// Elements outside the windows: flags of infinities and NaN, and a list of the others, which are few. Many
/// threads may add to it.
class Outside {
 public:
  struct Element {
    std::size_t result;
    double x;
  };

  Outside(std::size_t results, std::size_t most) : most_{most}, flags_(results) {}

  template <class T> void add(std::size_t result, T x) {
    if (const std::uint32_t special = special_flags_of(x); special != 0) {
      std::atomic_ref{flags_[result]}.fetch_or(static_cast<std::uint8_t>(special), relaxed);
      return;
    }
    const std::scoped_lock lock{mutex_};
    if (elements_.size() < most_)
      elements_.push_back({result, convert<double>(x)});
    else
      are_too_many_.store(true, relaxed);
  }
  bool are_too_many() const { return are_too_many_.load(relaxed); }
  std::uint32_t flags(std::size_t result) const { return flags_[result]; }
  /// The elements, sorted by result.
  const std::vector<Element>& sorted() {
    std::ranges::sort(elements_, {}, &Element::result);
    return elements_;
  }

 private:
  std::size_t most_;
  std::vector<std::uint8_t> flags_;
  std::vector<Element> elements_;
  std::atomic<bool> are_too_many_ = false;
  std::mutex mutex_;
};

/// Adds elements to windows.
template <class T, class Windows> struct WindowAdder : GivenRows<T> {
  using Word = Wide;
  static constexpr Word fresh = 0;
  static constexpr bool is_order_free = true;
  const Windows& windows;
  Outside& outside;
  mutable std::atomic<bool> has_minus_zeros = false;
  WindowAdder(const Call& call, const Windows& w, Outside& o) : GivenRows<T>{call}, windows{w}, outside{o} {}
  std::size_t words() const { return windows.words(); }
  Windows loop() const { return windows; }
  const T* rows(std::size_t first, std::size_t, T*) const {
    return outside.are_too_many() ? nullptr : this->x + first * this->inner;
  }
  [[gnu::noinline]] void add_uncommon(std::size_t result, Word& first, T x) const {
    if (to_bits(x) == Format<T>::sign_bit)
      has_minus_zeros.store(true, relaxed);
    else if (!windows.add_other(first, x))
      outside.add(result, x);
  }
  void merge(Word& word, Word other) const { word += other; }
};

inline bool is_zero(WindowGrids grids, const Wide* sum) {
  return std::all_of(sum, sum + grids.words, [](Wide word) { return word == 0; });
}

/// The sum of the windows of a result, in units of that of the first one, as an integer of `count` words.
template <int count> WideInteger<count> units_of(WindowGrids grids, const Wide* sum) {
  __extension__ using Signed = __int128;
  WideInteger<count> units;
  units.clear();
  Signed carry = 0;
  for (int at = 0; at < 64 * count; at += grids.width) {
    if (const auto k = static_cast<std::size_t>(at / grids.width); k < grids.words)
      carry += static_cast<Signed>(sum[k]);
    const std::uint64_t digit = static_cast<std::uint64_t>(carry) & (~std::uint64_t{0} >> (64 - grids.width));
    units.word[at / 64] |= digit << at % 64;
    carry >>= grids.width;
  }
  return units;
}
/// Words of an integer that holds all windows of any call.
inline constexpr int most_words = 36;

/// The sum of the windows of a result over a divisor, correctly rounded to F.
template <class F> F rounded(WindowGrids grids, const Wide* sum, std::uint64_t divisor) {
  constexpr int few = 6;
  const int bits = grids.grid_of(grids.words - 1) + 128 - grids.lowest;
  if (grids.words == 1) return rounded_sum<F>(sum[0], grids.lowest, divisor);
  return from_bits<F>(bits <= 64 * few
                          ? rounded_quotient<F>(units_of<few>(grids, sum), divisor, 1, grids.lowest)
                          : rounded_quotient<F>(units_of<most_words>(grids, sum), divisor, 1, grids.lowest));
}

/// The sum of the windows of a result, and of any other finite numbers.
class SumWithOthers {
 public:
  SumWithOthers(WindowGrids grids, const Wide* sum)
      : lowest_{std::min(grids.lowest, Format<fp64>::min_quantum)} {
    units_.clear();
    for (std::size_t k = 0; k < grids.words; ++k) {
      const Int128 units = Int128::of(sum[k]);
      const int shift = grids.grid_of(k) - lowest_;
      const Int128 magnitude = units.magnitude();
      units_.add(units.is_negative(), magnitude.word[0], shift);
      units_.add(units.is_negative(), magnitude.word[1], shift + 64);
    }
  }
  void add(double x) {
    const Decomposed d = decompose<double>(to_bits(x));
    units_.add(d.negative, d.significand, d.exponent - lowest_);
  }
  /// The sum over a divisor, correctly rounded to F.
  template <class F> F rounded(std::uint64_t divisor) const {
    return from_bits<F>(rounded_quotient<F>(units_, divisor, 1, lowest_));
  }

 private:
  int lowest_;
  WideInteger<most_words> units_;
};

}  // namespace samesum::cpu
