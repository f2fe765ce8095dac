/// Softmax on a CPU: distributes rows over threads and computes them with the loops of softmax_loops.hpp.
#include <algorithm>
#include <tuple>
#include <vector>

#include "samesum/backend/cpu/methods.hpp"
#include "samesum/backend/cpu/schedule.hpp"
#include "samesum/catalogue/describe.hpp"
#include "samesum/operation/online_softmax.hpp"

namespace samesum::cpu {
namespace {

using One = Scalar<fp32>;
using Shape = CoarsenedTree::Shape;

/// Computes rows of a call, one at a time, on one thread.
template <class T> class Rows {
 public:
  Rows(const Call& call, SoftmaxSum how, bool log) : call_{call}, how_{how}, log_{log}, n_{call.layout.n} {}

  void compute(std::size_t r) {
    const T* x = static_cast<const T*>(call_.x.data) + r * call_.layout.outer_stride;
    T* y = static_cast<T*>(call_.out.data) + r * call_.out.row_stride;
    if (how_ == SoftmaxSum::online) {
      const OnlineSoftmax<One> state = online(x);
      finish(x, y, state.largest.v, state.denominator(), nullptr);
      return;
    }
    const float largest = loops_.largest(x, n_);
    // All e are kept if they are needed again, in y if they fit there: x is not read any more.
    const bool keep = !log_ || how_ == SoftmaxSum::exact;
    float* e = nullptr;
    if constexpr (std::is_same_v<T, fp32>)
      if (!log_) e = y;
    if (!e) {
      scratch_.resize(keep ? n_ : std::min(n_, Shape::leaf));
      e = scratch_.data();
    }
    const One sum = how_ == SoftmaxSum::fp16   ? plain<fp16>(x, largest, e, keep)
                    : how_ == SoftmaxSum::bf16 ? plain<bf16>(x, largest, e, keep)
                    : how_ == SoftmaxSum::fp32 ? plain<fp32>(x, largest, e, keep)
                                               : exact(x, largest, e);
    finish(x, y, largest, sum, log_ ? nullptr : e);
  }

 private:
  std::size_t leaf_end(std::size_t first) const { return std::min(n_, first + Shape::leaf); }

  /// Sums leaf by leaf, so that the e are added while they are in the first-level cache.
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

  /// Writes a row, from e if they were kept, else from x.
  void finish(const T* x, T* y, float largest, One sum, const float* e) const {
    if (log_)
      loops_.shift(x, n_, largest, log(sum).v, y);
    else if (e)
      loops_.scale(e, n_, 1 / sum.v, y);
    else
      loops_.scaled_exponentials(x, n_, largest, 1 / sum.v, y);
  }

  template <class F> std::vector<Plain<Scalar<F>>>& states_of() {
    return std::get<std::vector<Plain<Scalar<F>>>>(states_);
  }

  const Call& call_;
  SoftmaxSum how_;
  bool log_;
  std::size_t n_;
  const SoftmaxLoops& loops_ = kernels<Formats::index_of<T>()>().softmax;
  std::vector<float> scratch_;
  std::tuple<std::vector<Plain<Scalar<fp16>>>, std::vector<Plain<Scalar<bf16>>>,
             std::vector<Plain<Scalar<fp32>>>>
      states_;
};

void softmax(HostRun& work, SoftmaxSum how, bool log) {
  const Call& call = work.call;
  const Layout& l = call.layout;
  if (l.outer == 0 || l.n == 0) return;
  with_format(*call.x.format, [&]<class T>() {
    if constexpr (sizeof(T) <= 4) {
      // A task is several short rows; a thread keeps its buffers for all of its rows.
      const std::size_t batch = std::max<std::size_t>(1, (std::size_t{1} << 14) / l.n);
      const std::size_t batches = (l.outer - 1) / batch + 1;
      std::atomic<std::size_t> next{0};
      on_threads(thread_count(call.options.threads, l.outer * l.n, batches), [&] {
        Rows<T> rows{call, how, log};
        for (std::size_t k; (k = next.fetch_add(1, std::memory_order_relaxed)) < batches;)
          for (std::size_t r = k * batch; r < std::min(l.outer, (k + 1) * batch); ++r) rows.compute(r);
      });
    }
  });
}

}  // namespace

std::vector<Entry> softmaxes() { return softmax_entries<HostRun, softmax>("cpu"); }

}  // namespace samesum::cpu
