/// Sums on a CPU in one format: every order and accumulator, for every input.

#include "samesum/backend/cpu/canonical.hpp"
#include "samesum/backend/cpu/methods.hpp"
#include "samesum/backend/cpu/schedule.hpp"
#include "samesum/describe.hpp"

namespace samesum::cpu {
namespace {

using F = Formats::at<SAMESUM_SHARD>;

/// The bits of what a state ends as: +0 where nothing was added.
template <class A> std::uint64_t finish(const std::optional<A>& state) {
  return to_bits(state ? to_format<F>(state->result()) : F{});
}

template <class Order, template <class> class A, class T>
std::uint64_t sum(const void* data, std::size_t n, int threads) {
  if constexpr (requires { Order::Shape::rows; }) {
    const SumLeaves loop =
        kernels<SAMESUM_SHARD>()
            .sum_leaves[Orders::index_of<Order>()][Accumulators::index_of<A>()][Formats::index_of<T>()];
    const Input input{loop, static_cast<const std::byte*>(data), sizeof(T), n};
    if constexpr (std::is_same_v<Order, Atomic>)
      return finish(sum_atomic<typename Order::Shape, F>(input, threads));
    else
      return finish(sum_tree<typename Order::Shape, A<Scalar<F>>>(input, threads));
  } else {
    const auto at = [x = static_cast<const T*>(data)](std::size_t i) { return Scalar<F>::of(x[i]); };
    return finish(sum_canonical<Order::Shape::lanes, A<Scalar<F>>>(n, at));
  }
}

template <class T> std::uint64_t sum_exactly(const void* data, std::size_t n, int threads) {
  return to_bits(sum_exact(Values{std::span{static_cast<const T*>(data), n}}, threads).template result<F>());
}

/// Batches without loops of their own: vector by vector.
template <class T, Code::Sum sum> void sum_each(Call& call) {
  const Layout& l = call.layout;
  const auto sum_one = [&](std::size_t at, int threads) {
    const std::size_t n = l.length(at / l.inner);
    const T* x = n == 0 ? nullptr : static_cast<const T*>(call.x) + l.first(at / l.inner) + at % l.inner;
    std::vector<T> column;
    if (l.stride != 1) {
      for (std::size_t k = 0; k < n; ++k) column.push_back(x[k * l.stride]);
      x = column.data();
    }
    static_cast<F*>(call.out)[at] = from_bits<F>(static_cast<BitsOf<F>>(sum(x, n, threads)));
  };
  const std::size_t results = l.results();
  if (results == 1) return sum_one(0, call.options.threads);
  for_each_task(thread_count(call.options.threads, call.size, results), results,
                [&](std::size_t at) { sum_one(at, 1); });
}

}  // namespace

template <> std::vector<Entry> sums<SAMESUM_SHARD>() {
  std::vector<Entry> all;
  Orders::for_each([&]<class Order>() {
    Accumulators::for_each([&]<template <class> class A>() {
      if constexpr (refusal<Sum, Order, A, F>("cpu").empty()) {
        Entry e = describe<Sum, Order, A, F>("cpu");
        Formats::for_each([&]<class T>() {
          e.code.sum[Formats::index_of<T>()] = sum<Order, A, T>;
          if constexpr (!has_batches<Sum, Order, A, T, F>)
            e.code.run[Formats::index_of<T>()] = sum_each<T, sum<Order, A, T>>;
        });
        all.push_back(e);
      }
    });
  });
  Entry exact = describe_exact<Sum, F>("cpu");
  Formats::for_each([&]<class T>() { exact.code.sum[Formats::index_of<T>()] = sum_exactly<T>; });
  all.push_back(exact);
  return all;
}

}  // namespace samesum::cpu
