/// The table of variants: the lists of orders, accumulators, formats and backends, folded.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "samesum/variant.hpp"

namespace samesum {

/// Every variant that runs in this process.
std::span<const Variant> variants();

/// A combination that does not exist, and why.
struct Unsupported {
  std::string name, reason;
};
std::span<const Unsupported> unsupported();

/// A backend that has no variants in this process, and why.
struct Absent {
  std::string backend, reason;
};
std::span<const Absent> absent();

/// The variant of that name. Without "@backend" it means "@cpu". Throws std::invalid_argument that names the
/// nearest variants, or the reason where the combination makes no sense.
const Variant& find(std::string_view name);

}  // namespace samesum
