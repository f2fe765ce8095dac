/// Reference implementation of the operations by key: the elements of each key in their order, reduced by the
/// reference implementation of the operation.
#include "samesum/backend/reference/methods.hpp"
#include "samesum/catalogue/describe.hpp"
#include "samesum/operation/exact_reduction.hpp"
#include "samesum/operation/reference_reduce.hpp"

namespace samesum::reference {
namespace {

/// Finds the first bad key. Returns whether there is one.
bool has_bad_key(HostRun& work) {
  work.first_bad_key = first_bad_key(work.call.keys, bins(work.call));
  return work.first_bad_key != no_bad_key;
}

/// Calls visit(places, at) for each result `at`, with the places of its elements in x, unless it has none and
/// keeps what `out` holds.
template <class Visit> void for_each_result(const Call& call, Visit visit) {
  const std::size_t inner = call.layout.inner;
  std::vector<std::vector<std::size_t>> rows(bins(call));
  for (std::size_t k = 0; k < call.keys.size; ++k)
    rows[key_at(call.keys.format, call.keys.data, k)].push_back(k);
  for (std::size_t at = 0; at < bins(call) * inner; ++at) {
    std::vector<std::size_t> places;
    for (const std::size_t row : rows[at / inner]) places.push_back(row * inner + at % inner);
    if (!places.empty() || !call.options.combine) visit(places, at);
  }
}

/// Reduces the elements of each key in an order. What `out` held is the first element if results are
/// combined.
template <class T, class Order, class Reducer> void reduce_by_key(const Reducer& reducer, const Call& call) {
  using F = typename Reducer::Format;
  using Shape = typename Order::Shape;
  for_each_result(call, [&](const std::vector<std::size_t>& places, std::size_t at) {
    std::vector<Scalar<F>> elements;
    if (call.options.combine) elements.push_back(Scalar<F>::of(static_cast<const F*>(call.out.data)[at]));
    for (const std::size_t place : places)
      elements.push_back({convert<CarrierOf<F>>(convert<F>(static_cast<const T*>(call.x.data)[place]))});
    const auto element = [&](std::size_t k) { return InputElement<F>{elements[k], Scalar<F>::zero(), k, 0}; };
    const auto write = [&](const auto& with) {
      const auto state = reference_reduce<Shape>(with, elements.size(), element);
      with.finish(state ? *state : typename std::decay_t<decltype(with)>::State{}, elements.size(), at,
                  call.out.data);
    };
    write(reducer);
    if constexpr (requires { reducer.replacement(); })
      if (reducer.mean) write(reducer.replacement());
  });
}

template <class T> void reduce_exactly(ExactKind kind, const Call& call) {
  const FormatInfo& format = *call.method->format;
  for_each_result(call, [&](const std::vector<std::size_t>& places, std::size_t at) {
    ExactBatchState state;
    if (call.options.combine)
      with_format(format, [&]<class F>() { state.terms.sum.add(static_cast<const F*>(call.out.data)[at]); });
    for (const std::size_t place : places) state.terms.sum.add(static_cast<const T*>(call.x.data)[place]);
    state.finish(kind, format, places.size(), 0, at, call.out.data);
  });
}

/// Adds all terms on the given grid, or on the one that the largest of all elements determines, whatever its
/// key.
template <class T, class F> void reduce_on_grid(bool mean, HostRun& work) {
  const Call& call = work.call;
  const auto* x = static_cast<const T*>(call.x.data);
  const std::size_t n = most_terms(call);
  int largest = no_exponent;
  for (std::size_t i = 0; i < call.keys.size * call.layout.inner; ++i)
    largest = std::max(largest, exponent_of(x[i]));
  const int grid =
      call.options.grid.value_or(found_grid(largest, n, grid_word_bits<F>, Format<T>::min_quantum));
  for_each_result(call, [&](const std::vector<std::size_t>& places, std::size_t at) {
    GridSum sum;
    for (const std::size_t place : places) sum.add(x[place], grid);
    const bool overflows = sum.overflows(n, grid_word_bits<F>);
    work.overflowed |= overflows;
    F& result = static_cast<F*>(call.out.data)[at];
    result = from_bits<F>(overflows || (mean && places.empty()) ? Format<F>::canonical_nan
                          : call.options.combine                ? sum.result_with<F>(grid, result)
                                                 : sum.result<F>(grid, mean ? places.size() : 1));
  });
}

void count(HostRun& work) {
  const Call& call = work.call;
  if (has_bad_key(work)) return;
  for_each_result(call, [&](const std::vector<std::size_t>& places, std::size_t at) {
    std::int64_t& result = static_cast<std::int64_t*>(call.out.data)[at];
    result = (call.options.combine ? result : 0) + static_cast<std::int64_t>(places.size());
  });
}

}  // namespace

std::vector<Entry> methods_by_key() {
  std::vector<Entry> all;
  Formats::for_each([&]<class F>() {
    for_each_method_by_key<F, "reference">([&]<class Operation, class Order, template <class> class A>() {
      Entry e = describe<Operation, Order, A, F>("reference");
      if constexpr (Operation::inputs == 0)
        e.code.host.any.fill(count);
      else
        Formats::for_each([&]<class T>() {
          if constexpr (can_read<T, F>)
            e.code.host.any[Formats::index_of<T>()] = [](HostRun& work) {
              if (!has_bad_key(work))
                reduce_by_key<T, Order>(Operation::template reducer<A, F>({}), work.call);
            };
        });
      all.push_back(e);
    });
    for_each_order_free<true>([&]<class Operation, class Accumulator>() {
      Entry e = describe_order_free<Operation, Accumulator, F>("reference");
      Formats::for_each([&]<class T>() {
        e.code.host.any[Formats::index_of<T>()] = [](HostRun& work) {
          constexpr ExactKind kind = exact_kind<Operation>;
          if (has_bad_key(work)) return;
          Accumulator::takes_grid ? reduce_on_grid<T, F>(kind.mean, work)
                                  : reduce_exactly<T>(kind, work.call);
        };
      });
      all.push_back(e);
    });
  });
  return all;
}

}  // namespace samesum::reference
