/// Exact sums and means of many short columns of fp64: a thread sums neighbouring columns in two words each,
/// and a warp adds the digits of those whose sum has more bits, one column after another.
#pragma once

#include "samesum/backend/cuda/exact/finish.cuh"
#include "samesum/call/layout.hpp"

namespace samesum::gpu {
namespace {

/// A sum and the sum of its rounding errors, as long as that is exact. Both begin with -0, the identity of
/// addition.
struct SumAndRest {
  double sum = -0.0, rest = -0.0;
  bool exact = true;

  /// The difference from the larger one of two numbers is computed without an error (Dekker 1971), so both
  /// differences are right only if the sum of rests lost nothing.
  __device__ void add(double x) {
    const double error = two_sum(sum, x), before = rest;
    rest = before + error;
    exact = exact && rest - before == error && rest - error == before;
  }
  __device__ bool succeeded() const { return exact && !is_special(rest) && !is_special(sum); }
};

inline constexpr int columns_of_thread = 2;
struct alignas(16) ColumnRun {
  fp64 element[columns_of_thread];
};

/// Neighbouring columns of n elements.
struct Columns {
  const fp64* first;
  std::size_t n, stride;
  int count;     ///< number of columns, at most columns_of_thread
  bool aligned;  ///< whether all are there, so that a row is one load
  bool magnitudes;

  __device__ ColumnRun row(std::size_t k) const {
    const fp64* from = first + k * stride;
    if (aligned) return *reinterpret_cast<const ColumnRun*>(from);
    ColumnRun some{};
    for (int i = 0; i < columns_of_thread; ++i)
      if (i < count) some.element[i] = from[i];
    return some;
  }

  /// Sums the columns. Returns a mask of those for which that failed.
  __device__ unsigned sum(SumAndRest (&words)[columns_of_thread]) const {
    constexpr int ahead = 4;  // rows in flight
    for (std::size_t k = 0; k < n; k += ahead) {
      ColumnRun rows[ahead];
#pragma unroll
      for (int r = 0; r < ahead; ++r)
        if (k + r < n) rows[r] = row(k + r);
#pragma unroll
      for (int r = 0; r < ahead; ++r)
        if (k + r < n)
          for (int i = 0; i < columns_of_thread; ++i) {
            const double x = rows[r].element[i];
            words[i].add(magnitudes ? fabs(x) : x);
          }
    }
    unsigned failed = 0;
    for (int i = 0; i < columns_of_thread; ++i)
      if (i < count && !words[i].succeeded()) failed |= 1u << i;
    return failed;
  }
};

/// Writes the results of neighbouring columns from `at` on, except for the columns of a mask. Returns the
/// mask of the columns whose sums or divisions failed.
template <int width>
__device__ unsigned write_columns(const SumAndRest (&words)[width], unsigned except, const ExactFinish& end,
                                  std::size_t at, int count, std::size_t n) {
  return static_cast<unsigned>(in_format(end.format, [&]<class F>() -> std::uint64_t {
    struct alignas(width * sizeof(F) <= 16 ? width * sizeof(F) : 16) Results {
      F element[width];
    };
    F* const out = static_cast<F*>(end.out) + at;
    Results all;
    unsigned failed = 0;
    for (int i = 0; i < width; ++i) {
      double sum = words[i].sum, low = words[i].rest;
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
__device__ inline void sum_in_digits(const fp64* x, const Layout& l, Term term, const ExactFinish& end,
                                     std::size_t at) {
  __shared__ TermDigits digits;
  for (int i = thread(); i < TermDigits::count; i += warp) digits.digit[i] = 0;
  __syncwarp();  // the digits are zero before any thread adds to them
  const fp64* const column = x + l.first(at / l.inner) + at % l.inner;
  unsigned flags = Exact::seen_any;
  for (std::size_t k = static_cast<std::size_t>(thread()); k < l.n; k += warp) {
    const double e = element_term(term, column[k * l.stride]);
    if (to_bits(e) != Format<fp64>::sign_bit) flags |= Exact::seen_other_than_minus_zero;
    if (is_special(e))
      flags |= special_flags_of(e);
    else
      deposit(&digits, e);
  }
  finish(end, &digits, __reduce_or_sync(whole_warp, flags), l.n, at);
  __syncwarp();  // all threads have read the digits before the next column overwrites them
}

/// Sums columns of elements or magnitudes, columns_of_thread neighbours per thread.
__global__ void __launch_bounds__(exact_threads)
    sum_columns_exactly(const fp64* __restrict__ x, Layout l, Term term, ExactFinish end) {
  constexpr int width = columns_of_thread;
  __shared__ unsigned count;
  __shared__ std::size_t failed_at[exact_threads * width];
  if (threadIdx.x == 0) count = 0;
  __syncthreads();  // the list is empty
  const std::size_t groups = (l.inner - 1) / width + 1,
                    g = std::size_t{blockIdx.x} * exact_threads + threadIdx.x;
  if (g < l.outer * groups) {
    const std::size_t inner = g % groups * width, at = g / groups * l.inner + inner;
    const fp64* const first = x + l.first(g / groups) + inner;
    const int count_here = static_cast<int>(min(l.inner - inner, std::size_t{width}));
    const bool aligned = count_here == width && l.stride % width == 0 &&
                         reinterpret_cast<std::uintptr_t>(first) % sizeof(ColumnRun) == 0;
    const Columns columns{first, l.n, l.stride, count_here, aligned, term == Term::magnitude};
    SumAndRest words[width];
    unsigned failed = columns.sum(words);
    failed |= write_columns(words, failed, end, at, columns.count, l.n);
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
