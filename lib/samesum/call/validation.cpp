/// The checks of arguments, and their messages.
#include "samesum/call/validation.hpp"

#include <cstdint>
#include <limits>
#include <stdexcept>

#include "samesum/base/text.hpp"

namespace samesum {
namespace {

constexpr std::size_t most = PTRDIFF_MAX;

/// Returns a·b; std::nullopt if it exceeds `most`.
std::optional<std::size_t> product(std::size_t a, std::size_t b) {
  std::size_t result;
  if (__builtin_mul_overflow(a, b, &result) || result > most) return std::nullopt;
  return result;
}
/// Returns a + b; std::nullopt if a or b is missing or the sum exceeds `most`.
std::optional<std::size_t> sum(std::optional<std::size_t> a, std::optional<std::size_t> b) {
  if (!a || !b || *a > most - *b) return std::nullopt;
  return *a + *b;
}

std::string words(std::size_t n) { return std::to_string(n); }

}  // namespace

bool is_array(const void* data, std::size_t n, ElementSize element) {
  const auto first = reinterpret_cast<std::uintptr_t>(data);
  if (n == 0) return true;
  return data != nullptr && first % element.alignment == 0 && n <= most / element.bytes &&
         n * element.bytes <= -first;
}

std::string validation_error(const char* name, const void* data, std::size_t n, ElementSize element) {
  if (is_array(data, n, element)) return {};
  if (reinterpret_cast<std::uintptr_t>(data) % element.alignment != 0)
    return std::string{name} + " is not aligned to its elements of " + words(element.bytes) +
           " bytes; copy it to aligned memory";
  if (data == nullptr)
    return std::string{name} + " is null but has " + words(n) + " elements; pass their address";
  return std::string{name} + " has " + words(n) + " elements of " + words(element.bytes) +
         " bytes, which is more than memory can hold; pass the actual number of elements";
}

std::string validation_error(const char* name, const Values& x) {
  if (!is_listed(x.format)) return std::string{name} + " has an unknown format; use one of samesum::formats";
  return validation_error(name, x.data, x.size, {x.format->bytes, x.format->bytes});
}

std::string validation_error(const Keys& keys) {
  if (!is_listed(keys.format)) return "keys have an unknown format; use one of samesum::KeyFormat";
  const std::size_t bytes = bytes_of(keys.format);
  return validation_error("keys", keys.data, keys.size, {bytes, bytes});
}

std::string validation_error(const Mask& where, std::size_t n, const char* of) {
  if (where.is_given() && where.size != n)
    return "where has " + words(where.size) + " flags; pass " + words(n) + ", one for each " + of;
  if (where.size > 0 && where.data == nullptr) return "where is null; pass its address";
  return {};
}

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  if (a_bytes == 0 || b_bytes == 0) return false;
  const auto first = reinterpret_cast<std::uintptr_t>(a), second = reinterpret_cast<std::uintptr_t>(b);
  return first <= second + (b_bytes - 1) && second <= first + (a_bytes - 1);
}

void check(const char* name, const Values& x) {
  if (is_listed(x.format) && is_array(x.data, x.size, {x.format->bytes, x.format->bytes})) return;
  throw std::invalid_argument("samesum: " + validation_error(name, x));
}

void check(std::string_view method, const FormatInfo& input) {
  if (!is_listed(&input))
    throw std::invalid_argument("samesum: " + std::string{method} +
                                ": input is not a format of the library; use one of samesum::formats");
}

void check(std::string_view method, const char* name, Number x, const FormatInfo& format) {
  if (is_listed(x.format) && x.format->index == format.index) return;
  throw std::invalid_argument("samesum: " + std::string{method} + ": " + name + " has format " +
                              std::string{is_listed(x.format) ? x.format->name : "(unknown)"} +
                              "; pass the number that the method returned, which has format " +
                              std::string{format.name});
}

double checked_magnitudes(std::string_view method, const char* name, double magnitudes) {
  if (magnitudes < 0)
    throw std::invalid_argument("samesum: " + std::string{method} + ": " + name + " is " +
                                three_digits(magnitudes) + "; it must be 0 or more");
  return magnitudes == magnitudes ? magnitudes : std::numeric_limits<double>::infinity();
}

std::optional<std::size_t> extent(const Layout& l, bool offsets_on_host) {
  if (l.outer == 0 || l.inner == 0) return 0;
  if (l.offsets) return offsets_on_host ? static_cast<std::size_t>(l.offsets[l.outer]) : 0;
  if (l.n == 0) return 0;
  return sum(sum(product(l.outer - 1, l.outer_stride), product(l.n - 1, l.stride)), l.inner);
}

std::string validation_error(const Layout& l, std::optional<std::size_t> results, bool offsets_on_host) {
  const std::optional<std::size_t> count = product(l.outer, l.inner);
  if (!count)
    return "layout has " + words(l.outer) + " x " + words(l.inner) +
           " results; fewer than 2^63 are supported";
  if (results && *count != *results)
    return "out has room for " + words(*results) + " results; the layout has " + words(*count);
  if (l.offsets) {
    if (l.inner != 1) return "layout.inner is " + words(l.inner) + "; it must be 1 for segments";
    if (!product(l.outer, sizeof *l.offsets))
      return "layout has " + words(l.outer) + " segments; fewer than 2^60 are supported";
    if (reinterpret_cast<std::uintptr_t>(l.offsets) % alignof(std::uint64_t) != 0)
      return "layout.offsets is not aligned to its elements of 8 bytes; copy it to aligned memory";
    for (std::size_t o = 0; offsets_on_host && o < l.outer; ++o)
      if (l.offsets[o + 1] < l.offsets[o])
        return "layout.offsets decreases from " + words(l.offsets[o]) + " to " + words(l.offsets[o + 1]) +
               " at index " + words(o + 1) + "; an offset must not be less than the one before it";
    return {};
  }
  if (*count == 0 || l.n == 0) return {};
  if (l.n > 1 && l.stride != 0 && l.stride < l.inner)
    return "layout.stride is " + words(l.stride) + "; it must be at least layout.inner (" + words(l.inner) +
           "), or results would share elements, or 0 to repeat elements";
  if (!product(*count, l.n))
    return "layout reads " + words(*count) + " x " + words(l.n) + " elements; fewer than 2^63 are supported";
  if (!extent(l, false))
    return "layout reaches beyond 2^63 elements: outer " + words(l.outer) + " at outer_stride " +
           words(l.outer_stride) + ", n " + words(l.n) + " at stride " + words(l.stride);
  return {};
}

}  // namespace samesum
