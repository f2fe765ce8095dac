/// The CPU backend in one format: every recipe, for every input.
#include "samesum/backend/cpu/exact.hpp"
#include "samesum/backend/cpu/schedule.hpp"
#include "samesum/recipe.hpp"

namespace samesum::cpu {
namespace {

template <std::size_t order, std::size_t accumulator, class Order, template <class> class A, class F, class T>
std::uint64_t run(const void* data, std::size_t n, int threads) {
  const SumLeaves loop = kernels<SAMESUM_SHARD>().sum_leaves[order][accumulator][Formats::index_of<T>()];
  const Input input{loop, static_cast<const std::byte*>(data), sizeof(T), n};
  if constexpr (std::is_same_v<Order, Atomic>)
    return finish<F>(sum_atomic<typename Order::Shape, F>(input, threads));
  else
    return finish<F>(sum_tree<typename Order::Shape, A<Scalar<F>>>(input, threads));
}

}  // namespace

template <> std::vector<Variant> table<SAMESUM_SHARD>() {
  using F = Formats::at<SAMESUM_SHARD>;
  std::vector<Variant> variants;
  for_each_order_and_accumulator([&]<class Order, template <class> class A>() {
    if constexpr (refusal<Order, A>("cpu").empty()) {
      Variant v = describe<Order, A, F>("cpu");
      Formats::for_each([&]<class T>() {
        v.run[Formats::index_of<T>()] =
            run<Orders::index_of<Order>(), Accumulators::index_of<A>(), Order, A, F, T>;
      });
      variants.push_back(v);
    }
  });
  Variant exact = describe_exact<F>("cpu");
  Formats::for_each([&]<class T>() {
    exact.run[Formats::index_of<T>()] = [](const void* data, std::size_t n, int threads) -> std::uint64_t {
      return to_bits(
          sum_exact(Values{std::span{static_cast<const T*>(data), n}}, threads).template result<F>());
    };
  });
  variants.push_back(exact);
  return variants;
}

}  // namespace samesum::cpu
