/// Elements and marks of reductions by key on a CPU: how elements are read, and which results have elements.
#pragma once

#include "samesum/backend/cpu/by_key/by_key.hpp"
#include "samesum/backend/cpu/loops/kernels.hpp"

namespace samesum::cpu {

inline Rows rows_of(const Call& call) {
  return {call.keys, bins(call), call.layout.inner, call.x.data, call.x.format ? call.x.format->bytes : 0};
}
inline int threads_of(const Call& call) {
  const std::size_t n = call.keys.size;
  return thread_count(call.options.threads, n * call.layout.inner, std::max<std::size_t>(n, 1));
}

/// Whether the table has all elements. If not, ends the call with the place of the first bad key.
template <class Word> bool is_complete(const Table<Word>& table, HostRun& work) {
  if (table.has_bad_key) work.first_bad_key = first_bad_key(work.call.keys, bins(work.call));
  return !table.has_bad_key;
}

template <class T> const Kernels& loops_of() { return kernels(Formats::index_of<T>()); }

inline constexpr auto relaxed = std::memory_order_relaxed;

/// Whether a number with these bits is among n.
template <class T> bool contains(const T* x, std::size_t n, BitsOf<T> bits) {
  BitsOf<T> any = 0;  // as wide as the elements, so that vectors of them need no conversion
  for (std::size_t i = 0; i < n; ++i) any |= to_bits(x[i]) == bits ? BitsOf<T>{1} : BitsOf<T>{0};
  return any != 0;
}
template <class T> bool has_minus_zero(const T* x, std::size_t n) {
  return contains(x, n, Format<T>::sign_bit);
}

/// Elements as they are given.
template <class T> struct GivenRows {
  using X = T;
  const T* x;
  std::size_t inner;
  explicit GivenRows(const Call& call) : x{static_cast<const T*>(call.x.data)}, inner{call.layout.inner} {}
  const T* rows(std::size_t first, std::size_t, T*) const { return x + first * inner; }
};

/// Elements rounded to the format F, as numbers of its carrier.
template <class F> struct RoundedRows {
  using X = CarrierOf<F>;
  const Call& call;
  WriteTerms write;
  explicit RoundedRows(const Call& c)
      : call{c}, write{kernels(Formats::index_of<F>()).write_terms[c.x.format->index]} {}
  const X* rows(std::size_t first, std::size_t n, X* buffer) const {
    const std::size_t inner = call.layout.inner;
    const auto* from = static_cast<const std::byte*>(call.x.data) + first * inner * call.x.format->bytes;
    if (std::is_same_v<F, X> && call.x.format->index == Formats::index_of<F>())
      return reinterpret_cast<const X*>(from);
    write(Term::element, from, nullptr, n * inner, buffer, nullptr);
    return buffer;
  }
};

/// Returns the number of rows of each key. All keys are valid.
std::vector<std::int64_t> counts_of(const Call& call);

/// Marks results that have elements, and those that have others than -0.
enum Mark : std::uint8_t { has_elements = 1, has_other_than_minus_zero = 2 };
/// Returns the marks of all results, each a combination of Mark.
std::vector<std::uint8_t> marks_of(const Call& call);

/// The marks of all results, which few calls need: one more pass over valid keys.
class Marks {
 public:
  explicit Marks(const Call& call) : call_{call} {}
  /// Makes them, if any result needs them.
  template <class Needs> void make(Needs needs) {
    for (std::size_t at = 0; at < bins(call_) * call_.layout.inner; ++at) {
      if (!needs(at)) continue;
      all_ = marks_of(call_);
      return;
    }
  }
  /// Whether the marks say that the result has no elements.
  bool is_empty(std::size_t at) const { return !all_.empty() && all_[at] == 0; }
  /// Whether the marks say that all elements of the result are -0.
  bool is_minus_zero(std::size_t at) const { return !all_.empty() && all_[at] == has_elements; }

 private:
  const Call& call_;
  std::vector<std::uint8_t> all_;
};

/// The words at the start: fresh, or made from the numbers in `out` if results are combined with them.
template <class F, class Word, class FromHeld>
std::vector<Word> start_of(const Call& call, Word fresh, FromHeld from_held) {
  const std::size_t results = bins(call) * call.layout.inner;
  std::vector<Word> words(results, fresh);
  for (std::size_t at = 0; call.options.combine && at < results; ++at)
    words[at] = from_held(static_cast<const F*>(call.out.data)[at]);
  return words;
}

template <class F> bool is_nan(F x) { return is_nan_bits<F>(to_bits(x)); }

}  // namespace samesum::cpu
