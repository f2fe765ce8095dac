/// Softmax on a CPU: distributes rows over threads and computes them with the loops of softmax_loops.hpp.
#include <algorithm>
#include <tuple>
#include <vector>

#include "samesum/backend/cpu/exact/exact_sums.hpp"
#include "samesum/backend/cpu/schedule/methods.hpp"
#include "samesum/backend/cpu/schedule/schedule.hpp"
#include "samesum/catalogue/describe.hpp"
#include "samesum/operation/online_softmax.hpp"

namespace samesum::cpu {
namespace {

using Shape = CoarsenedTree::Shape;

/// Computes rows of a call in format C, one at a time, on one thread.
template <class T, class C> class SoftmaxOfRows {
  using One = Scalar<C>;

 public:
  SoftmaxOfRows(const Call& call, const SoftmaxForm& form)
      : call_{call}, how_{form.sum}, log_{form.log}, n_{call.layout.n} {}

  void compute(std::size_t r) {
    const T* x = static_cast<const T*>(call_.x.data) + r * call_.layout.outer_stride;
    T* y = static_cast<T*>(call_.out.data) + r * call_.out.row_stride;
    if (how_ == SoftmaxSum::online) {
      const OnlineSoftmax<One> state = online(x);
      finish(x, y, state.largest.v, state.denominator(), nullptr);
      return;
    }
    const C largest = loops_.largest(x, n_);
    // All e are kept if they are needed again, in y if they fit there: x is not read any more.
    const bool keep = !log_ || how_ == SoftmaxSum::exact;
    C* e = nullptr;
    if constexpr (std::is_same_v<T, C>)
      if (!log_) e = y;
    if (!e) {
      scratch_.resize(keep ? n_ : std::min(n_, Shape::leaf));
      e = scratch_.data();
    }
    const One sum = how_ == SoftmaxSum::exact ? exact(x, largest, e) : plain(x, largest, e, keep);
    finish(x, y, largest, sum, log_ ? nullptr : e);
  }

 private:
  std::size_t leaf_end(std::size_t first) const { return std::min(n_, first + Shape::leaf); }

  One plain(const T* x, C largest, C* e, bool keep) {
    if constexpr (std::is_same_v<C, fp32>) {
      if (how_ == SoftmaxSum::fp16) return plain_in<fp16>(x, largest, e, keep);
      if (how_ == SoftmaxSum::bf16) return plain_in<bf16>(x, largest, e, keep);
    }
    return plain_in<C>(x, largest, e, keep);
  }

  /// Sums leaf by leaf, so that the e are added while they are in the first-level cache.
  template <class F> One plain_in(const T* x, C largest, C* e, bool keep) {
    [[maybe_unused]] const SumLeaves sum_leaves =
        kernels(Formats::index_of<F>())
            .sum_leaves[Orders::index_of<CoarsenedTree>()][Accumulators::index_of<Plain>()]
                       [Formats::index_of<C>()];
    std::vector<Plain<Scalar<F>>>& states = std::get<std::vector<Plain<Scalar<F>>>>(states_);
    states.resize(Shape::leaves(n_));
    for (std::size_t k = 0; k < states.size(); ++k) {
      const std::size_t first = k * Shape::leaf, count = leaf_end(first) - first;
      C* to = keep ? e + first : e;
      if constexpr (std::is_same_v<F, C>) {
        states[k].sum = {loops_.sum_exponentials(x + first, count, largest, to)};
      } else {
        loops_.exponentials(x + first, count, largest, to);
        sum_leaves(to, count, &states[k]);
      }
    }
    return {merge_by_stride_doubling(std::span{states}).result().v};
  }

  One exact(const T* x, C largest, C* e) {
    loops_.exponentials(x, n_, largest, e);
    if (n_ <= few) {
      // One window, which has less to prepare.
      ExactSums sums;
      C sum;
      sum_rows_exactly_({e, e, Term::element, 1, n_, n_}, &sums);
      if (round_sum(sums, n_, false, sum)) return {sum};
    }
    return {sum_exact(Values{std::span<const C>{e, n_}}, 1).template result<C>()};
  }

  OnlineSoftmax<One> online(const T* x) {
    std::vector<OnlineSoftmax<One>> leaves(Shape::leaves(n_));
    loops_.online_leaves(x, n_, leaves.data());
    return merge_by_stride_doubling(std::span{leaves});
  }

  /// Writes a row, from e if they were kept, else from x.
  void finish(const T* x, T* y, C largest, One sum, const C* e) const {
    if (log_)
      loops_.shift(x, n_, largest, log(sum).v, y);
    else if (e)
      loops_.scale(e, n_, 1 / sum.v, y);
    else
      loops_.scaled_exponentials(x, n_, largest, 1 / sum.v, y);
  }

  static constexpr std::size_t few = 256;

  const Call& call_;
  SoftmaxSum how_;
  bool log_;
  std::size_t n_;
  const SoftmaxLoops<C>& loops_ = std::get<SoftmaxLoops<C>>(kernels(Formats::index_of<T>()).softmax);
  const SumExactly sum_rows_exactly_ =
      kernels(Formats::index_of<C>()).sum_rows_exactly[static_cast<std::size_t>(ExactlySummed::elements)];
  std::vector<C> scratch_;
  std::tuple<std::vector<Plain<Scalar<fp16>>>, std::vector<Plain<Scalar<bf16>>>,
             std::vector<Plain<Scalar<fp32>>>, std::vector<Plain<Scalar<fp64>>>>
      states_;
};

void softmax(HostRun& work, SoftmaxForm form) {
  const Call& call = work.call;
  const Layout& l = call.layout;
  if (l.outer == 0 || l.n == 0) return;
  // A task is several short rows; a thread keeps its buffers for all of its rows.
  const std::size_t batch = std::max<std::size_t>(1, (std::size_t{1} << 14) / l.n);
  const std::size_t batches = (l.outer - 1) / batch + 1;
  with_format(*call.x.format, [&]<class T>() {
    with_computed(form, [&]<class C>() {
      if constexpr (can_read<T, C>) {
        std::atomic<std::size_t> next{0};
        on_threads(thread_count(call.options.threads, l.outer * l.n, batches), [&] {
          SoftmaxOfRows<T, C> rows{call, form};
          for (std::size_t k; (k = next.fetch_add(1, std::memory_order_relaxed)) < batches;)
            for (std::size_t r = k * batch; r < std::min(l.outer, (k + 1) * batch); ++r) rows.compute(r);
        });
      }
    });
  });
}

}  // namespace

std::vector<Entry> softmaxes() { return softmax_entries<HostRun, softmax>("cpu"); }

}  // namespace samesum::cpu
