/// A recipe: what is computed, before it is said where. The facts of a variant follow from its types.
#pragma once

#include <cmath>
#include <optional>

#include "samesum/accumulator/accumulators.hpp"
#include "samesum/accumulator/exact.hpp"
#include "samesum/order/orders.hpp"
#include "samesum/variant.hpp"

namespace samesum {

/// Where a recipe can run.
inline constexpr std::array<std::string_view, 3> backends{"reference", "cpu", "cuda"};

/// Why a backend does not have a combination; empty where it does.
template <class Order, template <class> class A>
constexpr std::string_view refusal(std::string_view backend) {
  if (Order::promise == Promise::none && !std::is_same_v<A<Scalar<fp64>>, Plain<Scalar<fp64>>>)
    return "an atomic cell holds one number, and this accumulator's state has two";
  if (Order::promise < Promise::everywhere && backend == "reference")
    return "arrival order has no literal reading";
  if (std::is_same_v<Order, AtomicElement> && backend == "cpu")
    return "one atomic addition an element is a worst case that takes a GPU's many threads";
  return {};
}

/// "tree/kahan/bf16"
inline std::string recipe_name(std::string_view order, std::string_view accumulator,
                               std::string_view format) {
  std::string name{order};
  if (!name.empty()) name += '/';
  return name.append(accumulator).append("/").append(format);
}

/// What `Variant` says of this recipe; the backend adds what runs.
template <class Order, template <class> class A, class F> Variant describe(std::string_view backend) {
  using State = A<Scalar<F>>;
  static_assert(Accumulator<State, Scalar<F>>);
  Variant v{};
  v.name = recipe_name(Order::name, State::name, Format<F>::name).append("@").append(backend);
  v.order = Order::name;
  v.accumulator = State::name;
  v.format = &format_info<F>();
  v.backend = backend;
  v.promise = Order::promise;
  v.state_bytes = sizeof(State) / sizeof(CarrierOf<F>) * sizeof(F);
  v.operations_per_element = State::operations_per_element;
  v.height_formula = Order::height_formula();
  v.height = Order::height;
  v.accumulator_bound = State::bound;
  v.accumulator_probable_bound = State::probable_bound;
  return v;
}

template <class F> Variant describe_exact(std::string_view backend) {
  Variant v{};
  v.name = recipe_name({}, Exact::name, Format<F>::name).append("@").append(backend);
  v.accumulator = Exact::name;
  v.format = &format_info<F>();
  v.backend = backend;
  v.promise = Promise::order_free;
  v.state_bytes = sizeof(Exact);
  v.operations_per_element = 3;
  v.height_formula = "0";
  v.height = [](std::size_t) { return Height{}; };
  v.accumulator_bound = nullptr;  // correctly rounded: Variant::bound knows
  return v;
}

/// Variant::probable_bound before the sum is known, with a result that is at least its magnitude: what the
/// accumulator proves. Infinite where it proves nothing.
double prior_bound(const Variant& variant, const FormatInfo& input, std::size_t n, double magnitudes,
                   Number result, double probability);

/// visit.operator()<Order, A>() for every pair, those that a backend refuses included.
template <class Visit> constexpr void for_each_order_and_accumulator(Visit&& visit) {
  Orders::for_each([&]<class Order>() {
    Accumulators::for_each([&]<template <class> class A>() { visit.template operator()<Order, A>(); });
  });
}

/// One backend's variants in the format at place `shard` of the list, each with what runs it. A backend
/// specialises it, one translation unit a shard.
namespace reference {
template <std::size_t shard> std::vector<Variant> table();
}
namespace cpu {
template <std::size_t shard> std::vector<Variant> table();
}
namespace gpu {  // not cuda, which would hide ::cuda
template <std::size_t shard> std::vector<Variant> table();
/// Why its tables are empty in this process; empty where they are not.
const std::string& absence();
}  // namespace gpu

/// The bits of what a state ends as: +0 where nothing was added.
template <class F, class A> std::uint64_t finish(const std::optional<A>& state) {
  return to_bits(state ? to_format<F>(state->result()) : F{});
}

}  // namespace samesum
