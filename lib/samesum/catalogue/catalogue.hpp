/// The catalogue of methods: all combinations of the lists of operations, orders, accumulators, formats and
/// backends.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "samesum/call/call.hpp"
#include "samesum/catalogue/parse_name.hpp"

namespace samesum {

/// Returns every method that runs in this process, grouped by operation, then by backend. Methods stay at
/// their addresses until the process ends.
std::span<const Method> methods();
/// Returns the methods of one operation, such as "dot"; empty if there is no such operation.
std::span<const Method> methods(std::string_view operation);

/// A combination of the lists that is not a method, and the reason.
struct Unsupported {
  std::string name, reason;
};
/// Returns every combination of the lists that is not a method on some backend.
std::span<const Unsupported> unsupported();

/// A backend that has no methods in this process, and the reason.
struct Absent {
  std::string backend, reason;
};
/// Returns the backends that have no methods in this process.
std::span<const Absent> absent();

/// Returns the method with the name `operation/order/accumulator/format@backend`.
///
/// A name may leave out the operation, the format and the backend: `defaults` has their values. With an order
/// and no accumulator it means `plain`; with an accumulator and no order it means `tree`, for scans `prefix`,
/// by key `serial`. A field is absent if the operation has no choice in it. Complexity: linear in the number
/// of methods.
/// @throws std::invalid_argument if there is no such method. The message names the wrong field and its
///   possible values, or the reason why the combination does not exist, or the nearest methods.
const Method& find(std::string_view name, NameDefaults defaults = {});

/// Returns the method of an operation for callers who name none: the exact one if there is one, else
/// tree/plain, else the first; in the format of the elements if the operation has it, else in fp32. Returns
/// nullptr if no method of the operation takes such elements there.
const Method* default_method(std::string_view operation, const FormatInfo& input,
                             std::string_view backend = "cpu");

/// Returns the same method on another backend.
/// @throws std::invalid_argument as `find` does.
const Method& find_on(std::string_view backend, const Method& method);

}  // namespace samesum
