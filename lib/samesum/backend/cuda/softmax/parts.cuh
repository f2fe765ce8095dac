/// Building blocks of the softmax kernels. Missing columns count as x = -inf: e^-inf = +0 changes neither a
/// nonnegative sum nor the largest element, except in rows whose result is NaN anyway.
#pragma once

#include "samesum/accumulator/plain.hpp"
#include "samesum/backend/cuda/device/pair.cuh"
#include "samesum/backend/cuda/device/warp.cuh"
#include "samesum/format/elementary.hpp"
#include "samesum/operation/softmax.hpp"
#include "samesum/order/tree.hpp"

namespace samesum::gpu::softmaxes {

using Order = CoarsenedTree::Shape;
inline constexpr int lanes = Order::lanes, leaf = Order::leaf;

/// The arguments of a softmax. Kernels compute in a format C, fp32 or fp64. `aligned`: all runs of 4
/// neighbours are aligned and the number of columns is a multiple of 4, so that runs can be read and written
/// at once.
template <class T> struct SoftmaxRows {
  const T* x;
  T* y;
  std::size_t rows, columns, x_stride, y_stride;
  SoftmaxSum accumulator;
  bool log, aligned;
};

/// Returns `sum.operator()<F>()` for the format F of a plain accumulator of numbers of format C.
template <class C, class Sum> __host__ __device__ auto by_accumulator(SoftmaxSum accumulator, Sum sum) {
  if constexpr (std::is_same_v<C, fp32>) {
    if (accumulator == SoftmaxSum::bf16) return sum.template operator()<bf16>();
    if (accumulator == SoftmaxSum::fp16) return sum.template operator()<fp16>();
  }
  return sum.template operator()<C>();
}

/// Returns `visit.operator()<aligned>()`.
template <class Visit> __host__ __device__ auto by_alignment(bool aligned, Visit visit) {
  return aligned ? visit.template operator()<true>() : visit.template operator()<false>();
}

// --- elements ----------------------------------------------------------------------------------------------

template <class T, int run> struct alignas(run * sizeof(T)) SoftmaxRun { T element[run]; };

template <class C> inline constexpr C absent = -std::numeric_limits<C>::infinity();
template <class T, int run> __device__ SoftmaxRun<T, run> nothing() {
  SoftmaxRun<T, run> all;
  for (T& element : all.element) element = from_bits<T>(BitsOf<T>(Format<T>::infinity | Format<T>::sign_bit));
  return all;
}

/// Loads `run` neighbours, of which `left` exist, all or none if `aligned`; the others are -inf.
template <bool aligned, int run, class T, class C, class Count>
__device__ void load_run(const T* x, Count left, C* v) {
  if constexpr (run > 4) {
    load_run<aligned, 4>(x, left, v);
    load_run<aligned, run - 4>(x + 4, left - 4, v + 4);
  } else if constexpr (aligned) {
    SoftmaxRun<T, run> got = nothing<T, run>();
    if (left > 0) got = *reinterpret_cast<const SoftmaxRun<T, run>*>(x);
    for (int i = 0; i < run; ++i) v[i] = widen(got.element[i]);
  } else {
    for (int i = 0; i < run; ++i) v[i] = left > i ? C{widen(x[i])} : absent<C>;
  }
}

/// Rounds `run` numbers to T. Not for NaN, which write_nan writes.
template <class T, int run, class C> __device__ SoftmaxRun<T, run> narrow(const C* y) {
  SoftmaxRun<T, run> out;
  for (int i = 0; i < run; i += 2) {
    if constexpr (sizeof(T) > 2)
      out.element[i] = static_cast<T>(y[i]), out.element[i + 1] = static_cast<T>(y[i + 1]);
    else
      reinterpret_cast<std::uint32_t*>(&out)[i / 2] = Pair<T>::of(y[i], y[i + 1]).bits;
  }
  return out;
}

template <bool aligned, int run, class T, class Count>
__device__ void store_run(T* to, Count left, const SoftmaxRun<T, run>& out) {
  if constexpr (run > 4) {
    store_run<aligned, 4>(to, left, reinterpret_cast<const SoftmaxRun<T, 4>&>(out));
    store_run<aligned, run - 4>(to + 4, left - 4,
                                reinterpret_cast<const SoftmaxRun<T, run - 4>&>(out.element[4]));
  } else if constexpr (aligned) {
    if (left > 0) *reinterpret_cast<SoftmaxRun<T, run>*>(to) = out;
  } else {
    for (int i = 0; i < run; ++i)
      if (left > i) to[i] = out.element[i];
  }
}

/// Calls each(r, surely) for all rows, the first `full` of which are full. `surely` is a compile-time
/// constant, true only if row r is full, which saves most of the comparisons.
template <int rows, class Each> __device__ void for_rows(int full, Each each) {
  constexpr int step = rows < 8 ? rows : 8;
#pragma unroll
  for (int first = 0; first < rows; first += step)
    if (first + step <= full)
#pragma unroll
      for (int r = first; r < first + step; ++r) each(r, std::true_type{});
    else
#pragma unroll
      for (int r = first; r < first + step; ++r) each(r, std::false_type{});
}

/// Loads rows of lanes, the first `full` of which are full.
template <bool aligned, class T, class C, int rows, int run>
__device__ void load_rows(const T* x, int left, int full, C (&v)[rows][run]) {
  for_rows<rows>(full, [&](int r, auto surely) {
    load_run<aligned, run>(x + r * lanes, surely ? run : left - r * lanes, v[r]);
  });
}

template <class C> __device__ C exp_of(C d) { return exp_of_nonpositive(Scalar<C>{d}).v; }
template <class C> __device__ C larger(C a, C b) {
  if constexpr (std::is_same_v<C, fp32>)
    return fmaxf(a, b);
  else
    return fmax(a, b);
}

/// The last step, in exactly these operations. If s is NaN, the whole row is NaN; otherwise no element is: e
/// and 1/s are at most 1, d at most 0, log s at least 0.
template <class C> struct Finish {
  bool log, is_nan;
  C of_sum;  ///< 1/s or log s
  __device__ Finish(bool l, C s)
      : log{l}, is_nan{!(s == s)}, of_sum{l ? samesum::log(Scalar<C>{s}).v : 1 / s} {}

  /// Writes rows of lanes, the first `full` of which are full. v is d if `log`, else e.
  template <bool aligned, class T, int rows, int run>
  __device__ void write(T* y, int left, int full, const C (&v)[rows][run]) const {
    if (is_nan)
      for (int r = 0; r < rows; ++r) write_nan<aligned, run>(y + r * lanes, left - r * lanes);
    else
      for_rows<rows>(full, [&](int r, auto surely) {
        write<aligned, run>(y + r * lanes, surely ? run : left - r * lanes, v[r]);
      });
  }
  template <bool aligned, int run, class T, class Count>
  __device__ void write(T* to, Count left, const C* v) const {
    C y[run];
    for (int i = 0; i < run; ++i) y[i] = log ? v[i] - of_sum : v[i] * of_sum;
    store_run<aligned, run>(to, left, narrow<T, run>(y));
  }
  template <bool aligned, int run, class T, class Count> __device__ static void write_nan(T* to, Count left) {
    SoftmaxRun<T, run> out;
    for (T& element : out.element) element = from_bits<T>(Format<T>::canonical_nan);
    store_run<aligned, run>(to, left, out);
  }
};

// --- merges of states --------------------------------------------------------------------------------------

/// Merges the states of two threads, in both: merging commutes to the last bit, for additions and for
/// OnlineSoftmax.
template <class State> __device__ void merge_across(State& state, int mask) {
  state.merge(shuffle_xor(state, mask));
}

/// Divides two merges between two threads: the lower thread merges both states `low`, the upper one both
/// `high`.
template <class State> __device__ State share_out(const State& low, const State& high, int mask) {
  const bool upper = thread() & mask;
  State kept = upper ? high : low;
  kept.merge(shuffle_xor(upper ? low : high, mask));
  return kept;
}

/// Halves the lanes of `group` threads, with `run` neighbouring lanes per thread: lane l merges lane l + half
/// until one lane is left. Each thread gets the result.
template <int group, int run, class State> __device__ State halve(const State (&lane)[run]) {
  State state[run];
  for (int i = 0; i < run; ++i) state[i] = lane[i];
  int left = run, mask = group / 2;
  for (; left > 1 && mask > 0; mask /= 2) {
    left /= 2;
    for (int i = 0; i < left; ++i) state[i] = share_out(state[i], state[i + left], mask);
  }
  for (; mask > 0; mask /= 2) merge_across(state[0], mask);
  // The lanes of one thread are now distributed over several.
  mask = group / 2;
  for (int width = run; width > left; width /= 2, mask /= 2)
    for (int i = 0; i < left; ++i) merge_across(state[i], mask);
  for (; left > 1; left /= 2)
    for (int i = 0; i < left / 2; ++i) state[i].merge(state[i + left / 2]);
  return state[0];
}

/// Merges the states of a warp by stride doubling; those from `count` on are fresh.
template <class State> __device__ void merge_all(State& state, int count) {
  for (int delta = 1; delta < count; delta *= 2) merge_across(state, delta);
}

template <class C> __device__ C largest_of(C v, int group) {
  for (int delta = group / 2; delta > 0; delta /= 2) v = larger(v, __shfl_xor_sync(whole_warp, v, delta));
  return v;
}

// --- sums of the lanes of a row ----------------------------------------------------------------------------

/// Replaces v[r][l] = x by e, or by d if `log`, and calls add(lane, e) in the order of the rows. Rows beyond
/// those present are skipped, several at a time.
template <bool log, class C, int rows, int run, class Add>
__device__ void exponentials(C (&v)[rows][run], C largest, int present, Add add) {
  constexpr int step = rows < 8 ? 1 : rows == 8 ? 4 : 8;
#pragma unroll
  for (int first = 0; first < rows; first += step)
    if (first < present) {
#pragma unroll
      for (int r = first; r < first + step; ++r)
#pragma unroll
        for (int l = 0; l < run; ++l) {
          const C d = v[r][l] - largest, e = exp_of(d);
          add(l, e);
          v[r][l] = log ? d : e;
        }
    }
}

/// Copies exponentials from what exponentials() leaves.
template <bool log, class C, int rows, int run, int count>
__device__ void copy_exponentials(const C (&v)[rows][run], C (&e)[count]) {
  static_assert(count == rows * run);
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const C x = v[i / run][i % run], y = log ? exp_of(x) : x;
    e[i] = y > 0 ? y : 0;  // absent ones are -inf
  }
}
/// The largest value in one thread, by independent chains of comparisons.
template <class C, int rows, int run> __device__ C largest_in(const C (&v)[rows][run]) {
  constexpr int chains = 4, together = run < chains ? chains / run : 1;
  C chain[chains] = {absent<C>, absent<C>, absent<C>, absent<C>};
#pragma unroll
  for (int r = 0; r < rows; ++r)
    for (int l = 0; l < run; ++l) {
      C& so_far = chain[(r % together * run + l) % chains];
      so_far = larger(so_far, v[r][l]);
    }
  return larger(larger(chain[0], chain[1]), larger(chain[2], chain[3]));
}

/// Replaces v[r][l] = x by d.
template <int rows, int run> __device__ void subtract(float (&v)[rows][run], float largest) {
  for (auto& of_row : v)
    for (float& element : of_row) element -= largest;
}

}  // namespace samesum::gpu::softmaxes
