/// Merging, rounding and serialisation of Exact.
#include "samesum/accumulator/exact.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "samesum/base/serial_form.hpp"

namespace samesum {

Exact::Exact(std::span<const std::int64_t, digit_count> digits, std::uint32_t flags)
    : flags_{static_cast<std::uint8_t>(flags)} {
  std::ranges::copy(digits, digits_.begin());
  propagate_carries();
}

void Exact::propagate_carries() {
  samesum::propagate_carries(digits_.data(), digit_count);
  pending_ = 0;
}

void Exact::merge(const Exact& other) {
  if (pending_ + std::uint64_t{other.pending_} + 1 >= most_pending) {
    propagate_carries();
    Exact carried = other;
    carried.propagate_carries();
    for (std::size_t i = 0; i < digit_count; ++i) digits_[i] += carried.digits_[i];
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

Number Exact::result(const FormatInfo& format) const {
  if (is_special())
    return with_format(format, [&]<class F>() { return Number{&format, special_bits<F>(flags_)}; });
  if (only_minus_zero()) return {&format, format.sign_bit};
  Exact sum = *this;
  sum.propagate_carries();
  if (const std::int64_t top = sum.digits_.back(); std::abs(top) >= top_limit)  // beyond every format
    return {&format, (top < 0 ? format.sign_bit : 0) | format.infinity};
  const LeadingBits leading = leading_of_digits(sum.digits_.data(), digit_count, lowest_exponent);
  return with_format(format, [&]<class F>() { return Number{&format, leading.rounded<F>()}; });
}

Exact Exact::canonical() const {
  Exact state = *this;
  state.propagate_carries();
  if (std::abs(state.digits_.back()) > top_limit)
    throw std::length_error(
        "samesum: the sum is beyond that of 2^64 elements, the most that an exact state holds");
  const bool infinite = flags_ & (seen_plus_infinity | seen_minus_infinity);
  if (is_nan() || infinite) {  // absorbing: no later element makes the digits matter again
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
  if (std::abs(state.digits_.back()) > top_limit)
    SerialReader::refuse("its sum is beyond that of 2^64 elements");
  // Accept only the bytes that `serialise` writes: canonical digits, and flags that agree with them.
  const bool nonzero = std::ranges::any_of(state.digits_, [](std::int64_t digit) { return digit != 0; });
  const bool other = state.flags_ & seen_other_than_minus_zero;
  const bool flags_agree = state.flags_ < 32 && (other || (!nonzero && state.flags_ <= seen_any)) &&
                           (!other || (state.flags_ & seen_any));
  if (!flags_agree || !std::ranges::equal(state.serialise(), bytes))
    SerialReader::refuse("its digits and flags contradict each other");
  return state;
}

}  // namespace samesum
