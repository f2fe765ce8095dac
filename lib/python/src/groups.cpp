/// Groups of equal keys in host memory.
#include <algorithm>

#include "module.hpp"
#include "samesum/backend/cpu/by_key/key_groups.hpp"

namespace samesum::python {
namespace {

template <class Visit> void with_number(std::string_view format, Visit visit) {
  if (format == "int32") return visit.template operator()<std::int32_t>();
  if (format == "int64") return visit.template operator()<std::int64_t>();
  throw std::invalid_argument("samesum: '" + std::string{format} +
                              "' is not a format of group numbers; use int32 or int64");
}

/// Returns the first keys of all groups as the bytes of integers of 64 bits.
nb::bytes number_groups(std::uintptr_t keys, std::size_t n, bool sorted, int threads, std::string_view format,
                        std::uintptr_t numbers) {
  std::vector<std::int64_t> first;
  with_number(format, [&]<class Number>() {
    const nb::gil_scoped_release released;
    first = cpu::number_groups(std::span{reinterpret_cast<const std::int64_t*>(keys), n}, sorted, threads,
                               reinterpret_cast<Number*>(numbers));
  });
  return nb::bytes{reinterpret_cast<const char*>(first.data()), first.size() * sizeof(std::int64_t)};
}

void sort_by_group(std::string_view format, std::uintptr_t numbers, std::size_t n, std::size_t groups,
                   std::uintptr_t indices, std::uintptr_t offsets) {
  with_number(format, [&]<class Number>() {
    const nb::gil_scoped_release released;
    cpu::sort_by_group(std::span{reinterpret_cast<const Number*>(numbers), n}, groups, 0,
                       reinterpret_cast<std::int64_t*>(indices), reinterpret_cast<std::uint64_t*>(offsets));
  });
}

}  // namespace

void bind_groups(nb::module_& m) {
  m.def("number_groups", number_groups);
  m.def("sort_by_group", sort_by_group);
}

}  // namespace samesum::python
