/// Exact sums and extrema of integers in host memory.
#include "samesum/backend/cpu/integers.hpp"

#include <algorithm>
#include <array>

#include "module.hpp"

namespace samesum::python {
namespace {

cpu::IntegerType integer_type_named(std::string_view name) {
  static constexpr std::array<std::string_view, 9> names{"int8",   "int16",  "int32",  "int64", "uint8",
                                                         "uint16", "uint32", "uint64", "bool"};
  const auto at = std::ranges::find(names, name);
  if (at == names.end())
    throw std::invalid_argument("samesum: '" + std::string{name} +
                                "' is not a type of integers; use int64 or bool");
  return static_cast<cpu::IntegerType>(at - names.begin());
}

/// Reduces some axes, and returns whether a result is not valid: a sum beyond 64 bits, or an extremum of
/// nothing.
bool reduce_integers(std::string_view operation, std::string_view dtype, std::uintptr_t x,
                     std::uintptr_t where,
                     const std::vector<std::tuple<std::size_t, std::ptrdiff_t, std::ptrdiff_t, bool>>& axes,
                     std::uintptr_t out) {
  cpu::IntegerArray array{integer_type_named(dtype),
                          reinterpret_cast<const void*>(x),
                          reinterpret_cast<const std::uint8_t*>(where),
                          {}};
  for (const auto& [n, stride, where_stride, reduced] : axes)
    array.axes.push_back({n, stride, where_stride, reduced});
  const bool smallest = operation.ends_with("min");
  void* const results = reinterpret_cast<void*>(out);
  const nb::gil_scoped_release released;
  if (operation == "sum") return cpu::sum_integers(array, results);
  if (operation.starts_with("arg"))
    return cpu::indices_of_extrema(array, smallest, static_cast<std::int64_t*>(results));
  return cpu::extrema_of_integers(array, smallest, results);
}

}  // namespace

void bind_integers(nb::module_& m) { m.def("reduce_integers", reduce_integers); }

}  // namespace samesum::python
