/// Launches exact reductions.
#include <algorithm>

#include "samesum/backend/cuda/exact_columns.cuh"
#include "samesum/backend/cuda/exact_terms.cuh"
#include "samesum/backend/cuda/methods.hpp"

namespace samesum::gpu {
namespace {

template <class T, bool moments, bool as_state> cudaError_t launch_exactly(ExactFinish end, Launch& call) {
  const Layout& l = call.layout;
  int processors = 0, of_each = 0;
  cudaError_t error = look_up(cudaDevAttrMultiProcessorCount, processors);
  if (error == cudaSuccess)
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_each, reduce_terms<T, moments, as_state>,
                                                          exact_threads, 0);
  constexpr std::size_t shared_bytes = (moments ? 2 : 1) * sizeof(GridTermDigits);
  if (error != cudaSuccess || !accept_workspace(call, header_bytes + shared_bytes, error) || l.results() == 0)
    return error;
  const std::size_t at_once = static_cast<std::size_t>(processors * of_each);
  const std::size_t n = l.offsets ? call.size : l.n,
                    of_block = std::size_t{exact_threads} * in_flight<T> * run_length;
  const std::size_t wanted = l.results() == 1 ? std::max<std::size_t>(n, 1) / of_block + 1 : l.results();
  const std::size_t blocks = std::min({wanted, at_once, std::size_t{GridTermDigits::most_blocks}});
  auto* grid_digits = static_cast<GridTermDigits*>(states(call.workspace));
  error = cudaMemsetAsync(grid_digits, 0, shared_bytes, call.stream);
  if (error != cudaSuccess) return error;
  const TermReader<T> reader{static_cast<const T*>(call.x), static_cast<const T*>(call.y), end.kind.term};
  return launch(reduce_terms<T, moments, as_state>, blocks, exact_threads, call.stream, reader, l, end,
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
cudaError_t sum_each(ExactFinish end, Launch& call) {
  const Layout& l = call.layout;
  Launch one = call;
  one.layout = Layout::vector(l.n);
  cudaError_t error;
  call.uses_header = true;
  static_assert(sizeof(ExactState) <= sizeof(GridTermDigits));
  // The same workspace as for short vectors.
  if (!accept_workspace(call, header_bytes + sizeof(GridTermDigits), error)) return error;
  one.bytes = call.bytes;
  auto* state = static_cast<ExactState*>(states(call.workspace));
  for (std::size_t at = 0; at < l.results() && error == cudaSuccess; ++at) {
    one.x =
        static_cast<const std::byte*>(call.x) + (l.first(at / l.inner) + at % l.inner) * call.input->bytes;
    error = cudaMemsetAsync(state, 0, sizeof *state, call.stream);
    if (error == cudaSuccess) error = sum_exact(one, {nullptr, 0, state});
    if (error == cudaSuccess)
      error = launch(finish_state, 1, warp, call.stream, end, state, l.n, at, call.as_state);
  }
  return error;
}

// --- sums of short columns ---------------------------------------------------------------------------------

template <class T> cudaError_t sum_columns(ExactFinish end, Launch& call) {
  const Layout& l = call.layout;
  cudaError_t error;
  if (!accept_workspace(call, size_if_none_needed, error)) return error;
  const std::size_t threads = l.outer * ((l.inner - 1) / columns_of_thread<T> + 1);
  return launch(sum_columns_exactly<T>, (threads - 1) / exact_threads + 1, exact_threads, call.stream,
                static_cast<const T*>(call.x), l, end.kind.term, end);
}

}  // namespace

cudaError_t reduce_exactly(ExactKind kind, const FormatInfo& format, Launch& call) {
  const ExactFinish end{kind, format.index, whole(call.options.ddof), call.out};
  if (is_for_sums(kind, call.layout)) return sum_each(end, call);
  return with_format(*call.input, [&]<class T>() {
    if (is_for_columns(kind, call.layout)) return sum_columns<T>(end, call);
    if (call.as_state)
      return kind.moments ? launch_exactly<T, true, true>(end, call)
                          : launch_exactly<T, false, true>(end, call);
    return kind.moments ? launch_exactly<T, true, false>(end, call)
                        : launch_exactly<T, false, false>(end, call);
  });
}

}  // namespace samesum::gpu
