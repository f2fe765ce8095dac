/// Every reduction read literally: one thread, one element after the other.
#include "samesum/operation/exact_reduction.hpp"
#include "samesum/operation/read_fold.hpp"

namespace samesum::reference {
namespace {

template <class F> using At = Scalar<F> (*)(const void* data, std::size_t i);
/// Element i of an input of format T, rounded to F by integers alone; of no input, 0.
template <class T, class F> Scalar<F> element(const void* data, std::size_t i) {
  if (data == nullptr) return Scalar<F>::zero();
  return {convert<CarrierOf<F>>(convert<F>(static_cast<const T*>(data)[i]))};
}

template <class Order, class Fold>
void run(const Fold& fold, const ReduceCall& call, At<typename Fold::Format> at) {
  const Layout& l = call.layout;
  for (std::size_t o = 0; o < l.outer; ++o)
    for (std::size_t i = 0; i < l.inner; ++i) {
      const std::size_t n = l.length(o);
      const auto state = read_fold<typename Order::Shape>(fold, n, [&](std::size_t k) {
        const std::size_t place = l.first(o) + k * l.stride + i;
        const auto offset = static_cast<std::uint32_t>(k);
        return Read<typename Fold::Format>{at(call.x, place), at(call.y, place), k - offset, offset};
      });
      fold.finish(state ? *state : typename Fold::State{}, n, o * l.inner + i, call.out);
    }
  if constexpr (requires { fold.again(); })
    if (fold.mean) run<Order>(fold.again(), call, at);
}

/// Every term as integers.
template <class T> void run_exactly(ExactKind kind, const FormatInfo& format, const ReduceCall& call) {
  const Layout& l = call.layout;
  const T *x = static_cast<const T*>(call.x), *y = static_cast<const T*>(call.y);
  for (std::size_t at = 0; at < l.results(); ++at) {
    const std::size_t n = l.length(at / l.inner);
    ExactBatchState state;
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t place = l.first(at / l.inner) + k * l.stride + at % l.inner;
      state.terms.add(kind.term, x[place], y ? y[place] : T{});
      if (kind.moments) state.squares.add(Term::square, x[place], T{});
    }
    state.finish(kind, format, n, call.options.ddof, at, call.out);
  }
}

}  // namespace

template <> std::vector<Reduction> reductions<SAMESUM_SHARD>() {
  using F = Formats::at<SAMESUM_SHARD>;
  std::vector<Reduction> all;
  for_each_operation<F>([&]<class Operation, class Order, template <class> class A>() {
    Reduction r = describe_reduction<Operation, Order, A, F>("reference");
    Formats::for_each([&]<class T>() {
      if constexpr (can_read<T, F>)
        r.run[Formats::index_of<T>()] = [](const ReduceCall& call) {
          run<Order>(Operation::template fold<A, F>({call.options.ddof}), call, element<T, F>);
        };
    });
    all.push_back(r);
  });
  for_each_exact_operation([&]<class Operation>() {
    Reduction r = describe_exact_reduction<Operation, F>("reference");
    Formats::for_each([&]<class T>() {
      r.run[Formats::index_of<T>()] = [](const ReduceCall& call) {
        run_exactly<T>(exact_kind<Operation>, format_info<F>(), call);
      };
    });
    all.push_back(r);
  });
  return all;
}

}  // namespace samesum::reference
