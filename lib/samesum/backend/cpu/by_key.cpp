/// The operations by key on a CPU.
#include "samesum/backend/cpu/by_key.hpp"

#include <cmath>

#include "samesum/accumulator/fixed_point.hpp"
#include "samesum/backend/cpu/exact_window.hpp"
#include "samesum/backend/cpu/kernels.hpp"
#include "samesum/backend/cpu/methods.hpp"
#include "samesum/backend/cpu/sorted_rows.hpp"
#include "samesum/catalogue/describe.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace samesum::cpu {
namespace {

Rows rows_of(const Call& call) {
  return {call.keys, bins(call), call.layout.inner, call.x.data, call.x.format ? call.x.format->bytes : 0};
}
int threads_of(const Call& call) {
  const std::size_t n = call.keys.size;
  return thread_count(call.options.threads, n * call.layout.inner, std::max<std::size_t>(n, 1));
}

/// Whether the table has all elements. Otherwise the call ends, with the place of the first bad key.
template <class Word> bool is_complete(const Table<Word>& table, HostRun& work) {
  if (table.has_bad_key) work.first_bad_key = first_bad_key(work.call.keys, bins(work.call));
  return !table.has_bad_key;
}

template <class T> const Kernels& loops_of() { return kernels<Formats::index_of<T>()>(); }

constexpr auto relaxed = std::memory_order_relaxed;

// --- elements and their marks ----------------------------------------------------------------------------

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
      : call{c}, write{kernels<Formats::index_of<F>()>().write_terms[c.x.format->index]} {}
  const X* rows(std::size_t first, std::size_t n, X* buffer) const {
    const std::size_t inner = call.layout.inner;
    const auto* from = static_cast<const std::byte*>(call.x.data) + first * inner * call.x.format->bytes;
    if (std::is_same_v<F, X> && call.x.format->index == Formats::index_of<F>())
      return reinterpret_cast<const X*>(from);
    write(Term::element, from, nullptr, n * inner, buffer, nullptr);
    return buffer;
  }
};

/// Counts the rows of each key.
struct Counter {
  using X = std::uint8_t;
  using Word = std::int64_t;
  static constexpr Word fresh = 0;
  static constexpr bool is_order_free = true;
  const X* rows(std::size_t, std::size_t, X* buffer) const { return buffer; }
  void add(Word& word, X) const { ++word; }
  void merge(Word& word, Word other) const { word += other; }
};

/// Marks results that have elements, and those that have others than -0.
enum Mark : std::uint8_t { has_elements = 1, has_other_than_minus_zero = 2 };
template <class T> struct Marker : GivenRows<T> {
  using GivenRows<T>::GivenRows;
  using Word = std::uint8_t;
  static constexpr Word fresh = 0;
  static constexpr bool is_order_free = true;
  void add(Word& word, T x) const {
    const bool is_minus_zero = to_bits(x) == Format<T>::sign_bit;
    word = Word(word | has_elements | (is_minus_zero ? 0 : has_other_than_minus_zero));
  }
  void merge(Word& word, Word other) const { word = Word(word | other); }
};

