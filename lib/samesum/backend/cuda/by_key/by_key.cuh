/// Types that the kernels of reductions by key share: the elements of a call, its events, and its list of
/// outliers. The schedule of a kernel cannot change a bit: sums are integers, and extrema are integers that
/// are ordered like their numbers. Kernels have internal linkage, since only by_key.cu uses them.
#pragma once

#include "samesum/backend/cuda/device/key_status.hpp"
#include "samesum/backend/cuda/device/pair.cuh"
#include "samesum/backend/cuda/device/warp.cuh"
#include "samesum/call/keys.hpp"
#include "samesum/operation/operations.hpp"

namespace samesum::gpu {

/// Events of a call by key that its kernels report to each other, in device memory. All are zero at first.
struct KeyEvents {
  std::uint64_t bad_key;     ///< complement of the index of the first key out of range; 0 if there is none
  std::uint32_t missed;      ///< whether an element fits neither the window nor the list of outliers
  std::uint32_t ambiguous;   ///< whether the sign of a zero depends on a second look at the elements
  std::uint32_t outliers;    ///< number of terms on the list of outliers
  std::uint32_t expected;    ///< number of outliers that look_for_outliers has found
  std::uint32_t overflowed;  ///< whether a sum overflows a given grid
  static constexpr std::uint32_t ranges = 8;
  ExponentRange range[ranges];  ///< exponents that elements need, each for a part of those that were read

  /// The range of exponents that all parts need; or, if one part may be left out, the range that all but one
  /// need, since elements that only one part of a sample has are rare.
  __device__ ExponentRange seen(bool leaves_out_one) const {
    ExponentRange most, second;
#pragma unroll
    for (const ExponentRange& part : range) {
      second.merge({min(most.above, part.above), min(most.below, part.below)});
      most.merge(part);
    }
    return leaves_out_one ? second : most;
  }
};

/// Flags of the elements of one key, a byte per result: those of Exact::Flag, and these. The first look sets
/// seen_other_than_minus_zero for +0 only, and only the second look sets seen_any.
constexpr unsigned seen_minus_zero = 32,
                   is_ambiguous = 64,  ///< the result waits for a second look
    has_outliers = 128;                ///< terms on the list of outliers are part of the sum

/// Terms that the window does not hold: term[i] is part of result[i]. A sum in registers is on the list, too,
/// if its result has outliers.
struct OutlierList {
  static constexpr std::uint32_t room = 1 << 14;
  /// (-1)^negative · magnitude · 2^exponent, or, without flags, the element with the bits `magnitude`.
  struct Term {
    std::uint64_t magnitude;
    std::int32_t exponent;
    std::uint16_t flags;  ///< flags of other elements of the result
    bool negative;
  };
  std::uint64_t* result;
  Term* term;
};

/// The elements of a call by key. Element e has the key of index e / inner, and belongs to result
/// key·inner + e % inner.
struct KeyedElements {
  KeyFormat format;
  const void* keys;
  const void* x;  ///< not read by counts
  std::uint64_t elements, inner, bins;
  KeyEvents* events;
  std::uint32_t* flags;  ///< four results a word
  OutlierList outliers;
  SAMESUM_HD std::uint64_t results() const { return bins * inner; }
  /// The rows as elements, which are not read.
  KeyedElements rows() const {
    KeyedElements rows = *this;
    rows.elements = inner > 0 ? elements / inner : 0;
    rows.inner = 1;
    return rows;
  }
};

/// The shared memory of a block.
extern __shared__ __align__(16) std::uint32_t shared_words[];

__device__ inline void report_bad_key(KeyEvents* events, std::uint64_t i) {
  atomicMax(reinterpret_cast<unsigned long long*>(&events->bad_key), ~static_cast<unsigned long long>(i));
}

__device__ inline void flag(std::uint32_t* flags, std::uint64_t result, unsigned which) {
  std::uint32_t* const word = flags + result / 4;
  const std::uint32_t bits = which << 8 * (result % 4);
  if ((*static_cast<volatile std::uint32_t*>(word) & bits) != bits) atomicOr(word, bits);
}
/// Reports an element that fits neither the window nor the list, so that the second look sums all elements.
__device__ inline void miss(KeyEvents* events) {
  if (*static_cast<volatile std::uint32_t*>(&events->missed) == 0) atomicOr(&events->missed, 1u);
}
/// Appends a term of a result to the list of outliers.
__device__ inline void append_outlier(const KeyedElements& keyed, std::uint64_t result,
                                      OutlierList::Term term) {
  if (*static_cast<volatile std::uint32_t*>(&keyed.events->missed) != 0) return;
  const std::uint32_t at = atomicAdd(&keyed.events->outliers, 1u);
  if (at >= OutlierList::room) return miss(keyed.events);
  keyed.outliers.result[at] = result;
  keyed.outliers.term[at] = term;
}

__device__ inline unsigned flags_of(const std::uint32_t* flags, std::uint64_t result) {
  return flags[result / 4] >> 8 * (result % 4) & 0xff;
}

/// Calls visit.operator()<Key>() with an unsigned type of the size of the keys.
template <class Visit> __device__ void with_key_bits(KeyFormat format, Visit visit) {
  if (format == KeyFormat::int64)
    visit.template operator()<std::uint64_t>();
  else
    visit.template operator()<std::uint32_t>();
}

__device__ inline std::uint64_t index_in_grid() {
  return std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}

/// Calls visit(result) for element e if its key is in range, and reports the key otherwise.
template <class Visit> __device__ void with_result(const KeyedElements& keyed, std::uint64_t e, Visit visit) {
  const std::uint64_t k = keyed.inner == 1 ? e : quotient(e, keyed.inner),
                      key = key_at(keyed.format, keyed.keys, k);
  if (key < keyed.bins)
    visit(key * keyed.inner + (e - k * keyed.inner));
  else
    report_bad_key(keyed.events, k);
}

/// Calls visit(e, result) for the elements of a thread from `first` to `last` - 1, if their keys are in
/// range.
template <class Visit>
__device__ void for_each_in_range(const KeyedElements& keyed, std::uint64_t first, std::uint64_t last,
                                  Visit visit) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t e = first + index_in_grid(); e < last; e += step)
    with_result(keyed, e, [&](std::uint64_t result) { visit(e, result); });
}
template <class Visit> __device__ void for_each_in_range(const KeyedElements& keyed, Visit visit) {
  for_each_in_range(keyed, 0, keyed.elements, visit);
}

