/// Exact reductions of elements of one format in windows, by the kernels for batches.
#include "samesum/backend/cuda/device/methods.hpp"
#include "samesum/backend/cuda/tree/batch.cuh"
#include "samesum/backend/cuda/window/batches.cuh"

namespace samesum::gpu {
namespace {

template <class T, ExactlySummed what> cudaError_t reduce_in_window(ExactKind kind, Launch& work) {
  const WindowReducer<T, what> reducer{
      {}, kind, work.call.method->format->index, whole(work.call.options.ddof), work.as_state};
  return reduce<CoarsenedTree::Shape>(reducer, Reader<T, T>{work.call.x.data, work.call.y.data}, work);
}

}  // namespace

template <> cudaError_t reduce_exactly_of<SAMESUM_FORMAT_INDEX>(ExactKind kind, Launch& work) {
  using T = Formats::at<SAMESUM_FORMAT_INDEX>;
  if (kind.moments) return reduce_in_window<T, ExactlySummed::elements_and_squares>(kind, work);
  if (is_product(kind.term)) return reduce_in_window<T, ExactlySummed::products>(kind, work);
  return reduce_in_window<T, ExactlySummed::elements>(kind, work);
}

}  // namespace samesum::gpu
