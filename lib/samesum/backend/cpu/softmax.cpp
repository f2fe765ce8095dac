#include <algorithm>
#include <tuple>
#include <vector>

#include "samesum/backend/cpu/methods.hpp"
#include "samesum/backend/cpu/schedule.hpp"
#include "samesum/describe.hpp"
#include "samesum/operation/online_softmax.hpp"

namespace samesum::cpu {
namespace {

using One = Scalar<fp32>;
using Shape = CoarsenedTree::Shape;

/// The rows of one call, a row at a time, by one thread.
template <class T> class Rows {
 public:
  explicit Rows(const SoftmaxCall& call)
      : call_{call}, loops_{kernels<Formats::index_of<T>()>().softmax}, n_{call.columns} {}

  void compute(std::size_t r) {
    const T* x = static_cast<const T*>(call_.x) + r * call_.x_stride;
    T* y = static_cast<T*>(call_.y) + r * call_.y_stride;
    if (call_.accumulator == SoftmaxSum::online) {
      const OnlineSoftmax<One> state = online(x);
      finish(x, y, state.largest.v, state.denominator(), nullptr);
      return;
    }
    const float largest = loops_.largest(x, n_);
    // All e are kept where they are needed again. In place of y, if they fit: x is read no more.
    const bool keep = !call_.log || call_.accumulator == SoftmaxSum::exact;
    float* e = nullptr;
    if constexpr (std::is_same_v<T, fp32>)
      if (!call_.log) e = y;
    if (!e) {
      scratch_.resize(keep ? n_ : std::min(n_, Shape::leaf));
      e = scratch_.data();
    }
    const One sum = call_.accumulator == SoftmaxSum::fp16   ? plain<fp16>(x, largest, e, keep)
                    : call_.accumulator == SoftmaxSum::bf16 ? plain<bf16>(x, largest, e, keep)
                    : call_.accumulator == SoftmaxSum::fp32 ? plain<fp32>(x, largest, e, keep)
                                                            : exact(x, largest, e);
    finish(x, y, largest, sum, call_.log ? nullptr : e);
  }

 private:
  std::size_t leaf_end(std::size_t first) const { return std::min(n_, first + Shape::leaf); }

  /// Leaf by leaf, whose e are added while they are in the nearest cache.
  template <class F> One plain(const T* x, float largest, float* e, bool keep) {
    [[maybe_unused]] const SumLeaves sum_leaves =
        kernels<Formats::index_of<F>()>()
            .sum_leaves[Orders::index_of<CoarsenedTree>()][Accumulators::index_of<Plain>()]
                       [Formats::index_of<fp32>()];
    std::vector<Plain<Scalar<F>>>& states = states_of<F>();
    states.resize(Shape::leaves(n_));
    for (std::size_t k = 0; k < states.size(); ++k) {
      const std::size_t first = k * Shape::leaf, count = leaf_end(first) - first;
      float* to = keep ? e + first : e;
      if constexpr (std::is_same_v<F, fp32>) {
        states[k].sum = {loops_.sum_exponentials(x + first, count, largest, to)};
      } else {
        loops_.exponentials(x + first, count, largest, to);
        sum_leaves(to, count, &states[k]);
      }
    }
    return {merge_by_stride_doubling(std::span{states}).result().v};
  }

  One exact(const T* x, float largest, float* e) {
    loops_.exponentials(x, n_, largest, e);
    return {sum_exact(Values{std::span<const float>{e, n_}}, 1).template result<fp32>()};
  }

  OnlineSoftmax<One> online(const T* x) {
    std::vector<OnlineSoftmax<One>> leaves(Shape::leaves(n_));
    for (std::size_t k = 0; k < leaves.size(); ++k) {
      float state[2];
      loops_.online_leaf(x + k * Shape::leaf, leaf_end(k * Shape::leaf) - k * Shape::leaf, state);
      leaves[k] = {One{state[0]}, One{state[1]}};
    }
    return merge_by_stride_doubling(std::span{leaves});
  }

  /// From e, where they were kept, else from x.
  void finish(const T* x, T* y, float largest, One sum, const float* e) const {
    if (call_.log)
      loops_.shift(x, n_, largest, log(sum).v, y);
    else if (e)
      loops_.scale(e, n_, 1 / sum.v, y);
    else
      loops_.scaled_exponentials(x, n_, largest, 1 / sum.v, y);
  }

  template <class F> std::vector<Plain<Scalar<F>>>& states_of() {
    return std::get<std::vector<Plain<Scalar<F>>>>(states_);
  }

  const SoftmaxCall& call_;
  const SoftmaxLoops& loops_;
  std::size_t n_;
  std::vector<float> scratch_;
  std::tuple<std::vector<Plain<Scalar<fp16>>>, std::vector<Plain<Scalar<bf16>>>,
             std::vector<Plain<Scalar<fp32>>>>
      states_;
};

void softmax(Call& of, SoftmaxSum how, bool log) {
  const SoftmaxCall call = softmax_call(of, how, log);
  if (call.rows == 0 || call.columns == 0) return;
  with_format(*call.format, [&]<class T>() {
    if constexpr (sizeof(T) <= 4) {
      // Threads take some rows at a time, so that what they need for a row is seldom made anew.
      const std::size_t batch = std::max<std::size_t>(1, (std::size_t{1} << 14) / call.columns);
      const std::size_t batches = (call.rows - 1) / batch + 1;
      std::atomic<std::size_t> next{0};
      on_threads(thread_count(call.threads, call.rows * call.columns, batches), [&] {
        Rows<T> rows{call};
        for (std::size_t k; (k = next.fetch_add(1, std::memory_order_relaxed)) < batches;)
          for (std::size_t r = k * batch; r < std::min(call.rows, (k + 1) * batch); ++r) rows.compute(r);
      });
    }
  });
}

}  // namespace

std::vector<Entry> softmaxes() { return softmax_entries<softmax>("cpu"); }

}  // namespace samesum::cpu
