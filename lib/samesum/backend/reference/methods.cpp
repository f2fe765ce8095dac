/// Reference implementations of all methods of one format except softmax: one thread, one element after
/// another.
#include "samesum/backend/reference/methods.hpp"

#include "samesum/catalogue/describe.hpp"
#include "samesum/operation/grid_reduction.hpp"
#include "samesum/operation/partial_form.hpp"
#include "samesum/operation/reference_reduce.hpp"

namespace samesum::reference {
namespace {

template <class F> using At = Scalar<F> (*)(const void* data, std::size_t i);
/// Element i of an input of format T, rounded to F in integer arithmetic; 0 if there is no input.
template <class T, class F> Scalar<F> element(const void* data, std::size_t i) {
  if (data == nullptr) return Scalar<F>::zero();
  return {convert<CarrierOf<F>>(convert<F>(static_cast<const T*>(data)[i]))};
}

/// Writes the state of the call's vector: of one result, or of the lanes of rows in a canonical order.
template <class Shape, class Reducer>
[[gnu::noinline]] void write_state(const Reducer& reducer, const Call& call, At<typename Reducer::Format> at,
                                   void* out) {
  const auto element = [&](std::size_t k) {
    const auto offset = static_cast<std::uint32_t>(k);
    return InputElement<typename Reducer::Format>{at(call.x.data, k), at(call.y.data, k), k - offset, offset};
  };
  auto* states = static_cast<typename Reducer::State*>(out);
  constexpr bool is_canonical = Shape::leaf == unbounded && Shape::lanes > 1;
  if constexpr (is_canonical)
    std::ranges::copy(reference_lanes<Shape>(reducer, call.layout.n, element), states);
  else
    *states = *reference_reduce<Shape>(reducer, call.layout.n, element);
}

/// Reduces all results of a call. Not inlined, so that all element formats share one copy of the code.
template <class Order, class Reducer>
[[gnu::noinline]] void run(const Reducer& reducer, const Call& call, At<typename Reducer::Format> at) {
  const Layout& l = call.layout;
  for (std::size_t o = 0; o < l.outer; ++o)
    for (std::size_t i = 0; i < l.inner; ++i) {
      const std::size_t n = l.length(o);
      const auto state = reference_reduce<typename Order::Shape>(reducer, n, [&](std::size_t k) {
        const std::size_t place = l.first(o) + k * l.stride + i;
        const auto offset = static_cast<std::uint32_t>(k);
        return InputElement<typename Reducer::Format>{at(call.x.data, place), at(call.y.data, place),
                                                      k - offset, offset};
      });
      reducer.finish(state ? *state : typename Reducer::State{}, n, o * l.inner + i, call.out.data);
    }
  if constexpr (requires { reducer.replacement(); })
    if (reducer.mean) run<Order>(reducer.replacement(), call, at);
}

/// Calls visit(first, result) for each vector of a scan, with the places of its first element and of its
/// first result. The elements of a vector, and its results, are layout.inner places apart.
template <class Visit> void for_each_vector(const Call& call, Visit visit) {
  const Layout& l = call.layout;
  for (std::size_t o = 0; o < l.outer; ++o)
    for (std::size_t i = 0; i < l.inner; ++i) visit(l.first(o) + i, o * call.out.row_stride + i);
}

/// Writes all results of a scan. Each element is read before a result replaces it.
template <class Order, class Reducer>
[[gnu::noinline]] void scan(const Reducer& reducer, const Call& call, At<typename Reducer::Format> at) {
  using F = typename Reducer::Format;
  for_each_vector(call, [&](std::size_t first, std::size_t result) {
    std::conditional_t<std::is_same_v<Order, Serial>, SerialWalker<Reducer>, PrefixWalker<Reducer>> walker{
        reducer};
    for (std::size_t k = 0; k < call.layout.n; ++k) {
      const std::size_t place = k * call.layout.inner;
      const auto offset = static_cast<std::uint32_t>(k);
      const auto item = reducer.item(
          InputElement<F>{at(call.x.data, first + place), Scalar<F>::zero(), k - offset, offset});
      if (call.options.exclusive) reducer.finish(walker.state(), k, result + place, call.out.data);
      walker.push(item);
      if (!call.options.exclusive) reducer.finish(walker.state(), k + 1, result + place, call.out.data);
    }
  });
}

/// Writes all results of an exact cumsum.
template <class T, class F> void scan_exactly(const Call& call) {
  auto* out = static_cast<F*>(call.out.data);
  for_each_vector(call, [&](std::size_t first, std::size_t result) {
    Exact sum;
    for (std::size_t k = 0; k < call.layout.n; ++k) {
      const std::size_t place = k * call.layout.inner;
      const T element = static_cast<const T*>(call.x.data)[first + place];
      if (call.options.exclusive) out[result + place] = sum.result<F>();
      sum.add(element);
      if (!call.options.exclusive) out[result + place] = sum.result<F>();
    }
  });
}

/// Index of element k of result `at`.
std::size_t place_of(const Layout& l, std::size_t at, std::size_t k) {
  return l.first(at / l.inner) + k * l.stride + at % l.inner;
}

/// Adds all terms in integer arithmetic.
template <class T> void run_exactly(ExactKind kind, const HostRun& work) {
  const Call& call = work.call;
  const Layout& l = call.layout;
  const T *x = static_cast<const T*>(call.x.data), *y = static_cast<const T*>(call.y.data);
  for (std::size_t at = 0; at < l.results(); ++at) {
    const std::size_t n = l.length(at / l.inner);
    ExactBatchState state;
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t place = place_of(l, at, k);
      state.terms.add(kind.term, x[place], y ? y[place] : T{});
      if (kind.moments) state.squares.add(Term::square, x[place], T{});
    }
    if (work.as_state)
      *static_cast<ExactDigits*>(call.out.data) = ExactDigits{state};
    else
      state.finish(kind, *call.method->format, n, call.options.ddof, at, call.out.data);
  }
}

/// Adds all terms on the given grid, or on the one that the largest term of a result determines.
template <class T, class F> void run_on_grid(ExactKind kind, HostRun& work) {
  const Call& call = work.call;
  const Layout& l = call.layout;
  const T *x = static_cast<const T*>(call.x.data), *y = static_cast<const T*>(call.y.data);
  for (std::size_t at = 0; at < l.results(); ++at) {
    const std::size_t n = l.length(at / l.inner);
    const auto for_each_pair = [&](auto visit) {
      for (std::size_t k = 0; k < n; ++k) {
        const std::size_t place = place_of(l, at, k);
        visit(x[place], y ? y[place] : T{});
      }
    };
    int largest = no_exponent;
    for_each_pair([&](T a, T b) { largest = std::max(largest, exponent_of_term(kind.term, a, b)); });
    const int grid = call.options.grid.value_or(
        found_grid(largest, n, grid_word_bits<F>, quantum_of_terms(kind.term, format_info<T>())));
    GridSum sum;
    for_each_pair([&](T a, T b) { add_term(sum, kind.term, a, b, grid); });
    if (work.as_state)
      *static_cast<GridSum*>(call.out.data) = sum;
    else if (!finish_on_grid<F>(sum, kind.mean, n, grid, at, call.out.data))
      work.overflowed = true;
  }
}

/// Writes all results of a cumsum on the given grid, or on the one that the largest element of each vector
/// determines.
template <class T, class F> void scan_on_grid(HostRun& work) {
  const Call& call = work.call;
  const std::size_t n = call.layout.n;
  for_each_vector(call, [&](std::size_t first, std::size_t result) {
    const auto element = [&](std::size_t k) {
      return static_cast<const T*>(call.x.data)[first + k * call.layout.inner];
    };
    int largest = no_exponent;
    for (std::size_t k = 0; k < n; ++k) largest = std::max(largest, exponent_of(element(k)));
    const int grid = call.options.grid.value_or(
        found_grid(largest, n, grid_word_bits<F>, quantum_of_terms(Term::element, format_info<T>())));
    GridSum sum;
    const auto write = [&](std::size_t k, std::size_t count) {
      if (!finish_on_grid<F>(sum, false, count, grid, result + k * call.layout.inner, call.out.data))
        work.overflowed = true;
    };
    for (std::size_t k = 0; k < n; ++k) {
      const T x = element(k);
      if (call.options.exclusive) write(k, k);
      sum.add(x, grid);
      if (!call.options.exclusive) write(k, k + 1);
    }
  });
}

template <class Operation, class Accumulator, class T, class F> void run_order_free(HostRun& work) {
  if constexpr (is_scan<Operation> && Accumulator::takes_grid)
    scan_on_grid<T, F>(work);
  else if constexpr (is_scan<Operation>)
    scan_exactly<T, F>(work.call);
  else if constexpr (Accumulator::takes_grid)
    run_on_grid<T, F>(exact_kind<Operation>, work);
  else
    run_exactly<T>(exact_kind<Operation>, work);
}

/// Sums each result by the model of matrix units.
template <class T> void run_hopper(HostRun& work) {
  const Call& call = work.call;
  const Layout& l = call.layout;
  for (std::size_t at = 0; at < l.results(); ++at) {
    std::vector<T> x(l.length(at / l.inner));
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<const T*>(call.x.data)[place_of(l, at, k)];
    static_cast<float*>(call.out.data)[at] = hopper::sum_by_unit_model(std::span<const T>{x});
  }
}

}  // namespace

