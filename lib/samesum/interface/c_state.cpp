/// Sums, results and bytes of aggregate states.
#include "samesum/interface/c_state.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "samesum/accumulator/canonical_digits.hpp"
#include "samesum/accumulator/dyadic.hpp"
#include "samesum/backend/cpu/schedule/methods.hpp"
#include "samesum/base/serial_form.hpp"
#include "samesum/operation/partial_form.hpp"

namespace samesum::c {
namespace {

/// Below this, adding elements one by one is faster than merging the state of all of them.
constexpr std::size_t few = 32;

/// Counts stay below it, so that no sum or difference of two overflows.
constexpr std::int64_t most_counted = std::int64_t{1} << 62;

[[noreturn]] void refuse_more_elements() {
  throw std::length_error(
      "samesum: a state holds fewer than 2^63 elements, and a subtractable one fewer than 2^62; add no more");
}

/// Whether a sum is beyond that of 2^63 elements. The highest digit counts units of 2^1070.
bool is_too_large(const Exact& sum) {
  constexpr std::int64_t most = 1 << 20;
  const bool may_be_large = std::abs(sum.digits().back()) > most;  // a negative sum has pending carries, too
  return may_be_large && std::abs(canonical_digits(sum).back()) > most;
}
/// Throws std::length_error for such a sum, so that merging cannot overflow a digit.
void check_size(const Exact& sum) {
  if (is_too_large(sum)) refuse_more_elements();
}

/// The sum with the other sign, and without flags.
Exact negative(const Exact& sum) {
  std::array<std::int64_t, Exact::digit_count> digits;
  std::ranges::transform(sum.digits(), digits.begin(), std::negate{});
  return Exact{digits, 0};
}

Number quotient(const Exact& sum, const FormatInfo& format, std::uint64_t divisor) {
  if (divisor == 0) return {&format, format.canonical_nan};
  if (divisor == 1 || sum.is_special() || sum.only_minus_zero()) return sum.result(format);
  return Dyadic{sum.digits(), Exact::lowest_exponent}.rounded_quotient(format, Dyadic{divisor});
}

}  // namespace

// --- exact -------------------------------------------------------------------------------------------------

void ExactSum::add(Values x) {
  if (x.size >= few) return sum.merge(cpu::sum_exact(x, 1));
  with_format(*x.format, [&]<class T>() { sum.add(x.as<T>()); });
}

void ExactSum::merge(const ExactSum& other) {
  check_size(sum);
  check_size(other.sum);
  sum.merge(other.sum);
}

Number ExactSum::result(const FormatInfo& format, std::uint64_t divisor) const {
  return quotient(sum, format, divisor);
}

// --- exact, subtractable -----------------------------------------------------------------------------------

template <class T> void SubtractableSum::add_block(std::span<const T> x, int sign) {
  const auto is_finite = [](T element) {
    return BitsOf<T>(to_bits(element) & ~Format<T>::sign_bit) < Format<T>::infinity;
  };
  if (x.size() < few || !std::ranges::all_of(x, is_finite)) {
    for (const T element : x) add(element, sign);
    return;
  }
  const Exact sum = cpu::sum_exact(Values{x}, 1);
  const auto minus_zeros =
      std::ranges::count_if(x, [](T element) { return to_bits(element) == Format<T>::sign_bit; });
  const auto n = static_cast<std::int64_t>(x.size());
  add_counts({.elements = n, .other_than_minus_zero = n - minus_zeros}, sign);
  finite.merge(sign > 0 ? sum : negative(sum));
}

void SubtractableSum::add(Values x, int sign) {
  constexpr std::size_t block = 4096;  // a block with a NaN or an infinity is added one by one
  check_room(x.size);
  with_format(*x.format, [&]<class T>() {
    const std::span<const T> all = x.as<T>();
    for (std::size_t i = 0; i < all.size(); i += block)
      add_block(all.subspan(i, std::min(block, all.size() - i)), sign);
  });
}

void SubtractableSum::merge(const SubtractableSum& other, int sign) {
  check_size(finite);
  check_size(other.finite);
  const Exact digits = sign > 0 ? other.finite : negative(other.finite);  // `other` may be this state
  add_counts(other.counts, sign);
  finite.merge(digits);
}

/// Throws std::length_error if n elements more could be too many, before any of them is added.
void SubtractableSum::check_room(std::size_t n) const {
  Counts all = counts;
  all.with(counts, [n](std::int64_t& count, std::int64_t) {
    if (n >= most_counted || std::abs(count) >= most_counted - static_cast<std::int64_t>(n))
      refuse_more_elements();
  });
}

void SubtractableSum::add_counts(const Counts& other, int sign) {
  Counts sum = counts;
  sum.with(other, [&](std::int64_t& mine, std::int64_t more) {
    mine += sign * more;
    if (std::abs(mine) >= most_counted) refuse_more_elements();
  });
  counts = sum;
}

/// The state that adding the remaining elements alone gives.
Exact SubtractableSum::state() const {
  const auto digits = canonical_digits(finite);
  const bool has_sum = std::ranges::any_of(digits, [](std::int64_t digit) { return digit != 0; });
  const std::int64_t least = std::min({counts.nan, counts.plus_infinity, counts.minus_infinity});
  const std::int64_t numbers = counts.other_than_minus_zero - counts.specials();
  if (least < 0 || numbers < 0 || counts.elements < counts.other_than_minus_zero || (numbers == 0 && has_sum))
    throw std::invalid_argument(
        "samesum: more elements were subtracted from the state than added; add what was subtracted");
  std::uint32_t flags = 0;
  if (counts.elements > 0) flags |= Exact::seen_any;
  if (counts.other_than_minus_zero > 0) flags |= Exact::seen_other_than_minus_zero;
  if (counts.nan > 0) flags |= Exact::seen_nan;
  if (counts.plus_infinity > 0) flags |= Exact::seen_plus_infinity;
  if (counts.minus_infinity > 0) flags |= Exact::seen_minus_infinity;
  return Exact{digits, flags};
}

Number SubtractableSum::result(const FormatInfo& format, std::uint64_t divisor) const {
  return quotient(state(), format, divisor);
}

std::vector<std::byte> SubtractableSum::serialise() const {
  check_size(finite);
  const auto digits = canonical_digits(finite);
  SerialWriter out{name};
  Counts all = counts;
  all.with(counts, [&](std::int64_t& count, std::int64_t) { out.put(static_cast<std::uint64_t>(count)); });
  for (const std::int64_t digit : digits) out.put(static_cast<std::uint32_t>(digit));
  out.put_checksum();
  return out.bytes();
}

void SubtractableSum::deserialise(std::span<const std::byte> bytes) {
  SerialReader in{bytes, name};
  in.check_checksum();
  Counts all;
  all.with(all, [&](std::int64_t& count, std::int64_t) {
    count = static_cast<std::int64_t>(in.get<std::uint64_t>());
    if (count >= most_counted || count <= -most_counted)
      SerialReader::refuse("it counts 2^62 or more elements");
  });
  std::array<std::int64_t, Exact::digit_count> digits;
  for (std::int64_t& digit : digits) digit = in.get<std::uint32_t>();
  digits.back() = static_cast<std::int32_t>(digits.back());
  in.finish();
  const Exact sum{digits, 0};
  if (is_too_large(sum)) SerialReader::refuse("its sum is beyond that of 2^63 elements");
  counts = all;
  finite = sum;
}

// --- fixed_point -------------------------------------------------------------------------------------------

void GridState::add_count(std::uint64_t more) {
  constexpr std::uint64_t most = std::uint64_t{1} << 63;
  if (more >= most || n >= most - more) refuse_more_elements();
  n += more;
}

void GridState::add(Values x) {
  add_count(x.size);
  sum.merge(cpu::sum_on_grid(x, header.grid));
}

void GridState::merge(const GridState& other) {
  const GridSum more = other.sum;  // `other` may be this state
  add_count(other.n);
  sum.merge(more);
}

Number GridState::result(const FormatInfo& format, std::uint64_t divisor) const {
  if (sum.overflows(n, word_bits_for(formats[header.format].precision)))
    throw std::overflow_error("samesum: a sum overflows the grid 2^" + std::to_string(header.grid) +
                              "; give a larger grid");
  if (divisor == 0) return {&format, format.canonical_nan};
  return with_format(format, [&]<class F>() {
    return Number{&format, sum.template result<F>(header.grid, divisor)};
  });
}

namespace {

/// The name of the method without its backend, as Partial::serialise writes it.
std::string name_on_grid(const StateHeader& kind) {
  return "sum/fixed_point/" + std::string{formats[kind.format].name};
}

}  // namespace

std::vector<std::byte> GridState::serialise() const {
  SerialWriter out{name_on_grid(header)};
  out.put(std::uint64_t{0});
  out.put(n);
  out.put(static_cast<std::uint16_t>(header.grid));
  if (n > 0)
    with_format(formats[header.format], [&]<class F>() {
      GridPartialFunctions<Sum, F>::write(reinterpret_cast<const std::byte*>(&sum), out);
    });
  out.put_checksum();
  return out.bytes();
}

void GridState::deserialise(std::span<const std::byte> bytes) {
  SerialReader in{bytes, name_on_grid(header)};
  in.check_checksum();
  const auto begin = in.get<std::uint64_t>(), end = in.get<std::uint64_t>();
  if (begin != 0) SerialReader::refuse("it begins at element " + std::to_string(begin) + ", not at 0");
  if (end >> 63 != 0) SerialReader::refuse("it has 2^63 or more elements");
  const auto grid = static_cast<std::int16_t>(in.get<std::uint16_t>());
  if (grid != header.grid)
    SerialReader::refuse("its grid is 2^" + std::to_string(grid) + ", not 2^" + std::to_string(header.grid));
  GridSum read;
  if (end > 0 && !with_format(formats[header.format], [&]<class F>() {
        return GridPartialFunctions<Sum, F>::read(in, 0, end, reinterpret_cast<std::byte*>(&read));
      }))
    SerialReader::refuse("no elements have its sum");
  in.finish();
  n = end;
  sum = read;
}

std::size_t serialised_bytes(const StateHeader& kind) {
  constexpr std::size_t head = serial_magic.size() + 2, digits = Exact::digit_count * sizeof(std::uint32_t),
                        checksum = sizeof(std::uint32_t), word = sizeof(std::uint64_t);
  switch (kind.form) {
    case Form::exact:
      return head + Exact::name.size() + 1 + digits;
    case Form::subtractable:
      return head + SubtractableSum::name.size() + 5 * word + digits + checksum;
    case Form::fixed_point:
      return head + name_on_grid(kind).size() + 2 * word + 2 + 2 * word + 2 + checksum;
  }
  return 0;
}

}  // namespace samesum::c