/// Loads an element of the format with that index, rounded to F.
template <class F> __device__ Scalar<F> load_as(std::size_t input, const void* x, std::uint64_t i) {
  Scalar<F> loaded{};
  visit_format(input, [&]<class T>() {
    if constexpr (can_read<T, F> || sizeof(F) == 8)
      loaded = Scalar<F>::of(widen(static_cast<const T*>(x)[i]));
  });
  return loaded;
}

/// One sum per result, in words of 64 bits: `together` neighbours, and one word more if the cells are wide.
struct Totals {
  unsigned long long* word;  ///< null if the results have no totals
  unsigned long long* top;   ///< null if no cells need it
  int together;

  __device__ unsigned long long* at(std::uint64_t result, int w) const {
    return w < together ? word + result * static_cast<unsigned>(together) + w : top + result;
  }
};

/// The totals of a call by key, and the results that they become.
struct KeyResults {
  Totals totals;
  const unsigned long long* counts;  ///< rows of each key; null unless the sums are divided by them
  void* out;
  bool combines;      ///< whether the number that `out` holds is one more term
  KeyStatus* status;  ///< may be null

  /// Tells the caller of a bad key. Kernels that run later add an overflow.
  __device__ void report(std::uint64_t i, const KeyEvents& events) const {
    if (i == 0 && status != nullptr) *status = {~events.bad_key, 0};
  }
  __device__ void report_overflow() const {
    if (status != nullptr) status->overflowed = 1;
  }
};

}  // namespace samesum::gpu
