/// The catalogue of methods: the lists of operations, orders, accumulators, formats and backends, folded.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "samesum/catalogue/method.hpp"

namespace samesum {

/// Every method that runs in this process, by operation, then by backend.
std::span<const Method> methods();
/// Those of one operation; empty for a word that is none.
std::span<const Method> methods(std::string_view operation);

/// A combination that does not exist, and why.
struct Unsupported {
  std::string name, reason;
};
std::span<const Unsupported> unsupported();

/// A backend that has no methods in this process, and why.
struct Absent {
  std::string backend, reason;
};
std::span<const Absent> absent();

/// The fields that a name leaves out.
struct NameDefaults {
  std::string_view operation = "sum";
  std::string_view format = {};  ///< empty: the name must say it
  std::string_view backend = "cpu";
};

/// The method of that name, operation/order/accumulator/format@backend. Throws std::invalid_argument that
/// names the field that is wrong and what it can be, or the reason why there is no such combination.
const Method& find(std::string_view name, NameDefaults defaults = {});

/// The same method on another backend. Throws as `find` does.
const Method& find_on(std::string_view backend, const Method& method);

}  // namespace samesum
