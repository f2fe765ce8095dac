/// Launches exact reductions.
#include <algorithm>

#include "samesum/backend/cuda/exact_columns.cuh"
#include "samesum/backend/cuda/exact_terms.cuh"
#include "samesum/backend/cuda/methods.hpp"

namespace samesum::gpu {
namespace {

template <class T, bool moments, bool as_state> cudaError_t launch_exactly(ExactFinish end, Launch& work) {
  const Layout& l = work.call.layout;
  int processors = 0, resident = 0;
  cudaError_t error = look_up(cudaDevAttrMultiProcessorCount, processors);
  if (error == cudaSuccess)
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, reduce_terms<T, moments, as_state>,
                                                          exact_threads, 0);
  constexpr std::size_t shared_bytes = (moments ? 2 : 1) * sizeof(GridTermDigits);
  if (error != cudaSuccess || !accept_workspace(work, header_bytes + shared_bytes, error) || l.results() == 0)
    return error;
  const std::size_t at_once = static_cast<std::size_t>(processors * resident);
  const std::size_t n = l.offsets ? work.call.x.size : l.n,
                    of_block = std::size_t{exact_threads} * in_flight<T> * run_length;
  const std::size_t wanted = l.results() == 1 ? std::max<std::size_t>(n, 1) / of_block + 1 : l.results();
  const std::size_t blocks = std::min({wanted, at_once, std::size_t{GridTermDigits::most_blocks}});
  auto* grid_digits = static_cast<GridTermDigits*>(states(work.workspace));
  error = cudaMemsetAsync(grid_digits, 0, shared_bytes, work.stream);
  if (error != cudaSuccess) return error;
  const TermReader<T> reader{static_cast<const T*>(work.call.x.data), static_cast<const T*>(work.call.y.data),
                             end.kind.term};
  return launch(reduce_terms<T, moments, as_state>, blocks, exact_threads, work.stream, reader, l, end,
                grid_digits);
}

// --- sums of elements, by the kernel of exact sums ---------------------------------------------------------

/// Turns a state of elements into result `at`, or into ExactDigits. Runs on one warp.
__global__ void finish_state(ExactFinish end, const ExactState* state, std::uint64_t n, std::size_t at,
                             bool as_state) {
  __shared__ TermDigits digits;
  constexpr int first = (Exact::lowest_exponent - TermDigits::lowest_exponent) / 32;
  for (int i = thread(); i < TermDigits::count; i += warp) {
    const int of_state = i - first;
    digits.digit[i] = of_state >= 0 && of_state < Exact::digit_count ? state->digits[of_state] : 0;
  }
  if (as_state)
    write_digits(&digits, 1, state->flags, static_cast<ExactDigits*>(end.out));
  else
    finish(end, &digits, state->flags, n, at);
}

/// Whether sum_each is faster than reduce_terms: for few long vectors, each of which occupies the GPU alone.
bool is_for_sums(ExactKind kind, const Layout& l) {
  return kind.term == Term::element && !kind.moments && !l.offsets && l.stride == 1 &&
         l.n >= std::size_t{1} << 22 && l.results() <= 32;
}

/// Sums vector after vector with the kernel of exact sums.
cudaError_t sum_each(ExactFinish end, Launch& work) {
  const Layout& l = work.call.layout;
  Launch one = work;
  one.call.layout = Layout::vector(l.n);
  cudaError_t error;
  work.uses_header = true;
  static_assert(sizeof(ExactState) <= sizeof(GridTermDigits));
  // The same workspace as for short vectors.
  if (!accept_workspace(work, header_bytes + sizeof(GridTermDigits), error)) return error;
  one.bytes = work.bytes;
  auto* state = static_cast<ExactState*>(states(work.workspace));
  for (std::size_t at = 0; at < l.results() && error == cudaSuccess; ++at) {
    one.call.x.data = static_cast<const std::byte*>(work.call.x.data) +
                      (l.first(at / l.inner) + at % l.inner) * work.call.x.format->bytes;
    error = cudaMemsetAsync(state, 0, sizeof *state, work.stream);
    if (error == cudaSuccess) error = sum_exact(one, {nullptr, 0, state});
    if (error == cudaSuccess)
      error = launch(finish_state, 1, warp, work.stream, end, state, l.n, at, work.as_state);
  }
  return error;
}

// --- sums of short columns ---------------------------------------------------------------------------------

template <class T> cudaError_t sum_columns(ExactFinish end, Launch& work) {
  const Layout& l = work.call.layout;
  cudaError_t error;
  if (!accept_workspace(work, size_if_none_needed, error)) return error;
  const std::size_t threads = l.outer * ((l.inner - 1) / columns_of_thread<T> + 1);
  return launch(sum_columns_exactly<T>, (threads - 1) / exact_threads + 1, exact_threads, work.stream,
                static_cast<const T*>(work.call.x.data), l, end.kind.term, end);
}

}  // namespace

cudaError_t reduce_exactly(ExactKind kind, Launch& work) {
  const ExactFinish end{kind, work.call.method->format->index, whole(work.call.options.ddof),
                        work.call.out.data};
  if (is_for_sums(kind, work.call.layout)) return sum_each(end, work);
  return with_format(*work.call.x.format, [&]<class T>() {
    if (is_for_columns(kind, work.call.layout)) return sum_columns<T>(end, work);
    if (work.as_state)
      return kind.moments ? launch_exactly<T, true, true>(end, work)
                          : launch_exactly<T, false, true>(end, work);
    return kind.moments ? launch_exactly<T, true, false>(end, work)
                        : launch_exactly<T, false, false>(end, work);
  });
}

}  // namespace samesum::gpu
