/// Exact sums and means of many short columns: a thread sums neighbouring columns in one word each, in two
/// words those whose sum has more bits, and a warp adds the digits of the others, one column after another.
#pragma once

#include "samesum/backend/cuda/exact_finish.cuh"
#include "samesum/call/layout.hpp"

namespace samesum::gpu {
namespace {

/// A sum in a floating-point number, as long as that is exact. It begins with -0, the identity of addition.
template <class C> struct OneWord {
  C sum = C{-0.0};
  bool exact = true;

  /// The difference from the larger one of both is computed without an error (Dekker 1971), so both
  /// differences are right only if the sum lost nothing.
  __device__ void add(C x) {
    const C before = sum;
    sum = before + x;
    exact = exact && sum - before == x && sum - x == before;
  }
  __device__ bool succeeded() const { return exact && !is_special(sum); }
  __device__ double low() const { return 0; }
};

/// A sum and the sum of its rounding errors, as long as that is exact.
struct TwoWords {
  OneWord<double> rest;
  double sum = -0.0;

  __device__ void add(double x) { rest.add(two_sum(sum, x)); }
  __device__ bool succeeded() const { return rest.succeeded() && !is_special(sum); }
  __device__ double low() const { return rest.sum; }
};

/// The words that are tried first: sums of doubles hardly ever fit into one.
template <class T>
using FirstWords =
    std::conditional_t<sizeof(T) == 8, TwoWords, OneWord<std::conditional_t<sizeof(T) == 2, float, double>>>;

template <class T> constexpr int columns_of_thread = 16 / sizeof(T);
template <class T> struct alignas(16) ColumnRun { T element[columns_of_thread<T>]; };

/// Neighbouring columns of n elements.
template <class T> struct Columns {
  const T* first;
  std::size_t n, stride;
  int count;     ///< number of columns, at most columns_of_thread
  bool aligned;  ///< whether all are there, so that a row is one load
  bool magnitudes;

  __device__ ColumnRun<T> row(std::size_t k) const {
    const T* from = first + k * stride;
    if (aligned) return *reinterpret_cast<const ColumnRun<T>*>(from);
    ColumnRun<T> some{};
    for (int i = 0; i < columns_of_thread<T>; ++i)
      if (i < count) some.element[i] = from[i];
    return some;
  }

  /// Sums the columns. Returns a mask of those for which that failed.
  template <class Words> __device__ unsigned sum(Words (&words)[columns_of_thread<T>]) const {
    constexpr int ahead = 4;  // rows in flight
    using C = decltype(Words::sum);
    for (std::size_t k = 0; k < n; k += ahead) {
      ColumnRun<T> rows[ahead];
#pragma unroll
      for (int r = 0; r < ahead; ++r)
        if (k + r < n) rows[r] = row(k + r);
#pragma unroll
      for (int r = 0; r < ahead; ++r)
        if (k + r < n)
          for (int i = 0; i < columns_of_thread<T>; ++i) {
            const C x = widen(rows[r].element[i]);
            words[i].add(magnitudes ? fabs(x) : x);
          }
    }
    unsigned failed = 0;
    for (int i = 0; i < columns_of_thread<T>; ++i)
      if (i < count && !words[i].succeeded()) failed |= 1u << i;
    return failed;
  }
};

/// Writes the results of neighbouring columns from `at` on, those of a mask excepted. Returns a mask of those
/// for which the sums, or the divisions, failed.
template <class Words, int width>
__device__ unsigned write_columns(const Words (&words)[width], unsigned except, const ExactFinish& end,
                                  std::size_t at, int count, std::size_t n) {
  return static_cast<unsigned>(in_format(end.format, [&]<class F>() -> std::uint64_t {
    struct alignas(width * sizeof(F) <= 16 ? width * sizeof(F) : 16) Results {
      F element[width];
    };
    F* const out = static_cast<F*>(end.out) + at;
    Results all;
    unsigned failed = 0;
    for (int i = 0; i < width; ++i) {
      double sum = words[i].sum, low = words[i].low();
      if (low != 0) low = two_sum(sum, low);  // a sum of -0 stays -0
      if (!end.kind.mean)
        all.element[i] = samesum::rounded<F>(sum, low);
      else if (!round_quotient<F>(sum, low, static_cast<double>(n), all.element[i]) && i < count)
        failed |= 1u << i;
    }
    except |= failed;
    if (except == 0 && count == width && reinterpret_cast<std::uintptr_t>(out) % alignof(Results) == 0)
      *reinterpret_cast<Results*>(out) = all;
    else
      for (int i = 0; i < width; ++i)
        if (i < count && !(except >> i & 1)) out[i] = all.element[i];
    return failed;
  }));
}

/// Sums a column in digits. A warp calls it.
template <class T>
__device__ void sum_in_digits(const T* x, const Layout& l, Term term, const ExactFinish& end,
                              std::size_t at) {
  __shared__ TermDigits digits;
  for (int i = thread(); i < TermDigits::count; i += warp) digits.digit[i] = 0;
  __syncwarp();  // the digits are zero before any thread adds to them
  const T* const column = x + l.first(at / l.inner) + at % l.inner;
  unsigned flags = Exact::seen_any;
  for (std::size_t k = static_cast<std::size_t>(thread()); k < l.n; k += warp) {
    double e = widen(column[k * l.stride]);
    if (term == Term::magnitude) e = fabs(e);
    if (to_bits(e) != Format<fp64>::sign_bit) flags |= Exact::seen_other_than_minus_zero;
    if (is_special(e))
      flags |= special_flags(e);
    else
      deposit(&digits, e);
  }
  finish(end, &digits, __reduce_or_sync(whole_warp, flags), l.n, at);
  __syncwarp();  // all threads have read the digits before the next column overwrites them
}

/// Sums columns of elements or magnitudes, columns_of_thread neighbours per thread.
template <class T>
__global__ void __launch_bounds__(exact_threads)
    sum_columns_exactly(const T* __restrict__ x, Layout l, Term term, ExactFinish end) {
  constexpr int width = columns_of_thread<T>;
  __shared__ unsigned count;
  __shared__ std::size_t failed_at[exact_threads * width];
  if (threadIdx.x == 0) count = 0;
  __syncthreads();  // the list is empty
  const std::size_t groups = (l.inner - 1) / width + 1,
                    g = std::size_t{blockIdx.x} * exact_threads + threadIdx.x;
  if (g < l.outer * groups) {
    const std::size_t inner = g % groups * width, at = g / groups * l.inner + inner;
    const T* const first = x + l.first(g / groups) + inner;
    const int count_here = static_cast<int>(min(l.inner - inner, std::size_t{width}));
    const bool aligned = count_here == width && l.stride % width == 0 &&
                         reinterpret_cast<std::uintptr_t>(first) % sizeof(ColumnRun<T>) == 0;
    const Columns<T> columns{first, l.n, l.stride, count_here, aligned, term == Term::magnitude};
    FirstWords<T> words[width];
    unsigned failed = columns.sum(words);
    failed |= write_columns(words, failed, end, at, columns.count, l.n);
    if constexpr (sizeof(T) < 8)
      if (failed) {
        TwoWords more[width];
        const unsigned again = failed;
        failed = columns.sum(more) & again;
        failed |= write_columns(more, failed | ~again, end, at, columns.count, l.n) & again;
      }
    for (int i = 0; i < width; ++i)
      if (failed >> i & 1) failed_at[atomicAdd(&count, 1)] = at + static_cast<std::size_t>(i);
  }
  __syncthreads();  // all threads have added to the list
  if (warp_index() > 0) return;
  for (unsigned i = 0; i < count; ++i) sum_in_digits(x, l, term, end, failed_at[i]);
}

/// Whether the kernel is for these columns: many sums, or means, of few elements.
inline bool is_for_columns(ExactKind kind, const Layout& l) {
  return (kind.term == Term::element || kind.term == Term::magnitude) && !kind.moments && !l.offsets &&
         l.inner > 1 && l.n >= 1 && l.n <= 256 && l.results() >= 64 * l.n;
}

}  // namespace
}  // namespace samesum::gpu
