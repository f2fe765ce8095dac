/// The reductions of the list on a GPU, in one format.
#include "samesum/backend/cuda/reduce.cuh"
#include "samesum/backend/cuda/reduce_launch.hpp"
#include "samesum/operation/operations.hpp"
#include "samesum/recipe.hpp"

namespace samesum::gpu {
namespace {

using F = Formats::at<SAMESUM_SHARD>;

template <class Order, class T, class Fold> int launch_fold(const Fold& fold, ReduceLaunch& launch) {
  const ReduceCall& call = launch.call;
  FoldCall of{call.layout, launch.elements, call.out, launch.workspace, launch.bytes, launch.stream};
  using Shape = typename Order::Shape;
  const Reader<F, T> reader{call.x, call.y};
  cudaError_t error = reduce<Shape>(fold, reader, of);
  launch.bytes = of.bytes;
  if constexpr (requires { fold.again(); })
    if (const std::size_t results = call.layout.results();
        fold.mean && launch.workspace && results > 0 && error == cudaSuccess) {
      // So many blocks run at once on a large GPU: looking at the results costs little, and work is shared
      // out.
      constexpr std::size_t blocks = 256, threads = again_leaves * Shape::lanes;
      const std::size_t each = std::min((results - 1) / blocks + 1, threads);
      error = samesum::gpu::launch(fold_again<Shape, decltype(fold.again()), Reader<F, T>>,
                                   (results - 1) / each + 1, static_cast<int>(threads), launch.stream,
                                   fold.again(), reader, call.layout, static_cast<int>(each), call.out);
    }
  return error;
}

}  // namespace

template <> std::vector<Reduction> reductions<SAMESUM_SHARD>() {
  std::vector<Reduction> all;
  if (!absence().empty()) return all;
  for_each_operation<F>([&]<class Operation, class Order, template <class> class A>() {
    Reduction r = describe_reduction<Operation, Order, A, F>("cuda");
    Formats::for_each([&]<class T>() {
      if constexpr (can_read<T, F>)
        r.launch[Formats::index_of<T>()] = [](ReduceLaunch& launch) {
          const auto fold = Operation::template fold<A, F>({launch.call.options.ddof});
          return launch_fold<Order, T>(fold, launch);
        };
    });
    r.from_host = reduce_from_host;
    all.push_back(r);
  });
  for_each_exact_operation([&]<class Operation>() {
    Reduction r = describe_exact_reduction<Operation, F>("cuda");
    Formats::for_each([&]<class T>() {
      r.launch[Formats::index_of<T>()] = [](ReduceLaunch& launch) -> int {
        return reduce_exactly(exact_kind<Operation>, format_info<T>(), format_info<F>(), launch);
      };
    });
    r.from_host = reduce_from_host;
    all.push_back(r);
  });
  return all;
}

}  // namespace samesum::gpu
