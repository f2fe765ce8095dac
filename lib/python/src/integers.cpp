/// Exact sums and extrema of integers in host memory.
#include <algorithm>

#include "module.hpp"

namespace samesum::python {

cpu::IntegerType integer_type_named(std::string_view name) {
  const auto at = std::ranges::find(cpu::integer_type_names, name);
  if (at == cpu::integer_type_names.end())
    throw std::invalid_argument("samesum: '" + std::string{name} +
                                "' is not a type of integers; use int64 or bool");
  return static_cast<cpu::IntegerType>(at - cpu::integer_type_names.begin());
}

bool reduce_integers(std::string_view operation, const cpu::IntegerArray& array, void* out) {
  const bool smallest = operation.ends_with("min");
  if (operation == "sum") return cpu::sum_integers(array, out);
  if (operation.starts_with("arg"))
    return cpu::indices_of_extrema(array, smallest, static_cast<std::int64_t*>(out));
  return cpu::extrema_of_integers(array, smallest, out);
}

void bind_integers(nb::module_& m) {
  m.attr("integer_types") =
      nb::cast(std::vector(cpu::integer_type_names.begin(), cpu::integer_type_names.end()));
  // An axis is its length, its strides in elements of x and of `where`, and whether it is reduced.
  m.def("reduce_integers",
        [](std::string_view operation, std::string_view dtype, std::uintptr_t x, std::uintptr_t where,
           const std::vector<std::tuple<std::size_t, std::ptrdiff_t, std::ptrdiff_t, bool>>& axes,
           std::uintptr_t out) {
          cpu::IntegerArray array{integer_type_named(dtype),
                                  reinterpret_cast<const void*>(x),
                                  reinterpret_cast<const std::uint8_t*>(where),
                                  {}};
          for (const auto& [n, stride, where_stride, reduced] : axes)
            array.axes.push_back({n, stride, where_stride, reduced});
          const nb::gil_scoped_release released;
          return reduce_integers(operation, array, reinterpret_cast<void*>(out));
        });
}

}  // namespace samesum::python
