/// Reference implementation of softmax: it defines the bits of every backend.
#include <algorithm>

#include "samesum/accumulator/exact.hpp"
#include "samesum/accumulator/plain.hpp"
#include "samesum/backend/reference/methods.hpp"
#include "samesum/catalogue/describe.hpp"
#include "samesum/operation/online_softmax.hpp"
#include "samesum/order/reference.hpp"
#include "samesum/order/tree.hpp"

namespace samesum::reference {
namespace {

using One = Scalar<fp32>;

template <class F> One tree_sum(const std::vector<float>& e) {
  const auto sum = reference_state<Plain<Scalar<F>>>(CoarsenedTree::Shape{}, e.size(),
                                                     [&e](std::size_t i) { return Scalar<F>::of(e[i]); });
  return {sum->result().v};
}

One sum_of(const std::vector<float>& e, SoftmaxSum accumulator) {
  if (accumulator == SoftmaxSum::fp16) return tree_sum<fp16>(e);
  if (accumulator == SoftmaxSum::bf16) return tree_sum<bf16>(e);
  if (accumulator == SoftmaxSum::fp32) return tree_sum<fp32>(e);
  Exact sum;
  sum.add(std::span{e});
  return {sum.result<fp32>()};
}

template <class T> void softmax_row(const T* x, T* y, std::size_t n, SoftmaxSum how, bool log) {
  const auto at = [x](std::size_t i) { return One::of(x[i]); };
  // If the largest elements are +0 and -0, either may be chosen: s is at least 2, so the sign of d has no
  // effect. A NaN may be skipped: it makes s NaN.
  One largest = at(0), sum;
  for (std::size_t i = 1; i < n; ++i)
    if (at(i).v > largest.v) largest = at(i);
  if (how == SoftmaxSum::online) {
    const auto state = reference_state<OnlineSoftmax<One>>(CoarsenedTree::Shape{}, n, at);
    sum = state->denominator();
  } else {
    std::vector<float> e(n);
    for (std::size_t i = 0; i < n; ++i) e[i] = exp_of_nonpositive(at(i) - largest).v;
    sum = sum_of(e, how);
  }
  const One reciprocal{1 / sum.v}, log_sum = samesum::log(sum);
  for (std::size_t i = 0; i < n; ++i) {
    const One d = at(i) - largest;
    y[i] = to_format<T>(Scalar<T>::of((log ? d - log_sum : exp_of_nonpositive(d) * reciprocal).v));
  }
}

void softmax(HostRun& work, SoftmaxSum how, bool log) {
  const Call& call = work.call;
  const Layout& l = call.layout;
  with_format(*call.x.format, [&]<class T>() {
    if constexpr (sizeof(T) <= sizeof(float))
      for (std::size_t r = 0; r < l.outer && l.n > 0; ++r)
        softmax_row(static_cast<const T*>(call.x.data) + r * l.outer_stride,
                    static_cast<T*>(call.out.data) + r * call.out.row_stride, l.n, how, log);
  });
}

}  // namespace

std::vector<Entry> softmaxes() { return softmax_entries<HostRun, softmax>("reference"); }

}  // namespace samesum::reference
