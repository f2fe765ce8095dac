/// Describes methods by their types. A backend adds the functions that run them.
#pragma once

#include "samesum/catalogue/backend.hpp"
#include "samesum/catalogue/support.hpp"
#include "samesum/operation/softmax.hpp"

namespace samesum {

/// Joins the fields of a name, such as "sum/tree/kahan/bf16@cpu". Empty fields are left out.
std::string full_name(std::string_view operation, std::string_view order, std::string_view accumulator,
                      std::string_view format, std::string_view backend);

/// Appends the description of a method. Out of line, so that a list of methods is data and not code.
void append(std::vector<Entry>& all, const Entry& entry);

/// Describes what all methods of an operation have in common.
template <class Operation, class F> constexpr Entry describe_operation(std::string_view backend) {
  Entry e;
  e.facts.operation = &Operation::facts;
  e.facts.format = &format_info<F>();
  e.facts.backend = backend;
  e.facts.height_formula = [] { return std::string{"0"}; };
  e.code.height = [](std::size_t) { return Height{}; };
  if constexpr (Operation::has_accumulator) e.code.adds = exact_kind<Operation>;
  return e;
}

/// Describes the method of an operation, an order and an accumulator in format F.
template <class Operation, class Order, template <class> class A, class F>
constexpr Entry describe(std::string_view backend) {
  using State = A<Scalar<F>>;
  static_assert(Accumulator<State, Scalar<F>>);
  Entry e = describe_operation<Operation, F>(backend);
  Facts& f = e.facts;
  if constexpr (Operation::has_order) {
    f.order = Order::name;
    f.promise = Order::promise;
    f.height_formula = Order::height_formula;
    e.code.height = Order::height;
  }
  if constexpr (Operation::has_accumulator) {
    f.accumulator = State::name;
    f.state_bytes = sizeof(State) / sizeof(CarrierOf<F>) * sizeof(F);
    f.operations_per_element = State::operations_per_element;
    e.code.accumulator_bound = State::bound;
    e.code.accumulator_probable_bound = State::probable_bound;
  } else {
    f.state_bytes = sizeof(typename decltype(Operation::template reducer<A, F>({}))::State);
  }
  if constexpr (requires { Operation::bound; }) e.code.operation_bound = Operation::bound;
  return e;
}

/// Describes a method whose accumulator takes no order, such as "dot/exact/fp32@cpu".
template <class Operation, class Accumulator, class F>
constexpr Entry describe_order_free(std::string_view backend) {
  Entry e = describe_operation<Operation, F>(backend);
  e.facts.accumulator = Accumulator::name;
  e.facts.takes_grid = Accumulator::takes_grid;
  e.facts.state_bytes = Accumulator::state_bytes;
  e.facts.operations_per_element = 3;
  return e;
}

/// Describes the sum with the accumulator `hopper`.
constexpr Entry describe_hopper(std::string_view backend) {
  Entry e = describe_order_free<Sum, Hopper, fp32>(backend);
  e.facts.promise = Promise::everywhere;
  e.facts.is_slow = true;
  e.facts.operations_per_element = Hopper::operations_per_element;
  e.facts.height_formula = Hopper::height_formula;
  e.code.height = Hopper::height;
  e.code.accumulator_bound = Hopper::bound;
  e.code.accumulator_probable_bound = Hopper::probable_bound;
  e.code.operation_bound = Sum::bound;
  return e;
}

/// Describes all rolling methods of a backend. run(work) runs each of them.
template <class Work, void (*run)(Work&)> std::vector<Entry> rolling_entries(std::string_view backend) {
  std::vector<Entry> all;
  const auto add = [&all]<class F, bool reads_any>(Entry e) {
    Formats::for_each([&]<class T>() {
      if constexpr (reads_any || can_read<T, F>) e.code.functions<Work>().any[Formats::index_of<T>()] = run;
    });
    all.push_back(e);
  };
  Operations::for_each([&]<class Operation>() {
    if constexpr (takes_window<Operation>)
      Formats::for_each([&]<class F>() {
        if constexpr (Operation::can_be_exact)
          OrderFree::for_each([&]<class Accumulator>() {
            if constexpr (refusal_without_order(Operation::facts, Accumulator::name).empty())
              add.template operator()<F, true>(describe_order_free<Operation, Accumulator, F>(backend));
          });
        else
          add.template operator()<F, false>(describe<Operation, CoarsenedTree, Plain, F>(backend));
      });
  });
  return all;
}

/// Describes all softmax methods of a backend. run(work, form) runs each of them.
template <class Work, void (*run)(Work&, SoftmaxForm)>
std::vector<Entry> softmax_entries(std::string_view backend) {
  std::vector<Entry> all;
  Softmaxes::for_each([&]<class Operation>() {
    Denominators::for_each([&]<class Denominator>() {
      using F = typename Denominator::Format;
      static constexpr SoftmaxForm form{Denominator::sum, std::is_same_v<F, fp64>, Operation::log};
      Entry e = describe_operation<Operation, F>(backend);
      e.facts.order = Denominator::order;
      e.facts.accumulator = Denominator::accumulator;
      e.facts.promise = Denominator::promise;
      e.facts.state_bytes = Denominator::sum == SoftmaxSum::exact ? sizeof(Exact) : sizeof(F);
      e.facts.height_formula = CoarsenedTree::height_formula;
      e.code.height = CoarsenedTree::height;
      e.code.softmax_bound = [](const FormatInfo& input, std::size_t n, double spread) {
        return softmax_bound(input, n, spread, form);
      };
      Formats::for_each([&]<class T>() {
        if constexpr (can_read<T, std::conditional_t<form.in_fp64, fp64, fp32>>)
          e.code.functions<Work>().any[Formats::index_of<T>()] = [](Work& work) { run(work, form); };
      });
      all.push_back(e);
    });
  });
  return all;
}

/// Returns the bound that the accumulator proves before the sum is known: Method::bound without the
/// alternative |result| + Σ|x|, which holds for any sum. Infinite if the accumulator proves nothing.
double prior_bound(const Method& method, const FormatInfo& input, std::size_t n, double magnitudes,
                   Number result, double probability);

}  // namespace samesum
