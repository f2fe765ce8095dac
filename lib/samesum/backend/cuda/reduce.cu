/// Batches of every operation but scans on a GPU in one format, in all orders but prefix.
#include "samesum/backend/cuda/batch.cuh"
#include "samesum/backend/cuda/methods.hpp"
#include "samesum/backend/cuda/reader.cuh"
#include "samesum/backend/cuda/reduce_again.cuh"
#include "samesum/catalogue/describe.hpp"

namespace samesum::gpu {
namespace {

using F = Formats::at<SAMESUM_FORMAT_INDEX>;

template <class Order, class T, class Reducer>
cudaError_t launch_reducer(const Reducer& reducer, Launch& call) {
  BatchCall of{call.layout, call.size, {call.out, call.as_state}, call.workspace, call.bytes, call.stream};
  using Shape = typename Order::Shape;
  const Reader<F, T> reader{call.x, call.y};
  cudaError_t error = reduce<Shape>(reducer, reader, of);
  call.bytes = of.bytes;
  if constexpr (requires { reducer.replacement(); })
    if (const std::size_t results = call.layout.results();
        reducer.mean && call.workspace && results > 0 && error == cudaSuccess) {
      // About as many blocks as a large GPU runs at once: checking the results is cheap, and the results to
      // recompute are spread over the blocks.
      constexpr std::size_t blocks = 256, threads = again_leaves * Shape::lanes;
      const std::size_t each = std::min((results - 1) / blocks + 1, threads);
      Destination out = of.out;
      if (out.states) out.out = &static_cast<typename WithReplacement<Reducer>::State*>(out.out)->replacing;
      error = launch(reduce_again<Shape, decltype(reducer.replacement()), Reader<F, T>>,
                     (results - 1) / each + 1, static_cast<int>(threads), call.stream, reducer.replacement(),
                     reader, call.layout, static_cast<int>(each), out);
    }
  return error;
}

template <class Operation, class Order, template <class> class A, class T> cudaError_t run(Launch& call) {
  return launch_reducer<Order, T>(Operation::template reducer<A, F>({call.options.ddof}), call);
}

template <class Operation> cudaError_t run_exactly(Launch& call) {
  return reduce_exactly(exact_kind<Operation>, format_info<F>(), call);
}

template <class Operation> cudaError_t run_on_grid(Launch& call) {
  return reduce_on_grid(exact_kind<Operation>, format_info<F>(), call);
}

}  // namespace

template <> std::vector<Entry> reductions<SAMESUM_FORMAT_INDEX>() {
  std::vector<Entry> all;
  for_each_method<F, "cuda">([&]<class Operation, class Order, template <class> class A>() {
    if constexpr (!is_scanned<Operation, Order>) {
      Entry e = describe<Operation, Order, A, F>("cuda");
      Formats::for_each([&]<class T>() {
        if constexpr (has_batches<Operation, Order, A, T, F>)
          e.code.run[Formats::index_of<T>()] = run_launch<run<Operation, Order, A, T>>;
      });
      all.push_back(e);
    }
  });
  for_each_order_free<Exactly>([&]<class Operation>() {
    if constexpr (!is_scan<Operation>) {
      Entry e = describe_order_free<Operation, Exactly, F>("cuda");
      e.code.run.fill(run_launch<run_exactly<Operation>>);
      all.push_back(e);
    }
  });
  for_each_order_free<OnGrid>([&]<class Operation>() {
    if constexpr (!is_scan<Operation>) {
      Entry e = describe_order_free<Operation, OnGrid, F>("cuda");
      e.code.run.fill(run_launch<run_on_grid<Operation>>);
      all.push_back(e);
    }
  });
  return all;
}

}  // namespace samesum::gpu
