#include <algorithm>
#include <array>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "harness/input_parts.hpp"

namespace samesum::harness {

namespace {

using boost::multiprecision::cpp_int;
__extension__ using Wide = unsigned __int128;

// In every format, finite values and their midpoints lie between 10^-324 and 10^309, and a midpoint has at
// most 768 significant digits, which fp64 needs. Numbers outside this range overflow or underflow.
constexpr int lowest_power = -324, highest_power = 309;
constexpr int exact_digits = 800;
constexpr int head_digits = 19;  // 10^19 < 2^64

/// An interval [low, high] · 2^exponent that contains the value of a number.
struct Range {
  Wide low, high;
  int exponent;
};

/// 10^q lies in [significand, significand + slack] · 2^exponent.
struct PowerOfTen {
  std::uint64_t significand;
  int exponent;
  bool slack;
};

/// The leading 64 bits of a number. If bits below them are set, the last bit is 1, as round_to_bits expects.
struct Leading {
  std::uint64_t significand;
  std::int64_t exponent;
};

Leading leading_bits(Wide x, std::int64_t exponent) {
  const auto high = static_cast<std::uint64_t>(x >> 64), low = static_cast<std::uint64_t>(x);
  if (high == 0) return {low, exponent};
  const int drop = static_cast<int>(std::bit_width(high));
  const bool rest = drop == 64 ? low != 0 : (low << (64 - drop)) != 0;
  return {static_cast<std::uint64_t>(x >> drop) | std::uint64_t{rest}, exponent + drop};
}

Leading leading_bits(const cpp_int& x, std::int64_t exponent, bool rest = false) {
  const std::size_t width = msb(x) + 1;
  if (width <= 64) return {static_cast<std::uint64_t>(x), exponent};
  const std::size_t drop = width - 64;
  rest |= lsb(x) < drop;
  return {static_cast<std::uint64_t>(x >> drop) | std::uint64_t{rest},
          exponent + static_cast<std::int64_t>(drop)};
}

/// The leading bits of n · 10^exponent.
Leading scale(cpp_int n, int exponent) {
  const cpp_int five = pow(cpp_int{5}, static_cast<unsigned>(std::abs(exponent)));
  if (exponent >= 0) return leading_bits(cpp_int{n * five}, exponent);
  const auto shift = static_cast<int>(std::max<std::int64_t>(
      0, 66 + static_cast<std::int64_t>(msb(five)) - static_cast<std::int64_t>(msb(n))));
  n <<= shift;
  cpp_int quotient, remainder;
  divide_qr(n, five, quotient, remainder);
  return leading_bits(quotient, exponent - shift, remainder != 0);
}

const PowerOfTen& power_of_ten(int q) {
  constexpr int first = lowest_power - head_digits;
  static const auto table = [] {
    std::array<PowerOfTen, highest_power - first + 1> powers;
    for (int i = 0; PowerOfTen & power : powers) {
      const int exponent = first + i++;
      const Leading leading = scale(1, exponent);
      // The last bit may stand for a remainder. Without that bit the significand is a lower bound, and 2 more
      // is an upper bound. Halving both reduces the slack to 1.
      const bool exact = exponent >= 0 && exponent <= 27;  // 5^27 < 2^63
      power = {exact ? leading.significand : leading.significand >> 1,
               static_cast<int>(leading.exponent) + (exact ? 0 : 1), !exact};
    }
    return powers;
  }();
  return table[static_cast<std::size_t>(q - first)];
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  c = lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool same_word(std::string_view text, std::string_view word) {
  return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                    [](char a, char b) { return lower(a) == b; });
}

/// Removes an exponent such as "e-12" from the end of the text, given the place of the e, and returns it. A
/// large exponent saturates far beyond what the digits of any text could compensate.
std::optional<std::int64_t> take_exponent(std::string_view& text, std::size_t mark) {
  if (mark == std::string_view::npos) return 0;
  std::string_view digits = text.substr(mark + 1);
  text = text.substr(0, mark);
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) return {};
  std::int64_t exponent = 0;
  for (const char c : digits)
    if (exponent < 100'000'000'000'000'000) exponent = 10 * exponent + (c - '0');
  return negative ? -exponent : exponent;
}

/// Calls visit(digit, is_fraction) for each digit. Returns false for other text than digits and one point.
template <class Value, class Visit> bool for_each_digit(std::string_view text, Value value, Visit visit) {
  bool any = false, fraction = false;
  for (const char c : text) {
    if (c == '.' && !fraction) {
      fraction = true;
      continue;
    }
    const int digit = value(c);
    if (digit < 0) return false;
    any = true;
    visit(static_cast<unsigned>(digit), fraction);
  }
  return any;
}

int decimal_value(char c) { return is_digit(c) ? c - '0' : -1; }

template <class F> std::optional<BitsOf<F>> parse_hex(bool negative, std::string_view text) {
  std::optional<std::int64_t> exponent = take_exponent(text, text.find_first_of("pP"));
  if (!exponent) return {};
  std::uint64_t significand = 0;
  bool rest = false;
  const bool good = for_each_digit(text, hex_value, [&](unsigned digit, bool fraction) {
    const bool room = significand >> 60 == 0;
    if (room)
      significand = significand << 4 | digit;
    else
      rest |= digit != 0;
    *exponent += 4 * (int{!room} - int{fraction});
  });
  if (!good) return {};
  return round_to_bits<F>(negative, significand | std::uint64_t{rest}, *exponent);
}

/// A decimal: 0.d1d2d3… · 10^magnitude with d1 not 0, and its first 19 digits as an integer.
struct Decimal {
  std::string_view text;  ///< the digits, possibly with leading zeros and a point
  std::int64_t magnitude = 0;
  std::uint64_t head = 0;
  int digits = 0;     ///< number of digits in the head
  bool more = false;  ///< a digit after the head is not 0
};

/// The leading bits from all digits that can matter. Of digits after exact_digits it matters only whether all
/// are 0.
Leading leading_bits(const Decimal& decimal) {
  cpp_int n = 0;
  std::uint64_t chunk = 0, weight = 1;
  int digits = 0;
  bool rest = false;
  const auto flush = [&] {
    n = n * weight + chunk;
    chunk = 0, weight = 1;
  };
  for_each_digit(decimal.text, decimal_value, [&](unsigned digit, bool) {
    if (digits == 0 && digit == 0) return;
    if (digits == exact_digits) {
      rest |= digit != 0;
      return;
    }
    ++digits;
    chunk = 10 * chunk + digit;
    weight *= 10;
    if (weight == 10'000'000'000'000'000'000u) flush();
  });
  flush();
  // Any nonzero digit after the last one puts the number on the same side of a midpoint.
  if (rest) n = 10 * n + 1, ++digits;
  return scale(n, static_cast<int>(decimal.magnitude) - digits);
}

std::optional<Decimal> scan_decimal(std::string_view text) {
  const std::optional<std::int64_t> exponent = take_exponent(text, text.find_first_of("eE"));
  if (!exponent) return {};
  Decimal d{text};
  d.magnitude = *exponent;
  const bool good = for_each_digit(text, decimal_value, [&](unsigned digit, bool fraction) {
    const bool leading_zero = d.head == 0 && digit == 0;
    d.magnitude += int{!leading_zero && !fraction} - int{leading_zero && fraction};
    if (leading_zero) return;
    if (d.digits == head_digits) {
      d.more |= digit != 0;
    } else {
      d.head = 10 * d.head + digit;
      ++d.digits;
    }
  });
  if (!good) return {};
  return d;
}

/// Bounds from 19 digits and 64 bits of the power of ten decide nearly all decimals. Others need all digits.
template <class F> BitsOf<F> round_decimal(bool negative, const Decimal& d) {
  if (d.head == 0 || d.magnitude <= lowest_power) return round_to_bits<F>(negative, 0, 0);
  if (d.magnitude > highest_power) return round_to_bits<F>(negative, 1, std::numeric_limits<int>::max());
  const PowerOfTen& power = power_of_ten(static_cast<int>(d.magnitude) - d.digits);
  const auto round = [&](Leading x) { return round_to_bits<F>(negative, x.significand, x.exponent); };
  const BitsOf<F> low = round(leading_bits(Wide{d.head} * power.significand, power.exponent));
  if (!d.more && !power.slack) return low;
  const Wide above = (Wide{d.head} + Wide{d.more}) * (Wide{power.significand} + Wide{power.slack});
  return low == round(leading_bits(above, power.exponent)) ? low : round(leading_bits(d));
}

template <class F> std::optional<BitsOf<F>> parse_bits(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (same_word(text, "nan")) return Format<F>::canonical_nan;
  if (same_word(text, "inf") || same_word(text, "infinity"))
    return BitsOf<F>((negative ? Format<F>::sign_bit : 0) | Format<F>::infinity);
  if (same_word(text.substr(0, 2), "0x")) return parse_hex<F>(negative, text.substr(2));
  const std::optional<Decimal> decimal = scan_decimal(text);
  if (!decimal) return {};
  return round_decimal<F>(negative, *decimal);
}

}  // namespace

std::optional<Number> parse_number(std::string_view text, const FormatInfo& format) {
  return with_format(format, [&]<class F>() -> std::optional<Number> {
    const std::optional<BitsOf<F>> bits = parse_bits<F>(text);
    if (!bits) return {};
    return Number{&format, *bits};
  });
}

std::optional<WrittenNumber> parse_written(std::string_view text) {
  const std::optional<Number> number = parse_number(text, format_info<fp64>());
  if (!number) return {};
  return WrittenNumber{number->to_double(), terms_lost(text, number->to_double())};
}

std::vector<double> terms_lost(std::string_view word, double rounded) {
  constexpr std::size_t exact_digits_of_double = 15;  // 10^15 < 2^53
  const std::size_t point = word.find('.');
  const bool has_fraction = point != word.npos && word.find_first_not_of('0', point + 1) != word.npos;
  if (word.size() <= exact_digits_of_double || has_fraction) return {};
  std::string_view integer = word.substr(0, point);
  const bool negative = integer.starts_with('-');
  if (negative || integer.starts_with('+')) integer.remove_prefix(1);
  const bool is_hex = same_word(integer.substr(0, 2), "0x");
  integer.remove_prefix(std::min(integer.find_first_not_of('0', is_hex ? 2 : 0), integer.size()));
  const auto is_digit_of_base = [&](char c) { return is_hex ? hex_value(c) >= 0 : is_digit(c); };
  if (integer.empty() || !std::ranges::all_of(integer, is_digit_of_base) || !std::isfinite(rounded))
    return {};
  cpp_int rest{(is_hex ? "0x" : "") + std::string{integer}};
  if (negative) rest = -rest;
  std::vector<double> terms;
  for (rest -= cpp_int{rounded}; rest != 0; rest -= cpp_int{terms.back()}) {
    const Leading leading = leading_bits(cpp_int{abs(rest)}, 0);
    terms.push_back(from_bits<fp64>(round_to_bits<fp64>(rest < 0, leading.significand, leading.exponent)));
  }
  return terms;
}

}  // namespace samesum::harness
