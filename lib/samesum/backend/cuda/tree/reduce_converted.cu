/// Batches of elements of other formats on a GPU. A file of its own, since together with reduce.cu it would
/// take twice as long to compile as any other file.
#include "samesum/backend/cuda/tree/reduce.cuh"

namespace samesum::gpu {

template <> void enter_batches_of_other_formats<SAMESUM_FORMAT_INDEX>(std::vector<Entry>& methods) {
  auto method = methods.begin();
  for_each_method_of_batches([&]<class Operation, class Order, template <class> class A>() {
    KernelFormats::for_each([&]<class T>() {
      if constexpr (!std::is_same_v<T, F>) enter_batches<T, Operation, Order, A>(*method);
    });
    ++method;
  });
}

}  // namespace samesum::gpu
