/// Reductions on a CPU in one format. The common reducers use the vector loops of kernels.hpp, the others
/// plain loops over lanes.
#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/backend/cpu/schedule/batch.hpp"
#include "samesum/backend/cpu/schedule/methods.hpp"
#include "samesum/catalogue/describe.hpp"

namespace samesum::cpu {
namespace {

using F = Formats::at<SAMESUM_FORMAT_INDEX>;
using Carrier = CarrierOf<F>;

const Kernels& loops() { return kernels(SAMESUM_FORMAT_INDEX); }
constexpr std::size_t of_carrier = Formats::index_of<Carrier>();

/// Reduces leaf by leaf; first rounds the elements of a leaf to the format, into the first-level cache.
template <class Shape, class Reducer>
ReduceLeaves<typename Reducer::State> leaves_of(const Reducer& reducer, std::size_t input) {
  return [reducer, write = loops().write_terms[input], bytes = formats[input].bytes](
             const void* x, const void*, std::uint64_t index, std::size_t n, typename Reducer::State* out) {
    Carrier rounded[Shape::leaf];
    const auto* from = static_cast<const std::byte*>(x);
    for (std::size_t begin = 0; begin < n; begin += Shape::leaf) {
      const std::size_t mine = std::min(n - begin, Shape::leaf);
      write(Term::element, from + begin * bytes, nullptr, mine, rounded, nullptr);
      *out++ = reduce_leaf<Shape>(reducer, mine, [&](std::size_t i) {
        return InputElement<F>{{rounded[i]}, Scalar<F>::zero(), index + begin, static_cast<std::uint32_t>(i)};
      });
    }
  };
}

/// Sums of terms: writes the terms of a leaf, then sums them with the loops for elements.
template <class Order, template <class> class A>
ReduceLeaves<typename TermReducer<A, F>::State> leaves_of_sum(const TermReducer<A, F>& reducer,
                                                              const SumLeaves (*sum)[Formats::size],
                                                              std::size_t input) {
  using State = typename TermReducer<A, F>::State;
  using Shape = typename Order::Shape;
  const SumLeaves sum_elements = sum[Accumulators::index_of<A>()][input];
  if (reducer.term == Term::element)
    return [sum_elements](const void* x, const void*, std::uint64_t, std::size_t n, State* out) {
      A<Scalar<F>> sums[group];
      sum_elements(x, n, sums);
      for (std::size_t k = 0; k < Shape::leaves(n); ++k) out[k].sum = sums[k];
    };
  return [term = reducer.term, write = loops().write_terms[input], sum_terms = loops().sum_terms[input],
          bytes = formats[input].bytes, sum_high = sum[Accumulators::index_of<A>()][of_carrier],
          sum_low = sum[Accumulators::index_of<Plain>()][of_carrier]](
             const void* x, const void* y, std::uint64_t, std::size_t n, State* out) {
    Carrier high[Shape::leaf], low[State::two_words ? Shape::leaf : 1];
    const auto *of_x = static_cast<const std::byte*>(x), *of_y = static_cast<const std::byte*>(y);
    std::size_t begin = 0;
    if constexpr (!State::two_words && std::is_same_v<Order, CoarsenedTree>) {
      static_assert(sizeof(State) == sizeof(Plain<Scalar<F>>));
      begin = sum_terms(term, x, y, n, out);
      out += begin / Shape::leaf;
    }
    for (; begin < n; begin += Shape::leaf, ++out) {
      const std::size_t mine = std::min(n - begin, Shape::leaf), at = begin * bytes;
      write(term, of_x + at, of_y ? of_y + at : nullptr, mine, high, State::two_words ? low : nullptr);
      sum_high(high, mine, &out->sum);
      if constexpr (State::two_words) sum_low(low, mine, &out->low);
    }
  };
}

/// Sums of terms of columns.
template <class Order, template <class> class A>
ReduceColumns<typename TermReducer<A, F>::State> columns_of(const TermReducer<A, F>& reducer,
                                                            std::size_t input) {
  using State = typename TermReducer<A, F>::State;
  return {
      [term = reducer.term,
       sum = loops().sum_columns[Orders::index_of<Order>()][Accumulators::index_of<A>()][input]](
          const ColumnLeaf& leaf, void* scratch, State* out) { sum(term, leaf, scratch, out); },
      [](const ColumnLeaf& leaf) { return leaf.scratch_states<typename Order::Shape>() * sizeof(State); }};
}

/// Sums of squares. Nearly always all squares are middling (scaled_squares.hpp).
template <class Order> ReduceLeaves<ScaledSquares<F>> leaves_of_squares(SumLeaves sum, std::size_t input) {
  using Shape = typename Order::Shape;
  return [sum, write = loops().write_squares[input], sum_middling = loops().sum_middling[input],
          bytes = formats[input].bytes](const void* x, const void*, std::uint64_t, std::size_t n,
                                        ScaledSquares<F>* out) {
    Carrier middling[Shape::leaf], big[Shape::leaf], small[Shape::leaf];
    const auto* from = static_cast<const std::byte*>(x);
    std::size_t begin = 0;
    if constexpr (std::is_same_v<Order, CoarsenedTree>) {
      Plain<typename ScaledSquares<F>::V> sums[group];
      begin = sum_middling(x, n, sums);
      for (std::size_t k = 0; k < begin / Shape::leaf; ++k) {
        *out = {};
        out++->middling = sums[k].sum;
      }
    }
    for (; begin < n; begin += Shape::leaf, ++out) {
      const std::size_t mine = std::min(n - begin, Shape::leaf);
      *out = {};
      if (write(from + begin * bytes, mine, middling, big, small)) {
        sum(big, mine, &out->big);
        sum(small, mine, &out->small);
      }
      sum(middling, mine, &out->middling);
    }
  };
}

/// The moments of leaves, and of rows of at most one leaf.
Moments<F> moments_of_leaf(LeafMoments moments, const void* x, std::size_t n) {
  Moments<F> leaf;
  moments(x, n, &leaf.mean, &leaf.variance);
  leaf.count = n;
  return leaf;
}
template <class Shape> ReduceLeaves<Moments<F>> leaves_of_moments(std::size_t input) {
  return [moments = loops().leaf_moments[input], bytes = formats[input].bytes](
             const void* x, const void*, std::uint64_t, std::size_t n, Moments<F>* out) {
    for (std::size_t begin = 0; begin < n; begin += Shape::leaf)
      *out++ = moments_of_leaf(moments, static_cast<const std::byte*>(x) + begin * bytes,
                               std::min(n - begin, Shape::leaf));
  };
}
ReduceRows<Moments<F>> rows_of_moments(std::size_t input) {
  return [moments = loops().row_moments[input], bytes = formats[input].bytes](
             const void* x, std::size_t pitch, std::size_t n, std::size_t count, Moments<F>* out) {
    constexpr std::size_t most = 64;
    Scalar<F> mean[most], variance[most];
    for (std::size_t first = 0; first < count; first += most) {
      const std::size_t mine = std::min(count - first, most);
      moments(static_cast<const std::byte*>(x) + first * pitch * bytes, pitch, n, mine, mean, variance);
      for (std::size_t k = 0; k < mine; ++k) out[first + k] = {mean[k], variance[k], n};
    }
  };
}

/// Products: packs of lanes for leaves of ordinary numbers.
template <class Shape>
ReduceLeaves<Product<F>> leaves_of_products(const ProductReducer<F>& reducer, std::size_t input) {
  return [leaves = leaves_of<Shape>(reducer, input)](const void* x, const void*, std::uint64_t index,
                                                     std::size_t n, Product<F>* out) {
    const auto* from = static_cast<const F*>(x);
    for (std::size_t begin = 0; begin < n; begin += Shape::leaf, ++out) {
      Carrier numbers[2];
      std::int64_t exponent;
      const std::size_t mine = std::min(n - begin, Shape::leaf);
      if (loops().leaf_product(from + begin, mine, numbers, exponent)) {
        *out = Product<F>::of({numbers[0]}, exponent);
        out->merge(Product<F>::of({numbers[1]}, 0));
      } else {
        leaves(from + begin, nullptr, index + begin, mine, out);
      }
    }
  };
}

/// Products of columns: packs of columns, unless one has other numbers.
template <class Shape> ReduceColumns<Product<F>> columns_of_products(const ProductReducer<F>& reducer) {
  return {[reducer](const ColumnLeaf& leaf, void* scratch, Product<F>* out) {
            ColumnProduct columns[ColumnLeaf::most];
            loops().leaf_products(leaf, scratch, columns);
            for (std::size_t c = 0; c < leaf.count; ++c)
              if (columns[c].is_valid) {
                const auto number = [&](int i) {
                  return Scalar<F>{static_cast<Carrier>(columns[c].number[i])};
                };
                out[c] = Product<F>::of(number(0), columns[c].exponent);
                out[c].merge(Product<F>::of(number(1), 0));
              } else {
                const F* const x = static_cast<const F*>(leaf.x) + c;
                out[c] = reduce_leaf<Shape>(reducer, leaf.n, [&](std::size_t i) {
                  return InputElement<F>{Scalar<F>::of(x[i * leaf.pitch]), Scalar<F>::zero(), 0,
                                         static_cast<std::uint32_t>(i)};
                });
              }
          },
          [](const ColumnLeaf& leaf) {
            return (leaf.count + ColumnLeaf::least - 1) / ColumnLeaf::least * ColumnLeaf::least *
                   std::min(leaf.n, Shape::lanes) * sizeof(F);
          }};
}

/// Extrema: all leaves share one state. The index is searched only in leaves whose extremum beats the current
/// one.
template <class Shape, class Reducer>
ReduceLeaves<typename Reducer::State> leaves_of_extremum(const Reducer& reducer, std::size_t input,
                                                         bool skip_nan) {
  using State = typename Reducer::State;
  return [skip_nan, smallest = reducer.smallest, largest = loops().largest_key[input],
          find = loops().find_key[input], bytes = formats[input].bytes](
             const void* x, const void*, std::uint64_t index, std::size_t n, State* out) {
    constexpr bool is_index = requires(State s) { s.base; };
    const auto* from = static_cast<const std::byte*>(x);
    std::fill_n(out, Shape::leaves(n), State{});
    for (std::size_t begin = 0; begin < n; begin += Shape::leaf) {
      const std::size_t mine = std::min(n - begin, Shape::leaf);
      const auto key = static_cast<typename State::Key>(
          largest(from + begin * bytes, mine, {smallest, is_index, skip_nan}));
      if (key <= out->key) continue;
      out->key = key;
      if constexpr (is_index) out->base = index + begin + find(from + begin * bytes, mine, smallest, key);
    }
  };
}

/// Extrema of rows of at most one leaf.
template <class Reducer>
ReduceRows<typename Reducer::State> rows_of_extremum(const Reducer& reducer, std::size_t input,
                                                     bool skip_nan) {
  using State = typename Reducer::State;
  return [skip_nan, smallest = reducer.smallest, largest = loops().largest_key[input],
          find = loops().find_key[input], bytes = formats[input].bytes](
             const void* x, std::size_t pitch, std::size_t n, std::size_t count, State* out) {
    constexpr bool is_index = requires(State s) { s.base; };
    for (std::size_t k = 0; k < count; ++k) {
      const std::byte* const row = static_cast<const std::byte*>(x) + k * pitch * bytes;
      out[k] = {static_cast<typename State::Key>(largest(row, n, {smallest, is_index, skip_nan}))};
      if constexpr (is_index)
        if (out[k].key != 0) out[k].base = find(row, n, smallest, out[k].key);
    }
  };
}

/// Extrema of columns.
template <class Reducer>
ReduceColumns<typename Reducer::State> columns_of_extremum(const Reducer& reducer, std::size_t input,
                                                           bool skip_nan) {
  using State = typename Reducer::State;
  return {[order = KeyOrder{reducer.smallest, false, skip_nan}, largest = loops().largest_keys[input]](
              const ColumnLeaf& leaf, void*, State* out) {
            std::uint64_t keys[ColumnLeaf::most];
            largest(leaf, order, keys);
            for (std::size_t c = 0; c < leaf.count; ++c) out[c] = {static_cast<typename State::Key>(keys[c])};
          },
          [](const ColumnLeaf&) { return std::size_t{0}; }};
}

/// Recomputes, one after another, the results that the second reducer replaces.
template <class Shape, class Reducer>
void reduce_again(const Reducer& reducer, const Batch& batch, std::size_t input, void* out) {
  const Layout& l = batch.layout;
  const auto leaves = leaves_of<Shape>(reducer, input);
  for (std::size_t at = 0; at < l.results(); ++at) {
    if (!reducer.must_replace(at, out)) continue;
    const std::size_t o = at / l.inner, place = l.length(o) == 0 ? 0 : l.first(o) + at % l.inner;
    const Layout one{1, l.length(o), 1, 0, l.stride};
    reduce_batch<Shape>(reducer, {batch.x + place * batch.bytes, nullptr, batch.bytes, one, batch.threads},
                        {leaves, {}, {}}, {static_cast<F*>(out) + at});
  }
}

/// Runs a reducer on a call. Not inlined, so that all element formats share one copy of the code.
template <class Order, class Reducer>
[[gnu::noinline]] void run_reducer(const Reducer& reducer, const HostRun& work, std::size_t input) {
  const Call& call = work.call;
  using Shape = typename Order::Shape;
  // For one element per lane both orders are the same tree, and `tree` has more vector loops.
  if constexpr (std::is_same_v<Order, Pairwise>)
    if (!call.layout.offsets && call.layout.n <= Shape::lanes)
      return run_reducer<CoarsenedTree>(reducer, work, input);
  const Batch batch{static_cast<const std::byte*>(call.x.data), static_cast<const std::byte*>(call.y.data),
                    formats[input].bytes, call.layout, call.options.threads};
  constexpr std::size_t order = Orders::index_of<Order>();
  using State = typename Reducer::State;
  BatchLoops<State> all;
  all.leaves = [&]() -> ReduceLeaves<State> {
    if constexpr (requires { reducer.term; })
      return leaves_of_sum<Order>(reducer, loops().sum_leaves[order], input);
    else if constexpr (std::is_same_v<Reducer, NormReducer<F>>)
      return leaves_of_squares<Order>(loops().sum_squares[order], input);
    else if constexpr (std::is_same_v<Reducer, MomentsReducer<F>>)
      return leaves_of_moments<Shape>(input);
    else if constexpr (std::is_same_v<Reducer, ProductReducer<F>> && std::is_same_v<F, Carrier> &&
                       std::is_same_v<Order, CoarsenedTree>)
      return input == Formats::index_of<F>() ? leaves_of_products<Shape>(reducer, input)
                                             : leaves_of<Shape>(reducer, input);
    else if constexpr (std::is_same_v<Reducer, LogSumExpReducer<F>> && std::is_same_v<Order, CoarsenedTree>)
      return
          [leaves = with_format(formats[input], []<class T>() {
             return std::get<SoftmaxLoops<F>>(kernels(Formats::index_of<T>()).softmax).online_leaves;
           })](const void* x, const void*, std::uint64_t, std::size_t n, State* out) { leaves(x, n, out); };
    else if constexpr (requires { reducer.smallest; })
      return leaves_of_extremum<Shape>(reducer, input, call.options.skip_nan);
    else
      return leaves_of<Shape>(reducer, input);
  }();
  if constexpr (std::is_same_v<Reducer, TermReducer<Plain, F>> && std::is_same_v<Order, CoarsenedTree>)
    if (reducer.term == Term::element) all.rows = loops().sum_rows[input];
  if constexpr (std::is_same_v<Reducer, MomentsReducer<F>>) all.rows = rows_of_moments(input);
  if constexpr (std::is_same_v<Reducer, ProductReducer<F>> && std::is_same_v<F, Carrier> &&
                std::is_same_v<Order, CoarsenedTree>)
    if (input == Formats::index_of<F>()) all.columns = columns_of_products<Shape>(reducer);
  if constexpr (requires { reducer.smallest; }) {
    all.rows = rows_of_extremum(reducer, input, call.options.skip_nan);
    if constexpr (std::is_same_v<State, Extremum<F>>)
      all.columns = columns_of_extremum(reducer, input, call.options.skip_nan);
  }
  if constexpr (requires { reducer.term; }) all.columns = columns_of<Order>(reducer, input);
  reduce_batch<Shape>(reducer, batch, all, {call.out.data, work.as_state});
  if constexpr (requires { reducer.replacement(); }) {
    if (!reducer.mean) return;
    const auto replacement = reducer.replacement();
    if (work.as_state)
      reduce_batch<Shape>(
          replacement, batch, {leaves_of<Shape>(replacement, input), {}, {}},
          {&static_cast<typename WithReplacement<Reducer>::State*>(call.out.data)->replacing, true});
    else
      reduce_again<Shape>(replacement, batch, input, call.out.data);
  }
}

}  // namespace

template <> std::vector<Entry> reductions<SAMESUM_FORMAT_INDEX>() {
  std::vector<Entry> all;
  for_each_method<F, "cpu">([&]<class Operation, class Order, template <class> class A>() {
    if constexpr (!is_scanned<Operation, Order>) {
      static constexpr Entry entry = [] {
        Entry e = describe<Operation, Order, A, F>("cpu");
        Formats::for_each([&]<class T>() {
          if constexpr (has_batches<Operation, Order, A, T, F>)
            e.code.host.any[Formats::index_of<T>()] = [](HostRun& work) {
              run_reducer<Order>(Operation::template reducer<A, F>({work.call.options.ddof}), work,
                                 Formats::index_of<T>());
            };
        });
        return e;
      }();
      append(all, entry);
    }
  });
  for_each_order_free([&]<class Operation, class Accumulator>() {
    if constexpr (!is_scan<Operation>) {
      static constexpr Entry entry = [] {
        Entry e = describe_order_free<Operation, Accumulator, F>("cpu");
        e.code.host.any.fill([](HostRun& work) {
          constexpr ExactKind kind = exact_kind<Operation>;
          Accumulator::takes_grid ? reduce_on_grid(kind, work) : reduce_exactly(kind, work);
        });
        return e;
      }();
      append(all, entry);
    }
  });
  return all;
}

}  // namespace samesum::cpu
