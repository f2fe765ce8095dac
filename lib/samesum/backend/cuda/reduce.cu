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
cudaError_t launch_reducer(const Reducer& reducer, Launch& work) {
  BatchCall of{work.call.layout, work.call.x.size, {work.call.out.data, work.as_state},
               work.workspace,   work.bytes,       work.stream};
  using Shape = typename Order::Shape;
  const Reader<F, T> reader{work.call.x.data, work.call.y.data};
  cudaError_t error = reduce<Shape>(reducer, reader, of);
  work.bytes = of.bytes;
  if constexpr (requires { reducer.replacement(); })
    if (const std::size_t results = work.call.layout.results();
        reducer.mean && work.workspace && results > 0 && error == cudaSuccess) {
      // About as many blocks as a large GPU runs at once: checking the results is cheap, and the results to
      // recompute are spread over the blocks.
      constexpr std::size_t blocks = 256, threads = again_leaves * Shape::lanes;
      const std::size_t of_block = std::min((results - 1) / blocks + 1, threads);
      Destination out = of.out;
      if (out.states) out.out = &static_cast<typename WithReplacement<Reducer>::State*>(out.out)->replacing;
      error = launch(reduce_again<Shape, decltype(reducer.replacement()), Reader<F, T>>,
                     (results - 1) / of_block + 1, static_cast<int>(threads), work.stream,
                     reducer.replacement(), reader, work.call.layout, static_cast<int>(of_block), out);
    }
  return error;
}

template <class Operation, class Order, template <class> class A, class T> cudaError_t run(Launch& work) {
  return launch_reducer<Order, T>(Operation::template reducer<A, F>({work.call.options.ddof}), work);
}

template <class Operation, class Accumulator> cudaError_t run_order_free(Launch& work) {
  return std::is_same_v<Accumulator, Exactly> ? reduce_exactly(exact_kind<Operation>, work)
                                              : reduce_on_grid(exact_kind<Operation>, work);
}

}  // namespace

template <> std::vector<Entry> reductions<SAMESUM_FORMAT_INDEX>() {
  std::vector<Entry> all;
  for_each_method<F, "cuda">([&]<class Operation, class Order, template <class> class A>() {
    if constexpr (!is_scanned<Operation, Order>) {
      Entry e = describe<Operation, Order, A, F>("cuda");
      Formats::for_each([&]<class T>() {
        if constexpr (has_batches<Operation, Order, A, T, F>)
          e.code.device.any[Formats::index_of<T>()] = run_launch<run<Operation, Order, A, T>>;
      });
      all.push_back(e);
    }
  });
  OrderFree::for_each([&]<class Accumulator>() {
    for_each_order_free<Accumulator>([&]<class Operation>() {
      if constexpr (!is_scan<Operation>) {
        Entry e = describe_order_free<Operation, Accumulator, F>("cuda");
        e.code.device.any.fill(run_launch<run_order_free<Operation, Accumulator>>);
        all.push_back(e);
      }
    });
  });
  return all;
}

}  // namespace samesum::gpu
