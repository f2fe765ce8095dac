/// Exact reductions on a CPU: nearly all terms are exact in one or two doubles, which are then summed
/// exactly.
#include <algorithm>
#include <cmath>
#include <mutex>
#include <vector>

#include "samesum/backend/cpu/kernels.hpp"
#include "samesum/backend/cpu/methods.hpp"
#include "samesum/backend/cpu/tasks.hpp"

namespace samesum::cpu {
namespace {

constexpr std::size_t block = 4096;

/// Adds n contiguous products. Products of doubles become two words, or integers if the words would lose
/// bits.
template <class T> void add_products(ExactTerms& to, const T* x, const T* y, std::size_t n) {
  const WriteTerms write = kernels<Formats::index_of<fp64>()>().write_terms[Formats::index_of<T>()];
  double high[block], low[block];
  for (std::size_t begin = 0; begin < n; begin += block) {
    const std::size_t mine = std::min(n - begin, block);
    const T *a = x + begin, *b = y + begin;
    write(Term::product, a, b, mine, high, std::is_same_v<T, fp64> ? low : nullptr);
    if constexpr (std::is_same_v<T, fp64>) {
      bool any = false;
      for (std::size_t i = 0; i < mine; ++i) {
        const double size = std::abs(high[i]);
        // The low word may underflow, or the product overflow.
        const bool doubtful = !(size > 0x1p-960 && size < 0x1p1000);
        if (doubtful && std::isfinite(a[i]) && std::isfinite(b[i]) && a[i] != 0 && b[i] != 0) {
          to.add_product(a[i], b[i]);
          high[i] = -0.0;
          low[i] = 0;
        }
        if (low[i] == 0) low[i] = -0.0;  // -0 is the identity of addition
        any = any || low[i] != 0;
      }
      if (any) to.sum.merge(sum_exact(Values{std::span<const double>{low, mine}}, 1));
    }
    to.sum.merge(sum_exact(Values{std::span<const double>{high, mine}}, 1));
  }
}

template <class T>
void add_terms(ExactBatchState& to, ExactKind kind, const T* x, const T* y, std::size_t n) {
  if (n == 0) return;
  if (kind.term >= Term::square) {
    add_products(to.terms, x, kind.term == Term::square ? x : y, n);
  } else if (kind.term == Term::magnitude) {
    std::vector<T> magnitudes(n);
    for (std::size_t i = 0; i < n; ++i)
      magnitudes[i] = from_bits<T>(BitsOf<T>(to_bits(x[i]) & ~Format<T>::sign_bit));
    to.terms.sum.merge(sum_exact(Values{std::span<const T>{magnitudes}}, 1));
  } else {
    to.terms.sum.merge(sum_exact(Values{std::span<const T>{x, n}}, 1));
  }
  if (kind.moments) add_products(to.squares, x, x, n);
}

/// The results of one call. One thread computes each result; all threads share a single result, part by part.
template <class T> class ExactBatch {
 public:
  ExactBatch(ExactKind kind, const FormatInfo& format, const Call& call)
      : kind_{kind}, format_{format}, call_{call}, layout_{call.layout} {}

  void run() const { layout_.results() == 1 ? reduce_one() : reduce_many(); }

 private:
  static constexpr std::size_t part = std::size_t{1} << 16;  ///< elements per task of a single result

  std::size_t length_of(std::size_t at) const { return layout_.length(at / layout_.inner); }

  /// Adds elements begin … begin + n - 1 of result `at`.
  void add(ExactBatchState& state, std::size_t at, std::size_t begin, std::size_t n) const {
    const std::size_t stride = layout_.stride,
                      place = layout_.first(at / layout_.inner) + at % layout_.inner + begin * stride;
    const T *x = static_cast<const T*>(call_.x), *y = static_cast<const T*>(call_.y);
    if (stride == 1) return add_terms(state, kind_, x + place, y ? y + place : nullptr, n);
    std::vector<T> column_x, column_y;
    for (std::size_t i = 0; i < n; ++i) column_x.push_back(x[place + i * stride]);
    for (std::size_t i = 0; y && i < n; ++i) column_y.push_back(y[place + i * stride]);
    add_terms(state, kind_, column_x.data(), y ? column_y.data() : nullptr, n);
  }

  void finish(ExactBatchState& state, std::size_t at) const {
    state.finish(kind_, format_, length_of(at), call_.options.ddof, at, call_.out);
  }

  void reduce(std::size_t at) const {
    const std::size_t n = length_of(at);
    ExactBatchState state;
    for (std::size_t begin = 0; begin < n; begin += part) add(state, at, begin, std::min(n - begin, part));
    finish(state, at);
  }

  void reduce_many() const {
    const Layout& l = layout_;
    const std::size_t results = l.results();
    const std::size_t elements =
        l.offsets ? static_cast<std::size_t>(l.offsets[l.outer] - l.offsets[0]) : results * l.n;
    // A task holds enough short results to outweigh the cost of taking it from the queue.
    const std::size_t tasks = std::clamp<std::size_t>(elements >> 14, 1, std::max<std::size_t>(results, 1)),
                      per_task = (results + tasks - 1) / tasks;
    for_each_task(thread_count(call_.options.threads, elements, tasks), tasks, [&](std::size_t k) {
      for (std::size_t at = k * per_task; at < std::min(results, (k + 1) * per_task); ++at) reduce(at);
    });
  }

  void reduce_one() const {
    const std::size_t n = length_of(0), tasks = (std::max<std::size_t>(n, 1) - 1) / part + 1;
    ExactBatchState total;
    std::mutex mutex;
    for_each_task(thread_count(call_.options.threads, n, tasks), tasks, [&](std::size_t k) {
      ExactBatchState state;
      add(state, 0, k * part, std::min(n - k * part, part));
      const std::scoped_lock lock{mutex};
      total.merge(state);
    });
    if (call_.as_state)
      *static_cast<ExactDigits*>(call_.out) = ExactDigits{total};
    else
      finish(total, 0);
  }

  ExactKind kind_;
  const FormatInfo& format_;
  const Call& call_;
  const Layout& layout_;
};

}  // namespace

void reduce_exactly(ExactKind kind, const FormatInfo& format, const Call& call) {
  with_format(*call.input, [&]<class T>() { ExactBatch<T>{kind, format, call}.run(); });
}

}  // namespace samesum::cpu
