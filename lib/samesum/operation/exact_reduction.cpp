/// Serialisation of exact reductions.
#include "samesum/operation/exact_reduction.hpp"

#include <algorithm>

namespace samesum {
namespace {

constexpr std::uint32_t infinities = Exact::seen_plus_infinity | Exact::seen_minus_infinity;

bool is_nan(std::uint64_t flags) { return flags & Exact::seen_nan || (flags & infinities) == infinities; }
bool is_special(std::uint64_t flags) { return (flags & (Exact::seen_nan | infinities)) != 0; }

void write(const ExactTerms::Digits& digits, SerialWriter& out) {
  for (const std::int64_t digit : digits) out.put(static_cast<std::uint32_t>(digit));
}
void read(SerialReader& in, ExactTerms::Digits& digits) {
  for (std::int64_t& digit : digits) digit = in.get<std::uint32_t>();
  digits.back() = static_cast<std::int32_t>(digits.back());
}

bool is_zero(const ExactTerms::Digits& digits) {
  return std::ranges::all_of(digits, [](std::int64_t digit) { return digit == 0; });
}

}  // namespace

void write_digits(ExactDigits digits, ExactKind kind, SerialWriter& out) {
  // Absorbing: no later element makes the digits matter again.
  if (is_special(digits.flags)) digits.terms = digits.squares = {};
  if (is_nan(digits.flags))
    digits.flags = Exact::seen_any | Exact::seen_other_than_minus_zero | Exact::seen_nan;
  out.put(static_cast<std::uint8_t>(digits.flags));
  write(digits.terms, out);
  if (kind.moments) write(digits.squares, out);
}

bool read_digits(SerialReader& in, ExactKind kind, ExactDigits& digits) {
  digits.flags = in.get<std::uint8_t>();
  read(in, digits.terms);
  if (kind.moments) read(in, digits.squares);
  // Sums of fewer than 2^64 products leave only the sign for the last digit.
  for (const std::int64_t last : {digits.terms.back(), digits.squares.back()})
    if (last != 0 && last != -1) return false;
  const bool no_digits = is_zero(digits.terms) && is_zero(digits.squares);
  const bool other = digits.flags & Exact::seen_other_than_minus_zero;
  if (is_special(digits.flags) && !(no_digits && other)) return false;
  if (is_nan(digits.flags) && digits.flags & infinities) return false;
  return digits.flags < 32 && digits.flags & Exact::seen_any && (other || no_digits);
}

}  // namespace samesum