template <> std::vector<Entry> methods<SAMESUM_FORMAT_INDEX>() {
  using F = Formats::at<SAMESUM_FORMAT_INDEX>;
  std::vector<Entry> all;
  for_each_method<F, "reference">([&]<class Operation, class Order, template <class> class A>() {
    static constexpr Entry entry = [] {
      Entry e = describe<Operation, Order, A, F>("reference");
      Formats::for_each([&]<class T>() {
        constexpr bool is_sum = std::is_same_v<Operation, Sum>;
        if constexpr (is_scan<Operation> && can_read<T, F>)
          e.code.host.any[Formats::index_of<T>()] = [](HostRun& work) {
            scan<Order>(scan_reducer<Operation, A, F>(), work.call, element<T, F>);
          };
        else if constexpr (!is_scan<Operation> && (is_sum || can_read<T, F>))
          e.code.host.any[Formats::index_of<T>()] = [](HostRun& work) {
            const Call& call = work.call;
            const auto reducer = Operation::template reducer<A, F>({call.options.ddof});
            if (!work.as_state) return run<Order>(reducer, call, element<T, F>);
            write_state<typename Order::Shape>(reducer, call, element<T, F>, call.out.data);
            if constexpr (has_replacement<Operation, A, F>()) {
              using State = typename WithReplacement<std::remove_const_t<decltype(reducer)>>::State;
              write_state<typename Order::Shape>(reducer.replacement(), call, element<T, F>,
                                                 &static_cast<State*>(call.out.data)->replacing);
            }
          };
      });
      return e;
    }();
    append(all, entry);
  });
  for_each_order_free([&]<class Operation, class Accumulator>() {
    static constexpr Entry entry = [] {
      Entry e = describe_order_free<Operation, Accumulator, F>("reference");
      Formats::for_each([&]<class T>() {
        e.code.host.any[Formats::index_of<T>()] = run_order_free<Operation, Accumulator, T, F>;
      });
      return e;
    }();
    append(all, entry);
  });
  if constexpr (std::is_same_v<F, fp32>) {
    Entry e = describe_hopper("reference");
    Formats::for_each([&]<class T>() {
      if constexpr (hopper::UnitInput<T>::exists) e.code.host.any[Formats::index_of<T>()] = run_hopper<T>;
    });
    append(all, e);
  }
  return all;
}

}  // namespace samesum::reference
