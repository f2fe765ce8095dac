/// Definitions of merge_subtrees.hpp: one block merges a tree of subtrees, one warp adds exact digits.
#include "samesum/backend/cuda/device/launch.hpp"
#include "samesum/backend/cuda/exact/finish.cuh"
#include "samesum/backend/cuda/tree/merge_subtrees.hpp"
#include "samesum/catalogue/describe.hpp"

namespace samesum::gpu {
namespace {

constexpr int places_per_thread = 8, merging_threads = static_cast<int>(most_subtrees) / places_per_thread;

/// A reducer whose states are merged.
template <class Reducer> struct Merging : Reducer {};

/// The states of both reducers, if one may replace the results of the other.
template <class Reducer> struct Merging<WithReplacement<Reducer>> {
  using State = typename WithReplacement<Reducer>::State;
  WithReplacement<Reducer> both;
  __device__ void merge(State& state, const State& other) const {
    both.reducer.merge(state.replaced, other.replaced);
    both.replacement.merge(state.replacing, other.replacing);
  }
  __device__ void finish(const State& state, std::uint64_t n, std::size_t at, void* out) const {
    both.reducer.finish(state.replaced, n, at, out);
    both.replacement.finish(state.replacing, n, at, out);
  }
};

/// Sums on a given grid. A sum that overflows it is NaN.
template <class F> struct GridMerging {
  using State = GridSum;
  bool mean;
  int grid;
  __device__ void merge(State& state, const State& other) const { state.merge(other); }
  __device__ void finish(const State& state, std::uint64_t n, std::size_t at, void* out) const {
    finish_on_grid<F>(state, mean, n, grid, at, out);
  }
};

/// Adds the begin of a block to an index that was found in it.
template <class State> __device__ void move_index(State&, std::uint64_t) {}
template <class F> __device__ void move_index(FirstExtremum<F>& state, std::uint64_t begin) {
  state.base = state.index() + begin;
  state.offset = 0;
}

/// Merges the states by stride doubling. A place without a state is part of a subtree that begins before it:
/// what the tree would merge with it is in that state.
template <class Reducer>
__global__ void __launch_bounds__(merging_threads) merge_subtrees(Reducer reducer, SubtreeMerge merge) {
  using State = typename Reducer::State;
  __shared__ alignas(16) unsigned char memory[merging_threads * sizeof(State)];
  __shared__ bool has[merging_threads];
  State* shared = reinterpret_cast<State*>(memory);
  const int t = static_cast<int>(threadIdx.x);
  State state[places_per_thread];
  unsigned present = 0;
#pragma unroll
  for (int i = 0; i < places_per_thread; ++i) {
    const int k = t * places_per_thread + i, place = k < merge.count ? merge.place[k] : -1;
    if (place < 0) continue;
    state[i] = static_cast<const State*>(merge.states)[place];
    if (merge.begins) move_index(state[i], merge.begins[k]);
    present |= 1u << i;
  }
#pragma unroll
  for (int stride = 1; stride < places_per_thread; stride *= 2)
#pragma unroll
    for (int i = 0; i + stride < places_per_thread; i += 2 * stride)
      if (present >> (i + stride) & 1) {
        if (present >> i & 1)
          reducer.merge(state[i], state[i + stride]);
        else
          state[i] = state[i + stride];  // only if the order is free: range i has no elements
        present |= 1u << i;
      }
  if (present & 1) shared[t] = state[0];
  has[t] = present & 1;
  for (int stride = 1; stride < merging_threads; stride *= 2) {
    __syncthreads();  // all threads have written the states that are merged now
    if (t % (2 * stride) > 0 || !has[t + stride]) continue;
    if (has[t])
      reducer.merge(shared[t], shared[t + stride]);
    else
      shared[t] = shared[t + stride];
    has[t] = true;
  }
  if (t == 0) reducer.finish(has[0] ? shared[0] : State{}, merge.n, 0, merge.out);
}

/// Adds the digits of all states, each below 2^32 in magnitude. One warp.
__global__ void merge_digits(ExactFinish end, SubtreeMerge merge) {
  __shared__ TermDigits digits[2];
  unsigned flags = 0;
  const auto* states = static_cast<const ExactDigits*>(merge.states);
  for (int i = thread(); i < ExactTerms::digit_count; i += warp) {
    std::int64_t terms = 0, squares = 0;
    for (int k = 0; k < merge.count; ++k)
      if (const int place = merge.place[k]; place >= 0) {
        terms += states[place].terms.data()[i];
        if (end.kind.moments) squares += states[place].squares.data()[i];
        flags |= static_cast<unsigned>(states[place].flags);
      }
    digits[0][i] = terms;
    digits[1][i] = squares;
  }
  flags = __reduce_or_sync(whole_warp, flags);
  finish(end, digits, flags, merge.n);
}

template <class Operation, template <class> class A, class F> void merge(SubtreeMerge& call) {
  using Reducer = decltype(partial_reducer<Operation, A, F>({}));
  const Merging<Reducer> reducer{partial_reducer<Operation, A, F>({call.ddof, call.grid})};
  call.error = launch(merge_subtrees<Merging<Reducer>>, 1, merging_threads, call.stream, reducer, call);
}
template <class Operation, class F> void merge_on_grid(SubtreeMerge& call) {
  const GridMerging<F> reducer{exact_kind<Operation>.mean, call.grid};
  call.error = launch(merge_subtrees<GridMerging<F>>, 1, merging_threads, call.stream, reducer, call);
}
template <class Operation, class F> void merge_exactly(SubtreeMerge& call) {
  const ExactFinish end{exact_kind<Operation>, Formats::index_of<F>(), whole(call.ddof), call.out};
  call.error = launch(merge_digits, 1, warp, call.stream, end, call);
}

/// Whether the states of an order are those of leaves and subtrees, or its own.
template <class Operation, class Order> constexpr bool has_subtrees() {
  if constexpr (!Operation::has_order)
    return true;
  else
    return Order::promise >= Promise::everywhere && Order::Shape::leaf != unbounded &&
           !is_scanned<Operation, Order>;
}

}  // namespace

std::vector<Entry> subtree_merges() {
  std::vector<Entry> all;
  const auto add = [&](Entry e, void (*function)(SubtreeMerge&)) {
    e.code.merge_subtrees = function;
    all.push_back(e);
  };
  KernelFormats::for_each([&]<class F>() {
    for_each_method<F, "cuda">([&]<class Operation, class Order, template <class> class A>() {
      if constexpr (!is_scan<Operation> && has_subtrees<Operation, Order>())
        add(describe<Operation, Order, A, F>("cuda"), merge<Operation, A, F>);
    });
    for_each_order_free([&]<class Operation, class Accumulator>() {
      if constexpr (!is_scan<Operation>)
        add(describe_order_free<Operation, Accumulator, F>("cuda"),
            Accumulator::takes_grid ? merge_on_grid<Operation, F> : merge_exactly<Operation, F>);
    });
  });
  return all;
}

}  // namespace samesum::gpu