/// The marks of all results, which few calls need: one more pass over valid keys.
class Marks {
 public:
  explicit Marks(const Call& call) : call_{call} {}
  /// Makes them, if any result needs them.
  template <class Needs> void make(Needs needs) {
    for (std::size_t at = 0; at < bins(call_) * call_.layout.inner; ++at) {
      if (!needs(at)) continue;
      all_ = with_format(*call_.x.format, [&]<class T>() {
        return add_by_key(Marker<T>{call_}, rows_of(call_), threads_of(call_)).words;
      });
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

std::vector<std::int64_t> counts_of(const Call& call) {
  return add_by_key(Counter{}, {call.keys, bins(call), 1}, threads_of(call)).words;
}

void count(HostRun& work) {
  const Call& call = work.call;
  auto* out = static_cast<std::int64_t*>(call.out.data);
  const Table<std::int64_t> table = add_by_key(Counter{}, {call.keys, bins(call), 1}, threads_of(call));
  if (!is_complete(table, work)) return;
  for (std::size_t at = 0; at < bins(call); ++at)
    out[at] = call.options.combine ? out[at] + table.words[at] : table.words[at];
}

/// The words at the start: fresh, or made from what `out` holds if results are combined with it.
template <class F, class Word, class FromHeld>
std::vector<Word> start_of(const Call& call, Word fresh, FromHeld from_held) {
  const std::size_t results = bins(call) * call.layout.inner;
  std::vector<Word> words(results, fresh);
  for (std::size_t at = 0; call.options.combine && at < results; ++at)
    words[at] = from_held(static_cast<const F*>(call.out.data)[at]);
  return words;
}

// --- plain sums and extrema ------------------------------------------------------------------------------

/// Adds elements in turn, rounding to Wide after each addition. Wide is F or has more exponents.
template <class F, class Wide = F> struct PlainAdder : RoundedRows<F> {
  using typename RoundedRows<F>::X;
  using Word = X;
  static constexpr Word fresh = -X{0};
  static constexpr bool is_order_free = false;
  mutable std::atomic<bool> has_minus_zeros = false;
  explicit PlainAdder(const Call& call) : RoundedRows<F>{call} {}
  const X* rows(std::size_t first, std::size_t n, X* buffer) const {
    const X* const x = RoundedRows<F>::rows(first, n, buffer);
    if (has_minus_zero(x, n * this->call.layout.inner)) has_minus_zeros.store(true, relaxed);
    return x;
  }
  void add(Word& word, X x) const { word = (Scalar<Wide>{word} + Scalar<Wide>{x}).v; }
};

template <class F> bool is_nan(F x) { return is_nan_bits<F>(to_bits(x)); }

/// Sums sorted rows of the format F in turn. Returns false if they cannot be sorted.
template <class F> bool sum_rows_in_turn(const Call& call) {
  const auto sorted = SortedRows::of(call, threads_of(call));
  if (!sorted) return false;
  sorted->for_each_key<F>([&](std::size_t key, const RowsOfKey& rows, F* held) {
    F* const out = static_cast<F*>(call.out.data) + key * rows.inner;
    if (call.options.combine) std::copy_n(out, rows.inner, held);
    if (rows.count > 0)
      loops_of<F>().sum_rows_in_turn(rows, call.options.combine ? held : nullptr, out);
    else if (!call.options.combine)
      std::fill_n(out, rows.inner, F{});
  });
  return true;
}

template <class F> void sum_in_turn(HostRun& work, const TermReducer<Plain, F>& reducer) {
  const Call& call = work.call;
  using C = CarrierOf<F>;
  if (!reducer.mean && call.x.format->index == Formats::index_of<F>() && sum_rows_in_turn<F>(call)) return;
  auto* out = static_cast<F*>(call.out.data);
  const std::size_t inner = call.layout.inner;
  const PlainAdder<F> adder{call};
  const int threads = threads_of(call);
  Table<C> table = add_by_key(adder, rows_of(call), threads,
                              start_of<F>(call, adder.fresh, [](F held) { return convert<C>(held); }));
  if (!is_complete(table, work)) return;
  std::vector<C>& sums = table.words;
  Marks marks{call};
  if (!reducer.mean) {
    // A sum of other elements than -0 is never -0. Whether nothing was added to a NaN must be looked up.
    marks.make([&](std::size_t at) {
      return call.options.combine ? is_nan(sums[at]) && is_nan(out[at])
                                  : adder.has_minus_zeros && to_bits(sums[at]) == Format<C>::sign_bit;
    });
    return for_each_result(threads, sums.size(), [&](std::size_t at) {
      if (call.options.combine && is_nan(sums[at]) && marks.is_empty(at)) return;
      const bool is_zero = !call.options.combine && sums[at] == 0 && !marks.is_minus_zero(at);
      out[at] = is_zero ? F{} : to_format<F>(Scalar<F>{sums[at]});
    });
  }
  const std::vector<std::int64_t> counts = counts_of(call);
  const auto finish = [&](const auto& with, const auto& words) {
    for_each_result(threads, words.size(), [&](std::size_t at) {
      typename std::decay_t<decltype(with)>::State state;
      if constexpr (requires { state.sum.sum; })
        state.sum.sum = {words[at]};
      else
        state.sum = {words[at]};
      with.finish(state, static_cast<std::uint64_t>(counts[at / inner]), at, out);
    });
  };
  finish(reducer, sums);
  if constexpr (requires { reducer.replacement(); })
    for (std::size_t at = 0; at < sums.size(); ++at)
      if (counts[at / inner] > 0 && reducer.replacement().must_replace(at, out))
        return finish(reducer.replacement(),
                      add_by_key(PlainAdder<fp16, fp16_wide>{call}, rows_of(call), threads).words);
}

template <class F> struct ExtremumAdder : RoundedRows<F> {
  using typename RoundedRows<F>::X;
  using Word = typename KeyOf<F>::Key;
  static constexpr Word fresh = 0;
  static constexpr bool is_order_free = true;
  bool smallest;
  ExtremumAdder(const Call& call, bool s) : RoundedRows<F>{call}, smallest{s} {}
  void add(Word& word, X x) const { word = std::max(word, Word(KeyOf<F>::of(x, smallest))); }
  void merge(Word& word, Word other) const { word = std::max(word, other); }
};

template <class F> void find_extrema(HostRun& work, const ExtremumReducer<F>& reducer) {
  const Call& call = work.call;
  auto* out = static_cast<F*>(call.out.data);
  const ExtremumAdder<F> adder{call, reducer.smallest};
  const int threads = threads_of(call);
  const auto table = add_by_key(adder, rows_of(call), threads, start_of<F>(call, adder.fresh, [&](F held) {
                                  return KeyOf<F>::of(convert<CarrierOf<F>>(held), reducer.smallest);
                                }));
  if (!is_complete(table, work)) return;
  const auto is_nan_key = [&](std::size_t at) { return table.words[at] == KeyOf<F>::nan; };
  Marks marks{call};
  marks.make([&](std::size_t at) { return call.options.combine && is_nan_key(at) && is_nan(out[at]); });
  for_each_result(threads, table.words.size(), [&](std::size_t at) {
    if (call.options.combine && is_nan_key(at) && marks.is_empty(at)) return;
    reducer.finish({table.words[at]}, 1, at, out);
  });
}

// --- sums of sorted rows in words -------------------------------------------------------------------------

/// A grid for terms smaller than 2^end.
struct GridForRows {
  int grid, end;
  bool exactly;
};

/// Whether all elements of a column are -0; false if there are none.
template <class T> bool is_minus_zero_column(const RowsOfKey& rows, std::size_t column) {
  const T* const x = static_cast<const T*>(rows.x) + column;
  for (std::size_t r = 0; r < rows.count; ++r)
    if (to_bits(x[rows.index[r] * rows.inner]) != Format<T>::sign_bit) return false;
  return rows.count > 0;
}

/// Sums sorted rows in words of 64 bits. Returns false if an element is as large as 2^end, has too many
/// units, or is not a whole number of units although it must be; then all results must be written anew.
template <class T, class F>
bool sum_sorted_rows(const Call& call, const SortedRows& sorted, bool mean, GridForRows g) {
  if (std::abs(g.grid) >= 1000) return false;                            // 2^-grid must be a normal double
  if (g.exactly && std::is_same_v<T, fp64> && g.grid > 0) return false;  // x·scale might underflow
  const int most = std::min(g.end, g.grid + 62 - bits_for_terms(call.keys.size));
  const GridOfRows grid{power_of_two(-g.grid), round_to_bits<T>(false, 1, most), most - g.grid <= 51,
                        g.exactly};
  const bool is_simple = !mean && !call.options.combine &&
                         g.grid >= (sizeof(F) == 2 ? -900 : Format<F>::min_exponent) &&
                         g.grid <= (sizeof(F) == 2 ? 900 : Format<F>::max_exponent - 64);
  auto* const all = static_cast<F*>(call.out.data);
  const std::vector<F> held(all, all + (call.options.combine ? bins(call) * call.layout.inner : 0));
  const auto result = [&](std::int64_t sum, std::uint64_t n, F before) {
    const GridSum units{Int128::of(sum)};
    if (n == 0) return from_bits<F>(Format<F>::canonical_nan);
    if (!g.exactly)
      return from_bits<F>(call.options.combine ? units.template result_with<F>(g.grid, before)
                                               : units.template result<F>(g.grid, n));
    if (!call.options.combine) return rounded_sum<F>(units.units.wide(), g.grid, n);
    return from_bits<F>(round_units<F, true>(units.units, g.grid, before));
  };
  std::atomic<bool> fits = true;
  sorted.for_each_key<std::int64_t>([&](std::size_t key, const RowsOfKey& rows, std::int64_t* sums) {
    F* const out = all + key * rows.inner;
    if (!fits.load(relaxed) || (call.options.combine && rows.count == 0)) return;
    if (!loops_of<T>().sum_unit_rows(rows, grid, sums)) return fits.store(false, relaxed);
    const std::uint64_t n = mean ? rows.count : 1;
    if (is_simple)
      loops_of<F>().round_units(sums, rows.inner, power_of_two(g.grid), g.exactly, out);
    else
      for (std::size_t i = 0; i < rows.inner; ++i) out[i] = result(sums[i], n, out[i]);
    if (!g.exactly || !contains<F>(out, rows.inner, 0)) return;
    for (std::size_t i = 0; i < rows.inner; ++i) {
      const bool can_be_minus_zero =
          !call.options.combine || to_bits(held[key * rows.inner + i]) == Format<F>::sign_bit;
      if (to_bits(out[i]) == 0 && can_be_minus_zero && is_minus_zero_column<T>(rows, i))
        out[i] = from_bits<F>(Format<F>::sign_bit);
    }
  });
  if (!fits) std::ranges::copy(held, all);
  return fits;
}

// --- exact sums ------------------------------------------------------------------------------------------

/// Guesses a window from a sample of n elements. Every element is checked when it is added.
template <class T> int largest_exponent_of_sample(const T* x, std::size_t n) {
  const std::size_t step = n / 4096 + 1;
  int largest = no_exponent;
  for (std::size_t i = 0; i < n; i += step) largest = std::max(largest, exponent_of(x[i]));
  return largest;
}
int grid_of_window(int largest_exponent, int term_bits) {
  constexpr int margin = 6;  // the sample may have missed larger elements
  return largest_exponent == no_exponent ? -63 : largest_exponent + margin - term_bits;
}

template <class T> struct WindowAdder : GivenRows<T> {
  using Word = Wide;
  static constexpr Word fresh = 0;
  static constexpr bool is_order_free = true;
  ExactWindow<T> window;
  mutable std::atomic<bool> missed = false, has_minus_zeros = false;
  WindowAdder(const Call& call, const ExactWindow<T>& w) : GivenRows<T>{call}, window{w} {}
  const T* rows(std::size_t first, std::size_t n, T*) const {
    const T* const from = this->x + first * this->inner;
    if (has_minus_zero(from, n * this->inner)) has_minus_zeros.store(true, relaxed);
    return missed.load(relaxed) ? nullptr : from;
  }
  void add(Word& word, T x) const {
    if (!window.add(word, x)) missed.store(true, relaxed);
  }
  void merge(Word& word, Word other) const { word += other; }
};

/// Sums exactly with any elements: sorts the rows by key, then adds the elements of each key.
template <class T> void sum_sorted(const Call& call, ExactKind kind, const FormatInfo& format) {
  const std::size_t inner = call.layout.inner, n = call.keys.size;
  const auto key = [&](std::size_t k) { return key_at(call.keys.format, call.keys.data, k); };
  std::vector<std::size_t> end(bins(call) + 1), sorted(n);
  for (std::size_t k = 0; k < n; ++k) ++end[key(k) + 1];
  for (std::size_t b = 0; b < bins(call); ++b) end[b + 1] += end[b];
  for (std::size_t k = 0; k < n; ++k) sorted[end[key(k)]++] = k;
  const auto* const x = static_cast<const T*>(call.x.data);
  for_each_result(threads_of(call), bins(call) * inner, [&](std::size_t at) {
    const std::size_t bin = at / inner, begin = bin == 0 ? 0 : end[bin - 1];
    if (call.options.combine && begin == end[bin]) return;
    ExactBatchState state;
    if (call.options.combine)
      with_format(format, [&]<class F>() { state.terms.sum.add(static_cast<const F*>(call.out.data)[at]); });
    for (std::size_t k = begin; k < end[bin]; ++k) state.terms.sum.add(x[sorted[k] * inner + at % inner]);
    state.finish(kind, format, end[bin] - begin, 0, at, call.out.data);
  });
}

/// Sums exactly in a window of 128 bits. Returns false, with nothing written, if an element lies outside.
template <class T, class F> bool sum_in_window(HostRun& work, bool mean) {
  const Call& call = work.call;
  auto* out = static_cast<F*>(call.out.data);
  const std::size_t inner = call.layout.inner, results = bins(call) * inner;
  int largest = largest_exponent_of_sample(static_cast<const T*>(call.x.data), call.keys.size * inner);
  if (call.options.combine) largest = std::max(largest, largest_exponent_of_sample(out, results));
  const int term_bits = most_term_bits(call.keys.size + 1), grid = grid_of_window(largest, term_bits);
  const WindowAdder<T> adder{call, {grid, term_bits}};
  const ExactWindow<F> window_of_held{grid, term_bits};
  const int threads = threads_of(call);
  const auto table = add_by_key(adder, rows_of(call), threads, start_of<F>(call, Wide{0}, [&](F held) {
                                  Wide sum = 0;
                                  if (!window_of_held.add(sum, held)) adder.missed = true;
                                  return sum;
                                }));
  if (!is_complete(table, work)) return true;
  if (table.gave_up || adder.missed) return false;
  const std::vector<Wide>& sums = table.words;
  Marks marks{call};
  marks.make(
      [&](std::size_t at) { return sums[at] == 0 && (call.options.combine || adder.has_minus_zeros); });
  const std::vector<std::int64_t> counts = mean ? counts_of(call) : std::vector<std::int64_t>{};
  for_each_result(threads, results, [&](std::size_t at) {
    const auto n = static_cast<std::uint64_t>(mean ? counts[at / inner] : 1);
    if (n == 0) {
      out[at] = from_bits<F>(Format<F>::canonical_nan);
    } else if (sums[at] == 0) {
      const bool held_minus_zero = !call.options.combine || to_bits(out[at]) == Format<F>::sign_bit;
      if (call.options.combine && marks.is_empty(at)) return;
      out[at] = from_bits<F>(held_minus_zero && marks.is_minus_zero(at) ? Format<F>::sign_bit : BitsOf<F>{0});
    } else {
      out[at] = rounded_sum<F>(sums[at], grid, n);
    }
  });
  return true;
}

/// Sums sorted rows exactly in words of 64 bits. Returns false if that is impossible; then all results must
/// be written anew.
template <class T, class F> bool sum_rows_exactly(const Call& call, bool mean) {
  const auto* const out = static_cast<const F*>(call.out.data);
  const std::size_t inner = call.layout.inner, results = call.options.combine ? bins(call) * inner : 0;
  if (std::any_of(out, out + results, [](F held) { return grid_flags(held) != 0; })) return false;
  const auto sorted = SortedRows::of(call, threads_of(call));
  if (!sorted) return false;
  const int largest = largest_exponent_of_sample(static_cast<const T*>(call.x.data), call.keys.size * inner),
            end = largest == no_exponent ? 0 : largest + 3;  // the sample may have missed larger elements
  return sum_sorted_rows<T, F>(call, *sorted, mean, {end - 62 + bits_for_terms(call.keys.size), end, true});
}

template <class F> void sum_exactly(HostRun& work, ExactKind kind) {
  const Call& call = work.call;
  with_format(*call.x.format, [&]<class T>() {
    if (sum_rows_exactly<T, F>(call, kind.mean)) return;
    if (sum_in_window<T, F>(work, kind.mean)) return;
    work.first_bad_key = first_bad_key(call.keys, bins(call));
    if (work.first_bad_key == no_bad_key) sum_sorted<T>(call, kind, format_info<F>());
  });
}

// --- sums on a grid --------------------------------------------------------------------------------------

/// Returns the exponent of the largest finite element, as exponent_of.
template <class T> int largest_exponent(const T* x, std::size_t n, int threads) {
  constexpr std::size_t part = std::size_t{1} << 16;
  std::vector<int> parts(n / part + 1, no_exponent);
  for_each_task(threads, parts.size(), [&](std::size_t k) {
    const T* const mine = x + k * part;
    const std::size_t count = std::min(part, n - k * part);
    const auto bits = static_cast<BitsOf<T>>(loops_of<T>().largest_bits(mine, count));
    if (bits < Format<T>::infinity) {
      parts[k] = exponent_of(from_bits<T>(bits));
    } else {
      for (std::size_t i = 0; i < count; ++i) parts[k] = std::max(parts[k], exponent_of(mine[i]));
    }
  });
  return *std::ranges::max_element(parts);
}

/// Rounds to a whole number, to nearest, ties to even, for |x| < 2^63.
inline std::int64_t rounded(double x) {
#if defined(__SSE2__)
  return _mm_cvtsd_si64(_mm_set_sd(x));
#else
  return std::llrint(x);
#endif
}

/// Adds terms of so few units that one word holds their sums; `few` says that a term has at most 2^51.
template <class T, bool few> struct WordAdder {
  using X =
      std::conditional_t<sizeof(T) >= sizeof(float), T, double>;  ///< elements of 16 bits become doubles
  using Word = std::int64_t;
  static constexpr Word fresh = 0;
  static constexpr bool is_order_free = true;
  const T* x;
  std::size_t inner;
  double scale;
  BitsOf<T> limit;  ///< terms are smaller than the number with these bits
  LargestBits largest_bits = loops_of<T>().largest_bits;
  WriteTerms to_doubles = loops_of<fp64>().write_terms[Formats::index_of<T>()];

  /// Terms are smaller than 2^end.
  WordAdder(const Call& call, int grid, int end)
      : x{static_cast<const T*>(call.x.data)},
        inner{call.layout.inner},
        scale{power_of_two(-grid)},
        limit{round_to_bits<T>(false, 1, end)} {}

  const X* rows(std::size_t first, std::size_t n, X* buffer) const {
    const T* const from = x + first * inner;
    if (largest_bits(from, n * inner) >= limit) return nullptr;
    if constexpr (std::is_same_v<X, T>) {
      return from;
    } else {
      to_doubles(Term::element, from, nullptr, n * inner, buffer, nullptr);
      return buffer;
    }
  }
  /// Rounds the element to units. The product with the scale is exact, or so small that it becomes 0.
  void add(Word& word, X element) const {
    const double units = static_cast<double>(element) * scale;
    if constexpr (few) {
      constexpr double anchor = 0x1.8p52;  // adding it rounds a number of up to 2^51 to a whole one
      word += static_cast<Word>(to_bits(units + anchor) - to_bits(anchor));
    } else {
      word += rounded(units);
    }
  }
  void merge(Word& word, Word other) const { word += other; }
};

/// Adds rows of several terms as WordAdder, with a loop of the instruction set.
template <class T> struct RowAdder : GivenRows<T> {
  using Word = std::int64_t;
  static constexpr Word fresh = 0;
  static constexpr bool is_order_free = true;
  double scale;
  bool few;
  BitsOf<T> limit;  ///< as for WordAdder
  LargestBits largest_bits = loops_of<T>().largest_bits;
  AddUnitRows add_unit_rows = loops_of<T>().add_unit_rows;

  RowAdder(const Call& call, int grid, int end)
      : GivenRows<T>{call},
        scale{power_of_two(-grid)},
        few{end - grid <= 51},
        limit{round_to_bits<T>(false, 1, end)} {}

  const T* rows(std::size_t first, std::size_t n, T*) const {
    const T* const from = this->x + first * this->inner;
    return largest_bits(from, n * this->inner) < limit ? from : nullptr;
  }
  void add_rows(const T* from, const std::size_t* places, std::size_t n, Word* table) const {
    add_unit_rows(from, places, n, this->inner, scale, few, table);
  }
  void merge(Word& word, Word other) const { word += other; }
};

/// Adds any terms.
template <class T> struct GridAdder : GivenRows<T> {
  using Word = GridSum;
  static constexpr Word fresh{};
  static constexpr bool is_order_free = true;
  int grid;
  GridAdder(const Call& call, int g) : GivenRows<T>{call}, grid{g} {}
  void add(Word& word, T x) const { word.add(x, grid); }
  void merge(Word& word, const Word& other) const { word.merge(other); }
};

/// Writes the results of all sums, unless one overflows.
template <class F, class Word>
void finish_on_grid(HostRun& work, bool mean, int grid, const std::vector<Word>& words) {
  const Call& call = work.call;
  auto* out = static_cast<F*>(call.out.data);
  const int threads = threads_of(call);
  const auto sum_of = [](const Word& word) {
    if constexpr (std::is_same_v<Word, GridSum>)
      return word;
    else
      return GridSum{Int128::of(word)};
  };
  if constexpr (std::is_same_v<Word, GridSum>)
    for (const GridSum& sum : words) work.overflowed |= sum.overflows(call.keys.size, grid_word_bits<F>);
  if (work.overflowed) return;
  Marks marks{call};
  // Without elements, a result keeps what `out` holds, even a -0 or a NaN.
  marks.make([&](std::size_t at) {
    return call.options.combine && sum_of(words[at]).units.is_zero() &&
           (is_nan(out[at]) || to_bits(out[at]) == Format<F>::sign_bit);
  });
  // One rounding, in the conversion, if no result can be subnormal or infinite.
  if constexpr (std::is_same_v<Word, std::int64_t> && std::is_same_v<F, CarrierOf<F>>)
    if (!mean && !call.options.combine && grid >= Format<F>::min_exponent &&
        grid <= Format<F>::max_exponent - 64) {
      const F unit = static_cast<F>(power_of_two(grid));
      return for_each_result(threads, words.size(),
                             [&](std::size_t at) { out[at] = static_cast<F>(words[at]) * unit; });
    }
  const std::vector<std::int64_t> counts = mean ? counts_of(call) : std::vector<std::int64_t>{};
  for_each_result(threads, words.size(), [&](std::size_t at) {
    if (call.options.combine && marks.is_empty(at)) return;
    const GridSum sum = sum_of(words[at]);
    const auto n = static_cast<std::uint64_t>(mean ? counts[at / call.layout.inner] : 1);
    out[at] = from_bits<F>(n == 0                 ? Format<F>::canonical_nan
                           : call.options.combine ? sum.template result_with<F>(grid, out[at])
                                                  : sum.template result<F>(grid, n));
  });
}

/// Sums on a grid in words. Returns false, with nothing written, if an element is as large as 2^`end` or has
/// too many units.
template <class T, class F> bool sum_in_words(HostRun& work, bool mean, int grid, int end) {
  const Call& call = work.call;
  if (std::abs(grid) >= 1000) return false;  // 2^-grid must be a normal double
  const int term_bits = 62 - bits_for_terms(call.keys.size), most = std::min(end, grid + term_bits);
  const auto sum = [&](const auto& adder) {
    const auto table = add_by_key(adder, rows_of(call), threads_of(call));
    if (is_complete(table, work) && !table.gave_up) finish_on_grid<F>(work, mean, grid, table.words);
    return table.has_bad_key || !table.gave_up;
  };
  if (call.layout.inner > 1) return sum(RowAdder<T>{call, grid, most});
  return most - grid <= 51 ? sum(WordAdder<T, true>{call, grid, most})
                           : sum(WordAdder<T, false>{call, grid, most});
}

template <class T, class F> void sum_on_grid(HostRun& work, bool mean) {
  const Call& call = work.call;
  constexpr int no_end = Format<T>::max_exponent + 1;
  const auto* x = static_cast<const T*>(call.x.data);
  const std::size_t n = call.keys.size, elements = n * call.layout.inner;
  const int threads = threads_of(call);
  // No result has more than n terms.
  const auto grid_of = [n](int largest) {
    return found_grid(largest, n, grid_word_bits<F>, Format<T>::min_quantum);
  };
  int grid = call.options.grid.value_or(0);
  const auto sorted = SortedRows::of(call, threads);
  const auto sum = [&](int g, int end) {
    return sorted ? sum_sorted_rows<T, F>(call, *sorted, mean, {g, end, false})
                  : sum_in_words<T, F>(work, mean, g, end);
  };
  if (!call.options.grid) {
    // Nearly always the largest element of a part has the exponent of the largest of all. Each element is
    // compared with it on the way.
    const int guess =
        std::max(largest_exponent(x, elements / 16, threads), largest_exponent_of_sample(x, elements));
    if (guess != no_exponent && sum(grid_of(guess), guess + 1)) return;
    grid = grid_of(largest_exponent(x, elements, threads));
  }
  // Most elements have so few units on a given grid that rounding them takes one addition.
  if (call.options.grid && bits_for_terms(n) < 11 && sum(grid, grid + 51)) return;
  if (sum(grid, no_end)) return;
  const auto table = add_by_key(GridAdder<T>{call, grid}, rows_of(call), threads);
  if (is_complete(table, work)) finish_on_grid<F>(work, mean, grid, table.words);
}

}  // namespace

std::vector<Entry> methods_by_key() {
  std::vector<Entry> all;
  Formats::for_each([&]<class F>() {
    for_each_method_by_key<F, "cpu">([&]<class Operation, class Order, template <class> class A>() {
      Entry e = describe<Operation, Order, A, F>("cpu");
      if constexpr (Operation::inputs == 0)
        e.code.host.any.fill(count);
      else
        Formats::for_each([&]<class T>() {
          if constexpr (can_read<T, F>)
            e.code.host.any[Formats::index_of<T>()] = [](HostRun& work) {
              const auto reducer = Operation::template reducer<A, F>({});
              if constexpr (requires { reducer.smallest; })
                find_extrema<F>(work, reducer);
              else
                sum_in_turn<F>(work, reducer);
            };
        });
      all.push_back(e);
    });
    for_each_order_free_by_key<Exactly>([&]<class Operation>() {
      Entry e = describe_order_free<Operation, Exactly, F>("cpu");
      e.code.host.any.fill([](HostRun& work) { sum_exactly<F>(work, exact_kind<Operation>); });
      all.push_back(e);
    });
    for_each_order_free_by_key<OnGrid>([&]<class Operation>() {
      Entry e = describe_order_free<Operation, OnGrid, F>("cpu");
      Formats::for_each([&]<class T>() {
        e.code.host.any[Formats::index_of<T>()] = [](HostRun& work) {
          sum_on_grid<T, F>(work, exact_kind<Operation>.mean);
        };
      });
      all.push_back(e);
    });
  });
  return all;
}

}  // namespace samesum::cpu
