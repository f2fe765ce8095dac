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

template <class C, class F> C tree_sum(const std::vector<C>& e) {
  const auto sum = reference_state<Plain<Scalar<F>>>(CoarsenedTree::Shape{}, e.size(),
                                                     [&e](std::size_t i) { return Scalar<F>::of(e[i]); });
  return sum->result().v;
}

template <class C> C sum_of(const std::vector<C>& e, SoftmaxSum accumulator) {
  if (accumulator == SoftmaxSum::fp16) return tree_sum<C, fp16>(e);
  if (accumulator == SoftmaxSum::bf16) return tree_sum<C, bf16>(e);
  if (accumulator != SoftmaxSum::exact) return tree_sum<C, C>(e);
  Exact sum;
  sum.add(std::span{e});
  return sum.result<C>();
}

/// Computes a row of elements of format T in format C.
template <class T, class C> void softmax_row(const T* x, T* y, std::size_t n, const SoftmaxForm& form) {
  using One = Scalar<C>;
  const auto at = [x](std::size_t i) { return One::of(x[i]); };
  // If the largest elements are +0 and -0, either may be chosen: s is at least 2, so the sign of d has no
  // effect. A NaN may be skipped: it makes s NaN.
  One largest = at(0), sum;
  for (std::size_t i = 1; i < n; ++i)
    if (at(i).v > largest.v) largest = at(i);
  if (form.sum == SoftmaxSum::online) {
    const auto state = reference_state<OnlineSoftmax<One>>(CoarsenedTree::Shape{}, n, at);
    sum = state->denominator();
  } else {
    std::vector<C> e(n);
    for (std::size_t i = 0; i < n; ++i) e[i] = exp_of_nonpositive(at(i) - largest).v;
    sum = {sum_of(e, form.sum)};
  }
  const One reciprocal{1 / sum.v}, log_sum = samesum::log(sum);
  for (std::size_t i = 0; i < n; ++i) {
    const One d = at(i) - largest;
    y[i] = to_format<T>(Scalar<T>::of((form.log ? d - log_sum : exp_of_nonpositive(d) * reciprocal).v));
  }
}

void softmax(HostRun& work, SoftmaxForm form) {
  const Call& call = work.call;
  const Layout& l = call.layout;
  with_format(*call.x.format, [&]<class T>() {
    with_computed(form, [&]<class C>() {
      if constexpr (can_read<T, C>)
        for (std::size_t r = 0; r < l.outer && l.n > 0; ++r)
          softmax_row<T, C>(static_cast<const T*>(call.x.data) + r * l.outer_stride,
                            static_cast<T*>(call.out.data) + r * call.out.row_stride, l.n, form);
    });
  });
}

}  // namespace

std::vector<Entry> softmaxes() { return softmax_entries<HostRun, softmax>("reference"); }

}  // namespace samesum::reference
