/// Counts, plain sums and extrema by key on a CPU; and the list of all methods by key.
#include "samesum/backend/cpu/by_key/elements.hpp"
#include "samesum/backend/cpu/by_key/sorted_rows.hpp"
#include "samesum/backend/cpu/schedule/methods.hpp"
#include "samesum/catalogue/describe.hpp"
#include "samesum/catalogue/join.hpp"

namespace samesum::cpu {
namespace {

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

/// Combines the marks of the elements of each result (see Mark).
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

void count(HostRun& work) {
  const Call& call = work.call;
  auto* out = static_cast<std::int64_t*>(call.out.data);
  const Table<std::int64_t> table = add_by_key(Counter{}, {call.keys, bins(call), 1}, threads_of(call));
  if (!is_complete(table, work)) return;
  for (std::size_t at = 0; at < bins(call); ++at)
    out[at] = call.options.combine ? out[at] + table.words[at] : table.words[at];
}

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
    // A sum is -0 only if all elements are -0. A NaN does not tell whether anything was added to it.
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

}  // namespace

std::vector<std::int64_t> counts_of(const Call& call) {
  return add_by_key(Counter{}, {call.keys, bins(call), 1}, threads_of(call)).words;
}
std::vector<std::uint8_t> marks_of(const Call& call) {
  return with_format(*call.x.format, [&]<class T>() {
    return add_by_key(Marker<T>{call}, rows_of(call), threads_of(call)).words;
  });
}

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
  });
  return joined(joined(std::move(all), exact_by_key()), on_grid_by_key());
}

}  // namespace samesum::cpu
