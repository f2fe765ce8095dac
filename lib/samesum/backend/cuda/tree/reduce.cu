/// Batches on a GPU in one format: the methods, and their kernels for elements of that format.
#include "samesum/backend/cuda/tree/reduce.cuh"

namespace samesum::gpu {
namespace {

template <class Operation, class Accumulator> cudaError_t run_order_free(Launch& work) {
  constexpr ExactKind kind = exact_kind<Operation>;
  if constexpr (Accumulator::takes_grid)
    return with_kernel_format(*work.call.x.format, [&]<class T>() {
      return reduce_on_grid_of<Formats::index_of<T>()>(kind, work);
    });
  else
    return reduce_exactly(kind, work);
}

}  // namespace

template <> std::vector<Entry> reductions<SAMESUM_FORMAT_INDEX>() {
  std::vector<Entry> all;
  for_each_method_of_batches([&]<class Operation, class Order, template <class> class A>() {
    Entry e = describe<Operation, Order, A, F>("cuda");
    if constexpr (KernelFormats::contains<F>) enter_batches<F, Operation, Order, A>(e);
    all.push_back(e);
  });
  enter_batches_of_other_formats<SAMESUM_FORMAT_INDEX>(all);
  for_each_order_free([&]<class Operation, class Accumulator>() {
    if constexpr (!is_scan<Operation>) {
      Entry e = describe_order_free<Operation, Accumulator, F>("cuda");
      e.code.device.any.fill(run_launch<run_order_free<Operation, Accumulator>>);
      all.push_back(e);
    }
  });
  return all;
}

}  // namespace samesum::gpu
