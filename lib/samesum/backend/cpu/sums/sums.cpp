/// Sums on a CPU in one format: every order and accumulator, for every format of elements.

#include "samesum/backend/cpu/exact/exact_sums.hpp"
#include "samesum/backend/cpu/schedule/methods.hpp"
#include "samesum/backend/cpu/schedule/schedule.hpp"
#include "samesum/backend/cpu/sums/canonical.hpp"
#include "samesum/catalogue/describe.hpp"

namespace samesum::cpu {
namespace {

using F = Formats::at<SAMESUM_FORMAT_INDEX>;

/// The bits of the result of a state; +0 if nothing was added.
template <class A> std::uint64_t finish(const std::optional<A>& state) {
  return to_bits(state ? to_format<F>(state->result()) : F{});
}

template <class Order, template <class> class A, class T> SumLeaves loop() {
  return kernels(SAMESUM_FORMAT_INDEX)
      .sum_leaves[Orders::index_of<Order>()][Accumulators::index_of<A>()][Formats::index_of<T>()];
}

/// Sums leaves of a format without a loop: rounds each leaf to F first.
template <class Order, template <class> class A, class T>
void sum_rounded(const void* data, std::size_t n, void* states) {
  using Carrier = CarrierOf<F>;
  constexpr std::size_t leaf = Order::Shape::leaf;
  const auto* x = static_cast<const T*>(data);
  auto* state = static_cast<A<Scalar<F>>*>(states);
  Carrier rounded[leaf];
  const WriteTerms write = kernels(SAMESUM_FORMAT_INDEX).write_terms[Formats::index_of<T>()];
  const SumLeaves sum = loop<Order, A, Carrier>();
  for (std::size_t begin = 0; begin < n; begin += leaf) {
    const std::size_t mine = std::min(n - begin, leaf);
    write(Term::element, x + begin, nullptr, mine, rounded, nullptr);
    sum(rounded, mine, state++);
  }
}

/// The bits of a sum by leaves. Not inlined, so that all element formats share one copy of the code.
template <class Order, template <class> class A>
[[gnu::noinline]] std::uint64_t sum_by_leaves(const Input& input, int threads) {
  if constexpr (std::is_same_v<Order, Atomic>)
    return finish(sum_atomic<typename Order::Shape, F>(input, threads));
  else
    return finish(sum_tree<typename Order::Shape, A<Scalar<F>>>(input, threads));
}

/// The elements of a vector, and the loop that sums their leaves.
template <class Order, template <class> class A, class T> Input input_of(const void* data, std::size_t n) {
  Input input{nullptr, static_cast<const std::byte*>(data), sizeof(T), n};
  if constexpr (has_loop<Order, T, F>)
    input.sum_leaves = loop<Order, A, T>();
  else
    input.sum_leaves = sum_rounded<Order, A, T>;
  return input;
}

/// The elements of a vector, rounded to F one by one.
template <class T> auto elements(const void* data) {
  return [x = static_cast<const T*>(data)](std::size_t i) { return Scalar<F>::of(x[i]); };
}

template <class Order, template <class> class A, class T>
std::uint64_t sum(const void* data, std::size_t n, int threads) {
  if constexpr (has_leaves<Order>) {
    return sum_by_leaves<Order, A>(input_of<Order, A, T>(data, n), threads);
  } else {
    return finish(sum_canonical<Order::Shape::lanes, A<Scalar<F>>>(n, elements<T>(data)));
  }
}

/// Writes the state of the call's vector: of one result, or of the lanes of rows in a canonical order.
template <class Order, template <class> class A, class T> void write_state(const Call& call) {
  using Sum = A<Scalar<F>>;
  auto* out = static_cast<typename TermReducer<A, F>::State*>(call.out.data);
  const std::size_t n = call.layout.n;
  if constexpr (has_leaves<Order>) {
    *out = {
        *sum_tree<typename Order::Shape, Sum>(input_of<Order, A, T>(call.x.data, n), call.options.threads)};
  } else {
    constexpr std::size_t lanes = Order::Shape::lanes;
    const auto at = elements<T>(call.x.data);
    const auto row = CanonicalRows<lanes, Sum, decltype(at)>{n, at}.sum(0, (n - 1) / lanes + 1);
    for (const Sum& lane : row) *out++ = {lane};
  }
}

template <class T> std::uint64_t sum_exactly(const void* data, std::size_t n, int threads) {
  constexpr std::size_t most_as_row = 4096;  // longer vectors are faster in words that are carried along
  if (n == 0) return 0;
  if (n <= most_as_row) {
    const Kernels& loops = kernels(Formats::index_of<T>());
    const ExactResults row{data, data, Term::element, 1, n, n};
    F result;
    if constexpr (std::is_same_v<F, T> && std::is_same_v<T, CarrierOf<T>>)
      if (loops.round_rows(row, false, &result) == 0) return to_bits(result);
    ExactSums sums;
    loops.sum_rows_exactly[static_cast<std::size_t>(ExactlySummed::elements)](row, &sums);
    if (round_sum(sums, n, false, result)) return to_bits(result);
  }
  const Values all{std::span{static_cast<const T*>(data), n}};
  constexpr bool nearly = suffice_nearly<T, F>;
  if (F result; n > most_as_row && spans_many(static_cast<const T*>(data), n, nearly) &&
                round_sum(sum_in_bounds(all, nearly, threads), n, false, result))
    return to_bits(result);
  return to_bits(sum_exact(all, threads).template result<F>());
}

/// Computes a batch vector by vector, for methods without a loop for batches.
template <class T> [[gnu::noinline]] void sum_each(Code::Sum sum, const Call& call) {
  const Layout& l = call.layout;
  const auto sum_one = [&](std::size_t at, int threads) {
    const std::size_t n = l.length(at / l.inner);
    const T* x = n == 0 ? nullptr : static_cast<const T*>(call.x.data) + l.first(at / l.inner) + at % l.inner;
    std::vector<T> column;
    if (l.stride != 1) {
      column.reserve(n);
      for (std::size_t k = 0; k < n; ++k) column.push_back(x[k * l.stride]);
      x = column.data();
    }
    static_cast<F*>(call.out.data)[at] = from_bits<F>(static_cast<BitsOf<F>>(sum(x, n, threads)));
  };
  const std::size_t results = l.results();
  if (results == 1) return sum_one(0, call.options.threads);
  for_each_task(thread_count(call.options.threads, call.x.size, results), results,
                [&](std::size_t at) { sum_one(at, 1); });
}

/// The bits of a sum by the model of matrix units. The tiles are summed in any order.
template <class T> std::uint64_t sum_by_hopper(const void* data, std::size_t n, int threads) {
  const std::span x{static_cast<const T*>(data), n};
  std::vector<float> tiles(hopper::parts_of(n, hopper::of_tile));
  for_each_task(thread_count(threads, n, tiles.size()), tiles.size(),
                [&](std::size_t k) { tiles[k] = hopper::tile_sum_by_unit(hopper::tile_of(x, k)); });
  return to_bits(hopper::add_tiles(std::move(tiles)));
}

Entry hopper_sum() {
  Entry e = describe_hopper("cpu");
  Formats::for_each([&]<class T>() {
    if constexpr (hopper::UnitInput<T>::exists) {
      e.code.sum[Formats::index_of<T>()] = sum_by_hopper<T>;
      e.code.host.any[Formats::index_of<T>()] = [](HostRun& work) {
        sum_each<T>(sum_by_hopper<T>, work.call);
      };
    }
  });
  return e;
}

}  // namespace

template <> std::vector<Entry> sums<SAMESUM_FORMAT_INDEX>() {
  std::vector<Entry> all;
  Orders::for_each([&]<class Order>() {
    Accumulators::for_each([&]<template <class> class A>() {
      if constexpr (!is_scanned<Sum, Order> && is_method<Sum, Order, F>(is_plain<A>, "cpu")) {
        static constexpr Entry entry = [] {
          Entry e = describe<Sum, Order, A, F>("cpu");
          Formats::for_each([&]<class T>() {
            e.code.sum[Formats::index_of<T>()] = sum<Order, A, T>;
            if constexpr (!has_batches<Sum, Order, A, T, F>)
              e.code.host.any[Formats::index_of<T>()] = [](HostRun& work) {
                work.as_state ? write_state<Order, A, T>(work.call)
                              : sum_each<T>(sum<Order, A, T>, work.call);
              };
          });
          return e;
        }();
        append(all, entry);
      }
    });
  });
  Entry exact = describe_order_free<Sum, Exactly, F>("cpu");
  Formats::for_each([&]<class T>() { exact.code.sum[Formats::index_of<T>()] = sum_exactly<T>; });
  append(all, exact);
  if constexpr (std::is_same_v<F, fp32>) append(all, hopper_sum());
  return all;
}

}  // namespace samesum::cpu
