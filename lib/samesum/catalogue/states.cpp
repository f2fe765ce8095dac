/// Definitions of states.hpp for one format.
#include "samesum/catalogue/states.hpp"

#include "samesum/catalogue/describe.hpp"
#include "samesum/operation/partial_form.hpp"
#include "samesum/operation/reference_reduce.hpp"

namespace samesum {
namespace {

/// An element rounded to F, and its magnitude before rounding.
template <class F> struct Given {
  Scalar<F> value;
  double magnitude;
};
template <class F> using GivenAt = Given<F> (*)(const void* data, std::size_t i);
template <class T, class F> Given<F> given(const void* data, std::size_t i) {
  const T x = static_cast<const T*>(data)[i];
  return {{convert<CarrierOf<F>>(convert<F>(x))}, std::abs(convert<double>(x))};
}

/// An accumulator that also sums the magnitudes of its elements and of its partial sums.
template <class A, class F> struct RecordingState {
  A state;
  double magnitudes = 0, partials = 0;
  bool empty = true;
  void add(const Given<F>& x) {
    state.add(x.value);
    magnitudes += x.magnitude;
    if (!empty) partials += std::abs(state.result().v);  // adding the first element does not round
    empty = false;
  }
  void merge(const RecordingState& other) {
    state.merge(other.state);
    magnitudes += other.magnitudes;
    partials += other.partials + std::abs(state.result().v);
  }
};

/// Sums n elements, with the sums that RecordedSum reports. Not inlined, so that all element formats share
/// one copy of the code.
template <class Order, class A, class F>
[[gnu::noinline]] RecordedSum record_sum(const void* data, std::size_t n, GivenAt<F> at) {
  const auto seen = reference_state<RecordingState<A, F>>(typename Order::Shape{}, n,
                                                          [=](std::size_t i) { return at(data, i); });
  if (!seen) return {0, 0, 0};
  return {to_bits(to_format<F>(seen->state.result())), seen->magnitudes, seen->partials};
}

template <class T, class F> RecordedSum record_exact(const void* data, std::size_t n) {
  Exact sum;
  double magnitudes = 0;
  for (std::size_t i = 0; i < n; ++i) {
    sum.add(static_cast<const T*>(data)[i]);
    magnitudes += given<T, F>(data, i).magnitude;
  }
  return {to_bits(sum.result<F>()), magnitudes, 0};
}

/// Sets the functions `watch` of sums: those that of.operator()<T>() returns.
template <class Operation, class Of> constexpr void watch_sums(Code& code, Of of) {
  if constexpr (std::is_same_v<Operation, Sum>)
    Formats::for_each([&]<class T>() { code.watch[Formats::index_of<T>()] = of.template operator()<T>(); });
}

}  // namespace

template <> std::vector<Entry> states<SAMESUM_FORMAT_INDEX>() {
  using F = Formats::at<SAMESUM_FORMAT_INDEX>;
  std::vector<Entry> all;
  for_each_method<F, "reference">([&]<class Operation, class Order, template <class> class A>() {
    if constexpr (!is_scan<Operation>) {
      static constexpr Entry entry = [] {
        Entry e = describe<Operation, Order, A, F>("");
        e.code.partial_form = &PartialFunctions<Operation, Order, A, F>::form;
        watch_sums<Operation>(e.code, []<class T>() -> Code::Watch {
          return [](const void* x, std::size_t n) {
            return record_sum<Order, A<Scalar<F>>, F>(x, n, given<T, F>);
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
        Entry e = describe_order_free<Operation, Accumulator, F>("");
        if constexpr (Accumulator::takes_grid) {
          e.code.partial_form = &GridPartialFunctions<Operation, F>::form;
        } else {
          e.code.partial_form = &ExactPartialFunctions<Operation, F>::form;
          watch_sums<Operation>(e.code, []<class T>() -> Code::Watch { return record_exact<T, F>; });
        }
        return e;
      }();
      append(all, entry);
    }
  });
  return all;
}

}  // namespace samesum
