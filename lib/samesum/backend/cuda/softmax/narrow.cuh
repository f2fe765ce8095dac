/// Softmax of short rows, with any denominator: `group` threads hold a row of at most run·group·rows columns.
#pragma once

#include "samesum/backend/cuda/softmax/exact.cuh"
#include "samesum/operation/online_softmax.hpp"

namespace samesum::gpu::softmaxes {

inline constexpr int narrow_threads = 128;

/// The sum of the exponentials of a row in a plain accumulator of format F, in the order `tree`; a thread has
/// some rows of `run` neighbouring lanes.
template <class F> struct RowSum {
  template <bool log, int group, class C, int rows, int run>
  __device__ static C of(C (&v)[rows][run], C largest, int present) {
    Plain<Scalar<F>> lane[run];
    exponentials<log>(v, largest, present, [&](int l, C e) { lane[l].add(Scalar<F>::of(e)); });
    return halve<group>(lane).result().v;
  }
};
/// The exact sum of the exponentials of a row of at most 1024 columns, rounded once.
struct ExactRowSum {
  template <bool log, int group, class C, int rows, int run>
  __device__ static C of(C (&v)[rows][run], C largest, int present) {
    constexpr int log2_terms = 10;
    ExponentialSum<C> sum{1, log2_terms};  // no exponential is larger than 1
    exponentials<log>(v, largest, present, [&](int, C e) { sum.add_below_top(e); });
    C result;
    if (WarpGroup::everywhere(sum.round({group}, log2_terms, result))) return result;
    C e[rows * run];
    copy_exponentials<log>(v, e);
    const C exact = exact_sum_of(e, rows * run, group);
    return result == result ? exact : result;  // another row of the warp may need the integers
  }
};

/// The sum of the exponentials of a row by the online form, whose largest element is `largest`.
struct OnlineRowSum {
  template <bool log, int group, class C, int rows, int run>
  __device__ static C of(C (&v)[rows][run], C largest, int present) {
    using State = OnlineSoftmax<Scalar<C>>;
    State lane[run];
#pragma unroll
    for (int r = 0; r < rows; ++r)
      if (r < present)
#pragma unroll
        for (int l = 0; l < run; ++l) {
          const Scalar<C> x{v[r][l]};
          if (r == 0)
            lane[l] = {x, Scalar<C>{1}};  // as if added to a fresh state
          else
            lane[l].add(x);
        }
    const C sum = halve<group>(lane).denominator().v;
    exponentials<log>(v, largest, present, [](int, C) {});
    return sum;
  }
};

/// Loads, computes and stores a whole row at once. Enough rows are in flight on a multiprocessor to hide
/// latency.
template <class T, class C, class Sum, bool log, int run, int group, int rows>
__global__ void __launch_bounds__(narrow_threads, sizeof(C) == 8 ? 2 : 8) softmax_narrow(SoftmaxRows<T> p) {
  static_assert(rows == 1 || run * group == lanes);
  const int column = static_cast<int>(threadIdx.x) % group * run, n = static_cast<int>(p.columns);
  const std::size_t row = std::size_t{blockIdx.x} * (narrow_threads / group) + threadIdx.x / group;
  const T* x = p.x + min(row, p.rows - 1) * p.x_stride + column;  // the whole warp takes part in shuffles
  T* y = p.y + row * p.y_stride + column;
  by_alignment(p.aligned, [&]<bool aligned>() {
    C v[rows][run];
    load_rows<aligned>(x, n - column, n / lanes, v);
    const C largest = largest_of(largest_in(v), group);
    const Finish<C> finish{log, Sum::template of<log, group>(v, largest, (n - 1) / lanes + 1)};
    if (row < p.rows) finish.template write<aligned>(y, n - column, n / lanes, v);
  });
}

}  // namespace samesum::gpu::softmaxes
