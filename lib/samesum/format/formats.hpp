/// The list of formats: a new one is declared in format.hpp and named here.
#pragma once

#include <array>

#include "samesum/base/type_list.hpp"
#include "samesum/format/format.hpp"

namespace samesum {

using Formats = TypeList<fp16, bf16, fp32, fp64>;

/// The same facts for code that learns the format at run time.
struct FormatInfo {
  std::string_view name;
  std::size_t index;  ///< its place in `Formats`
  std::size_t bytes;
  int precision;  ///< significant bits, the hidden one included
  int max_exponent, min_quantum;
  double unit_roundoff, smallest_subnormal, max_finite;
  std::uint64_t infinity, canonical_nan, sign_bit;
};

namespace detail {
template <class... F> constexpr std::array<FormatInfo, sizeof...(F)> describe(TypeList<F...> list) {
  return {FormatInfo{Format<F>::name, decltype(list)::template index_of<F>(), sizeof(F), Format<F>::precision,
                     Format<F>::max_exponent, Format<F>::min_quantum, Format<F>::unit_roundoff,
                     Format<F>::smallest_subnormal, Format<F>::max_finite, Format<F>::infinity,
                     Format<F>::canonical_nan, Format<F>::sign_bit}...};
}
}  // namespace detail

inline constexpr auto formats = detail::describe(Formats{});

template <class F> constexpr const FormatInfo& format_info() { return formats[Formats::index_of<F>()]; }

/// The place in the list of the format of that name; the size of the list where there is none.
constexpr std::size_t format_index(std::string_view name) {
  std::size_t i = 0;
  while (i < formats.size() && formats[i].name != name) ++i;
  return i;
}

/// The format of that name, or nullptr.
constexpr const FormatInfo* find_format(std::string_view name) {
  const std::size_t i = format_index(name);
  return i < formats.size() ? &formats[i] : nullptr;
}

/// visit.operator()<F>() for the format at that place of the list; returns what it returns.
template <std::size_t i = 0, class Visit>
constexpr decltype(auto) with_format(const FormatInfo& format, Visit&& visit) {
  if constexpr (i + 1 == Formats::size) {
    return visit.template operator()<Formats::at<i>>();
  } else {
    if (format.index == i) return visit.template operator()<Formats::at<i>>();
    return with_format<i + 1>(format, visit);
  }
}

}  // namespace samesum
