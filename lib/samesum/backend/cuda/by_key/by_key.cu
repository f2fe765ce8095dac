/// Reductions by key on a GPU: selects the schedule of a call, and enqueues its kernels.
#include "samesum/backend/cuda/by_key/sum.cuh"
#include "samesum/backend/cuda/device/methods.hpp"
#include "samesum/catalogue/describe.hpp"

namespace samesum::gpu {
namespace {

/// An extremum, or a plain sum in the order of arrival or in turn.
class PlainByKey : public CallByKey {
 public:
  explicit PlainByKey(Launch& work) : CallByKey{work} {}

  template <class F> cudaError_t extremum(bool smallest) {
    using Key = typename KeyOf<F>::Key;
    const std::uint64_t results = keyed_.results();
    Key* const keys = add<Key>(results);
    clear_up_to_here();
    if (!begin()) return error_;
    const bool shared =
        work_.key_schedule != KeySchedule::global && results * sizeof(Key) <= shared_by_default;
    enqueue_with(shared ? results * sizeof(Key) : 0, find_extrema<F>, blocks_for(keyed_.elements, 512, 4),
                 512, keyed_, input(), smallest, static_cast<std::uint32_t>(shared ? results : 0), keys);
    enqueue_finish(finish_extrema<F>, 256, keyed_, destination(), smallest, keys);
    return error_;
  }

  template <class F> cudaError_t in_arrival_order() {
    if (!begin()) return error_;
    if (!work_.call.options.combine) clear(work_.call.out.data, keyed_.results() * sizeof(F));
    enqueue(add_on_arrival<F>, blocks_for(keyed_.elements, 256, 16), 256, keyed_, input(),
            static_cast<F*>(work_.call.out.data));
    enqueue_finish(finish_on_arrival<F>, 256, keyed_, destination());
    return error_;
  }

  template <class Reducer> cudaError_t in_turn(const Reducer& reducer) {
    if (!can_sort()) return cudaErrorInvalidValue;
    const Sorting sorting = add_sorting();
    if (!begin()) return error_;
    const SortedRows rows = sort(sorting);
    const auto add_all = [&](const auto& with) {
      enqueue_finish(add_in_turn<std::decay_t<decltype(with)>>, 128, with, keyed_, input(), rows,
                     destination());
    };
    add_all(reducer);
    if constexpr (requires { reducer.replacement(); })
      if (reducer.mean) add_all(reducer.replacement());
    return error_;
  }

 private:
  /// Format index of the elements.
  std::size_t input() const { return work_.call.x.format->index; }
};

template <class Operation, bool exact, class F> cudaError_t run_order_free(Launch& work) {
  return with_kernel_format(*work.call.x.format, [&]<class T>() {
    return SumByKey{work}.sum<T>(Formats::index_of<F>(), exact, exact_kind<Operation>.mean);
  });
}

template <class Operation, class Order, class F> cudaError_t run(Launch& work) {
  if constexpr (Operation::inputs == 0)
    return SumByKey{work}.count();
  else if constexpr (!Operation::has_order)
    return PlainByKey{work}.extremum<F>(Operation::template reducer<Plain, F>({}).smallest);
  else if constexpr (std::is_same_v<Order, AtomicElement>)
    return PlainByKey{work}.in_arrival_order<F>();
  else
    return PlainByKey{work}.in_turn(Operation::template reducer<Plain, F>({}));
}

}  // namespace

std::vector<Entry> methods_by_key() {
  std::vector<Entry> all;
  KernelFormats::for_each([&]<class F>() {
    for_each_method_by_key<F, "cuda">([&]<class Operation, class Order, template <class> class A>() {
      Entry e = describe<Operation, Order, A, F>("cuda");
      KernelFormats::for_each([&]<class T>() {
        if constexpr (Operation::inputs == 0 || can_read<T, F>)
          e.code.device.any[Formats::index_of<T>()] = run_launch<run<Operation, Order, F>>;
      });
      e.facts.is_slow = Operation::has_order && std::is_same_v<Order, Serial>;
      // atomicAdd of fp32 flushes subnormal numbers to zero: each addition may lose that much.
      if (Operation::has_order && Order::promise == Promise::none && std::is_same_v<F, fp32>)
        e.code.lost_per_arrival = 0x1p-126;
      all.push_back(e);
    });
    for_each_order_free<true>([&]<class Operation, class Accumulator>() {
      Entry e = describe_order_free<Operation, Accumulator, F>("cuda");
      e.code.device.any.fill(run_launch<run_order_free<Operation, !Accumulator::takes_grid, F>>);
      all.push_back(e);
    });
  });
  return all;
}

}  // namespace samesum::gpu
