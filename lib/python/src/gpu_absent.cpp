/// What a build without CUDA has in place of gpu.cpp.
#include "cells.hpp"
#include "module.hpp"

namespace samesum::python {
namespace {
[[noreturn]] void refuse() {
  throw std::invalid_argument(
      "samesum: x is in the memory of a GPU, but samesum was built without CUDA; copy x to the host, or "
      "install it "
      "where nvcc is, by pip install . --config-settings=cmake.define.SAMESUM_CUDA=ON");
}
}  // namespace

void reduce_on_gpu(const Call&, Place) { refuse(); }
void add_on_gpu(Partial&, Values, Values, Place) { refuse(); }
Exact accumulate_on_gpu(Values, Place) { refuse(); }
void cells_on_gpu(Place, const std::function<void(std::uintptr_t)>&) { refuse(); }
void add_to_cells_on_gpu(const CellArray&, const CellElements&, std::uintptr_t) { refuse(); }
void merge_cells_on_gpu(const CellArray&, const void*, std::uintptr_t) { refuse(); }
void finish_cells_on_gpu(const CellArray&, const FormatInfo&, void*, std::uintptr_t) { refuse(); }
void bind_gpu(nb::module_& m) { m.attr("has_cuda") = false; }

}  // namespace samesum::python
