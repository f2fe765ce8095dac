/// The formats that kernels are compiled for.
#pragma once

#include "samesum/format/formats.hpp"

namespace samesum::gpu {

#ifdef SAMESUM_CUDA_CHECK
/// A build that only checks whether CUDA code compiles has the kernels of one format, and runs none.
inline constexpr bool only_checked = true;
using KernelFormats = TypeList<Formats::at<SAMESUM_CUDA_CHECK>>;
#else
inline constexpr bool only_checked = false;
using KernelFormats = Formats;
#endif

/// Whether there are kernels for the format with this format index.
template <std::size_t index> inline constexpr bool has_kernels = KernelFormats::contains<Formats::at<index>>;

/// Calls `visit.operator()<F>()`, where F is the type of `format`, as with_format() does.
template <class Visit> decltype(auto) with_kernel_format(const FormatInfo& format, Visit&& visit) {
  if constexpr (only_checked)
    return visit.template operator()<KernelFormats::at<0>>();
  else
    return with_format(format, visit);
}

}  // namespace samesum::gpu
