/// Exact sums by key on a CPU: in words, else in a window of 128 bits, else in superaccumulators.
#include "samesum/backend/cpu/by_key_words.hpp"
#include "samesum/backend/cpu/methods.hpp"
#include "samesum/catalogue/describe.hpp"

namespace samesum::cpu {
namespace {

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
  if (std::any_of(out, out + results, [](F held) { return special_flags_of(held) != 0; })) return false;
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

}  // namespace

std::vector<Entry> exact_by_key() {
  std::vector<Entry> all;
  Formats::for_each([&]<class F>() {
    for_each_order_free<true>([&]<class Operation, class Accumulator>() {
      if constexpr (!Accumulator::takes_grid) {
        Entry e = describe_order_free<Operation, Accumulator, F>("cpu");
        e.code.host.any.fill([](HostRun& work) { sum_exactly<F>(work, exact_kind<Operation>); });
        all.push_back(e);
      }
    });
  });
  return all;
}

}  // namespace samesum::cpu
