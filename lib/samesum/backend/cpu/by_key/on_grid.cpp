/// Sums by key on a grid on a CPU: in words, else in 128 bits.
#include <cmath>

#include "samesum/backend/cpu/by_key/words.hpp"
#include "samesum/backend/cpu/schedule/methods.hpp"
#include "samesum/catalogue/describe.hpp"
#include "samesum/window/anchor.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace samesum::cpu {
namespace {

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
      word += units_above(whole_anchor, units + whole_anchor);
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

/// Writes the results of all sums.
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
  const auto overflows = [&](const Word& word) {
    if constexpr (std::is_same_v<Word, GridSum>) return word.overflows(most_terms(call), grid_word_bits<F>);
    return false;  // one word holds all sums of so few units
  };
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
      // By value, since references would be read again for each result.
      return for_each_result(threads, words.size(), [out, unit, sums = words.data()](std::size_t at) {
        out[at] = static_cast<F>(sums[at]) * unit;
      });
    }
  const std::vector<std::int64_t> counts = mean ? counts_of(call) : std::vector<std::int64_t>{};
  std::atomic<bool> any_overflows = false;
  for_each_result(threads, words.size(), [&](std::size_t at) {
    if (call.options.combine && marks.is_empty(at)) return;
    const GridSum sum = sum_of(words[at]);
    const bool is_too_large = overflows(words[at]);
    if (is_too_large) any_overflows.store(true, relaxed);
    const auto n = static_cast<std::uint64_t>(mean ? counts[at / call.layout.inner] : 1);
    out[at] = from_bits<F>(n == 0 || is_too_large ? Format<F>::canonical_nan
                           : call.options.combine ? sum.template result_with<F>(grid, out[at])
                                                  : sum.template result<F>(grid, n));
  });
  work.overflowed = any_overflows;
}

/// Sums on a grid in words. Returns false, with nothing written, if an element is as large as 2^`end` or has
/// too many units.
template <class T, class F> bool sum_in_words(HostRun& work, bool mean, int grid, int end) {
  const Call& call = work.call;
  if (std::abs(grid) >= 1000) return false;  // 2^-grid must be a normal double
  const int term_bits = 62 - bits_for_terms(most_terms(call)), most = std::min(end, grid + term_bits);
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
  const std::size_t n = most_terms(call), elements = call.keys.size * call.layout.inner;
  const int threads = threads_of(call);
  const auto grid_of = [n](int largest) {
    return found_grid(largest, n, grid_word_bits<F>, Format<T>::min_quantum);
  };
  int grid = call.options.grid.value_or(0);
  const auto sorted = SortedRows::of(call, threads);
  const auto sum = [&](int g, int end) {
    return sorted ? sum_sorted_rows<F>(call, *sorted, mean, {g, end, false})
                  : sum_in_words<T, F>(work, mean, g, end);
  };
  if (!call.options.grid) {
    // The largest element of a part nearly always has the exponent of the largest of all. The pass that adds
    // compares each element with it.
    const int guess =
        std::max(largest_exponent(x, elements / 16, threads), SampledExponents::of(x, elements).largest());
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

std::vector<Entry> on_grid_by_key() {
  std::vector<Entry> all;
  Formats::for_each([&]<class F>() {
    for_each_order_free<true>([&]<class Operation, class Accumulator>() {
      if constexpr (Accumulator::takes_grid) {
        Entry e = describe_order_free<Operation, Accumulator, F>("cpu");
        Formats::for_each([&]<class T>() {
          e.code.host.any[Formats::index_of<T>()] = [](HostRun& work) {
            sum_on_grid<T, F>(work, exact_kind<Operation>.mean);
          };
        });
        all.push_back(e);
      }
    });
  });
  return all;
}

}  // namespace samesum::cpu
