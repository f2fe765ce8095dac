/// The reference backend: the literal reading, one thread, one element after the other.
#include "samesum/reading.hpp"
#include "samesum/recipe.hpp"

namespace samesum::reference {
namespace {

/// Element i of an input of format T, rounded to F by integers alone.
template <class T, class F> Scalar<F> element(const void* data, std::size_t i) {
  return {convert<CarrierOf<F>>(convert<F>(static_cast<const T*>(data)[i]))};
}

// The reading is compiled once for each accumulator: what differs between inputs is behind this pointer.
template <class F> using Element = Scalar<F> (*)(const void* data, std::size_t i);

template <class Order, class A, class F>
std::uint64_t run_reading(const void* data, std::size_t n, Element<F> element_at) {
  return finish<F>(read<A>(typename Order::Shape{}, n, [=](std::size_t i) { return element_at(data, i); }));
}

/// An element and its magnitude before it was rounded.
template <class F> struct Given {
  Scalar<F> value;
  double magnitude;
};

/// An accumulator that is watched: what went in, and what each addition returned.
template <class A, class F> struct WatchedState {
  A state;
  double magnitudes = 0, partials = 0;
  bool empty = true;
  void add(const Given<F>& x) {
    state.add(x.value);
    magnitudes += x.magnitude;
    if (!empty) partials += std::abs(state.result().v);  // the first element is taken as it is
    empty = false;
  }
  void merge(const WatchedState& other) {
    state.merge(other.state);
    magnitudes += other.magnitudes;
    partials += other.partials + std::abs(state.result().v);
  }
};

template <class T> double magnitude(const void* data, std::size_t i) {
  return std::abs(convert<double>(static_cast<const T*>(data)[i]));
}

template <class Order, class A, class F>
Watched watch_reading(const void* data, std::size_t n, Element<F> element_at,
                      double (*magnitude_at)(const void*, std::size_t)) {
  const auto seen = read<WatchedState<A, F>>(typename Order::Shape{}, n, [=](std::size_t i) {
    return Given<F>{element_at(data, i), magnitude_at(data, i)};
  });
  if (!seen) return {0, 0, 0};
  return {to_bits(to_format<F>(seen->state.result())), seen->magnitudes, seen->partials};
}

template <class F, class T> Watched watch_exact(const void* data, std::size_t n) {
  Exact sum;
  double magnitudes = 0;
  for (std::size_t i = 0; i < n; ++i) {
    sum.add(static_cast<const T*>(data)[i]);
    magnitudes += magnitude<T>(data, i);
  }
  return {to_bits(sum.result<F>()), magnitudes, 0};
}

template <class F, class T> std::uint64_t run_exact(const void* data, std::size_t n, int) {
  Exact sum;
  sum.add(std::span{static_cast<const T*>(data), n});
  return to_bits(sum.result<F>());
}

}  // namespace

template <> std::vector<Variant> table<SAMESUM_SHARD>() {
  using F = Formats::at<SAMESUM_SHARD>;
  std::vector<Variant> variants;
  for_each_order_and_accumulator([&]<class Order, template <class> class A>() {
    if constexpr (refusal<Order, A>("reference").empty()) {
      Variant v = describe<Order, A, F>("reference");
      Formats::for_each([&]<class T>() {
        v.run[Formats::index_of<T>()] = [](const void* data, std::size_t n, int) {
          return run_reading<Order, A<Scalar<F>>, F>(data, n, element<T, F>);
        };
        v.watch[Formats::index_of<T>()] = [](const void* data, std::size_t n) {
          return watch_reading<Order, A<Scalar<F>>, F>(data, n, element<T, F>, magnitude<T>);
        };
      });
      variants.push_back(v);
    }
  });
  Variant exact = describe_exact<F>("reference");
  Formats::for_each([&]<class T>() {
    exact.run[Formats::index_of<T>()] = run_exact<F, T>;
    exact.watch[Formats::index_of<T>()] = watch_exact<F, T>;
  });
  variants.push_back(exact);
  return variants;
}

}  // namespace samesum::reference
