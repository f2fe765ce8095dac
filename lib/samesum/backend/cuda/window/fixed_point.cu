/// Reductions on a grid on a GPU of elements of one format, by the kernels for windows. Segments, and rows
/// and columns that do not fit on the chip, are read twice if the grid is not given: first for the largest
/// exponent of each result.
#include "samesum/backend/cuda/device/methods.hpp"
#include "samesum/backend/cuda/tree/batch.cuh"
#include "samesum/backend/cuda/window/batches.cuh"
#include "samesum/backend/cuda/window/grid_window.cuh"
#include "samesum/backend/cuda/window/shared_rows.cuh"

namespace samesum::gpu {
namespace {

using F = Formats::at<SAMESUM_FORMAT_INDEX>;

/// Reduces all elements. Without a workspace, only sets `bytes`.
template <class Reducer>
cudaError_t pass(const Reducer& reducer, const Launch& work, void* out, void* workspace, std::size_t& bytes) {
  Launch launch = work;
  launch.call.out.data = out;
  launch.workspace = workspace;
  launch.bytes = bytes;
  const cudaError_t error =
      reduce<CoarsenedTree::Shape>(reducer, Reader<F, F>{work.call.x.data, work.call.y.data}, launch);
  bytes = launch.bytes;
  return error;
}

/// Whether a group of threads holds all elements of a result.
template <class Reducer> bool fits_on_chip(const Layout& l) {
  if (l.offsets != nullptr) return false;
  return l.n <= (l.inner > 1 || l.stride != 1 ? Reducer::most_of_column : Reducer::most_on_chip);
}

template <ExactlySummed what> cudaError_t launch_on_grid(ExactKind kind, Launch& work) {
  const FormatInfo& format = *work.call.method->format;
  using Reducer = GridReducer<F, what>;
  Reducer reducer{};
  reducer.kind = kind;
  reducer.source = {work.call.options.grid.value_or(0), nullptr, word_bits_for(format.precision),
                    quantum_of_terms(kind.term, *work.call.x.format)};
  reducer.format = format.index;
  reducer.status = work.status;
  reducer.as_state = work.as_state;
  reducer.in_place = !work.call.options.grid && fits_on_chip<Reducer>(work.call.layout);
  if (!reducer.in_place) {
    SharedRowLaunch<Reducer> shared;
    if (const cudaError_t error = shared.plan(work.call.layout)) return error;
    if (shared.parts > 0) {
      reducer.in_place = !work.call.options.grid;
      return shared(reducer, work);
    }
  }
  if (work.call.options.grid || reducer.in_place)
    return pass(reducer, work, work.call.out.data, work.workspace, work.bytes);
  Reducer finder = reducer;
  finder.only_finds = true;
  // The exponents follow the states, for which both passes use the same memory.
  std::size_t of_pass = 0;
  cudaError_t error = pass(finder, work, nullptr, nullptr, of_pass);
  if (error != cudaSuccess) return error;
  const std::size_t results = work.call.layout.results(),
                    of_states = (std::max(of_pass, header_bytes) + 15) / 16 * 16;
  if (!accept_workspace(work, of_states + results * sizeof(std::int32_t), error) || results == 0)
    return error;
  auto* exponents = reinterpret_cast<std::int32_t*>(static_cast<std::byte*>(work.workspace) + of_states);
  reducer.source.exponents = exponents;
  std::size_t bytes = of_states;
  error = pass(finder, work, exponents, work.workspace, bytes);
  return error == cudaSuccess ? pass(reducer, work, work.call.out.data, work.workspace, bytes) : error;
}

}  // namespace

template <> cudaError_t reduce_on_grid_of<SAMESUM_FORMAT_INDEX>(ExactKind kind, Launch& work) {
  return is_product(kind.term) ? launch_on_grid<ExactlySummed::products>(kind, work)
                               : launch_on_grid<ExactlySummed::elements>(kind, work);
}

template <>
cudaError_t find_largest_exponents_of<SAMESUM_FORMAT_INDEX>(const Launch& work, std::int32_t* exponents,
                                                            void* workspace, std::size_t& bytes) {
  GridReducer<F, ExactlySummed::elements> finder{};
  finder.only_finds = true;
  return pass(finder, work, exponents, workspace, bytes);
}

}  // namespace samesum::gpu
