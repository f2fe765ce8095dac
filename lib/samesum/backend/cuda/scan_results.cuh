/// How the states of prefixes become results, and how a warp writes those of its rows.
#pragma once

#include "samesum/backend/cuda/pair.cuh"
#include "samesum/backend/cuda/warp.cuh"
#include "samesum/operation/operations.hpp"
#include "samesum/order/prefix.hpp"

namespace samesum::gpu {

/// Where a scan writes its results.
struct ScanDestination {
  void* out;
  std::size_t row_stride;  ///< results between rows, if there is one for every element
  bool every;              ///< whether there is a result for every element, or one for all
  bool exclusive;          ///< whether the result of an element leaves it out
  bool states;             ///< whether the only result is a state, for a Partial
};

template <class Reducer>
__device__ void write_state(const Reducer&, const typename Reducer::State& state, void* out) {
  *static_cast<typename Reducer::State*>(out) = state;
}
/// The state of a sum in the form of PartialForm.
template <template <class> class A, class F>
__device__ void write_state(const ElementSum<A, F>&, const A<Scalar<F>>& state, void* out) {
  *static_cast<TermSum<A, Scalar<F>>*>(out) = {state};
}

/// Writes the only result of a reduction.
template <class Reducer>
__device__ void write_result(const Reducer& reducer, const typename Reducer::State& state, std::size_t n,
                             std::size_t at, const ScanDestination& out) {
  if (out.states)
    write_state(reducer, state, out.out);
  else
    reducer.finish(state, n, at, out.out);
}

/// The format of the results: that of the elements, unless the reducer names another one.
template <class Reducer> struct ResultOf { using type = typename Reducer::Format; };
template <class Reducer>
requires requires { typename Reducer::Result; }
struct ResultOf<Reducer> {
  using type = typename Reducer::Result;
};

/// Writes the results of a warp, row by row.
template <class F> class RowWriter {
  static constexpr int run = PrefixTree::run, row = PrefixTree::lanes;
  static constexpr std::size_t alignment = run * sizeof(F) <= 16 ? run * sizeof(F) : 16;
  /// Results of a run.
  struct alignas(alignment) Run {
    F result[run];
  };

 public:
  /// @param to       the first result of the warp; they are `stride` apart
  /// @param count    number of results
  /// @param shifted  whether each result takes the place of the next one; then `first` takes the first place
  __device__ RowWriter(F* to, std::size_t stride, int count, bool shifted, F first)
      : to_{to + static_cast<std::size_t>(thread() * run) * stride},
        stride_{stride},
        count_{count},
        is_shifted_{shifted},
        is_aligned_{stride == 1 && reinterpret_cast<std::uintptr_t>(to) % alignment == 0},
        last_{first} {}

  __device__ F* row_of_results() { return run_.result; }
  __device__ void set(int j, F result) { run_.result[j] = result; }
  __device__ void write(int r) {
    if (is_shifted_) move();
    if (is_aligned_ && (r + 1) * row <= count_) {
      store(reinterpret_cast<Run*>(to_ + r * row));
      return;
    }
#pragma unroll
    for (int j = 0; j < run; ++j)
      if (r * row + thread() * run + j < count_)
        to_[static_cast<std::size_t>(r * row + j) * stride_] = run_.result[j];
  }

 private:
  /// Stores all results of the run, past the caches: they are not read again soon.
  __device__ void store(Run* to) const {
    constexpr int words = sizeof(Run) / 4;
    const auto word = std::bit_cast<std::array<std::uint32_t, words>>(run_);
    if constexpr (words == 2)
      __stcs(reinterpret_cast<uint2*>(to), make_uint2(word[0], word[1]));
    else
#pragma unroll
      for (int i = 0; i < words; i += 4)
        __stcs(reinterpret_cast<uint4*>(to) + i / 4,
               make_uint4(word[i], word[i + 1], word[i + 2], word[i + 3]));
  }
  /// Moves the results by one place: the first place receives the last result of the thread before, thread 0
  /// that of the last thread in the call before.
  __device__ void move() {
    const F own = run_.result[run - 1];
    const F given = thread() == warp - 1 ? last_ : own;
    last_ = own;
    for (int j = run - 1; j > 0; --j) run_.result[j] = run_.result[j - 1];
    using Word = std::conditional_t<sizeof(F) == 8, BitsOf<F>, std::uint32_t>;
    run_.result[0] = from_bits<F>(
        static_cast<BitsOf<F>>(__shfl_sync(whole_warp, Word{to_bits(given)}, (thread() + warp - 1) % warp)));
  }

  F* to_;
  std::size_t stride_;
  int count_;
  bool is_shifted_, is_aligned_;
  F last_;
  Run run_;
};

}  // namespace samesum::gpu
