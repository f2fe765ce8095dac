/// Exact scans on a CPU: an integer of 128 bits holds the sum as long as it can, then a wider one.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include "samesum/accumulator/exact.hpp"
#include "samesum/accumulator/running_exact.hpp"
#include "samesum/backend/cpu/exact/window.hpp"
#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/backend/cpu/scan/scan.hpp"
#include "samesum/backend/cpu/schedule/methods.hpp"
#include "samesum/bound/height.hpp"

namespace samesum::cpu {

/// A column of elements of format T whose prefixes are rounded once to F.
///
/// The sum is a whole number of units of 2^grid. The first tile that is not zero sets the grid, so that the
/// sums of `length` elements of its size fit in the integer. Each element is checked: if it is not a whole
/// number of units, or could let the sum overflow, a wide integer continues. So the grid does not affect
/// the results.
template <class T, class F> class ExactColumn {
 public:
  ExactColumn(bool exclusive, std::size_t length)
      : exclusive_{exclusive}, length_{length}, spare_bits_{static_cast<int>(ceil_log2(length)) + 5} {}

  void restart() {
    taken_ = 0;
    units_ = 0;
    flags_ = 0;
    has_grid_ = is_fast_ = is_wide_ = false;
  }
  /// Restarts after elements with the sum `before`.
  void restart(const Exact& before) {
    restart();
    flags_ = before.flags();
    if (before.is_special() || !take_units(before)) {
      is_wide_ = true;
      wide_ = RunningSum{before};
    }
  }
  /// Takes the next elements, at most `length` in all, and writes their results. `out` may be the elements
  /// themselves.
  void take(const std::byte* data, std::size_t n, F* out) {
    const T* x = reinterpret_cast<const T*>(data);
    taken_ += n;
    if (is_wide_) narrow();
    const auto largest = static_cast<BitsOf<T>>(largest_(x, n));
    if (!is_wide_ && !fits(largest, n)) widen();
    // Then no prefix is -0, so all of them may be taken in words.
    if (flags_ == 0 && n > 0 && to_bits(*x) != Format<T>::sign_bit)
      flags_ = Exact::seen_any | Exact::seen_other_than_minus_zero;
    std::size_t i = 0;
    bool has_tried = false;
    const auto take_rest_nearly = [&] {
      if constexpr (has_conversion)
        return i < n && !std::exchange(has_tried, true) && take_nearly(x + i, n - i, largest, out + i);
      return false;
    };
    for (; !is_wide_ && i < n; ++i) {
      if constexpr (has_conversion)
        if (flags_ & Exact::seen_other_than_minus_zero) {
          if (is_fast_) i += take_in_words(x + i, n - i, out + i);
          if (take_rest_nearly()) return;
          if (is_fast_ && !is_wide_) i += take_common(x + i, n - i, out + i);
        }
      if (i == n || is_wide_) break;
      const F before = exclusive_ ? rounded() : F{};
      if (!add(x[i])) {
        widen();
        break;
      }
      out[i] = exclusive_ ? before : rounded();
    }
    if (take_rest_nearly()) return;
    for (; i < n; ++i) {
      const T element = x[i];
      if (exclusive_) out[i] = wide_.template result<F>();
      wide_.add(element);
      if (!exclusive_) out[i] = wide_.template result<F>();
    }
  }

 private:
  using Integer = __int128;
  using Magnitude = unsigned __int128;
  /// |units_| stays below 2^most_bits, and below twice that while elements are added.
  static constexpr int most_bits = 125;
  /// Whether the processor converts integers to F.
  static constexpr bool has_conversion = std::is_same_v<F, CarrierOf<F>>;

  /// Takes elements as long as two doubles hold their sums. Returns their number.
  std::size_t take_in_words(const T* x, std::size_t n, F* out) {
    if (!scan_) return 0;
    double sum[2] = {};
    if (units_ != 0 && !in_two_words(units_, power_of_two(window_.grid()), sum)) return 0;
    const bool is_end = taken_ == length_;
    const std::size_t done = scan_(x, n, exclusive_, is_end, sum, out);
    if (done == 0 || (is_end && done == n)) return done;
    const ExactWindow<double> window{window_.grid(), most_bits};
    Wide units = 0;
    if (window.add(units, sum[0]) && window.add(units, sum[1])) {
      units_ = static_cast<Integer>(units);
    } else {  // an element was no whole number of units
      wide_ = {};
      for (const double word : sum) wide_.add(word);
      is_wide_ = true;
    }
    return done;
  }
  /// Takes elements by sums in words, with bounds that decide nearly all roundings, and the others by
  /// integers. Returns false, and takes nothing, if there are no such sums, or they decide too few.
  [[gnu::noinline]] bool take_nearly(const T* x, std::size_t n, BitsOf<T> largest, F* out) {
    constexpr auto other = static_cast<std::uint32_t>(Exact::seen_other_than_minus_zero);
    const std::uint32_t flags = is_wide_ ? wide_.flags() : flags_;
    if (!nearly_ || (flags & other) == 0 || (flags & SumFlags::special_flags) != 0 ||
        largest >= Format<T>::infinity)
      return false;
    if (tiles_to_wait_ > 0) return --tiles_to_wait_, false;
    // The largest element becomes about 2^800: then few lose bits, and no sum is too large.
    const int scale =
        sizeof(T) < 8 || largest == 0 ? 0 : std::min(800 - exponent_of(from_bits<T>(largest)), 1000);
    double before[2];
    if (!leading(before, scale)) return false;
    T elements[tile];
    const bool is_in_place = static_cast<const void*>(x) == out;
    if (is_in_place) x = std::copy_n(x, n, elements) - n;
    std::uint16_t unknown[tile];
    const std::size_t count = nearly_(x, n, exclusive_, before, scale, out, unknown);
    if (count > (is_fast_ && !is_wide_ ? n / 64 + 2 : n / 4 + 2)) {
      tiles_to_wait_ = after_failure;
      if (is_in_place) std::memcpy(static_cast<void*>(out), elements, n * sizeof(T));
      return false;
    }
    const bool is_end = taken_ == length_;
    if (count == 0 && is_end) return true;
    if (!is_wide_) widen();
    if (count > 0) write_exactly(x, {unknown, count}, out);
    if (is_end) return true;
    Exact sum = wide_.exact();
    sum.merge(sum_exact(Values{std::span<const T>{x, n}}, 1));
    wide_ = RunningSum{sum};
    return true;
  }
  /// Returns the sum times 2^scale in two words: see ScanNearly. Returns false if it is too large or too
  /// small.
  bool leading(double (&sum)[2], int scale) const {
    sum[0] = sum[1] = 0;
    if (is_wide_) {
      wide_.leading(sum[0], sum[1], scale);
      return sum[0] == sum[0];
    }
    if (units_ == 0) return true;
    const int unit = window_.grid() + scale;
    if (unit < -900 || unit > 850) return false;
    in_two_words(units_, power_of_two(unit), sum);
    return true;
  }
  /// Writes the results with the given indices, in ascending order.
  void write_exactly(const T* x, std::span<const std::uint16_t> indices, F* out) const {
    RunningSum sum = wide_;
    std::size_t i = 0;
    for (const std::size_t k : indices) {
      for (const std::size_t end = exclusive_ ? k : k + 1; i < end; ++i) sum.add(x[i]);
      out[k] = sum.template result<F>();
    }
  }
  /// Takes elements up to the first one that is not common. Returns their number.
  std::size_t take_common(const T* x, std::size_t n, F* out) {
    Wide units = static_cast<Wide>(units_);
    std::size_t i = 0;
    for (; i < n && window_.is_common(x[i]); ++i) {
      const Wide sum = units + window_.units_of_common(x[i]);
      out[i] = rounded_to_normal(exclusive_ ? units : sum);
      units = sum;
    }
    units_ = static_cast<Integer>(units);
    return i;
  }
  /// Rounds a sum where no result can overflow or be subnormal: the conversion of an integer rounds once.
  F rounded_to_normal(Wide units) const {
    const auto low = static_cast<std::uint64_t>(units);
    const auto high = static_cast<std::int64_t>(units >> 64), sign = high >> 63;
    if (high == static_cast<std::int64_t>(low) >> 63)
      return static_cast<F>(static_cast<std::int64_t>(low)) * static_cast<F>(power_of_two(window_.grid()));
    // The leading 64 bits; the last one is sticky. 0 < shift < 64.
    const int shift = 65 - std::countl_zero(static_cast<std::uint64_t>(high ^ sign));
    const std::uint64_t lost = low << (64 - shift);
    const auto leading = static_cast<std::int64_t>(static_cast<std::uint64_t>(high) << (64 - shift) |
                                                   low >> shift | std::uint64_t{lost != 0});
    return static_cast<F>(leading) * static_cast<F>(power_of_two(window_.grid() + shift));
  }

  /// Whether no sum can overflow when n elements of up to this magnitude are added. Sets the grid if there is
  /// none.
  bool fits(BitsOf<T> largest, std::size_t n) {
    if (largest >= Format<T>::infinity) return false;
    if (largest == 0) return true;
    const int bits = exponent_of(from_bits<T>(largest)) + 1;  // all magnitudes are below 2^bits
    if (!has_grid_) set_grid(bits);
    constexpr Magnitude limit = Magnitude{1} << most_bits;
    return bits + static_cast<int>(ceil_log2(n)) <= window_.grid() + most_bits &&
           magnitude_of(units_) < limit;
  }
  void set_grid(int bits) {
    int grid = std::max(bits + spare_bits_ - most_bits, Format<T>::min_quantum);
    // Conversions need normal results. Then multiples of the smallest one usually do.
    constexpr int enough = 60, least = Format<F>::min_exponent;
    if (has_conversion && grid < least && bits - enough >= least) grid = least;
    has_grid_ = true;
    is_fast_ = has_conversion && grid >= Format<F>::min_exponent && grid + 128 <= Format<F>::max_exponent;
    window_ = {grid, most_bits};
  }

  /// Adds an element, unless it is not a whole number of units.
  bool add(T x) {
    Wide sum = static_cast<Wide>(units_);
    if (!window_.add(sum, x)) return false;
    units_ = static_cast<Integer>(sum);
    flags_ |= Exact::seen_any;
    if (to_bits(x) != Format<T>::sign_bit) flags_ |= Exact::seen_other_than_minus_zero;
    return true;
  }

  F rounded() const {
    if (units_ == 0) return from_bits<F>(flags_ == Exact::seen_any ? Format<F>::sign_bit : BitsOf<F>{0});
    return rounded_sum<F>(static_cast<Wide>(units_), window_.grid());
  }

  static Magnitude magnitude_of(Integer x) {
    return x < 0 ? -static_cast<Magnitude>(x) : static_cast<Magnitude>(x);
  }

  /// Moves the sum into the wide integer.
  void widen() {
    std::array<std::int64_t, Exact::digit_count> digits{};
    if (has_grid_) {
      const int offset = window_.grid() - Exact::lowest_exponent, shift = offset % 32;
      const std::int64_t sign = units_ < 0 ? -1 : 1;
      Magnitude rest = magnitude_of(units_);
      auto at = static_cast<std::size_t>(offset / 32);
      digits[at++] = sign * static_cast<std::int64_t>(static_cast<std::uint32_t>(rest << shift));
      for (rest >>= 32 - shift; rest != 0; rest >>= 32)
        digits[at++] = sign * static_cast<std::int64_t>(static_cast<std::uint32_t>(rest));
    }
    wide_ = RunningSum{Exact{digits, flags_}};
    is_wide_ = true;
  }
  /// Moves the sum back from the wide integer, if another one can hold it.
  void narrow() {
    flags_ = wide_.flags();
    if ((flags_ & SumFlags::special_flags) != 0) return;
    units_ = 0;
    has_grid_ = is_fast_ = false;
    is_wide_ = !take_units(wide_.exact());
  }
  /// Takes the sum from a superaccumulator. Returns false if the integer cannot hold it.
  bool take_units(const Exact& sum) {
    auto digits = canonical_digits(sum);
    const bool negative = digits.back() < 0;
    if (negative) {
      for (std::int64_t& digit : digits) digit = -digit;
      propagate_carries(digits.data(), Exact::digit_count);
    }
    int top = Exact::digit_count - 1;
    while (top >= 0 && digits[static_cast<std::size_t>(top)] == 0) --top;
    if (top < 0) return true;
    set_grid(Exact::lowest_exponent + 32 * top + 64 -
             leading_zeros(static_cast<std::uint64_t>(digits[static_cast<std::size_t>(top)])));
    Magnitude magnitude = 0;
    for (int i = 0; i <= top; ++i) {
      const auto digit = static_cast<std::uint64_t>(digits[static_cast<std::size_t>(i)]);
      const int shift = 32 * i + Exact::lowest_exponent - window_.grid();
      if (shift >= 0)
        magnitude += Magnitude{digit} << shift;
      else if (digit != 0 && (shift <= -64 || (digit >> -shift) << -shift != digit))
        return false;
      else
        magnitude += shift <= -64 ? 0 : digit >> -shift;
    }
    units_ = negative ? -static_cast<Integer>(magnitude) : static_cast<Integer>(magnitude);
    return true;
  }

  static ScanExactly scan_exactly() {
    return kernels(Formats::index_of<F>()).scan_exactly[Formats::index_of<T>()];
  }

  bool exclusive_;
  ScanExactly scan_ = scan_exactly();
  ScanNearly nearly_ = kernels(Formats::index_of<F>()).scan_nearly[Formats::index_of<T>()];
  LargestBits largest_ = kernels(Formats::index_of<T>()).largest_bits;
  std::size_t length_,
      taken_ = 0;  ///< lengths: of the column, and of what was taken with the present elements
  int spare_bits_;
  /// Tiles after one whose sums in words decided too few roundings, which are not added in words either.
  static constexpr int after_failure = 15;
  int tiles_to_wait_ = 0;
  bool has_grid_ = false, is_wide_ = false;
  bool is_fast_ = false;  ///< whether sums of common elements are rounded by conversions
  ExactWindow<T> window_;
  std::uint32_t flags_ = 0;  ///< those of Exact
  Integer units_ = 0;
  RunningSum wide_;
};

}  // namespace samesum::cpu
