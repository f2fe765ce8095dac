#include "samesum/accumulator/exact.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <stdexcept>

#include "samesum/format/formats.hpp"
#include "samesum/serial_form.hpp"

namespace samesum {

void Exact::propagate_carries() {
  std::int64_t carry = 0;
  for (int i = 0; i + 1 < digit_count; ++i) {
    const std::int64_t digit = digits_[std::size_t(i)] + carry;
    carry = digit >> 32;  // rounds down, so that what stays is in [0, 2^32)
    digits_[std::size_t(i)] = digit & 0xffffffff;
  }
  digits_.back() += carry;  // the top digit keeps the sign
  pending_ = 0;
}

void Exact::merge(const Exact& other) {
  if (pending_ + std::uint64_t{other.pending_} + 1 >= most_pending) {
    propagate_carries();
    Exact settled = other;
    settled.propagate_carries();
    for (std::size_t i = 0; i < digit_count; ++i) digits_[i] += settled.digits_[i];
    pending_ = 1;
  } else {
    for (std::size_t i = 0; i < digit_count; ++i) digits_[i] += other.digits_[i];
    pending_ += other.pending_ + 1;
  }
  flags_ = std::uint8_t(flags_ | other.flags_);
}

bool Exact::is_nan() const {
  const int both = seen_plus_infinity | seen_minus_infinity;
  return (flags_ & seen_nan) || (flags_ & both) == both;
}

template <class F> F Exact::result() const {
  if (is_nan()) return from_bits<F>(Format<F>::canonical_nan);
  if (flags_ & seen_plus_infinity) return from_bits<F>(Format<F>::infinity);
  if (flags_ & seen_minus_infinity) return from_bits<F>(BitsOf<F>(Format<F>::sign_bit | Format<F>::infinity));

  Exact magnitude = *this;
  magnitude.propagate_carries();
  const bool negative = magnitude.digits_.back() < 0;
  if (negative) {
    for (std::int64_t& digit : magnitude.digits_) digit = -digit;
    magnitude.propagate_carries();
  }
  if (magnitude.digits_.back() >= top_limit)  // beyond any format, by far
    return from_bits<F>(BitsOf<F>((negative ? Format<F>::sign_bit : 0) | Format<F>::infinity));
  int top = digit_count - 1;
  while (top >= 0 && magnitude.digits_[std::size_t(top)] == 0) --top;
  if (top < 0) return from_bits<F>(only_minus_zero() ? Format<F>::sign_bit : BitsOf<F>{0});
  // The 64 bits from the leading one down, and in their last bit whether anything lies below.
  const auto digit = [&](int i) { return i < 0 ? 0 : std::uint64_t(magnitude.digits_[std::size_t(i)]); };
  const int zeros = std::countl_zero(std::uint32_t(digit(top)));
  std::uint64_t leading = ((digit(top) << 32) | digit(top - 1)) << zeros;
  if (zeros > 0) leading |= digit(top - 2) >> (32 - zeros);
  bool sticky = ((digit(top - 2) << zeros) & 0xffffffff) != 0;
  for (int i = top - 3; i >= 0 && !sticky; --i) sticky = digit(i) != 0;
  return from_bits<F>(
      round_to_bits<F>(negative, leading | std::uint64_t{sticky}, lowest_exponent + 32 * (top - 1) - zeros));
}

template fp16 Exact::result() const;
template bf16 Exact::result() const;
template fp32 Exact::result() const;
template fp64 Exact::result() const;

Exact Exact::canonical() const {
  Exact state = *this;
  state.propagate_carries();
  if (std::abs(state.digits_.back()) > top_limit)
    throw std::length_error("samesum: an exact state holds the sum of up to 2^64 elements");
  const bool infinite = flags_ & (seen_plus_infinity | seen_minus_infinity);
  if (is_nan() || infinite) {  // absorbing: whatever is added later, the digits no longer matter
    state.digits_ = {};
    if (is_nan()) state.flags_ = seen_any | seen_other_than_minus_zero | seen_nan;
  }
  return state;
}

std::vector<std::byte> Exact::serialise() const {
  const Exact state = canonical();
  SerialWriter out{name};
  out.put(state.flags_);
  for (const std::int64_t digit : state.digits_) out.put(std::uint32_t(digit));
  return out.bytes();
}

Exact Exact::deserialise(std::span<const std::byte> bytes) {
  SerialReader in{bytes, name};
  Exact state;
  state.flags_ = in.get<std::uint8_t>();
  for (std::int64_t& digit : state.digits_) digit = in.get<std::uint32_t>();
  state.digits_.back() = std::int32_t(state.digits_.back());
  in.finish();
  if (std::abs(state.digits_.back()) > top_limit) SerialReader::refuse("it is beyond 2^64 elements");
  // Only what `serialise` writes is taken: canonical digits, and flags that agree with them.
  const bool nonzero = std::ranges::any_of(state.digits_, [](std::int64_t digit) { return digit != 0; });
  const bool other = state.flags_ & seen_other_than_minus_zero;
  const bool flags_agree = state.flags_ < 32 && (other || (!nonzero && state.flags_ <= seen_any)) &&
                           (!other || (state.flags_ & seen_any));
  if (!flags_agree || !std::ranges::equal(state.serialise(), bytes))
    SerialReader::refuse("its digits and flags contradict each other");
  return state;
}

}  // namespace samesum
