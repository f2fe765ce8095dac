/// The list of formats. A new format is declared in format.hpp and listed here.
#pragma once

#include <array>

#include "samesum/base/type_list.hpp"
#include "samesum/format/format.hpp"

namespace samesum {

/// All formats. The position of a format in the list is its format index.
using Formats = TypeList<fp16, bf16, fp32, fp64>;

/// The parameters of a format that is selected at run time.
struct FormatInfo {
  std::string_view name;                                 ///< "fp16", "bf16", "fp32" or "fp64"
  std::size_t index;                                     ///< format index: position in `Formats`
  std::size_t bytes;                                     ///< size of an element, and its alignment
  int precision;                                         ///< significant bits, the hidden bit included
  int max_exponent, min_quantum;                         ///< as in `Format`
  double unit_roundoff, smallest_subnormal, max_finite;  ///< as in `Format`
  std::uint64_t infinity, canonical_nan, sign_bit;       ///< bit patterns
};

namespace detail {
template <class... F> constexpr std::array<FormatInfo, sizeof...(F)> describe(TypeList<F...> list) {
  return {FormatInfo{Format<F>::name, decltype(list)::template index_of<F>(), sizeof(F), Format<F>::precision,
                     Format<F>::max_exponent, Format<F>::min_quantum, Format<F>::unit_roundoff,
                     Format<F>::smallest_subnormal, Format<F>::max_finite, Format<F>::infinity,
                     Format<F>::canonical_nan, Format<F>::sign_bit}...};
}
}  // namespace detail

/// Parameters of all formats, by format index.
inline constexpr auto formats = detail::describe(Formats{});

/// Parameters of format F.
template <class F> constexpr const FormatInfo& format_info() { return formats[Formats::index_of<F>()]; }

/// Format index of the format with that name; Formats::size if there is none.
constexpr std::size_t format_index(std::string_view name) {
  std::size_t i = 0;
  while (i < formats.size() && formats[i].name != name) ++i;
  return i;
}

/// Format with that name; nullptr if there is none.
constexpr const FormatInfo* find_format(std::string_view name) {
  const std::size_t i = format_index(name);
  return i < formats.size() ? &formats[i] : nullptr;
}

/// Calls `visit.operator()<F>()`, where F is the type of `format`, and returns its result.
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
