/// Exact sums by key on a CPU: in words, else in windows of 128 bits, in a table or sorted by key.
#include <utility>

#include "samesum/backend/cpu/by_key/key_groups.hpp"
#include "samesum/backend/cpu/by_key/windows.hpp"
#include "samesum/backend/cpu/by_key/words.hpp"
#include "samesum/backend/cpu/schedule/methods.hpp"
#include "samesum/catalogue/describe.hpp"

namespace samesum::cpu {
namespace {

/// Cost of an element on the list, in elements that are added to windows.
constexpr std::size_t cost_of_listed = 64;

template <class F> F special(std::uint32_t flags) { return from_bits<F>(special_bits<F>(flags)); }

/// If sums are added to the numbers that results hold, calls visit(at, x) for each result and its number x.
template <class Visit> void for_each_held(const Call& call, const FormatInfo& results, Visit visit) {
  if (!call.options.combine) return;
  with_format(results, [&]<class F>() {
    const auto* const held = static_cast<const F*>(call.out.data);
    for (std::size_t at = 0; at < bins(call) * call.layout.inner; ++at) visit(at, convert<double>(held[at]));
  });
}

/// Writes the sums of a table and of the elements outside its windows. `one` says that each result has one
/// window.
template <class F, bool one>
void write_table(const Call& call, bool mean, WindowGrids grids, const std::vector<Wide>& words,
                 Outside& outside, bool has_minus_zeros) {
  auto* const out = static_cast<F*>(call.out.data);
  const std::size_t inner = call.layout.inner;
  const bool combine = call.options.combine;
  const auto sum = [&](std::size_t at) { return words.data() + at * (one ? 1 : grids.words); };
  const auto is_zero_at = [&](std::size_t at) { return one ? words[at] == 0 : is_zero(grids, sum(at)); };
  Marks marks{call};
  if (combine || has_minus_zeros)
    marks.make([&](std::size_t at) { return is_zero_at(at) || (combine && outside.flags(at)); });
  const std::vector<std::int64_t> counts = mean ? counts_of(call) : std::vector<std::int64_t>{};
  const auto divisor = [&](std::size_t at) {
    return static_cast<std::uint64_t>(mean ? counts[at / inner] : 1);
  };
  std::vector<std::pair<std::size_t, F>> listed;
  const std::vector<Outside::Element>& elements = outside.sorted();
  for (auto element = elements.begin(); element != elements.end();) {
    const std::size_t at = element->result;
    SumWithOthers all{grids, sum(at)};
    for (; element != elements.end() && element->result == at; ++element) all.add(element->x);
    if (outside.flags(at) == 0) listed.emplace_back(at, all.rounded<F>(divisor(at)));
  }
  for_each_result(threads_of(call), bins(call) * inner, [&](std::size_t at) {
    if (combine && marks.is_empty(at)) return;
    if (divisor(at) == 0) {
      out[at] = from_bits<F>(Format<F>::canonical_nan);
    } else if (outside.flags(at) != 0) {
      out[at] = special<F>(outside.flags(at));
    } else if (is_zero_at(at)) {
      const bool held_minus_zero = !combine || to_bits(out[at]) == Format<F>::sign_bit;
      out[at] = from_bits<F>(held_minus_zero && marks.is_minus_zero(at) ? Format<F>::sign_bit : BitsOf<F>{0});
    } else {
      out[at] = one ? rounded_sum<F>(words[at], grids.lowest, divisor(at))
                    : rounded<F>(grids, sum(at), divisor(at));
    }
  });
  for (const auto& [at, result] : listed) out[at] = result;
}

/// Sums in windows, in a table of them, to results of a format. Returns false, with nothing written, if too
/// many elements lie outside.
template <class T, class Windows>
bool sum_in_table(HostRun& work, bool mean, const FormatInfo& format, const Windows& windows) {
  const Call& call = work.call;
  const std::size_t inner = call.layout.inner, results = bins(call) * inner;
  Outside outside{results, (call.keys.size * inner + results * call.options.combine) / cost_of_listed + 16};
  std::vector<Wide> start(results * windows.words());
  for_each_held(call, format, [&](std::size_t at, double held) {
    if (!windows.add_other(start[at * windows.words()], held)) outside.add(at, held);
  });
  const WindowAdder<T, Windows> adder{call, windows, outside};
  const auto table = add_by_key(adder, rows_of(call), threads_of(call), std::move(start));
  if (!is_complete(table, work)) return true;
  if (table.gave_up || outside.are_too_many()) return false;
  with_format(format, [&]<class F>() {
    constexpr bool one = std::is_same_v<Windows, OneWindow<T>>;
    write_table<F, one>(call, mean, windows.grids(), table.words, outside, adder.has_minus_zeros);
  });
  return true;
}

/// The sum of the elements of a result.
struct SumOfElements {
  const Wide* windows;
  double other;  ///< one more term, or 0
  bool is_minus_zero;
  std::uint32_t flags;  ///< of infinities and NaN
  std::uint64_t divisor;
};
template <class F> F rounded(WindowGrids grids, const SumOfElements& sum) {
  if (sum.divisor == 0) return from_bits<F>(Format<F>::canonical_nan);
  if (sum.flags != 0) return special<F>(sum.flags);
  if (sum.is_minus_zero) return from_bits<F>(Format<F>::sign_bit);
  if (sum.other == 0) return rounded<F>(grids, sum.windows, sum.divisor);
  SumWithOthers all{grids, sum.windows};
  all.add(sum.other);
  return all.rounded<F>(sum.divisor);
}

/// Sums elements that are sorted by key in windows, one result after another. All keys are valid. Returns
/// false if the windows do not hold an element; then all results must be written anew.
template <class T>
bool sum_sorted(const Call& call, bool mean, const FormatInfo& format, const ManyWindows<T>& windows) {
  std::atomic<bool> fits = true;
  const std::size_t inner = call.layout.inner, n = call.keys.size;
  const auto* const x = static_cast<const T*>(call.x.data);
  std::vector<std::int64_t> row(n);
  std::vector<std::uint64_t> begin(bins(call) + 1);
  const int threads = threads_of(call);
  const auto sort = [&]<class Key>(const Key* keys) {
    sort_by_group(std::span{keys, n}, bins(call), threads, row.data(), begin.data());
  };
  if (call.keys.format == KeyFormat::int64)
    sort(static_cast<const std::int64_t*>(call.keys.data));
  else
    sort(static_cast<const std::uint32_t*>(call.keys.data));
  const std::size_t tasks = std::min<std::size_t>(bins(call), 64 * static_cast<std::size_t>(threads));
  for_each_task(threads, tasks, [&](std::size_t task) {
    std::vector<Wide> sum(windows.words());
    for (std::size_t at = task * bins(call) / tasks * inner; at < (task + 1) * bins(call) / tasks * inner;
         ++at) {
      const std::size_t first = begin[at / inner], end = begin[at / inner + 1];
      if (call.options.combine && first == end) continue;
      if (!fits.load(relaxed)) return;
      double held = 0;
      if (call.options.combine)
        held = with_format(
            format, [&]<class F>() { return convert<double>(static_cast<const F*>(call.out.data)[at]); });
      std::uint32_t flags = special_flags_of(held);
      bool is_minus_zero =
          first != end && (!call.options.combine || to_bits(held) == Format<double>::sign_bit);
      std::ranges::fill(sum, Wide{0});
      for (std::size_t k = first; k < end; ++k) {
        constexpr std::size_t ahead = 16;
        __builtin_prefetch(x + static_cast<std::size_t>(row[std::min(k + ahead, n - 1)]) * inner +
                           at % inner);
        const T element = x[static_cast<std::size_t>(row[k]) * inner + at % inner];
        is_minus_zero = is_minus_zero && to_bits(element) == Format<T>::sign_bit;
        if (windows.is_common(element)) [[likely]]
          windows.add(sum[0], element);
        else if (!windows.add_other(sum[0], element)) {
          if (special_flags_of(element) == 0) return fits.store(false, relaxed);
          flags |= special_flags_of(element);
        }
      }
      if (windows.add_other(sum[0], held)) held = 0;
      with_format(format, [&]<class F>() {
        static_cast<F*>(call.out.data)[at] = rounded<F>(
            windows.grids(), SumOfElements{sum.data(), held, is_minus_zero, flags, mean ? end - first : 1});
      });
    }
  });
  return fits;
}

/// Whether so few elements of the sample lie outside the window that a list of them is cheap.
template <class T>
bool fits_sample(const OneWindow<T>& window, const SampledExponents& sample, const T* x, std::size_t n) {
  if (sample.count == 0 || sample.smallest() >= window.grid() + Format<T>::precision - 1) return true;
  std::size_t outside = 0;
  Wide sum = 0;
  for_each_of_sample(x, n, [&](T element) {
    outside += exponent_of(element) != no_exponent && !window.add_other(sum, element);
  });
  return 2 * outside * cost_of_listed <= sample.count;
}

/// Sums exactly in windows.
template <class T> void sum_in_windows(HostRun& work, bool mean, const FormatInfo& format) {
  const Call& call = work.call;
  const auto* const x = static_cast<const T*>(call.x.data);
  const std::size_t n = call.keys.size * call.layout.inner, results = bins(call) * call.layout.inner;
  constexpr int margin = 6;  // the sample may have missed larger elements
  auto seen = SampledExponents::of(x, n);
  if (call.options.combine)
    with_format(format, [&]<class F>() { seen.add_sample(static_cast<const F*>(call.out.data), results); });
  const int term_bits = most_term_bits(call.keys.size + 1);
  const int grid = seen.count == 0 ? -63 : seen.largest() + margin - term_bits;
  if (const OneWindow<T> window{grid, term_bits}; fits_sample(window, seen, x, n))
    if (sum_in_table<T>(work, mean, format, window)) return;
  // A table of more windows than elements takes longer than sorting; that of rows, whose words are not
  // prefetched, if it does not fit in the cache.
  const auto is_small = [&](std::size_t words) {
    return results * words <= std::max(call.layout.inner == 1 ? n : n / 16, std::size_t{1} << 12);
  };
  const ManyWindows<T> many{seen.smallest() - 1, seen.largest() + margin, call.keys.size + 1};
  if (seen.count > 0 && is_small(many.words()))
    if (sum_in_table<T>(work, mean, format, many)) return;
  const auto all = ManyWindows<T>::of_all(call.keys.size + 1);
  if (is_small(all.words()) && sum_in_table<T>(work, mean, format, all)) return;
  work.first_bad_key = first_bad_key(call.keys, bins(call));
  if (work.first_bad_key != no_bad_key) return;
  // Results that are combined cannot be written anew.
  if (!call.options.combine && seen.count > 0 && sum_sorted(call, mean, format, many)) return;
  sum_sorted(call, mean, format, all);
}

/// Sums sorted rows exactly in words of 64 bits. Returns false if that is impossible; then all results must
/// be written anew.
template <class F> bool sum_rows_exactly(const Call& call, bool mean) {
  const auto* const out = static_cast<const F*>(call.out.data);
  const std::size_t inner = call.layout.inner, results = call.options.combine ? bins(call) * inner : 0;
  if (std::any_of(out, out + results, [](F held) { return special_flags_of(held) != 0; })) return false;
  const auto sorted = SortedRows::of(call, threads_of(call));
  if (!sorted) return false;
  const int largest = with_format(*call.x.format, [&]<class T>() {
    return SampledExponents::of(static_cast<const T*>(call.x.data), call.keys.size * inner).largest();
  });
  const int end = largest == no_exponent ? 0 : largest + 3;  // the sample may have missed larger elements
  return sum_sorted_rows<F>(call, *sorted, mean, {end - 62 + bits_for_terms(most_terms(call)), end, true});
}

template <class F> void sum_exactly(HostRun& work, ExactKind kind) {
  const Call& call = work.call;
  if (sum_rows_exactly<F>(call, kind.mean)) return;
  with_format(*call.x.format, [&]<class T>() { sum_in_windows<T>(work, kind.mean, format_info<F>()); });
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
